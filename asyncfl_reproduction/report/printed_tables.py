"""Printed tables with our number beside each printed one, laid out as in the paper and coloured by verdict."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape

import numpy as np
import pandas as pd
from pandas.io.formats.style import Styler

from asyncfl_lite.base.style import VERDICT_COLOURS
from asyncfl_reproduction.claims.findings import by_seed
from asyncfl_reproduction.claims.measured import AT_FIXED_RATE, TUNED
from asyncfl_reproduction.grid.cells import SERVER_RATE
from asyncfl_reproduction.grid.columns import FIXED, untuned
from asyncfl_reproduction.published import layout, published
from asyncfl_reproduction.report.our_numbers import MEASURES, cells_behind, measure
from asyncfl_reproduction.report.recorded import MISSING, NOT_MEASURED, Ours, Recorded
from asyncfl_reproduction.statistics import EQUAL_POINTS, EQUAL_SHARE, FEWEST_SEEDS, contrast, deviation
from asyncfl_reproduction.verdict_words import HOLDS, OPEN, REVERSED

PAPER, OURS = "paper", "ours"
PARTS = ("verdict", "cell", "seeds")
EQUAL = {"%": 100 * EQUAL_POINTS, "percentage points": 100 * EQUAL_POINTS, "fraction": EQUAL_POINTS}
"""Unit of accuracies -> difference below which two of them are equivalent."""

LEFT = [{"selector": "th, td", "props": "text-align: left; vertical-align: top"}]
"""Style of tables of texts."""


def beside(recorded: Recorded, paper: str, artefact: str) -> pd.DataFrame:
    """Return every printed number of a table or text, with our measurement beside it.

    Returns:
        A table, made once for ``recorded``. Its first columns are the settings that differ between the table's rows,
        ``metric``, ``unit`` and ``paper``. Then come four columns for our number: ``ours`` (the number as text),
        ``verdict`` (whether it is on the printed side of the reference row, or of zero for a gain; empty if there is
        nothing to compare), ``cell`` (its source) and ``seeds`` (their number). The same four columns follow for
        :data:`.FIXED`; they are empty if no cell behind a number has a twin with a fixed server rate. Our number is
        "not run" if there is none, and "not measured" if there cannot be one.
    """
    if (paper, artefact) not in recorded.tables:
        recorded.tables[paper, artefact] = _beside(recorded, paper, artefact)
    return recorded.tables[paper, artefact]


def _beside(recorded: Recorded, paper: str, artefact: str) -> pd.DataFrame:
    printed = published(paper, artefact)
    settings = list(printed.columns[list(printed.columns).index("notes") + 1 :])
    varying = [name for name in ("dataset", "method", *settings) if printed[name].nunique(dropna=False) > 1]
    table = printed[varying].fillna("").assign(metric=printed["metric"], unit=printed["unit"])
    table["paper"] = [printed_text(row) for _, row in printed.iterrows()]
    twins = recorded.measured.twins
    for line, column in ((OURS, TUNED), (FIXED, AT_FIXED_RATE)):
        chosen = recorded.in_column(column)
        found = [measure(chosen, row) for _, row in printed.iterrows()]
        numbers = pd.DataFrame(
            {
                line: [ours_text(row, ours) for (_, row), ours in zip(printed.iterrows(), found, strict=True)],
                part(line, "verdict"): _verdicts(paper, artefact, printed, found),
                part(line, "cell"): [ours.source for ours in found],
                part(line, "seeds"): [
                    str(len(ours.values)) if ours.values is not None and len(ours.values) > 1 else "" for ours in found
                ],
            }
        )
        if line == FIXED:
            behind = [twins.intersection(cells_behind(ours.source)) for ours in found]
            numbers.loc[[not cells for cells in behind]] = ""
            cells = [_as_twins(text, cells) for text, cells in zip(numbers[part(line, "cell")], behind, strict=True)]
            numbers[part(line, "cell")] = cells
        table = pd.concat([table, numbers], axis=1)
    return table


def part(line: str, what: str) -> str:
    """Return the name of the column in :func:`beside` for a line's verdict, cell or seeds."""
    return what if line == OURS else f"{line}, {what}"


def _as_twins(source: str, twins: set[str]) -> str:
    """Return a number's source, with each cell in ``twins`` replaced by its twin at a fixed server rate."""
    return " ".join(
        re.sub("^[^,]+", lambda cell: cell[0] + SERVER_RATE * (cell[0] in twins), one) for one in source.split(" ")
    )


def _number(value: float, row: Mapping[str, object], digits: int = 4) -> str:
    """Return a number with as many digits as suit its unit, and at most ``digits``."""
    if row["unit"] == "fraction":
        return f"{value:.4f}"
    if row["unit"] == "%" or "points" in str(row["unit"]):
        return f"{value:.2f}"
    whole = abs(value) >= min(1000, 10**digits)  # with more digits, g would write powers of ten
    return f"{value:,.0f}" if whole else f"{value:.{digits}g}"


def printed_text(row: pd.Series) -> str:
    """Return a printed number with its spread, or the bound or failure that is printed instead."""
    if pd.isna(row["value"]):
        bound = re.search(r"printed as (>\d+)", str(row["notes"]))
        return bound.group(1) if bound else "Fail"
    spread = "" if pd.isna(row["std"]) else f" ± {_number(row['std'], row, 2)}"
    return _number(row["value"], row) + spread


def ours_text(row: pd.Series, ours: Ours) -> str:
    """Return our number as text: mean and deviation, "not reached", "not run" or "not measured", with marks."""
    if ours.values is None:
        return NOT_MEASURED if ours.source.startswith(NOT_MEASURED) else MISSING
    never, seeds = int(np.isinf(ours.values).sum()), len(ours.values)
    if never:
        return "not reached" + (f" with {never} of {seeds} seeds" if never < seeds else "") + ours.mark
    spread = f" ± {_number(deviation(ours.values), row, 2)}" if seeds > 1 else ""
    return _number(ours.values.mean(), row) + spread + ours.mark


def _verdicts(paper: str, artefact: str, printed: pd.DataFrame, found: list[Ours]) -> list[str]:
    """Return each row's verdict against the table's reference row or, without one, each gain's verdict against zero."""
    _, columns, reference, _ = layout(paper, artefact)
    columns = ["metric", *columns]
    rows = printed.to_dict("records")
    if not reference:
        return [_gain(row, ours) for row, ours in zip(rows, found, strict=True)]
    places = {
        tuple(row[name] for name in columns): index
        for index, row in enumerate(rows)
        if all(row[name] == value for name, value in reference.items())
    }
    verdicts = []
    for index, row in enumerate(rows):
        other = places.get(tuple(row[name] for name in columns), index)
        same = other == index
        bound = EQUAL.get(str(row["unit"]))
        verdicts.append(
            "" if same else _same_side(row["value"], found[index], rows[other]["value"], found[other], bound)
        )
    return verdicts


def _gain(row: Mapping[str, object], ours: Ours) -> str:
    """Return the verdict on a gain or reduction against zero, and an empty string for other numbers."""
    if MEASURES[row["paper"], row["metric"]].kind not in ("points", "share") or ours.values is None:
        return ""
    zero, bound = Ours(pd.Series(0.0, by_seed(ours.values).index)), EQUAL.get(str(row["unit"]))
    return _same_side(row["value"], ours, 0.0, zero, bound)


def _same_side(
    printed: float, ours: Ours, printed_reference: float, reference: Ours, bound: float | None = None
) -> str:
    """Return the verdict on our number against the reference: equivalent, on the printed side, or on the other.

    Numbers are equivalent within ± ``bound``, and times, which have no bound, within 5 % of the reference. If most runs
    of either side predict one class for every input, the verdict is ``open`` (:meth:`Measured.is_constant`). A printed
    NaN is a target that was never reached. Numbers that were simulated without training are judged without an interval,
    because they have no spread over seeds.
    """
    if ours.values is None or reference.values is None:
        return ""
    expected = np.nan_to_num(printed, nan=np.inf) - np.nan_to_num(printed_reference, nan=np.inf)
    if np.isnan(expected) or expected == 0:
        return ""
    if not (ours.trained and reference.trained):
        return OPEN
    if any(one.source.startswith("simulated") for one in (ours, reference)):
        difference = ours.values.mean() - reference.values.mean()
        return OPEN if difference == 0 else HOLDS if difference * expected > 0 else REVERSED
    both = pd.concat([by_seed(ours.values), by_seed(reference.values)], axis=1, join="inner")
    seeds, (values, others) = len(both), both.to_numpy().T
    never = np.isinf(values), np.isinf(others)
    if never[0].any() or never[1].any():
        whole = seeds >= FEWEST_SEEDS and never[0].all() != never[1].all() and not (never[0] & never[1]).any()
        return OPEN if not whole else HOLDS if never[0].all() == (expected > 0) else REVERSED
    bound = EQUAL_SHARE * abs(float(others.mean())) if bound is None else bound
    return contrast(np.sign(expected) * (values - others), "", equal=bound or None).verdict


def laid_out(table: pd.DataFrame, paper: str, artefact: str, value: str = "") -> pd.DataFrame:
    """Lay out a table of :func:`beside` as in the paper, with two or three lines per row: paper, tuned, untuned.

    In place of the numbers it can show the ``verdict``, ``cell`` or ``seeds`` of ours.
    """
    rows, columns, *_ = layout(paper, artefact)
    if not rows:
        return table
    kept = [name for name in columns if name in table]
    lines = lines_of(table, paper)
    parts = [
        table[[*rows, *kept]].assign(
            of=line, text="" if value and line == PAPER else table[part(line, value) if value else line]
        )
        for line in lines
    ]
    order = [tuple(row) for row in table[rows].drop_duplicates().to_numpy()]
    heads = [tuple(row) for row in table[kept].drop_duplicates().to_numpy()]
    first = [head[0] for head in heads]
    heads.sort(key=lambda head: first.index(head[0]))  # keeps columns together that share the first of two names
    wide = pd.concat(parts).pivot(index=[*rows, "of"], columns=kept, values="text")
    wide = wide.reindex([(*row, of) for row in order for of in lines])
    return wide.reindex(columns=[head if len(kept) > 1 else head[0] for head in heads]).fillna("")


def lines_of(table: pd.DataFrame, paper: str = "") -> dict[str, str]:
    """Return the lines that each printed number has in a table of :func:`beside`, with their headings.

    The line for our untuned number exists if at least one number has a cell with a twin.
    """
    if not table[FIXED].any():
        return {PAPER: PAPER, OURS: OURS}
    return {PAPER: PAPER, OURS: "ours, tuned", FIXED: f"ours, {untuned(paper)}"}


def was_run(table: pd.DataFrame, paper: str = "", artefact: str = "") -> pd.Series:
    """Return, for each number of :func:`beside`, whether we have it or another number of its printed row."""
    ours = ~(table[[OURS, FIXED]].map(_is_nothing).all(axis=1))
    rows = layout(paper, artefact).rows
    return ours.groupby([table[name] for name in rows]).transform("any") if rows else ours


def _is_nothing(text: str) -> bool:
    return not text or text.startswith((MISSING, NOT_MEASURED))


def background(verdict: str) -> str:
    """Return the CSS for the colour of a verdict or state."""
    return f"background-color: {VERDICT_COLOURS[verdict]}; color: #111827" if verdict in VERDICT_COLOURS else ""


def quiet(text: object) -> str:
    """Return the CSS that greys out numbers that were not run or not measured."""
    return "color: #9ca3af" if str(text).startswith((MISSING, NOT_MEASURED)) else ""


def listed(table: pd.DataFrame, precision: int = 1) -> Styler:
    """Style a plain table for the notebook, with texts shown literally and never as HTML."""
    style = Styler(table, cell_ids=False).format(precision=precision, na_rep="", escape="html").map(quiet)
    style = style.format_index(escape="html", axis="index").format_index(escape="html", axis="columns")
    whole = [{"selector": "td.col0", "props": "white-space: nowrap"}] * ("id" in table)
    return style.hide(axis="index").set_table_styles([*LEFT, *whole])


def coloured(style: Styler, column: str, verdicts: Iterable[str]) -> Styler:
    """Colour a column by verdicts."""
    return style.apply(lambda _: [background(verdict) for verdict in verdicts], subset=[column])


def of_html(shown: pd.DataFrame, css: pd.DataFrame | None = None) -> Styler:
    """Style a table whose texts are HTML, with the CSS of its cells."""
    style = Styler(shown, cell_ids=False).hide(axis="index").format(escape=None)
    return (style if css is None else style.apply(lambda _: css, axis=None)).set_table_styles(LEFT)


def folded(summary: str, html: str) -> str:
    """Return HTML folded below a one-line summary; escape plain text with :func:`html.escape` first."""
    return f'<details class="folded"><summary>{summary}</summary>{html}</details>'


def as_list(texts: Iterable[str]) -> str:
    """Return plain texts as an HTML list."""
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"

"""Styled tables for readers: printed numbers with ours below, claims with verdicts, and cells by name.

The tooltip of a number or a name is the path of its cell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape

import pandas as pd
from pandas.io.formats.style import Styler

from asyncfl_lite.base.errors import how_many
from asyncfl_reproduction.grid.columns import untuned
from asyncfl_reproduction.number_texts import with_signs
from asyncfl_reproduction.published import layout
from asyncfl_reproduction.report.names import WORDS, in_names, with_titles, words
from asyncfl_reproduction.report.printed_tables import (
    FIXED,
    OURS,
    PAPER,
    PARTS,
    as_list,
    background,
    folded,
    laid_out,
    lines_of,
    of_html,
    part,
    quiet,
)
from asyncfl_reproduction.report.recorded import MISSING

Names = Mapping[str, str]
"""Path of a cell -> its name."""
RECORDED = "laptop tier, recorded"
"""Header of the column with the laptop tier's verdicts."""
SHOWN_AT_ONCE = 4
"""Number of parts of an answer that are shown; the others are folded."""
PARTS_COUNTED = re.compile(r"(\d+ of )?\d+ parts?( run)?: ")
"""Beginning of a finding that counts a claim's parts."""
NARROW = 8
"""Number of columns above which a number may be wrapped before its deviation."""


def styled(table: pd.DataFrame, paper: str, artefact: str, names: Names) -> Styler:
    """Style rows of a table from :func:`.printed_tables.beside`, laid out as printed or with one number per row."""
    if not layout(paper, artefact).rows:
        known = ["metric", "unit"] if artefact.startswith("Table") and table["metric"].nunique() == 1 else []
        return in_rows(table.drop(columns=known), names, paper)
    usual = usual_seeds(table)
    wide, verdicts, cells, seeds = (laid_out(table, paper, artefact, value) for value in ("", *PARTS))
    css = wide.map(quiet) + verdicts.map(background)
    for place, head in ((row, column) for row in range(len(wide)) for column in range(wide.shape[1])):
        path = cells.iat[place, head]
        number = _number(wide.iat[place, head], seeds.iat[place, head], usual, _titled(path, names))
        wide.iat[place, head] = number.replace("\u00a0±", " ±") if wide.shape[1] > NARROW else number
    wide = wide.rename(index=WORDS | lines_of(table, paper)).rename(columns=WORDS)
    wide.index.names = ["" if name == "of" else words(name) for name in wide.index.names]
    wide.columns.names = [words(name) for name in wide.columns.names]
    css.index, css.columns = wide.index, wide.columns
    style = Styler(wide, cell_ids=False).format(escape=None).apply(lambda _: css, axis=None)
    style = style.format_index(escape="html", axis="index").format_index(escape="html", axis="columns")
    aligned = [{"selector": "td", "props": "text-align: right"}, {"selector": "th", "props": "white-space: nowrap"}]
    return style.set_table_styles(aligned)


def in_rows(table: pd.DataFrame, names: Names, paper: str = "") -> Styler:
    """Style a table of :func:`.printed_tables.beside` with one row per printed number, and the source of ours."""
    usual, lines = usual_seeds(table), lines_of(table, paper)
    settings = table[list(table.columns[: list(table.columns).index(PAPER)])]
    shown = settings.map(lambda text: escape(str(WORDS.get(text, text)))).rename(columns=words)
    css = pd.DataFrame("", shown.index, [*shown.columns, *lines.values(), "from"])
    shown[PAPER] = table[PAPER].map(in_one_line).map(escape)
    for line, head in list(lines.items())[1:]:
        texts = zip(table[line], table[part(line, "seeds")], table[part(line, "cell")], strict=True)
        shown[head] = [_number(text, seeds, usual, path) for text, seeds, path in texts]
        css[head] = table[part(line, "verdict")].map(background) + table[line].map(quiet)
    shown["from"] = [f'<span title="{escape(path)}">{escape(_source(path, names))}</span>' for path in table["cell"]]
    return of_html(shown, css)


def _source(source: str, names: Names) -> str:
    return in_names(source, names).replace(" - ", " less ")


def usual_seeds(table: pd.DataFrame) -> str:
    """Return the number of seeds that most of our numbers rest on, or an empty string if there are none."""
    seeds = pd.concat([table[part(line, "seeds")] for line in (OURS, FIXED)])
    return str(next(iter(seeds[seeds != ""].mode()), ""))


def _number(text: str, seeds: str, usual: str, title: str) -> str:
    """Return a number as HTML, with an unusual number of seeds in brackets and its source as a tooltip."""
    shown = escape(in_one_line(text) + (f" ({how_many(int(seeds), 'seed')})" if seeds not in ("", usual) else ""))
    return f'<span title="{escape(title)}">{shown}</span>' if title else shown


def in_one_line(text: str) -> str:
    """Return a number and its deviation with a minus sign, joined so that a browser does not wrap them."""
    return with_signs(text).replace(" ± ", "\u00a0±\u00a0")


def _titled(path: str, names: Names) -> str:
    return f"{names[path]}: {path}" if path in names else path


def claims(table: pd.DataFrame, names: Names, paper: str = "") -> str:
    """Return a table of :meth:`.Recorded.claims` as HTML, with the claims that were not run folded at the end.

    A claim's comparisons are folded below its verdict. Another tier's verdicts, in the column :data:`RECORDED`, are
    shown as they are.
    """
    columns = {"ours": "detail"} | ({FIXED: f"{FIXED}, detail"} if FIXED in table else {})
    shown = pd.DataFrame({"claim": table["id"].map("<b>{}</b><br>".format) + table["artefact"].map(escape)})
    shown["kind"] = table["kind"]
    shown["what it says"] = table["claim"].map(escape)
    shown["the paper's numbers"] = table["paper"].map(with_signs).map(escape)
    tuned = "tuned" if FIXED in columns else "ours"
    heads = {"ours": tuned, FIXED: untuned(paper)}
    css = pd.DataFrame("", table.index, [*shown.columns, *(heads[column] for column in columns)])
    for column, detail in columns.items():
        head = heads[column]
        due = (table[detail] != "") | (column == "ours")
        verdicts = table[column].where(due, "")
        shown[head] = [_finding(*one, names) if one[0] else "" for one in zip(verdicts, table[detail], strict=True)]
        css[head] = verdicts.map(background)
    if RECORDED in table:
        shown[RECORDED] = table[RECORDED]
        css[RECORDED] = table[RECORDED].map(background)
    run = ~(table[list(columns)] == MISSING).all(axis=1)
    parts = [_text_table(shown[run], css[run])] if run.any() else []
    if not run.all():
        left = shown[~run].iloc[:, :4].assign(why=[_reason(detail, names) for detail in table["detail"][~run]])
        inner = _text_table(left, pd.DataFrame("", left.index, left.columns))
        parts.append(folded(f"{how_many(int((~run).sum()), 'claim')} not run", inner))
    return "".join(parts)


def questions(table: pd.DataFrame, names: Names) -> str:
    """Return a table of :attr:`.Recorded.questions` as HTML, with long answers folded after their first parts."""
    shown = pd.DataFrame({"id": table["id"].map("<b>{}</b>".format), "question": table["question"].map(escape)})
    shown["state"] = table["state"]
    shown["answer"] = [_answer(detail, names) for detail in table["answer"]]
    css = pd.DataFrame("", table.index, shown.columns)
    css["state"] = table["state"].map(background)
    return _text_table(shown, css)


def _answer(detail: str, names: Names) -> str:
    parts = with_signs(with_titles(in_names(detail, names))).split("; ")
    first, rest = parts[:SHOWN_AT_ONCE], parts[SHOWN_AT_ONCE:]
    return as_list(first) + (folded(f"{len(rest)} more", as_list(rest)) if rest else "")


def _text_table(shown: pd.DataFrame, css: pd.DataFrame) -> str:
    widths = [{"selector": "td.col0", "props": "white-space: nowrap"}, {"selector": "td", "props": "min-width: 6em"}]
    return of_html(shown, css).set_table_styles(widths, overwrite=False).to_html()


def _finding(verdict: str, detail: str, names: Names) -> str:
    """Return a verdict as HTML with its basis, which is a sentence or folded comparisons."""
    first, *rest = with_signs(in_names(detail, names)).split("; ")
    if not rest:
        return f"<b>{escape(verdict)}</b><br>{escape(first)}"
    said, listed = (first, rest) if PARTS_COUNTED.match(first) else ("", [first, *rest])
    return f"<b>{escape(verdict)}</b><br>{escape(said)}" + folded("in detail", as_list(listed))


def _reason(detail: str, names: Names) -> str:
    """Return the reason why a claim was not run, which usually is that its cells were not run."""
    return (
        "its cells were not run"
        if all(one.endswith(("not run", "not all methods run")) for one in detail.split("; "))
        else escape(in_names(detail, names))
    )

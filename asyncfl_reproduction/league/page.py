"""A newcomer's page, with its standing, its costs, the settings tried, and the limits of the comparison."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from jinja2 import Environment
from matplotlib.figure import Figure

from asyncfl_lite import plots
from asyncfl_lite.base.errors import how_many
from asyncfl_lite.base.files import write_atomically
from asyncfl_lite.base.style import ACCENT
from asyncfl_lite.runs.assembly import load_task
from asyncfl_reproduction.league.across import TARGET_SHARE
from asyncfl_reproduction.league.costs import Costs, costs
from asyncfl_reproduction.league.field import REFERENCE, Place
from asyncfl_reproduction.league.run import Newcomer, Trial
from asyncfl_reproduction.league.standings import (
    BETTER,
    EQUIVALENT,
    MOST_SEEDS,
    OPEN,
    VERDICTS,
    WORSE,
    Row,
    Standings,
    Times,
    ranked,
)
from asyncfl_reproduction.number_texts import with_signs
from asyncfl_reproduction.report.figures import finish, legend_of, panels
from asyncfl_reproduction.report.head_to_head import draw_ranks
from asyncfl_reproduction.report.page import picture
from asyncfl_reproduction.statistics import Contrast
from asyncfl_reproduction.tuning.choices import best_of, edges_of, in_words, tried
from asyncfl_reproduction.tuning.grids import name_of

TEMPLATE = Path(__file__).with_name("page.html.jinja")
HEADINGS = {"tuned": ("Tuned", "tuned"), "printed": ("Fixed server rate", "at a fixed server rate")}
BAR_COLOURS = {BETTER: "#15803d", WORSE: "#b91c1c", EQUIVALENT: "#1d4ed8"}
NEAREST = 5
"""Methods nearest to the newcomer in accuracy whose curves are drawn beside its own."""
WIDEST_BAR = 30.0
"""Most points that a bar shows to either side."""
NOT_COMPARED = (
    "Other workloads, models and sizes. These are ten classes of small images, and an MLP with one hidden layer.",
    "Other splits than Dirichlet α = 0.1 over 50 clients, other numbers of clients in flight, and longer runs.",
    "Clients that fail, leave or lie.",
    "The server's own time. On this clock it takes none, even if the server distils or trains a generator.",
    "Bytes sent. The table of costs lists what clients are asked for, but does not add it up.",
    "Options other than those tried. The page does not show what a method gains from them.",
)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a newcomer's entry, as shown on its page.

    Attributes:
        newcomer: the newcomer, with the settings in which it ran.
        trial: the cost of one of its runs.
        found: its standings, one for each setting.
        quick: whether it ran in fewer settings and with a grid that does not grow.
        earlier: names of the pages of other code under the same name, which has already seen the same seeds.
    """

    newcomer: Newcomer
    trial: Trial
    found: Sequence[Standings]
    quick: bool = False
    earlier: Sequence[str] = ()

    @property
    def title(self) -> str:
        """The newcomer's name in the spelling that papers use."""
        return plots.title(self.newcomer.entry.name)

    def in_column(self, column: str) -> list[Standings]:
        """Return the standings whose runs belong to one column."""
        return [one for one in self.found if one.place.column == column]


def write_page(path: Path, outcome: Outcome) -> None:
    """Write an outcome as one HTML file that loads nothing from elsewhere."""
    plots.use_style()
    page = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    page.globals |= {"how_many": how_many, "listed": _listed}
    page.filters["named"] = plots.title
    write_atomically(path, page.from_string(TEMPLATE.read_text("utf-8")).render(**content(outcome)))
    plt.close("all")


def content(outcome: Outcome) -> dict[str, Any]:
    """Return the values that fill the page's template."""
    entry, first = outcome.newcomer.entry, outcome.found[0].place
    columns = [_column(outcome, name) for name in HEADINGS if outcome.in_column(name)]
    missing: dict[str, list[str]] = {}
    for one in outcome.found:
        for method in one.missing:
            missing.setdefault(plots.title(method), []).append(f"{one.place.name} ({one.place.column})")
    open_ = [row for one in outcome.found for row in one.rows if row.verdict == OPEN]
    return {
        "title": outcome.title,
        "accent": ACCENT,
        "outcome": outcome,
        "file": Path(entry.file).name,
        "first": first,
        "places": {one.place.name for one in outcome.found},
        "tuning_seeds": ", ".join(map(str, first.searches[REFERENCE].seeds)),
        "missing": missing.items(),
        "columns": columns,
        "costs": _costs(outcome),
        "nearest": NEAREST,
        "open": open_,
        "soon": [row.to_decide for row in open_ if row.to_decide],
        "not_compared": NOT_COMPARED,
    }


def _column(outcome: Outcome, name: str) -> dict[str, Any]:
    found, entry = outcome.in_column(name), outcome.newcomer.entry.name
    ranks, left_out = ranked(found)
    known = ranks is not None and entry in ranks.ranks
    rows = [row for one in found for row in one.rows if row.verdict]
    return {
        "heading": HEADINGS[name][0],
        "short": HEADINGS[name][1],
        "tries": found[0].place.tries,
        "comparisons": len(rows),
        "at_end": _counted([row.verdict for row in rows]),
        "in_time": _counted([row.verdict_in_time for row in rows]),
        "ranks": ranks if known else None,
        "rank": ranks.ranks[entry] if known else None,
        "near": [plots.title(method) for method in ranks.near(entry) if method != entry] if known else [],
        "picture": _as_source(draw_ranks(ranks, entry)) if known else "",
        "left_out": left_out,
        "places": [_place(outcome, one) for one in found],
    }


def _counted(verdicts: Sequence[str]) -> str:
    return ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS if verdict in verdicts)


def _place(outcome: Outcome, one: Standings) -> dict[str, Any]:
    name = outcome.newcomer.entry.name
    others = [row for row in one.rows if row.method != name]
    ends = [abs(end) for row in others for end in row.difference[3:5] if math.isfinite(end)]
    scale = min(WIDEST_BAR, max(1.5, *(100 * end for end in ends), 1.5))
    curves, shown = draw_beside(one, name)
    never = [plots.title(row.method) for row in one.rows if row.times is not None and row.times.never]
    return {
        "name": one.place.name,
        "config": one.place.config_of(REFERENCE),
        "others": len(others),
        "counts": ", ".join(f"{verdict} {_against(verdict)} {count}" for verdict, count in one.counts().items()),
        "scale": f"{scale:.2g}",
        "target": f"{TARGET_SHARE:.0%} of FedBuff's accuracy with the same seed, on average {one.target:.1%}",
        "known": not math.isnan(one.target),
        "never": ", ".join(never),
        "rows": [_row(outcome, one, row, scale) for row in one.rows],
        "curves": _as_source(curves),
        "shown": shown,
        "tried": _tried(outcome, one.place),
    }


def _against(verdict: str) -> str:
    return {BETTER: "than", WORSE: "than", EQUIVALENT: "to"}.get(verdict, "against")


def _row(outcome: Outcome, one: Standings, row: Row, scale: float) -> dict[str, Any]:
    newcomer = row.method == outcome.newcomer.entry.name
    return {
        "newcomer": newcomer,
        "title": plots.title(row.method),
        "accuracy": f"{100 * row.mean:.1f}{_ends(row.low, row.high, '.1f')}{one.measured.mark(row.method)}",
        "difference": "" if newcomer else _difference(row.difference),
        "in_time": "" if newcomer else _difference(row.in_time),
        "verdict_in_time": row.verdict_in_time,
        "bar": None if newcomer else _bar(row, scale),
        "verdict": row.verdict,
        "to_decide": "" if row.verdict != OPEN else f"{row.to_decide or f'> {MOST_SEEDS}'} seeds",
        "time": _time(row.times, row.seeds),
        "ratio": "" if row.times is None or row.times.ratio is None else _ratio(row.times.ratio),
    }


def _difference(found: Contrast) -> str:
    if math.isnan(found.mean):
        return "no seed in common"
    return with_signs(f"{100 * found.mean:+.1f}{_ends(found.low, found.high, '+.1f')}")


def _ends(low: float, high: float, digits: str) -> str:
    return f" [{100 * low:{digits}}, {100 * high:{digits}}]" if math.isfinite(high - low) else " (too few seeds)"


def _bar(row: Row, scale: float) -> dict[str, Any] | None:
    found = row.difference
    if not math.isfinite(found.high - found.low):
        return None
    low, mean, high = (
        round(100 + 96 * max(-1.0, min(1.0, 100 * value / scale)), 1) for value in (found.low, found.mean, found.high)
    )
    band = round(96 / scale, 1)
    colour = BAR_COLOURS.get(row.verdict, "#6b7280")
    return {"low": low, "mean": mean, "high": high, "band_from": 100 - band, "band": 2 * band, "colour": colour}


def _time(times: Times | None, seeds: int) -> str:
    if times is None:
        return ""
    shown = "never" if math.isinf(times.median) else f"{times.median:,.1f}"
    return f"{shown}, not with {times.never} of {seeds}" if 0 < times.never < seeds else shown


def _ratio(found: Contrast) -> str:
    """Return a ratio of times as text, or a bound on its mean if the interval is open on one side."""
    low, high = math.isfinite(found.low), math.isfinite(found.high)
    if low and high:
        return f"× {math.exp(found.mean):.2f} [{math.exp(found.low):.2f}, {math.exp(found.high):.2f}]"
    if low or high:
        return f"{'≥' if low else '≤'} × {math.exp(found.low if low else found.high):.2f}"
    return "not known"


def _costs(outcome: Outcome) -> list[Costs]:
    first, entry = outcome.found[0], outcome.newcomer.entry
    classes = load_task(first.place.config_of(REFERENCE).task_settings).num_classes
    rows = []
    for row in first.rows:
        looked = outcome.trial.unlabelled if row.method == entry.name else None
        config = first.configs[row.method]
        rows.append(costs(row.method, config, first.measured, classes=classes, unlabelled=looked))
    return rows


def _tried(outcome: Outcome, place: Place) -> list[dict[str, Any]]:
    entry, rows = outcome.newcomer.entry.name, []
    for method in (entry, *place.searches):
        found = tried(name_of(place.study, method, place.column), outcome.newcomer.folder if method == entry else None)
        if not found:
            continue
        rows.append({
            "newcomer": method == entry,
            "title": plots.title(method),
            "combinations": len({row["point"] for row in found}),
            "runs": len(found),
            "chosen": in_words(best_of(found)),
            "edges": ", ".join(edges_of(best_of(found), found)),
        })  # fmt: skip
    return rows


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _as_source(figure: Figure | None) -> str:
    return "" if figure is None else "data:image/png;base64," + base64.b64encode(picture(figure, "").data).decode()


def shown_beside(one: Standings, newcomer: str) -> list[str]:
    """Return the newcomer, the five methods whose mean accuracy is nearest to its own, and FedBuff."""
    own = next(row.mean for row in one.rows if row.method == newcomer)
    others = sorted((row for row in one.rows if row.method != newcomer), key=lambda row: abs(row.mean - own))
    names = [row.method for row in others[:NEAREST]]
    with_reference = [*names, REFERENCE] if any(row.method == REFERENCE for row in others[NEAREST:]) else names
    return [*with_reference, newcomer]


def draw_beside(one: Standings, newcomer: str) -> tuple[Figure, list[str]]:
    """Draw accuracy over client updates and over virtual time, and return the figure and the methods shown.

    The time axis ends a fifth after the newcomer, because synchronous rounds may go on for twenty times as long.
    """
    shown = shown_beside(one, newcomer)
    curves = {method: one.measured.curves[method] for method in shown}
    figure, axes = panels(2)
    figure.set_size_inches(11, 4.2)
    for own, over in zip(axes, ("updates", "time"), strict=True):
        plots.plot_curves(curves, over=over, axes=own)
        _mark(own, plots.title(newcomer))
    ends = [curve["time"].iloc[-1] for curve in curves[newcomer]]
    axes[1].set(xlim=(0, 1.2 * max(ends)), ylabel="")
    entries = legend_of(axes[0])
    for own in axes:
        own.get_legend().remove()
    return finish(figure, entries), shown


def _mark(axes: plt.Axes, title: str) -> None:
    for line, band in zip(axes.get_lines(), axes.collections, strict=True):
        if line.get_label() == title:
            line.set(color=ACCENT, linewidth=3)
            band.set(facecolor=ACCENT)

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
from asyncfl_reproduction.league.template import TEMPLATE
from asyncfl_reproduction.report.figures import finish, legend_of, panels
from asyncfl_reproduction.report.page import picture
from asyncfl_reproduction.report.ranks import Ranking, draw_ranks
from asyncfl_reproduction.statistics import Contrast
from asyncfl_reproduction.tuning.tuned import best_of, edges_of, in_words, tried
from asyncfl_reproduction.written import with_signs

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
        quick: whether it was entered with ``--quick``, that is, in fewer settings and with a grid that does not grow.
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
    page = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(TEMPLATE)
    write_atomically(path, page.render(**content(outcome)))
    plt.close("all")


def content(outcome: Outcome) -> dict[str, Any]:
    """Return the values that fill the page's template."""
    entry = outcome.newcomer.entry
    columns = [_column(outcome, name) for name in HEADINGS if outcome.in_column(name)]
    return {
        "title": outcome.title,
        "accent": ACCENT,
        "about": f"{Path(entry.file).name}, code {entry.digest}. {_about(outcome)}",
        "lead": [_lead(outcome, name) for name in HEADINGS if outcome.in_column(name)],
        "warnings": _unequal(outcome) + _looked_before(outcome),
        "missing": _missing(outcome.found),
        "columns": columns,
        "cost_place": outcome.found[0].place.name,
        "costs": [_cost_shown(outcome, row) for row in _costs(outcome)],
        "tried_said": _tried_said(outcome),
        "changes": _changes(outcome),
        "not_compared": NOT_COMPARED,
    }


def _about(outcome: Outcome) -> str:
    place = outcome.found[0].place
    where = f"{how_many(len({one.place.name for one in outcome.found}), 'place')} (a workload under a delay law)"
    haste = " Entered with --quick, so only on the first workload, and only tuned." * outcome.quick
    return f"{where}, {how_many(len(place.seeds), 'seed')} each, every run with {place.updates} client updates.{haste}"


def _lead(outcome: Outcome, column: str) -> str:
    rows = [row for one in outcome.in_column(column) for row in one.rows if row.verdict]
    return (
        f"{HEADINGS[column][0]}, {outcome.title} against each method in each place, "
        f"{how_many(len(rows), 'comparison')}. "
        f"After the same number of client updates: {_counted([row.verdict for row in rows])}. After the same virtual "
        f"time, when the first of the two runs ends: {_counted([row.verdict_in_time for row in rows])}."
    )


def _counted(verdicts: Sequence[str]) -> str:
    return ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS if verdict in verdicts)


def _unequal(outcome: Outcome) -> list[str]:
    """Return one sentence for each way in which the newcomer's tuning was at a disadvantage."""
    said = [f"Not equally: {outcome.newcomer.untried}."] * bool(outcome.newcomer.untried)
    more = "Not equally: with --quick its grid did not grow, but those of the field did if the best lay on an edge."
    return said + [more] * outcome.quick


def _looked_before(outcome: Outcome) -> list[str]:
    """Return a warning if other code of this name has already used these seeds; no interval accounts for that."""
    if not outcome.earlier:
        return []
    looks = len(outcome.earlier) + 1
    return [
        f"Look {looks}: other code of this name has been entered {how_many(looks - 1, 'time')} before and seen the "
        f"same seeds ({', '.join(outcome.earlier)}). No interval here accounts for it."
    ]


def _missing(found: Sequence[Standings]) -> str:
    by_method: dict[str, list[str]] = {}
    for one in found:
        for method in one.missing:
            by_method.setdefault(plots.title(method), []).append(f"{one.place.name} ({one.place.column})")
    said = [f"{method} in {', '.join(where)}" for method, where in by_method.items()]
    return f"Not recorded, so not ranked there: {'; '.join(said)}." if said else ""


def _column(outcome: Outcome, name: str) -> dict[str, Any]:
    found = outcome.in_column(name)
    ranks, left_out = ranked(found)
    entry = outcome.newcomer.entry.name
    known = ranks is not None and entry in ranks.ranks
    drawn = draw_ranks(ranks, entry) if known else None
    return {
        "heading": HEADINGS[name][0],
        "short": HEADINGS[name][1],
        "said": _rank_said(outcome.title, entry, ranks, len(found)) if known else "Nothing can be ranked yet.",
        "ranks": _as_source(drawn),
        "ranks_alt": _rank_alt(ranks) if known else "",
        "left_out": ", ".join(map(plots.title, left_out)),
        "places": [_place(outcome, one) for one in found],
    }


def _rank_said(title: str, name: str, found: Ranking, places: int) -> str:
    near = [plots.title(method) for method in found.near(name) if method != name]
    of = f"{title} has mean rank {found.ranks[name]:.1f} of {len(found.ranks)}, 1 being best"
    over = f"over {how_many(found.blocks, 'seed')} of {how_many(places, 'place')}"
    if not near:
        return f"{of}, {over}. The critical difference, {found.critical:.1f}, distinguishes it from all others."
    apart = len(found.ranks) - 1 - len(near)
    if not apart:
        return f"{of}, {over}. The critical difference, {found.critical:.1f}, distinguishes it from none of the others."
    return (
        f"{of}, {over}. The critical difference, {found.critical:.1f}, distinguishes {title} from {apart} of the "
        f"others, but not from {_listed(near)}."
    )


def _rank_alt(found: Ranking) -> str:
    return "Mean ranks, best first: " + ", ".join(f"{plots.title(m)} {rank:.1f}" for m, rank in found.ranks.items())


def _place(outcome: Outcome, one: Standings) -> dict[str, Any]:
    name, title = outcome.newcomer.entry.name, outcome.title
    others = [row for row in one.rows if row.method != name]
    counts = ", ".join(f"{verdict} {_against(verdict)} {count}" for verdict, count in one.counts().items())
    ends = [abs(end) for row in others for end in row.difference[3:5] if math.isfinite(end)]
    scale = min(WIDEST_BAR, max(1.5, *(100 * end for end in ends), 1.5))
    known, config = not math.isnan(one.target), one.place.config_of(REFERENCE)
    curves, shown = draw_beside(one, name)
    told = f"Of {how_many(len(others), 'method')}: {title} is {counts}." if others else "No other method was run here."
    return {
        "name": one.place.name,
        "said": f"Task {config.task}, delay law {config.delay}. {told}",
        "scale": f"{scale:.2g}",
        "target": f"{TARGET_SHARE:.0%} of FedBuff's accuracy with the same seed, on average {one.target:.1%}" if known
        else "no target, as FedBuff was not run",
        "rows": [_row(outcome, one, row, scale) for row in one.rows],
        "notes": _notes(one),
        "curves": _as_source(curves),
        "curves_said": _curves_said(title, shown),
        "curves_alt": f"Test accuracy of {', '.join(map(plots.title, shown))}, over client updates and virtual time.",
        "tried": _tried(outcome, one.place),
    }  # fmt: skip


def _curves_said(title: str, shown: Sequence[str]) -> str:
    if len(shown) == 1:
        return ""
    return (
        f"The curves show {title} (the thick line), the {NEAREST} methods whose accuracy is nearest to its own, and "
        "FedBuff. Lines are means over seeds, and bands go from the lowest to the highest seed. The left panel is over "
        f"client updates, and the right one over virtual time, until a fifth after {title} ends."
    )


def _notes(one: Standings) -> str:
    if math.isnan(one.target):
        return ""
    never = [plots.title(row.method) for row in one.rows if row.times is not None and row.times.never]
    if not never:
        return "All runs reached the target."
    return (
        f"Not at the target with every seed: {', '.join(never)}. Such a run is censored at its end. A ratio of times "
        "with ≥ or ≤ has no bound on the other side."
    )


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


def _cost_shown(outcome: Outcome, row: Costs) -> dict[str, Any]:
    logits = f" + {row.logits_kilobytes:,.0f} for each sample's logits" if row.logits_kilobytes else ""
    shown = {"title": plots.title(row.method), "newcomer": row.method == outcome.newcomer.entry.name}
    return {**shown, **row._asdict(), "kilobytes": f"{row.kilobytes:,.0f}{logits}"}


def _tried(outcome: Outcome, place: Place) -> list[dict[str, Any]]:
    entry, rows = outcome.newcomer.entry.name, []
    for method in (entry, *place.searches):
        found = tried(place.study, method, place.column, outcome.newcomer.folder if method == entry else None)
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


def _tried_said(outcome: Outcome) -> str:
    seeds = ", ".join(map(str, outcome.found[0].place.searches[REFERENCE].seeds))
    shown = {short: outcome.in_column(name) for name, (_, short) in HEADINGS.items()}
    tries = " and ".join(f"{found[0].place.tries} {short}" for short, found in shown.items() if found)
    said = (
        f"Every method may try the same number of combinations in a place, {tries}, with the seeds {seeds}, which no "
        "comparison uses. If the best lies on an edge, its grid grows, at most twice. The column on an edge lists "
        "options whose chosen value is the smallest or largest tried, so that a better one may lie beyond."
    )
    if outcome.in_column("printed"):
        said += " At a fixed server rate, clients' rates are tried with server settings that a paper prints, or "
        said += f"with rate 1. {outcome.title} has its defaults."
    return said


def _changes(outcome: Outcome) -> list[str]:
    left = [row for one in outcome.found for row in one.rows if row.verdict == OPEN]
    soon = [row.to_decide for row in left if row.to_decide]
    seeds = f"More seeds: {how_many(len(left), 'comparison')} {'is' if len(left) == 1 else 'are'} open. "
    if soon:
        seeds += f"If means and deviations stayed the same, up to {max(soon)} seeds would decide {len(soon)} of them."
    lines = [
        seeds,
        "Other places: a place is one workload and one law. A verdict holds for it and for no other.",
        f"Entering again: if you change {outcome.title} after a look at this page and enter it again, you look at the "
        "same seeds again. The next page counts the looks. After many looks, use seeds and places of your own.",
    ]
    whole = "The whole league: without --quick there are all places and both columns, and the grid may grow."
    return [*lines, whole] if outcome.quick else lines


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

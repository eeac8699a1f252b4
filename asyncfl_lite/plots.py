"""All figures of the project, in one style; a method has the same colour everywhere.

A function with the argument ``axes`` draws on these axes, or on new ones, and returns them. ``updates`` is a result's
table of updates, and ``unit`` the meaning of one unit of virtual time; by default, the unit that the results state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import FuncNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.base.errors import ConfigError, shown
from asyncfl_lite.base.style import ACCENT, NEUTRAL, VERDICT_COLOURS, use_style

NO_METHODS = {"oort": ("Oort", "#1b1b1b"), "alone": ("alone", "#9ca3af"), "central": ("central", "#57534e")}
"""Titles and colours of curves that are not methods: FedAvg with clients chosen by Oort, and training without
federation."""

OTHERS = (NEUTRAL, "#0f766e", "#9333ea", "#b45309", "#be123c", "#1e3a8a")
"""Colours of curves that are not named after a method, in the order of the curves."""

UNFINISHED: dict[str, Any] = {"facecolor": "#e5e7eb", "edgecolor": NEUTRAL, "hatch": "////", "linewidth": 0.4}
"""Style, in a timeline, of a job that does not arrive within the run and so has no staleness."""


def colour(method: str) -> str:
    """Return the colour of a method, such as ``fedecho``; a variant, such as ``fedecho-natural``, has the same one."""
    name = method.split("-")[0].lower()
    return ALGORITHMS.get(name).about.colour if name in ALGORITHMS else NO_METHODS.get(name, ("", NEUTRAL))[1]


def shade(method: str, number: int) -> str | tuple[float, float, float]:
    """Return a method's own colour for variant 0, and shades of it for its other variants."""
    mixed_in = (None, "black", "#9ca3af", "#fbbf24")[number % 4]
    return colour(method) if mixed_in is None else sns.blend_palette([colour(method), mixed_in], 3)[1]


def title(method: str) -> str:
    """Return a method's name as papers write it, with a variant in brackets: ``FedEcho (natural)``."""
    name, _, variant = method.partition("-")
    shown = ALGORITHMS.get(name).about.title if name in ALGORITHMS else NO_METHODS.get(name, (name, ""))[0]
    return f"{shown} ({variant})" if variant else shown


def time_label(unit: str = "") -> str:
    """Return the label of an axis of virtual time; ``unit`` is the delay law's unit."""
    if unit[:1].isdigit():
        unit = f"units of {unit}"
    return f"virtual time ({unit})" if unit and unit != "time units" else "virtual time"


def staleness_scale(most: int) -> ScalarMappable:
    """Return the colour scale of staleness, from yellow for fresh updates to dark for staleness ``most``.

    It is logarithmic in 1 + staleness.
    """
    return ScalarMappable(FuncNorm((np.log1p, np.expm1), 0, max(1, most)), "viridis_r")


def staleness_bar(scale: ScalarMappable, axes: Axes | Sequence[Axes]) -> None:
    """Draw the colour bar of staleness beside one timeline or several, with ticks at whole versions."""
    most = int(scale.get_clim()[1])
    ticks = sorted({0, 1, *(t for t in (3, 10, 30, 100, 300) if t < most), most})
    first = axes if isinstance(axes, Axes) else axes[0]
    first.figure.colorbar(scale, ax=axes, label="staleness on arrival (versions)", ticks=ticks, format="%d")


def _axes(axes: Axes | None) -> Axes:
    if axes is not None:
        return axes
    use_style()
    return plt.subplots(layout="constrained")[1]


class Curved(Protocol):
    """A result that can be plotted, like :class:`~asyncfl_lite.runs.results.Result`."""

    config: Any
    curve: pd.DataFrame
    time_unit: str


Curves = Mapping[str, Iterable[pd.DataFrame | Curved] | pd.DataFrame | Curved] | Iterable[Curved]
"""Results of several runs, which plots group by method; or name -> its results or curve tables, one per seed."""


def _sorted(given: Curves, over: str, unit: str) -> tuple[dict[str, list[pd.DataFrame]], str]:
    if isinstance(given, Mapping):
        runs = {name: [own] if hasattr(own, "columns") or hasattr(own, "curve") else own for name, own in given.items()}
    else:
        runs = {}
        results: Iterable[Any] = given if isinstance(given, Iterable) and not hasattr(given, "curve") else [given]
        for result in results:
            if not hasattr(result, "curve"):
                raise ConfigError(f"curves: must be results, or names with results or tables, got {shown(result)}")
            runs.setdefault(result.config.algorithm, []).append(result)
    runs = {str(name): list(own) if isinstance(own, Iterable) else [own] for name, own in runs.items()}
    for name, own in runs.items():
        odd = [run for run in own if not hasattr(run, "curve") and not isinstance(run, pd.DataFrame)]
        if odd or not own:
            raise ConfigError(
                f"curves: {name!r} must have at least one result or table, got {shown((odd or [own])[0])}"
            )
    if not runs:
        raise ConfigError("curves: must be at least one result, got none")
    units = sorted({run.time_unit for own in runs.values() for run in own if hasattr(run, "curve")})
    if over == "time" and len(units) > 1 and not unit:
        raise ConfigError(f"curves: their times are in different units ({', '.join(units)}); draw over='version'")
    tables = {name: [run.curve if hasattr(run, "curve") else run for run in own] for name, own in runs.items()}
    return tables, unit or "".join(units[:1])


def plot_curves(
    curves: Curves,
    *,
    over: str = "time",
    unit: str = "",
    value: str = "accuracy",
    shades: bool = False,
    axes: Axes | None = None,
) -> Axes:
    """Draw each method's accuracy curve, averaged over seeds, with a band from the seeds' lowest to highest value.

    A value is drawn as constant from its evaluation to the next.

    Args:
        curves: results of several runs, which are grouped by method; or a mapping from a method, a variant (such as
            ``fedecho-natural``) or any other name to results or curve tables, one for each seed.
        over: ``time``, ``version`` or ``updates``.
        value: ``accuracy``, ``loss``, or another column of all curves.
        shades: give a method's variants shades of its colour, in addition to line styles.

    Raises:
        ConfigError: if the curves are anything else, lack a column, or have times in different units.

    Example: two methods on the same clients.

    >>> from asyncfl_lite import Config, run_many
    >>> from asyncfl_lite.plots import plot_curves
    >>> configs = [Config(task="digits", algorithm=name, rounds=2) for name in ("fedbuff", "fedasync")]
    >>> axes = plot_curves(run_many(configs))
    >>> [line.get_label() for line in axes.get_lines()], axes.get_xlabel()
    (['FedBuff', 'FedAsync'], 'virtual time (units of 10 s)')
    """
    curves, unit = _sorted(curves, over, unit)
    axes = _axes(axes)
    labels = {"time": time_label(unit), "version": "server version", "updates": "client updates"}
    for number, (method, tables) in enumerate(curves.items()):
        for column in (over, value):
            if any(column not in table for table in tables):
                raise ConfigError(
                    f"curves: those of {method!r} have no column {column!r}; they have "
                    + ", ".join(map(str, tables[0].columns))
                )
        grid = np.linspace(0, min(table[over].iloc[-1] for table in tables), 400)
        seeds = np.array(
            [table[value].to_numpy()[np.searchsorted(table[over], grid, side="right") - 1] for table in tables]
        )
        variant = _variant(method, curves)
        style: dict[str, Any] = {"color": colour(method), "linestyle": ["-", "--", ":", "-."][variant]}
        if shades:
            style["color"] = shade(method, variant)
        if method.split("-")[0].lower() not in {*ALGORITHMS, *NO_METHODS}:
            families = dict.fromkeys(name.split("-")[0] for name in curves if colour(name) == NEUTRAL)
            style["color"] = OTHERS[list(families).index(method.split("-")[0]) % len(OTHERS)]
        axes.plot(grid, seeds.mean(0), label=title(method), linewidth=2, zorder=3 + number, **style)
        axes.fill_between(grid, seeds.min(0), seeds.max(0), color=style["color"], alpha=0.15, linewidth=0)
    axes.set(xlabel=labels[over], ylabel=f"test {value}", xlim=(0, None))
    axes.legend()
    return axes


def _variant(method: str, curves: Iterable[str]) -> int:
    family = [name for name in curves if name.split("-")[0] == method.split("-")[0]]
    return family.index(method) % 4


def plot_differences(found: pd.DataFrame, axes: Axes | None = None) -> Axes:
    """Draw differences between methods, in points, as coloured squares: one row per method, one column per setting.

    Args:
        found: a table with one row per setting and method, and the columns ``place`` (the setting), ``other`` (the
            method), ``mean`` (in points) and ``verdict``, as :func:`asyncfl_course.differences` returns it. Without
            verdicts, as for a paper's own numbers, squares stay white.
    """
    axes = _axes(axes)
    places, others = list(dict.fromkeys(found["place"])), list(dict.fromkeys(found["other"]))
    for row in found.itertuples():
        at = places.index(row.place), others.index(row.other)
        fill = VERDICT_COLOURS.get(getattr(row, "verdict", ""), "white")
        axes.add_patch(Rectangle((at[0] - 0.5, at[1] - 0.5), 1, 1, facecolor=fill, edgecolor=NEUTRAL, linewidth=0.4))
        number = "–" if np.isnan(row.mean) else f"{row.mean:+.1f}".replace("-", "−")
        axes.text(*at, number, ha="center", va="center", color="black", fontsize="small")
    axes.set(xlim=(-0.5, len(places) - 0.5), ylim=(len(others) - 0.5, -0.5))
    axes.set_xticks(range(len(places)), places)
    axes.set_yticks(range(len(others)), map(title, others))
    axes.tick_params(length=0)
    axes.grid(False)
    if "verdict" in found:
        shown = [verdict for verdict in VERDICT_COLOURS if verdict in set(found["verdict"])]
        patches = [Patch(facecolor=VERDICT_COLOURS[verdict], edgecolor=NEUTRAL, label=verdict) for verdict in shown]
        axes.legend(handles=patches, loc="upper left", bbox_to_anchor=(1, 1))
    return axes


def plot_gantt(
    updates: pd.DataFrame,
    *,
    until: float,
    in_flight: pd.DataFrame | None = None,
    unit: str = "",
    axes: Axes | None = None,
) -> Axes:
    """Draw when each client trains, with one bar per job, coloured by the staleness of its update on arrival.

    Args:
        until: last virtual time to draw.
        in_flight: a table of the jobs that did not arrive, which are drawn with hatching; its columns are ``client``,
            ``dispatched_at`` and, if any jobs were called off, ``called_off_at``.
    """
    axes = _axes(axes)
    shown = updates[updates["dispatched_at"] < until]
    scale = staleness_scale(int(shown["staleness"].max()) if len(shown) else 1)
    axes.barh(
        shown["client"],
        np.minimum(shown["arrived_at"], until) - shown["dispatched_at"],
        left=shown["dispatched_at"],
        height=0.8,
        color=scale.to_rgba(shown["staleness"]),
        edgecolor="white",
        linewidth=0.6,
    )
    if in_flight is not None:
        still = in_flight[in_flight["dispatched_at"] < until]
        ended = still.get("called_off_at", pd.Series(until, still.index)).fillna(until).clip(upper=until)
        begun = still["dispatched_at"]
        axes.barh(still["client"], ended - begun, left=begun, height=0.8, **UNFINISHED)
    staleness_bar(scale, axes)
    axes.set(xlabel=time_label(unit), ylabel="client", xlim=(0, until))
    axes.grid(False)
    return axes


def plot_staleness(
    updates: pd.DataFrame,
    *,
    expected: float | None = None,
    by: pd.Series | None = None,
    width: int | None = None,
    axes: Axes | None = None,
) -> Axes:
    """Draw a histogram of staleness on arrival, with its mean and, if given, the mean that theory predicts.

    Args:
        expected: the mean that theory predicts.
        by: a group for each row of ``updates``, such as its client's speed; each group gets a colour.
        width: number of versions per bar; by default, the smallest that gives at most 61 bars. Set it to compare
            figures.
    """
    axes = _axes(axes)
    staleness = updates["staleness"]
    most = int(staleness.max()) if len(staleness) else 0
    width = width or most // 61 + 1  # a whole number, so that every bar covers the same number of versions
    bins = (np.arange(0, most + width + 1, width) - 0.5).tolist()
    if by is None:
        axes.hist(staleness, bins=bins, color=NEUTRAL, alpha=0.75)
    else:
        groups = staleness.groupby(by).mean().sort_values().index
        for group, shade in zip(groups, sns.color_palette("viridis_r", len(groups)), strict=True):
            axes.hist(staleness[by == group], bins=bins, color=shade, alpha=0.85, label=str(group))
    behind = 0.9  # draw the lines behind the bars, which they would otherwise cover
    axes.axvline(staleness.mean(), color=ACCENT, linewidth=2, zorder=behind, label=f"mean {staleness.mean():.1f}")
    if expected is not None:
        axes.axvline(expected, color="black", linestyle="--", zorder=behind, label=f"predicted {expected:.1f}")
    axes.set(xlabel="staleness on arrival (versions)", ylabel="updates", yscale="log")
    axes.legend()
    return axes


def plot_run(algorithm: str, task: str, curve: pd.DataFrame, updates: pd.DataFrame, unit: str = "") -> Figure:
    """Draw a run's accuracy over virtual time and the staleness of its updates; names are for the title."""
    use_style()
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    plot_curves({algorithm: [curve]}, unit=unit, axes=left)
    if len(updates):
        plot_staleness(updates, axes=right)
    left.set_title(f"{title(algorithm)} on {task}")
    right.set_title("staleness")
    plt.close(figure)  # otherwise a notebook would show the returned figure twice
    return figure

"""One figure of all evidence: each paper's printed lead over FedBuff, and the leads that we found, by kind of data."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from asyncfl_lite import plots
from asyncfl_reproduction.grid.cells import SERVER_RATE, TWIN
from asyncfl_reproduction.grid.record import RUNS
from asyncfl_reproduction.home import RESULTS
from asyncfl_reproduction.parquet import read_table
from asyncfl_reproduction.statistics import contrast
from asyncfl_reproduction.tuning.outcomes import METRIC

MARKS = {"stand-in": "o", "real data": "s", "the paper's own cell": "^"}
"""Kind of evidence -> its mark."""
STAND_IN, REAL, EXACT = MARKS
TIERS = {STAND_IN: "laptop", REAL: "real", EXACT: "paper"}
"""Kind of evidence -> the tier in which it is recorded."""
RATES = ("fedbuff", *(f"fedbuff-rate{rate}" for rate in (0.3, 0.1, 0.03, 0.01)))
"""FedBuff at the server rates 1, 0.3, 0.1, 0.03 and 0.01, where a paper's own cell was run."""
WIDEST = 30.0
"""Points at which the axis ends; a mark that lies farther out is drawn there, with its number."""


class Lead(NamedTuple):
    """A paper's printed lead over FedBuff, and the two cells that measure it here.

    Attributes:
        title: the setting's name.
        printed: the paper's lead in points; None if it prints no number.
        kind: kind of evidence, one of :data:`MARKS`.
        ours: the method's cell.
        fedbuff: FedBuff's cell.
    """

    title: str
    printed: float | None
    kind: str
    ours: str
    fedbuff: str

    @property
    def no_rate(self) -> bool:
        """Whether the method's server has no rate, so that its tuned cell stands for it."""
        return self.ours.rpartition("/")[2] in ("kuiper", "fedadt")


def _at(place: str, method: str) -> tuple[str, str]:
    return f"{place}/{method}", f"{place}/fedbuff"


LEADS = (
    Lead("FedEcho, large delay", 25.0, STAND_IN, *_at("fedecho/table2/large-dir0.1", "fedecho-natural")),
    Lead("FedEcho, large delay", 25.0, REAL, *_at("fedecho/photographs/large-dir0.1", "fedecho-natural")),
    Lead("FedEcho, Fashion-MNIST", None, REAL, *_at("fedecho/table2/large-dir0.1", "fedecho-natural")),
    Lead("FedRevive, images", 16.5, STAND_IN, *_at("fedrevive/table1/cifar10", "fedrevive")),
    Lead("KUIPER, 12 devices, bias 1", 12.0, STAND_IN, *_at("kuiper/fig3b/bias1", "kuiper")),
    Lead("FedRevive, 20 Newsgroups", -0.4, STAND_IN, *_at("fedrevive/table1/newsgroups", "fedrevive")),
    Lead("FedRevive, 20 Newsgroups", -0.4, REAL, *_at("fedrevive/table1/newsgroups", "fedrevive")),
    Lead("KUIPER, 20 Newsgroups, 50 clients", None, STAND_IN, *_at("kuiper/fig5/topics-clients50", "kuiper")),
    Lead("KUIPER, 20 Newsgroups, 50 clients", None, REAL, *_at("kuiper/fig5/topics-clients50", "kuiper")),
    Lead("KUIPER, MNIST, 1,000 clients", None, EXACT, *_at("kuiper/fig5/mnist-clients1000", "kuiper")),
    Lead("KUIPER, Fashion-MNIST, 1,000 clients", None, EXACT, *_at("kuiper/fig5/fmnist-clients1000", "kuiper")),
    Lead("FedADT, MNIST, α = 0.1", 1.3, STAND_IN, *_at("fedadt/table1/mnist-dir0.1", "fedadt")),
    Lead("FedADT, MNIST, α = 0.1", 1.3, REAL, *_at("fedadt/table1/mnist-dir0.1", "fedadt")),
)
"""The papers' leads over FedBuff that are recorded somewhere."""


def _by_seed(kind: str, cells: list[str], folder: Path) -> list[pd.Series] | None:
    """Return several cells' accuracies by seed, or None if not all are recorded."""
    path = folder / TIERS[kind] / cells[0].split("/")[0] / RUNS
    runs = read_table(path).set_index("cell") if path.exists() else pd.DataFrame()
    if not set(cells) <= set(runs.index):
        return None
    return [runs.loc[[cell]].set_index("seed")[METRIC] for cell in cells]


def _differences(lead: Lead, tuned: bool, folder: Path) -> pd.Series | None:
    """Return the method's accuracy minus FedBuff's, seed by seed; None if it is not recorded.

    If it is not tuned, FedBuff is plain, and the method has the same server rate, or its tuned cell without one. In a
    paper's own cell, FedBuff's tuned rate is the one in :data:`RATES` that is best with the first seed.
    """
    if lead.kind != EXACT:
        own = [lead.ours] if tuned else [lead.ours + SERVER_RATE, *[lead.ours] * lead.no_rate]
        others = lead.fedbuff + TWIN * (not tuned)
        found = next((one for cell in own if (one := _by_seed(lead.kind, [cell, others], folder))), None)
        return None if found is None else (found[0] - found[1]).dropna()
    place = lead.fedbuff.rpartition("/")[0]
    names = RATES if tuned else RATES[:1]
    found = _by_seed(lead.kind, [lead.ours, *(f"{place}/{name}" for name in names)], folder)
    if found is None:
        return None
    best = max(found[1:], key=lambda of: of.loc[of.index.min()])
    return (found[0] - best).dropna()


def together(folder: Path | None = None) -> pd.DataFrame:
    """Return every lead that is recorded, beside plain FedBuff at a server rate of 1 and tuned.

    Returns:
        Up to two rows for each lead, one beside plain FedBuff and one tuned. The columns are the fields of
        :class:`Lead`, ``tuned``, ``method``, ``mean``, ``low`` and ``high`` (in points), and ``seeds``.
    """
    rows = []
    for lead in LEADS:
        for tuned in (False, True):
            gap = _differences(lead, tuned, RESULTS if folder is None else folder)
            if gap is not None:
                found = contrast(gap.to_numpy(), lead.title)
                numbers = {name: 100 * getattr(found, name) for name in ("mean", "low", "high")}
                method = lead.ours.rpartition("/")[2]
                rows.append({**lead._asdict(), "tuned": tuned, "method": method, **numbers, "seeds": len(gap)})
    return pd.DataFrame(rows)


def draw_together(table: pd.DataFrame) -> Figure:
    """Draw each lead: a bar for the paper's, a hollow mark for ours beside plain FedBuff, a filled one when tuned."""
    titles = list(dict.fromkeys(table["title"]))
    figure = Figure(figsize=(8.4, 0.62 * len(titles) + 1.3), layout="constrained")
    axis = figure.subplots()
    axis.axvline(0, color="0.3", linewidth=1)
    axis.axvspan(-1, 1, color="0.92", zorder=0)
    axis.grid(axis="y", visible=False)
    for index, title in enumerate(reversed(titles)):
        rows = table[table["title"] == title]
        for number, row in enumerate(rows.itertuples()):
            y = index + 0.24 - 0.48 * number / max(1, len(rows) - 1)
            colour = plots.colour(row.method)
            face = colour if row.tuned else "white"
            if row.mean > WIDEST:
                axis.plot(WIDEST, y, MARKS[row.kind], color=colour, markerfacecolor=face, markersize=7)
                axis.text(WIDEST - 0.8, y, f"{row.mean:+.0f} →", color=colour, ha="right", va="center", fontsize=8)
                continue
            axis.plot([row.low, row.high], [y, y], color=colour, linewidth=2, solid_capstyle="butt")
            axis.plot(row.mean, y, MARKS[row.kind], color=colour, markerfacecolor=face, markersize=7)
        printed = rows["printed"].iloc[0]
        if pd.notna(printed):
            axis.plot([printed, printed], [index - 0.32, index + 0.32], color="0.2", linewidth=3, solid_capstyle="butt")
    axis.set_yticks(range(len(titles)), list(reversed(titles)))
    axis.set_ylim(-0.6, len(titles) - 0.4)
    axis.set_xlim(max(-WIDEST, table["low"].min() - 2), WIDEST + 1)
    axis.set_xlabel("points of accuracy above FedBuff; grey: within a point")
    marks = [axis.plot([], [], color="0.2", linewidth=3, label="printed in the paper")[0]]
    for kind in dict.fromkeys(table["kind"]):
        for face, how in (
            ("white", "plain FedBuff"),
            ("0.35", f"best of {len(RATES)} rates" if kind == EXACT else "tuned"),
        ):
            marks += axis.plot(
                [], [], MARKS[kind], color="0.35", markerfacecolor=face, linestyle="", label=f"{kind}, {how}"
            )
    figure.legend(handles=marks, loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    return figure

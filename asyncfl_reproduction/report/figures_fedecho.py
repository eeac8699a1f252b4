"""Figures of FedEcho's runs and delays, which the paper prints as tables."""

from __future__ import annotations

from matplotlib.figure import Figure

from asyncfl_lite import plots
from asyncfl_reproduction.claims.fedecho import BASELINES, DEFAULT, SETS, TABLE2, TABLE3, WEIGHTS
from asyncfl_reproduction.measure.fedecho import planned
from asyncfl_reproduction.report.figures import PaperFigure, draw_curves, draw_lines, finish, panels
from asyncfl_reproduction.report.recorded import Recorded

METHODS = (*BASELINES, *SETS)


def _column(column: str) -> str:
    delay, alpha = column.split("/")[-1].split("-dir")
    return f"{delay} delay, α = {alpha}"


def _columns(recorded: Recorded, columns: tuple[str, ...]) -> Figure | None:
    shown = {_column(column): {method: f"{column}/{method}" for method in METHODS} for column in columns}
    return draw_curves(recorded, shown, over="version")


def over_time(recorded: Recorded) -> Figure | None:
    """Draw accuracy over time at large delay and α = 0.1, with two methods that are in no table of the paper."""
    cells = {method: f"{TABLE2[0]}/{method}" for method in ("fedbuff", "fedecho-cross")}
    cells |= {method: f"fedecho/beside/large-dir0.1/{method}" for method in ("fedavg", "fedasync")}
    return draw_curves(recorded, {"large delay, α = 0.1": cells}, unit="10 s")


def delays(recorded: Recorded) -> Figure:
    """Draw the staleness of updates in 500 simulated versions, by runtime category."""
    figure, axes = panels(2, height=3.4)
    for axis, delay in zip(axes, ("large", "mild"), strict=True):
        plan = planned(f"fedecho_{delay}", seed=0)
        categories = plan.updates["client"].map(plan.clients["category"])
        plots.plot_staleness(plan.updates, by=categories, expected=5.0, axes=axis)
        axis.set_title(f"{delay} delay")
    axes[1].set_ylabel("")
    return finish(figure, {})


def samples(recorded: Recorded) -> Figure | None:
    """Draw FedEcho's Table 6: accuracy by number of distillation samples, for the numbers used in this tier."""
    small = {100: "samples-100", 250: "samples-250", 1000: "samples-1000"}
    full = {500: "paper-500", 1000: "paper-1000", 5000: "paper-5000"}
    ran = full if any(f"fedecho/table6/{name}" in recorded.cells for name in full.values()) else small
    cells = {count: f"fedecho/table6/{name}" for count, name in ran.items()}
    cells[2000 if ran is full else 500] = DEFAULT
    return draw_lines(recorded, {"": {"fedecho": dict(sorted(cells.items()))}}, xlabel="distillation samples", log=True)


def weights(recorded: Recorded) -> Figure | None:
    """Draw curves of the runs in FedEcho's Table 7 (mixing weights) and Table 11 (clipping)."""
    names = ("CE only", "KL only", "α = 0.5", "dynamic α")
    mixing = {f"fedecho-{name}": cell for name, cell in zip(names, WEIGHTS, strict=True)}
    clips = {"fedecho-clip 5": DEFAULT}
    clips |= {
        f"fedecho-{name}": f"fedecho/table11/{cell}" for name, cell in (("clip 1", "clip-1"), ("no clip", "no-clip"))
    }
    shown = {"Table 7: mixing weight": mixing, "Table 11: clipping": clips}
    return draw_curves(recorded, shown, over="version")


FIGURES = [
    PaperFigure("FedEcho", "Table 1", "Staleness on arrival over the paper's 500 rounds, simulated without training, "
                "by runtime category, on a logarithmic axis. The dashed line is the mean that theory predicts in the "
                "long run, with 25 clients in flight and 5 updates per version. Look at the few updates of long "
                "clients.", delays),
    PaperFigure("FedEcho", "Table 2", "Table 2's runs over server versions: the mean over seeds, with a band from "
                "the lowest to the highest seed.", lambda recorded: _columns(recorded, TABLE2)),
    PaperFigure("FedEcho", "Table 2, time", "The same runs over virtual time, in which a synchronous round waits for "
                "its slowest client. FedAvg and FedAsync are in no table of the paper.", over_time),
    PaperFigure("FedEcho", "Table 3", "Table 3's runs over server versions.",
                lambda recorded: _columns(recorded, TABLE3)),
    PaperFigure("FedEcho", "Table 6", "Accuracy by number of distillation samples; at smoke and laptop scale there "
                "are a quarter to a fifth of the paper's.", samples),
    PaperFigure("FedEcho", "Tables 7 and 11", "The runs with other mixing weights and other clipping thresholds.",
                weights),
]  # fmt: skip

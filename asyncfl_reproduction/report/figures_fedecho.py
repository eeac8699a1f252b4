"""Figures of FedEcho's runs and delays, which the paper prints as tables."""

from __future__ import annotations

from functools import partial

from matplotlib.figure import Figure

from asyncfl_lite import plots
from asyncfl_reproduction.claims.fedecho import BASELINES, DEFAULT, SETS, TABLE2, TABLE3, WEIGHTS
from asyncfl_reproduction.measure.fedecho import planned
from asyncfl_reproduction.report.figures import PaperFigure, draw_curves, draw_lines, finish, panels
from asyncfl_reproduction.report.recorded import Recorded


def _columns(columns: tuple[str, ...]) -> dict[str, dict[str, str]]:
    titles = [column.split("/")[-1].replace("-dir", " delay, α = ") for column in columns]
    methods = [{method: f"{column}/{method}" for method in (*BASELINES, *SETS)} for column in columns]
    return dict(zip(titles, methods, strict=True))


def _delays(recorded: Recorded) -> Figure:
    figure, axes = panels(2, height=3.4)
    for axis, delay in zip(axes, ("large", "mild"), strict=True):
        plan = planned(f"fedecho_{delay}", seed=0)
        categories = plan.updates["client"].map(plan.clients["category"])
        plots.plot_staleness(plan.updates, by=categories, expected=5.0, axes=axis)
        axis.set_title(f"{delay} delay")
    axes[1].set_ylabel("")
    return finish(figure, {})


def _samples(recorded: Recorded) -> Figure | None:
    """Draw Table 6 for the numbers of samples that are used in this tier."""
    small = {100: "samples-100", 250: "samples-250", 1000: "samples-1000"}
    full = {500: "paper-500", 1000: "paper-1000", 5000: "paper-5000"}
    ran = full if any(f"fedecho/table6/{name}" in recorded.cells for name in full.values()) else small
    cells = {count: f"fedecho/table6/{name}" for count, name in ran.items()}
    cells[2000 if ran is full else 500] = DEFAULT
    return draw_lines(recorded, {"": {"fedecho": cells}}, xlabel="distillation samples", log=True)


FIGURES = {
    "Table 1": PaperFigure(
        "Staleness on arrival over the paper's 500 rounds, simulated without training, by runtime category, on a "
        "logarithmic axis. The dashed line is the mean that theory predicts in the long run, with 25 clients in "
        "flight and 5 updates per version. Look at the few updates of long clients.",
        _delays,
    ),
    "Table 2": PaperFigure(
        "Table 2's runs over server versions: the mean over seeds, with a band from the lowest to the highest seed.",
        partial(draw_curves, shown=_columns(TABLE2), over="version"),
    ),
    "Table 2, time": PaperFigure(
        "The same runs over virtual time, in which a synchronous round waits for its slowest client. FedAvg and "
        "FedAsync are in no table of the paper.",
        partial(draw_curves, unit="10 s", shown={"large delay, α = 0.1": {
            "fedbuff": f"{TABLE2[0]}/fedbuff",
            "fedecho-cross": f"{TABLE2[0]}/fedecho-cross",
            "fedavg": "fedecho/beside/large-dir0.1/fedavg",
            "fedasync": "fedecho/beside/large-dir0.1/fedasync",
        }}),
    ),
    "Table 3": PaperFigure(
        "Table 3's runs over server versions.", partial(draw_curves, shown=_columns(TABLE3), over="version")
    ),
    "Table 6": PaperFigure(
        "Accuracy by number of distillation samples; at smoke and laptop scale there are a quarter to a fifth of the "
        "paper's.",
        _samples,
    ),
    "Tables 7 and 11": PaperFigure(
        "The runs with other mixing weights and other clipping thresholds.",
        partial(draw_curves, over="version", shown={
            "Table 7: mixing weight": dict(zip(
                ("fedecho-CE only", "fedecho-KL only", "fedecho-α = 0.5", "fedecho-dynamic α"), WEIGHTS, strict=True
            )),
            "Table 11: clipping": {
                "fedecho-clip 5": DEFAULT,
                "fedecho-clip 1": "fedecho/table11/clip-1",
                "fedecho-no clip": "fedecho/table11/no-clip",
            },
        }),
    ),
}  # fmt: skip

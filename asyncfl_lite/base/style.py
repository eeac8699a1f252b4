"""How all figures of the project look."""

from __future__ import annotations

import matplotlib.pyplot as plt
import seaborn as sns

NEUTRAL = "#6b7280"
"""Of what belongs to no method."""
ACCENT = "#c2410c"
"""Of what a reader should look at first, such as a mean or a version."""
VERDICT_COLOURS = {
    "holds": "#c7ecd9",
    "holds where run": "#e3f5ec",
    "answered": "#c7ecd9",
    "smaller than claimed": "#e7f0c3",
    "level": "#c3d9f7",
    "partly level": "#e0ebfb",
    "reversed": "#f9d0cf",
    "undecided": "#fdf0bf",
    "fails": "#f6bdbb",
    "did not train": "#e3d5f3",
    "borrowed": "#e8dccb",
    "not run": "#eceef1",
}
"""Background by verdict, or by the state of what has none."""


def use_style() -> None:
    """Set matplotlib up as all figures of the project want it."""
    sns.set_theme(style="ticks", context="notebook", palette="colorblind")
    plt.rcParams.update(
        {
            "figure.figsize": (7.0, 4.0),
            "figure.dpi": 90,
            "savefig.dpi": 120,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.alpha": 0.25,
            "legend.frameon": False,
            "font.size": 10,
            "axes.titlesize": 11,
            "axes.titlelocation": "left",
        }
    )

"""The style of all figures of the project."""

from __future__ import annotations

import matplotlib.pyplot as plt
import seaborn as sns

NEUTRAL = "#6b7280"
"""Colour of things that belong to no method."""
ACCENT = "#c2410c"
"""Colour of the thing that a reader should see first, such as a mean or a version."""
VERDICT_COLOURS = {
    "holds": "#c7ecd9",
    "answered": "#c7ecd9",
    "equivalent": "#c3d9f7",
    "reversed": "#f9d0cf",
    "open": "#fdf0bf",
    "fails": "#f6bdbb",
    "not run": "#eceef1",
    "above": "#c7ecd9",
    "above by less than a point": "#e6f5ed",
    "below": "#f9d0cf",
    "below by less than a point": "#fce9e8",
}
"""Background colour by verdict, by where the first of two methods lies, or by state where there is neither."""


def use_style() -> None:
    """Set matplotlib's options for all figures of the project."""
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

"""How all figures of the project look."""

from __future__ import annotations

import matplotlib.pyplot as plt
import seaborn as sns

NEUTRAL = "#6b7280"
"""Of what belongs to no method."""
ACCENT = "#c2410c"
"""Of what a reader should look at first, such as a mean or a version."""


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

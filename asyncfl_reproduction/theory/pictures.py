"""Figures for the notebook on theory."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from asyncfl_lite.plots import ACCENT, NEUTRAL, colour, use_style
from asyncfl_reproduction.theory.kuiper import corollary_1, exact_mean


def bound_figure(step: float = 0.1, x0: float = 0.0) -> Figure:
    """Draw T8: the mean squared gradient over T versions, KUIPER's printed bound, and the repaired one.

    Two clients with optima 1 and -1, one drawn at random for each version, η_g = 1, no noise. The step is η_l = η_g
    η_l, in (0, 1).
    """
    lengths = np.unique(np.geomspace(1, 1e6, 2001).round())
    largest = (1 + max(1.0, abs(x0))) ** 2  # G on the region that the model can reach
    exact = [exact_mean(step, t, x0, 1.0) for t in lengths]
    printed = np.array([corollary_1(x0**2 / 2, 1.0, step, t, 1.0, 1.0, largest) for t in lengths])
    use_style()
    figure, axes = plt.subplots(figsize=(9.5, 3.6), layout="constrained")
    axes.loglog(lengths, exact, color=colour("fedbuff"), linewidth=2, label="exact mean of squared gradient")
    axes.loglog(lengths, printed, "--", color=ACCENT, label="bound of Eq. 9")
    axes.loglog(lengths, printed + step * largest, ":", color=NEUTRAL, label="repaired bound")
    broken = lengths[exact > printed]
    what = f"broken from T = {broken[0]:,.0f} on" if len(broken) else "kept up to a million versions"
    axes.set(xlabel="versions T", ylabel="squared gradient", title=f"η_l = {step:g}, from {x0:g}: Eq. 9 is {what}")
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    plt.close(figure)  # a notebook shows what the call returns, once
    return figure

"""Explorer that plots KUIPER's printed bound and the exact mean, with controls."""

from __future__ import annotations

import numpy as np

from asyncfl_course.explore.controls import Explorer
from asyncfl_course.records import bound_figure
from asyncfl_lite.base.errors import needs

with needs("notebooks", "controls"):
    import ipywidgets as widgets

LARGEST_STEP = 0.95


def explore_bound() -> Explorer:
    """Return :func:`bound_figure` with controls for the learning rate and the starting point."""
    step = widgets.FloatLogSlider(0.1, min=-3, max=np.log10(LARGEST_STEP), step=0.1, description="η_l")
    x0 = widgets.FloatSlider(0.0, min=0, max=3, step=0.25, description="start")
    return Explorer([step, x0], lambda: bound_figure(float(f"{step.value:.2g}"), x0.value))

"""Controls around a figure, in a notebook."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as widgets
from matplotlib.figure import Figure

from asyncfl_lite.errors import AsyncFLError


def under_controls(controls: Sequence[widgets.Widget], draw: Callable[[], Figure]) -> widgets.VBox:
    """Return controls above the figure that ``draw`` returns, which is drawn anew whenever one of them changes.

    Settings that cannot be drawn show the package's error in place of the figure.

    Args:
        controls: widgets with a ``value``, which ``draw`` reads.
        draw: what makes the figure.
    """
    picture = widgets.Image(format="png", layout=widgets.Layout(align_self="flex-start"))  # else stretched, and blurred
    message = widgets.Label()

    def redraw(change: Any = None) -> None:
        try:
            figure = draw()
        except AsyncFLError as error:
            picture.layout.display, message.layout.display, message.value = "none", None, str(error)
            return
        figure.savefig(buffer := io.BytesIO(), format="png", dpi=90)
        picture.value, picture.layout.display = buffer.getvalue(), None
        message.layout.display, message.value = "none", ""

    for control in controls:
        control.observe(redraw, names="value")
    redraw()
    return widgets.VBox([*controls, message, picture])


def played(description: str, last: int, start: int, draw: Callable[[int], Figure]) -> widgets.VBox:
    """Return the figure that ``draw`` returns of a place from 0 to ``last``, under a slider and a button that plays.

    Args:
        description: what a place is called.
        last: the last place.
        start: the place that is shown first.
        draw: from a place to its figure.
    """
    places = {"value": start, "min": 0, "max": last}
    step = widgets.IntSlider(
        **places, description=description, continuous_update=False, layout=widgets.Layout(width="500px")
    )
    play = widgets.Play(**places, interval=700)  # of the same value: a link would else move the slider there
    widgets.jslink((play, "value"), (step, "value"))
    return widgets.VBox([play, under_controls([step], lambda: draw(step.value))])

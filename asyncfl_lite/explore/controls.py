"""Controls around a figure, in a notebook."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets as widgets
from matplotlib.figure import Figure

from asyncfl_lite.base.errors import AsyncFLError


def described(figure: Figure) -> str:
    """Return the titles of a figure and its axes, line by line: the text alternative of a picture that moves."""
    titles = [axes.get_title(place) for axes in figure.axes for place in ("left", "center", "right")]
    return "\n".join(filter(None, [figure.get_suptitle(), *titles]))


def as_image(figure: Figure) -> str:
    """Return a figure as an HTML image, with its titles as the text alternative."""
    figure.savefig(buffer := io.BytesIO(), format="png", dpi=90)
    png = base64.b64encode(buffer.getvalue()).decode()
    return f'<img src="data:image/png;base64,{png}" alt="{html.escape(described(figure))}">'


def under_controls(controls: Sequence[widgets.Widget], draw: Callable[[], Figure]) -> widgets.VBox:
    """Return controls above the figure that ``draw`` returns, which is drawn anew whenever one of them changes.

    Settings that cannot be drawn show the package's error in place of the figure.

    Args:
        controls: widgets with a ``value``, which ``draw`` reads.
        draw: what makes the figure.
    """
    picture = widgets.HTML()  # an Image has no text alternative, and with a tooltip JupyterLab does not show it
    message = widgets.Label()

    def redraw(change: Any = None) -> None:
        try:
            figure = draw()
        except AsyncFLError as error:
            picture.layout.display, message.layout.display, message.value = "none", None, str(error)
            return
        picture.value, picture.layout.display = as_image(figure), None
        message.layout.display, message.value = "none", ""

    for control in controls:
        control.observe(redraw, names="value")
    redraw()
    return widgets.VBox([*controls, message, picture])


def played(description: str, places: Sequence[int], start: int, draw: Callable[[int], Figure]) -> widgets.VBox:
    """Return the figure that ``draw`` returns of a place, under a slider and a button that plays.

    Args:
        description: what ``places`` count.
        places: the number that the slider shows at each of its places; at least one, no number twice.
        start: index of the place that is shown first.
        draw: from a place's index to its figure.
    """
    step = widgets.SelectionSlider(
        options=list(places), index=start, description=description, continuous_update=False,
        layout=widgets.Layout(width="500px"),
    )  # fmt: skip
    play = widgets.Play(value=start, min=0, max=len(places) - 1, interval=700)
    widgets.jslink((play, "value"), (step, "index"))
    return widgets.VBox([play, under_controls([step], lambda: draw(step.index))])

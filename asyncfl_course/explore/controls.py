"""Controls to the left of a figure in a notebook; without a kernel, the notebook shows only the figure."""

from __future__ import annotations

import base64
import html
import io
import math
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import ipywidgets as widgets
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from PIL import Image

from asyncfl_lite.base.errors import AsyncFLError

DPI = 90
"""Resolution of pictures with controls."""
COLUMN = "270px"
"""Width of the column of controls."""
SHORTEST_INTERVAL = 700
"""Smallest number of milliseconds between two pictures of an animation, if drawing takes less."""


class Picture(NamedTuple):
    """A figure as shown in a notebook: an image in base64, and its text alternative."""

    png: str
    words: str

    def tag(self) -> str:
        """Return an HTML image that is never wider than its container."""
        look = "max-width: 100%; height: auto"
        return f'<img src="data:image/png;base64,{self.png}" alt="{html.escape(self.words)}" style="{look}">'


def pictured(figure: Figure, places: dict[tuple[int, ...], list[Bbox]] | None = None) -> Picture:
    """Render a figure once, and return it as an image with a text alternative: its titles, line by line.

    Args:
        figure: what is drawn.
        places: positions of the axes, by the numbers of line breaks in the titles, so that figures of the same look are
            laid out only once. This saves half of the time, and an animation does not jump. New looks are added.
    """
    figure.set_dpi(DPI)
    sides = ("left", "center", "right")
    titles = [figure.get_suptitle(), *(axes.get_title(side) for axes in figure.axes for side in sides)]
    look = tuple(line.count("\n") for line in titles)
    if places is not None and look in places:
        figure.set_layout_engine("none")
        for axes, place in zip(figure.axes, places[look], strict=True):
            axes.set_position(place)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    if places is not None:
        places[look] = [axes.get_position(original=True) for axes in figure.axes]
    image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    image.save(buffer := io.BytesIO(), format="png", compress_level=3)
    return Picture(base64.b64encode(buffer.getvalue()).decode(), "\n".join(filter(None, titles)))


class Explorer(widgets.GridBox):
    """Controls in a column, with the picture that they produce to the right.

    Its children are the controls, a message, and the picture. Besides the controls, a notebook stores the picture as an
    image with a text alternative. A saved or exported notebook, which has no kernel, shows that image. Settings that
    cannot be drawn show the package's error in place of the picture.

    Args:
        controls: widgets, top to bottom; whenever the value of one changes, the picture is drawn anew.
        draw: function that returns the figure, or a picture of one.
    """

    def __init__(self, controls: Sequence[widgets.Widget], draw: Callable[[], Figure | Picture]) -> None:
        self._draw, self._shown = draw, None
        count = len(controls)
        for row, control in enumerate(controls, start=1):  # grid_row and grid_column are lost on their way to a page
            control.layout.width, control.layout.grid_area = "auto", f"{row} / 1"
        # An Image widget has no text alternative, and JupyterLab does not show one that has a tooltip.
        self._picture = widgets.HTML(layout={"grid_area": f"1 / 2 / span {count + 1}", "min_width": "0"})
        self._message = widgets.Label(layout={"grid_area": "1 / 2", "min_width": "0"})
        rows = f"repeat({count}, max-content) auto"  # a picture's extra height goes below the controls
        layout = {"grid_template_columns": f"{COLUMN} minmax(0, 1fr)", "grid_template_rows": rows, "grid_gap": "0 12px"}
        for control in controls:
            control.observe(self._redraw, names="value")
        self._redraw()
        super().__init__([*controls, self._message, self._picture], layout=layout)

    def _redraw(self, change: Any = None) -> None:
        try:
            drawn = self._draw()
        except AsyncFLError as error:
            self._shown = None
            self._picture.layout.display, self._message.layout.display = "none", None
            self._message.value = str(error)
            return
        self._shown = drawn if isinstance(drawn, Picture) else pictured(drawn)
        self._picture.value, self._picture.layout.display = self._shown.tag(), None
        self._message.layout.display, self._message.value = "none", ""

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data = super()._repr_mimebundle_(**options) or {}
        names = [control.description for control in self.children[:-2] if getattr(control, "description", "")]
        words = self._message.value if self._shown is None else self._shown.words
        data["text/plain"] = f"A picture under controls, which need a running kernel: {', '.join(names)}.\n{words}"
        if self._shown is None:
            return data, {}
        data["image/png"] = self._shown.png
        return data, {"image/png": {"alt": words}}


def played(description: str, places: Sequence[int], start: int, draw: Callable[[int], Figure]) -> Explorer:
    """Return a slider and a play button that show the figure from ``draw`` at each position.

    Pictures are cached. The player waits longer if drawing takes longer, so that pictures never queue.

    Args:
        description: what ``places`` count.
        places: the number that the slider shows at each of its positions; at least one number, and none twice.
        start: index of the position that is shown first.
        draw: maps the index of a position to its figure.
    """
    step = widgets.SelectionSlider(
        options=list(places), index=start, description=description, continuous_update=False,
        style={"description_width": "initial"},
    )  # fmt: skip
    play = widgets.Play(value=start, min=0, max=len(places) - 1, interval=SHORTEST_INTERVAL)
    widgets.jslink((play, "value"), (step, "index"))

    positions: dict[tuple[int, ...], list[Bbox]] = {}

    @lru_cache(maxsize=200)
    def shown(index: int) -> Picture:
        begun = time.perf_counter()
        picture = pictured(draw(index), positions)
        play.interval = max(SHORTEST_INTERVAL, 100 * math.ceil(12 * (time.perf_counter() - begun)))
        return picture

    return Explorer([play, step], lambda: shown(step.index))

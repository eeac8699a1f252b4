"""The explorable pages of ``docs/``, shown in a notebook.

This module imports nothing large, because the first cell of a lesson uses it.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
STILL = {"explore": "docs/pictures/phones.svg"}
"""Page -> its still picture; a method's page has the method's drawing."""
WORDS = {"explore": "Ten phones train for an hour, and nobody waits. The slow phone's only update is 106 versions old."}


@dataclass(frozen=True)
class Explorable:
    """A page that a notebook shows in a frame.

    The frame's address is relative to the notebook, so it works in JupyterLab and on the site. A picture lies below
    the frame, for viewers that leave frames out.

    Attributes:
        name: the file's name in ``docs/``, without its ending.
        height: of the frame, in pixels.
        up: the way from the notebook's folder to the repository.
    """

    name: str
    height: int
    up: str

    def __repr__(self) -> str:
        return f"docs/{self.name}.html, a page that runs in a browser"

    def _repr_html_(self) -> str:
        method = self.name.removeprefix("explore_")
        still = STILL.get(self.name, f"asyncfl_course/explore/pictures/{method}.svg")
        drawing = base64.b64encode((ROOT / still).read_bytes()).decode()
        words = WORDS.get(self.name, f"How the method works: {method}, drawn")
        place = "grid-area: 1 / 1; border: 0; max-width: 100%"
        return (
            '<div style="display: grid; grid-template-columns: minmax(0, 1fr)">'
            f'<img src="data:image/svg+xml;base64,{drawing}" alt="{words}" style="{place}; background: white">'
            f'<iframe class="explorable" src="{self.up}docs/{self.name}.html" title="Playing by itself: {self.name}" '
            f'style="{place}; position: relative; z-index: 1; width: 100%; height: {self.height}px"></iframe></div>'
        )


def explorable(name: str = "explore", height: int = 620, up: str = "../") -> Explorable:
    """Return one of the pages that need no kernel, as an :class:`Explorable`.

    Example:
        >>> explorable("explore_kuiper")
        docs/explore_kuiper.html, a page that runs in a browser
    """
    return Explorable(name, height, up)

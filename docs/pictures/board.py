"""A board on which a method is drawn as SVG, with clients on the left and the server on the right.

The SVG has no identifiers or styles, so that several drawings can be on one page. Labels have two kinds of marks, for
subscripts and superscripts: ``x_{t}`` and ``Δ^{KD}`` (``x_t`` and ``Δ^i`` for one character).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple
from xml.sax.saxutils import escape

WIDTH = 760
FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
INK, GREY, LINE, PAPER = "#111827", "#4b5563", "#9ca3af", "#ffffff"
SMALLEST = 12.0
"""Size of the smallest text, in pixels."""

COLUMNS, ROWS = (298.0, 455.0, 612.0), (92.0, 172.0, 252.0)
"""Left edges of the server's columns, and upper edges of its rows."""
CELL = (130.0, 52.0)
"""Width and height of a box that fills one column and one row."""

MARK = re.compile(r"([_^])(?:\{([^}]*)\}|(.))")


class Place(NamedTuple):
    """A rectangle: its upper left corner and its size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def left(self) -> tuple[float, float]:
        """The middle of the left edge."""
        return self.x, self.y + self.height / 2

    @property
    def right(self) -> tuple[float, float]:
        """The middle of the right edge."""
        return self.x + self.width, self.y + self.height / 2

    @property
    def top(self) -> tuple[float, float]:
        """The middle of the upper edge."""
        return self.x + self.width / 2, self.y

    @property
    def bottom(self) -> tuple[float, float]:
        """The middle of the lower edge."""
        return self.x + self.width / 2, self.y + self.height


class Label(NamedTuple):
    """A line of text on a board.

    Attributes:
        parts: its pieces, each with its size in pixels.
        x, y: its anchor, on the base line.
        anchor: ``start``, ``middle`` or ``end``.
        inside: the rectangle that it must not leave.
        bold: whether it is bold.
    """

    parts: tuple[tuple[str, float], ...]
    x: float
    y: float
    anchor: Literal["start", "middle", "end"]
    inside: Place
    bold: bool


def at(column: float, row: int, columns: int = 1, rows: int = 1) -> Place:
    """Return the place of a box in the server's grid; a column of 0.5 lies half-way between 0 and 1."""
    step = COLUMNS[1] - COLUMNS[0]
    height = CELL[1] + (rows - 1) * (ROWS[1] - ROWS[0])
    return Place(COLUMNS[0] + column * step, ROWS[row], CELL[0] + (columns - 1) * step, height)


def tinted(colour: str, share: float = 0.22) -> str:
    """Return a colour mixed with white, as ``#rrggbb``."""
    parts = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    return "#" + "".join(f"{round(255 + share * (part - 255)):02x}" for part in parts)


def plain(text: str) -> str:
    """Return a label without its marks for subscripts and superscripts."""
    return MARK.sub(lambda found: found[2] or found[3] or "", text)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


class Board:
    """A drawing to which boxes, lines and texts are added.

    Args:
        colour: colour of new parts, ``#rrggbb``.
        height: height of the drawing, in pixels.

    Attributes:
        colour: colour of new parts.
        height: height of the drawing.
        labels: every text, so that one can check whether two of them overlap.
    """

    def __init__(self, colour: str, height: float) -> None:
        self.colour, self.height = colour, height
        self.labels: list[Label] = []
        self._drawn: list[str] = []
        self.all = Place(0, 0, WIDTH, height)
        self._add("rect", x=0.5, y=0.5, width=WIDTH - 1, height=height - 1, rx=10, fill=PAPER, stroke="#e5e7eb")

    def _add(self, name: str, **attributes: str | float) -> None:
        given = " ".join(
            f'{key.replace("_", "-")}="{_number(value) if isinstance(value, int | float) else value}"'
            for key, value in attributes.items()
        )
        self._drawn.append(f"<{name} {given}/>")

    def text(
        self,
        text: str,
        x: float,
        y: float,
        *,
        size: float = 13,
        anchor: Literal["start", "middle", "end"] = "start",
        colour: str = INK,
        bold: bool = False,
        inside: Place | None = None,
    ) -> None:
        """Write a line of text with its baseline at ``y``; outside a box, a white rim keeps lines off it."""
        parts, last, small = [], 0, max(SMALLEST, 0.8 * size)
        spans, raised = [], 0.0  # the pen's offset from the baseline, downwards
        for found in (*MARK.finditer(text), None):
            if between := text[last : found.start() if found else len(text)]:
                parts.append((between, size))
                back = f'<tspan dy="{_number(-raised)}">{escape(between)}</tspan>'
                spans.append(back if raised else escape(between))
                raised = 0.0
            if found:
                wanted, inner = (-0.38 if found[1] == "^" else 0.24) * size, found[2] or found[3]
                parts.append((inner, small))
                shift = _number(wanted - raised)
                spans.append(f'<tspan dy="{shift}" font-size="{_number(small)}">{escape(inner)}</tspan>')
                last, raised = found.end(), float(_number(wanted))
        self.labels.append(Label(tuple(parts), x, y, anchor, inside or self.all, bold))
        rim = (
            ""
            if inside is not None
            else ' stroke="#ffffff" stroke-width="4" paint-order="stroke" stroke-linejoin="round"'
        )
        weight = ' font-weight="bold"' if bold else ""
        self._drawn.append(
            f'<text x="{_number(x)}" y="{_number(y)}" font-size="{_number(size)}" text-anchor="{anchor}" '
            f'fill="{colour}"{weight}{rim}>{"".join(spans)}</text>'
        )

    def lines(self, lines: Sequence[str], place: Place, *, new: bool = False, shift: float = 0) -> None:
        """Write lines into the middle of a box."""
        first = place.y + place.height / 2 + 4.5 - 8 * (len(lines) - 1) + shift
        for row, line in enumerate(lines):
            self.text(
                line, place.x + place.width / 2, first + 16 * row, anchor="middle", inside=place,
                colour=INK if new else GREY,
            )  # fmt: skip

    def _look(self, new: bool) -> dict[str, str | float]:
        if new:
            return {"fill": tinted(self.colour), "stroke": self.colour, "stroke_width": 2.2}
        return {"fill": PAPER, "stroke": LINE, "stroke_width": 1.2}

    def box(self, place: Place, *lines: str, new: bool = False, number: int | None = None) -> Place:
        """Draw something that the server does, as a box."""
        self._add("rect", x=place.x, y=place.y, width=place.width, height=place.height, rx=6, **self._look(new))
        self.lines(lines, place, new=new)
        self._numbered(place, number)
        return place

    def store(self, place: Place, *lines: str, new: bool = False, number: int | None = None) -> Place:
        """Draw something that the server keeps, as a cylinder."""
        x, y, width, height = place
        look, arc = self._look(new), f"{_number(width / 2)} 7 0 0"
        self._add(
            "path", **look,
            d=f"M{_number(x)} {_number(y + 7)}A{arc} 1 {_number(x + width)} {_number(y + 7)}"
            f"V{_number(y + height - 7)}A{arc} 1 {_number(x)} {_number(y + height - 7)}Z",
        )  # fmt: skip
        rim = f"M{_number(x)} {_number(y + 7)}A{arc} 0 {_number(x + width)} {_number(y + 7)}"
        self._add("path", d=rim, **{**look, "fill": "none"})
        self.lines(lines, place, new=new, shift=5)
        self._numbered(place, number)
        return place

    def slots(
        self, place: Place, title: str, entries: Sequence[str], *, new: bool = False, number: int | None = None
    ) -> Place:
        """Draw a buffer or a queue: a row of slots under a title."""
        self._add("rect", x=place.x, y=place.y, width=place.width, height=place.height, rx=6, **self._look(new))
        self.text(
            title, place.x + place.width / 2, place.y + 18, anchor="middle", inside=place, colour=INK if new else GREY
        )
        wide = (place.width - 12 - 4 * (len(entries) - 1)) / len(entries)
        for column, entry in enumerate(entries):
            slot = Place(place.x + 6 + column * (wide + 4), place.y + 26, wide, place.height - 32)
            self._add("rect", x=slot.x, y=slot.y, width=wide, height=slot.height, rx=3, fill=PAPER, stroke=LINE)
            self.text(entry, slot.x + wide / 2, slot.y + slot.height / 2 + 4, anchor="middle", inside=slot, size=12)
        self._numbered(place, number)
        return place

    def _numbered(self, place: Place, number: int | None) -> None:
        if number is not None:
            self.circle(number, place.x, place.y)

    def circle(self, number: int, x: float, y: float) -> None:
        """Draw a step's number in a circle."""
        self._add("circle", cx=x, cy=y, r=9, fill=INK, stroke=PAPER, stroke_width=1.5)
        inside = Place(x - 9, y - 9, 18, 18)
        self.text(str(number), x, y + 4.3, size=12, anchor="middle", colour=PAPER, bold=True, inside=inside)

    def line(
        self,
        *points: tuple[float, float],
        new: bool = False,
        dashed: bool = False,
        head: bool = True,
        over: bool = False,
    ) -> None:
        """Draw an arrow through points, or a line without a head; ``over`` adds a white rim against other lines."""
        route = "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in self._shortened(points, head))
        shade = self.colour if new else LINE
        if over:
            self._add("path", d=route, fill="none", stroke=PAPER, stroke_width=6)
        more = {"stroke_dasharray": "5 4"} if dashed else {}
        self._add("path", d=route, fill="none", stroke=shade, stroke_width=2.2 if new else 1.6, **more)
        if head:
            (x0, y0), (x, y) = points[-2:]
            long = ((x - x0) ** 2 + (y - y0) ** 2) ** 0.5
            dx, dy = (x - x0) / long, (y - y0) / long
            back = [(x - 10 * dx + 5 * side * dy, y - 10 * dy - 5 * side * dx) for side in (1, -1)]
            corners = " ".join(f"{_number(a)},{_number(b)}" for a, b in ((x, y), *back))
            self._add("polygon", points=corners, fill=shade)

    @staticmethod
    def _shortened(points: Sequence[tuple[float, float]], head: bool) -> list[tuple[float, float]]:
        """Return the points of an arrow's shaft, which ends inside its head."""
        if not head:
            return list(points)
        (x0, y0), (x, y) = points[-2:]
        long = ((x - x0) ** 2 + (y - y0) ** 2) ** 0.5
        return [*points[:-1], (x - 7 * (x - x0) / long, y - 7 * (y - y0) / long)]

    def bar(self, place: Place, *, new: bool = False, waits: bool = False) -> None:
        """Draw a stretch of time as a bar, for training or for waiting."""
        look = {"fill": "none", "stroke_dasharray": "3 3"} if waits else {"fill": "#d1d5db"}
        if new:
            look["fill"] = "none" if waits else self.colour
        self._add(
            "rect", x=place.x, y=place.y, width=place.width, height=place.height, rx=2,
            stroke=self.colour if new else LINE, **look,
        )  # fmt: skip

    def note(self, place: Place, text: str, *, new: bool = False) -> None:
        """Write a small line of text at the left of a place, with a frame if it is new."""
        if new:
            self._add("rect", x=place.x, y=place.y, width=place.width, height=place.height, rx=4, **self._look(True))
        self.text(text, place.x + 5, place.y + 13, size=12, inside=place, colour=INK if new else GREY)

    def frame(self, place: Place, *, dashed: bool = False) -> None:
        """Draw a client's or the server's outline."""
        more = {"stroke_dasharray": "6 4"} if dashed else {}
        self._add(
            "rect", x=place.x, y=place.y, width=place.width, height=place.height, rx=8, fill="#f9fafb", stroke=LINE,
            stroke_width=1.4, **more,
        )  # fmt: skip

    def curve(
        self, place: Place, values: Callable[[float], float], most: float, top: float, title: str, below: str
    ) -> None:
        """Draw a function from 0 to ``most``, with axes; the vertical one goes from 0 to ``top``."""
        x, y, width, height = place
        self._add(
            "path", d=f"M{_number(x)} {_number(y)}V{_number(y + height)}H{_number(x + width)}", fill="none", stroke=GREY
        )
        steps = [most * step / 40 for step in range(41)]
        spots = [(x + width * step / most, y + height * (1 - values(step) / top)) for step in steps]
        route = "M" + "L".join(f"{_number(a)} {_number(b)}" for a, b in spots)
        self._add("path", d=route, fill="none", stroke=self.colour, stroke_width=2.6)
        for height_of, mark in ((0, f"{top:g}"), (height, "0")):
            self.text(mark, x - 5, y + height_of + 4, size=12, anchor="end", colour=GREY)
        self.text(title, x + width / 2, y - 8, anchor="middle")
        self.text(below, x + width / 2, y + height + 18, anchor="middle", size=12, colour=GREY)

    def swatch(self, x: float, y: float, size: float) -> None:
        """Draw a square that shows how new things look."""
        self._add("rect", x=x, y=y, width=size, height=size, rx=3, **self._look(True))

    def svg(self, title: str, alt: str) -> str:
        """Return the drawing as SVG."""
        size = f'width="{WIDTH}" height="{_number(self.height)}" viewBox="0 0 {WIDTH} {_number(self.height)}"'
        named = escape(alt, {'"': "&quot;"})
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{named}" font-family="{FONT}">',
                f"<title>{escape(title)}</title>",
                f"<desc>{escape(alt)}</desc>",
                *self._drawn,
                "</svg>\n",
            ]
        )

"""Draw the ideas of lessons 04, 08, 15 and 16 as SVG: ``python docs/pictures/ideas.py`` writes all four."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

INK, GREY, LIGHT, ORANGE, GREEN, BLUE = "#111827", "#4b5563", "#d1d5db", "#d55e00", "#009e73", "#0072b2"
FOLDER = Path(__file__).parent


class Sheet:
    """An SVG that grows by shapes; every text is at least 13 pixels high."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            ' font-family="Helvetica, Arial, \'DejaVu Sans\', sans-serif" role="img">',
            f"<title>{title}</title>",
            f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="10" fill="white" stroke="#e5e7eb"/>',
        ]

    def text(self, x: float, y: float, said: str, colour: str = INK, anchor: str = "middle", size: int = 14) -> None:
        """Write a text."""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}" font-size="{size}">{said}</text>'
        )

    def line(self, *points: tuple[float, float], colour: str = INK, width: float = 1.5, dashed: bool = False) -> None:
        """Draw a line through points."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' * dashed
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"{dash}/>')

    def arrow(self, start: tuple[float, float], end: tuple[float, float], colour: str = INK, width: float = 2) -> None:
        """Draw an arrow."""
        angle = math.atan2(end[1] - start[1], end[0] - start[0])
        self.line(start, end, colour=colour, width=width)
        barbs = [(end[0] - 9 * math.cos(angle + turn), end[1] - 9 * math.sin(angle + turn)) for turn in (0.5, -0.5)]
        self.line(barbs[0], end, barbs[1], colour=colour, width=width)

    def dot(self, x: float, y: float, colour: str = INK, radius: float = 7, filled: bool = True) -> None:
        """Draw a dot, or a ring."""
        fill = colour if filled else "white"
        self.parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}" stroke="{colour}" stroke-width="2"/>'
        )

    def box(self, x: float, y: float, width: float, height: float, said: str, colour: str = GREY) -> None:
        """Draw a box with a text in its middle."""
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="white" stroke="{colour}"'
            ' stroke-width="1.5"/>'
        )
        self.text(x + width / 2, y + height / 2 + 5, said)

    def bar(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        """Draw a filled bar."""
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="3" fill="{colour}"/>')

    def svg(self) -> str:
        """Return the whole drawing."""
        return "\n".join([*self.parts, "</svg>", ""])


def _valley(x: float) -> float:
    """Return the height of the valley's wall at ``x``, downwards as SVG has it."""
    return 162 - 0.011 * (x - 91) ** 2


def overshoot() -> Sheet:
    """A valley in four frames: the same late news, added twice."""
    sheet = Sheet(820, 236, "An overshoot in four frames")
    says = (
        ("1  Two phones start here.", "Both will say: right."),
        ("2  The fast one reports:", "the server is there."),
        ("3  The slow one, late:", "right! It overshoots."),
        ("4  With a short step", "late news costs little."),
    )
    for frame, (first, second) in enumerate(says):
        left = 16 + 202 * frame
        sheet.line(*((left + x, _valley(x)) for x in range(8, 176, 4)), colour=GREY, width=2)
        sheet.line((left + 91, 48), (left + 91, 60), colour=LIGHT)
        if frame == 0:
            sheet.dot(left + 25, _valley(25) - 9, BLUE)
            sheet.arrow((left + 36, 92), (left + 84, 92), BLUE)
            sheet.arrow((left + 36, 76), (left + 84, 76), ORANGE)
        elif frame == 1:
            sheet.dot(left + 25, _valley(25) - 9, BLUE, filled=False)
            sheet.dot(left + 91, _valley(91) - 9, BLUE)
            sheet.arrow((left + 36, 92), (left + 84, 92), BLUE)
        else:
            end = 157 if frame == 2 else 111
            sheet.dot(left + 91, _valley(91) - 9, BLUE, filled=False)
            sheet.dot(left + end, _valley(end) - 9, ORANGE)
            sheet.arrow((left + 100, 76), (left + (150 if frame == 2 else 122), 76), ORANGE)
        sheet.text(left + 91, 196, first)
        sheet.text(left + 91, 216, second, GREY)
        if frame:
            sheet.line((left - 9, 20), (left - 9, 220), colour=LIGHT)
    sheet.text(16 + 91, 34, "blue: the fast phone's update", BLUE, size=13)
    sheet.text(16 + 202 + 91, 34, "orange: the slow phone's", ORANGE, size=13)
    return sheet


def control() -> Sheet:
    """Two pipelines, one part crossed out."""
    sheet = Sheet(820, 250, "A control as two pipelines")
    for row, name in enumerate(("FedEcho", "deaf to stragglers")):
        top = 44 + 112 * row
        sheet.text(18, top - 14, name, GREEN if row == 0 else ORANGE, "start", 15)
        sheet.box(18, top, 118, 40, "a report")
        sheet.box(192, top, 118, 40, "buffer")
        sheet.box(366, top, 118, 40, "store", GREEN)
        sheet.box(540, top, 118, 40, "distillation", GREEN)
        sheet.box(704, top, 98, 40, "new model")
        sheet.arrow((136, top + 20), (190, top + 20))
        sheet.arrow((310, top + 20), (364, top + 20), GREEN)
        sheet.arrow((484, top + 20), (538, top + 20), GREEN)
        sheet.arrow((658, top + 20), (702, top + 20))
        sheet.line((78, top + 40), (78, top + 62), (425, top + 62), colour=GREEN, width=2)
        sheet.arrow((425, top + 62), (425, top + 43), GREEN)
        sheet.text(250, top + 80, "what a straggler predicts", GREY, size=13)
        if row:
            sheet.line((238, top + 50), (262, top + 74), colour=ORANGE, width=4)
            sheet.line((262, top + 50), (238, top + 74), colour=ORANGE, width=4)
    sheet.text(660, 126, "all else is equal", GREY, size=13)
    return sheet


def interval() -> Sheet:
    """Two methods by seed, their differences, and the interval of the mean."""
    sheet = Sheet(820, 250, "From pairs of runs to an interval")
    first, second = (70, 52, 84, 61, 76, 58), (58, 47, 66, 55, 68, 43)
    sheet.text(140, 28, "1  the same seeds for both", size=15)
    sheet.text(410, 28, "2  one difference a seed", size=15)
    sheet.text(680, 28, "3  where the mean may lie", size=15)
    for row, (one, two) in enumerate(zip(first, second, strict=True)):
        y = 56 + 27 * row
        sheet.text(20, y + 5, f"seed {row}", GREY, "start", 13)
        sheet.line((90 + 1.6 * two, y), (90 + 1.6 * one, y), colour=LIGHT, width=3)
        sheet.dot(90 + 1.6 * one, y, GREEN, 6)
        sheet.dot(90 + 1.6 * two, y, BLUE, 6)
        sheet.dot(350 + 6 * (one - two), y, INK, 5)
        sheet.dot(620 + 6 * (one - two), y, LIGHT, 4)
    for x in (350, 620):
        sheet.line((x, 44), (x, 202), colour=GREY, dashed=True)
        sheet.text(x, 222, "0", GREY)
    gaps = [one - two for one, two in zip(first, second, strict=True)]
    mean = sum(gaps) / len(gaps)
    half = 4.03 * (sum((gap - mean) ** 2 for gap in gaps) / 5 / 6) ** 0.5  # t of 99 % with six seeds
    sheet.line((620 + 6 * (mean - half), 206), (620 + 6 * (mean + half), 206), colour=ORANGE, width=5)
    sheet.dot(620 + 6 * mean, 206, ORANGE, 6)
    sheet.text(620 + 6 * mean, 238, "the interval: does it leave out 0?", ORANGE, size=13)
    sheet.text(90, 238, "green and blue: two methods", GREY, "start", 13)
    return sheet


def race() -> Sheet:
    """Four budgets of two methods: a race that is equal in one is unequal in others."""
    sheet = Sheet(820, 236, "Four budgets of a race")
    rows = (
        ("client updates", 1.0, 1.0),
        ("tries at the rates", 1.0, 1.0),
        ("virtual time", 0.22, 1.0),
        ("data at the server", 1.0, 0.0),
    )
    sheet.text(320, 28, "FedEcho", GREEN, size=15)
    sheet.text(580, 28, "FedAvg", BLUE, size=15)
    for row, (what, one, two) in enumerate(rows):
        y = 46 + 40 * row
        sheet.text(180, y + 18, what, anchor="end")
        for left, share, colour in ((200, one, GREEN), (460, two, BLUE)):
            sheet.bar(left, y, 240, 24, "#f3f4f6")
            if share:
                sheet.bar(left, y, 240 * share, 24, colour)
        sheet.text(722, y + 18, "equal" if one == two else "not equal", INK if one == two else ORANGE, "start")
    sheet.text(410, 224, "Lengths show which budget is equal; they are not to scale.", GREY, size=13)
    return sheet


DRAWINGS: dict[str, Callable[[], Sheet]] = {
    "overshoot": overshoot, "control": control, "interval": interval, "race": race
}  # fmt: skip

if __name__ == "__main__":
    for name, drawn in DRAWINGS.items():
        (FOLDER / f"idea_{name}.svg").write_text(drawn().svg(), encoding="utf-8")

"""Draw the ideas of lessons as SVG: ``python docs/pictures/ideas.py`` writes all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

INK, GREY, LIGHT, ORANGE, GREEN, BLUE = "#111827", "#4b5563", "#d1d5db", "#d55e00", "#009e73", "#0072b2"
KUIPER, FEDADT, FEDREVIVE, PALE = "#a51c30", "#5b3fa0", "#a8559a", "#f3f4f6"
FOLDER = Path(__file__).parent


class Sheet:
    """An SVG drawing to which shapes are added; every text is at least 13 pixels high."""

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
    """Return the y coordinate of the valley's wall at ``x``; in SVG, y grows downwards."""
    return 162 - 0.011 * (x - 91) ** 2


def overshoot() -> Sheet:
    """Draw a valley in four frames, in which a late update overshoots unless the step is short."""
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
    """Draw two pipelines, one of them with a part crossed out."""
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
    """Draw two methods by seed, their differences, and the interval of the mean."""
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
    """Draw four budgets of two methods: a race that is equal in one is unequal in others."""
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


def staleness() -> Sheet:
    """Draw a slow job that crosses version ticks; every tick makes it one version older."""
    sheet = Sheet(820, 236, "A job crosses version ticks")
    sheet.text(18, 74, "fast phone", BLUE, "start")
    sheet.text(18, 134, "slow phone", ORANGE, "start")
    for job in range(8):
        sheet.bar(120 + 80 * job, 58, 76, 24, BLUE)
    sheet.bar(120, 118, 540, 24, ORANGE)
    for version in range(1, 9):
        x = 118 + 80 * version
        sheet.line((x, 44), (x, 156), colour=GREY, dashed=True)
        sheet.text(x, 36, f"v{version}", GREY)
    sheet.text(118, 36, "v0", GREY)
    for version in range(1, 7):
        sheet.text(
            118 + 80 * version + (40 if version < 6 else 33),
            136,
            f"age {version}" if version < 6 else "τ = 6",
            "white",
            size=13,
        )
    sheet.text(158, 136, "age 0", "white", size=13)
    sheet.arrow((660, 186), (660, 146), ORANGE)
    sheet.text(800, 202, "It arrives: six versions were made since its model was sent.", ORANGE, "end", 13)
    sheet.arrow((120, 220), (802, 220), GREY, 1.5)
    sheet.text(60, 224, "time", GREY)
    return sheet


def partitions() -> Sheet:
    """Draw one pool of three classes, dealt out to three clients in three ways."""
    sheet = Sheet(820, 268, "One pool dealt out three ways")
    shades = {"A": BLUE, "B": ORANGE, "C": GREEN}

    def pile(x: float, y: float, what: str) -> None:
        for place, letter in enumerate(what):
            left, top = x + 17 * (place % 5), y + 17 * (place // 5)
            sheet.bar(left, top, 15, 15, shades[letter])
            sheet.text(left + 7.5, top + 12, letter, "white", size=13)

    sheet.text(100, 28, "one pool, three classes", size=15)
    pile(58, 100, "A" * 10 + "B" * 10 + "C" * 10)
    ways = (
        ("IID", ("AAAABBBCCC", "AAABBBBCCC", "AAABBBCCCC")),
        ("Dirichlet, small α", ("AAAAAAAB", "BBBBBBBBBCC", "AAACCCCCCCC")),
        ("bias", ("AAAAAAAABC", "ABBBBBBBBC", "ABCCCCCCCC")),
    )
    for row, (name, clients) in enumerate(ways):
        y = 50 + 70 * row
        sheet.arrow((162, 150), (232, y + 24), GREY, 1.5)
        sheet.text(246, y + 28, name, anchor="start")
        for client, what in enumerate(clients):
            pile(420 + 135 * client, y, what)
    for client in range(3):
        sheet.text(462 + 135 * client, 28, f"client {client + 1}", GREY)
    sheet.text(410, 256, "Each row deals out the same thirty samples.", GREY, size=13)
    return sheet


def targets() -> Sheet:
    """Draw a hard and a soft target for the same image."""
    sheet = Sheet(820, 250, "A hard and a soft target")
    soft = (0.01, 0.0, 0.01, 0.03, 0.02, 0.31, 0.01, 0.02, 0.12, 0.47)
    hard = tuple(float(digit == 9) for digit in range(10))
    for left, title, below, values, colour in (
        (60, "hard target: the label", "It says: this is a 9.", hard, BLUE),
        (450, "soft target: a teacher's output", "It also says: much like a 5, a little like an 8.", soft, ORANGE),
    ):
        sheet.text(left + 155, 30, title, colour, size=15)
        for digit, value in enumerate(values):
            x = left + 31 * digit
            sheet.bar(x + 3, 190 - 138 * value, 24, 138 * value, colour)
            sheet.text(x + 15, 208, str(digit), GREY)
        sheet.line((left, 190), (left + 312, 190), colour=GREY)
        sheet.text(left + 155, 236, below, GREY, size=13)
    sheet.text(16, 62, "1", GREY, "start", 13)
    sheet.text(16, 194, "0", GREY, "start", 13)
    return sheet


def mask() -> Sheet:
    """Draw two texts as rows of one batch, with their padding and their masks."""
    sheet = Sheet(820, 236, "Rows with a mask")
    rows = (("the", "cat", "sat", "[SEP]", "a", "dog", "ran", "[SEP]"), ("the", "dog", "[SEP]", "ran", "[SEP]"))
    sheet.text(18, 30, "a batch is a rectangle: short texts are padded", anchor="start", size=15)
    for row, words in enumerate(rows):
        y = 48 + 84 * row
        sheet.text(18, y + 24, f"text {row + 1}", GREY, "start")
        sheet.text(18, y + 56, "mask", GREY, "start")
        for place in range(8):
            x, here = 84 + 90 * place, place < len(words)
            sheet.box(x, y, 84, 36, words[place] if here else "[PAD]", BLUE if here else LIGHT)
            sheet.text(x + 42, y + 57, "1" if here else "0", BLUE if here else ORANGE)
    sheet.text(
        410, 222, "Where the mask is 0, attention has no weight: padding cannot change the output.", GREY, size=13
    )
    return sheet


def counted() -> Sheet:
    """Draw a question and its answer as one row, and the three predictions that count."""
    sheet = Sheet(820, 236, "Which predictions count")
    tokens = ("4", "+", "7", "[ANSWER]", "1", "1", "[END]", "[PAD]")
    labels = {3: "1", 4: "1", 5: "[END]"}
    sheet.text(84, 30, "token", GREY, "end")
    for place, token in enumerate(tokens):
        x = 60 + 94 * place
        counts = place in labels
        sheet.box(x, 44, 86, 36, token, GREEN if counts else LIGHT)
        if counts:
            sheet.arrow((x + 43, 82), (x + 43, 124), GREEN)
            sheet.box(x, 126, 86, 36, labels[place], GREEN)
    sheet.text(60, 148, "What must be predicted next:", GREEN, "start", 13)
    sheet.line((60, 186), (332, 186), colour=GREY)
    sheet.text(196, 206, "the question: no label", GREY, size=13)
    sheet.line((342, 186), (614, 186), colour=GREEN, width=2)
    sheet.text(478, 206, "three predictions count", GREEN, size=13)
    sheet.line((624, 186), (802, 186), colour=GREY)
    sheet.text(713, 206, "nothing is left to predict", GREY, size=13)
    return sheet


def kernel() -> Sheet:
    """Draw a dot that moves right, the same frames in reverse order, and a filter over time."""
    sheet = Sheet(820, 250, "A clip and a filter over time")

    def cells(x: float, y: float, rows: tuple[str, ...], colour: str) -> None:
        for down, row in enumerate(rows):
            for across, cell in enumerate(row):
                left, top = x + 30 * across, y + 30 * down
                sheet.bar(left, top, 28, 28, "#f3f4f6")
                if cell == "x":
                    sheet.dot(left + 14, top + 14, colour, 8)

    right = (".x...", "..x..", "...x.")
    for left, title, rows, finds in (
        (74, "moves right", right, "the filter finds 2"),
        (320, "moves left", right[::-1], "the filter finds 1"),
    ):
        sheet.text(left + 74, 30, title, size=15)
        cells(left, 46, rows, BLUE)
        sheet.text(left + 74, 164, finds, ORANGE)
    for frame in range(3):
        sheet.text(18, 66 + 30 * frame, f"frame {frame + 1}", GREY, "start", 13)
    sheet.text(640, 30, "a filter over two frames", ORANGE, size=15)
    cells(610, 62, ("x.", ".x"), ORANGE)
    sheet.text(640, 148, "bright here now, and one pixel", GREY, size=13)
    sheet.text(640, 166, "to the right a frame later", GREY, size=13)
    sheet.text(
        410,
        208,
        "Both clips consist of the same three frames, so a mean over single frames cannot tell them apart.",
        size=13,
    )
    sheet.text(410, 230, "A filter that spans time can.", size=13)
    return sheet


def proof() -> Sheet:
    """Draw where a late gradient's error comes from, which is the steps that its client missed."""
    sheet = Sheet(820, 250, "Where a late gradient's error comes from")
    points = ((60, 66), (170, 78), (280, 102), (390, 126), (500, 146))
    sheet.line(*points, colour=BLUE, width=2)
    for number, (x, y) in enumerate(points):
        sheet.dot(x, y, ORANGE if number == 0 else BLUE)
        sheet.text(x, y - 16, ("x(t − 4)", "", "", "", "x(t)")[number])
    sheet.text(60, 100, "the client started here", ORANGE, "start", 13)
    sheet.text(420, 168, "the server is here", BLUE, size=13)
    sheet.arrow((500, 146), (612, 134), BLUE)
    sheet.text(620, 140, "the true gradient's step", BLUE, "start", 13)
    sheet.arrow((500, 146), (598, 196), ORANGE)
    sheet.text(608, 202, "the late gradient's step", ORANGE, "start", 13)
    sheet.line((612, 134), (598, 196), colour=GREY, dashed=True)
    sheet.text(614, 172, "error", GREY, "start", 13)
    sheet.line((60, 202), (500, 202), colour=GREY)
    sheet.text(280, 222, "four steps missed: the error is at most L times this distance", GREY, size=13)
    sheet.text(410, 242, "Small steps keep this distance short, so the late gradient is nearly right.", size=13)
    return sheet


def invariant() -> Sheet:
    """Draw a healthy server and one with a wrong line, and the result of one invariant for each."""
    sheet = Sheet(820, 236, "One invariant, two servers")
    for row, (name, colour) in enumerate((("healthy", GREEN), ("with one bug", ORANGE))):
        y = 44 + 96 * row
        sheet.text(18, y - 10, name, colour, "start", 15)
        for place, part in enumerate(("updates", "buffer", "mean", "step", "new model")):
            ill = row == 1 and part == "mean"
            sheet.box(18 + 124 * place, y, 100, 40, part, ORANGE if ill else GREY)
            if place:
                sheet.arrow((18 + 124 * place - 22, y + 20), (18 + 124 * place - 3, y + 20))
        sheet.arrow((616, y + 20), (650, y + 20), colour)
        sheet.text(662, y + 25, "invariant: True" if row == 0 else "invariant: False", colour, "start", 15)
    sheet.line((272, 186), (360, 186), colour=ORANGE, width=3)
    sheet.text(316, 204, "one line is wrong", ORANGE, size=13)
    sheet.text(410, 226, "A good invariant is True above with any settings, and False below.", GREY, size=13)
    return sheet


def _moving(sheet: Sheet, keyframes: str) -> None:
    """Add CSS that moves parts; viewers that show no motion, and print, show the end."""
    sheet.parts.append(f"<style>@media (prefers-reduced-motion: no-preference) {{ {keyframes} }}</style>")


def unrelated() -> Sheet:
    """Draw a server that jumps between means of three clients, and one that takes short steps towards them."""
    sheet = Sheet(820, 268, "A few unrelated clients in the buffer")
    clients = [(140 * math.cos(2.4 * k) * math.sqrt((k + 1) / 15), 72 * math.sin(2.4 * k) * math.sqrt((k + 1) / 15))
               for k in range(15)]  # fmt: skip
    buffers = ((14, 11, 6), (13, 8, 5), (12, 10, 7), (9, 14, 4), (13, 10, 2), (12, 14, 3))
    for left, eta, title, below in (
        (205, 1.0, "a full step", "The model is the mean of the last three clients."),
        (615, 0.25, "a short step", "The model remembers many buffers."),
    ):
        sheet.text(left, 28, title, size=15)
        for x, y in clients:
            sheet.dot(left + x, 136 + y, LIGHT, 6)
        sheet.line((left - 7, 136), (left + 7, 136), width=2)
        sheet.line((left, 129), (left, 143), width=2)
        x, y, path = 0.0, 0.0, []
        for chosen in buffers:
            mean = [sum(clients[one][axis] for one in chosen) / 3 for axis in (0, 1)]
            x, y = x + eta * (mean[0] - x), y + eta * (mean[1] - y)
            path.append((left + x, 136 + y))
        sheet.line(*path, colour=ORANGE, width=2)
        for at in path:
            sheet.dot(*at, ORANGE, 5)
        sheet.text(left, 232, below, GREY, size=13)
    sheet.text(
        410, 256, "grey: what each client wants; cross: what all want together; orange: the server", GREY, size=13
    )
    return sheet


def mixing() -> Sheet:
    """Draw late news in a valley, which overshoots if it is added and not if it is mixed in."""
    sheet = Sheet(820, 236, "Adding and mixing")
    says = (
        ("A late client began here", "and trained to the bottom.", "the client"),
        ("Adding repeats its move", "from where the server is.", "adding"),
        ("Mixing goes towards its model,", "so it cannot overshoot.", "mixing"),
    )
    for frame, (first, second, title) in enumerate(says):
        left = 46 + 270 * frame
        sheet.text(left + 91, 32, title, (BLUE, ORANGE, GREEN)[frame], size=15)
        sheet.line(*((left + x, _valley(x)) for x in range(8, 176, 4)), colour=GREY, width=2)
        sheet.dot(left + 91, _valley(91) - 9, BLUE, filled=frame == 0)
        if frame == 0:
            sheet.dot(left + 25, _valley(25) - 9, BLUE, filled=False)
            sheet.arrow((left + 36, 86), (left + 84, 86), BLUE)
        elif frame == 1:
            sheet.dot(left + 157, _valley(157) - 9, ORANGE)
            sheet.arrow((left + 100, 86), (left + 148, 86), ORANGE)
        else:
            sheet.dot(left + 91, _valley(91) - 9, GREEN)
        sheet.text(left + 91, 198, first)
        sheet.text(left + 91, 218, second, GREY)
        if frame:
            sheet.line((left - 44, 20), (left - 44, 220), colour=LIGHT)
    return sheet


def heap() -> Sheet:
    """Draw a heap of jobs in three steps: the earliest is taken, a new one is put in, and the heap sorts itself."""
    sheet = Sheet(820, 236, "The event heap sorts itself")
    _moving(
        sheet,
        ".two { animation: two 8s infinite } .three { animation: three 8s infinite }"
        " .falls { animation: falls 8s infinite }"
        " @keyframes two { 0%, 20% { opacity: 0 } 26%, 100% { opacity: 1 } }"
        " @keyframes three { 0%, 46% { opacity: 0 } 52%, 100% { opacity: 1 } }"
        " @keyframes falls { 0%, 54% { transform: translateY(-56px) } 66%, 100% { transform: translateY(0) } }",
    )
    jobs = {"A": ("A, done at 2", BLUE), "B": ("B, done at 3", GREEN), "C": ("C, done at 7", ORANGE)}
    for frame, (title, below) in enumerate(
        (
            ("1  the earliest job is on top", "now: 0"),
            ("2  the clock jumps to it", "now: 2, A's update arrives"),
            ("3  A's next job finds its place", "now: 2, nothing was trained"),
        )
    ):
        left = 30 + 270 * frame
        sheet.parts.append(f'<g class="{("one", "two", "three")[frame]}">')
        sheet.text(left + 110, 32, title, size=15)
        for row, name in enumerate(("ABC", " BC", "B C")[frame]):
            if name != " ":
                sheet.box(left + 20, 52 + 50 * row, 180, 38, *jobs[name])
        if frame == 1:
            sheet.arrow((left + 110, 88), (left + 110, 56), BLUE)
            sheet.text(left + 128, 78, "A leaves", BLUE, "start", 13)
        if frame == 2:
            sheet.parts.append('<g class="falls">')
            sheet.box(left + 20, 102, 180, 38, "A, done at 4", BLUE)
            sheet.parts.append("</g>")
        sheet.text(left + 110, 222, below, GREY, size=13)
        sheet.parts.append("</g>")
        if frame:
            sheet.line((left - 16, 20), (left - 16, 216), colour=LIGHT)
    return sheet


def say() -> Sheet:
    """Draw two clients that are always at work, one of which reports six times as often."""
    sheet = Sheet(820, 236, "Half of the slots, a seventh of the say")
    sheet.text(18, 64, "fast phone", BLUE, "start")
    sheet.text(18, 112, "slow phone", ORANGE, "start")
    for job in range(6):
        sheet.bar(110 + 70 * job, 46, 66, 26, BLUE)
        sheet.dot(110 + 70 * job + 68, 59, INK, 4)
    sheet.bar(110, 94, 416, 26, ORANGE)
    sheet.dot(528, 107, INK, 4)
    sheet.text(320, 30, "a dot is a report", GREY, size=13)
    for y, title, shares in ((162, "jobs in flight", (1, 1)), (202, "reports", (6, 1))):
        sheet.text(100, y + 18, title, anchor="end")
        across = 110.0
        for share, colour in zip(shares, (BLUE, ORANGE), strict=True):
            width = 416 * share / sum(shares)
            sheet.bar(round(across, 1), y, round(width - 3, 1), 26, colour)
            across += width
    sheet.text(566, 64, "Look in at any time:", anchor="start")
    sheet.text(566, 84, "half of the jobs are slow ones.", GREY, "start")
    sheet.text(566, 180, "Count what arrives:", anchor="start")
    sheet.text(566, 200, "one report in seven is slow.", GREY, "start")
    return sheet


def shards() -> Sheet:
    """Draw sorted labels that are cut into shards, of which each client gets two."""
    sheet = Sheet(820, 236, "Shards of labels")
    shades = {"A": BLUE, "B": ORANGE, "C": GREEN}
    sheet.text(18, 34, "1  sort by label", anchor="start", size=15)
    sheet.text(18, 104, "2  cut into shards", anchor="start", size=15)
    sheet.text(18, 184, "3  deal two to each", anchor="start", size=15)
    for place, letter in enumerate("A" * 10 + "B" * 10 + "C" * 10):
        shard = place // 5
        for x, y in ((220 + 18 * place, 20), (190 + 18 * place + 14 * shard, 90)):
            sheet.bar(x, y, 16, 18, shades[letter])
            sheet.text(x + 8, y + 14, letter, "white", size=13)
    for client, dealt in enumerate(((0, 3), (2, 5), (1, 4))):
        left = 200 + 205 * client
        for half, shard in enumerate(dealt):
            letter = "AABBCC"[shard]
            for place in range(5):
                x = left + 18 * place + 96 * half
                sheet.bar(x, 170, 16, 18, shades[letter])
                sheet.text(x + 8, 184, letter, "white", size=13)
        sheet.text(left + 92, 218, f"client {client + 1}", GREY)
    return sheet


def drift() -> Sheet:
    """Draw two clients that walk one step, and the same clients that walk all the way to their own optimum."""
    sheet = Sheet(820, 268, "One step and many")
    for left, share, title, below in (
        (40, 0.3, "one step each", "Their mean points where both want to go."),
        (440, 1.0, "many steps each", "The mean of two optima is not the joint optimum."),
    ):
        start, ends = (left + 40.0, 210.0), ((left + 100.0, 70.0), (left + 300.0, 180.0))
        bends = ((left + 46.0, 96.0), (left + 250.0, 216.0))
        sheet.text(left + 170, 28, title, size=15)
        arrived = []
        for (x, y), (bx, by), colour in zip(ends, bends, (BLUE, ORANGE), strict=True):
            path = [
                ((1 - s) ** 2 * start[0] + 2 * s * (1 - s) * bx + s * s * x,
                 (1 - s) ** 2 * start[1] + 2 * s * (1 - s) * by + s * s * y)
                for s in (share * k / 12 for k in range(13))
            ]  # fmt: skip
            sheet.dot(x, y, colour, 9, filled=False)
            sheet.line(*path, colour=colour, width=3)
            sheet.dot(*path[-1], colour, 5)
            arrived.append(path[-1])
        mean = tuple(sum(one[axis] for one in arrived) / 2 for axis in (0, 1))
        sheet.line(arrived[0], arrived[1], colour=LIGHT, dashed=True)
        sheet.dot(*start, INK, 6)
        sheet.dot(*mean, GREEN, 7)
        cross = (left + 152.0, 172.0)
        sheet.line((cross[0] - 7, cross[1]), (cross[0] + 7, cross[1]), width=2)
        sheet.line((cross[0], cross[1] - 7), (cross[0], cross[1] + 7), width=2)
        sheet.text(left + 170, 240, below, GREY, size=13)
    sheet.text(410, 260, "rings: each client's optimum; cross: the joint optimum; green: the mean", GREY, size=13)
    return sheet


def temperature() -> Sheet:
    """Draw one output at three temperatures."""
    sheet = Sheet(820, 236, "Temperature softens an output")
    logits = (1.0, 0.0, 1.5, 3.0, 2.0, 6.0, 1.0, 0.5, 4.5, 7.0)
    for frame, (heat, title, below) in enumerate(
        ((1, "T = 1", "nearly a label"), (3, "T = 3", "the other classes appear"), (20, "T = 20", "nearly uniform"))
    ):
        left = 46 + 264 * frame
        powers = [math.exp(one / heat) for one in logits]
        for digit, power in enumerate(powers):
            height = 150 * power / sum(powers)
            sheet.bar(left + 20 * digit, round(186 - height, 1), 16, round(height, 1), (BLUE, GREEN, ORANGE)[frame])
            sheet.text(left + 20 * digit + 8, 204, str(digit), GREY, size=13)
        sheet.line((left - 4, 186), (left + 202, 186), colour=GREY)
        sheet.text(left + 98, 32, title, size=15)
        sheet.text(left + 98, 226, below, GREY, size=13)
    return sheet


def landscape() -> Sheet:
    """Draw an arrow that was right where it was computed, is wrong where it arrives, and a model that can be asked."""
    sheet = Sheet(820, 250, "Old arrows and old models")
    for left, shift, title in ((30, 0, "1  computed here, it is right"), (300, 66, "2  added later, it is wrong")):
        sheet.text(left + 110, 32, title, size=15)
        wall = [(left + x, 176 - 0.009 * (x - 130 + shift) ** 2) for x in range(10, 216, 4)]
        sheet.line(*((x, y) for x, y in wall if y > 48), colour=GREY, width=2)
        at = (left + 66.0, 176 - 0.009 * (66 - 130 + shift) ** 2 - 9)
        sheet.dot(*at, BLUE if not shift else ORANGE)
        sheet.arrow((at[0] + 10, at[1] - 14), (at[0] + 66, at[1] - 14), BLUE if not shift else ORANGE)
        sheet.text(left + 110, 204, ("downhill", "the valley has moved: uphill")[shift > 0], GREY, size=13)
    sheet.text(686, 32, "3  but it can be asked", size=15)
    sheet.box(600, 52, 172, 38, "the stale model", BLUE)
    sheet.arrow((640, 92), (640, 118), GREEN)
    sheet.text(654, 110, "what is this image?", GREEN, "start", 13)
    for digit, value in enumerate((0.04, 0.02, 0.1, 0.7, 0.04, 0.3)):
        sheet.bar(626 + 20 * digit, round(180 - 56 * value, 1), 16, round(56 * value, 1), GREEN)
    sheet.line((620, 180), (750, 180), colour=GREY)
    sheet.text(686, 204, "it still knows its classes", GREY, size=13)
    sheet.text(410, 236, "An arrow depends on where it starts. A prediction does not.", size=13)
    return sheet


def store() -> Sheet:
    """Draw a buffer, which every version empties, beside a store that keeps each client's latest prediction."""
    sheet = Sheet(820, 268, "The buffer and the store")
    _moving(
        sheet,
        ".new { animation: new 6s infinite } @keyframes new { 0%, 25% { opacity: 0 } 40%, 100% { opacity: 1 } }",
    )
    sheet.text(170, 30, "the buffer: emptied by every version", BLUE, size=15)
    for version, names in enumerate((("2", "1", "3"), ("1", "3", "2"), ("3", "1", "2"))):
        y = 48 + 58 * version
        sheet.text(20, y + 24, f"version {version + 1}", GREY, "start", 13)
        for place, name in enumerate(names):
            sheet.box(100 + 66 * place, y, 58, 36, name, BLUE)
        sheet.arrow((302, y + 18), (352, y + 18), GREY, 1.5)
    sheet.text(600, 30, "the store: one row per client, always", GREEN, size=15)
    rows = (("client 1", "from version 2", GREEN), ("client 2", "from version 2", GREEN),
            ("client 3", "from version 2", GREEN), ("straggler", "from version 0, still here", ORANGE))  # fmt: skip
    for row, (name, what, colour) in enumerate(rows):
        y = 48 + 44 * row
        sheet.text(430, y + 23, name, GREY, "start")
        if row == 3:
            sheet.box(520, y, 270, 34, what, colour)
        else:
            sheet.box(520, y, 270, 34, "", colour)
            sheet.parts.append('<g class="new">')
            sheet.text(655, y + 22, what)
            sheet.parts.append("</g>")
    sheet.text(410, 250, "The buffer forgets the straggler. The store keeps what its model predicts.", size=13)
    return sheet


def sureness() -> Sheet:
    """Draw a sure and an unsure mean of stored predictions."""
    sheet = Sheet(820, 250, "How sure is the echo?")
    for left, title, below, values, colour in (
        (60, "the stored models agree", "low entropy", (0.02, 0.02, 0.02, 0.88, 0.02, 0.02, 0.02), GREEN),
        (450, "they say different things", "high entropy", (0.16, 0.14, 0.12, 0.18, 0.13, 0.12, 0.15), ORANGE),
    ):
        sheet.text(left + 155, 30, title, colour, size=15)
        for place, value in enumerate(values):
            sheet.bar(left + 44 * place + 4, round(190 - 138 * value, 1), 34, round(138 * value, 1), colour)
            sheet.text(left + 44 * place + 21, 208, "ABCDEFG"[place], GREY, size=13)
        sheet.line((left, 190), (left + 312, 190), colour=GREY)
        sheet.text(left + 155, 234, below, GREY, size=13)
    return sheet


def descent() -> Sheet:
    """Draw a function below its parabola, whose bottom is a step that goes down."""
    sheet = Sheet(820, 268, "A step under a parabola")
    sheet.line((50, 20), (50, 224), colour=GREY)
    sheet.line((50, 224), (520, 224), colour=GREY)
    curve = [(x, 190 - 0.0011 * (x - 380) ** 2 + 10 * math.sin(x / 34)) for x in range(60, 516, 6)]
    sheet.line(*curve, colour=BLUE, width=3)
    x0 = 132
    y0 = 190 - 0.0011 * (x0 - 380) ** 2 + 10 * math.sin(x0 / 34)
    slope = -0.0022 * (x0 - 380) + 10 / 34 * math.cos(x0 / 34)
    bend = 0.0052
    bound = [(x, y0 + slope * (x - x0) - bend / 2 * (x - x0) ** 2) for x in range(66, 470, 6)]
    sheet.line(*((x, y) for x, y in bound if 20 < y < 224), colour=ORANGE, width=2, dashed=True)
    x1 = x0 + slope / bend
    low = y0 + slope * (x1 - x0) - bend / 2 * (x1 - x0) ** 2
    true = 190 - 0.0011 * (x1 - 380) ** 2 + 10 * math.sin(x1 / 34)
    sheet.dot(x0, y0, INK)
    sheet.dot(x1, low, ORANGE, filled=False)
    sheet.dot(x1, true, BLUE)
    sheet.line((x1, low), (x1, true), colour=GREY, dashed=True)
    sheet.text(x0 + 12, y0 - 12, "x", INK, "start", 15)
    sheet.text(540, 70, "blue: the loss, which we do not know", BLUE, "start", 13)
    sheet.text(540, 98, "orange: a parabola above it, which", ORANGE, "start", 13)
    sheet.text(540, 116, "smoothness (L) promises at x", ORANGE, "start", 13)
    sheet.text(540, 152, "Step to the parabola's bottom.", anchor="start", size=13)
    sheet.text(540, 172, "The loss is below the parabola,", anchor="start", size=13)
    sheet.text(540, 192, "so it falls by at least as much.", anchor="start", size=13)
    sheet.text(285, 250, "the model", GREY, size=13)
    return sheet


def stairs() -> Sheet:
    """Draw a loss that goes down stairs, whose drops add up to no more than the whole height."""
    sheet = Sheet(820, 250, "Many steps, one height")
    drops = (52, 34, 30, 16, 14, 8, 7, 5)
    x, y = 90.0, 30.0
    for number, drop in enumerate(drops):
        sheet.line((x, y), (x + 54, y), colour=BLUE, width=3)
        sheet.line((x + 54, y), (x + 54, y + drop), colour=ORANGE, width=3)
        sheet.text(x + 27, y - 7, f"{number}", GREY, size=13)
        x, y = x + 54, y + drop
    sheet.line((x, y), (x + 40, y), colour=BLUE, width=3)
    sheet.line((60, 206), (580, 206), colour=GREY, dashed=True)
    sheet.text(320, 228, "the lowest loss there is", GREY, size=13)
    sheet.arrow((66, 30), (66, 204), GREY, 1.5)
    sheet.text(600, 72, "orange: each step's drop,", ORANGE, "start", 13)
    sheet.text(600, 90, "which is large if the gradient is", ORANGE, "start", 13)
    sheet.text(600, 126, "All drops together fit into", anchor="start", size=13)
    sheet.text(600, 144, "one height. So in many steps,", anchor="start", size=13)
    sheet.text(600, 162, "one gradient must be small.", anchor="start", size=13)
    return sheet


def narrow() -> Sheet:
    """Draw intervals of a mean that narrow with the number of seeds."""
    sheet = Sheet(820, 250, "An interval narrows with seeds")
    _moving(
        sheet,
        ".grow { animation: grow 6s infinite; transform-box: fill-box; transform-origin: center }"
        " @keyframes grow { 0% { transform: scaleX(2) } 50%, 100% { transform: scaleX(1) } }",
    )
    sheet.line((330, 30), (330, 206), colour=GREY, dashed=True)
    sheet.text(330, 226, "0: no difference", GREY, size=13)
    for row, (seeds, quantile, mean) in enumerate(
        ((3, 9.92, 96), (5, 4.60, 62), (10, 3.25, 84), (20, 2.86, 76), (40, 2.71, 80))
    ):
        y, half = 46 + 36 * row, quantile * 50 / math.sqrt(seeds)
        sheet.text(18, y + 5, f"{seeds} seeds", GREY, "start")
        sheet.parts.append('<g class="grow">')
        sheet.line((max(104, 330 + mean - half), y), (min(800, 330 + mean + half), y), colour=GREEN if mean > half
                   else ORANGE, width=5)  # fmt: skip
        sheet.parts.append("</g>")
        sheet.dot(330 + mean, y, INK, 5)
    sheet.text(560, 176, "green: it leaves out 0", GREEN, "start", 13)
    sheet.text(560, 196, "orange: we cannot tell", ORANGE, "start", 13)
    sheet.text(560, 226, "Four times the seeds: half the width.", INK, "start", 13)
    return sheet


def answers() -> Sheet:
    """Draw four intervals beside zero and a margin, with what each of them says."""
    sheet = Sheet(820, 250, "What an interval says")
    sheet.bar(270, 30, 120, 176, "#f3f4f6")
    sheet.line((330, 30), (330, 206), colour=GREY, dashed=True)
    sheet.text(330, 226, "0, with a margin of indifference", GREY, size=13)
    for row, (mean, half, word, says, colour) in enumerate(
        (
            (150, 70, "above", "the first method is better", GREEN),
            (8, 38, "equivalent", "no difference that would matter", BLUE),
            (50, 96, "open", "either may be better: more seeds", ORANGE),
            (-130, 60, "reversed", "the second method is better", INK),
        )
    ):
        y = 54 + 42 * row
        sheet.line((330 + mean - half, y), (330 + mean + half, y), colour=colour, width=5)
        sheet.dot(330 + mean, y, colour, 6)
        sheet.text(560, y - 2, word, colour, "start", 15)
        sheet.text(560, y + 16, says, GREY, "start", 13)
    return sheet


def _in_a_row(sheet: Sheet, steps: Sequence[tuple[str, str]], colours: Sequence[str]) -> None:
    """Draw steps as boxes in a row, each with its words below, joined by arrows."""
    for place, ((step, what), colour) in enumerate(zip(steps, colours, strict=True)):
        x = 24 + 162 * place
        sheet.box(x, 60, 124, 44, step, colour)
        sheet.text(x + 62, 126, what, GREY, size=13)
        if place:
            sheet.arrow((x - 36, 82), (x - 4, 82))


def plan() -> Sheet:
    """Draw the life of a plan, whose result is seen only after the seal."""
    sheet = Sheet(820, 214, "The life of a plan")
    steps = (
        ("write", "question, runs, control"), ("grade", "eight points"), ("seal", "a hash of the text"),
        ("run", "the verdict"), ("open", "the envelope"),
    )  # fmt: skip
    _in_a_row(sheet, steps, (BLUE, BLUE, ORANGE, GREEN, GREEN))
    sheet.line((491, 32), (491, 150), colour=ORANGE, dashed=True)
    sheet.text(260, 40, "no result has been seen", BLUE)
    sheet.text(660, 40, "the plan cannot change", GREEN)
    sheet.line((572, 142), (572, 178), (86, 178), colour=GREY, dashed=True)
    sheet.arrow((86, 178), (86, 140), GREY, 1.5)
    sheet.text(330, 198, "a changed plan is refused: it needs a new seal", GREY, size=13)
    return sheet


def capstone() -> Sheet:
    """Draw a project in five steps, with the seal between the seeds already seen and those that it draws."""
    sheet = Sheet(820, 214, "A project in five steps")
    steps = (
        ("method", "one file"), ("invariants", "and ill copies"), ("pilot", "seeds 0 to 4"),
        ("run", "seeds of the seal"), ("report", "two pages"),
    )  # fmt: skip
    _in_a_row(sheet, steps, (BLUE, BLUE, BLUE, GREEN, GREEN))
    sheet.line((491, 24), (491, 168), colour=ORANGE, width=3)
    sheet.text(260, 40, "what the plan may use", BLUE)
    sheet.text(660, 40, "what nobody has seen", GREEN)
    sheet.text(491, 190, "the seal fixes the plan and draws the seeds", ORANGE)
    sheet.arrow((500, 156), (566, 136), ORANGE)
    return sheet


def burst() -> Sheet:
    """Draw devices that wait until three of them can form a burst."""
    sheet = Sheet(820, 276, "A burst forms")
    jobs = (("fast", 2.0), ("fast", 3.2), ("medium", 4.5), ("slow", 7.3))
    left, unit, top = 110, 64.0, 48
    closes = (4.5, 7.7)
    sheet.text(left, 30, "jobs: dark; waiting: pale; a dashed line is a new version", GREY, "start", 13)
    starts = {0: (0.0, 4.5), 1: (0.0, 4.5), 2: (0.0, 4.5), 3: (0.0,)}
    for row, (speed, length) in enumerate(jobs):
        y = top + 44 * row
        sheet.text(98, y + 18, f"{speed}", GREY, "end", 13)
        for start in starts[row]:
            end = start + length
            close = next((one for one in closes if one >= end - 1e-9), None)
            sheet.bar(left + unit * start, y, unit * (min(end, 10.4) - start) - 2, 26, KUIPER)
            if close is not None and close > end + 0.05:
                sheet.bar(left + unit * end, y + 7, unit * (close - end) - 2, 12, "#e4bcc3")
    for number, close in enumerate(closes, start=1):
        x = left + unit * close
        sheet.line((x, 40), (x, 226), dashed=True)
        sheet.text(x, 244, f"version {number}", INK)
    sheet.text(left + 3 * unit, 262, "three have reported", GREY, size=13)
    sheet.text(left + 8.2 * unit, 262, "the slow one meets two fast ones", GREY, "middle", 13)
    return sheet


def reading() -> Sheet:
    """Draw the three moments in a job at which a training accuracy can be measured."""
    sheet = Sheet(820, 236, "Three readings of training accuracy")
    sheet.line((70, 100), (740, 100), colour=KUIPER, width=4)
    sheet.arrow((700, 100), (760, 100), KUIPER, 4)
    for x, name, says, bar in (
        (110, "received", "what the server sent", 0.45),
        (400, "last epoch", "while it still changes", 0.9),
        (650, "trained", "what goes back", 1.0),
    ):
        sheet.dot(x, 100, KUIPER, 9, filled=name == "received")
        sheet.text(x, 66, name, KUIPER, size=16)
        sheet.text(x, 84, says, GREY, size=13)
        sheet.bar(x - 60, 134, 120, 20, PALE)
        sheet.bar(x - 60, 134, 120 * bar, 20, BLUE)
        sheet.bar(x - 60 + 120 * bar, 134, max(120 * (1 - bar), 1.5), 20, ORANGE)
    sheet.text(255, 124, "local training", GREY, size=13)
    sheet.text(410, 184, "on the client's own samples: right (blue), wrong (orange)", GREY, size=13)
    sheet.text(410, 212, "KUIPER's weight is the orange part. After training there is hardly any left.", size=14)
    return sheet


def pull() -> Sheet:
    """Draw adding a change beside mixing a model that started from an old version."""
    sheet = Sheet(820, 268, "Adding a change, and mixing a model")
    for left, title, colour in ((20, "FedBuff adds the change", BLUE), (430, "KUIPER mixes the model", KUIPER)):
        sheet.text(left + 185, 30, title, colour, size=15)
        sheet.dot(left + 60, 190, GREY, 6, filled=False)
        sheet.text(left + 60, 214, "the version it was sent", GREY, "middle", 13)
        sheet.dot(left + 240, 150, INK, 7)
        sheet.text(left + 240, 176, "the model now", INK, size=13)
        sheet.line((left + 60, 190), (left + 240, 150), colour=LIGHT, dashed=True)
        sheet.arrow((left + 63, 184), (left + 112, 92), GREY)
        sheet.text(left + 62, 124, "its change", GREY, "end", 13)
    sheet.arrow((260, 150), (309, 58), BLUE, 2.5)
    sheet.text(316, 80, "the same change,", BLUE, "start", 13)
    sheet.text(316, 98, "from here", BLUE, "start", 13)
    sheet.dot(542, 88, GREY, 6)
    sheet.text(542, 72, "its model", GREY, size=13)
    sheet.arrow((664, 146), (606, 118), KUIPER, 2.5)
    sheet.line((606, 118), (548, 90), colour=KUIPER, dashed=True)
    sheet.text(650, 96, "part of the way", KUIPER, "start", 13)
    sheet.text(650, 114, "to its model", KUIPER, "start", 13)
    sheet.text(
        410, 250, "Mixing goes forwards along the change, and backwards towards the version that it was sent.", size=13
    )
    return sheet


def swap() -> Sheet:
    """Draw how an update's share gives way to distillation as staleness grows."""
    sheet = Sheet(820, 236, "A stale update gives way")
    sheet.text(20, 30, "what the server takes from one arrival", INK, "start", 15)
    for row, (name, share) in enumerate((("fresh", 0.0), ("a little late", 0.25), ("late", 0.6), ("very late", 1.0))):
        y = 48 + 40 * row
        sheet.text(150, y + 19, name, GREY, "end")
        width = 560 * (1 - share)
        if width:
            sheet.bar(170, y, width - 2, 28, BLUE)
        if share:
            sheet.bar(170 + width, y, 560 - width, 28, FEDREVIVE)
    sheet.text(180, 67, "the client's own update", "white", "start", 13)
    sheet.text(720, 187, "what the teachers say today", "white", "end", 13)
    sheet.text(450, 224, "A client's own step is old. What its model says about an image is never old.", size=13)
    return sheet


def questions() -> Sheet:
    """Draw the three questions that the generator's loss asks about an image."""
    sheet = Sheet(820, 250, "Three questions about a generated image")
    blot = ("..##.", ".#..#", "..##.", ".#..#", "..##.")
    for down, row in enumerate(blot):
        for across, cell in enumerate(row):
            sheet.bar(40 + 24 * across, 62 + 24 * down, 23, 23, INK if cell == "#" else PALE)
    sheet.text(99, 46, "asked for: an 8", GREY, size=13)
    for row, (asked, answer, who) in enumerate(
        (
            ("Do the teachers see the class?", "yes, an 8", "target term"),
            ("Does it look like data inside a network?", "the layer's statistics fit", "feature term"),
            ("Is there something to learn?", "the student is less sure", "adversarial term"),
        )
    ):
        y = 52 + 62 * row
        sheet.arrow((170, 122), (236, y + 20), GREY, 1.5)
        sheet.box(244, y, 310, 40, asked, FEDREVIVE)
        sheet.text(572, y + 17, answer, INK, "start")
        sheet.text(572, y + 36, who, FEDREVIVE, "start", 13)
    return sheet


def loop() -> Sheet:
    """Draw the generator's loop: make, ask, improve a copy, and move a little towards it."""
    sheet = Sheet(820, 250, "The generator's loop")
    steps = (("noise and classes", GREY), ("generator's copy", FEDREVIVE), ("images", INK), ("teachers, student", BLUE))
    for place, (name, colour) in enumerate(steps):
        x = 24 + 202 * place
        sheet.box(x, 50, 150, 46, name, colour)
        if place:
            sheet.arrow((x - 50, 73), (x - 4, 73))
    sheet.line((705, 98), (705, 136), (300, 136), colour=ORANGE, width=2)
    sheet.arrow((300, 136), (300, 100), ORANGE)
    sheet.text(516, 154, "loss: improve the copy and the noise", ORANGE, "start", 13)
    sheet.line((504, 98), (504, 158), colour=GREEN, width=2)
    sheet.arrow((504, 158), (504, 180), GREEN)
    sheet.box(400, 182, 208, 42, "pool of the best images", GREEN)
    sheet.arrow((250, 98), (180, 180), FEDREVIVE)
    sheet.box(56, 182, 236, 42, "the generator itself", FEDREVIVE)
    sheet.text(74, 142, "moves a little", FEDREVIVE, "start", 13)
    sheet.text(74, 160, "towards its copy", FEDREVIVE, "start", 13)
    return sheet


def taught() -> Sheet:
    """Draw a late model that is taught by the latest one before the two are mixed."""
    sheet = Sheet(820, 236, "A lesson before mixing")
    for left, title, colour in (
        (20, "FedAsync mixes the late model in as it is", GREY),
        (430, "FedADT teaches it first", FEDADT),
    ):
        sheet.text(left + 180, 30, title, colour, size=15)
        sheet.dot(left + 70, 80, INK, 8)
        sheet.text(left + 70, 62, "latest version", INK, size=13)
        sheet.dot(left + 320, 170, ORANGE, 8)
        sheet.text(left + 320, 196, "late model", ORANGE, size=13)
    sheet.arrow((96, 84), (150, 104), GREY, 2.5)
    sheet.line((150, 104), (336, 168), colour=LIGHT, dashed=True)
    sheet.text(110, 132, "a small step", GREY, "middle", 13)
    sheet.arrow((744, 162), (632, 104), FEDADT, 2.5)
    sheet.dot(622, 98, FEDADT, 8)
    sheet.text(706, 104, "a lesson from", FEDADT, "start", 13)
    sheet.text(706, 122, "teacher, labels", FEDADT, "start", 13)
    sheet.arrow((508, 82), (556, 89), GREY, 2.5)
    sheet.line((556, 89), (614, 97), colour=LIGHT, dashed=True)
    sheet.text(540, 132, "the same small step,", GREY, "middle", 13)
    sheet.text(540, 150, "to a better place", GREY, "middle", 13)
    sheet.text(410, 224, "The teacher is the latest global model. The server has a few labelled samples.", size=13)
    return sheet


def shares() -> Sheet:
    """Draw a global model as a bar of the shares of the arrivals that made it."""
    sheet = Sheet(820, 200, "What the global model is made of")
    sheet.text(20, 30, "the global model after each arrival, as shares of the models that made it", INK, "start", 15)
    beta, names = 0.3, ("first", "second", "third", "fourth")
    shades = ("#c9bfe0", "#a794cc", "#8169b8", FEDADT)
    parts = [1.0]
    for row, name in enumerate(names):
        y = 48 + 30 * row
        parts = [(1 - beta) * part for part in parts] + [beta]
        sheet.text(150, y + 17, f"{name} arrival", GREY, "end", 13)
        x = 170.0
        for number, part in enumerate(parts):
            sheet.bar(x, y, 560 * part - 2, 24, LIGHT if number == 0 else shades[number - 1])
            x += 560 * part
    sheet.text(410, 190, "Each arrival takes its share from all before it, so earlier ones fade.", size=13)
    return sheet


def pulls() -> Sheet:
    """Draw the teacher's pull and the label's push on a student, at their true proportions."""
    sheet = Sheet(820, 200, "The teacher's pull and the label's push")
    for left, title, pull in ((40, "as the loss is printed", 34), (440, "as in Hinton's paper, times T squared", 190)):
        sheet.text(left + 150, 30, title, INK, size=15)
        sheet.dot(left + 40, 110, ORANGE, 9)
        sheet.text(left + 40, 140, "student", ORANGE, size=13)
        sheet.arrow((left + 52, 102), (left + 270, 62), BLUE, 3)
        sheet.text(left + 280, 66, "label", BLUE, "start")
        sheet.arrow((left + 52, 114), (left + 52 + pull, 114 + pull * 0.12), FEDADT, 3)
        sheet.text(left + 62 + pull, 122 + pull * 0.12, "teacher", FEDADT, "start")
    sheet.text(
        410, 184, "Softening shrinks the teacher's part twice, and the printed loss does not make up for it.", size=13
    )
    return sheet


def rows() -> Sheet:
    """Draw a table of tokens and the rows that two clients move."""
    sheet = Sheet(820, 250, "Rows of the table of tokens")
    words = ("the", "cat", "sat", "dog", "ran", "ship")
    users = {"the": (BLUE, ORANGE), "cat": (BLUE,), "sat": (BLUE,), "dog": (ORANGE,), "ran": (ORANGE,), "ship": ()}
    sheet.text(410, 28, "table of tokens: one row a word", INK, size=15)
    sheet.text(120, 78, "client 1 holds", BLUE)
    sheet.text(120, 100, "the cat sat", BLUE, size=16)
    sheet.text(700, 78, "client 2 holds", ORANGE)
    sheet.text(700, 100, "the dog ran", ORANGE, size=16)
    for place, word in enumerate(words):
        y = 42 + 30 * place
        sheet.text(316, y + 19, word, INK, "end")
        for column in range(6):
            sheet.bar(330 + 28 * column, y, 26, 26, PALE)
        if BLUE in users[word]:
            sheet.bar(326, y, 5, 26, BLUE)
            sheet.line((190, 96), (262, y + 14), colour=BLUE)
        if ORANGE in users[word]:
            sheet.bar(498, y, 5, 26, ORANGE)
            sheet.line((636, 96), (510, y + 14), colour=ORANGE)
    sheet.text(410, 242, "Nobody moves the last row. Averaging halves what only one client says.", GREY, size=13)
    return sheet


def prompts() -> Sheet:
    """Draw a text of soft prompts and a snippet, and what becomes of each."""
    sheet = Sheet(820, 220, "Soft prompts and a snippet")
    sheet.bar(24, 60, 158, 44, FEDREVIVE)
    sheet.bar(186, 60, 268, 44, GREY)
    sheet.text(103, 88, "soft prompts", "white", size=13)
    sheet.text(320, 88, "a snippet's embeddings", "white", size=13)
    sheet.arrow((460, 82), (524, 82))
    sheet.box(530, 60, 120, 44, "teachers", BLUE)
    sheet.arrow((652, 82), (700, 82))
    sheet.text(706, 80, "how sure of", INK, "start", 13)
    sheet.text(706, 97, "the class?", INK, "start", 13)
    sheet.line((590, 58), (590, 34), (240, 34), colour=ORANGE, width=2)
    sheet.arrow((240, 34), (240, 56), ORANGE)
    sheet.text(420, 26, "the gradient changes both", ORANGE, size=13)
    sheet.arrow((103, 108), (103, 150), FEDREVIVE)
    sheet.text(103, 172, "kept, moved a little", FEDREVIVE)
    sheet.arrow((320, 108), (320, 150), GREY)
    sheet.text(320, 172, "forgotten", GREY)
    sheet.text(410, 206, "Words are whole numbers, so the server moves their embeddings instead.", size=13)
    return sheet


def frames() -> Sheet:
    """Draw the frames of a moving digit, and two clips that share them."""
    sheet = Sheet(820, 250, "Frames of a moving digit")
    for clip, (name, shifts, colour) in enumerate(
        (("moves right", (0, 1, 2, 3), BLUE), ("moves left", (3, 2, 1, 0), ORANGE))
    ):
        y = 40 + 92 * clip
        sheet.text(20, y + 38, name, colour, "start", 15)
        for frame, shift in enumerate(shifts):
            x = 140 + 160 * frame
            sheet.bar(x, y, 110, 66, PALE)
            sheet.text(x + 22 + 22 * shift, y + 48, "7", INK, size=40)
            if frame:
                sheet.arrow((x - 40, y + 33), (x - 12, y + 33), GREY, 1.5)
    for frame in range(4):
        sheet.text(195 + 160 * frame, 28, f"frame {frame + 1}", GREY, size=13)
    sheet.text(
        410, 234, "The same four pictures in another order: only their order tells the two classes apart.", size=13
    )
    return sheet


def chain() -> Sheet:
    """Draw a chain of teachers and its control, the same small network without a teacher."""
    sheet = Sheet(820, 236, "A chain of teachers and its control")
    sheet.text(20, 66, "chain", GREEN, "start", 15)
    sheet.text(20, 176, "control", ORANGE, "start", 15)
    for x, width, height, name in (
        (130, 170, 76, "large network"),
        (380, 150, 56, "assistant"),
        (610, 130, 40, "small"),
    ):
        sheet.box(x, 62 - height / 2, width, height, name, GREEN)
    sheet.arrow((302, 62), (376, 62), GREEN)
    sheet.arrow((532, 62), (606, 62), GREEN)
    sheet.text(339, 50, "teaches", GREEN, size=13)
    sheet.text(569, 50, "teaches", GREEN, size=13)
    sheet.box(380, 150, 150, 44, "labelled clips", GREY)
    sheet.box(610, 152, 130, 40, "small", ORANGE)
    sheet.arrow((532, 172), (606, 172), ORANGE)
    sheet.line((455, 148), (455, 126), (215, 126), colour=LIGHT, width=2)
    sheet.arrow((215, 126), (215, 104), LIGHT)
    sheet.arrow((455, 126), (455, 94), LIGHT)
    sheet.text(
        410,
        224,
        "Both small networks see the same clips. Only then does the difference belong to the teachers.",
        size=13,
    )
    return sheet


def answering() -> Sheet:
    """Draw a model that writes an answer token by token."""
    sheet = Sheet(820, 236, "Writing an answer")
    written = ["4", "+", "7", "[ANSWER]"]
    for row, token in enumerate(("1", "1", "[END]")):
        y = 44 + 56 * row
        for place, one in enumerate(written):
            sheet.box(20 + 80 * place, y, 74, 36, one, GREEN if place > 3 else GREY)
        x = 20 + 80 * len(written)
        sheet.arrow((x, y + 18), (x + 40, y + 18))
        sheet.text(x + 50, y + 23, f"most probable next: {token}", GREEN, "start")
        written.append(token)
    sheet.text(20, 28, "the model reads all so far, and adds one token", INK, "start", 15)
    sheet.text(410, 224, "A wrong token is read as well, so one mistake leads to others.", GREY, size=13)
    return sheet


def whole() -> Sheet:
    """Draw how few answers are right as a whole if each token is right more often than not."""
    sheet = Sheet(820, 220, "Right tokens and right answers")
    pattern = ("111", "110", "101", "011", "111", "100", "110", "011")
    sheet.text(20, 30, "eight answers of three tokens: right (green), wrong (orange)", INK, "start", 15)
    for place, answer in enumerate(pattern):
        x = 30 + 98 * place
        for token, right in enumerate(answer):
            sheet.bar(x + 26 * token, 56, 24, 40, GREEN if right == "1" else ORANGE)
        whole_right = answer == "111"
        sheet.text(x + 38, 124, "right" if whole_right else "wrong", GREEN if whole_right else ORANGE)
    sheet.text(410, 166, "Most tokens are right, and most answers are wrong.", size=14)
    sheet.text(410, 196, "An answer counts only if every token of it is right.", GREY, size=13)
    return sheet


def hidden() -> Sheet:
    """Draw two accuracy curves that look alike although one server has a bug."""
    sheet = Sheet(820, 250, "A bug that no curve shows")
    sheet.text(230, 30, "what an author sees", INK, size=15)
    sheet.text(620, 30, "what a bench sees", INK, size=15)
    sheet.line((60, 50), (60, 200), (400, 200), colour=GREY)
    sheet.text(230, 222, "versions", GREY, size=13)
    curve = [(60 + 17 * step, 196 - 120 * (1 - 0.8**step) + (5 if step % 3 else -4)) for step in range(20)]
    sheet.line(*curve, colour=ORANGE, width=2.5)
    sheet.text(270, 150, "accuracy of the buggy copy:", ORANGE, size=13)
    sheet.text(270, 168, "it looks like any other", ORANGE, size=13)
    for row, (name, moves, colour) in enumerate((("healthy", 0, GREEN), ("buggy copy", 46, ORANGE))):
        y = 84 + 74 * row
        sheet.text(560, y + 5, name, colour, "end")
        sheet.dot(590, y, colour)
        sheet.text(590, y + 28, "before", GREY, size=13)
        if moves:
            sheet.arrow((600, y), (600 + moves, y), colour)
            sheet.dot(600 + moves + 12, y, colour)
            sheet.text(720, y + 5, "it moves!", colour, "start")
        else:
            sheet.text(720, y + 5, "it stays", colour, "start")
    sheet.text(620, 222, "a buffer of zeros is sent to both", GREY, size=13)
    return sheet


def leak() -> Sheet:
    """Draw a buffer that is emptied after a version, and one that is not."""
    sheet = Sheet(820, 236, "A buffer that leaks into the next")
    for row, (name, colour, left_over) in enumerate((("healthy", GREEN, 0), ("buggy copy", ORANGE, 3))):
        y = 56 + 84 * row
        sheet.text(120, y + 24, name, colour, "end", 15)
        for buffer in range(2):
            x = 150 + 330 * buffer
            sheet.box(x, y, 190, 40, "", GREY)
            for place in range(3):
                sheet.dot(x + 28 + 34 * place, y + 20, BLUE if buffer == 0 else LIGHT, 11)
            if buffer and left_over:
                for place in range(2):
                    sheet.dot(x + 130 + 34 * place, y + 20, BLUE, 11)
            sheet.arrow((x + 192, y + 20), (x + 240, y + 20), colour)
            moved = buffer == 0 or left_over
            sheet.text(x + 246, y + 25, "moves" if moved else "stays", colour if moved else GREY, "start", 13)
    sheet.text(245, 30, "first buffer: ones", BLUE)
    sheet.text(575, 30, "second buffer: zeros", GREY)
    sheet.text(
        410, 222, "Nothing in, nothing out: only the second buffer shows what the first has left behind.", size=13
    )
    return sheet


DRAWINGS: dict[str, Callable[[], Sheet]] = {
    name: one for name, one in globals().items() if getattr(one, "__annotations__", None) == {"return": "Sheet"}
}

if __name__ == "__main__":
    for name, drawn in DRAWINGS.items():
        (FOLDER / f"idea_{name}.svg").write_text(drawn().svg(), encoding="utf-8")

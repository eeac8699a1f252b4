"""Draw ideas of the lessons from KUIPER on as SVG: ``python docs/pictures/ideas_of_methods.py`` writes all of them."""

from __future__ import annotations

from collections.abc import Callable

from ideas import BLUE, FOLDER, GREY, INK, LIGHT, ORANGE, Sheet

KUIPER, FEDADT, FEDREVIVE, PALE = "#a51c30", "#5b3fa0", "#a8559a", "#f3f4f6"


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


DRAWINGS: dict[str, Callable[[], Sheet]] = {"burst": burst, "reading": reading, "pull": pull}

if __name__ == "__main__":
    for name, drawn in DRAWINGS.items():
        (FOLDER / f"idea_{name}.svg").write_text(drawn().svg(), encoding="utf-8")

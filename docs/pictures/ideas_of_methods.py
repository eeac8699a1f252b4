"""Draw ideas of the lessons from KUIPER on as SVG: ``python docs/pictures/ideas_of_methods.py`` writes all of them."""

from __future__ import annotations

from collections.abc import Callable

from ideas import BLUE, FOLDER, GREEN, GREY, INK, LIGHT, ORANGE, Sheet

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
    "burst": burst,
    "reading": reading,
    "pull": pull,
    "swap": swap,
    "questions": questions,
    "loop": loop,
    "taught": taught,
    "shares": shares,
    "pulls": pulls,
    "rows": rows,
    "prompts": prompts,
    "frames": frames,
    "chain": chain,
    "answering": answering,
    "whole": whole,
    "hidden": hidden,
    "leak": leak,
}

if __name__ == "__main__":
    for name, drawn in DRAWINGS.items():
        (FOLDER / f"idea_{name}.svg").write_text(drawn().svg(), encoding="utf-8")

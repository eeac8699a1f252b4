"""Draw the course as a map: ``python docs/pictures/course_map.py``.

The map has a row of lessons for each part, arrows for their order, and letters for the paths.
"""

from __future__ import annotations

from board import GREY, INK, Board, Place

from asyncfl_course.explore.course import COURSE, PATHS, Lesson
from asyncfl_course.explore.diagrams import COURSE_MAP, PICTURES
from asyncfl_course.minutes import hours
from asyncfl_lite.base.style import ACCENT

SHADES = dict(zip("HWR", (ACCENT, "#0f766e", "#6d28d9"), strict=True))
"""Colour of each path's letter."""
BOX = (112.0, 60.0)
"""Width and height of a lesson."""
LEFT, GAP, TOP, ROW = 128.0, 13.0, 58.0, 92.0
"""Left edge of the lessons, space between them, upper edge of the first row, and distance between rows."""
MARGIN = 14.0
"""Horizontal position of the arrow that runs past the parts."""


def _frame(row: int) -> Place:
    """Return the outline of a part, as wide as its lessons."""
    count = len(COURSE[row].lessons)
    return Place(32, TOP + row * ROW, LEFT - 32 + count * (BOX[0] + GAP) - GAP + 7, BOX[1] + 14)


def _lesson(board: Board, lesson: Lesson, place: Place) -> None:
    """Draw a lesson: number and title, minutes, and the letters of its paths at the bottom."""
    board.box(place)
    middle = place.x + place.width / 2
    said = {"anchor": "middle", "inside": place}
    board.text(lesson.number, middle, place.y + 16, size=12, colour=GREY, **said)
    board.text(lesson.title, middle, place.y + 32, size=13, bold=True, **said)
    paths = [path for path in PATHS if lesson.number in path.numbers]
    board.text(
        f"{lesson.reading + lesson.exercises} min", place.x + 8, place.y + 51, size=12, colour=GREY, inside=place
    )
    for step, path in enumerate(reversed(paths)):
        x = place.x + place.width - 13 - 16 * step
        board.text(path.letter, x, place.y + 51, size=12, bold=True, colour=SHADES[path.letter], **said)


def course_map() -> str:
    """Return the map of the course, with all lessons and their minutes in parts, and the three paths."""
    board = Board(ACCENT, TOP + len(COURSE) * ROW + 66)
    board.text("The course", 22, 34, size=17, bold=True)
    board.text("arrows: the order to read in; minutes: with the exercises", 160, 34, size=12, colour=GREY)
    frames = [_frame(row) for row in range(len(COURSE))]
    for part, frame in zip(COURSE, frames, strict=True):
        board.frame(frame)
        board.text(part.title, frame.x + 10, frame.y + frame.height / 2 + 5, bold=True, colour=INK, inside=frame)
        places = [Place(LEFT + step * (BOX[0] + GAP), frame.y + 7, *BOX) for step in range(len(part.lessons))]
        for before, after in zip(places, places[1:], strict=False):
            if part.in_a_row:
                board.line(before.right, after.left)
        for lesson, place in zip(part.lessons, places, strict=True):
            _lesson(board, lesson, place)
    for above, below in zip(frames[:-3], frames[1:-2], strict=True):
        board.line((above.x + 48, above.y + above.height), (above.x + 48, below.y))
    servers, judging, own = frames[1], frames[-2], frames[-1]
    board.line((judging.x + 48, judging.y + judging.height), (judging.x + 48, own.y))
    board.line(servers.left, (MARGIN, servers.left[1]), (MARGIN, judging.left[1]), judging.left)
    foot = frames[-1].y + ROW + 8
    for step, path in enumerate(PATHS):
        board.text(path.letter, 28, foot + 19 * step, bold=True, colour=SHADES[path.letter], anchor="middle")
        told = f"{path.title} ({hours(path.minutes)}): {path.says}"
        board.text(told, 42, foot + 19 * step, size=12.5, colour=INK)
    said = "; ".join(
        f"{part.title}: " + ", ".join(f"{one.number} {one.title}" for one in part.lessons) for part in COURSE
    )
    alt = (
        f"Map of the course. {said}. The first four parts build on one another; judging needs the servers alone, "
        "and your own method needs judging. "
        "Letters mark the lessons of three paths."
    )
    return board.svg("The course", alt)


if __name__ == "__main__":
    (PICTURES / f"{COURSE_MAP}.svg").write_text(course_map(), encoding="utf-8")

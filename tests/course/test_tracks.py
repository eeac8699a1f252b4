"""The tracks of ten minutes: play, five cells, one exercise of the lesson, one picture from the records, one link."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from exercises import exercises_of
from quotes import unfounded, unsupported
from records import TAG, showing_records
from test_lessons import ELSEWHERE

from asyncfl_course.student import TRACK, books

ROOT = Path(__file__).parents[2]
TRACKS = [path for path in books(ROOT) if path.stem.endswith(TRACK)]
each = pytest.mark.parametrize("path", TRACKS, ids=lambda path: path.stem)


def test_there_is_one_for_each_papers_method_and_the_lessons_page_lists_them():
    methods = [path.stem.removesuffix(TRACK) for path in TRACKS]
    assert methods == ["fedadt", "fedecho", "fedrevive", "kuiper"]
    listed = (ROOT / "notebooks/README.md").read_text()
    assert all(f"({path.name})" in listed for path in TRACKS)


@each
def test_a_track_is_short_and_says_what_its_outputs_say(path):
    cells = nbformat.read(path, as_version=4).cells
    method, code = path.stem.removesuffix(TRACK), [cell for cell in cells if cell.cell_type == "code"]
    assert f'explorable("explore_{method}")' in code[0].source and "<iframe" in code[0].outputs[0].data["text/html"]
    assert len(code) == 7 and sum(len(cell.source.split()) for cell in cells if cell.cell_type == "markdown") <= 600
    assert unsupported(cells, ELSEWHERE.get(path.stem, ())) == [] == unfounded(cells)
    (verdict,) = showing_records(cells)
    assert verdict is code[-1] and TAG in verdict.metadata.tags and "image/png" in verdict.outputs[-1].data
    links = cells[-1].source.count("](")
    assert links == 1 and (path.parent / cells[-1].source.partition("](")[2].partition(")")[0]).exists()


@each
def test_its_exercise_is_that_of_the_lesson(path):
    (stub,) = exercises_of(path)
    (lesson,) = (ROOT / "notebooks").glob(f"{stub.id.partition('.')[0]}_*.ipynb")
    theirs = next(one for one in exercises_of(lesson) if one.id == stub.id)
    assert (stub.code, stub.solution) == (theirs.code, theirs.solution) and "Hint" in stub.folds[0]


@each
def test_it_was_run_whole_and_in_order(path):
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))

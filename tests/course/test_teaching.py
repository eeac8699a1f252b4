"""The teaching kit: the table of slots and the slides made from it, what a class has solved, and a machine's check."""

from __future__ import annotations

import json
import re

import pytest

from asyncfl_course import lessons, teaching
from conftest import ROOT

PAGE = (ROOT / "docs/teaching.md").read_text()
SLOTS = teaching.slots(PAGE)


def test_each_slot_has_a_picture_and_exercises_of_its_lesson():
    assert [slot.number for slot in SLOTS] == [str(number) for number in range(1, 13)]
    for slot in SLOTS:
        assert (ROOT / "docs" / slot.picture).is_file(), slot
        asked = re.findall(r"\d+\.\d+", slot.exercises)
        assert asked and set(asked) <= set(lessons.exercises()) and asked[0][:2] == slot.lesson[:2], slot
        assert slot.question.endswith("?") and slot.discuss.endswith("?"), slot


def test_the_ready_session_fills_ninety_minutes_with_exercises_of_its_slots():
    times = [tuple(map(int, pair)) for pair in re.findall(r"^\| (\d+)–(\d+) \|", PAGE, re.M)]
    assert times[0][0] == 0 and times[-1][1] == 90
    assert all(before[1] == after[0] for before, after in zip(times, times[1:], strict=False))
    table = PAGE.partition("## A session")[2].partition("## Twelve")[0]
    first = {slot.number: slot for slot in SLOTS}
    known = " ".join(first[number].exercises for number in teaching.PLANS["90"][0])
    given = re.findall(r"\d\d\.\d", table)
    assert len(given) >= 3 and all(id in known for id in given)


def test_slides_need_no_network_and_lead_to_files(tmp_path):
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    assert teaching.write_slides(tmp_path) == ["90.html", "2x90.html", "6x45.html"]
    for name, sessions in teaching.PLANS.items():
        page = (tmp_path / f"slides/{name}.html").read_text()
        assert not re.search(r"https?:|//", page)
        shown = re.findall(r' src="([^"#]+)', page)
        assert all((tmp_path / "slides" / path).exists() for path in shown)
        assert page.count("<section>") == sum(1 + sum(3 + (slot in teaching.LIVE) for slot in one) for one in sessions)
    assert "An hour with a slow phone" in (tmp_path / "slides/90.html").read_text()
    assert len(list((tmp_path / "slides/pictures").iterdir())) == 12


def handed_in(state: str, wrong: int, **more: str) -> dict:
    return {"exercises": {"00.1": {"state": state, "wrong": wrong, **more}}, "recall": {}}


def test_what_a_class_has_solved_is_a_table(tmp_path):
    given = {
        "ada/progress.json": handed_in("right", 2, solved="2026-03-01"),
        "bob_progress.json": handed_in("wrong", 3),
        "cleo.json": {"exercises": {}, "recall": {}},
        "dan/progress.json": [],
        "eve.json": {"exercises": {"00.1": "right"}},
    }
    for name, content in given.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(content))
    lines = teaching.collect(tmp_path).splitlines()
    assert [line.split() for line in lines[1:4]] == [
        ["ada", "1", "2", "2026-03-01"],
        ["bob", "0", "3"],
        ["cleo", "0", "0"],
    ]
    assert lines[4] == "Solved by half of the class or fewer: 00.1 (1)"
    assert lines[5] == "Cannot be read: dan/progress.json, eve.json"


def test_a_machine_that_lacks_something_is_not_ready(monkeypatch, capsys):
    def broken():
        raise OSError("no room\nhere")

    monkeypatch.setattr(teaching, "READY", {"disk": teaching._room, "training": teaching._training, "lesson": broken})
    assert teaching.main(["ready"]) == 1
    said = capsys.readouterr().out.splitlines()
    assert [line[0] for line in said] == ["✓", "✓", "✗", "N"] and said[2].endswith("OSError: no room")
    monkeypatch.setattr(teaching, "READY", {"disk": teaching._room})
    assert teaching.main(["ready"]) == 0 and "Ready: type make lab." in capsys.readouterr().out


@pytest.mark.long
def test_the_lesson_that_is_tried_runs_in_a_kernel(monkeypatch, as_for_lessons):
    monkeypatch.chdir(ROOT)
    assert "lesson 00" in teaching._lesson()


@pytest.mark.parametrize("given", [["collect"], ["slides", "."], ["collect", "no-such-folder"]])
def test_a_folder_is_for_collect_alone(given, capsys):
    with pytest.raises(SystemExit):
        teaching.main(given)
    assert "collect needs a folder" in capsys.readouterr().err

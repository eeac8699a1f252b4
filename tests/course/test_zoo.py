"""The bug zoo: each bug is there, by a number worked by hand, alone, and asleep in the settings that say so."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
import torch
from solutions import exercises_of

from asyncfl_course import lessons, zoo
from asyncfl_course.zoo import cards, training
from asyncfl_lite import Config
from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.base.errors import AsyncFLError
from conftest import ROOT

LESSON = ROOT / "notebooks/17_bug_zoo.ipynb"
LETTERS = "ABCDEFGHIJKL"
each = pytest.mark.parametrize("letter", LETTERS)


def test_there_are_twelve_on_four_shelves():
    assert "".join(zoo.EXHIBITS) == LETTERS
    assert [len(shelf) for shelf in zoo.SHELVES.values()] == [3, 3, 3, 3]
    assert set(cards.NAMING.values()) == {"ABC", "DEF", "GHI", "JKL"}
    assert len({one.method for one in zoo.EXHIBITS.values()}) == 11


@each
def test_one_place_is_changed(letter):
    lines = zoo.exhibit(letter).reveal().splitlines()[2:]
    assert len([line for line in lines if line.startswith("@@")]) == 1
    assert [line[0] for line in lines if line[:1] in ("-", "+")] == ["-", "+"]


@each
def test_the_copy_is_no_subclass_and_leaves_the_registry_alone(letter):
    one, known = zoo.exhibit(letter), list(ALGORITHMS)
    assert one.cls not in one.ill_cls.__mro__ and one.ill_cls.__name__ == one.cls.__name__
    with one.registered() as name:
        assert ALGORITHMS.get(name) is one.ill_cls
    assert list(ALGORITHMS) == known


def moves(*sent, **more):
    """By how much each of the six parameters moves, which is the same for all, when deltas are sent or fill a buffer."""

    def drive(server):
        before = server.x.clone()
        for how, delta, given in sent:
            getattr(zoo, how)(server, delta, **given)
        if more:
            server.flush()
        steps = server.x - before
        assert torch.allclose(steps, steps[0].expand(6))
        return float(steps[0])

    return drive


def fill(delta):
    return "fill", delta, {}


def send(delta, **given):
    return "send", delta, given


def old_version(server):
    first, copy = server.x, server.x.clone()
    zoo.fill(server, 1.0)
    return float((first - copy)[0])


def remembered(server):
    for client in range(zoo.CLIENTS):
        zoo.send(server, 0.1, client=client)
    return len(server.logits)


def denominator(server):
    zoo.fill(server, 1.0)
    zoo.fill(server, 0.0)
    return float(server.largest_square[0])


def noted(server):
    zoo.send(server, -0.03, correction=torch.full_like(server.x, 2.0))
    return float(server.controls[0][0])


def drawn_elsewhere(server):
    np.random.seed(0)
    before = np.random.get_state()[2]
    for _ in range(4):
        zoo.send(server, 1.0, staleness=server.version)
    return np.random.get_state()[2] != before


def velocity(server):
    zoo.fill(server, 1.0)
    saved = server.state()
    zoo.fill(server, 1.0)
    server.restore(saved)
    return float(server.velocity[0])


BURST = send(0.0), send(1.0, client=1, trained_accuracy=0.9)
BY_HAND = {
    "A": (moves(fill(1.0), fill(0.0)), 0.5, 0.5 + 0.5 * 2 / 4),  # the second mean is of all four
    "B": (old_version, 0.0, 0.5),
    "C": (moves(send(1.0), flush=True), 0.5, 0.5 / 3),  # a short round
    "D": (moves(send(1.0)), 0.6, 0.4),
    # the third on 1.5, the mean of the first two
    "E": (moves(send(1.0, staleness=0), send(1.0, staleness=0), send(0.0, staleness=2)), (1 + 2 + 0) / 3, (1 + 2 + 1.5) / 3),
    "F": (moves(*BURST), 0.7 * 0.5, 0.7 * 0.1 / (0.5 + 0.1)),
    "G": (moves(fill(1.0)), 0.5, 0.0),
    "H": (remembered, 6, 2),
    "I": (denominator, 0.01, 0.01 * 0.99),
    "J": (noted, 3 - 2, 3),
    "K": (drawn_elsewhere, False, True),
    "L": (velocity, 1.0, 0.9 + 1.0),
}  # fmt: skip


@each
def test_the_bug_is_there_by_a_number_worked_by_hand(letter):
    drive, healthy, ill = BY_HAND[letter]
    one = zoo.exhibit(letter)
    assert drive(one.healthy()) == pytest.approx(healthy, abs=1e-12)
    assert drive(one.ill()) == pytest.approx(ill, abs=1e-12)


@each
def test_settings_in_which_it_sleeps_are_so(letter):
    """Nine updates of all kinds move both servers alike."""
    for settings in zoo.exhibit(letter).asleep:
        servers = zoo.exhibit(letter).healthy(**settings), zoo.exhibit(letter).ill(**settings)
        for server in servers:
            for step in range(9):
                report = {
                    "num_samples": step + 1,
                    "received_accuracy": 0.1 * step,
                    "trained_accuracy": 0.9 - 0.05 * step,
                }
                delta = [0.1 * step, 1.0, -1.0, 0.5, 0.0, 0.2]
                zoo.send(server, delta, client=step % 5, staleness=min(server.version, step % 3), **report)
        assert torch.equal(servers[0].x, servers[1].x), settings


# --- grading --------------------------------------------------------------------------------------------


def well(server):
    return True


def ill(server):
    return False


def test_an_invariant_that_stops_names_where():
    def wrong(server):
        return server.no_such_thing

    with pytest.raises(lessons.Wrong, match="wrong stops on the healthy A, with buffer_size=2, .*AttributeError"):
        zoo.grade("A", wrong)


def test_a_bench_says_what_it_cannot_do():
    server = zoo.exhibit("A").healthy()
    with pytest.raises(AsyncFLError, match=r"^staleness: must be at most the server's version, 0, got 2$"):
        zoo.send(server, 1.0, staleness=2)
    with pytest.raises(AsyncFLError, match=r"^delta: the server refused the update: not finite"):
        zoo.send(server, float("nan"))
    with pytest.raises(AsyncFLError, match="^delta: one number or 6 are asked for, got 3$"):
        zoo.send(server, [1.0, 2.0, 3.0])
    with pytest.raises(AsyncFLError, match="^client: the bench has 0 to 5, got 9$"):
        zoo.send(server, 1.0, client=9)
    with pytest.raises(AsyncFLError, match="exhibit.*'Z'"):
        zoo.exhibit("Z")


# --- score ----------------------------------------------------------------------------------------------


def test_the_score_counts_what_was_found_in_tries_and_minutes(monkeypatch):
    def attempt(id, answer, state, minutes):
        return lessons.Attempt(id, answer, state, 60.0 * minutes)

    half, whole = {"A": "leftover", "B": "rate", "C": ...}, {"A": "leftover", "B": "alias", "C": "short"}
    tried = [
        attempt("17.1", {"A": ..., "B": ..., "C": ...}, "open", 1),
        attempt("17.2", None, "open", 2),
        attempt("17.1", half, "wrong", 5),
        attempt("17.1", whole, "right", 9),
        attempt("17.2", well, "wrong", 10),
        attempt("17.2", well, "right", 13.5),
        attempt("17.4", {"D": "sides", "E": "delta", "F": ...}, "wrong", 14),
        attempt("17.10", dict.fromkeys("BDGH", well), "right", 20),
    ]
    monkeypatch.setitem(lessons.exercises.__globals__, "_ATTEMPTS", tried)
    table = zoo.score()
    assert table.loc["17.1", ["found", "of", "tries", "minutes", "par"]].tolist() == [3, 3, 2, 8.0, 12]
    assert table.loc["17.2", ["found", "of", "tries", "minutes", "par"]].tolist() == [1, 1, 2, 4.5, 6]
    assert table.loc["17.4", ["found", "of", "tries", "minutes"]].tolist() == [1, 3, 1, 0.0]
    assert table.loc["all", ["found", "tries", "minutes", "par"]].tolist() == [8, 6, 19.0, 93]


def test_par_is_what_the_exercises_say():
    said = {one.id: int(re.search(r"(\d+) minutes\)", one.asked)[1]) for one in exercises_of(LESSON)}
    assert said == {id: cards.par(id) for id in zoo.score().index[:-1]}


# --- runs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("letter", ["A", "G"])
def test_both_servers_are_trained_alike(letter, monkeypatch):
    monkeypatch.setattr(training, "DIGITS", {"task": "digits", "rounds": 4, "eval_every": 1})
    asked: list[Config] = []
    several = training.run_many
    monkeypatch.setattr(training, "run_many", lambda configs: asked.extend(configs) or several(configs))
    healthy, ill = (training.trained(letter, [3], ill=ill) for ill in (False, True))
    one, other = (config.as_dict() for config in asked)
    assert {name for name in one if one[name] != other[name]} == {"algorithm"}
    assert healthy.loc[0].equals(ill.loc[0]) and not healthy.equals(ill)


def test_what_is_recorded_is_of_all_and_begins_alike():
    table = pd.read_csv(ROOT / "asyncfl_course/results/17_bug_zoo.csv", index_col=["exhibit", "server", "version"])
    assert table.shape[1] == 10 and not table.isna().any().any()
    for letter in LETTERS:
        one, other = table.loc[letter, "healthy"], table.loc[letter, "ill"]
        assert len(one) == 21 and one.index.equals(other.index)
        assert one.loc[0].equals(other.loc[0]) and not one.equals(other)
    first_half = table.loc["L"].loc[(slice(None), slice(0, 50)), :]
    assert first_half.loc["healthy"].equals(first_half.loc["ill"])


CAUGHT = {"B": ["in_place"], "L": ["save_and_restore"]}


@each
def test_what_the_rules_of_all_methods_see(letter):
    found = zoo.caught(letter)
    assert found == CAUGHT.get(letter, [])
    recorded = pd.read_csv(ROOT / "asyncfl_course/results/17_bug_zoo_rules.csv", index_col="exhibit")["check_algorithm"]
    assert recorded[letter] == (", ".join(found) or "passes")

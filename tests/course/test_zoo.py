"""The bug zoo: each bug is there, by a number worked by hand, alone, and asleep where its trigger is absent."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
import torch
from exercises import exercises_of
from solutions import FENCED, FOLDED

from asyncfl_course import lessons, zoo
from asyncfl_course.zoo import cards, training
from asyncfl_course.zoo.mutants import Mutation, source_of
from asyncfl_lite import Config
from asyncfl_lite.algorithms import ALGORITHMS, CA2FL, FedAvg, FedBuff
from asyncfl_lite.base.errors import AsyncFLError
from asyncfl_lite.testing import difference

ROOT = Path(__file__).parents[2]
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
def test_a_reader_is_told_what_there_is_to_suspect(letter):
    one = zoo.exhibit(letter)
    assert len(one.suspects) == 5 and one.place in one.suspects and one.look and one.description
    assert one.cls.about.title in one.description
    assert f"**{letter}** · {one.description}" in zoo.Cards(letter)._repr_markdown_()


@each
def test_the_copy_is_no_subclass_and_leaves_the_registry_alone(letter):
    one, known = zoo.exhibit(letter), list(ALGORITHMS)
    assert one.cls not in one.ill_cls.__mro__ and one.ill_cls.__name__ == one.cls.__name__
    with one.registered() as name:
        assert ALGORITHMS.get(name) is one.ill_cls
    assert list(ALGORITHMS) == known


def moved(server, before) -> float:
    """By how much each of the six parameters moved, which is the same for all."""
    steps = server.x - before
    assert torch.allclose(steps, steps[0].expand(6))
    return float(steps[0])


def two_buffers(server):
    before = server.x.clone()
    zoo.fill(server, 1.0)
    zoo.fill(server, 0.0)
    return moved(server, before)


def old_version(server):
    first, copy = server.x, server.x.clone()
    zoo.fill(server, 1.0)
    return float((first - copy)[0])


def short_round(server):
    before = server.x
    zoo.send(server, 1.0)
    server.flush()
    return moved(server, before)


def fresh(server):
    before = server.x
    zoo.send(server, 1.0)
    return moved(server, before)


def stale(server):
    before = server.x
    for staleness, delta in ((0, 1.0), (0, 1.0), (2, 0.0)):
        zoo.send(server, delta, staleness=staleness)
    return moved(server, before)


def burst(server, trained=0.9):
    before = server.x
    zoo.send(server, 0.0)
    zoo.send(server, 1.0, client=1, trained_accuracy=trained)
    return moved(server, before)


def first_buffer(server):
    before = server.x
    zoo.fill(server, 1.0)
    return moved(server, before)


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


BY_HAND = {
    "A": (two_buffers, 0.5, 0.5 + 0.5 * 2 / 4),  # the second mean is of all four
    "B": (old_version, 0.0, 0.5),
    "C": (short_round, 0.5, 0.5 / 3),
    "D": (fresh, 0.6, 0.4),
    "E": (stale, (1 + 2 + 0) / 3, (1 + 2 + 1.5) / 3),  # the third on 1.5, the mean of the first two
    "F": (burst, 0.7 * 0.5, 0.7 * 0.1 / (0.5 + 0.1)),
    "G": (first_buffer, 0.5, 0.0),
    "H": (remembered, 6, 2),
    "I": (denominator, 0.01, 0.01 * 0.99),
    "J": (noted, 3 - 2, 3),
    "K": (drawn_elsewhere, False, True),
    "L": (velocity, 1.0, 0.9 + 1.0),
}


@each
def test_the_bug_is_there_by_a_number_worked_by_hand(letter):
    drive, healthy, ill = BY_HAND[letter]
    one = zoo.exhibit(letter)
    assert drive(one.healthy()) == pytest.approx(healthy, abs=1e-12)
    assert drive(one.ill()) == pytest.approx(ill, abs=1e-12)


def mixed(server):
    """Nine updates of all kinds."""
    for step in range(9):
        report = {"num_samples": step + 1, "received_accuracy": 0.1 * step, "trained_accuracy": 0.9 - 0.05 * step}
        delta = [0.1 * step, 1.0, -1.0, 0.5, 0.0, 0.2]
        zoo.send(server, delta, client=step % 5, staleness=min(server.version, step % 3), **report)


def all_fresh(server):
    for step in range(9):
        zoo.send(server, 0.1 * step, client=step % 5)


def growing(server):
    for step in range(8):
        zoo.fill(server, 1.0 + step)


def in_places(server):
    for step in range(3):
        zoo.fill(server, 0.1 * step)


ASLEEP = {
    "A": (first_buffer, {}),
    "B": (mixed, {}),  # to the bench, which holds no old version, it is FedBuff
    "C": (lambda server: [zoo.fill(server, delta) for delta in (1.0, -0.5)], {}),
    "D": (mixed, {"mixing": 0.5, "staleness_function": "constant"}),
    "E": (all_fresh, {}),
    "F": (lambda server: burst(server, trained=0.5), {}),
    "G": (lambda server: zoo.fill(server, 0.0), {}),
    "H": (in_places, {}),  # who reports in which place
    "I": (growing, {}),
    "J": (mixed, {}),  # nobody was sent a correction
    "K": (all_fresh, {}),
    "L": (mixed, {}),
}


@each
def test_without_its_trigger_it_is_the_healthy_server_to_the_last_bit(letter):
    drive, settings = ASLEEP[letter]
    servers = zoo.exhibit(letter).healthy(**settings), zoo.exhibit(letter).ill(**settings)
    for server in servers:
        drive(server)
    assert servers[0].version > 0
    names = set(servers[0].state_names) - ({"_sum", "_divisor"} if letter == "A" else set())
    healthy, ill = ({name: getattr(server, name) for name in names} for server in servers)
    assert difference(healthy, ill, "state") is None


@each
def test_settings_in_which_it_sleeps_are_so(letter):
    for settings in zoo.exhibit(letter).asleep:
        servers = zoo.exhibit(letter).healthy(**settings), zoo.exhibit(letter).ill(**settings)
        for server in servers:
            mixed(server)
        assert torch.equal(servers[0].x, servers[1].x), settings


# --- grading --------------------------------------------------------------------------------------------


def solved() -> dict:
    """The invariants that the lesson folds away, by name."""
    names = {"torch": torch, "np": np, "zoo": zoo}
    for cell in nbformat.read(LESSON, as_version=4).cells:
        for summary, text in FOLDED.findall(cell.source) if cell.cell_type == "markdown" else ():
            for _, code in FENCED.findall(text) if "Solution" in summary else ():
                exec(code, names)
    return names


def test_the_lesson_solves_all_twelve():
    names = solved()
    found = names["mine"] | {"A": names["forgets"], "C": names["short_round"], "E": names["as_trained"]}
    found |= {"I": names["never_falls"], "L": names["goes_back"], "F": names["received_counts"]}
    found |= {"G": names["first_is_fedbuff"], "J": names["own_gradient"], "K": names["own_random"]}
    assert set(found) == set(LETTERS)
    for letter, invariant in found.items():
        assert zoo.grade(letter, invariant).startswith(f"{letter}: true for the healthy server with ")


@each
def test_what_says_the_same_of_every_server_is_told_so(letter):
    one = zoo.exhibit(letter)
    first = ", ".join(f"{name}={value!r}" for name, value in one.settings[0].items())
    with pytest.raises(
        lessons.Wrong, match=re.escape(f"Blind: well says that the ill {letter} is well, with {first}.")
    ):
        zoo.grade(letter, well)
    with pytest.raises(lessons.Wrong, match=f"^False alarm: ill says that the healthy {letter} is ill, with "):
        zoo.grade(letter, ill)


def well(server):
    return True


def ill(server):
    return False


def test_an_invariant_that_stops_names_where():
    def wrong(server):
        return server.no_such_thing

    with pytest.raises(lessons.Wrong, match="wrong stops on the healthy A, with buffer_size=2, .*AttributeError"):
        zoo.grade("A", wrong)


def test_grading_leaves_the_global_generators_alone():
    def draws(server):
        np.random.seed(0)
        torch.manual_seed(0)
        return False

    np.random.seed(5)
    before = np.random.get_state()[1].tolist(), torch.get_rng_state()
    with pytest.raises(lessons.Wrong):
        zoo.grade("A", draws)
    assert np.random.get_state()[1].tolist() == before[0] and torch.equal(torch.get_rng_state(), before[1])


def test_names_are_taken_one_by_one():
    assert lessons.check("17.1", {"A": ..., "B": ..., "C": ...}).state == "open"
    some = lessons.check("17.1", {"A": "leftover", "B": ..., "C": ...})
    assert some.state == "open" and some.message.startswith("A found. ")
    wrong = lessons.check("17.1", {"A": "mean", "B": "alias", "C": ...})
    assert wrong.state == "wrong" and wrong.message.startswith("B found. A is not 'mean'. ")
    right = lessons.check("17.1", {"A": "leftover", "B": "alias", "C": "short"})
    assert right and all(zoo.exhibit(letter).reveal() in right.message for letter in "ABC")


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


def test_a_mutation_must_be_possible():
    with pytest.raises(ValueError, match="must occur there once, not 2"):
        Mutation(FedBuff, "self._empty()", "").applied(FedBuff)
    with pytest.raises(ValueError, match="CA2FL is not a base of FedAvg"):
        Mutation(CA2FL, "a", "b").applied(FedAvg)
    assert source_of(FedBuff).startswith("class FedBuff(Algorithm):")


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


def test_a_healthy_server_goes_on_where_it_stopped_and_the_ill_one_elsewhere(monkeypatch):
    monkeypatch.setattr(training, "DIGITS", {"task": "digits", "rounds": 6, "eval_every": 1})
    healthy, ill = (training.trained("L", [0], ill=ill) for ill in (False, True))
    config = Config(**{**training.DIGITS, **zoo.exhibit("L").config, "algorithm": "fedavgm"})
    whole = training.run_many([config])[0].curve.set_index("version")["accuracy"]
    assert healthy["seed 0"].tolist() == whole.tolist()
    assert ill["seed 0"].tolist()[:4] == whole.tolist()[:4] and ill["seed 0"].tolist() != whole.tolist()


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


def test_a_rule_sees_what_its_small_run_does():
    assert set(zoo.caught("K", kd_fraction=0.1)) == {"save_and_restore", "randomness"}

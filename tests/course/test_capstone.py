"""The capstone's tools: a method that is read anew, ill copies on the bench, a graded plan, seeds of the seal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from asyncfl_course import capstone, referee, zoo
from asyncfl_course.capstone import Cell
from asyncfl_course.referee import Control, Question, Runs
from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.base.errors import AsyncFLError, ConfigError

WORKED = Path(__file__).parents[2] / "examples/fedpatience.py"
CHECK_RULES = capstone.check_rules
pytestmark = pytest.mark.usefixtures("as_in_a_notebook")


@pytest.fixture(autouse=True)
def trusted(monkeypatch):
    """The rules are checked, for seconds, by the one test that is about them."""
    monkeypatch.setattr(capstone, "check_rules", lambda entry: None)


def plan(**changed: object) -> capstone.Plan:
    return capstone.Plan(**{
        "code": capstone.enter(WORKED).digest,
        "cells": {
            "mine": Cell(algorithm="fedpatience", server_lr=1.0, settings={"patience": 3}),
            "fedbuff": Cell(algorithm="fedbuff", server_lr=1.0),
            "endless": Cell(algorithm="fedpatience", server_lr=1.0, settings={"patience": 1000}),
        },
        "asks": Question(first="mine", predicate="above", second="fedbuff", margin=1.5),
        "runs": Runs(metric="last5_accuracy", column="tuned", seeds=3, level=0.95),
        "control": Control(cell="endless", changes=["settings.patience"], shows=["other_weights", "same_schedule"]),
        "claimed": 3,
        "deviation": 0.4,
    } | changed)  # fmt: skip


def test_a_changed_file_is_read_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(capstone, "check_rules", CHECK_RULES)
    file = tmp_path / "fedlatest.py"
    text = WORKED.read_text().replace("fedpatience", "fedlatest")
    file.write_text(text)
    before = capstone.enter(file)
    file.write_text(text.replace("patience: int = 3", "patience: int = 12"))
    after = capstone.enter(file)
    assert before.digest != after.digest and after.method.Settings().patience == 12
    assert ALGORITHMS.get("fedlatest") is after.method
    file.write_text(text.replace("weight * in_time, counted", "1 / 0"))
    with pytest.raises(ConfigError, match=r"fedlatest\.py: FedPatience breaks the rule"):
        capstone.enter(file)
    file.write_text(text)
    assert capstone.enter(file).digest == before.digest


def test_the_bench_shows_what_an_invariant_sees():
    def never(server):
        before = server.x
        zoo.fill(server, 1.0)
        return torch.equal(server.x, before)

    def stops_when_ill(server):
        return {1: True}[server.buffer_size]

    method, options = capstone.enter(WORKED).method, [{"buffer_size": 1}]
    found = capstone.bench(method, [never, stops_when_ill], capstone.CHANGES, options)
    assert not found["never"].any() and found["stops_when_ill"].all()
    assert list(found.index) == ["healthy", *capstone.CHANGES]
    with pytest.raises(ConfigError, match=r"^changes: FedPatience: 'not there' must occur there once, not 0$"):
        capstone.bench(method, [], {"a": ("not there", "")}, [])


def test_a_good_plan_has_all_points():
    assert capstone.grade(plan()).points == 5


@pytest.mark.parametrize(
    ("changed", "lost"),
    [
        ({"deviation": 3}, "power"),
        ({"asks": Question(first="mine", predicate="above", second="fedbuff", margin=0), "deviation": 0.1}, "margin"),
        ({"runs": Runs(metric="last5_accuracy", column="tuned", seeds=3, level=0.5)}, "level"),
        ({"control": Control(cell="fedbuff", changes=["algorithm"], shows=["other_weights", "same_schedule"])}, "control"),
        ({"control": Control(cell="endless", changes=["server_lr"], shows=["other_weights", "same_schedule"])}, "control"),
        ({"control": Control(cell="endless", changes=["settings.patience"], shows=["same_schedule"])}, "proof"),
        ({"control": Control(cell="endless", changes=["settings.patience"], shows=["other_weights"])}, "proof"),
        (
            {"control": Control(cell="endless", changes=["settings.patience"], shows=["lower_accuracy", "same_schedule"])},
            "proof",
        ),
    ],
)  # fmt: skip
def test_a_weak_plan_loses_the_line(changed, lost):
    assert [line.name for line in capstone.grade(plan(**changed)).lost] == [lost]


def test_a_seal_draws_its_own_seeds():
    one, other = (capstone.unseen(referee.seal(plan(claimed=claimed)), 10) for claimed in (3, 4))
    assert len(set(one)) == 10 and not set(one) & (set(other) | set(capstone.SEEN))
    assert one == capstone.unseen(referee.seal(plan()), 10)


def test_a_changed_plan_or_method_is_not_run():
    sealed, entry = referee.seal(plan()), capstone.enter(WORKED)
    with pytest.raises(AsyncFLError, match=r"changed after it was sealed: claimed was 3\.0, is 2\.0$"):
        capstone.run(plan(claimed=2), sealed, entry)
    cells = plan().cells | {"mine": Cell(algorithm="fedpatience", server_lr=1.0)}
    with pytest.raises(AsyncFLError, match=r"sealed: cells\.mine\.settings\.patience was 3, is None"):
        capstone.run(plan(cells=cells), sealed, entry)
    other = plan(code="00000000")
    with pytest.raises(AsyncFLError, match=r"its code was 00000000, is [0-9a-f]{8}$"):
        capstone.run(other, referee.seal(other), entry)


def ran(accuracies, weights: str) -> pd.DataFrame:
    return pd.DataFrame({
        "last5_accuracy": accuracies, "weights_sha256": list(weights), "schedule_sha256": list("xyz"),
    })  # fmt: skip


def test_the_difference_is_judged_only_if_the_control_acted(monkeypatch):
    acting, asked = plan(), []
    tables = {"mine": ran([0.84, 0.85, 0.86], "abc"), "fedbuff": ran([0.8, 0.81, 0.81], "def"), "endless": None}

    def trained(cell, seeds):
        asked.append(tuple(seeds))
        return tables[next(name for name, one in acting.cells.items() if one == cell)]

    monkeypatch.setattr(capstone, "trained", trained)
    sealed, entry = referee.seal(acting), capstone.enter(WORKED)
    tables["endless"] = ran([0.84, 0.85, 0.86], "ghi")
    found = capstone.run(acting, sealed, entry)
    assert found.verdict == "holds" and found.interval in repr(found)
    assert np.allclose([found.mean, *found.differences], [13 / 3, 4, 4, 5])
    assert set(asked) == {capstone.unseen(sealed, 3)} and len(asked) == 3
    tables["endless"] = ran([0.7, 0.7, 0.7], "gbi")
    found = capstone.run(acting, sealed, entry)
    assert found.verdict == "no verdict" and found.interval == "" and found.differences.empty
    assert "other_weights fails on 1 of 3 seeds" in found.because and "no verdict" in repr(found)

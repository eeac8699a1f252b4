"""Lesson 18's room: seals, verdicts, envelopes, and a grade whose lines can each be won and lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from mistakes.referee import GOOD, LOSES

from asyncfl_course import referee
from asyncfl_course.referee import Control, Plan, Question, Runs, cases, deaf, records
from asyncfl_course.referee.rubric import LINES
from asyncfl_course.referee.verdict import FOLDER, judged
from asyncfl_lite import Config
from asyncfl_lite.base.errors import AsyncFLError, ConfigError
from asyncfl_reproduction import statistics as rule
from asyncfl_reproduction.statistics import interval
from asyncfl_reproduction.verdict_words import HOLDS, NOT_RUN


def plan(case: str, /, **changed: Any) -> Plan:
    """A plan with full marks, with some fields changed."""
    chosen = GOOD[case] | changed

    def part(*names: str) -> dict[str, Any]:
        return {name: chosen[name] for name in names}

    return Plan(
        case=chosen["case"],
        asks=Question(**part("first", "predicate", "second", "margin")),
        runs=Runs(**part("metric", "column", "seeds", "level")),
        control=Control(**part("cell", "changes", "shows")),
    )


def lost(given: Plan) -> set[str]:
    return {line.name for line in referee.grade(given).lost}


def carried_out(given: Plan) -> referee.Verdict:
    return referee.run(given, referee.seal(given))


# --- seals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"margin": 1}, "asks.margin was 12.5, is 1.0"),
        ({"seeds": 3, "column": "rate 1"}, "runs.column was 'tuned', is 'rate 1'; runs.seeds was 10, is 3"),
        ({"shows": []}, r"control.shows was \['other_weights', 'same_schedule'\], is \[\]"),
    ],
)
def test_a_plan_that_was_changed_is_refused_and_the_field_named(changed, told):
    with pytest.raises(AsyncFLError, match=f"^the plan was changed after it was sealed: {told}$"):
        referee.run(plan("lead", **changed), referee.seal(plan("lead")))


def test_a_seal_that_was_changed_is_broken():
    sealed, other = referee.seal(plan("lead")), plan("lead", margin=1)
    with pytest.raises(AsyncFLError, match="^the seal is broken"):
        referee.run(other, referee.Sealed(referee.canonical(other), sealed.digest))


# --- verdicts -------------------------------------------------------------------------------------------


def test_verdicts_are_those_of_the_packages_rule():
    for column in ("rate 1", "tuned"):
        for rival in ("fedbuff", "ca2fl", "fedac"):
            found = carried_out(plan("lead", second=rival, column=column, level=0.99, margin=0))
            runs = (referee.case("lead").runs(name, column) for name in ("fedecho-natural", rival))
            ours, other = (of["last5_accuracy"].loc[:9] for of in runs)
            theirs = rule.contrast((ours - other).to_numpy(), "")
            assert found.verdict == theirs.verdict
            ends = [100 * theirs.mean, 100 * theirs.low, 100 * theirs.high]
            assert [found.mean, found.low, found.high] == pytest.approx(ends)


def test_without_proof_that_the_control_acted_there_is_no_verdict():
    found = carried_out(plan("deaf"))
    assert found.verdict == referee.NO_VERDICT and np.isnan(found.mean)
    assert "the control deaf did not act: other_weights fails on 10 of 10 seeds" in repr(found)
    assert carried_out(plan("deaf", shows=["it_ran"])).verdict == HOLDS
    both = carried_out(plan("deaf", second="deaf-again", cell="deaf-again"))
    assert both.verdict == HOLDS and both.low > 0


def test_a_plan_for_more_seeds_than_are_recorded_is_not_run():
    found = carried_out(plan("weight", column="tuned", seeds=140))
    recorded = referee.case("weight").recorded("tuned")
    assert found.verdict == NOT_RUN and f" {recorded} of 140 seeds are recorded" in found.detail
    with pytest.raises(AsyncFLError, match="weight: the envelope stays sealed"):
        referee.open_envelope(found)


# --- the grade ------------------------------------------------------------------------------------------


FULL = [
    *(("lead", changed) for changed in (
        {}, {"seeds": 3, "level": 0.99}, {"margin": 8, "metric": "final_accuracy"},
        {"cell": "no-distillation", "changes": ["settings.distill_q", "settings.distill_set"]},
    )),
    *(("deaf", changed) for changed in (
        {}, {"margin": 0.5, "column": "rate 1"}, {"seeds": 5},
        {"metric": "final_accuracy", "shows": ["it_ran", "other_weights", "same_schedule"]},
    )),
    *(("weight", changed) for changed in (
        {}, {"seeds": 64, "level": 0.99}, {"seeds": 140, "column": "tuned"}, {"seeds": 64, "margin": 0.05},
        {"cell": "kl-only"},
    )),
]  # fmt: skip


@pytest.mark.parametrize(("case", "changed"), FULL)
def test_good_plans_of_several_kinds_have_full_marks(case, changed):
    found = referee.grade(plan(case, **changed))
    assert found.points == len(LINES), repr(found)
    assert repr(found).endswith("8 of 8 points")


@pytest.mark.parametrize(("case", "changed", "lines"), LOSES)
def test_bad_plans_lose_the_lines_that_they_should(case, changed, lines):
    assert lost(plan(case, **changed)) == lines, repr(referee.grade(plan(case, **changed)))


@pytest.mark.parametrize("case", GOOD)
def test_the_grade_does_not_look_at_who_is_ahead(case, monkeypatch):
    before = repr(referee.grade(plan(case)))
    read = cases.Case.runs

    def lifted(self, cell, column):
        found = read(self, cell, column)
        numbers = found[list(records.NUMBERS)] + 0.1 * (cell == self.first)
        return found.assign(**numbers)

    monkeypatch.setattr(cases.Case, "runs", lifted)
    assert repr(referee.grade(plan(case))) == before
    monkeypatch.setattr(cases.Case, "runs", lambda self, cell, column: read(self, cell, column).loc[: cases.PILOT - 1])
    assert repr(referee.grade(plan(case))) == before, "nor at other seeds than the pilot's"


@pytest.mark.parametrize(
    ("predicate", "margin", "truth", "deviation", "seeds", "level"),
    [("above", 0.0, 1.0, 1.0, 10, 0.95), ("above", 2.0, 3.0, 1.5, 5, 0.99), ("above", 1.0, 0.5, 1.0, 8, 0.95),
     ("level", 1.0, 0.0, 1.2, 10, 0.95), ("level", 1.0, 0.8, 0.5, 6, 0.95), ("level", 0.5, 0.0, 2.0, 4, 0.9)],
)  # fmt: skip
def test_the_chance_of_a_verdict_is_its_share_of_made_up_runs(predicate, margin, truth, deviation, seeds, level):
    draws = truth + deviation * np.random.default_rng(0).standard_normal((4000, seeds))
    given = plan("lead", predicate=predicate, margin=margin, seeds=seeds, level=level)
    said = np.mean([judged(given, *interval(row, level), row) == HOLDS for row in draws])
    assert referee.chance(predicate, margin, truth, deviation, seeds, level) == pytest.approx(said, abs=0.03)


# --- cases, envelopes, records --------------------------------------------------------------------------


@pytest.mark.parametrize("name", referee.CASES)
def test_an_envelope_is_what_was_committed_to(name, tmp_path):
    opened = referee.open_envelope(carried_out(plan(name)))
    assert opened.digest == referee.case(name).commitment and opened.digest in repr(referee.case(name))
    assert all(verdict.plan.case == name for verdict in opened.verdicts.values()) and len(opened.verdicts) >= 3
    assert NOT_RUN not in {verdict.verdict for verdict in opened.verdicts.values()}
    (tmp_path / f"{name}.json").write_bytes((FOLDER / f"{name}.json").read_bytes().replace(b"The", b"A", 1))
    with pytest.raises(AsyncFLError, match="^" + name + ": the envelope is not the one that was committed to"):
        referee.open_envelope(carried_out(plan(name)), tmp_path)


@pytest.mark.parametrize("name", referee.CASES)
def test_a_sheet_shows_deviations_and_no_mean(name):
    of, shown = referee.case(name), referee.pilots(name)
    gap = of.gap(of.first, of.second, "last5_accuracy", "rate 1").loc[:4]
    assert shown.loc["last5_accuracy", "rate 1"] == pytest.approx(gap.std())
    assert f"{gap.mean():.2f}" not in repr(shown) or gap.mean() == 0


def test_recorded_runs_are_of_todays_configurations():
    for cell, seeds in records.image_cells().items():
        found, config = records.runs_of(cell), records.image_config(cell)
        assert list(found.index) == list(range(seeds))
        assert [config.with_seed(seed).hash for seed in found.index] == list(found["config_hash"])
    for cell in deaf.VARIANTS:
        found = records.runs_of(f"deaf/{cell}")
        assert [deaf.config(seed).hash for seed in range(10)] == list(found["config_hash"])
    with pytest.raises(ConfigError, match="cell"):
        referee.case("deaf").runs("fedbuff", "tuned")


def test_the_offered_control_does_nothing_and_the_other_acts(monkeypatch):
    short = {
        "task": "digits", "algorithm": "fedecho", "delay": "fedecho_mild", "alpha": 0.1, "clients": 20,
        "concurrency": 15, "buffer_size": 4, "client_lr": 0.2, "local_epochs": 1, "eval_every": 40,
        "settings": {"distill_samples": 60, "distill_batch_size": 60, "distill_q": 1, "distill_lr": 1e-3},
    }  # fmt: skip
    monkeypatch.setattr(deaf, "config", lambda seed, versions: Config(**short, rounds=versions, seed=seed))
    found = deaf.trained([*deaf.VARIANTS], seed=0, versions=40)
    table = pd.DataFrame({cell: result.summary for cell, result in found.items()}).T
    assert table.loc["deaf", "weights_sha256"] == table.loc["fedecho", "weights_sha256"]
    assert table.loc["deaf-again", "weights_sha256"] != table.loc["fedecho", "weights_sha256"]
    assert table["schedule_sha256"].nunique() == 1

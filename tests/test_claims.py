"""Claims: verdicts follow the numbers, and never say more than was measured. Each paper's are in a file of its own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from asyncfl_lite.reproduction.claims import (
    CLAIMS,
    DID_NOT_TRAIN,
    FAILS,
    HOLDS,
    NOT_RUN,
    UNDECIDED,
    Measured,
    check_claims,
    pooled_deviation,
)
from asyncfl_lite.reproduction.claims.base import Claim, Finding, all_of, check_claim, compare, not_run
from asyncfl_lite.reproduction.published import hyperparameters, published


def measured(**cells) -> Measured:
    """Cells by their accuracies."""
    return Measured({name: pd.DataFrame({"final_accuracy": values}) for name, values in cells.items()})


def constant(m: Measured, **runs: int) -> Measured:
    """The same, but so many runs of these cells answer one class for everything; all others of them miss a class."""
    for cell, count in runs.items():
        seeds = range(len(m.summaries[cell]))
        m.summaries[cell]["largest_prediction_share"] = [1.0 if seed < count else 0.7 for seed in seeds]
        m.summaries[cell]["worst_class_accuracy"] = 0.0
    return m


@pytest.mark.parametrize(
    ("left", "right", "verdict"),
    [
        ([0.9, 0.91, 0.92], [0.5, 0.51, 0.52], HOLDS),
        ([0.5, 0.51, 0.52], [0.9, 0.91, 0.92], FAILS),
        ([0.5, 0.6, 0.7], [0.52, 0.58, 0.69], UNDECIDED),
        ([0.9, 0.9], [0.5, 0.5], UNDECIDED),  # two seeds are not enough
    ],
)
def test_above(left, right, verdict):
    assert measured(a=left, b=right).above("a", "b").verdict == verdict


def test_a_margin_is_a_fraction_as_accuracies_are():
    m = measured(a=[0.9, 0.9, 0.9], b=[0.85, 0.85, 0.85])
    assert m.above("a", "b", margin=0.04).verdict == HOLDS
    assert m.above("a", "b", margin=0.06).verdict == FAILS


def test_what_was_not_run_is_not_run():
    assert measured(a=[1, 1, 1]).above("a", "b").verdict == NOT_RUN
    assert not_run("no such device")(measured()) == Finding(NOT_RUN, "no such device")


def test_joined_findings():
    holds, undecided, fails, missing = (Finding(v, "") for v in (HOLDS, UNDECIDED, FAILS, NOT_RUN))
    assert all_of(holds, missing).verdict == HOLDS
    assert all_of(holds, undecided).verdict == UNDECIDED
    assert all_of(holds, undecided, fails).verdict == FAILS
    assert all_of(missing).verdict == NOT_RUN
    constant = Finding(DID_NOT_TRAIN, "")
    assert all_of(holds, undecided, constant).verdict == DID_NOT_TRAIN
    assert all_of(fails, constant).verdict == FAILS and all_of(missing, constant).verdict == DID_NOT_TRAIN


def test_cells_that_answer_one_class_are_not_compared():
    """Neither a tie nor a difference counts, on either side; most seeds have to be so, and the others are marked."""
    for right in ([0.53, 0.53, 0.53], [0.9, 0.91, 0.92], [0.1, 0.11, 0.12]):
        pair = constant(measured(a=[0.53, 0.53, 0.53], b=right), a=3)
        assert pair.above("a", "b").verdict == pair.above("b", "a").verdict == DID_NOT_TRAIN
    assert pair.above("a", "b").detail == "a against b: 53.0 ± 0.0 (constant answer), 11.0 ± 1.0"
    few = constant(measured(a=[0.5, 0.6, 0.7], b=[0.1, 0.1, 0.1]), a=1)
    assert few.above("a", "b").verdict == HOLDS
    assert "60.0 ± 10.0 (constant answer with 1 of 3 seeds)" in few.above("a", "b").detail
    assert constant(few, a=2).above("a", "b").verdict == DID_NOT_TRAIN
    half = constant(measured(a=[0.9] * 4, b=[0.1] * 4), a=2)
    assert half.above("a", "b").verdict == HOLDS
    curve = pd.DataFrame({"time": [0.0, 1.0], "accuracy": [0.1, 0.9]})
    timed = Measured(few.summaries, {"a": [curve] * 3, "b": [curve.assign(time=[0.0, 5.0])] * 3})
    assert timed.sooner("a", "b", 0.5).verdict == DID_NOT_TRAIN


def check(m: Measured, what, **more) -> Finding:
    return check_claim(m, Claim("X-1", "Table 1", "", "", what, **more))


def test_a_claim_rests_on_the_cells_that_it_asks_for():
    """Also where it looks at numbers itself; it fails all the same if cells that trained refute it."""
    m = constant(measured(a=[0.9, 0.9, 0.9], b=[0.5, 0.5, 0.5], c=[0.2, 0.2, 0.2]), c=3)

    def largest(m):  # a predicate of its own, which knows nothing of constant answers
        known = {cell: m.values(cell).mean() for cell in "abc" if m.values(cell) is not None}
        return Finding(HOLDS if max(known, key=known.get) == "a" else FAILS, "")

    assert check(m, lambda m: m.above("a", "b")).verdict == HOLDS
    assert check(m, largest) == Finding(DID_NOT_TRAIN, "; constant answer: c")
    assert check(m, lambda m: all_of(m.above("a", "b"), m.above("b", "c"))).verdict == DID_NOT_TRAIN
    assert check(m, lambda m: all_of(m.above("b", "a"), m.above("b", "c"))).verdict == FAILS
    assert check(m, lambda m: Finding(UNDECIDED, str(m.values("c", "virtual_versions")))).verdict == UNDECIDED
    assert check(m, not_run("no such device")).verdict == NOT_RUN
    stays = check(m, lambda m: m.above("b", "c"), of_constant_answers=True)
    assert stays.verdict == HOLDS and stays.detail.endswith("; constant answer: c")
    undecided = constant(measured(a=[0.5, 0.5, 0.5], b=[0.5, 0.5, 0.5]), a=3, b=3)
    table = check_claims(undecided, [Claim("X-1", "Table 4", "", "", lambda m: m.above("a", "b"))])
    assert table["ours"].tolist() == [DID_NOT_TRAIN]


def test_numbers_are_compared_without_cells():
    """Fractions are printed in percent, other numbers as they are; two seeds decide nothing."""
    many, few = np.array([0.5, 0.51, 0.52]), np.array([0.3, 0.31, 0.32])
    assert compare(many, few, "a against b") == Finding(HOLDS, "a against b: 51.0 ± 1.0, 31.0 ± 1.0")
    assert compare(few, many, "b against a", marks=("", " (m)")) == Finding(
        FAILS, "b against a: 31.0 ± 1.0, 51.0 ± 1.0 (m)"
    )
    assert compare(many, few, "a against b", 0.25).verdict == FAILS
    assert compare(many, few, "a against b", 0.195).verdict == UNDECIDED
    assert compare(many[:2], few, "a against b").verdict == UNDECIDED
    assert compare(20 * many, 20 * few, "times", scale=1).detail == "times: 10.2 ± 0.2, 6.2 ± 0.2"
    assert compare(None, few, "a against b") == Finding(NOT_RUN, "a against b: not run")


def test_gaps_are_taken_seed_by_seed():
    m = measured(a=[0.9, 0.8, 0.7], b=[0.5, 0.5, 0.5], c=[0.5, 0.5])
    assert m.gap("a", "b") == pytest.approx([0.4, 0.3, 0.2])
    assert m.gap("a", "c") is None and m.gap("a", "d") is None


def test_pooled_deviation():
    frame = pd.Series([1.0, 2.0, 3.0]).to_numpy()
    assert pooled_deviation(frame, frame + 5) == pytest.approx(1.0)


def test_a_table_of_claims_has_the_papers_verdict_and_ours():
    claims = [Claim("X-1", "Table 1", "a above b", "fails", lambda m: m.above("a", "b"))]
    table = check_claims(measured(a=[0.9, 0.9, 0.9], b=[0.5, 0.5, 0.5]), claims)
    assert table.drop(columns="detail").to_dict("records") == [
        {"id": "X-1", "artefact": "Table 1", "claim": "a above b", "paper": "fails", "ours": HOLDS}
    ]
    assert table["detail"][0] == "a against b: 90.0 ± 0.0, 50.0 ± 0.0"


def test_ids_are_unique():
    ids = [claim.id for claims in CLAIMS.values() for claim in claims]
    assert len(set(ids)) == len(ids)


def test_published_numbers_are_all_there():
    table = published("FedEcho", "Table 2")
    assert len(table) == 28
    row = table[(table["method"] == "FedBuff") & (table["delay"] == "large") & (table["alpha"] == "0.1")].iloc[0]
    assert (row["value"], row["std"]) == (52.85, 7.76)
    assert len(hyperparameters("FedEcho")) > 100

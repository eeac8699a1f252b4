"""Claims: verdicts follow the numbers, and never say more than was measured. Each paper's are in a file of its own."""

from __future__ import annotations

import pandas as pd
import pytest

from asyncfl_lite.claims import CLAIMS, FAILS, HOLDS, NOT_RUN, UNDECIDED, Measured, check_claims, pooled_deviation
from asyncfl_lite.claims.base import Claim, Finding, all_of, not_run
from asyncfl_lite.published import hyperparameters, published


def measured(**cells) -> Measured:
    """Cells by their accuracies."""
    return Measured({name: pd.DataFrame({"final_accuracy": values}) for name, values in cells.items()})


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


def test_a_margin_counts_in_points():
    m = measured(a=[0.9, 0.9, 0.9], b=[0.85, 0.85, 0.85])
    assert m.above("a", "b", margin=4).verdict == HOLDS
    assert m.above("a", "b", margin=6).verdict == FAILS


def test_what_was_not_run_is_not_run():
    assert measured(a=[1, 1, 1]).above("a", "b").verdict == NOT_RUN
    assert not_run("no such device")(measured()) == Finding(NOT_RUN, "no such device")


def test_joined_findings():
    holds, undecided, fails, missing = (Finding(v, "") for v in (HOLDS, UNDECIDED, FAILS, NOT_RUN))
    assert all_of(holds, missing).verdict == HOLDS
    assert all_of(holds, undecided).verdict == UNDECIDED
    assert all_of(holds, undecided, fails).verdict == FAILS
    assert all_of(missing).verdict == NOT_RUN


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

"""Claims: verdicts follow the numbers, and never say more than was measured."""

from __future__ import annotations

import pandas as pd
import pytest

from asyncfl_lite.claims import CLAIMS, FAILS, HOLDS, NOT_RUN, UNDECIDED, Measured, check_claims, pooled_deviation
from asyncfl_lite.claims.base import Finding, all_of
from asyncfl_lite.published import hyperparameters, published

BUFF, ECHO = "fedecho/table2/large-dir0.1/fedbuff", "fedecho/table2/large-dir0.1/fedecho-cross"


def measured(**cells) -> Measured:
    """Cells by their accuracies; the other numbers are the same everywhere."""
    others = {"max_staleness": 99, "most_versions_in_flight": 12}
    return Measured({name: pd.DataFrame({"final_accuracy": values}).assign(**others) for name, values in cells.items()})


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
    table = check_claims(measured(), CLAIMS["fedecho"]).set_index("id")["ours"]
    assert set(table.drop(["FE-T1-a", "FE-T1-b", "FE-T8-a"])) == {NOT_RUN}
    assert set(table[["FE-T1-a", "FE-T1-b", "FE-T8-a"]]) == {HOLDS}  # need no run


def test_joined_findings():
    holds, undecided, fails, missing = (Finding(v, "") for v in (HOLDS, UNDECIDED, FAILS, NOT_RUN))
    assert all_of(holds, missing).verdict == HOLDS
    assert all_of(holds, undecided).verdict == UNDECIDED
    assert all_of(holds, undecided, fails).verdict == FAILS
    assert all_of(missing).verdict == NOT_RUN


def test_pooled_deviation():
    frame = pd.Series([1.0, 2.0, 3.0]).to_numpy()
    assert pooled_deviation(frame, frame + 5) == pytest.approx(1.0)


def test_table_2s_claim_fails_when_a_variant_is_below():
    better = measured(**{BUFF: [0.5, 0.5, 0.51], ECHO: [0.7, 0.71, 0.72]})
    worse = measured(**{BUFF: [0.7, 0.71, 0.72], ECHO: [0.5, 0.5, 0.51]})
    by_id = [check_claims(m, CLAIMS["fedecho"]).set_index("id")["ours"] for m in (better, worse)]
    assert [verdicts["FE-T2-a"] for verdicts in by_id] == [HOLDS, FAILS]
    assert [verdicts["FE-T2-b"] for verdicts in by_id] == [HOLDS, FAILS]


@pytest.mark.parametrize(
    ("fewest", "most", "verdict"),
    [
        ([0.1, 0.5, 0.9], [0.5, 0.51, 0.52], HOLDS),
        ([0.5, 0.51, 0.52], [0.1, 0.5, 0.9], FAILS),
        ([0.1, 0.2, 0.3],) * 2 + (UNDECIDED,),
    ],
)
def test_spreads_are_compared_as_spreads(fewest, most, verdict):
    m = measured(**{"fedecho/table6/samples-100": fewest, "fedecho/table6/samples-1000": most})
    assert check_claims(m, CLAIMS["fedecho"]).set_index("id")["ours"]["FE-T6-b"] == verdict


def test_a_claim_of_a_clear_difference_fails_without_one():
    m = measured(**{ECHO: [0.7, 0.71, 0.72], "fedecho/table7/fixed-0.5": [0.7, 0.71, 0.72]})
    assert check_claims(m, CLAIMS["fedecho"]).set_index("id")["ours"]["FE-T7-b"] == FAILS


def test_ids_are_unique_and_complete():
    ids = [claim.id for claim in CLAIMS["fedecho"]]
    assert len(set(ids)) == len(ids)
    wanted = {"T1": "ab", "T2": "abcdefg", "T3": "abcd", "T4": "ab", "T5": "ab", "T6": "abc", "T7": "ab", "T8": "a",
              "T11": "a", "X": "ab"}  # fmt: skip
    assert set(ids) == {f"FE-{table}-{letter}" for table, letters in wanted.items() for letter in letters}


def test_published_numbers_are_all_there():
    table = published("FedEcho", "Table 2")
    assert len(table) == 28
    row = table[(table["method"] == "FedBuff") & (table["delay"] == "large") & (table["alpha"] == "0.1")].iloc[0]
    assert (row["value"], row["std"]) == (52.85, 7.76)
    assert len(hyperparameters("FedEcho")) > 100

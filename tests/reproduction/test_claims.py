"""Claims: verdicts follow the numbers, and never say more than was measured. Each paper's are in a file of its own."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from asyncfl_reproduction.claims import (
    CLAIMS,
    EQUIVALENT,
    FAILS,
    HOLDS,
    KINDS,
    NOT_RUN,
    OPEN,
    REVERSED,
    VERDICTS,
    Measured,
    check_all,
    check_claims,
    table_of_discoveries,
)
from asyncfl_reproduction.claims.checking import CLOCK, CONSTRUCTED, NOT_CHECKABLE, Claim, check_claim, not_run
from asyncfl_reproduction.claims.findings import Finding, all_of, as_equality, compare
from asyncfl_reproduction.claims.measured import AT_FIXED_RATE
from asyncfl_reproduction.grid.columns import FIXED
from asyncfl_reproduction.statistics import holm, scaled
from asyncfl_reproduction.verdict_words import joined

SHAKE = np.array([-3, -1, 4, -2, 1, 0, 2, -4, 3, 0]) / 1000


def around(mean: float, seeds: int = 10, times: float = 1.0) -> list[float]:
    """Accuracies of this mean, which differ by tenths of points over seeds, otherwise for another mean."""
    return list(mean + times * np.random.default_rng(round(1000 * mean)).permutation(SHAKE)[:seeds])


def measured(seeds: dict[str, list[int]] | None = None, **cells: list[float]) -> Measured:
    """Cells by their accuracies."""
    frames = {name: pd.DataFrame({"last5_accuracy": values, "final_accuracy": 0.5}) for name, values in cells.items()}
    for name, places in (seeds or {}).items():
        frames[name]["seed"] = places
    return Measured(frames)


def constant(m: Measured, **runs: int) -> Measured:
    """The same, but so many runs of these cells answer one class for everything; all others of them miss a class."""
    for cell, count in runs.items():
        seeds = range(len(m.summaries[cell]))
        m.summaries[cell]["largest_prediction_share"] = [1.0 if seed < count else 0.7 for seed in seeds]
        m.summaries[cell]["worst_class_accuracy"] = 0.0
    return m


def test_a_margin_is_a_fraction_as_accuracies_are():
    m = measured(a=around(0.9), b=around(0.85))
    assert (m.above("a", "b").verdict, m.above("b", "a").verdict) == (HOLDS, REVERSED)
    assert m.above("a", "b", margin=0.04).verdict == HOLDS
    assert m.above("a", "b", margin=0.06).verdict == FAILS
    assert m.above("b", "a", margin=0.06).verdict == REVERSED
    assert m.above("a", "b", margin=0.05).verdict == OPEN


def test_at_least_and_level_allow_a_point():
    m = measured(a=around(0.9), b=around(0.905), c=around(0.93))
    assert m.above("a", "b").verdict == EQUIVALENT and m.at_least("a", "b").verdict == HOLDS
    assert m.at_least("a", "c").verdict == REVERSED and m.at_least("c", "a").verdict == HOLDS
    assert m.level("a", "b").verdict == m.level("b", "a").verdict == HOLDS
    assert m.level("a", "c").verdict == m.level("c", "a").verdict == REVERSED
    assert measured(a=around(0.5, times=20), b=around(0.52, times=20)).level("a", "b").verdict == OPEN
    both = all_of([m.level("c", "a"), m.level("a", "b")])  # too different in the positive direction, by Holm
    assert both.verdict == REVERSED
    assert as_equality(Finding(NOT_RUN, "")) == Finding(NOT_RUN, "")


def test_runs_are_paired_by_their_seed():
    """Each cell's spread is large; seed by seed the difference is not."""
    values = np.array([0.2, 0.4, 0.6, 0.8, 0.5, 0.3, 0.7, 0.9, 0.1, 0.35])
    shifted, order = values + 0.05 + SHAKE, np.random.default_rng(0).permutation(10)
    m = measured({"a": list(order), "b": list(range(10))}, a=list(shifted[order]), b=list(values))
    found = m.above("a", "b")
    assert found.verdict == HOLDS and found.contrast.mean == pytest.approx(0.05)
    assert measured(a=list(shifted[order]), b=list(values)).above("a", "b").verdict == OPEN
    part = measured({"a": [0, 1, 2, 90], "b": [2, 1, 0, 7]}, a=[0.9] * 4, b=[0.5, 0.51, 0.52, 0.1]).above("a", "b")
    assert part.contrast.seeds == 3 and part.contrast.mean == pytest.approx(0.39)
    none = measured({"a": [0, 1, 2], "b": [3, 4, 5]}, a=around(0.9, 3), b=around(0.5, 3))
    assert none.above("a", "b").verdict == OPEN and none.gap("a", "b") is None


def test_what_was_not_run_is_not_run():
    assert measured(a=[1, 1, 1]).above("a", "b").verdict == NOT_RUN
    assert not_run("no such device")(measured()) == Finding(NOT_RUN, "no such device")


def test_verdicts_join_as_all_of_them_must_hold():
    assert joined([HOLDS, HOLDS]) == HOLDS
    assert joined([HOLDS, NOT_RUN]) == HOLDS and joined([NOT_RUN]) == joined([]) == NOT_RUN
    assert joined([HOLDS, OPEN, NOT_RUN]) == OPEN
    for refuting in (FAILS, REVERSED):
        assert joined([HOLDS, OPEN, EQUIVALENT, refuting, NOT_RUN]) == refuting
    assert joined([FAILS, REVERSED]) == REVERSED
    assert joined([EQUIVALENT, HOLDS, NOT_RUN]) == EQUIVALENT and joined([EQUIVALENT, OPEN]) == OPEN


def test_a_claim_is_equivalent_where_some_parts_are_and_the_others_hold():
    m = measured(a=around(0.9), b=around(0.9, times=1.1), c=around(0.5), d=around(0.505, times=0.5))
    pair, other = m.above("a", "b"), m.above("c", "d")
    assert {part.verdict for part in (pair, other)} == {EQUIVALENT} and other.contrast.high < 0  # its sign is sure
    assert all_of([pair, other]).verdict == EQUIVALENT and all_of([pair, m.above("a", "c")]).verdict == EQUIVALENT
    assert all_of([m.level("a", "b"), m.level("c", "d")]).verdict == HOLDS  # that nothing differs holds
    assert all_of([m.level("a", "b"), m.above("a", "c")]).verdict == HOLDS


def test_joined_findings():
    cells = {"a": around(0.9), "b": around(0.5), "c": around(0.3), "d": around(0.302), "e": around(0.5, times=20)}
    m = measured(**cells)
    holds, gone = all_of([m.above("a", "b"), m.above("b", "c")]), m.above("a", "x")
    assert holds.verdict == HOLDS and holds.detail.startswith("2 parts: 2 hold; a against b: 90.0 ± ")
    part = all_of([holds, gone])  # joined findings are joined by their parts
    assert part.verdict == HOLDS and part.detail.startswith("2 of 3 parts run: 2 hold")
    assert len(part.leaves) == 3 and [found.name for found in part.contrasts] == ["a against b", "b against c"]
    assert all_of([holds, m.above("c", "d")]).verdict == EQUIVALENT
    assert all_of([holds, m.above("e", "b")]).verdict == OPEN
    assert all_of([holds, m.above("c", "a"), m.above("c", "d")]).verdict == REVERSED
    assert all_of([gone, gone]).verdict == NOT_RUN and all_of([gone], "nothing").detail == "nothing"
    assert all_of([holds, Finding(OPEN, "")]).verdict == OPEN
    assert all_of([Finding(HOLDS, "x")]).detail == "x"


def test_one_refuted_part_of_many_is_named_only_if_it_stands_by_holm():
    """A difference that alone would be reversed is open as one of thirty."""
    slightly = [0.5 - 0.0135 + 3.7 * x for x in SHAKE]
    cells = {f"c{index}": around(0.1 + 0.01 * index) for index in range(30)}
    m = measured(a=around(0.9), low=slightly, flat=[0.5] * 10, **cells)
    many = [m.above("a", cell) for cell in cells]
    alone = m.above("low", "flat")
    assert alone.verdict == REVERSED and all_of([*many, alone]).verdict == OPEN
    assert all_of([*many, m.above("c0", "a")]).verdict == REVERSED
    text = all_of(many).detail
    assert text.startswith("30 parts: 30 hold; ") and text.endswith("; 24 more")
    assert all_of(many).weight == pytest.approx(max(scaled(found.contrast.p, 10) for found in many))
    reversed_one = all_of([*many, m.above("c0", "a")])
    assert reversed_one.weight == pytest.approx(min(holm([found.scaled for found in reversed_one.contrasts])))
    assert math.isnan(Finding(FAILS, "").weight) and Finding(FAILS, "", p=0.2).weight == 0.2


def test_cells_that_answer_one_class_are_not_compared():
    """Neither a tie nor a difference counts, on either side; most seeds have to be so, and the others are marked."""
    for right in ([0.53, 0.53, 0.53], [0.9, 0.91, 0.92], [0.1, 0.11, 0.12]):
        pair = constant(measured(a=[0.53, 0.53, 0.53], b=right), a=3)
        assert pair.above("a", "b").verdict == pair.above("b", "a").verdict == OPEN
    text = "a against b: 53.0 ± 0.0 (constant answer), 11.0 ± 1.0, +42.0 [39.5, 44.5], 3 seeds"
    assert pair.above("a", "b").detail == f"{text}, did not train"
    few = constant(measured(a=[0.5, 0.6, 0.7], b=[0.1, 0.1, 0.1]), a=1)
    assert few.above("a", "b").verdict == HOLDS
    assert "60.0 ± 10.0 (constant answer with 1 of 3 seeds)" in few.above("a", "b").detail
    assert constant(few, a=2).above("a", "b").verdict == OPEN
    half = constant(measured(a=[0.9] * 6, b=[0.1] * 6), a=3)
    assert half.above("a", "b").verdict == HOLDS
    curve = pd.DataFrame({"time": [0.0, 1.0], "accuracy": [0.1, 0.9]})
    timed = Measured(few.summaries, {"a": [curve] * 3, "b": [curve.assign(time=[0.0, 5.0])] * 3})
    assert timed.sooner("a", "b", 0.5).verdict == OPEN


def check(m: Measured, what, **more) -> Finding:
    return check_claim(m, Claim("X-1", "Table 1", "", "", what, **more)).finding


def test_a_claim_rests_on_the_cells_that_it_asks_for():
    """Also where it looks at numbers itself; it fails all the same if cells that trained refute it."""
    m = constant(measured(a=around(0.9), b=around(0.5), c=[0.2] * 10), c=10)

    def largest(m):  # a predicate of its own, which knows nothing of constant answers
        known = {cell: m.values(cell, "last5_accuracy").mean() for cell in "abc" if m.by_seed(cell) is not None}
        return Finding(HOLDS if max(known, key=known.get) == "a" else FAILS, "")

    assert check(m, lambda m: m.above("a", "b")).verdict == HOLDS
    assert check(m, largest) == Finding(OPEN, "; did not train: c")
    assert check(m, lambda m: all_of([m.above("a", "b"), m.above("b", "c")])).verdict == OPEN
    assert check(m, lambda m: all_of([m.above("b", "a"), m.above("b", "c")])).verdict == REVERSED
    assert check(m, lambda m: Finding(OPEN, str(m.values("c", "virtual_versions")))).verdict == OPEN
    assert check(m, not_run("no such device")).verdict == NOT_RUN
    stays = check(m, lambda m: m.above("b", "c"), of_constant_answers=True)
    assert stays.verdict == HOLDS and stays.detail.endswith("; did not train: c")
    undecided = constant(measured(a=[0.5, 0.5, 0.5], b=[0.5, 0.5, 0.5]), a=3, b=3)
    table = check_claims(undecided, [Claim("X-1", "Table 4", "", "", lambda m: m.above("a", "b"))])
    assert table["ours"].tolist() == [OPEN]


def test_numbers_are_compared_without_cells():
    """Fractions are printed in percent, other numbers as they are; two seeds decide nothing."""
    many, few = np.array([0.5, 0.52, 0.54]), np.array([0.3, 0.31, 0.32])
    found = compare(many, few, "a against b")
    assert (found.verdict, found.detail) == (HOLDS, "a against b: 52.0 ± 2.0, 31.0 ± 1.0, +21.0 [18.5, 23.5], 3 seeds")
    marked = compare(few, many, "b against a", marks=("", " (m)"))
    assert marked.verdict == REVERSED and "b against a: 31.0 ± 1.0, 52.0 ± 2.0 (m), -21.0 [" in marked.detail
    assert compare(many, few, "a against b", 0.25).verdict == FAILS
    assert compare(many, few, "a against b", 0.195).verdict == OPEN
    assert compare(many, few, "a against b", 0.195).detail.endswith(", 3 seeds (asked: above 19.5)")
    two = compare(many[:2], few, "a against b")
    assert (two.verdict, two.detail) == (OPEN, "a against b: 51.0 ± 1.4, 30.5 ± 0.7, +20.5, 2 seeds")
    times = compare(20 * many, 20 * few, "times", unit="s", scale=1)
    assert times.detail == "times: 10.4 ± 0.4, 6.2 ± 0.2, +4.2 [3.7, 4.7], 3 seeds"
    assert compare(few + 1e-4 * many, few, "", unit="s").contrast.equal == 1  # of seconds nobody said what is equal
    assert compare(None, few, "a against b") == Finding(NOT_RUN, "a against b: not run")


def timed(**cells: tuple[float, float]) -> Measured:
    """Ten seeds of runs that reach an accuracy of one half after so long, and end; seeds differ by up to 8 %."""

    def curve(when: float, end: float, seed: int) -> pd.DataFrame:
        at = when * (1 + (seed * 7 % 10) / 125)
        rows = [(0.0, 0.1), (at, 0.6), (end, 0.6)] if at < end else [(0.0, 0.1), (end / 2, 0.2), (end, 0.2)]
        return pd.DataFrame(rows, columns=["time", "accuracy"])

    return Measured({}, {name: [curve(*at, seed) for seed in range(10)] for name, at in cells.items()})


@pytest.mark.parametrize(
    ("left", "right", "factor", "verdict"),
    [
        ((10, 100), (30, 100), 1, HOLDS),
        ((30, 100), (10, 100), 1, REVERSED),
        ((20, 100), (20, 100), 1, EQUIVALENT),
        ((10, 100), (30, 100), 4, FAILS),
        ((10, 100), (80, 100), 4, HOLDS),
        ((10, 100), (1000, 100), 4, HOLDS),  # never, and the run ends late enough to say so
        ((30, 100), (1000, 100), 4, OPEN),  # never, and it ends too early for that
        ((30, 100), (1000, 100), 1, HOLDS),
        ((1000, 100), (30, 100), 1, REVERSED),
        ((1000, 100), (1000, 100), 1, OPEN),  # level, but nobody saw it
    ],
)
def test_sooner(left, right, factor, verdict):
    m = timed(a=left, b=right)
    assert m.sooner("a", "b", 0.5, factor=factor).verdict == verdict


def test_times_are_told_as_a_ratio_and_open_where_censored():
    found = timed(a=(10, 100), b=(20, 100)).sooner("a", "b", 0.5)
    assert found.contrast.unit == "log ratio" and ", × 2.00 [2.00, 2.00], 10 seeds" in found.detail
    never = timed(a=(10, 100), b=(900, 100)).sooner("a", "b", 0.5)
    assert never.contrast.high == math.inf and "not reached, × 9.6" in never.detail and ", ∞], 10 seeds" in never.detail
    assert timed(a=(10, 100)).sooner("a", "b", 0.5).verdict == NOT_RUN
    at_once = timed(a=(0.0, 100), b=(10, 100)).sooner("a", "b", 0.05)  # before the first test nothing is known
    assert np.isfinite(at_once.contrast.mean)


A_ABOVE_B = Claim("X-1", "Table 1", "a above b", "fails", lambda m: m.above("a", "b"))


def test_a_cells_twin_stands_in_for_it_in_the_other_column():
    """FedBuff tuned is equivalent to the method, with the fixed server rate it is far below."""
    m = measured(a=around(0.83), b=around(0.829), c=around(0.4), **{"b@server-rate": around(0.6)})
    other = Claim("X-2", "Table 1", "a above c", "holds", lambda m: m.above("a", "c"))
    clock = Claim("X-3", "Table 1", "b took long", "holds", lambda m: Finding(HOLDS, str(m.above("a", "b"))), CLOCK)
    table = check_claims(m, [A_ABOVE_B, other, clock]).set_index("id")
    assert table["ours"].tolist() == [EQUIVALENT, HOLDS, HOLDS]
    assert table[FIXED].tolist() == [HOLDS, HOLDS, HOLDS]
    assert "60.0 ±" in table.loc["X-1", f"{FIXED}, detail"] and table.loc["X-2", f"{FIXED}, detail"] == ""
    assert set(m.column("tuned").summaries) == set(m.column(AT_FIXED_RATE).summaries) == {"a", "b", "c"}
    only = measured(**{"b@server-rate": around(0.6)})
    assert only.column(AT_FIXED_RATE).by_seed("b") is not None and only.column("tuned").by_seed("b") is None


def test_discoveries_are_corrected_within_their_column():
    m = measured(a=around(0.9), b=around(0.5), c=around(0.5, times=10), d=around(0.51, times=10))
    claims = [
        Claim(name, "", "", "", lambda m, pair=pair: m.above(*pair))
        for name, pair in {"X-1": "ab", "X-2": "cd", "X-3": "dc", "X-4": "ax"}.items()
    ]
    table = table_of_discoveries(check_all(m, claims)).set_index("claim")
    assert table["verdict"].tolist() == [HOLDS, OPEN, OPEN] and table["survives"].tolist() == [True, *[False] * 2]
    assert table.loc["X-1", "q"] == pytest.approx(3 * table.loc["X-1", "p"])


def test_every_claim_has_a_kind_and_what_cannot_be_checked_says_why():
    claims = [claim for of_paper in CLAIMS.values() for claim in of_paper]
    assert {claim.kind for claim in claims} == set(KINDS)
    never = {claim.id: claim.check(Measured({})) for claim in claims if claim.kind == NOT_CHECKABLE}
    assert set(never) == {"FE-X-a", "FE-X-b", "FE-T5-a", "FR-T2-b", "KU-F7-a", "KU-F10-a"}
    assert all(finding.verdict == NOT_RUN and len(finding.detail) > 30 for finding in never.values())
    assert (
        {claim.id for claim in claims if claim.because}
        == {c.id for c in claims if c.kind == CONSTRUCTED}
        >= {*("FE-T5-b", "FA-T1-c", "FA-T1-e", "FR-F6-a", "FR-F7-a", "FR-F11-a", "KU-T1-a", "FE-T1-a")}
    )
    assert len(VERDICTS) == len(set(VERDICTS)) == 6


def test_ids_are_unique():
    ids = [claim.id for claims in CLAIMS.values() for claim in claims]
    assert len(set(ids)) == len(ids)


def test_a_cell_whose_twin_was_not_run_yet_is_no_comparison_in_the_other_column():
    """Else one side would be untuned and the other one tuned."""
    cells = {"a": around(0.83), "b": around(0.829), "a@server-rate": around(0.7)}
    for there in (cells, {name: cells[name] for name in "ab"}):
        planned = replace(measured(**there), planned={"a", "b", "a@server-rate", "b@server-rate"})
        (row,) = check_claims(planned, [A_ABOVE_B]).to_dict("records")
        assert (row["ours"], row[FIXED]) == (EQUIVALENT, NOT_RUN)

"""Rates that were searched elsewhere are borrowed: found by comparing configurations, and they decide nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from asyncfl_reproduction.claims import (
    BORROWED,
    HOLDS,
    PARTLY,
    REVERSED,
    UNDECIDED,
    WHERE_RUN,
    Measured,
    table_of_discoveries,
)
from asyncfl_reproduction.claims.base import CLOCK, Claim, check_all, check_claim
from asyncfl_reproduction.claims.findings import Finding, all_of
from asyncfl_reproduction.grid.borrowed import borrowed, borrowed_from
from asyncfl_reproduction.grid.cells import Cell, expand_grid

EXPERIMENTS = Path(__file__).parents[2] / "asyncfl_reproduction/cells"


@pytest.fixture(scope="module")
def cells() -> dict[str, Cell]:
    found = [cell for paper in ("fedecho", "kuiper") for cell in expand_grid(EXPERIMENTS / "laptop.yaml", paper=paper)]
    return {cell.name: cell for cell in found}


def taken(cell: Cell, **changed: object) -> Cell:
    """Return the cell with other settings, and the choice of the same search."""
    return replace(cell, config=cell.config.__class__.from_mapping(cell.config.as_dict() | changed))


def test_a_cell_is_borrowed_by_what_differs_from_the_search(cells):
    own = cells["kuiper/fig3b/bias1/kuiper"]
    own = replace(own, tuned=("kuiper-glyphs50-bias1", "kuiper", "tuned"), search=None, rates_of=None)
    assert borrowed_from(own) == ()
    assert borrowed_from(taken(own, seed=7, eval_every=50, client_lr=0.7)) == ()
    assert borrowed_from(taken(own, settings=own.config.as_dict()["settings"] | {"mixing": 0.11})) == ()
    assert borrowed_from(taken(own, rounds=101)) == ("rounds",)
    assert borrowed_from(taken(own, partition_settings={"bias": 0.5})) == ("partition_settings.bias",)
    other = replace(own, tuned=("kuiper-glyphs50-bias0", "kuiper", "tuned"))
    assert borrowed_from(other) == ("partition_settings.bias",)
    assert borrowed_from(replace(own, tuned=("no-such-study", "kuiper", "tuned"))) == ("study",)


def test_a_search_of_ones_own_is_never_borrowed_and_rates_of_another_cell_always_are(cells):
    cell = taken(cells["kuiper/fig3b/bias1/kuiper"], rounds=77)
    assert borrowed_from(replace(cell, tuned=None, rates_of=None)) == ()
    assert borrowed_from(replace(cell, tuned=None, rates_of="kuiper/fig3b/bias1/oort")) == ("kuiper/fig3b/bias1/oort",)


def test_every_cell_without_a_search_of_its_own_is_compared(cells):
    found = borrowed(cells.values())
    for name, cell in cells.items():
        if cell.search is not None or cell.tuned is None and cell.rates_of is None:
            assert name not in found
    by_twin = {name for name in cells if name.endswith("@printed") and name.removesuffix("@printed") in cells}
    assert all((name in found) == (name.removesuffix("@printed") in found) for name in by_twin)


def world(borrowed: tuple[str, ...] = (), **means: float) -> Measured:
    """Ten seeds a cell, in percent, which differ by tenths of points."""
    shake = np.random.default_rng(0).standard_normal((len(means), 10)) / 1000
    values = {name: mean / 100 + row for (name, mean), row in zip(means.items(), shake, strict=True)}
    frames = {name: pd.DataFrame({"last5_accuracy": x, "versions": 3.0}) for name, x in values.items()}
    return Measured(frames, borrowed=borrowed)


def claim(*pairs: str, kind: str = "trained") -> Claim:
    return Claim("X-1", "", "", "", lambda m: all_of(m.above(*pair) for pair in pairs), kind)


def verdict(m: Measured, *pairs: str) -> str:
    return check_claim(m, claim(*pairs)).finding.verdict


def test_a_borrowed_cell_decides_nothing_on_either_side():
    means = {"a": 90.0, "b": 80.0, "c": 70.0, "d": 80.1}
    assert verdict(world(**means), "ab") == HOLDS and verdict(world(**means), "ba") == REVERSED
    for cell in "ab":
        m = world((cell,), **means)
        assert verdict(m, "ab") == verdict(m, "ba") == verdict(m, "ab", "bc") == BORROWED
        assert f"borrowed: {cell}" in check_claim(m, claim("ab")).finding.detail
    assert verdict(world(("d",), **means), "ab", "bc") == HOLDS


def test_what_others_refute_stays_refuted():
    means = {"a": 90.0, "b": 80.0, "c": 70.0, "d": 80.1}
    assert verdict(world(("a",), **means), "ab", "cb") == REVERSED
    assert verdict(world(("a",), **means), "ab", "bd") == PARTLY  # level, and the other comparison decides nothing


def test_columns_have_their_own():
    m = world(("a@printed",), a=90.0, b=80.0, **{"a@printed": 90.0, "b@printed": 70.0})
    found = {one.column: one.finding.verdict for one in check_all(m, [claim("ab")])}
    assert found == {"tuned": HOLDS, "printed": BORROWED}
    assert len(table_of_discoveries(check_all(m, [claim("ab")]))) == 1


def test_claims_of_the_clock_need_no_rates():
    m = world(("a",), a=90.0)
    told = Claim("X-2", "", "", "", lambda m: Finding(UNDECIDED, str(m.by_seed("a", "versions").sum())), CLOCK)
    assert check_claim(m, told).finding.verdict == UNDECIDED


def test_a_claim_is_judged_on_searched_cells_alone_if_any_part_of_it_was_run_there():
    borrowing, searched = world(("a", "b"), a=90.0, b=80.0, c=70.0), world(a=70.0, b=80.0, c=60.0)
    for other, cells, verdict, fair in (
        (None, ["ab"], BORROWED, False),
        (searched, ["ab"], REVERSED, True),
        (searched.without(["b"]), ["ab"], BORROWED, False),
        (searched.without(["b"]), ["ab", "ac"], WHERE_RUN, True),
        (searched.without(["c"]), ["ab", "ac"], REVERSED, True),
    ):
        (found,) = check_all(borrowing, [claim(*cells)], other)
        assert (found.finding.verdict, found.fair) == (verdict, fair)
        assert ("; searched where it is used" in found.finding.detail) is fair
        assert ("left out" in found.finding.detail) is (fair and other is not searched)


def test_a_searched_cell_does_not_stand_in_for_a_twin_that_only_older_searches_have():
    older = world(a=60.0, b=60.0, **{"a@printed": 80.0, "b@printed": 70.0})
    searched = world(a=90.0, b=75.0, **{"a@printed": 70.0})  # its 75.0 is tuned
    found = {one.column: (one.finding.verdict, one.fair) for one in check_all(older, [claim("ab")], searched)}
    assert found == {"tuned": (HOLDS, True), "printed": (HOLDS, False)}


def test_what_no_training_decides_is_never_judged_elsewhere():
    (found,) = check_all(world(a=90.0, b=80.0), [replace(claim("ab"), kind=CLOCK)], world(a=70.0, b=80.0))
    assert (found.finding.verdict, found.fair) == (HOLDS, False)

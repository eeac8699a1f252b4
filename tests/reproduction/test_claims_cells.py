"""The papers' grids: how many cells an artefact has, the printed rows beside them, and the cells that claims need."""

from __future__ import annotations

import re

import pytest
from asked import PAPERS, TIERS, Asked, cells_of, matching, printed

from asyncfl_reproduction.claims import CLAIMS, NOT_RUN, Measured
from asyncfl_reproduction.claims.fedrevive import SIMULATED

COUNTS = {
    "fedecho": (74, 86, 27),
    "fedrevive": (53, 56, 11),
    "kuiper": (343, 202, 21),
    "fedadt": (114, 119, 13),
}
"""Paper -> its number of cells in the tiers paper, laptop and smoke."""
OURS = re.compile(
    r"/beside/|/control/|/equal-steps|/same-rates/|/jitter/|/fedbuff-(decayed|adaptive)|cifar100.*/fixed-0"
)
"""Cells that are in no table of a paper."""
WHOLE = {
    "fedecho": [f"Table {number}" for number in (2, 3, 4, 5, 6, 7, 11)],
    "fedrevive": ["Table 1"],
    "fedadt": [f"Table {number}" for number in ("I", "II", "III", "IV")],
}
"""Tables of which every number has a cell of the paper's tier."""
each = pytest.mark.parametrize("paper", PAPERS)


@each
def test_no_cell_is_lost(paper):
    for index, tier in enumerate(TIERS):
        cells = cells_of(paper, tier)
        assert len(cells) == COUNTS[paper][index], tier
        assert paper != "kuiper" or len({cell.config.hash for cell in cells.values()}) == len(cells)
        assert all(cell.ours and re.fullmatch(rf"{paper}/[a-z0-9._/-]+", name) for name, cell in cells.items())


@each
def test_every_cell_stands_beside_printed_rows(paper):
    """A cell has one printed number, or both metrics of FedRevive's Table 1; a plot prints none."""
    for name, cell in ((name, cell) for tier in TIERS for name, cell in cells_of(paper, tier).items()):
        assert bool(cell.published) != bool(OURS.search(name)), name
        for row in cell.published:
            plot = row["artefact"].startswith("Fig.") and printed(paper, row["artefact"])[0].empty
            assert len(matching(paper, row)) == (0 if plot else 1 + (row["artefact"] == "Table 1")), (name, row)


@pytest.mark.parametrize("paper", WHOLE)
def test_every_printed_number_has_one_cell_of_the_papers_tier(paper):
    rows = [row for cell in cells_of(paper, "paper").values() for row in cell.published]
    served = [(row["artefact"], place) for row in rows for place in matching(paper, row).index]
    assert len(set(served)) == len(served)
    for artefact in WHOLE[paper]:
        table = printed(paper, artefact)[0].query("method != 'none (pretrained start)'")
        assert {place for of, place in served if of == artefact} == set(table.index)


@each
def test_claims_ask_for_cells_that_exist_and_without_them_are_not_run(paper):
    names: set[str] = set()
    for claim in CLAIMS[paper]:
        asked = Asked()
        for tier in TIERS if claim not in SIMULATED else ():
            found = claim.check(Measured(asked, asked, planned=set(cells_of(paper, tier))))
            if not asked.names:
                break  # printed numbers or simulations decide
            assert found.verdict == NOT_RUN, claim.id
        names |= asked.names
    assert len(names) > 30 and names <= {name for tier in TIERS for name in cells_of(paper, tier)}
    if paper == "fedecho":
        assert names >= set(cells_of(paper, "paper"))

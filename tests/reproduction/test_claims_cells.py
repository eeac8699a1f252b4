"""The papers' grids: how many cells an artefact has, the printed rows beside them, and the cells that claims need."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from asked import PAPERS, TIERS, Asked, cells_of, matching, printed

from asyncfl_reproduction.claims import CLAIMS, NOT_RUN, Measured
from asyncfl_reproduction.claims.fedrevive import SIMULATED

COUNTS = {
    "fedecho": {
        "table2": (28, 30, 13), "table3": (28, 28, 0), "table4": (5, 5, 2), "table5": (5, 0, 2), "table6": (3, 6, 3),
        "table7": (3, 3, 3), "table11": (2, 2, 2), "control": (0, 2, 0), "same-rates": (0, 8, 0), "beside": (0, 2, 2),
    },
    "fedrevive": {
        "table1": (20, 20, 5), "figure3": (8, 8, 2), "figure4": (2, 2, 2), "control": (4, 3, 1), "figure5": (3, 3, 1),
        "figure8": (15, 6, 0), "text": (1, 1, 0), "same-rates": (0, 13, 0),
    },
    "kuiper": {
        "table3": (5, 5, 1), "table4": (2, 2, 0), "fig16": (2, 1, 0), "fig2": (8, 3, 1), "fig3": (48, 36, 5),
        "fig4": (28, 21, 0), "fig5": (80, 16, 0), "fig6": (13, 9, 3), "fig7": (28, 14, 2), "fig8": (16, 8, 0),
        "fig9": (33, 9, 4), "fig10": (36, 6, 0), "fig11": (8, 5, 0), "fig12": (6, 6, 0), "fig13": (12, 4, 0),
        "fig14": (4, 8, 0), "accuracy": (0, 37, 5), "last": (11, 0, 0), "jitter": (3, 12, 0),
    },
    "fedadt": {
        "table1": (84, 84, 7), "table3": (12, 16, 2), "table4": (12, 12, 4), "fig1": (6, 6, 0), "control": (0, 1, 0),
    },
}  # fmt: skip
"""Paper -> artefact -> its number of cells in the tiers paper, laptop and smoke."""
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
def test_every_artefact_has_its_cells(paper):
    for index, tier in enumerate(TIERS):
        cells = cells_of(paper, tier)
        counted = Counter(re.sub(r"(?<=\d)[abc]$", "", name.split("/")[1]) for name in cells)
        assert counted == {artefact: numbers[index] for artefact, numbers in COUNTS[paper].items() if numbers[index]}
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

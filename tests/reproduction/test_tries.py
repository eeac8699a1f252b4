"""What tuning buys: the expected best after so many tries, and its picture."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.report.searches import MARKED, draw_tries, expected_best, tries
from asyncfl_reproduction.tuning.grids import own_search
from asyncfl_reproduction.tuning.outcomes import FIELDS, METRIC, keep, of_cells

ROOT = Path(__file__).parents[2]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_it_is_the_mean_over_all_ways_to_choose_so_many(values):
    found = expected_best(np.array(values))
    for k in range(1, len(values) + 1):
        assert found[k - 1] == pytest.approx(np.mean([max(chosen) for chosen in combinations(values, k)]))


def test_the_picture_has_a_panel_for_each_study_and_a_line_for_each_method(tmp_path):
    cell = expand_grid(ROOT / "asyncfl_reproduction/cells/laptop.yaml", only="fedecho/table2/large-dir0.1/fedbuff")[0]
    names = [
        f"paper/{study}/{method}" for study in ("a", "b") for method in ("fedbuff", "fedecho-natural", "fedecho-cross")
    ]
    cells = [replace(cell, name=name, search=own_search(name, "fedecho-images/fedbuff", {})) for name in names]
    runs = [*((number, 100, accuracy) for number, accuracy in enumerate([0.1, np.nan, *[0.5] * 34])), (0, 101, 0.9)]
    nothing = dict.fromkeys(FIELDS)
    rows = [{**nothing, "point": str(number), "seed": seed, METRIC: accuracy} for number, seed, accuracy in runs]
    for name in names:  # the last row's seed does not count
        keep(of_cells(cell.tier, name, tmp_path), name, rows)
    table = tries(cells, tmp_path)
    assert table.groupby("cell")["tries"].max().tolist() == [36] * 6
    assert table["accuracy"].max() == pytest.approx(0.5)
    figure = draw_tries(table)
    panels = [axis for axis in figure.axes if axis.get_visible()]
    assert len(panels) == 2 and panels[0].get_xticks().tolist() == list(MARKED)
    lines = [line for line in panels[0].get_lines() if len(line.get_xdata()) == 36]
    assert len(lines) == 3 and len({line.get_color() for line in lines}) == 3
    assert draw_tries(tries([], tmp_path)) is None

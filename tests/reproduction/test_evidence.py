"""Pictures of evidence: the headlines' forest, what tries buy, and the papers' leads beside ours."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import refresh
from asked import cells_of
from hypothesis import given
from hypothesis import strategies as st

from asyncfl_lite import plots
from asyncfl_reproduction.grid.record import RUNS
from asyncfl_reproduction.parquet import write_table
from asyncfl_reproduction.report.forest import draw_forest
from asyncfl_reproduction.report.leads import EXACT, LEADS, RATES, STAND_IN, together
from asyncfl_reproduction.report.searches import MARKED, draw_tries, expected_best, tries
from asyncfl_reproduction.tuning.grids import own_search
from asyncfl_reproduction.tuning.outcomes import FIELDS, METRIC, keep, of_cells

ROOT = Path(__file__).parents[2]


def headlines_like(**changed) -> pd.DataFrame:
    """Two headlines in two columns, as they are checked."""
    rows = [
        ("FE-2", "points", "tuned", 0.01, -0.02, 0.04, False),
        ("FE-2", "points", "server_rate", 0.60, 0.50, 0.70, True),
        ("FR-2", "log ratio", "tuned", 0.2, 0.1, 0.3, True),
        ("KU-1", math.nan, "tuned", math.nan, math.nan, math.nan, False),
    ]
    table = pd.DataFrame(rows, columns=["id", "unit", "column", "mean", "low", "high", "survives"])
    table = table.assign(verdict="holds", sentence=table["id"].map("headline {}".format), paper="+1 points")
    return table.assign(**changed)


def test_a_forest_has_an_interval_per_column_and_says_what_was_not_run():
    before = plt.get_fignums()  # another test of this process may have left a figure open
    figure = draw_forest(headlines_like())
    points, ratios = figure.axes
    assert [label.get_text() for label in points.get_yticklabels()][::-1] == [
        f"headline {name}\n(paper: +1 points)" for name in ("FE-2", "FR-2", "KU-1")
    ]
    assert [text.get_text().strip() for text in points.texts] == ["not run"] and points.texts[0].get_position()[1] == 0
    lines = {tuple(line.get_xdata()): line for line in points.lines if len(line.get_xdata()) == 2}
    assert (-2.0, 4.0) in lines and (30.0, 30.0) in lines  # cut at the axis' end, with an arrow
    assert any(line.get_marker() == ">" for line in points.lines)
    filled = {line.get_xdata()[0]: line.get_markerfacecolor() for line in points.lines if line.get_marker() in "os"
              and len(line.get_xdata())}  # fmt: skip
    assert filled[1.0] == "white" and filled[30.0] == plots.colour("fedecho")
    (interval,) = [line for line in ratios.lines if np.allclose(line.get_xdata(), (0.1, 0.3))]
    assert interval.get_color() == plots.colour("fedrevive")
    assert plt.get_fignums() == before  # else a notebook would show it a second time


def test_there_is_no_forest_of_nothing():
    assert draw_forest(headlines_like(mean=math.nan)) is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_it_is_the_mean_over_all_ways_to_choose_so_many(values):
    found = expected_best(np.array(values))
    for k in range(1, len(values) + 1):
        assert found[k - 1] == pytest.approx(np.mean([max(chosen) for chosen in combinations(values, k)]))


def test_the_picture_has_a_panel_for_each_study_and_a_line_for_each_method(tmp_path):
    cell = cells_of("fedecho", "laptop")["fedecho/table2/large-dir0.1/fedbuff"]
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


def test_every_paper_is_there_tuned():
    table = together()
    assert {cell.split("/")[0] for cell in table["ours"]} >= {"fedecho", "fedrevive", "kuiper", "fedadt"}
    assert table.groupby(["title", "kind"])["tuned"].any().all()  # beside plain FedBuff where that was run, too
    assert ((table["low"] <= table["mean"]) & (table["mean"] <= table["high"])).all()


@pytest.mark.parametrize("lead", [lead for lead in LEADS if lead.kind == STAND_IN], ids=lambda lead: lead.title)
def test_a_printed_lead_is_the_papers(lead):
    assert lead.printed == pytest.approx(refresh.printed_gain(lead.ours, lead.fedbuff), abs=0.05)


def recorded(folder: Path, accuracies: dict[str, list[float]]) -> Path:
    """Write runs of KUIPER's own cells, by the last part of their names."""
    place = next(lead for lead in LEADS if lead.kind == EXACT).ours.rpartition("/")[0]
    rows = [{"cell": f"{place}/{name}", "seed": seed, "last5_accuracy": value}
            for name, values in accuracies.items() for seed, value in enumerate(values)]  # fmt: skip
    path = folder / "paper/kuiper" / RUNS
    path.parent.mkdir(parents=True)
    write_table(path, pd.DataFrame(rows))
    return folder


def test_a_papers_own_cell_takes_fedbuffs_best_rate_of_the_first_seed(tmp_path):
    slow = {name: [0.5] * 3 for name in RATES[3:]}
    folder = recorded(tmp_path, {"kuiper": [0.9, 0.91, 0.92], "fedbuff": [0.1, 0.1, 0.1], **slow,
                                 "fedbuff-rate0.3": [0.95, 0.9, 0.9], "fedbuff-rate0.1": [0.8, 0.99, 0.99]})  # fmt: skip
    table = together(folder).set_index("tuned")
    assert table["mean"].to_dict() == pytest.approx({False: 81.0, True: 100 * np.mean([-0.05, 0.01, 0.02])})


def test_a_cell_with_one_rate_missing_is_shown_beside_plain_fedbuff_alone(tmp_path):
    folder = recorded(tmp_path, {"kuiper": [0.9] * 3, "fedbuff": [0.1] * 3, "fedbuff-rate0.3": [0.95] * 3})
    assert together(folder)["tuned"].tolist() == [False]


def test_the_committed_picture_is_todays(tmp_path):
    refresh.picture(tmp_path / "together.svg")
    kept = (ROOT / "docs/pictures/together.svg").read_text()
    assert (tmp_path / "together.svg").read_text() == kept, "make docs"

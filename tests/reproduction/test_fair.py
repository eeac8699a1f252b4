"""docs/fair.md against the records of the tier, and what its comparisons rest on."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from asyncfl_course import lessons
from asyncfl_lite.runs.config import Config
from asyncfl_reproduction import home
from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.grid.tidy import RUNS
from asyncfl_reproduction.parquet import read_table
from asyncfl_reproduction.statistics import ERROR_LEVEL, Contrast, benjamini_hochberg, contrast, holm, scaled
from asyncfl_reproduction.tuning.choices import best_in
from asyncfl_reproduction.verdicts import EQUIVALENT, HOLDS, OPEN, REVERSED
from asyncfl_reproduction.written import in_points

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/fair.md").read_text(encoding="utf-8")
ROWS = [[part.strip() for part in line.strip("|").split("|")] for line in PAGE.splitlines() if "` − `" in line]


COLUMNS = ("tuned", "server_rate", "printed")
"""Columns of a row that has three differences."""
NOT_COMPARED = PAGE.partition("## What cannot be compared")[2].partition("\n## ")[0]


@cache
def runs() -> pd.DataFrame:
    return pd.concat(map(read_table, (home.RESULTS / "laptop").glob(f"*/{RUNS}"))).set_index("cell")


def found(left: str, right: str, column: str = "tuned") -> Contrast | None:
    gap = lessons.evidence(left.split("/")[0]).column(column).gap(left, right)
    return None if gap is None else contrast(gap.to_numpy(), "")


def difference(left: str, right: str, column: str = "tuned") -> str:
    one = found(left, right, column)
    return "not run" if one is None else in_points(one)


def columns_of(row: list[str]) -> tuple[str, ...]:
    """The columns whose differences a row has between its name and its cells."""
    number = len(row) - 2
    return COLUMNS if number == 3 else ("all_printed",) if row[0] in NOT_COMPARED else COLUMNS[:1]


def sentences(text: str) -> list[tuple[str, str, str]]:
    """Beginning, end and today's text of the sentences that count the tuned rows."""
    rows = [re.findall(r"`([^`]+)`", line) for line in text.splitlines() if "` − `" in line]
    where = [row[-2:] for row in rows if not row[0].endswith("@all-printed")]
    pairs = [tuple(pair) for pair in dict.fromkeys(map(tuple, where))]
    tuned = [one for pair in pairs if (one := found(*pair)) is not None]
    p = [scaled(one.p, one.seeds) for one in tuned]
    clear, kept, held = (int((np.asarray(of) <= ERROR_LEVEL).sum()) for of in (p, benjamini_hochberg(p), holm(p)))
    many = f"Among all tuned differences, {clear} of {len(p)} exclude 0. If the false ones are to be 5 % at most "
    many += f"(Benjamini and Hochberg), {kept} stay; if there is to be none (Holm), {held}."
    leads = [
        pair for pair in pairs if "/table2/" in pair[0] and "/fedecho-" in pair[0] and pair[1].endswith("/fedbuff")
    ]
    told = []
    for margin in (0.5, 1.0, 2.0):
        words = Counter(WORDS[by_margin(*pair, margin / 100).verdict] for pair in leads)
        told.append(f"{margin:g}: " + ", ".join(f"{words[word]} {word}" for word in WORDS.values() if words[word]))
    margins = (
        f"By the margin of equivalence in points, the {len(leads)} tuned differences are, at {'; at '.join(told)}."
    )
    return [
        ("Among all tuned differences", ".\n", many + "\n"),
        ("By the margin of equivalence", ".\n", margins + "\n"),
    ]


WORDS = {HOLDS: "above", OPEN: "open", EQUIVALENT: "equivalent", REVERSED: "below"}


@cache
def by_margin(left: str, right: str, margin: float) -> Contrast:
    gap = lessons.evidence(left.split("/")[0]).column("tuned").gap(left, right)
    return contrast(gap.to_numpy(), "", equal=margin)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_difference_is_what_was_recorded(row):
    cells = re.findall(r"`([^`]+)`", row[-1])
    assert row[1:-1] == [difference(*cells, column) for column in columns_of(row)]


@pytest.mark.parametrize("which", [0, 1])
def test_sentences_count_the_rows(which):
    said = " ".join(sentences(PAGE)[which][-1].split())
    assert said in " ".join(PAGE.split()), said


@pytest.mark.parametrize(
    ("paper", "method", "option", "edge", "said"),
    [
        ("*", "fedbuff", "server_lr", max, "the largest in {} of its {} searches"),
        ("fedecho", "", "settings.distill_lr", min, "the smallest in {} of {}. FedADT"),
        ("fedadt", "", "settings.alpha_max", min, "0.2, is the smallest in {} of {}"),
    ],
)
def test_how_many_searches_end_on_an_edge(paper, method, option, edge, said):
    tried = pd.concat(map(read_table, (home.RESULTS / "laptop").glob(f"{paper}/searches.parquet")))
    ends = []
    for search, rows in tried.groupby("search"):
        values = [value for point in rows["point"].unique() if (value := json.loads(point).get(option)) is not None]
        if values and search.endswith(method) and "@" not in search and (best := best_in("laptop", search)) is not None:
            ends.append(json.loads(best[0])[option] == edge(values))
    assert said.format(sum(ends), len(ends)) in " ".join(PAGE.split())


@pytest.fixture(scope="module")
def cells():
    return {cell.name: cell for cell in expand_grid(ROOT / "asyncfl_reproduction/cells/laptop.yaml")}


def test_what_is_compared_differs_in_method_and_rates_alone(cells):
    """A control proves that it controlled: the two sides have the same data, clients, delays and versions."""
    same = [
        "task",
        "task_settings",
        "model",
        "model_settings",
        "delay",
        "delay_settings",
        "partition",
        "alpha",
        "clients",
    ]
    for row in ROWS:
        left, right = (cells[name].config.as_dict() for name in re.findall(r"`([^`]+)`", row[-1]))
        dropped = "dropped" in row[-1]  # fewer clients, with delays of their own
        other = {"partition", "clients", "delay_settings"} if dropped else set()
        other |= {"delay"} if dropped and "fig7" in row[-1] else set()
        other |= {"delay"} if row[-1].count("-shifted/") == 1 else set()  # what other delays cost one method
        assert {key for key in same if left[key] != right[key]} == other
        assert left != right


def test_no_cell_is_judged_on_what_it_was_chosen_on(cells):
    for cell in cells.values():
        if cell.search is not None:
            point = {option: values[0] for option, values in cell.search.grid.items()}
            tried = cell.search.config(point, cell.search.seeds[0])
            assert (tried.eval_split, cell.config.eval_split) == ("validation", "test")
            options = {option.partition(".")[0] for option in cell.search.grid}
            beside = {"seed", "eval_split", *options}
            parts = [{k: v for k, v in one.as_dict().items() if k not in beside} for one in (tried, cell.config)]
            assert parts[0] == parts[1]
            used = {*cell.search.seeds, *(seed for stage in cell.search.stages for seed in stage.seeds)}
            assert used.isdisjoint(cell.seeds)


def test_what_is_recorded_is_of_todays_cells(cells):
    hashes = runs().groupby(level=0)["config_hash"].agg(set)
    for name, found in hashes.items():
        cell = cells[name]
        assert found <= {config.hash for config in cell.configs}, name
    assert all(isinstance(cells[name].config, Config) for name in hashes.index)


def test_every_choice_names_a_commit_of_its_day():
    rows = re.findall(r"^\|.*\| (\d+) November (\d\d:\d\d), `([0-9a-f]{7})` \|", PAGE, re.M)
    assert len(rows) == 16
    if subprocess.run(["git", "cat-file", "-e", rows[0][2]], cwd=ROOT, capture_output=True).returncode:
        pytest.skip("the history is not here")
    for day, minute, commit in rows:
        told = ["git", "show", "-s", "--format=%ad", "--date=format:%-d %H:%M", commit]
        assert subprocess.run(told, cwd=ROOT, capture_output=True, text=True).stdout.strip() == f"{day} {minute}", (
            commit
        )

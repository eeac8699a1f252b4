"""What the comparisons of docs/fair.md rest on; its numbers are held to the records in test_findings.py."""

from __future__ import annotations

import json
import re
import subprocess

import pandas as pd
import pytest
from refresh import rows_of, runs

from asyncfl_lite.runs.config import Config
from asyncfl_reproduction import home
from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.parquet import read_table
from asyncfl_reproduction.tuning.choices import best_in
from conftest import ROOT

PAGE = (ROOT / "docs/fair.md").read_text(encoding="utf-8")
ROWS = [row for row in rows_of(PAGE) if "` − `" in row[-1]]


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


def test_what_the_text_says_of_single_cells_is_what_was_run(cells):
    said, ran = " ".join(PAGE.split()), runs("laptop").groupby(level=0)["client_updates"].mean()
    digits, mnist = "fedrevive/table1/cifar10/fedrevive", "fedadt/table1/mnist-dir0.1"
    revive, mixed = cells[digits].config, cells[f"{mnist}/fedasync"].config.settings
    assert f"after {revive.horizon:.0f} units of time and about {round(ran[digits], -2):,.0f} client updates" in said
    assert f"at version {revive.settings.synthesis_only_rounds + 1} only" in said
    assert "three tenths of this weight" in said and (mixed.mixing, mixed.poly_a) == (0.3, 0.5)
    parts = [ran[f"{mnist}/{name}"] / ran[f"{mnist}/fedadt"] for name in ("fedavg", "fedavgm")]
    assert "two fifths of its updates" in said and parts == pytest.approx([0.4, 0.4], abs=0.02)
    (real,) = expand_grid(home.CELLS / "real.yaml", only="fedecho/table2/large-dir0.1/fedecho-natural")
    assert f"(On Fashion-MNIST it is {real.config.settings.distill_lr:.0e}.)".replace("e-0", "e-") in said


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
    hashes = runs("laptop").groupby(level=0)["config_hash"].agg(set)
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

"""A cell's own search: equal tries, growth for everybody, more seeds for the best, validation samples alone."""

from __future__ import annotations

import json
from dataclasses import replace
from math import isnan, nan
from pathlib import Path

import pandas as pd
import pytest

from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.runs.store import meaning
from asyncfl_reproduction.tuning import search
from asyncfl_reproduction.tuning.choices import chosen_for
from asyncfl_reproduction.tuning.grids import Search, Stage, points_of, read_grids
from asyncfl_reproduction.tuning.halving import carry_out, edges, grown
from asyncfl_reproduction.tuning.outcomes import FIELDS, METRIC, keep, of_cells, rows_of

SETTINGS = {"task": "glyphs", "task_settings": {"samples": 200, "test_samples": 50}, "algorithm": "fedbuff",
            "clients": 6, "concurrency": 3, "buffer_size": 2, "rounds": 3, "eval_every": 1, "local_epochs": 1,
            "eval_split": "validation"}  # fmt: skip
SEARCH = Search(
    "paper/table/column/fedbuff",
    SETTINGS,
    {"client_lr": [0.1, 0.2, 0.4], "server_lr": [0.5, 1.0], "settings.staleness_weight": ["none", "poly"]},
    (100,),
    (Stage(keep=3, seeds=[101]), Stage(keep=2, seeds=[102, 103])),
)


def made_up(monkeypatch, accuracy):
    """Let runs give made-up accuracies; return the configurations that are asked for."""
    asked = []

    def results(configs):
        asked.extend(configs)
        yield [None] * len(configs)

    def row(point, seed, config, result):
        return {"point": json.dumps(point), "seed": seed, METRIC: accuracy(config), "final_accuracy": 0.0,
                "config_hash": config.hash, "meaning": json.dumps(meaning(config)), "cpu_seconds": 0.0}  # fmt: skip

    monkeypatch.setattr(search, "results_of", results)
    monkeypatch.setattr(search, "row_of", row)
    return asked


def test_all_are_tried_once_and_the_best_with_more_seeds(monkeypatch, tmp_path):
    asked = made_up(monkeypatch, lambda config: -abs(config.client_lr - 0.2) - abs(config.server_lr - 1))
    best = carry_out("laptop", SEARCH, tmp_path, lambda line: None)
    assert best == {"client_lr": 0.2, "server_lr": 1.0, "settings.staleness_weight": "none"}
    seeds = [config.seed for config in asked]
    # 12 combinations and, as the server's best rate lies on its edge, 6 more; then 3 with one seed more, 2 with two
    assert [seeds.count(seed) for seed in (100, 101, 102, 103)] == [18, 3, 2, 2]
    assert {config.eval_split for config in asked} == {"validation"}
    assert len(rows_of(of_cells("laptop", SEARCH.name, tmp_path), SEARCH.name)) == len(asked)


def test_what_is_kept_is_not_run_again_and_chooses_the_same(monkeypatch, tmp_path):
    def accuracy(config):  # which combinations are ahead depends on how many seeds are counted
        return {0.1: 0.5, 0.2: 0.4, 0.4: 0.45}.get(config.client_lr, 0.3) + 0.2 * (config.seed > 100) * config.client_lr

    asked = made_up(monkeypatch, accuracy)
    best = carry_out("laptop", SEARCH, tmp_path, lambda line: None)
    path, whole = of_cells("laptop", SEARCH.name, tmp_path), list(asked)
    keep(path, SEARCH.name, rows_of(path, SEARCH.name)[:-2])
    keep(path, "paper/table/column/fedasync", rows_of(path, SEARCH.name)[:3])
    asked.clear()
    assert carry_out("laptop", SEARCH, tmp_path, lambda line: None) == best
    assert [config.hash for config in asked] == [config.hash for config in whole[-2:]]
    asked.clear()
    changed = replace(SEARCH, settings={**SETTINGS, "rounds": 4})
    carry_out("laptop", changed, tmp_path, lambda line: None)
    assert len(asked) == len(whole)
    assert len(rows_of(path, "paper/table/column/fedasync")) == 3  # what is kept of others stays


def test_values_beyond_an_edge_are_tried_with_all_seeds_in_a_search_that_has_ended(monkeypatch, tmp_path):
    asked = made_up(monkeypatch, lambda config: config.client_lr - abs(config.server_lr - 1))
    search = replace(SEARCH, grid={"client_lr": [0.1, 0.2, 0.4], "server_lr": [0.3, 1.0, 3.0]})
    assert carry_out("laptop", search, tmp_path, lambda line: None)["client_lr"] == 0.8
    asked.clear()
    assert carry_out("laptop", search, tmp_path, lambda line: None, beyond=2)["client_lr"] == 3.2
    assert [(config.client_lr, config.server_lr, config.seed) for config in asked] == [
        (rate, 1.0, seed) for seed in (100, 101, 102, 103) for rate in (1.6, 3.2)
    ]


def test_a_grid_grows_beyond_an_edge_or_beside_the_best():
    points = points_of(SEARCH.grid)

    def ahead(**best):
        best = {"settings.staleness_weight": "none", **best}
        return sorted(points, key=lambda point: sum(point[option] != value for option, value in best.items()))

    assert edges(SEARCH, SEARCH.grid, ahead(client_lr=0.4, server_lr=1.0)[0]) == ["client_lr", "server_lr"]
    assert grown(SEARCH, ahead(client_lr=0.4, server_lr=1.0))["client_lr"] == [0.1, 0.2, 0.4, 0.8]
    assert grown(SEARCH, ahead(client_lr=0.1, server_lr=1.0))["client_lr"] == [0.05, 0.1, 0.2, 0.4]
    assert grown(SEARCH, ahead(client_lr=0.2, server_lr=0.5))["server_lr"] == [0.25, 0.5, 1.0]
    inside = replace(SEARCH, grid={**SEARCH.grid, "server_lr": [1.0]})
    best, *rest = [point for point in points_of(inside.grid) if point["client_lr"] == 0.2]
    others = [{**best, "client_lr": 0.4}, {**best, "client_lr": 0.1}, *rest]
    assert edges(inside, inside.grid, best) == []
    assert grown(inside, [best, *others])["client_lr"] == [0.1, 0.2, 0.28, 0.4]


def tell(folder, cell: str, accuracies: dict[float, float], column: str = "tuned", left_out: int = 0) -> None:
    """Keep a search in which each client rate had this accuracy with every seed."""
    file = getattr(read_grids(), column)
    seeds = [*file.seeds, *(seed for stage in file.stages for seed in stage.seeds)]
    row = dict.fromkeys(FIELDS, "") | {"final_accuracy": 0.0, "cpu_seconds": 0.0}
    rows = [
        row | {"point": json.dumps({"client_lr": rate}), "seed": seed, METRIC: accuracy}
        for rate, accuracy in accuracies.items()
        for seed in seeds
    ]
    keep(of_cells("laptop", cell, folder), cell, rows[: len(rows) - left_out])


@pytest.mark.parametrize(("column", "ending"), [("printed", "@printed"), ("server_rate", "@server-rate")])
@pytest.mark.parametrize(("other", "chosen"), [(0.29, 0.3), (0.3, 0.3), (0.31, 0.9), (nan, 0.3)])
def test_a_tuned_cell_takes_the_best_of_all_searches_of_its_place(tmp_path, column, ending, other, chosen):
    tell(tmp_path, "p/a", {0.1: 0.1, 0.2: 0.2, 0.3: 0.3})
    tell(tmp_path, "p/a" + ending, {0.7: 0.1, 0.8: 0.2, 0.9: other}, column)
    assert chosen_for("laptop", "p/a", folder=tmp_path) == {"client_lr": chosen}
    own = chosen_for("laptop", "p/a" + ending, column, tmp_path)
    assert own == {"client_lr": 0.8 if isnan(other) else 0.9}


def test_half_a_search_chooses_nothing(tmp_path):
    tell(tmp_path, "p/half", {0.1: 0.1, 0.2: 0.2, 0.3: 0.3}, left_out=1)
    tell(tmp_path, "p/diverged", {0.1: 0.1, 0.2: 0.2, 0.3: nan})
    found = [chosen_for("laptop", f"p/{name}", folder=tmp_path) for name in ("half", "diverged", "none")]
    assert found == [None, {"client_lr": 0.2}, None]


def test_a_column_fixes_what_it_is_named_for_and_nothing_else():
    file = read_grids()
    for group, methods in file.server_rate.grids.items():
        for method, grid in methods.items():
            assert [option for option, values in grid.items() if len(values) == 1] == ["server_lr"], (group, method)
            assert set(grid) <= set(file.tuned.grids[group][method]), (group, method)
    assert {method for methods in file.printed.grids.values() for method in methods} == {"fedbuff"}


def test_every_grid_has_as_many_tries():
    file = read_grids().tuned
    assert file.tries == 27
    assert {len(points_of(grid)) for methods in file.grids.values() for grid in methods.values()} == {27}
    # each grows by the same number, whichever option it is that grows
    assert {
        len(values) for methods in file.grids.values() for grid in methods.values() for values in grid.values()
    } == {3}
    used = {*file.seeds, *(seed for stage in file.stages for seed in stage.seeds)}
    assert min(used) >= 100
    fixed = read_grids().printed
    for methods in fixed.grids.values():
        for grid in methods.values():
            assert {option: len(values) for option, values in grid.items()} == dict.fromkeys(grid, 1) | {"client_lr": 9}


@pytest.mark.parametrize(
    ("rates", "seeds", "words"),
    [
        ([0.1, "0.10"], [[101]], "set/fedbuff: must be 2 different combinations"),
        ([1, 1.0], [[101]], "set/fedbuff: must be 2 different combinations"),
        ([0.1, 0.2], [[101], [100, 102]], r"must have other seeds than the stages before, got \[100, 101, 100, 102\]"),
        ([0.1, 0.2], [[101], [101]], "must have other seeds than the stages before"),
    ],
)
def test_no_combination_and_no_seed_counts_twice(tmp_path, rates, seeds, words):
    column = {"tries": 2, "seeds": [100], "grids": {"set": {"fedbuff": {"client_lr": rates}}},
              "stages": [{"keep": 1, "seeds": list(one)} for one in seeds]}  # fmt: skip
    (tmp_path / "grids.yaml").write_text(
        json.dumps({"tuned": column, "printed": column, "server_rate": column, "all_printed": {}})
    )
    with pytest.raises(ConfigError, match=words):
        read_grids(tmp_path / "grids.yaml")


PRINTED = {"fedbuff": "FedBuff", "ca2fl": "CA2FL", "fedac": "FedAC", "fadas": "FADAS", "fedecho": "FedEcho",
           "fedavg": "FedAvg", "afl_dw": "AFL-DW", "dd_fedrevive": "DD-FedRevive", "fedrevive": "FedRevive"}  # fmt: skip


@pytest.mark.parametrize(
    ("group", "paper", "data", "names"),
    [
        ("fedecho-images", "FedEcho", "CIFAR-10", ("local_lr", "global_lr")),
        ("fedecho-pairs100", "FedEcho", "CIFAR-100", ("local_lr", "global_lr")),
        ("fedrevive-digits", "FedRevive", "CIFAR-10", ("client_lr", "server_lr", "kd_lr")),
        ("fedrevive-pairs", "FedRevive", "CIFAR-100", ("client_lr", "server_lr", "kd_lr")),
        ("fedrevive-bags", "FedRevive", "20NewsGroups", ("client_lr", "server_lr", "kd_lr")),
        ("fedrevive-writers", "FedRevive", "FEMNIST", ("client_lr", "server_lr", "kd_lr")),
    ],
)
def test_rates_in_the_printed_column_are_those_that_the_table_prints(group, paper, data, names):
    table = pd.read_csv(Path(__file__).parents[2] / "asyncfl_reproduction/printed" / "hyperparameters.csv", dtype=str)
    table = table[(table["paper"] == paper) & (table["dataset"] == data)]
    for method, rates in read_grids().all_printed[group].items():
        own = table[table["method"] == PRINTED[method]]
        for name, option in zip(names, ("client_lr", "server_lr", "settings.kd_lr"), strict=False):
            given = {rates[option]} if option in rates else set()
            assert {float(value) for value in own[own["name"] == name]["value"]} == given, (method, name)

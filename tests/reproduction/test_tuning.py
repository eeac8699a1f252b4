"""Searches for settings: equal budgets, grown edges, every outcome kept, and cells that take what was chosen."""

from __future__ import annotations

import json
import re
from math import isnan
from pathlib import Path

import pytest
import yaml

from asyncfl_lite.cli import main
from asyncfl_reproduction import home
from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.grid.run import Report, run_grid
from asyncfl_reproduction.report.searches import searches
from asyncfl_reproduction.tuning import choices, outcomes
from asyncfl_reproduction.tuning import search as carried_out
from asyncfl_reproduction.tuning.choices import edges_of
from asyncfl_reproduction.tuning.grids import parts_of, points_of, read_searches
from asyncfl_reproduction.tuning.outcomes import METRIC
from asyncfl_reproduction.tuning.search import tune

ROOT = Path(__file__).parents[2]
SMALL = {"task": "digits", "clients": 6, "concurrency": 3, "rounds": 3, "eval_every": 1, "local_epochs": 1}
STUDY = {
    "about": "digits",
    "settings": SMALL,
    "methods": {
        "fedbuff": {
            "settings": {"buffer_size": 2},
            "tuned": {"client_lr": [0.1, 0.2], "server_lr": [0.5, 1.0]},
            "printed": {"client_lr": [0.1, 0.2], "server_lr": [1.0]},
        },
        "fedasync": {"tuned": {"client_lr": [0.1, 0.2], "settings.mixing": [0.5, 0.9]}},
    },
}


@pytest.fixture
def studies(tmp_path):
    """Write the study, perhaps changed, into a file."""

    def written(**changed) -> Path:
        path = tmp_path / "tuning.yaml"
        path.write_text(
            yaml.safe_dump({"seeds": [100, 101], "studies": {"small": {**STUDY, **changed}}}, sort_keys=False)
        )
        return path

    return written


@pytest.fixture(autouse=True)
def no_growth(monkeypatch):
    """Grids stay as they are."""
    monkeypatch.setattr(carried_out, "EXTENSIONS", 0)


@pytest.fixture
def ran(monkeypatch) -> list[int]:
    """How many configurations were run at once."""
    noted, real = [], carried_out.results_of
    monkeypatch.setattr(carried_out, "results_of", lambda configs: noted.append(len(configs)) or real(configs))
    return noted


def rows_of(folder: Path, name: str) -> list[outcomes.Row]:
    return outcomes.rows_of(outcomes.of_studies(folder), f"small/{name}")


def tuned_silently(search, folder: Path) -> tuple[dict, list[str]]:
    lines: list[str] = []
    return tune(search, folder, lines.append), lines


def test_all_combinations_are_tried_with_every_seed_and_the_best_mean_is_chosen(studies, tmp_path):
    search, _, _ = read_searches(studies())
    best, lines = tuned_silently(search, tmp_path)
    rows = rows_of(tmp_path, "fedbuff-tuned")
    assert [(json.loads(row["point"]), row["seed"]) for row in rows] == [
        (point, seed) for point in points_of(search.grid) for seed in (100, 101)
    ]
    means = {point: sum(row[METRIC] for row in rows if row["point"] == point) / 2 for point in
             {row["point"] for row in rows}}  # fmt: skip
    assert best == json.loads(max(means, key=means.get)) and len(set(means.values())) > 1
    assert len(lines) == 1 and lines[0].startswith("small/fedbuff-tuned: 4 combinations, best client_lr")


def test_an_edge_that_is_best_grows_twice_and_no_more(studies, tmp_path, monkeypatch):
    monkeypatch.undo()  # grids grow here
    monkeypatch.setattr(carried_out, "best_of", lambda rows: max((json.loads(r["point"]) for r in rows),
                                                                 key=lambda p: (p["client_lr"], -p["server_lr"])))  # fmt: skip
    search, _, _ = read_searches(studies())
    best, lines = tuned_silently(search, tmp_path)
    assert len(lines) == 3 and best == {"client_lr": 0.8, "server_lr": 0.12}
    found = {tuple(json.loads(row["point"]).values()) for row in rows_of(tmp_path, "fedbuff-tuned")}
    assert found == {(rate, server) for rate in (0.1, 0.2, 0.4, 0.8) for server in (0.12, 0.25, 0.5, 1.0)}


def test_a_combination_that_diverges_is_an_outcome_and_never_the_choice(studies, tmp_path, monkeypatch):
    wild = {"client_lr": [0.1, 1e30], "server_lr": [1.0]}
    (search,) = read_searches(studies(methods={"fedbuff": {"settings": {"buffer_size": 2}, "tuned": wild}}))
    best, _ = tuned_silently(search, tmp_path)
    assert best == {"client_lr": 0.1, "server_lr": 1.0}
    shown = {(json.loads(row["point"])["client_lr"], row[METRIC]) for row in rows_of(tmp_path, "fedbuff-tuned")}
    assert all(isnan(accuracy) == (rate == 1e30) for rate, accuracy in shown)
    monkeypatch.setattr(carried_out, "finish_together", lambda runs: pytest.fail("run again"))
    assert tuned_silently(search, tmp_path)[0] == best
    row = searches(tmp_path).iloc[0]
    assert (row["combinations"], row["worst %"]) == (2, "diverged") and row["accuracy %"] > 10


def test_what_another_search_of_the_study_ran_is_not_run_again(studies, tmp_path, ran):
    methods = {"fedbuff": {"tuned": {"client_lr": [0.1, 0.2], "server_lr": [0.5, 1.0]},
                           "printed": {"client_lr": [0.05, 0.1, 0.2], "server_lr": [1.0]}}}  # fmt: skip
    both = {parts_of(search.name)[2]: search for search in read_searches(studies(methods=methods))}
    tune(both["printed"], tmp_path / "alone", str)
    tune(both["tuned"], tmp_path, str)
    tune(both["printed"], tmp_path, str)
    assert ran == [6, 8, 2]  # two seeds each; 0.1 and 0.2 beside the rate 1 are known
    alone, shared = (
        [{**row, "cpu_seconds": None} for row in rows_of(folder, "fedbuff-printed")]
        for folder in (tmp_path / "alone", tmp_path)
    )
    assert shared == alone


def test_what_was_tried_is_not_run_again_unless_it_means_another_run_now(studies, tmp_path, ran):
    tune(read_searches(studies())[0], tmp_path, str)
    before = rows_of(tmp_path, "fedbuff-tuned")
    ran.clear()
    tune(read_searches(studies())[0], tmp_path, str)
    assert not ran and rows_of(tmp_path, "fedbuff-tuned") == before
    methods = {**STUDY["methods"]}
    methods["fedbuff"] = {**methods["fedbuff"], "tuned": {"client_lr": [0.1, 0.2], "server_lr": [0.7, 1.0]}}
    tune(read_searches(studies(methods=methods))[0], tmp_path, str)
    assert ran == [4]
    tune(read_searches(studies(methods=methods, settings={**SMALL, "rounds": 2}))[0], tmp_path, str)
    assert ran == [4, 8]


def test_half_a_search_chooses_nothing_and_goes_on(studies, tmp_path, monkeypatch):
    monkeypatch.setattr(carried_out, "AT_ONCE", 3)
    real, ran = carried_out.results_of, []

    def stopped(configs):
        if len(ran) == 2:
            raise KeyboardInterrupt
        ran.append(len(configs))
        return real(configs)

    monkeypatch.setattr(carried_out, "results_of", stopped)
    search = read_searches(studies())[0]
    with pytest.raises(KeyboardInterrupt):
        tune(search, tmp_path, str)
    assert not rows_of(tmp_path, "fedbuff-tuned") and ran == [3, 3]
    monkeypatch.setattr(carried_out, "results_of", lambda configs: ran.append(len(configs)) or real(configs))
    tune(search, tmp_path, str)
    assert ran == [3, 3, 2] and len(rows_of(tmp_path, "fedbuff-tuned")) == 8
    assert [file.name for file in tmp_path.glob("*.parquet")] == ["searches.parquet"]


# --- cells that take what was chosen -------------------------------------------------------------


@pytest.fixture
def chosen_ones(tmp_path, monkeypatch):
    """Outcomes of two searches, and a tier with two cells that go by them."""
    monkeypatch.setattr(home, "RESULTS", tmp_path / "results")
    for column, rates in (("tuned", (0.3, 0.7)), ("printed", (0.05, 1.0))):
        point = json.dumps(dict(zip(("client_lr", "server_lr"), rates, strict=True)))
        worse = json.dumps({"client_lr": 9.0, "server_lr": 9.0})
        rows = [
            {**dict.fromkeys(outcomes.FIELDS), "point": which, "seed": seed, METRIC: value}
            for which, values in ((worse, (0.9, 0.1)), (point, (0.5, 0.6)))
            for seed, value in enumerate(values)
        ]
        outcomes.keep(outcomes.of_studies(), f"small/fedbuff-{column}", rows)
    paper = {
        "paper": "p",
        "tiers": {"t": {"seeds": [0], "settings": {**SMALL, "buffer_size": 2, "tuned": "small"}}},
        "cells": {
            "p/fedbuff": {"settings": {"algorithm": "fedbuff"}, "published": [{"artefact": "Table 1"}]},
            "p/ablation": {"settings": {"algorithm": "fedbuff", "server_lr": 0.1}},
        },
    }
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(paper, sort_keys=False))
    tier = tmp_path / "t.yaml"
    tier.write_text("tier: t\npapers: [p.yaml]\ncolumns: [tuned, printed]\n")
    return tier


def test_cells_take_what_was_chosen_and_have_a_twin_as_printed(chosen_ones):
    cells = {cell.name: cell for cell in expand_grid(chosen_ones)}
    rates = {name: (cell.config.client_lr, cell.config.server_lr) for name, cell in cells.items()}
    assert rates == {
        "p/fedbuff": (0.3, 0.7),
        "p/fedbuff@printed": (0.05, 1.0),
        "p/ablation": (0.3, 0.1),  # its own settings come first
        "p/ablation@printed": (0.05, 0.1),
    }
    assert cells["p/fedbuff"].published and not cells["p/fedbuff@printed"].published
    assert cells["p/fedbuff"].column == "tuned" and cells["p/fedbuff@printed"].column == "printed"


def test_a_cell_whose_search_was_never_made_waits_for_it(chosen_ones, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    outcomes.of_studies().unlink()
    cells = expand_grid(chosen_ones)
    assert {cell.waits_for for cell in cells} == {"small/fedbuff-tuned"} and len(cells) == 2
    assert run_grid(cells, tmp_path / "runs") == Report()
    assert main(["grid", str(chosen_ones)]) == 0
    line = "waiting for searches that were not run: 2 cells, such as small/fedbuff-tuned; run asyncfl-lite tune"
    assert line in capsys.readouterr().out


def test_a_cell_whose_own_search_was_never_made_is_told_how_to_make_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("asyncfl_reproduction.grid.cells.chosen_for", lambda *_: None)
    assert main(["grid", "laptop", "--paper", "fedrevive", "--only", "*/table1/cifar10/fedbuff"]) == 0
    assert (
        "such as that of fedrevive/table1/cifar10/fedbuff; run asyncfl-lite tune --cells laptop\n"
        in capsys.readouterr().out
    )


def test_searches_that_the_pages_name_exist():
    pages = "".join((ROOT / name).read_text() for name in ("docs/running.md", "CONTRIBUTING.md"))
    patterns = re.findall(r"asyncfl-lite tune --only '([^']+)'", pages)
    assert len(patterns) >= 2
    for pattern in patterns:
        assert read_searches(ROOT / "asyncfl_reproduction/cells/tuning.yaml", pattern), pattern


def test_what_the_project_has_tried_means_the_same_runs_still():
    searches = read_searches(ROOT / "asyncfl_reproduction/cells/tuning.yaml")
    made = [search for search in searches if choices.tried(search.name)]
    assert made
    for search in made:
        rows = choices.tried(search.name)
        known = carried_out.still_known(rows, search)
        assert len(known) == len(rows) >= len(points_of(search.grid)) * len(search.seeds), search.name


def test_a_choice_on_an_edge_is_told_from_one_within_and_from_what_was_not_varied():
    points = [
        {"client_lr": a, "settings.mixing": b, "server_lr": 1.0} for a in (0.1, 0.3, 1.0) for b in (0.2, 0.4, 0.8)
    ]
    rows = [{"point": json.dumps(point)} for point in points]
    assert edges_of({"client_lr": 0.3, "settings.mixing": 0.8, "server_lr": 1.0}, rows) == ["mixing"]
    assert edges_of({"client_lr": 0.1, "settings.mixing": 0.2, "server_lr": 1.0}, rows) == ["client_lr", "mixing"]
    assert edges_of({"client_lr": 0.3, "settings.mixing": 0.4, "server_lr": 1.0}, rows) == []
    named = [{"point": json.dumps({"settings.kd_lr": value})} for value in (None, 0.1)]
    assert edges_of({"settings.kd_lr": None}, named) == []

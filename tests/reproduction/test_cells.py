"""Families of cells: axes, printed rows, tiers, and what is wrong with them in one line."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from asked import Asked

from asyncfl_lite.base.errors import ConfigError
from asyncfl_reproduction.claims.headlines import HEADLINES
from asyncfl_reproduction.claims.measured import Measured, time_to
from asyncfl_reproduction.grid.cells import PaperTier, expand_grid
from asyncfl_reproduction.verdict_words import NOT_RUN

ROOT = Path(__file__).parents[2]
FAMILY = {
    "over": {
        "delay": {
            "large": {"settings": {"delay": "fedecho_large"}},
            "mild": {"settings": {"delay": "fedecho_mild"}, "tiers": {"smoke": {"rounds": 7}}},
        },
        "method": {
            "fedbuff": {"settings": {"algorithm": "fedbuff"}},
            "fedecho": {
                "settings": {"algorithm": "fedecho", "settings": {"clip": 1.0}},
                "published": {"distill_set": "CIFAR-100"},
            },
        },
    },
    "published": [{"artefact": "Table 2", "delay": "{delay}", "method": "{method}"}],
    "settings": {"settings": {}},
}


def write(folder, cells):
    tier = {"about": "tiny", "seeds": [0, 1], "settings": {"task": "digits", "rounds": 5}}
    paper = {"paper": "p", "tiers": {"smoke": tier, "laptop": tier}, "cells": cells}
    (folder / "p.yaml").write_text(yaml.safe_dump(paper, sort_keys=False))
    for name in ("smoke", "laptop"):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({"tier": name, "papers": ["p.yaml"]}))
    return folder


def test_a_family_is_a_cell_for_every_combination(tmp_path):
    write(tmp_path, {"p/{delay}/{method}": FAMILY})
    cells = {cell.name: cell for cell in expand_grid(tmp_path / "smoke.yaml")}
    assert list(cells) == ["p/large/fedbuff", "p/large/fedecho", "p/mild/fedbuff", "p/mild/fedecho"]
    cell = cells["p/mild/fedecho"]
    assert (cell.config.delay, cell.config.algorithm, cell.config.rounds) == ("fedecho_mild", "fedecho", 7)
    assert cells["p/large/fedecho"].config.rounds == 5
    assert cell.config.settings.clip == 1.0
    assert cell.published == (
        {"artefact": "Table 2", "delay": "mild", "method": "fedecho", "distill_set": "CIFAR-100"},
    )


def test_a_cell_may_have_seeds_of_its_own(tmp_path):
    write(tmp_path, {"p/{delay}/{method}": {**FAMILY, "seeds": {"smoke": [4]}}})
    cells = expand_grid(tmp_path / "smoke.yaml")
    assert {(cell.seeds, cell.config.seed) for cell in cells} == {((4,), 4)}
    assert {cell.seeds for cell in expand_grid(tmp_path / "laptop.yaml")} == {(0, 1)}


def test_cells_that_few_seeds_left_undecided_have_more(tmp_path):
    write(tmp_path, {"p/{delay}/{method}": FAMILY})
    paper = yaml.safe_load((tmp_path / "p.yaml").read_text())
    paper["tiers"]["smoke"]["looks"] = {4: ["p/large/fedecho"], 3: ["p/large/*"]}
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(paper, sort_keys=False))
    seeds = {cell.name: cell.seeds for cell in expand_grid(tmp_path / "smoke.yaml")}
    assert seeds == {"p/large/fedecho": (0, 1, 2, 3), "p/large/fedbuff": (0, 1, 2), "p/mild/fedbuff": (0, 1),
                     "p/mild/fedecho": (0, 1)}  # fmt: skip
    paper["tiers"]["smoke"]["looks"] = {4: ["p/large/fedech"]}
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(paper, sort_keys=False))
    with pytest.raises(ConfigError, match=r"p.yaml: tiers.smoke.looks: cell: 'p/large/fedech' is not known; did you"):
        expand_grid(tmp_path / "smoke.yaml")


def test_a_look_may_leave_out_the_column_as_printed():
    tier = PaperTier(seeds=[0], looks={2: ["p/a"], 3: ["q/*"]})
    assert [tier.seeds_of(name) for name in ("p/a", "p/a@printed", "q/a@printed")] == [[0, 1], [0], [0, 1, 2]]
    seeds = {
        cell.name: len(cell.seeds)
        for cell in expand_grid(ROOT / "asyncfl_reproduction/cells/laptop.yaml", paper="fedecho")
    }
    assert seeds["fedecho/table7/kl-only"] == 32 and seeds["fedecho/table7/kl-only@server-rate"] == 10


def test_fedechos_table_5_has_one_seed_as_printed():
    cells = expand_grid(ROOT / "asyncfl_reproduction/cells/paper.yaml", only="fedecho/table5/*")
    assert len(cells) == 5 and {cell.seeds for cell in cells} == {(0,)}
    assert all(
        len(cell.seeds) == 3
        for cell in expand_grid(ROOT / "asyncfl_reproduction/cells/paper.yaml", only="fedecho/table2/*")
    )


def test_a_part_of_a_tier_has_a_file_of_its_own(tmp_path):
    write(tmp_path, {"p/{delay}/{method}": FAMILY})
    part = {"tier": "smoke", "papers": ["p.yaml"], "only": ["p/large/*", "p/mild/fedbuff"]}
    (tmp_path / "part.yaml").write_text(yaml.safe_dump(part))
    names = [cell.name for cell in expand_grid(tmp_path / "part.yaml")]
    assert names == ["p/large/fedbuff", "p/large/fedecho", "p/mild/fedbuff"]
    assert [cell.name for cell in expand_grid(tmp_path / "part.yaml", only="*/fedecho")] == ["p/large/fedecho"]
    (tmp_path / "part.yaml").write_text(yaml.safe_dump({**part, "only": ["p/lrage/*"]}))
    with pytest.raises(ConfigError, match=r"part\.yaml: only: no cell of 4 matches 'p/lrage/\*', such as"):
        expand_grid(tmp_path / "part.yaml")


@pytest.fixture(scope="module")
def headline():
    return expand_grid(ROOT / "asyncfl_reproduction/cells/headline.yaml")


def test_the_headline_set_is_a_part_of_the_laptop_tier(headline):
    whole = {cell.name: cell.config for cell in expand_grid(ROOT / "asyncfl_reproduction/cells/laptop.yaml")}
    assert {cell.name: cell.config for cell in headline}.items() <= whole.items()
    assert {(cell.tier, cell.part, cell.seeds) for cell in headline} == {("laptop", "headline", (0, 1, 2))}
    assert headline[0].folder(Path("runs")) == Path("runs/headline", headline[0].name)


def test_the_headline_set_is_what_the_central_comparisons_need(headline):
    names = [cell.name for cell in headline]
    rows = pd.DataFrame({"seed": [0, 1, 2], "last5_accuracy": [0.5, 0.6, 0.65]})
    summaries, curves = Asked.fromkeys(names, rows), Asked.fromkeys(names, [curve(0.1, 0.5, 0.7)] * 3)
    assert NOT_RUN not in [one.check(Measured(summaries, curves, names)).verdict for one in HEADLINES]
    elsewhere = {f"fedecho/table6/paper-{samples}" for samples in (500, 1000, 5000)}  # asked for, and not needed
    assert (summaries.names | curves.names) - elsewhere <= set(names)


def test_rates_are_listed_by_method_or_searched(tmp_path):
    rates = {"fedecho": {"client_lr": 0.02, "settings": {"clip": 3.0}}, "kuiper": {"client_lr": 0.5}}
    cells = write(tmp_path, {"p/{delay}/{method}": {**FAMILY, "settings": {"rates": rates}}})
    found = {cell.name: cell.config for cell in expand_grid(cells / "smoke.yaml")}
    assert found["p/large/fedecho"].client_lr == 0.02 != found["p/large/fedbuff"].client_lr
    assert found["p/large/fedecho"].settings.clip == 1.0  # the cell's own option wins


def curve(*accuracies):
    return pd.DataFrame({"time": np.arange(len(accuracies)) * 10.0, "accuracy": accuracies})


def test_time_to_a_target_is_the_first_evaluation_there():
    assert time_to(curve(0.1, 0.5, 0.4, 0.6), 0.5) == 10
    assert time_to(curve(0.1, 0.5, 0.4, 0.6), 0.5, window=2) == 30
    assert time_to(curve(0.1, 0.5), 0.51) == math.inf

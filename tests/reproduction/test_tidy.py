"""Recorded results in two tables: what goes in comes out, and what is out of date does not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml

from asyncfl_lite import Config, run
from asyncfl_lite.base.errors import ResultError
from asyncfl_lite.base.files import write_atomically
from asyncfl_reproduction.grid.cells import Cell, expand_grid
from asyncfl_reproduction.grid.tidy import CURVES, RUNS, outdated_tidy, read_tidy, write_tidy

SMALL = {"clients": 6, "concurrency": 3, "buffer_size": 2, "eval_every": 2, "partition": "iid"}


def cell(name: str, **settings) -> Cell:
    return Cell(name, "smoke", Config(**{**SMALL, "rounds": 4, **settings}), (0, 1))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for one in (cell("p/a"), cell("p/b", algorithm="fedprox")):
        for config in one.configs:
            run(config).save(one.folder(folder) / f"seed-{config.seed}")
    return folder


def test_what_goes_in_comes_out(runs, tmp_path):
    cells = [cell("p/a"), cell("p/b", algorithm="fedprox"), cell("p/never", rounds=3)]
    assert write_tidy(cells, runs, tmp_path) == 4
    found = read_tidy(cells, tmp_path)
    assert list(found) == ["p/a", "p/b"]
    for one in cells[:2]:
        for ours, there in zip(found[one.name], one.load(runs), strict=True):
            assert ours.summary == there.summary and ours.config == there.config
            pd.testing.assert_frame_equal(ours.curve, there.curve, rtol=1e-5)
            assert list(ours.updates.columns) == list(there.updates.columns) and not len(ours.updates)


def test_another_configuration_or_meaning_is_left_out(runs, tmp_path):
    write_tidy([cell("p/a")], runs, tmp_path)
    assert read_tidy([cell("p/a", client_lr=0.5)], tmp_path) == {}
    assert outdated_tidy([cell("p/a", client_lr=0.5), cell("p/b")], tmp_path) == {"p/a": "changed"}
    assert outdated_tidy([cell("p/a")], tmp_path) == {} == outdated_tidy([cell("p/a")], tmp_path / "nothing")
    rows = pd.read_csv(tmp_path / "p" / RUNS)
    rows["meaning"] = rows["meaning"].str.replace("1", "0")
    rows.to_csv(tmp_path / "p" / RUNS, index=False)
    assert read_tidy([cell("p/a")], tmp_path) == {}
    assert outdated_tidy([cell("p/a")], tmp_path) == {"p/a": "stale"}


def test_what_is_not_recorded_here_stays(runs, tmp_path):
    both = [cell("p/a"), cell("p/b", algorithm="fedprox")]
    write_tidy(both[:1], runs, tmp_path)
    before = (tmp_path / "p" / RUNS).read_text(), (tmp_path / "p" / CURVES).read_text()
    assert write_tidy(both[:1], tmp_path / "nothing", tmp_path) == 0
    assert before == ((tmp_path / "p" / RUNS).read_text(), (tmp_path / "p" / CURVES).read_text())
    write_tidy(both[1:], runs, tmp_path)
    assert set(read_tidy(both, tmp_path)) == {"p/a", "p/b"}
    write_tidy(both, runs, tmp_path)
    assert len(pd.read_csv(tmp_path / "p" / RUNS)) == 4
    for one in both:  # here only the second seed has been run
        shutil.copytree(one.folder(runs) / "seed-1", one.folder(tmp_path / "partly") / "seed-1")
    before = (tmp_path / "p" / RUNS).read_text(), (tmp_path / "p" / CURVES).read_text()
    assert write_tidy(both, tmp_path / "partly", tmp_path) == 2
    assert before == ((tmp_path / "p" / RUNS).read_text(), (tmp_path / "p" / CURVES).read_text())


def test_who_reads_between_the_two_tables_being_written_finds_what_was_there(runs, tmp_path, monkeypatch):
    both = [cell("p/a"), cell("p/b", algorithm="fedprox")]
    write_tidy(both[:1], runs, tmp_path)
    seen = []

    def watched(path: Path, text: str) -> None:
        write_atomically(path, text)
        seen.append(set(read_tidy(both, tmp_path)))

    monkeypatch.setattr("asyncfl_reproduction.grid.tidy.write_atomically", watched)
    write_tidy(both[1:], runs, tmp_path)
    assert seen == [{"p/a"}, {"p/a", "p/b"}]


def test_damaged_tables_are_one_line(runs, tmp_path):
    write_tidy([cell("p/a")], runs, tmp_path)
    (tmp_path / "p" / CURVES).write_text("nothing\n1\n")
    with pytest.raises(ResultError, match="runs.csv and curves.csv cannot be read") as caught:
        read_tidy([cell("p/a")], tmp_path)
    assert "\n" not in str(caught.value)


def test_the_command_writes_the_tables(runs, tmp_path, monkeypatch, capsys):
    from asyncfl_lite.cli import main

    (tmp_path / "cells").mkdir()
    (tmp_path / "cells" / "smoke.yaml").write_text("tier: smoke\npapers: [p.yaml]\n")
    settings = {**SMALL, "rounds": 4}
    paper = {"paper": "p", "tiers": {"smoke": {"seeds": [0, 1]}}, "cells": {"p/a": {"settings": settings}}}
    (tmp_path / "cells" / "p.yaml").write_text(yaml.safe_dump(paper))
    monkeypatch.chdir(tmp_path)
    assert main(["record", "--tier", "smoke", "--runs", str(runs)]) == 0
    assert capsys.readouterr().out == "2 runs written to results/smoke\n"
    assert len(pd.read_csv(tmp_path / "results" / "smoke" / "p" / RUNS)) == 2
    assert main(["record", "--tier", "none"]) == 2


@pytest.mark.long
@pytest.mark.parametrize("tier", ["smoke", "laptop", "fair", "real"])
def test_what_the_project_has_recorded_is_of_todays_cells(tier):
    root = Path(__file__).parents[2]
    cells = expand_grid(root / "asyncfl_reproduction/cells" / f"{tier}.yaml")
    recorded = pd.concat(map(pd.read_csv, (root / "asyncfl_reproduction/results" / tier).glob(f"*/{RUNS}")))
    found = read_tidy(cells, root / "asyncfl_reproduction/results" / tier)
    assert sum(map(len, found.values())) == len(recorded) > 0

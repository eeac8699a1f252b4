"""Recorded results in two tables: what goes in comes out, and what is out of date does not."""

from __future__ import annotations

import math
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest
import yaml

from asyncfl_lite import Config, run
from asyncfl_reproduction.grid.cells import Cell, expand_grid
from asyncfl_reproduction.grid.record import CURVES, RUNS, add_runs, outdated_tidy, read_tidy, write_tidy
from asyncfl_reproduction.home import CELLS, RESULTS
from asyncfl_reproduction.parquet import read_table, write_table

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
    rows = read_table(tmp_path / "p" / RUNS)
    write_table(tmp_path / "p" / RUNS, rows.assign(meaning=rows["meaning"].str.replace("1", "0")))
    assert read_tidy([cell("p/a")], tmp_path) == {}
    assert outdated_tidy([cell("p/a")], tmp_path) == {"p/a": "stale"}


def test_what_is_not_recorded_here_stays(runs, tmp_path):
    both = [cell("p/a"), cell("p/b", algorithm="fedprox")]
    write_tidy(both[:1], runs, tmp_path)
    before = (tmp_path / "p" / RUNS).read_bytes(), (tmp_path / "p" / CURVES).read_bytes()
    assert write_tidy(both[:1], tmp_path / "nothing", tmp_path) == 0
    assert before == ((tmp_path / "p" / RUNS).read_bytes(), (tmp_path / "p" / CURVES).read_bytes())
    write_tidy(both[1:], runs, tmp_path)
    assert set(read_tidy(both, tmp_path)) == {"p/a", "p/b"}
    write_tidy(both, runs, tmp_path)
    assert len(read_table(tmp_path / "p" / RUNS)) == 4
    for one in both:  # here only the second seed has been run
        shutil.copytree(one.folder(runs) / "seed-1", one.folder(tmp_path / "partly") / "seed-1")
    before = (tmp_path / "p" / RUNS).read_bytes(), (tmp_path / "p" / CURVES).read_bytes()
    assert write_tidy(both, tmp_path / "partly", tmp_path) == 2
    assert before == ((tmp_path / "p" / RUNS).read_bytes(), (tmp_path / "p" / CURVES).read_bytes())


def test_who_reads_between_the_two_tables_being_written_finds_what_was_there(runs, tmp_path, monkeypatch):
    both = [cell("p/a"), cell("p/b", algorithm="fedprox")]
    write_tidy(both[:1], runs, tmp_path)
    seen = []

    def watched(path: Path, table: pd.DataFrame) -> None:
        write_table(path, table)
        seen.append(set(read_tidy(both, tmp_path)))

    monkeypatch.setattr("asyncfl_reproduction.grid.record.write_table", watched)
    write_tidy(both[1:], runs, tmp_path)
    assert seen == [{"p/a"}, {"p/a", "p/b"}]


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
    assert len(read_table(tmp_path / "results" / "smoke" / "p" / RUNS)) == 2
    assert main(["record", "--tier", "none"]) == 2
    capsys.readouterr()
    assert main(["results", "--csv", "as_csv"]) == 0
    assert capsys.readouterr().out == "2 tables written to as_csv\n"
    for name in (RUNS, CURVES):
        table = read_table(Path("results/smoke/p", name))
        written = pd.read_csv(Path("as_csv/smoke/p", name).with_suffix(".csv"))
        pd.testing.assert_frame_equal(written, table, check_exact=True)
    assert main(["results", "--csv", "as_csv", "--results", "none"]) == 2
    assert "nothing is recorded in none" in capsys.readouterr().err


def test_two_who_write_one_table_at_a_time_lose_nothing(tmp_path):
    def add(number: int) -> None:
        run = {"cell": f"p/{number}", "seed": 0}
        add_runs(tmp_path, pd.DataFrame([run]), pd.DataFrame([{**run, "version": 0}]))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(add, range(20)))
    assert {len(read_table(tmp_path / name)) for name in (RUNS, CURVES)} == {20}


def test_the_same_table_gives_the_same_bytes_and_numbers_stay_what_they_are(tmp_path):
    table = pd.DataFrame(
        {"cell": ["a", None], "seed": [1, 2], "accuracy": [0.1 + 0.2, math.nan], "times": [None, None]}
    )
    for name in ("a.parquet", "b.parquet"):
        write_table(tmp_path / name, table)
        table = read_table(tmp_path / name)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert table["accuracy"].tolist()[0] == 0.1 + 0.2 and table["seed"].dtype == "int64" and table["times"].isna().all()


@pytest.mark.long
@pytest.mark.parametrize("tier", ["smoke", "laptop", "real"])
def test_what_the_project_has_recorded_is_of_todays_cells(tier):
    recorded = pd.concat(map(read_table, (RESULTS / tier).glob(f"*/{RUNS}")))
    found = read_tidy(expand_grid(CELLS / f"{tier}.yaml"), RESULTS / tier)
    assert sum(map(len, found.values())) == len(recorded) > 0

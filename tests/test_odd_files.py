"""Files that are whole but hold the wrong thing: a right digest without the content, NaN, a text for a number."""

from __future__ import annotations

import json

import pytest

from asyncfl_lite.base.errors import ResultError
from asyncfl_lite.cli import main
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.run import run
from asyncfl_lite.runs.store import identity_of, save_checkpoint, write_record
from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.grid.cost import kept_speeds, recorded_speeds
from asyncfl_reproduction.grid.tidy import CURVES, RUNS, outdated_tidy, read_tidy, write_tidy
from asyncfl_reproduction.parquet import read_table, write_table
from conftest import toy_grid

SMALL = {"clients": 4, "concurrency": 2, "buffer_size": 2, "rounds": 2}


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, "KeyError: 'algorithm'"),
        ({"algorithm": {}, "simulation": {}}, "KeyError: "),
        ({"algorithm": 5}, "TypeError: "),
    ],
)
def test_a_checkpoint_of_this_run_without_its_state_is_one_line(tmp_path, state, message):
    """Its digest is right, as it was saved with it."""
    config, path = Config(**SMALL), tmp_path / "run.pt"
    save_checkpoint(path, identity_of(config), state)
    with pytest.raises(ResultError, match="does not hold this run's state") as caught:
        run(config, checkpoint=path)
    assert message in str(caught.value) and str(path) in str(caught.value) and "\n" not in str(caught.value)
    assert path.exists()


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("name", ["rounds", "client_lr", "seed", "alpha"])
def test_no_number_in_a_configuration_of_json_is_one_line(tmp_path, capsys, name, value):
    (tmp_path / "run.json").write_text(f'{{"{name}": {value}}}')
    assert main(["run", "--config", str(tmp_path / "run.json")]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"asyncfl-lite: {name}: must be") and told.count("\n") == 1


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A grid of one cell whose run is recorded, in ``runs`` and in two tables."""
    folder = tmp_path_factory.mktemp("recorded")
    cells = expand_grid(toy_grid(folder, "toy/one", **SMALL))
    run(cells[0].config).save(cells[0].folder(folder / "runs") / "seed-0")
    assert write_tidy(cells, folder / "runs", folder / "results/smoke") == 1
    return cells, folder


@pytest.mark.parametrize(("file", "column"), [(RUNS, "cpu_seconds"), (RUNS, "final_accuracy"), (CURVES, "accuracy")])
def test_a_text_in_a_column_of_numbers_is_named(recorded, tmp_path, file, column):
    cells, folder = recorded
    (tmp_path / "smoke/toy").mkdir(parents=True)
    for name in (RUNS, CURVES):
        table = read_table(folder / "results/smoke/toy" / name)
        if name == file:
            table.assign(**{column: "fast"}).to_parquet(tmp_path / "smoke/toy" / name)
        else:
            write_table(tmp_path / "smoke/toy" / name, table)
    message = f"{file}: {column}: must be numbers, got str; record it again"
    with pytest.raises(ResultError, match=message):
        read_tidy(cells, tmp_path / "smoke")
    if file == RUNS:
        for read in (lambda: kept_speeds(cells, tmp_path), lambda: outdated_tidy(cells, tmp_path / "smoke")):
            with pytest.raises(ResultError, match=message):
                read()


@pytest.mark.parametrize("content", [b"", b"cell,seed\n", b"PAR1 and then nothing PAR1"])
def test_a_table_that_is_none_is_one_line(tmp_path, content):
    (tmp_path / RUNS).write_bytes(content)
    with pytest.raises(ResultError, match="runs.parquet: cannot be read") as caught:
        read_table(tmp_path / RUNS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [float("nan"), "fast", None])
def test_a_time_that_is_no_number_is_not_estimated_with(recorded, tmp_path, value):
    """Though its digest be right."""
    cells, folder = recorded
    kinds = set(recorded_speeds(folder / "runs", {("digits", "mlp", cells[0].config.algorithm, "cpu")}))
    assert len(kinds) == 1
    record = json.loads((cells[0].folder(folder / "runs") / "seed-0/result.json").read_text())
    record["timing"]["cpu_seconds"] = value
    place = cells[0].folder(tmp_path) / "seed-0/result.json"
    place.parent.mkdir(parents=True)
    write_record(place, record)
    assert recorded_speeds(tmp_path, kinds) == {}

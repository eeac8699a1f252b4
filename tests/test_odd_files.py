"""Files that are whole but hold the wrong thing: a right digest without the content, NaN, a text for a number."""

from __future__ import annotations

import pytest

from asyncfl_lite.base.errors import ResultError
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.run import run
from asyncfl_lite.runs.store import identity_of, save_checkpoint
from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.grid.cost import kept_speeds
from asyncfl_reproduction.grid.record import CURVES, RUNS, outdated_tidy, read_tidy, write_tidy
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

"""Recorded results in tables that are small enough for the repository, in ``results/<tier>/<paper>/``.

``runs.parquet`` has one row per run: cell, seed, the configuration's hash, the meaning of the result
(:mod:`asyncfl_lite.runs.store`), versions of the libraries, the processor's instruction set, CPU seconds, and the
run's summary. ``curves.parquet`` has one row per evaluation. The tables of updates are not kept here; they are in
``runs/``, on the machine that ran the cells.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from asyncfl_lite.base.errors import ResultError
from asyncfl_lite.runs.results import CLASSES, Result
from asyncfl_lite.runs.store import Standing, meaning, revised
from asyncfl_lite.simulator.jobs import CLIENTS, IN_FLIGHT, Arrival
from asyncfl_reproduction.grid.cells import Cell
from asyncfl_reproduction.parquet import alone_in, read_table, write_table

RUNS, CURVES = "runs.parquet", "curves.parquet"
DIGITS = 6
"""Significant digits of a curve's numbers; the summary's are kept in full."""
NOT_KEPT = {
    "updates": pd.DataFrame(columns=Arrival._fields),
    "in_flight": pd.DataFrame(columns=IN_FLIGHT),
    "clients": pd.DataFrame(columns=CLIENTS),
    "classes": pd.DataFrame(columns=CLASSES),
}
"""Empty tables in place of those tables of a result that are not recorded."""


def write_tidy(cells: Iterable[Cell], runs: str | Path, folder: str | Path) -> int:
    """Write the results of ``cells`` from ``runs`` into the tables of a folder, and return the number of runs.

    Rows of other cells and seeds stay in the tables.
    """
    found: dict[str, list[tuple[str, Result]]] = {}
    for cell in cells:
        found.setdefault(paper_of(cell.name), []).extend((cell.name, result) for result in cell.load(Path(runs)))
    for paper, results in found.items():
        _add(Path(folder) / paper, results)
    return sum(map(len, found.values()))


def paper_of(cell: str) -> str:
    """Return the name of the folder with a cell's tables, which is the first part of the cell's name."""
    return cell.split("/", 1)[0]


def _add(folder: Path, found: Sequence[tuple[str, Result]]) -> None:
    rows = pd.DataFrame([_row(name, result) for name, result in found])
    curves = [_rounded(result.curve).assign(cell=name, seed=result.config.seed) for name, result in found]
    if found:
        add_runs(folder, rows, pd.concat(curves, ignore_index=True))


def add_runs(folder: Path, runs: pd.DataFrame, curves: pd.DataFrame) -> None:
    """Add rows of runs and curves to a folder's tables; they replace older rows of the same runs.

    Curves are written first because runs are read first: a process that reads in between finds the curves of all runs.
    """
    new = set(zip(runs["cell"], runs["seed"], strict=True))
    with alone_in(folder):
        for file, table, order in ((CURVES, curves, ["cell", "seed", "version"]), (RUNS, runs, ["cell", "seed"])):
            if (folder / file).exists():
                old = read_table(folder / file)
                stays = [run not in new for run in zip(old["cell"], old["seed"], strict=True)]
                table = pd.concat([old[stays], table], ignore_index=True)
            first = ["cell", "seed"]
            table = table[[*first, *table.columns.difference(first, sort=False)]]
            write_table(folder / file, table.sort_values(order, kind="stable"))


def _rounded(curve: pd.DataFrame) -> pd.DataFrame:
    """Return a curve rounded to :data:`DIGITS` significant digits."""
    floats = curve.select_dtypes("float")
    return curve.assign(**{name: [float(f"{value:.{DIGITS}g}") for value in floats[name]] for name in floats})


def _row(name: str, result: Result) -> dict[str, Any]:
    under = [result.versions, *result.continued_under]
    libraries = {
        name: ", then ".join(dict.fromkeys(one[name] for one in under if name in one))
        for name in ("torch", "numpy", "instructions")
        if any(name in one for one in under)
    }
    return {
        "cell": name,
        "seed": result.config.seed,
        "config_hash": result.config.hash,
        "meaning": json.dumps(result.meaning),
        **libraries,
        "cpu_seconds": round(result.timing["cpu_seconds"], 2),
        **result.summary,
    }


def read_tidy(cells: Iterable[Cell], folder: str | Path) -> dict[str, list[Result]]:
    """Read each cell's runs from a folder's tables, except those of another configuration or of outdated code.

    Their tables of updates, jobs in flight and clients are empty.

    Raises:
        ResultError: if the tables do not have the form that :func:`write_tidy` writes.
    """
    found: dict[str, list[Result]] = {}
    for part, own in _by_paper(cells, folder):
        try:
            rows, curves = (read_table(part / file) for file in (RUNS, CURVES))
            found |= _results(own, rows, curves)
        except ResultError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise ResultError(f"{part}: {RUNS} and {CURVES} cannot be read ({error}); record them again") from None
    return found


def _by_paper(cells: Iterable[Cell], folder: str | Path) -> Iterator[tuple[Path, list[Cell]]]:
    papers: dict[str, list[Cell]] = {}
    for cell in cells:
        papers.setdefault(paper_of(cell.name), []).append(cell)
    for paper, own in papers.items():
        if (part := Path(folder) / paper / RUNS).exists():
            yield part.parent, own


def outdated_tidy(cells: Iterable[Cell], folder: str | Path) -> dict[str, Standing]:
    """Map each recorded cell whose runs :func:`read_tidy` leaves out to the reason, ``changed`` or ``stale``.

    Returns:
        Cell -> ``changed`` (run with another configuration) or ``stale`` (run with code whose meaning has changed
        since).
    """
    found: dict[str, Standing] = {}
    for part, own in _by_paper(cells, folder):
        recorded = dict(iter(read_table(part / RUNS).groupby("cell")))
        for cell in (cell for cell in own if cell.name in recorded):
            configs = {config.seed: config for config in cell.configs}
            ran = recorded[cell.name]
            for seed, hash, meant in zip(ran["seed"], ran["config_hash"], ran["meaning"], strict=True):
                config = configs.get(seed)
                if config is None or config.hash != hash:
                    found[cell.name] = "changed"
                elif revised(json.loads(meant), meaning(config)):
                    found[cell.name] = "stale"
    return found


def _results(cells: Sequence[Cell], rows: pd.DataFrame, curves: pd.DataFrame) -> dict[str, list[Result]]:
    configs = {(cell.name, config.seed): config for cell in cells for config in cell.configs}
    now = {cell.name: meaning(cell.config) for cell in cells}
    kept = rows.columns[rows.columns.get_loc("cpu_seconds") + 1 :]
    filled = rows[kept].notna().to_numpy().tolist()
    by_run = _by_run(curves)
    found: dict[str, list[Result]] = {}
    for row, has in zip(rows.to_dict("records"), filled, strict=True):
        name, seed = row["cell"], row["seed"]
        config, meant = configs.get((name, seed)), json.loads(row["meaning"])
        if config is None or config.hash != row["config_hash"] or revised(meant, now[name]):
            continue
        summary = {number: row[number] for number, there in zip(kept, has, strict=True) if there}
        timing = {"cpu_seconds": row["cpu_seconds"]}
        result = Result(config, summary, by_run[name, seed], **NOT_KEPT, timing=timing, meaning=meant, versions={})
        found.setdefault(name, []).append(result)
    return {cell.name: found[cell.name] for cell in cells if cell.name in found}


def _by_run(curves: pd.DataFrame) -> dict[tuple[str, int], pd.DataFrame]:
    """Return each run's curve, without the columns in which it has no number.

    Curves are cut out of tables in which runs have the same columns, because pandas takes long to make a table.
    """
    curves = curves.sort_values(["cell", "seed"], kind="stable")
    runs, numbers = [curves["cell"], curves["seed"]], curves.drop(columns=["cell", "seed"])
    there, ends = numbers.notna().groupby(runs).any(), numbers.groupby(runs).size().cumsum()
    with_columns: dict[bytes, pd.DataFrame] = {}
    found, begin = {}, 0
    for run, has, end in zip(ends.index, there.to_numpy(), ends, strict=True):
        if has.tobytes() not in with_columns:
            with_columns[has.tobytes()] = numbers.loc[:, has]
        found[run] = with_columns[has.tobytes()].iloc[begin:end].set_axis(pd.RangeIndex(end - begin))
        begin = end
    return found

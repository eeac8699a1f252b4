"""Runs of a grid, in which papermill executes a notebook for each cell that is not finished.

A cell runs as one notebook, ``notebooks/experiment.ipynb``, and leaves::

    runs/<tier>/<cell>/result.json        status, configuration, summary over seeds
    runs/<tier>/<cell>/experiment.ipynb   the executed notebook
    runs/<tier>/<cell>/seed-<k>/          one run's result (asyncfl_lite.runs.results)
"""

from __future__ import annotations

import math
import os
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.base.errors import AsyncFLError, ConfigError, ResultError, needs
from asyncfl_lite.base.locks import Elsewhere
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.lockstep import finish_in_turn
from asyncfl_lite.runs.results import Result, load_complete
from asyncfl_lite.runs.run import Run, run_at
from asyncfl_lite.runs.store import (
    FORMAT,
    changed_versions,
    check_writable,
    meaning,
    read_record,
    versions,
    write_record,
)
from asyncfl_reproduction.grid.cells import Cell
from asyncfl_reproduction.grid.kernels import quiet_kernels, warm_kernels
from asyncfl_reproduction.grid.workers import FINISHED, count_workers, outcomes
from asyncfl_reproduction.home import NOTEBOOKS

EXPERIMENT = "experiment.ipynb"
FAILED = "failed.ipynb"
PRELOADED = (
    *("pandas", "asyncfl_lite.plots", "asyncfl_reproduction.grid.run"),
    "torch.fx.experimental.symbolic_shapes",  # imported by torch at the first gradient, which takes half a second
)
"""Modules that a cell's kernel has already imported when it starts."""


@dataclass
class Report:
    """The outcome of a grid, by cell.

    Attributes:
        done: cells that were run now.
        skipped: cells that were complete before, or that another grid has completed meanwhile.
        failed: cell name -> the error's last line.
        elsewhere: cell name -> where another grid, which shares the folder of results, runs the cell.
        versions: in what the versions of libraries differ from those that are installed now -> number of complete cells
            that were computed, at least in part, under such versions.
    """

    done: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)


def run_grid(
    cells: Sequence[Cell],
    runs: str | Path = "runs",
    *,
    workers: int = 1,
    scheduler: str | None = None,
    notebook: str | Path | None = None,
    minutes_per_cell: float | None = None,
    finished: Callable[[Cell], None] | None = None,
) -> Report:
    """Run the cells that are not complete, one notebook each, ``workers`` at a time.

    If a cell fails, its notebook is kept for inspection, the cell is listed, and the others go on. A cell whose worker
    is lost is run again. Several grids in one folder, on any machines, share its cells: a cell that another grid runs
    is left to that grid.

    Args:
        cells: the cells to run, except those that wait for a search; results that are stale or of another configuration
            are replaced.
        runs: folder of results.
        workers: number of processes, each with one torch thread.
        scheduler: address of a Dask scheduler whose workers run the cells instead, as many at a time as they have
            threads; they must see ``runs`` and ``notebook`` under the same paths.
        notebook: the papermill template; the package's own if None.
        minutes_per_cell: time limit in minutes of real time for a cell's training; a cell that reaches it saves itself
            and counts as failed, and the next grid continues it. None for no limit.
        finished: called with each cell as soon as it is done.

    Raises:
        ConfigError: if the time limit is not a positive number; with a scheduler, also as
            :func:`~asyncfl_reproduction.grid.workers.connected`.
    """
    if minutes_per_cell is not None and not 0 < minutes_per_cell < math.inf:
        raise ConfigError(f"minutes_per_cell: must be a positive number, got {minutes_per_cell:g}")
    runs, report = Path(runs), Report()
    check_writable(runs)
    cells = [cell for cell in cells if cell.waits_for is None]
    waiting = [cell for cell in cells if not cell.is_complete(runs)]
    by_name = {cell.name: cell for cell in waiting}
    names = set(by_name)
    report.skipped = [cell.name for cell in cells if cell.name not in names]
    if not waiting:
        report.versions = _other_versions(cells, runs)
        return report
    waiting.sort(key=lambda cell: ALGORITHMS.get(cell.config.algorithm).about.family != "distilling")  # long first
    notebook = NOTEBOOKS / EXPERIMENT if notebook is None else notebook
    work = partial(run_cell, notebook=Path(notebook).resolve(), minutes=minutes_per_cell)
    workers = workers if scheduler is None else count_workers(scheduler)
    with tqdm(total=len(waiting), unit="cell", desc="grid", smoothing=0) as bar:
        bar.set_postfix_str(_running(len(waiting), workers, 0))
        for name, error in outcomes(work, waiting, runs.resolve(), workers=workers, scheduler=scheduler):
            if error is None:
                report.done.append(name)
                if finished is not None:
                    finished(by_name[name])
            elif error == FINISHED:
                report.skipped.append(name)
            elif isinstance(error, Elsewhere):
                report.elsewhere[name] = error
            else:
                report.failed[name] = error
            names.remove(name)
            bar.set_postfix_str(_running(len(names), workers, len(report.failed)), refresh=False)
            bar.update()
    finished_now = {*report.done, *report.skipped}
    report.versions = _other_versions([cell for cell in cells if cell.name in finished_now], runs)
    return report


def _other_versions(cells: Iterable[Cell], runs: Path) -> dict[str, int]:
    """Return the differences between versions that are installed now and those of complete cells, with their counts."""
    found, now = Counter[str](), versions()
    for cell in cells:
        with suppress(ResultError):
            record = read_record(cell.folder(runs) / "result.json")
            under = [record.get("versions", {}), *record.get("continued_under", [])]
            told = [changed_versions({**one, "gpu": "none"}, now) for one in under]  # a worker may have one
            found["; ".join(dict.fromkeys(filter(None, told)))] += 1
    return {told: count for told, count in found.items() if told}


def _running(left: int, workers: int, failed: int) -> str:
    return f"{min(left, workers)} running, {failed} failed"


def run_cell(cell: Cell, runs: Path, notebook: Path, minutes: float | None = None) -> tuple[str, str | None]:
    """Run one cell's notebook for at most so long; return the cell's name, and the last line of its error, or None."""
    folder = cell.folder(runs)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        error = _execute(cell, folder.resolve(), notebook, minutes)
        if error is not None:
            return cell.name, error
        summarise_cell(cell, runs)
        (folder / FAILED).unlink(missing_ok=True)
    except (OSError, AsyncFLError) as trouble:
        return cell.name, f"{type(trouble).__name__}: {trouble}"
    except Exception:  # whatever papermill or a kernel raises, the other cells go on
        return cell.name, traceback.format_exc().strip().splitlines()[-1]
    return cell.name, None


def _execute(cell: Cell, folder: Path, notebook: Path, minutes: float | None) -> str | None:
    """Execute the template notebook, and retry once if the kernel died or did not start."""
    with needs("grid", "a grid"):
        import papermill
        from nbclient.exceptions import CellTimeoutError

    os.environ["OMP_NUM_THREADS"] = "1"
    quiet_kernels()
    part, parameters = folder / f".{EXPERIMENT}.{os.getpid()}.part.ipynb", cell_parameters(cell, folder)
    execute = partial(
        papermill.execute_notebook, notebook, part, parameters,
        kernel_name="python3", progress_bar=False, cwd=str(folder),
        execution_timeout=minutes and math.ceil(60 * minutes),
    )  # fmt: skip
    try:
        with warm_kernels(PRELOADED):
            try:
                execute()
            except RuntimeError:  # the kernel died or did not start, perhaps because another process took its port
                execute()
        part.replace(folder / EXPERIMENT)
    except papermill.PapermillExecutionError as error:
        part.replace(folder / FAILED)
        return f"{error.ename}: {error.evalue} (see {FAILED})"
    except CellTimeoutError:  # the kernel was asked to end, and its runs saved themselves
        return f"stopped after {minutes:g} minutes; what it finished is kept, and the same command continues"
    finally:
        part.unlink(missing_ok=True)
    return None


def cell_parameters(cell: Cell, folder: Path) -> dict[str, Any]:
    """Return the parameters that papermill injects into the notebook."""
    return {
        "cell": cell.name,
        "about": cell.about,
        "configuration": cell.config.as_dict(),
        "seeds": list(cell.seeds),
        "folder": str(folder),
        "imports": list(cell.imports),
    }


def run_seeds(configuration: dict[str, Any], seeds: Iterable[int], folder: str | Path | None) -> list[Result]:
    """Run one configuration with several seeds; results that are complete in ``folder`` are read instead.

    The experiment notebook calls this function. Seeds of small models run in lockstep, and those of large models one
    after another. Each run saves checkpoints on the way, and its result as soon as it ends. Results of another
    configuration in the folder are replaced.
    """
    configs = {seed: Config(**configuration).with_seed(seed) for seed in seeds}
    folders = {seed: None if folder is None else Path(folder) / f"seed-{seed}" for seed in configs}
    found = {seed: folders[seed] and load_complete(folders[seed], config) for seed, config in configs.items()}
    waiting = [seed for seed, result in found.items() if result is None]

    def begun(seed: int) -> Run:
        if folders[seed] is None:
            return Run(configs[seed])
        return run_at(folders[seed], configs[seed], force=True)

    begin = [partial(begun, seed) for seed in waiting]
    results = finish_in_turn(begin, lambda run, result: run.keep(result, force=True, weights=False))
    found.update(zip(waiting, results, strict=True))
    return list(found.values())


def summarise_cell(cell: Cell, runs: Path) -> None:
    """Write a cell's ``result.json``, with the mean and standard deviation of every number over seeds."""
    results = cell.load(runs)
    table = pd.DataFrame([result.summary for result in results]).select_dtypes("number")
    under = [one for result in results for one in (result.versions, *result.continued_under)] or [versions()]
    others = [one for index, one in enumerate(under) if one not in under[:index] and index]
    record = {
        "format": FORMAT,
        "status": "complete",
        "cell": cell.name,
        "tier": cell.tier,
        "about": cell.about,
        "ours": dict(cell.ours),
        "artefacts": cell.artefacts,
        "config": cell.config.as_dict(),
        "config_hash": cell.config.hash,
        "seeds": list(cell.seeds),
        "summary": {"mean": table.mean().to_dict(), "std": table.std(ddof=1).fillna(0.0).to_dict()},
        "meaning": meaning(cell.config),
        "versions": under[0],
        **({"continued_under": others} if others else {}),
    }
    write_record(cell.folder(runs) / "result.json", record)

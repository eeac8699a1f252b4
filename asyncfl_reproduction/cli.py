"""The commands ``grid``, ``tune``, ``report``, ``record``, ``results`` and ``league`` of ``asyncfl-lite``.

They are added to the library's command line through the entry point group ``asyncfl_lite.commands``
(``pyproject.toml``), which any package can use to add commands. :func:`add_commands` declares each command, and names
the function that carries it out.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asyncfl_lite.base.errors import ConfigError, SimulationError, how_many, needs, shown, unknown_name
from asyncfl_lite.cli import WithDefaults, file, folder, takes_own
from asyncfl_reproduction.grid.interrupts import MESSAGE, ends_when_interrupted
from asyncfl_reproduction.home import CELLS, kept_in, tier_file, tiers

if TYPE_CHECKING:
    from asyncfl_reproduction.grid.cost import Estimate
    from asyncfl_reproduction.grid.run import Report

TIER_OR_FILE = "tier, such as smoke, laptop or headline, or file of cells"
ONLY_CELLS = "run only cells whose names match this pattern"
BACKENDS = {"loky": "processes on this machine", "dask": "a Dask cluster"}
MOST_WORKERS = 1024


def add_commands(commands: Any) -> None:
    """Add the reproduction's commands to the library's parser, the object that ``argparse`` returns for subcommands."""

    def shared(name: str, **how: Any) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(add_help=False)
        parser.add_argument(name, **how)
        return parser

    def command(name: str, carry_out: Callable[[argparse.Namespace], int], help: str, **how: Any) -> Any:
        parser = commands.add_parser(name, help=help, formatter_class=WithDefaults, **how)
        parser.set_defaults(command=name, carry_out=carry_out)
        return parser

    runs = shared("--runs", type=folder, default="runs", help="folder of results, and of the pages made of them")
    results = shared("--results", type=folder, default=kept_in(), help="folder of recorded tables")
    yes = shared("--yes", action="store_true", help="start even if the estimate is more than two hours")
    workers = {"type": _workers, "help": f"number of worker processes, each with one torch thread: 1 to {MOST_WORKERS}"}

    grid = command("grid", _grid, "run a grid of experiments through papermill", parents=[runs, yes])
    grid.add_argument("file", help=TIER_OR_FILE).completer = _tiers
    grid.add_argument("--paper", default="all", help="run only the cells of this paper, such as fedecho")
    grid.add_argument("--only", default="*", help=f"{ONLY_CELLS}, such as 'fedecho/table2/*'")
    grid.add_argument("--workers", default=1, **workers)
    grid.add_argument(
        "--minutes-per-cell",
        type=float,
        metavar="MINUTES",
        help="stop a cell that trains for longer; it counts as failed, and the same command continues it",
    )
    grid.add_argument(
        "--record",
        type=folder,
        metavar="FOLDER",
        help="add each finished cell at once to the tables in this folder, as `record` does",
    )
    grid.add_argument(
        "--backend",
        metavar="|".join(BACKENDS),
        default="loky",
        help=f"where to run the cells: {' or '.join(BACKENDS.values())}",
    )
    grid.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="address of the Dask cluster's scheduler, such as tcp://127.0.0.1:8786 or, with TLS, "
        "tls://10.0.0.1:8786; anyone who reaches another one can run code as you",
    )
    grid.set_defaults(interrupted=MESSAGE)

    tune = command(
        "tune", _tune, "search for each method's best settings, with the same number of runs for each", parents=[yes]
    )
    tune.add_argument("file", nargs="?", type=file, help="file of studies; by default the league's, cells/tuning.yaml")
    tune.add_argument(
        "--beyond",
        type=int,
        default=0,
        help="with --cells, values to try beyond each edge on which a search's best lies; ended searches go on",
    )
    tune.add_argument("--cells", metavar="TIER", help="run the searches that the cells of this tier name")
    tune.add_argument(
        "--only", default="*", help="run only searches whose names match this pattern, such as '*/fedecho-*'"
    )
    tune.add_argument(
        "--results",
        type=folder,
        metavar="FOLDER",
        help="folder for the outcomes; by default the folder that cells read",
    )

    report = command("report", _report, "make the report from recorded results", parents=[runs, results])
    report.add_argument("--tier", default="headline", help=TIER_OR_FILE).completer = _tiers

    exported = command("results", _results, "write the recorded results as CSV files", parents=[results])
    exported.add_argument("--csv", type=folder, required=True, metavar="FOLDER", help="folder for the tables")

    record = command(
        "record", _record, "write a tier's results as small tables, for the repository", parents=[runs, results]
    )
    record.add_argument("--tier", default="laptop", help=TIER_OR_FILE).completer = _tiers

    league = command(
        "league",
        _league,
        "compare your method with all others, and write a page with its standing",
        parents=[runs, results, yes],
        description="Check the method's rules, tune it with as many tries as all others had, run its "
        "seeds, and compare them with the recorded field. Finished runs are not repeated.",
    )
    league.add_argument("method", nargs="?", help="Python file with one method; its GRID holds the values to try")
    league.add_argument("--quick", action="store_true", help="run one workload, with tuning (minutes on two cores)")
    league.add_argument(
        "--field",
        action="store_true",
        help="record the field, which is the methods that yours is compared with (hours, resumable)",
    )
    league.add_argument("--only", default="*", help=f"with --field, {ONLY_CELLS}, such as '*/fedecho*'")
    league.add_argument(
        "--tier", default="league", help="tier whose cells form the field; tuning.yaml must lie beside its file"
    )
    league.add_argument("--workers", default=2, **workers)
    league.set_defaults(interrupted=MESSAGE)
    for parser in (grid, tune, record):
        takes_own(parser)


def _grid(options: argparse.Namespace) -> int:
    from asyncfl_reproduction.grid.cells import Cell, expand_grid
    from asyncfl_reproduction.grid.cost import estimate
    from asyncfl_reproduction.grid.record import write_tidy
    from asyncfl_reproduction.grid.run import run_grid
    from asyncfl_reproduction.grid.workers import count_workers

    if options.backend not in BACKENDS:
        raise ConfigError(unknown_name("backend", options.backend, BACKENDS))
    if (options.backend == "dask") != (options.scheduler is not None):
        raise ConfigError("scheduler: must be given with backend 'dask', and with no other")
    own = getattr(options, "import")
    cells = expand_grid(tier_file(options.file), paper=options.paper, only=options.only, imports=own)
    if waiting := [cell.waits_for for cell in cells if cell.waits_for is not None]:
        told = f"{how_many(len(waiting), 'cell')}, such as {waiting[0]}"
        which = f" --cells {options.file}" if waiting[0].startswith("that of ") else ""  # a cell's own search
        print(f"waiting for searches that were not run: {told}; run asyncfl-lite tune{which}")
    workers = options.workers if options.scheduler is None else count_workers(options.scheduler)
    cost = estimate(cells, options.runs, kept=kept_in(), workers=workers)
    _allow(cost, options)

    def keep(cell: Cell) -> None:
        write_tidy([cell], options.runs, Path(options.record) / cell.tier)

    finished = None if options.record is None else keep
    with ends_when_interrupted():
        report = run_grid(
            cells, options.runs, workers=options.workers, scheduler=options.scheduler,
            minutes_per_cell=options.minutes_per_cell, finished=finished,
        )  # fmt: skip
    return _said(report)


def _allow(cost: Estimate, options: argparse.Namespace) -> None:
    """Print a grid's estimated cost; raise an error if its time is long or unknown and ``--yes`` is not given."""
    from asyncfl_reproduction.grid.cost import HOURS_UNASKED

    print(cost, flush=True)
    if cost.asks and not options.yes:
        raise ConfigError(
            f"yes: needed above {HOURS_UNASKED:g} hours, or if the time is unknown; add --yes, or YES=1 with make"
        )


def _said(report: Report) -> int:
    """Print how a grid ended, and return the exit code."""
    counts = (
        f"{how_many(len(report.done), 'cell')} done, {len(report.skipped)} complete before, {len(report.failed)} failed"
    )
    print(counts + (f", {len(report.elsewhere)} left to other grids" if report.elsewhere else ""))
    for told, count in report.versions.items():
        print(f"  complete, at least in part under other versions: {how_many(count, 'cell')}, {told}")
    for name, where in sorted(report.elsewhere.items()):
        print(f"  elsewhere: {name}: {where}")
    for name, error in sorted(report.failed.items()):
        print(f"  failed: {name}: {error}")
    return 1 if report.failed else 0


def _tune(options: argparse.Namespace) -> int:
    from asyncfl_reproduction.tuning.grids import read_searches
    from asyncfl_reproduction.tuning.search import tune

    folder = None if options.results is None else Path(options.results)
    if options.cells is not None:
        return _tune_cells(options, folder)
    searches = read_searches(options.file or CELLS / "tuning.yaml", options.only)
    with ends_when_interrupted():
        for search in searches:
            tune(search, folder, say=_line)
    return 0


def _tune_cells(options: argparse.Namespace, folder: Path | None) -> int:
    from asyncfl_reproduction.grid.cells import expand_grid
    from asyncfl_reproduction.grid.cost import estimate
    from asyncfl_reproduction.tuning.halving import carry_out, left_of

    if options.file is not None:
        raise ConfigError("file: must be left out with --cells, which names a tier")
    cells = expand_grid(tier_file(options.cells), only=options.only, imports=getattr(options, "import"))
    waiting = [(left, cell.search) for cell in cells if (left := left_of(cell, folder, options.beyond)) is not None]
    _allow(estimate([left for left, _ in waiting], Path("runs"), kept=kept_in()), options)
    with ends_when_interrupted():
        for left, search in waiting:
            carry_out(left.tier, search, folder, say=_line, beyond=options.beyond)
    return 0


def _report(options: argparse.Namespace) -> int:
    import pandas as pd

    with needs("grid", "the report"):
        from papermill.exceptions import PapermillExecutionError

    from asyncfl_reproduction.report.notebook import make_report

    try:
        page = make_report(options.tier, options.runs, kept=options.results)
    except PapermillExecutionError as error:
        raise SimulationError(f"report: its notebook failed with {error.ename}: {error.evalue}") from None
    columns = ["cell", "accuracy %", "seeds", "virtual time", "mean staleness", "max staleness"]
    for name, chosen in (("cells", columns), ("summary", None)):
        kept = page.parent / "tables" / f"{name}.csv"
        if not kept.exists():  # cells of one's own have no claims to sum up
            continue
        table = pd.read_csv(kept, dtype=str, keep_default_na=False)
        print(table.reindex(columns=chosen, fill_value="").to_string(index=False), end="\n\n")
    print(f"report: {page}")
    return 0


def _record(options: argparse.Namespace) -> int:
    from asyncfl_reproduction.grid.cells import expand_grid
    from asyncfl_reproduction.grid.record import write_tidy

    cells = expand_grid(tier_file(options.tier))
    folder = Path(options.results) / cells[0].tier
    count = write_tidy(cells, options.runs, folder)
    if not count:
        raise ConfigError(f"runs: nothing of tier {options.tier!r} is recorded in {options.runs}")
    print(f"{how_many(count, 'run')} written to {folder}")
    return 0


def _results(options: argparse.Namespace) -> int:
    from asyncfl_reproduction.parquet import write_csv

    count = write_csv(Path(options.results), Path(options.csv))
    print(f"{how_many(count, 'table')} written to {options.csv}")
    return 0


def _league(options: argparse.Namespace) -> int:
    if (options.method is None) == (not options.field):
        raise ConfigError("league: must be given a Python file with a method, such as my_method.py, or --field")
    places = tier_file(options.tier), Path(options.runs), Path(options.results)
    with ends_when_interrupted():
        if options.field:
            from asyncfl_reproduction.league.recording import record_field

            return _said(record_field(*places, only=options.only, workers=options.workers,
                                      allowed=lambda cost: _allow(cost, options), say=_line))  # fmt: skip
        from asyncfl_reproduction.league.enter import enter

        enter(options.method, *places, quick=options.quick, workers=options.workers, yes=options.yes, say=_line)
    return 0


def _line(text: str) -> None:
    print(text, flush=True)


def _workers(text: str) -> int:
    number = int(text) if text.lstrip("-").isdecimal() else None
    if number is not None and 1 <= number <= MOST_WORKERS:
        return number
    allowed = (
        "a whole number of at least 1" if number is None else "at least 1" if number < 1 else f"at most {MOST_WORKERS}"
    )
    raise argparse.ArgumentTypeError(f"must be {allowed}, got {shown(text) if number is None else number}")


def _tiers(**_: object) -> set[str]:
    return tiers()

"""The command line: ``asyncfl-lite run | grid | report | record | list``.

The options of ``run`` are :class:`~asyncfl_lite.config.Config`'s fields, so a new setting is an option at
once. Exit codes: 0 done, 1 some cells of a grid failed, 2 bad input or a run that could not be finished.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from asyncfl_lite.errors import AsyncFLError, ConfigError, SimulationError, reason, shown, unknown_name
from asyncfl_lite.interrupts import INTERRUPTED, MESSAGE, ends_when_interrupted

if TYPE_CHECKING:
    import pandas as pd

GROUP_OPTIONS = "a setting of its own as name=value; may be repeated"
BACKENDS = {"loky": "processes here", "dask": "a Dask cluster"}
MOST_WORKERS = 1024


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = _options(list(sys.argv[1:] if arguments is None else arguments))
    try:
        return options.command(options)
    except BrokenPipeError:  # who reads the output, such as head, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (AsyncFLError, OSError, MemoryError, RuntimeError) as error:
        if (told := _told(error)) is None:
            raise
        print(f"asyncfl-lite: {told}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(MESSAGE, file=sys.stderr)
        return INTERRUPTED


def _told(error: Exception) -> str | None:
    """Return in one line what a user can do something about; None for what is this package's own fault."""
    if isinstance(error, AsyncFLError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename or 'files'}: {reason(error)}"
    if isinstance(error, MemoryError) or re.search("can't allocate|out of memory", str(error)):
        return f"memory: there is not enough for this configuration ({reason(error)})"
    return None


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with the arguments, as all errors of the package do."""

    commands: dict[str, argparse.ArgumentParser]

    def error(self, message: str) -> NoReturn:
        """End the process with exit code 2."""
        told = re.sub("^argument ", "", " ".join(message.split()))
        told = re.sub("expected one argument$", "must be followed by a value", told)
        told = re.sub("^the following arguments are required: (.*)", r"\1: must be given", told)
        self.exit(2, f"asyncfl-lite: {told}\n")


def _options(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line; a mistake in it ends the process."""
    parser = _parser()
    if not arguments or arguments[0] not in (*parser.commands, "-h", "--help"):
        parser.error(unknown_name("command", arguments[0] if arguments else "", parser.commands))
    options, left = parser.parse_known_args(arguments)
    if left:
        wrong = next((text for text in left if text.startswith("-")), left[0]).partition("=")[0]
        kind = "option" if wrong.startswith("-") else "argument"
        allowed = [f"--{name.replace('_', '-')}" for name in vars(options) if name not in ("command", "file")]
        parser.error(unknown_name(f"{arguments[0]}: {kind}", wrong, allowed))
    return options


def _folder(name: str) -> str:
    """Refuse what is no folder's name; the shell makes an empty one of a variable that is not set."""
    if not name.strip():
        raise argparse.ArgumentTypeError(f"must be a folder, got {name!r}")
    return name


def _parser() -> _Parser:
    from asyncfl_lite.config import GROUPS, Config

    parser = _Parser("asyncfl-lite", description="Asynchronous federated learning on a virtual clock.")
    commands = parser.add_subparsers(required=True, metavar="run|grid|report|record|list")
    parser.commands = commands.choices

    run = commands.add_parser("run", help="run one configuration", allow_abbrev=False)
    for name, field in Config.model_fields.items():
        option = f"--{name.replace('_', '-')}"
        if name in GROUPS:
            run.add_argument(
                option, action="append", metavar="NAME=VALUE", help=f"{field.description}: {GROUP_OPTIONS}"
            )
        else:
            run.add_argument(option, metavar=name.upper(), help=field.description)
    run.add_argument(
        "--out", type=_folder, metavar="FOLDER", help="write the result there; what is finished there is not run again"
    )
    run.set_defaults(command=_run)

    grid = commands.add_parser("grid", help="run a grid of experiments through papermill")
    grid.add_argument("file", help="experiments/<tier>.yaml")
    grid.add_argument("--paper", default="all", help="only this paper's cells")
    grid.add_argument("--only", default="*", help="only cells whose name matches, such as 'fedecho/table2/*'")
    grid.add_argument("--workers", default="1", help="processes, each with one torch thread")
    grid.add_argument("--runs", type=_folder, default="runs", help="folder of results")
    grid.add_argument("--yes", action="store_true", help="start though it is estimated to take more than two hours")
    grid.add_argument("--backend", metavar="|".join(BACKENDS), default="loky", help=" or ".join(BACKENDS.values()))
    grid.add_argument("--scheduler", metavar="ADDRESS", help="of the Dask cluster, such as tcp://10.0.0.1:8786")
    grid.set_defaults(command=_grid)

    report = commands.add_parser("report", help="make the report from recorded results")
    report.add_argument("--tier", default="smoke", help="smoke, laptop, core or another file of experiments/")
    report.add_argument("--runs", type=_folder, default="runs", help="folder of results")
    report.add_argument(
        "--results", type=_folder, default="results", help="folder of the tables for what is not in --runs"
    )
    report.set_defaults(command=_report)

    record = commands.add_parser("record", help="keep a tier's results as two small tables, for the repository")
    record.add_argument("--tier", default="laptop", help="smoke, laptop or another tier")
    record.add_argument("--runs", type=_folder, default="runs", help="folder of results")
    record.add_argument("--results", type=_folder, default="results", help="folder of the tables")
    record.set_defaults(command=_record)

    listing = commands.add_parser("list", help="list methods, tasks, models, delay laws, partitions")
    listing.add_argument("--methods", action="store_true", help="the methods as a table, with storage and switches")
    listing.set_defaults(command=_list)
    return parser


def _run(options: argparse.Namespace) -> int:
    from asyncfl_lite.config import GROUPS, Config
    from asyncfl_lite.results import check_writable
    from asyncfl_lite.runner import run, run_in

    given: dict[str, Any] = {}
    for name in Config.model_fields:
        value = getattr(options, name)
        if value is not None:
            given[name] = _pairs(name, value) if name in GROUPS else _plain(value)
    config, progress = Config(**given), sys.stderr.isatty()
    _check_device(config.device)
    if options.out:
        check_writable(options.out)
    result = run_in(options.out, config, progress=progress) if options.out else run(config, progress=progress)
    for name, value in result.summary.items():
        print(f"{name:24} {value:.4f}" if isinstance(value, float) else f"{name:24} {value}")
    if options.out:
        print(f"{'written to':24} {options.out}")
    return 0


def _check_device(name: str) -> None:
    import torch

    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError, NotImplementedError) as error:  # torch's own, by kind of device
        raise ConfigError(f"device: this machine has no {name!r} that torch can use ({reason(error)})") from None


def _plain(text: str) -> str | None:
    return None if text.lower() in ("none", "null") else text


def _pairs(name: str, pairs: Sequence[str]) -> dict[str, Any]:
    """Turn ``name=value`` into settings; a comma makes a list, one at the end a list of one."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator:
            raise ConfigError(f"{name}: must be NAME=VALUE, got {shown(pair)}")
        if key in settings:
            raise ConfigError(f"{name}.{key}: must be given once, got {shown(pair)} too")
        settings[key] = value.removesuffix(",").split(",") if "," in value else _plain(value)
    return settings


def _grid(options: argparse.Namespace) -> int:
    from asyncfl_lite.cells import expand_grid
    from asyncfl_lite.cost import HOURS_UNASKED, estimate
    from asyncfl_lite.grid import run_grid
    from asyncfl_lite.workers import count_workers

    if not options.workers.lstrip("-").isdecimal():
        raise ConfigError(f"workers: must be a whole number of at least 1, got {shown(options.workers)}")
    if not 1 <= int(options.workers) <= MOST_WORKERS:
        limit = (
            "at least 1" if options.workers.startswith("-") or int(options.workers) < 1 else f"at most {MOST_WORKERS}"
        )
        raise ConfigError(f"workers: must be {limit}, got {options.workers}")
    options.workers = int(options.workers)
    if options.backend not in BACKENDS:
        raise ConfigError(unknown_name("backend", options.backend, BACKENDS))
    if (options.backend == "dask") != (options.scheduler is not None):
        raise ConfigError("scheduler: must be given with backend 'dask', and with no other")
    cells = expand_grid(options.file, paper=options.paper, only=options.only)
    workers = options.workers if options.scheduler is None else count_workers(options.scheduler)
    cost = estimate(cells, options.runs, workers=workers)
    print(cost, flush=True)
    if cost.asks and not options.yes:
        raise ConfigError(
            f"yes: needed above {HOURS_UNASKED:g} hours, and where the time is unknown; YES=1 with make, else --yes"
        )
    with ends_when_interrupted():
        report = run_grid(cells, options.runs, workers=options.workers, scheduler=options.scheduler)
    print(f"{len(report.done)} cells done, {len(report.skipped)} complete before, {len(report.failed)} failed")
    for name, error in sorted(report.failed.items()):
        print(f"  failed: {name}: {error}")
    return 1 if report.failed else 0


def _report(options: argparse.Namespace) -> int:
    import pandas as pd
    from papermill.exceptions import PapermillExecutionError

    from asyncfl_lite.cells import expand_grid
    from asyncfl_lite.report import make_report

    tier_file = Path(f"experiments/{options.tier}.yaml")
    if tier_file.exists():  # else that is what is reported
        expand_grid(tier_file)
    try:
        page = make_report(options.tier, options.runs, kept=options.results)
    except PapermillExecutionError as error:
        raise SimulationError(f"report: its notebook failed with {error.ename}: {error.evalue}") from None
    columns = ["cell", "accuracy %", "seeds", "virtual time", "mean staleness", "max staleness"]
    for name, chosen in (("cells", columns), ("summary", None)):
        table = pd.read_csv(page.parent / "tables" / f"{name}.csv", dtype=str, keep_default_na=False)
        print(table.reindex(columns=chosen, fill_value="").to_string(index=False), end="\n\n")
    print(f"report: {page}")
    return 0


def _record(options: argparse.Namespace) -> int:
    from asyncfl_lite.cells import expand_grid
    from asyncfl_lite.tidy import write_tidy

    cells = expand_grid(f"experiments/{options.tier}.yaml")
    folder = Path(options.results) / cells[0].tier
    count = write_tidy(cells, options.runs, folder)
    if not count:
        raise ConfigError(f"runs: nothing of tier {options.tier!r} is recorded in {options.runs}")
    print(f"{count} runs written to {folder}")
    return 0


def _list(options: argparse.Namespace) -> int:
    from asyncfl_lite.algorithms import ALGORITHMS
    from asyncfl_lite.delays import DELAYS
    from asyncfl_lite.initial import INITIALISERS
    from asyncfl_lite.models import MODELS
    from asyncfl_lite.partitions import PARTITIONS
    from asyncfl_lite.scheduling import SCHEDULING
    from asyncfl_lite.selection import SELECTIONS
    from asyncfl_lite.tasks import TASKS

    if options.methods:
        from asyncfl_lite.methods import method_table

        print(_wrapped(method_table(), shutil.get_terminal_size((160, 24)).columns))
        return 0
    registries = {
        "methods": ALGORITHMS,
        "tasks": TASKS,
        "models": MODELS,
        "delay laws": DELAYS,
        "partitions": PARTITIONS,
        "redispatch (when a slot gets new work)": SCHEDULING,
        "selection (who gets it)": SELECTIONS,
        "initial (first weights)": INITIALISERS,
    }
    for title, registry in registries.items():
        print(title)
        for name, line in registry.describe().items():
            print(f"  {name:18} {line}")
    return 0


def _wrapped(table: pd.DataFrame, width: int) -> str:
    """Return a table whose texts are broken into lines, so that a row is at most ``width`` wide."""
    shares = {"name": 13, "paper": 24, "family": 12, "server stores": 28, "extra client work": 24}
    left = max(30, width - sum(shares.values()) - 2 * len(shares))
    columns = {column: shares.get(column, left) for column in table.columns}
    lines = [_row_of({name: name for name in columns}, columns)]
    lines += [_row_of(row, columns) for row in table.to_dict("records")]
    return "\n\n".join(lines)


def _row_of(row: dict[str, str], columns: dict[str, int]) -> str:
    cells = [textwrap.wrap(row[name], size, break_on_hyphens=False) or [""] for name, size in columns.items()]
    return "\n".join(
        "  ".join(text.ljust(size) for text, size in zip(texts, columns.values(), strict=True)).rstrip()
        for texts in itertools.zip_longest(*cells, fillvalue="")
    )


if __name__ == "__main__":
    sys.exit(main())

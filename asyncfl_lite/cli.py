"""The command line: ``asyncfl-lite run | grid | tune | …``, or ``python -m asyncfl_lite …``.

The options of ``run`` are :class:`~asyncfl_lite.runs.config.Config`'s fields, so a new setting is an option at
once. Exit codes: 0 done, 1 some cells of a grid failed, 2 bad input or a run that could not be finished.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import shutil
import statistics
import sys
import textwrap
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asyncfl_lite.arguments import BACKENDS, parse
from asyncfl_lite.base.errors import AsyncFLError, ConfigError, SimulationError, reason, shown, unknown_name
from asyncfl_lite.base.libraries import needs
from asyncfl_lite.base.plugins import import_own, located
from asyncfl_lite.reproduction.grid.interrupts import INTERRUPTED, MESSAGE, ends_when_interrupted

if TYPE_CHECKING:
    import pandas as pd

    from asyncfl_lite.reproduction.grid.cost import Estimate
    from asyncfl_lite.reproduction.grid.run import Report
    from asyncfl_lite.runs.config import Config
    from asyncfl_lite.runs.results import Result


MOST_SEEDS = 1000
"""Seeds that a range may name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = None
    try:
        options = parse(list(sys.argv[1:] if arguments is None else arguments))
        for place in getattr(options, "import", ()):
            import_own(located(place, Path.cwd()))
        return COMMANDS[options.command](options)
    except BrokenPipeError:  # who reads the output, such as head, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (AsyncFLError, OSError, MemoryError, RuntimeError) as error:
        if (line := _in_one_line(error)) is None:
            raise
        print(f"asyncfl-lite: {line}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        print(f"asyncfl-lite: {interrupt}" if str(interrupt) else _when_interrupted(options), file=sys.stderr)
        return INTERRUPTED


def _when_interrupted(options: argparse.Namespace | None) -> str:
    """Return in one line what is kept of a command that was interrupted and could not say so itself."""
    if options is not None and options.command in ("grid", "league"):
        return MESSAGE
    if options is None or options.command != "run":
        return "asyncfl-lite: interrupted"
    if options.out is None:
        return "asyncfl-lite: interrupted; nothing is kept, as only a run with --out FOLDER saves itself"
    return f"asyncfl-lite: interrupted; what {options.out} holds is kept, and the same command goes on from that"


def _in_one_line(error: Exception) -> str | None:
    """Return in one line what a user can do something about; None for what is this package's own fault."""
    if isinstance(error, AsyncFLError):
        return "; ".join([str(error), *getattr(error, "__notes__", ())])
    if isinstance(error, OSError):
        return f"{error.filename or 'files'}: {reason(error)}"
    if isinstance(error, MemoryError) or re.search("can't allocate|out of memory", str(error)):
        return f"memory: there is not enough for this configuration ({reason(error)})"
    return None


def _run(options: argparse.Namespace) -> int:
    from asyncfl_lite.runs.results import check_writable
    from asyncfl_lite.runs.run import run, run_in

    configs = _configs(options)
    progress = True if sys.stderr.isatty() else "lines"
    if options.out:
        check_writable(options.out)
    if len(configs) > 1:
        results = _run_seeds(configs, options, progress)
    elif options.out:
        results = [run_in(options.out, configs[0], progress=progress, force=options.force)]
    else:
        results = [run(configs[0], progress=progress)]
    for name in results[0].summary:
        print(f"{name:24} {_over_seeds([result.summary.get(name) for result in results])}")
    if any(result.is_constant_answer for result in results):
        print("constant answer: the final model answers one class for every test sample; it did not train")
    if options.out:
        print(f"{'written to':24} {options.out}")
    return 0


def _run_seeds(configs: Sequence[Config], options: argparse.Namespace, progress: Any) -> list[Result]:
    """Run several seeds, small models' in lockstep, those that are complete read from their folders."""
    from asyncfl_lite.runs.lockstep import finish_in_turn
    from asyncfl_lite.runs.results import load_complete
    from asyncfl_lite.runs.run import Run, run_at

    if options.out is None:
        return finish_in_turn([partial(Run, config) for config in configs], progress=progress)
    folders = [Path(options.out) / f"seed-{config.seed}" for config in configs]
    pairs = list(zip(folders, configs, strict=True))
    found = [load_complete(*pair) for pair in pairs]
    begin = [partial(run_at, *pair, force=options.force) for pair, one in zip(pairs, found, strict=True) if one is None]
    new = iter(finish_in_turn(begin, lambda run, result: run.keep(result, force=options.force), progress=progress))
    return [next(new) if one is None else one for one in found]


def _seeds(text: str) -> list[str]:
    """Return the seeds that ``0,1,2`` or ``0-2`` names, or both: ``0-2,7``."""
    seeds: list[str] = []
    for part in text.split(","):
        ends = re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*", part)
        if ends is None:
            seeds.append(part)
        elif not 0 <= int(ends[2]) - int(ends[1]) < MOST_SEEDS:
            raise ConfigError(f"seed: must be such as 0,1,2 or 0-4, of at most {MOST_SEEDS}, got {shown(part)}")
        else:
            seeds += map(str, range(int(ends[1]), int(ends[2]) + 1))
    return seeds


def _configs(options: argparse.Namespace) -> list[Config]:
    """Return what is to be run: the settings of a file, if there is one, and before them the options; for each seed."""
    from asyncfl_lite.runs.config import Config
    from asyncfl_lite.runs.groups import GROUPS

    given: dict[str, Any] = {}
    for name in Config.model_fields:
        value = getattr(options, name)
        if value is not None and name != "seed":
            given[name] = _pairs(name, value) if name in GROUPS else _plain(value)
    if options.config is not None:
        given = _added_to(_read_settings(Path(options.config), another_task="task" in given), given)
    seeds = [seed for text in options.seed or [] for seed in _seeds(text)]
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"seed: must be given once each, got {', '.join(seeds)}")
    return [Config.from_mapping({**given, "seed": seed}) for seed in seeds] or [Config.from_mapping(given)]


def _read_settings(path: Path, another_task: bool) -> Any:
    """Return the settings that a file holds: JSON or YAML, or the ``result.json`` of a run, which may be its folder.

    Args:
        path: of the file, or of the folder.
        another_task: whether a task is named beside it, as it must be for the result of a run on one's own data.
    """
    from asyncfl_lite.base.written import settings_in

    path = path / "result.json" if path.is_dir() else path
    try:
        content = settings_in(path)
    except ConfigError as error:
        raise ConfigError(f"config: {error}") from None
    if isinstance(content, dict) and "config_hash" in content:
        if content.get("own_task") is not None and not another_task:
            raise ConfigError(
                f"config: {path} is of a run on own data ({shown(content['own_task'])}), which it does not hold; name "
                "another --task, or in Python: run(load_result(FOLDER).config, task=…)"
            )
        content = content.get("config")
    if not isinstance(content, dict):
        raise ConfigError(f"config: {path} must hold settings by name, got {shown(content)}")
    return content


def _added_to(written: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return written settings with those that are given in their place.

    Another model, method or law than the written one comes without its settings.
    """
    from asyncfl_lite.runs.defaults import without_replaced
    from asyncfl_lite.runs.groups import GROUPS

    partition = given.get("partition", written.get("partition"))
    if "alpha" in (*given, *given.get("partition_settings", ())) or partition != written.get("partition"):
        written = _without_alpha(written)
    merged = {**without_replaced(written, given), **given}
    for group, (name, _) in GROUPS.items():
        if name in given and given[name] != written.get(name):
            merged[group] = given.get(group, {})
        elif isinstance(written.get(group), dict):
            merged[group] = {**written[group], **given.get(group, {})}
    return merged


def _without_alpha(written: dict[str, Any]) -> dict[str, Any]:
    """Return written settings without α, which may stand in two places."""
    kept = {name: value for name, value in written.items() if name != "alpha"}
    if isinstance(own := kept.get("partition_settings"), dict):
        kept["partition_settings"] = {name: value for name, value in own.items() if name != "alpha"}
    return kept


def _over_seeds(values: Sequence[Any]) -> str:
    """Return one number of a summary, or its mean and deviation over several runs; what is no number as it is."""
    if len(set(values)) == 1:
        return f"{values[0]:.4f}" if isinstance(values[0], float) else str(values[0])
    if all(isinstance(value, int | float) for value in values):
        return f"{statistics.mean(values):.4f} ± {statistics.stdev(values):.4f}"
    return ", ".join(dict.fromkeys(map(str, values)))


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
    from asyncfl_lite.reproduction.grid.cells import Cell, expand_grid
    from asyncfl_lite.reproduction.grid.cost import estimate
    from asyncfl_lite.reproduction.grid.run import run_grid
    from asyncfl_lite.reproduction.grid.tidy import write_tidy
    from asyncfl_lite.reproduction.grid.workers import count_workers
    from asyncfl_lite.reproduction.places import tier_file

    if options.backend not in BACKENDS:
        raise ConfigError(unknown_name("backend", options.backend, BACKENDS))
    if (options.backend == "dask") != (options.scheduler is not None):
        raise ConfigError("scheduler: must be given with backend 'dask', and with no other")
    own = getattr(options, "import")
    cells = expand_grid(tier_file(options.file), paper=options.paper, only=options.only, imports=own)
    if waiting := [cell.waits_for for cell in cells if cell.waits_for is not None]:
        print(f"{len(waiting)} cells wait for searches that were not made, such as {waiting[0]}; asyncfl-lite tune")
    workers = options.workers if options.scheduler is None else count_workers(options.scheduler)
    cost = estimate(cells, options.runs, kept="results", workers=workers)
    _allow(cost, options)

    def keep(cell: Cell) -> None:
        write_tidy([cell], options.runs, Path(options.record) / cell.tier)

    finished = None if options.record is None else keep
    with ends_when_interrupted():
        report = run_grid(cells, options.runs, workers=options.workers, scheduler=options.scheduler, finished=finished)
    return _said(report)


def _allow(cost: Estimate, options: argparse.Namespace) -> None:
    """Say what cells cost; refuse what takes long unless it was asked for."""
    from asyncfl_lite.reproduction.grid.cost import HOURS_UNASKED

    print(cost, flush=True)
    if cost.asks and not options.yes:
        raise ConfigError(
            f"yes: needed above {HOURS_UNASKED:g} hours, and where the time is unknown; YES=1 with make, else --yes"
        )


def _said(report: Report) -> int:
    """Say how a grid ended, and return the exit code."""
    counts = f"{len(report.done)} cells done, {len(report.skipped)} complete before, {len(report.failed)} failed"
    print(counts + (f", {len(report.elsewhere)} left to other grids" if report.elsewhere else ""))
    for name, where in sorted(report.elsewhere.items()):
        print(f"  elsewhere: {name}: {where}")
    for name, error in sorted(report.failed.items()):
        print(f"  failed: {name}: {error}")
    return 1 if report.failed else 0


def _tune(options: argparse.Namespace) -> int:
    from asyncfl_lite.base.home import home_of
    from asyncfl_lite.reproduction.tuning.defaults import write_defaults
    from asyncfl_lite.reproduction.tuning.search import tune
    from asyncfl_lite.reproduction.tuning.studies import read_searches

    folder = None if options.results is None else Path(options.results)
    if options.defaults:
        write_defaults()
        return 0
    if options.cells is not None:
        return _tune_cells(options, folder)
    searches = read_searches(options.file or home_of("experiments") / "tuning.yaml", options.only)
    with ends_when_interrupted():
        for search in searches:
            tune(search, folder, say=_line)
    return 0


def _tune_cells(options: argparse.Namespace, folder: Path | None) -> int:
    from asyncfl_lite.reproduction.grid.cells import expand_grid
    from asyncfl_lite.reproduction.grid.cost import estimate
    from asyncfl_lite.reproduction.places import tier_file
    from asyncfl_lite.reproduction.tuning.halving import carry_out, left_of

    if options.file is not None:
        raise ConfigError("file: must be left out with --cells, which names a tier")
    cells = expand_grid(tier_file(options.cells), only=options.only, imports=getattr(options, "import"))
    waiting = [(left, cell.search) for cell in cells if (left := left_of(cell, folder)) is not None]
    _allow(estimate([left for left, _ in waiting], Path("runs"), kept="results"), options)
    with ends_when_interrupted():
        for left, search in waiting:
            carry_out(left.tier, search, folder, say=_line)
    return 0


def _report(options: argparse.Namespace) -> int:
    import pandas as pd

    with needs("grid", "the report"):
        from papermill.exceptions import PapermillExecutionError

    from asyncfl_lite.reproduction.grid.cells import expand_grid
    from asyncfl_lite.reproduction.places import tier_file
    from asyncfl_lite.reproduction.report.notebook import make_report

    file = tier_file(options.tier)
    expand_grid(file)  # says what is wrong with it in one line
    try:
        page = make_report(file, options.runs, kept=options.results)
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
    from asyncfl_lite.reproduction.grid.cells import expand_grid
    from asyncfl_lite.reproduction.grid.tidy import write_tidy
    from asyncfl_lite.reproduction.places import tier_file

    cells = expand_grid(tier_file(options.tier))
    folder = Path(options.results) / cells[0].tier
    count = write_tidy(cells, options.runs, folder)
    if not count:
        raise ConfigError(f"runs: nothing of tier {options.tier!r} is recorded in {options.runs}")
    print(f"{count} runs written to {folder}")
    return 0


def _league(options: argparse.Namespace) -> int:
    from asyncfl_lite.reproduction.places import tier_file

    if (options.method is None) == (not options.field):
        raise ConfigError("league: must be given a Python file with a method, such as my_method.py, or --field")
    places = tier_file(options.tier), Path(options.runs), Path(options.results)
    with ends_when_interrupted():
        if options.field:
            from asyncfl_lite.reproduction.league.recording import record_field

            return _said(record_field(*places, only=options.only, workers=options.workers,
                                      allowed=lambda cost: _allow(cost, options), say=_line))  # fmt: skip
        from asyncfl_lite.reproduction.league.enter import enter

        enter(options.method, *places, quick=options.quick, workers=options.workers, yes=options.yes, say=_line)
    return 0


def _line(text: str) -> None:
    print(text, flush=True)


def _list(options: argparse.Namespace) -> int:
    from asyncfl_lite.algorithms import ALGORITHMS
    from asyncfl_lite.models import MODELS
    from asyncfl_lite.runs.initial import INITIALISERS
    from asyncfl_lite.simulator.delays import DELAYS
    from asyncfl_lite.simulator.scheduling import SCHEDULING
    from asyncfl_lite.simulator.selection import SELECTIONS
    from asyncfl_lite.tasks import TASKS
    from asyncfl_lite.tasks.partitions import PARTITIONS

    if options.methods:
        from asyncfl_lite.algorithms.table import method_table

        print(_wrapped(method_table(), shutil.get_terminal_size((160, 24)).columns))
        return 0
    registries = {
        "methods": ALGORITHMS,
        "tasks": TASKS,
        "models": MODELS,
        "delay laws": DELAYS,
        "partitions": PARTITIONS,
        "redispatch (when a slot gets new work)": SCHEDULING,
        "selection (which client gets the new work)": SELECTIONS,
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


COMMANDS = {
    "run": _run,
    "grid": _grid,
    "tune": _tune,
    "report": _report,
    "record": _record,
    "league": _league,
    "list": _list,
}

if __name__ == "__main__":
    sys.exit(main())

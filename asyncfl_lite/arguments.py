"""The command line's arguments. The options of ``run`` are :class:`~asyncfl_lite.runs.config.Config`'s fields."""

from __future__ import annotations

import argparse
import re
from typing import NoReturn

from asyncfl_lite.base.errors import ConfigError, shown, unknown_name

GROUP_OPTIONS = "a setting of its own as name=value; may be repeated"
BACKENDS = {"loky": "processes here", "dask": "a Dask cluster"}
MOST_WORKERS = 1024


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong with the arguments, as all errors of the package do."""

    commands: dict[str, argparse.ArgumentParser]

    def error(self, message: str) -> NoReturn:
        """Raise what :func:`parse` says."""
        line = re.sub("^argument ", "", " ".join(message.split()))
        line = re.sub("expected one argument$", "must be followed by a value", line)
        line = re.sub("^the following arguments are required: (.*)", r"\1: must be given", line)
        raise ConfigError(line)


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line into options, of which ``command`` is the subcommand.

    Options may be written with ``-`` or, as settings are in Python and in files, with ``_``.

    Raises:
        ConfigError: a line on what is wrong and what is allowed.
    """
    parser = _parser()
    if not arguments or arguments[0] not in (*parser.commands, "-h", "--help"):
        parser.error(unknown_name("command", arguments[0] if arguments else "", parser.commands))
    written = {_with_dashes(text): text for text in arguments}
    options, left = parser.parse_known_args([_with_dashes(text) for text in arguments])
    if left:
        left = [written.get(text, text) for text in left]
        wrong = next((text for text in left if text.startswith("-")), left[0]).partition("=")[0]
        kind = "option" if wrong.startswith("-") else "argument"
        allowed = [f"--{name.replace('_', '-')}" for name in vars(options) if name not in ("command", "file")]
        parser.error(unknown_name(f"{arguments[0]}: {kind}", wrong, allowed))
    return options


def _with_dashes(text: str) -> str:
    """Return an option's name with dashes for underscores; its value, and what is no option, stay as they are."""
    name, equals, value = text.partition("=")
    return name.replace("_", "-") + equals + value if name.startswith("--") else text


def _folder(name: str) -> str:
    """Refuse what is no folder's name; the shell makes an empty one of a variable that is not set."""
    if not name.strip():
        raise argparse.ArgumentTypeError(f"must be a folder, got {name!r}")
    return name


def _workers(text: str) -> int:
    """Return how many processes are meant."""
    number = int(text) if text.lstrip("-").isdecimal() else None
    if number is not None and 1 <= number <= MOST_WORKERS:
        return number
    allowed = (
        "a whole number of at least 1" if number is None else "at least 1" if number < 1 else f"at most {MOST_WORKERS}"
    )
    raise argparse.ArgumentTypeError(f"must be {allowed}, got {shown(text) if number is None else number}")


def _parser() -> _Parser:
    from asyncfl_lite.runs.config import Config
    from asyncfl_lite.runs.groups import GROUPS

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
    run.set_defaults(command="run")

    grid = commands.add_parser("grid", help="run a grid of experiments through papermill")
    grid.add_argument("file", help="a file of cells, or the name of one that comes with the package: smoke, laptop, …")
    grid.add_argument("--paper", default="all", help="only this paper's cells")
    grid.add_argument("--only", default="*", help="only cells whose name matches, such as 'fedecho/table2/*'")
    grid.add_argument("--workers", type=_workers, default=1, help="processes, each with one torch thread")
    grid.add_argument("--runs", type=_folder, default="runs", help="folder of results")
    grid.add_argument("--yes", action="store_true", help="start though it is estimated to take more than two hours")
    grid.add_argument("--backend", metavar="|".join(BACKENDS), default="loky", help=" or ".join(BACKENDS.values()))
    grid.add_argument("--scheduler", metavar="ADDRESS", help="of the Dask cluster, such as tcp://10.0.0.1:8786")
    grid.set_defaults(command="grid")

    report = commands.add_parser("report", help="make the report from recorded results")
    report.add_argument("--tier", default="smoke", help="smoke, laptop, core or another; or a file of cells")
    report.add_argument("--runs", type=_folder, default="runs", help="folder of results")
    report.add_argument(
        "--results", type=_folder, default="results", help="folder of the tables for what is not in --runs"
    )
    report.set_defaults(command="report")

    record = commands.add_parser("record", help="keep a tier's results as two small tables, for the repository")
    record.add_argument("--tier", default="laptop", help="smoke, laptop or another; or a file of cells")
    record.add_argument("--runs", type=_folder, default="runs", help="folder of results")
    record.add_argument("--results", type=_folder, default="results", help="folder of the tables")
    record.set_defaults(command="record")

    listing = commands.add_parser("list", help="list methods, tasks, models, delay laws, partitions")
    listing.add_argument("--methods", action="store_true", help="the methods as a table, with storage and switches")
    listing.set_defaults(command="list")
    return parser

"""The command line's arguments; the options of ``run`` are the fields of :class:`~asyncfl_lite.runs.config.Config`.

Nothing here imports torch, so help and errors about options appear at once.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, get_args

from asyncfl_lite.base.errors import ConfigError, unknown_name
from asyncfl_lite.base.version import __version__

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

GROUP_OPTIONS = "name=value; may be repeated"
REGISTRIES = {
    "task": "TASKS",
    "model": "MODELS",
    "algorithm": "ALGORITHMS",
    "delay": "DELAYS",
    "partition": "PARTITIONS",
    "redispatch": "SCHEDULING",
    "selection": "SELECTIONS",
    "initial": "INITIALISERS",
}
"""Setting -> the registry that holds its allowed names."""
NO_OPTIONS = ("command", "file", "carry_out", "interrupted")
"""Names in the parsed result that are not options on the command line."""
BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


class _Parser(argparse.ArgumentParser):
    """A parser that reports wrong arguments in one line, like all errors of the package."""

    commands: Mapping[str, argparse.ArgumentParser]

    def error(self, message: str) -> NoReturn:
        """Raise argparse's message as a one-line :class:`.ConfigError`."""
        line = re.sub("^argument ", "", " ".join(message.split()))
        line = re.sub("expected one argument$", "must be followed by a value", line)
        line = re.sub("^the following arguments are required: (.*)", r"\1: must be given", line)
        raise ConfigError(line)


class WithDefaults(argparse.ArgumentDefaultsHelpFormatter):
    """Help formatter that prints each option's default, if it has one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return super()._get_help_string(action) if action.default else action.help


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line into options; the attribute ``command`` names the subcommand.

    Options may be written with ``-`` or, as settings are in Python and in files, with ``_``.

    Raises:
        ConfigError: if an argument is wrong; one line says what is wrong and what is allowed.
    """
    parser = _parser(arguments)
    _complete(parser)
    if not arguments or arguments[0] not in (*parser.commands, "-h", "--help", "--version"):
        parser.error(unknown_name("command", arguments[0] if arguments else "", parser.commands))
    if empty := [text for text in arguments if re.fullmatch("--[^=]+=--", text)]:
        parser.error(f"{empty[0].partition('=')[0]}: must be followed by a value, got '--'")  # argparse makes it a list
    written = {_with_dashes(text): text for text in arguments}
    options, left = parser.parse_known_args([_with_dashes(text) for text in arguments])
    if left:
        left = [written.get(text, text) for text in left]
        wrong = next((text for text in left if text.startswith("-")), left[0]).partition("=")[0]
        kind = "option" if wrong.startswith("-") else "argument"
        allowed = [f"--{name.replace('_', '-')}" for name in vars(options) if name not in NO_OPTIONS]
        parser.error(unknown_name(f"{arguments[0]}: {kind}", wrong, allowed))
    return options


def _complete(parser: _Parser) -> None:
    """Print completions and exit if a shell asks for them; otherwise do nothing."""
    if "_ARGCOMPLETE" not in os.environ:
        return
    import argcomplete

    from asyncfl_lite.runs.fields import Fields

    names = {setting: registered()[registry] for setting, registry in REGISTRIES.items()}
    for name, field in Fields.model_fields.items():
        kinds = get_args(field.annotation)
        if kinds and all(isinstance(kind, str) for kind in kinds):
            names[name] = list(kinds)
    for action in parser.commands["run"]._actions:
        if action.dest in names:
            # argcomplete reads this attribute, and accepts any choices
            action.completer = argcomplete.ChoicesCompleter(names[action.dest])  # type: ignore[attr-defined, arg-type]
    argcomplete.autocomplete(parser)


def _with_dashes(text: str) -> str:
    """Replace underscores with dashes in an option's name, but not in its value."""
    name, equals, value = text.partition("=")
    return name.replace("_", "-") + equals + value if name.startswith("--") else text


def folder(name: str) -> str:
    """Return the folder's ``name``, or raise if it is blank, as when a shell variable is not set."""
    return _named(name, "a folder")


def file(name: str) -> str:
    """Return the file's ``name``, or raise if it is blank, as when a shell variable is not set."""
    return _named(name, "a file")


def _named(name: str, what: str) -> str:
    if not name.strip():
        raise argparse.ArgumentTypeError(f"must be {what}, got {name!r}")
    return name


@cache
def registered() -> dict[str, list[str]]:
    """Return the registered names of the package's own classes by registry, read from the source code without imports.

    Importing the classes would import torch, which takes seconds.
    """
    found: dict[str, list[str]] = {}
    for file in Path(__file__).parent.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        for registry, name in re.findall(r'^@(\w+)\.register\("(\w+)"\)', text, re.M):
            found.setdefault(registry, []).append(name)
    return {registry: sorted(names) for registry, names in found.items()}


def _defaults(arguments: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return a text that names the method and task whose defaults ``--help`` shows, and the defaults themselves."""
    from asyncfl_lite.runs.defaults import COMMON, defaults
    from asyncfl_lite.runs.fields import Fields

    chosen = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in ("task", "algorithm", "setup"):
        chosen.add_argument(f"--{name}", nargs="?", default=COMMON.get(name))
    given, _ = chosen.parse_known_args(arguments)
    own = {name: field.default for name, field in Fields.model_fields.items() if not field.is_required()}
    named = {"task": given.task, "algorithm": given.algorithm}
    return f"{given.algorithm} on {given.task}", {**own, **defaults(**named, setup=given.setup), **named}


def _help(name: str, field: FieldInfo, defaults: dict[str, Any]) -> str:
    """Return an option's help text: its description, its allowed values and its default."""
    if _is_group(field):
        parts = [GROUP_OPTIONS]
        default = " ".join(f"{key}={value}" for key, value in (defaults.get(name) or {}).items())
    else:
        kinds = get_args(field.annotation) or (field.annotation,)
        bounds = [f"{word} {value:,.12g}" for limit in field.metadata for key, word in BOUNDS.items()
                  if (value := getattr(limit, key, None)) is not None]  # fmt: skip
        names = registered().get(REGISTRIES.get(name, ""), [])
        parts = ["one of " + ", ".join(names)] if names else [" and ".join(bounds)] if bounds else []
        if bool in kinds:
            parts = ["true or false"]
        elif not names and all(isinstance(kind, str) for kind in kinds):
            parts = ["one of " + ", ".join(kinds)]
        default = defaults.get(name, "by the method") if name in defaults or field.is_required() else "none"
        default = "none" if default is None else str(default)
    said = field.description or ""
    return "; ".join([said, *parts, *([f"default: {default}"] if default else [])]).replace("%", "%%")


def _is_group(field: FieldInfo) -> bool:
    from asyncfl_lite.base.registry import Settings

    return field.annotation is Settings


def _parser(arguments: Sequence[str] = ()) -> _Parser:
    from asyncfl_lite.runs.fields import Fields

    parser = _Parser("asyncfl-lite", description="Asynchronous federated learning on a virtual clock.")
    parser.add_argument("--version", action="version", version=f"asyncfl-lite {__version__}")
    commands = parser.add_subparsers(required=True)
    parser.commands = commands.choices

    asked = arguments[:1] == ["run"] and not {"-h", "--help"}.isdisjoint(arguments)
    whose, defaults = _defaults(arguments) if asked else ("", {})
    about = f"The defaults shown are those of {whose}; add --task and --algorithm before --help to see others."
    usage = "asyncfl-lite run [--SETTING VALUE ...] [--config FILE] [--out FOLDER [--force]] [--import MODULE]"
    run = commands.add_parser("run", help="run one configuration", usage=usage, description=about, allow_abbrev=False)
    for name, field in Fields.model_fields.items():
        option, text = f"--{name.replace('_', '-')}", _help(name, field, defaults) if asked else None
        if _is_group(field):
            run.add_argument(option, action="append", metavar="NAME=VALUE", help=text)
        elif name == "seed":
            several = f"{text}; for several seeds: 0,1,2 or 0-4" if text else None
            run.add_argument(option, action="append", metavar="SEED", help=several)
        else:
            run.add_argument(option, metavar=name.upper(), help=text)
    run.add_argument(
        "--config",
        metavar="FILE",
        help="file of settings (JSON or YAML), or the result.json of a run; command-line options override it",
    )
    run.add_argument(
        "--out",
        type=folder,
        metavar="FOLDER",
        help="folder for the result; a run that is already finished there is not repeated",
    )
    run.add_argument(
        "--force", action="store_true", help="overwrite the result or checkpoint of another configuration in --out"
    )
    takes_own(run)
    run.set_defaults(command="run")

    listing = commands.add_parser("list", help="list all methods, tasks, models, delay laws and partitions")
    listing.add_argument(
        "--methods", action="store_true", help="print a table of methods, with server storage and options"
    )
    takes_own(listing)
    listing.set_defaults(command="list")
    for found in entry_points(group="asyncfl_lite.commands"):
        found.load()(commands)
    commands.metavar = "|".join(commands.choices)
    return parser


def takes_own(command: argparse.ArgumentParser) -> None:
    """Add the option ``--import``, for users' modules that register methods, models, tasks or delay laws."""
    command.add_argument(
        "--import",
        action="append",
        default=[],
        metavar="MODULE",
        help="your own module or Python file that registers methods, models, tasks or delay laws; repeatable",
    )

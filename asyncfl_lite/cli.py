"""The command line: ``asyncfl-lite run | list | …``, or ``python -m asyncfl_lite …``.

The options of ``run`` are :class:`~asyncfl_lite.runs.config.Config`'s fields, so every new setting becomes an option by
itself. Torch is imported only by what needs it, so help and errors about options appear at once. Exit codes: 0 done, 1
some cells of a grid failed, 2 bad input or a run that could not be finished.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import statistics
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args

from asyncfl_lite.base import __version__
from asyncfl_lite.base.errors import AsyncFLError, ConfigError, reason, shown, unknown_name
from asyncfl_lite.base.registry import GROUP, all_ours, import_own, located

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from asyncfl_lite.runs.config import Config

INTERRUPTED = 130
"""Exit code of a command that the user interrupted."""
MOST_SEEDS = 1000
"""Largest number of seeds in one range."""
GROUP_OPTIONS = "name=value; may be repeated"
KINDS = {
    "methods": ("algorithm", "ALGORITHMS", "methods"),
    "tasks": ("task", "TASKS", "tasks"),
    "models": ("model", "MODELS", "models"),
    "delays": ("delay", "DELAYS", "delay laws"),
    "partitions": ("partition", "PARTITIONS", "partitions"),
    "scheduling": ("scheduling", "SCHEDULING", "scheduling (when a free slot gets new work)"),
    "selection": ("selection", "SELECTIONS", "selection (which client gets the new work)"),
    "initial": ("initial", "INITIALISERS", "initial (source of the initial weights)"),
}
"""Kind in `asyncfl-lite list` -> its setting, the registry of its names, and the heading above them."""
REGISTRIES = {setting: registry for setting, registry, _ in KINDS.values()}
"""Setting -> the registry that holds its allowed names; `registries` gives the registries, but imports torch."""
CLASS = re.compile(r'''^@(\w+)\.register\("(\w+)"\)\n(?:@.+\n)*class [^"]*?:\n    """(.*?)(?:"""|$)''', re.M)
"""Finds a registered class in source code: its registry, its name, and the first line of its docstring."""
NO_OPTIONS = ("command", "file", "carry_out", "interrupted")
"""Names in the parsed result that are not options on the command line."""
BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = None
    _prepare_streams()
    try:
        try:
            options = parse(list(sys.argv[1:] if arguments is None else arguments))
            for place in getattr(options, "import", ()):
                import_own(located(place, Path.cwd()))
            return (COMMANDS.get(options.command) or options.carry_out)(options)
        finally:
            sys.stdout.flush()  # here, where it may fail
    except BrokenPipeError:  # the reader of the output, such as head, has closed it
        _drop_output()
        return 0
    except (AsyncFLError, OSError, MemoryError, RuntimeError) as error:
        if (line := _in_one_line(error)) is None:
            raise
        print(f"asyncfl-lite: {line}", file=sys.stderr)
        _drop_output()
        return 2
    except KeyboardInterrupt as interrupt:
        print(f"asyncfl-lite: {interrupt}" if str(interrupt) else _when_interrupted(options), file=sys.stderr)
        return INTERRUPTED


def _prepare_streams() -> None:
    """Open the standard streams that the caller has closed, and have characters that a stream cannot show written out.

    Otherwise the next file that is opened would take the number of a closed stream, and get what is printed there.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it takes the lowest free number, which is this one
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """Print what is left to be printed; if it cannot be, drop it, or Python would complain when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _when_interrupted(options: argparse.Namespace | None) -> str:
    """Return one line that says which results of an interrupted command are kept."""
    if options is None or options.command != "run":
        return getattr(options, "interrupted", "asyncfl-lite: interrupted")
    if options.out is None:
        return "asyncfl-lite: interrupted; nothing is kept, as only a run with --out FOLDER saves itself"
    return f"asyncfl-lite: interrupted; the content of {options.out} is kept, and the same command continues from it"


def _in_one_line(error: Exception) -> str | None:
    """Return an error in one line if the user can act on it; None if the error is a bug in this package."""
    if isinstance(error, AsyncFLError):
        return "; ".join([str(error), *getattr(error, "__notes__", ())])
    if isinstance(error, OSError):
        return f"{error.filename or 'files'}: {reason(error)}"
    if isinstance(error, MemoryError) or re.search("can't allocate|out of memory", str(error)):
        return f"memory: there is not enough for this configuration ({reason(error)})"
    return None


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
    arguments = arguments or ["--help"]
    parser = _parser(arguments)
    _complete(parser)
    if arguments[0] not in (*parser.commands, "-h", "--help", "--version"):
        parser.error(unknown_name("command", arguments[0], parser.commands))
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

    from asyncfl_lite.runs.config import Config

    names = {setting: list(registered()[registry]) for setting, registry in REGISTRIES.items()}
    for name, field in Config.model_fields.items():
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
def registered() -> dict[str, dict[str, str]]:
    """Return the registered names by registry, with a line about each, read from the source code without imports.

    Importing the classes would import torch, which takes seconds.
    """
    found: dict[str, dict[str, str]] = {}
    for file in _sources():
        for registry, name, line in CLASS.findall(file.read_text(encoding="utf-8")):
            found.setdefault(registry, {})[name] = line
    return {registry: dict(sorted(lines.items())) for registry, lines in found.items()}


def _sources() -> Iterator[Path]:
    """Yield the files of this package, and of the modules that installed packages name in the entry-point group."""
    yield from Path(__file__).parent.rglob("*.py")
    for point in entry_points(group=GROUP):
        top, *inside = point.module.split(".")
        found = find_spec(top)  # of a deeper module, it would import the packages above
        for folder in (found and found.submodule_search_locations) or []:
            path = Path(folder, *inside)
            yield from path.rglob("*.py") if path.is_dir() else filter(Path.is_file, [path.with_suffix(".py")])


def _defaults(arguments: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Return a text that names the method and task whose defaults ``--help`` shows, and the defaults themselves."""
    from asyncfl_lite.runs.config import COMMON, Config, defaults

    chosen = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in ("task", "algorithm", "preset"):
        chosen.add_argument(f"--{name}", nargs="?", default=COMMON.get(name))
    given, _ = chosen.parse_known_args(arguments)
    fields = Config.model_fields.items()
    own = {name: field.default for name, field in fields if not (field.is_required() or field.default_factory)}
    named = {"task": given.task, "algorithm": given.algorithm}
    return f"{given.algorithm} on {given.task}", {**own, **defaults(**named, preset=given.preset), **named}


def _help(name: str, field: FieldInfo, defaults: dict[str, Any]) -> str:
    """Return an option's help text: its description, its allowed values and its default."""
    if _is_group(field):
        parts = [GROUP_OPTIONS]
        default = " ".join(f"{key}={value}" for key, value in (defaults.get(name) or {}).items())
    else:
        kinds = get_args(field.annotation) or (field.annotation,)
        bounds = [f"{word} {value:,.12g}" for limit in field.metadata for key, word in BOUNDS.items()
                  if (value := getattr(limit, key, None)) is not None]  # fmt: skip
        names = list(registered().get(REGISTRIES.get(name, ""), ()))
        parts = ["one of " + ", ".join(names)] if names else [" and ".join(bounds)] if bounds else []
        if not names and all(isinstance(kind, str) for kind in kinds):
            parts = ["one of " + ", ".join(kinds)]
        default = defaults.get(name, "by the method") if name in defaults or field.is_required() else "none"
        default = "none" if default is None else str(default)
    said = field.description or ""
    return "; ".join([said, *parts, *([f"default: {default}"] if default else [])]).replace("%", "%%")


def _is_group(field: FieldInfo) -> bool:
    from asyncfl_lite.base.registry import Settings

    return field.annotation is Settings


def _parser(arguments: Sequence[str] = ()) -> _Parser:
    from asyncfl_lite.runs.config import Config

    parser = _Parser("asyncfl-lite", description="Asynchronous federated learning on a virtual clock.")
    parser.add_argument("--version", action="version", version=f"asyncfl-lite {__version__}")
    commands = parser.add_subparsers(required=True)
    parser.commands = commands.choices

    asked = arguments[:1] == ["run"] and not {"-h", "--help"}.isdisjoint(arguments)
    whose, defaults = _defaults(arguments) if asked else ("", {})
    about = f"The defaults shown are those of {whose}; add --task and --algorithm before --help to see others."
    usage = "asyncfl-lite run [--SETTING VALUE ...] [--config FILE] [--out FOLDER [--force]] [--import MODULE]"
    run = commands.add_parser("run", help="run one configuration", usage=usage, description=about, allow_abbrev=False)
    for name, field in Config.model_fields.items():
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
        help="file of settings (JSON, YAML or TOML), or the result.json of a run; command-line options override it",
    )
    run.add_argument(
        "--out",
        "--output-dir",
        type=folder,
        metavar="FOLDER",
        help="folder for the result; a run that is already finished there is not repeated",
    )
    run.add_argument(
        "--force", action="store_true", help="overwrite the result or checkpoint of another configuration in --out"
    )
    run.add_argument("--quiet", action="store_true", help="print neither progress nor the summary, only errors")
    run.add_argument("--json", action="store_true", help="print each seed's result as a JSON object in one line")
    takes_own(run)
    run.set_defaults(command="run")

    listing = commands.add_parser("list", help="list all methods, tasks, models, delay laws and partitions")
    listing.add_argument("kind", nargs="?", help=f"list only these: {', '.join(KINDS)}")
    listing.add_argument(
        "--methods", action="store_true", help="print a table of methods, with server storage and options"
    )
    listing.add_argument("--json", action="store_true", help="print a JSON object: kind -> name -> its description")
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


def _run(options: argparse.Namespace) -> int:
    from asyncfl_lite.runs.results import mixed_versions
    from asyncfl_lite.runs.run import run, run_in

    configs = _configs(options)
    progress: bool | Literal["lines"] = not options.quiet and (sys.stderr.isatty() or "lines")
    if len(configs) > 1:
        from asyncfl_lite.runs.lockstep import run_many

        folders = options.out and [Path(options.out, f"seed-{config.seed}") for config in configs]
        results = run_many(configs, folders=folders, force=options.force, progress=progress)
    elif options.out:
        results = [run_in(options.out, configs[0], progress=progress, force=options.force)]
    else:
        results = [run(configs[0], progress=progress)]
    if options.json:
        for result in results:
            print(json.dumps(result.as_dict()))
    if options.json or options.quiet:
        return 0
    for name in results[0].summary:
        print(f"{name:24} {_over_seeds([result.summary.get(name) for result in results])}")
    if any(result.is_constant_answer for result in results):
        print("constant answer: the final model predicts one class for every test sample; it did not train")
    if told := mixed_versions(results):
        print(f"{'versions of libraries':24} computed under different ones: {told}")
    if options.out:
        print(f"{'written to':24} {options.out}")
    return 0


def _seeds(text: str) -> list[str]:
    """Parse seeds written as ``0,1,2``, ``0-2`` or a mixture such as ``0-2,7``."""
    seeds: list[str] = []
    for part in text.split(","):
        ends = re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*", part)
        if ends is None:
            seeds.append(part)
        elif not 0 <= int(ends[2]) - int(ends[1]) < MOST_SEEDS:
            raise ConfigError(f"seed: must be at most {MOST_SEEDS} seeds, such as 0,1,2 or 0-4, got {shown(part)}")
        else:
            seeds += map(str, range(int(ends[1]), int(ends[2]) + 1))
    return seeds


def _configs(options: argparse.Namespace) -> list[Config]:
    """Return one configuration per seed, in which command-line options override settings from a file."""
    from asyncfl_lite.runs.config import GROUPS, Config

    given: dict[str, Any] = {}
    for name in Config.model_fields:
        value = getattr(options, name)
        if value is not None and name != "seed":
            given[name] = _pairs(name, value) if name in GROUPS else _plain(value)
    if options.config is not None:
        given = _added_to(_read_settings(Path(options.config), another_task="task" in given), given)
    seeds = [seed for text in options.seed or [] for seed in _seeds(text)]
    configs = [Config.from_mapping({**given, "seed": seed}) for seed in seeds] or [Config.from_mapping(given)]
    if len({config.seed for config in configs}) < len(configs):  # 0 and 00 are the same
        raise ConfigError(f"seed: must be given once each, got {', '.join(seeds)}")
    return configs


def _read_settings(path: Path, another_task: bool) -> Any:
    """Return the settings in a JSON or YAML file, or those of a finished run, given its ``result.json`` or folder.

    A run on the user's own data needs ``another_task``.
    """
    from asyncfl_lite.base.settings_files import settings_in

    path = path / "result.json" if path.is_dir() else path
    try:
        content = settings_in(path)
    except ConfigError as error:
        raise ConfigError(f"config: {error}") from None
    if isinstance(content, dict) and "config_hash" in content:
        if content.get("own_task") is not None and not another_task:
            raise ConfigError(
                f"config: {path} belongs to a run on your own data ({shown(content['own_task'])}), which the "
                "file does not contain; name another --task, or in Python: run(load_result(FOLDER).config, task=…)"
            )
        content = content.get("config")
    if not isinstance(content, dict):
        raise ConfigError(f"config: {path} must hold settings by name, got {shown(content)}")
    return content


def _added_to(written: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Merge command-line options over settings from a file.

    If the command line names another model, method or law than the file does, the file's settings for it are dropped.
    """
    from asyncfl_lite.runs.config import GROUPS, without_replaced

    if given.get("partition", written.get("partition")) != written.get("partition"):
        written = {name: value for name, value in written.items() if name != "alpha"}  # the other may not use it
    merged = {**without_replaced(written, given), **given}
    for group, name in GROUPS.items():
        if name in given and given[name] != written.get(name):
            merged[group] = given.get(group, {})
        elif isinstance(written.get(group), dict):
            merged[group] = {**written[group], **given.get(group, {})}
    return merged


def _over_seeds(values: Sequence[Any]) -> str:
    """Return one entry of the summary over several runs as text: numbers as mean ± standard deviation."""
    if len(set(values)) == 1:
        return f"{values[0]:.4f}" if isinstance(values[0], float) else str(values[0])
    if all(isinstance(value, int | float) for value in values):
        return f"{statistics.mean(values):.4f} ± {statistics.stdev(values):.4f}"
    return ", ".join(dict.fromkeys(map(str, values)))


def _plain(text: str) -> str | None:
    return None if text.lower() in ("none", "null") else text


def _pairs(name: str, pairs: Sequence[str]) -> dict[str, Any]:
    """Turn ``name=value`` into settings; commas make a list, and a trailing comma a list of one."""
    settings: dict[str, Any] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator:
            raise ConfigError(f"{name}: must be NAME=VALUE, got {shown(pair)}")
        if key in settings:
            raise ConfigError(f"{name}.{key}: must be given once, got {shown(pair)} too")
        settings[key] = value.removesuffix(",").split(",") if "," in value else _plain(value)
    return settings


def _list(options: argparse.Namespace) -> int:
    if options.kind is not None and options.kind not in KINDS:
        raise ConfigError(unknown_name("list", options.kind, KINDS))
    if options.methods:
        from asyncfl_lite.algorithms.table import method_table

        rows = method_table().to_dict("records")
        if options.json:
            print(json.dumps(rows))
            return 0
        in_lines = textwrap.TextWrapper(shutil.get_terminal_size().columns, "  ", "    ", break_on_hyphens=False)
        for row in rows:
            print(row.pop("name"), *(in_lines.fill(f"{what}: {text}") for what, text in row.items()), sep="\n")
        return 0
    kinds = [options.kind] if options.kind else list(KINDS)
    found = {kind: _described(KINDS[kind][0]) for kind in kinds}
    if options.json:
        print(json.dumps(found))
        return 0
    for kind, lines in found.items():
        print(KINDS[kind][2])
        for entry, line in lines.items():
            print(f"  {entry:18} {line}")
    return 0


def _described(setting: str) -> dict[str, str]:
    """Return the names that a setting may have, with a line about each; only others' code is imported for it."""
    if all_ours():
        return registered()[REGISTRIES[setting]]
    from asyncfl_lite.runs.config import registries

    return registries()[setting].describe()


COMMANDS = {"run": _run, "list": _list}
"""The library's own commands; other packages add theirs through the entry-point group ``asyncfl_lite.commands``."""

if __name__ == "__main__":
    sys.exit(main())

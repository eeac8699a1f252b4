"""A page of all settings, made from the registered classes."""

from __future__ import annotations

import types
import typing
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from sphinx.pycode import ModuleAnalyzer

from asyncfl_lite import Config
from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.base.registry import Registry
from asyncfl_lite.models import INITIALISERS, MODELS
from asyncfl_lite.plots import title
from asyncfl_lite.runs.config import class_of_group
from asyncfl_lite.simulator.delays import DELAYS
from asyncfl_lite.simulator.faults import Faults
from asyncfl_lite.simulator.scheduling import SELECTIONS
from asyncfl_lite.tasks import TASKS
from asyncfl_lite.tasks.partitions import PARTITIONS

GROUPS: dict[str, tuple[str, Registry, str]] = {
    "Methods": ("algorithm", ALGORITHMS, "settings"),
    "Tasks": ("task", TASKS, "task_settings"),
    "Models": ("model", MODELS, "model_settings"),
    "Delay laws": ("delay", DELAYS, "delay_settings"),
    "Partitions": ("partition", PARTITIONS, "partition_settings"),
    "Selections of clients": ("selection", SELECTIONS, "selection_settings"),
    "Initial models": ("initial", INITIALISERS, "initial_settings"),
}
"""Heading -> the configuration's key for the choice, the registry, and the key for the chosen class's settings."""
BOUNDS = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def settings_page() -> str:
    """Return the page of settings in Markdown."""
    parts = [
        "# Settings",
        "This page lists every setting of a run. It is made from the code. `Config(task=…, algorithm=…)` takes the "
        "settings of the first table. A method, a task, a model, a delay law or a partition also has its own settings, "
        "and its section names the group that they belong to. *As chosen* means that the default depends on the task "
        "and the method. A setting that *must be given* has no default. `Config(…).explain()` says which value a "
        "configuration takes, and where it comes from.",
        "## Settings of every run",
        _table(Config),
    ]
    for heading, (choice, registry, group) in GROUPS.items():
        parts += [f"## {heading}", f'`{choice}="…"`, with its own settings in `{group}={{…}}`.']
        for name, about in registry.describe().items():
            shown = f" ({title(name)})" if registry is ALGORITHMS else ""
            parts += [f"### {name}{shown}", _plain(about), _table(class_of_group(group, name))]
    parts += ["## Faults", f"`faults={{…}}`. {_plain((Faults.__doc__ or '').split(chr(10))[0])}", _table(Faults)]
    return "\n\n".join(parts) + "\n"


def _table(cls: type[BaseModel]) -> str:
    rows = [
        f"| `{field.alias or name}` | {_kind(field)} | {_default(cls, field)} | {_cell(meaning(cls, name, field))} |"
        for name, field in cls.model_fields.items()
        if not _is_group(field) and (cls is Config or not field.exclude)  # α stands with the settings of every run
    ]
    return (
        "\n".join(["{.settings}", "| setting | values | default | meaning |", "|---|---|---|---|", *rows])
        if rows
        else "*No settings.*"
    )


def _is_group(field: FieldInfo) -> bool:
    return isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)


def _kind(field: FieldInfo) -> str:
    bounds = [
        f"{sign} {getattr(part, name):g}"
        for part in field.metadata
        for name, sign in BOUNDS.items()
        if hasattr(part, name)
    ]
    kind = str | None if field.annotation is type(None) else field.annotation  # or a word that chooses defaults
    return _cell(", ".join([_named(kind), *bounds]))


def _named(kind: Any) -> str:
    """Return a type in words."""
    if kind is type(None):
        return "none"
    if typing.get_origin(kind) is typing.Annotated:
        return _named(typing.get_args(kind)[0])
    if typing.get_origin(kind) is typing.Literal:
        return " or ".join(f"`{one}`" for one in typing.get_args(kind))
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return " or ".join(map(_named, typing.get_args(kind)))
    if typing.get_origin(kind) is tuple:
        first, *_ = typing.get_args(kind)
        return f"several: {_named(first)}"
    words = {int: "whole number", float: "number", str: "text", bool: "true or false", Path: "path", dict: "mapping"}
    return words[typing.get_origin(kind) or kind]


def _default(cls: type[BaseModel], field: FieldInfo) -> str:
    if field.is_required():
        return "as chosen" if cls is Config else "must be given"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, float):
        return f"`{value:.4g}`"
    return "none" if value is None else f"`{value}`" if value not in ("", (), {}) else "empty"


def meaning(cls: type[BaseModel], name: str, field: FieldInfo) -> str:
    """Return a setting's meaning, which is its description or the docstring below it in the declaring class."""
    if field.description:
        return field.description
    for base in (base for base in cls.__mro__ if base.__module__.startswith("asyncfl_")):
        if said := _documented(base.__module__).get((base.__qualname__, name)):
            return " ".join(said).strip()
    return ""


@cache
def _documented(module: str) -> dict[tuple[str, str], list[str]]:
    try:
        return ModuleAnalyzer.for_module(module).find_attr_docs()
    except Exception:  # a class that was made without a file
        return {}


def _plain(text: str) -> str:
    """Return a docstring's line in Markdown."""
    return text.replace("``", "`")


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|")

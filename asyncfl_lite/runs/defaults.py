"""The defaults of a configuration, by task and method; their values and sources are in ``defaults.yaml``.

Nothing here depends on recorded results, so the same call is the same run everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Any, NamedTuple

import yaml

from asyncfl_lite.base.errors import ConfigError, unknown_name

DEFAULTS: dict[str, Any] = yaml.load(
    resources.files(__package__).joinpath("defaults.yaml").read_bytes(),
    Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader),  # the one in C is ten times as fast
)
COMMON: dict[str, Any] = DEFAULTS["common"]
PAPERS: dict[str, dict[str, Any]] = DEFAULTS["papers"]
"""The papers' experiments, in the order in which :func:`preset_of` looks through them."""
OURS = "ours"
"""The set-up that follows no paper: this package's own settings for small models and little data."""
ONE_OF = (("rounds", "horizon"), ("local_epochs", "local_steps"))
"""Mutually exclusive settings: giving one drops the other's default."""


def without_replaced(weaker: dict[str, Any], stronger: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``weaker`` without the settings that a setting in ``stronger`` excludes; see :data:`ONE_OF`."""
    given = {name for name, value in stronger.items() if value is not None}
    replaced = {pair[1 - index] for pair in ONE_OF for index in (0, 1) if pair[index] in given}
    return {name: value for name, value in weaker.items() if name not in replaced}


def preset_of(task: str, algorithm: str, wanted: str | None = None) -> str | None:
    """Return the name of the paper that gives a method on a task its default settings; None for our own settings.

    Args:
        task, algorithm: names of the task and the method.
        wanted: a name in :data:`PAPERS`, or ``ours``. By default, the method's own paper if it trains on the task; else
            the first paper that compares the method there; else the first that trains on the task at all.

    Raises:
        ConfigError: for a name that is not known, or a paper that prints nothing for the task.
    """
    if wanted == OURS:
        return None
    if wanted is not None:
        if wanted not in PAPERS:
            raise ConfigError(unknown_name("preset", wanted, [*PAPERS, OURS]))
        if task not in PAPERS[wanted]["tasks"]:
            raise ConfigError(f"preset: {wanted!r} has tasks {', '.join(PAPERS[wanted]['tasks'])}, got {task!r}")
        return wanted
    there = [name for name, paper in PAPERS.items() if task in paper["tasks"]]
    for near in ("proposed", "methods"):
        if found := next((name for name in there if algorithm in PAPERS[name][near]), None):
            return found
    return next(iter(there), None)


class Layer(NamedTuple):
    """Defaults from one source, such as a paper or a task.

    Attributes:
        origin: the source of the values, in words.
        values: setting -> value; the method's own options are in the group ``settings``.
    """

    origin: str
    values: dict[str, Any]


def layers_of(task: str, algorithm: str, preset: str | None = None) -> list[Layer]:
    """Return the layers of defaults for one method on one task, weakest first.

    Args:
        task, algorithm: names of the task and the method.
        preset: the paper whose experiments to follow, or ``ours``; see :func:`preset_of`.
    """
    layers = [Layer("common to all", COMMON), Layer(f"the method {algorithm}", DEFAULTS["methods"].get(algorithm, {}))]
    name = preset_of(task, algorithm, preset)
    if name is not None:
        paper = PAPERS[name]
        pairs = paper.get("pairs", {}).get(task, {})
        its = (paper["common"], paper["tasks"][task], paper["methods"].get(algorithm, {}), pairs.get(algorithm, {}))
        return layers + [Layer(f"the paper of {name}", values) for values in its]
    found = DEFAULTS["searched"].get(task, {"study": "", "methods": {}})
    return [
        *layers,
        Layer(f"the task {task}", DEFAULTS["tasks"].get(task, {})),
        Layer(f"the method {algorithm} on {task}", DEFAULTS["pairs"].get(task, {}).get(algorithm, {})),
        Layer(f"searched: {found['study']}", found["methods"].get(algorithm, {})),
    ]


def defaults(task: str, algorithm: str, preset: str | None = None) -> dict[str, Any]:
    """Return the defaults of one method on one task; ``settings`` holds the method's own options.

    Args:
        task, algorithm, preset: as for :func:`layers_of`.
    """
    merged: dict[str, Any] = {"settings": {}}
    for _, layer in layers_of(task, algorithm, preset):
        options = {**merged["settings"], **layer.get("settings", {})}
        merged = {**without_replaced(merged, layer), **layer, "settings": options}
    return merged


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings in one level; one in a group is called, for example, ``settings.clip``.

    >>> flat({"rounds": 5, "settings": {"clip": 1.0}})
    {'rounds': 5, 'settings.clip': 1.0}
    """
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= {f"{name}.{inner}": own for inner, own in value.items()}
        else:
            found[name] = value
    return found

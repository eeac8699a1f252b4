"""The steps that fill in the settings that the user left out of a configuration.

Each step uses the settings that the user gave, and does not change them. Types and bounds are checked afterwards, by
:class:`~asyncfl_lite.runs.config.Config`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.runs.defaults import COMMON, defaults, without_replaced
from asyncfl_lite.runs.groups import GROUPS
from asyncfl_lite.tasks import TASKS
from asyncfl_lite.tasks.partitions import PARTITIONS


def fill_in(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given settings, plus values for those that are left out.

    Raises:
        ConfigError: for a task, method, partition or setup that is not known.
    """
    given = dict(given)
    base = _defaults_for(given)
    given.pop("setup", None)
    filled = {**base, **given}
    for group in GROUPS:
        filled[group] = _filled_group(group, filled, given, base)
    _share_tokenizer(filled)
    _fill_sizes(filled, given)
    _fill_alpha(filled, given)
    return filled


def _defaults_for(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults for the given task and method, without those that a given setting replaces."""
    task, algorithm = (given.get(name, COMMON[name]) for name in ("task", "algorithm"))
    method = ALGORITHMS.get(algorithm)
    TASKS.get(task)
    base = without_replaced(defaults(task, algorithm, given.get("setup")), given)
    base.setdefault("redispatch", method.redispatch)
    if not method.buffered:
        base["buffer_size"] = 1
    return base


def _filled_group(group: str, filled: Mapping[str, Any], given: Mapping[str, Any], base: Mapping[str, Any]) -> Any:
    """Return a group's given settings, merged over the defaults if these belong to the chosen class.

    Settings that are given together with the name of a model or a law are complete; without the name, they are added to
    the defaults.
    """
    name, own = GROUPS[group][0], given.get(group, {})
    if not isinstance(own, dict):
        return own
    of_the_defaults = name in ("task", "algorithm")  # the defaults belong to these two
    complete = name in given and group in given and not of_the_defaults
    if complete or not (of_the_defaults or filled.get(name) == base.get(name)):
        return dict(own)
    return {**base.get(group, {}), **own}


def _share_tokenizer(filled: dict[str, Any]) -> None:
    """Give a text task the tokeniser of the model's checkpoint, unless the task names its own."""
    task, checkpoint = filled["task_settings"], _value_of(filled["model_settings"], "checkpoint")
    if checkpoint and isinstance(task, dict) and "tokenizer" in TASKS.get(filled["task"]).model_fields:
        filled["task_settings"] = {"tokenizer": checkpoint, **task}


def _fill_sizes(filled: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Choose concurrency and buffer size, if not given; they depend on each other and on the number of clients."""
    with suppress(TypeError, ValueError, OverflowError):  # a value that is not a number is refused later
        if "concurrency" not in given and int(filled["concurrency"]) > int(filled["clients"]) >= 1:
            filled["concurrency"] = int(filled["clients"])
            if "buffer_size" not in given:
                filled["buffer_size"] = min(filled["buffer_size"], filled["concurrency"])
    if filled["redispatch"] == "rounds" and "buffer_size" not in given:
        filled["buffer_size"] = filled["concurrency"]
    if filled["redispatch"] == "burst":
        if "concurrency" not in given:
            filled["concurrency"] = filled["clients"]  # a client that is not dispatched at the start never would be
        if "buffer_size" not in given:
            with suppress(TypeError, ValueError, OverflowError):  # a value that is not a number is refused later
                filled["buffer_size"] = min(filled["buffer_size"], int(filled["concurrency"]))


def _fill_alpha(filled: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Fill in ``alpha``, if it is not given, from ``partition_settings``; it is None for partitions without α."""
    has_alpha = "alpha" in PARTITIONS.get(filled["partition"]).model_fields
    if "alpha" in given:
        return
    if not has_alpha:
        filled["alpha"] = None
        return
    written = _value_of(given.get("partition_settings"), "alpha")
    filled["alpha"] = filled["alpha"] if written is None else written


def _value_of(settings: Any, name: str) -> Any:
    """Return one setting of a group, which is a mapping or typed settings; None if the group does not have it."""
    return settings.get(name) if isinstance(settings, dict) else getattr(settings, name, None)

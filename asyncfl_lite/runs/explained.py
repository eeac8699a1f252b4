"""The origin of each value of a configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from asyncfl_lite.base.registry import Settings
from asyncfl_lite.runs.defaults import layers_of


class Explained(NamedTuple):
    """One value of a configuration, with its origin.

    Attributes:
        name: the setting's name; a setting in a group is written like ``settings.mixing``.
        value: the value that the run uses.
        origin: the source of the value: ``given``, a paper, a method, a task, a search, or the setting's own default.
    """

    name: str
    value: Any
    origin: str


def explained(config: Any) -> Iterator[Explained]:
    """Yield each value of a :class:`.Config` with its origin, for example the strongest layer of defaults that has it.

    A given value that equals the default counts as the default, since the configuration is the same. A value that
    follows from given ones, such as a concurrency of at most ``clients``, counts as given.
    """
    layers = [(origin, _flat(values)) for origin, values in reversed(layers_of(config.task, config.algorithm))]
    plain = _flat(type(config)(task=config.task, algorithm=config.algorithm).as_dict())
    for name, value in _flat(config.as_dict()).items():
        own = [(origin, values[name]) for origin, values in layers if name in values]
        same = next((origin for origin, default in own if _same(default, value)), None)
        given = "given" if own or name in ("task", "algorithm") else _without_layer(config, name, value, plain)
        yield Explained(name, value, same or given)


def _flat(values: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= {f"{name}.{option}": own for option, own in value.items()} if isinstance(value, dict) else {name: value}
    return flat


def _same(default: Any, value: Any) -> bool:
    return (list(default) if isinstance(default, tuple) else default) == value


def _without_layer(config: Any, name: str, value: Any, plain: dict[str, Any]) -> str:
    """Return the origin of a value that is in no layer of defaults.

    Args:
        config: the configuration.
        name, value: name and value of the setting.
        plain: the values of a configuration in which only task and method are given.
    """
    group, dot, option = name.partition(".")
    settings: Settings = getattr(config, group) if dot else config
    field = type(settings).model_fields.get(option if dot else name)
    if field is not None and not field.is_required() and _same(field.default, value):
        return "its own default"
    return f"the method {config.algorithm}" if name in plain and _same(plain[name], value) else "given"

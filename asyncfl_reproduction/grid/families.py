"""Families of cells, each written once in a paper's YAML file for many combinations of settings.

Cells that differ in only a few settings are written once, as a family over axes::

    fedecho/table2/{delay}-dir{alpha}/{method}:
      over:
        delay: {large: {settings: {delay: fedecho_large}}, mild: {settings: {delay: fedecho_mild}}}
        alpha: {'0.1': {settings: {alpha: 0.1}}, '0.3': {settings: {alpha: 0.3}}}
        method: {fedbuff: {settings: {algorithm: fedbuff}}, fedecho: {settings: {algorithm: fedecho}}}
      published: [{artefact: Table 2, delay: '{delay}', alpha: '{alpha}'}]
      settings: {}
"""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, Field

from asyncfl_lite.base.errors import ConfigError, reason, unknown_name
from asyncfl_lite.base.registry import Settings
from asyncfl_lite.base.settings_files import small_text, yaml_in


def read_yaml(path: Path, kind: type[Settings]) -> Any:
    """Read a YAML file as settings of a given class, and check them."""
    try:
        content = copy.deepcopy(_parsed(small_text(path)))
    except OSError as error:
        there = sorted(p.name for p in path.parent.glob("*.yaml"))
        raise ConfigError(f"{path}: {error.strerror}; there are: {', '.join(there) or 'none'}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: must be UTF-8 text ({reason(error)})") from None
    except ConfigError:
        raise
    except (yaml.YAMLError, ValueError) as error:  # ValueError: an impossible date, too many digits
        raise ConfigError(f"{path}: not YAML ({' '.join(str(error).split())})") from None
    try:
        return kind.from_mapping(content)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


@lru_cache(maxsize=16)
def _parsed(text: str) -> Any:
    """Parse YAML text and cache the outcome, because parsing is slow and reports read some files several times."""
    return yaml_in(text)


PLACE = re.compile(r"\{([^{}]*)\}")
"""Placeholder for the name of an axis's value."""


def _different(seeds: list[int]) -> list[int]:
    if len(set(seeds)) < len(seeds):
        raise ValueError("must be different seeds")
    return seeds


Seeds = Annotated[list[Annotated[int, Field(ge=0, strict=True)]], Field(min_length=1), AfterValidator(_different)]


def are_different(values: Iterable[Any]) -> bool:
    """Return whether no two values are the same, as ``1``, ``1.0`` and ``"1"`` are."""
    seen = []
    for value in values:
        with suppress(ValueError):
            value = float(str(value))
        seen.append(str(value))
    return len(set(seen)) == len(seen)


class AxisValue(Settings):
    """One value on an axis of a family, with the settings that it adds to the family's cells."""

    settings: dict[str, Any] = {}
    published: dict[str, str] = {}
    """Keys added to every row of printed numbers."""
    tiers: dict[str, dict[str, Any]] | None = None
    """The value's own settings by tier; if given, only these tiers have its cells."""


class PaperCell(Settings):
    """One cell, or a family of cells, as written in a paper's file."""

    settings: dict[str, Any] = {}
    published: list[dict[str, str]] = []
    """Rows of printed numbers with which this cell is compared: column -> value."""
    tiers: dict[str, dict[str, Any]] | None = None
    """The cell's own settings by tier; if given, only these tiers have the cell."""
    over: dict[str, dict[str, AxisValue]] = {}
    """Axes of a family: axis -> name of a value -> the settings that it adds. ``{axis}`` in the cell's name, and in its
    printed rows, stands for the value's name."""
    without: list[dict[str, str | list[str]]] = []
    """Combinations, axis -> value or values, that the family leaves out."""
    ours: dict[str, str] = {}
    """Settings that the paper does not print, as in a tier, but only for these cells."""
    seeds: dict[str, Seeds] = {}
    """Tier -> seeds in place of the tier's own, if a paper has fewer or more for these cells."""


def members(path: Path, name: str, family: PaperCell) -> Iterator[tuple[str, PaperCell]]:
    """Yield the cells of a family with their names; a family without axes is one cell."""
    if unknown := [axis for left_out in family.without for axis in left_out or ["nothing"] if axis not in family.over]:
        raise ConfigError(f"{path}: cell {name}: {unknown_name('without', unknown[0], family.over)}")
    for values in itertools.product(*(axis.items() for axis in family.over.values())):
        chosen = dict(zip(family.over, (value for value, _ in values), strict=True))
        if any(_matches(chosen, left_out) for left_out in family.without):
            continue
        yield _member(path, name, family, chosen, [addition for _, addition in values])


def _member(
    path: Path, name: str, family: PaperCell, chosen: dict[str, str], added: list[AxisValue]
) -> tuple[str, PaperCell]:
    joined = {column: text for addition in added for column, text in addition.published.items()}
    try:
        member = _filled(name, chosen)
        published = [
            {column: _filled(text, chosen) for column, text in {**row, **joined}.items()} for row in family.published
        ]
    except KeyError as error:
        allowed = ", ".join(family.over) or "none"
        raise ConfigError(f"{path}: cell {name}: no axis {error} to fill in; there are: {allowed}") from None
    return member, PaperCell(
        settings=merged(family.settings, *(addition.settings for addition in added)),
        published=published,
        tiers=_tiers([family, *added]),
        ours=family.ours,
        seeds=family.seeds,
    )


def _filled(text: str, chosen: dict[str, str]) -> str:
    """Return ``text`` with each ``{axis}`` replaced by the name of its chosen value."""
    if odd := re.search(r"[{}].*", PLACE.sub("", text)):
        raise KeyError(odd[0])
    return PLACE.sub(lambda place: chosen[place[1]], text)


def _matches(chosen: dict[str, str], left_out: dict[str, str | list[str]]) -> bool:
    return all(chosen.get(axis) in ([value] if isinstance(value, str) else value) for axis, value in left_out.items())


def _tiers(parts: list[PaperCell | AxisValue]) -> dict[str, dict[str, Any]] | None:
    """Merge the parts' settings by tier, for tiers that all of them have; return None if no part names its tiers."""
    given = [part.tiers for part in parts if part.tiers is not None]
    if not given:
        return None
    common = [tier for tier in given[0] if all(tier in tiers for tiers in given)]
    return {tier: merged(*(tiers[tier] for tiers in given)) for tier in common}


def merged(*layers: dict[str, Any]) -> dict[str, Any]:
    """Merge layers of settings; later layers win, and groups such as ``task_settings`` are merged key by key."""
    merged: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            both = isinstance(value, dict) and isinstance(merged.get(key), dict)
            merged[key] = {**merged[key], **value} if both else value
    return merged

"""Readers of settings files, which are JSON or YAML of moderate size without duplicate keys.

YAML 1.1, which most libraries read, knows words and numbers that mean something else in YAML 1.2 and to most people.
Here, ``yes``, ``no``, ``on`` and ``off`` are words, as in 1.2, so that ``cohort: off`` says what it seems to say, and
``1e3`` is a number. ``010`` (8 in 1.1) and ``1:30`` (90 in 1.1) are refused. A date is a date, which no setting takes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, ClassVar

import yaml

from asyncfl_lite.base.errors import ConfigError, reason, shown
from asyncfl_lite.base.files import regular

TAG = "tag:yaml.org,2002:"
LARGEST = 10 * 2**20
"""Size in bytes of the largest file that is read; a grid of thousands of cells is a tenth as large."""


def small_text(path: Path) -> str:
    """Return the text of a settings file, or raise if the file is too large.

    At most one byte more than :data:`LARGEST` is read, so that a file of data does not fill the memory.

    Raises:
        ConfigError: when the file is larger than :data:`LARGEST`.
        OSError: when it cannot be read.
        UnicodeDecodeError: when it is not UTF-8.
    """
    with regular(path).open("rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ConfigError(f"{path}: must be a file of settings of at most 10 MB, got more")
    return content.decode("utf-8").replace("\r\n", "\n")


def yaml_in(text: str) -> Any:
    """Parse YAML; raise an error for a duplicate key, whose earlier value would be lost silently.

    Raises:
        yaml.YAMLError: when the text is not YAML, or has a duplicate key.
        ValueError: for a date that does not exist, or an integer with too many digits for Python.
    """
    return yaml.load(text, _Loader)


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {
        first: [pair for pair in pairs if pair[0] != f"{TAG}bool"]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def whole_number(self, node: yaml.ScalarNode) -> int:
        """Return an integer; raise an error for octal numbers and for times, which YAML 1.1 takes for numbers."""
        text, value = node.value, self.construct_yaml_int(node)
        if ":" in text:
            raise _odd(node, f"is {value} in YAML 1.1; write {value}, or '{text}' in quotes")
        digits = text.lstrip("+-").replace("_", "")
        if digits.isdecimal() and int(digits) != abs(value):
            raise _odd(node, f"is {value} in YAML 1.1, and {int(text)} in 1.2; write the number that you mean")
        return value

    def number(self, node: yaml.ScalarNode) -> float:
        """Return a number; raise an error for times."""
        value = self.construct_yaml_float(node)
        if ":" in node.value:
            raise _odd(node, f"is {value} in YAML 1.1; write {value}, or '{node.value}' in quotes")
        return value

    def compose_mapping_node(self, anchor: str | None) -> yaml.MappingNode:
        node, keys = super().compose_mapping_node(anchor), set[Hashable]()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in keys:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"{shown(key.value)} is there twice", key.start_mark
                    )
                keys.add((key.tag, key.value))
        return node


def _odd(node: yaml.ScalarNode, why: str) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, f"{shown(node.value)[1:-1]} {why}", node.start_mark)


_Loader.add_implicit_resolver(f"{TAG}bool", re.compile("(true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
_Loader.add_implicit_resolver(
    f"{TAG}float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$", re.ASCII), list("-+.0123456789")
)
_Loader.add_constructor(f"{TAG}int", _Loader.whole_number)
_Loader.add_constructor(f"{TAG}float", _Loader.number)


def settings_in(path: Path) -> Any:
    """Parse the settings in a JSON or YAML file.

    Raises:
        ConfigError: when the file cannot be read, is neither JSON nor YAML, or has a duplicate key.
    """
    try:
        text = small_text(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({reason(error)})") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: must be UTF-8 text ({reason(error)})") from None
    try:
        return json.loads(text, object_pairs_hook=_without_doubles)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    except (ValueError, RecursionError):
        pass
    try:
        return yaml_in(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is neither JSON nor YAML ({_in_a_line(error)})") from None


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ConfigError(f"{shown(key)} is there twice")
        found[key] = value
    return found


def _in_a_line(error: Exception) -> str:
    """Return the reason why a text is not YAML, with line and column if they are known."""
    mark = getattr(error, "problem_mark", None)
    why = getattr(error, "problem", None) or reason(error)
    return why if mark is None else f"{why}, line {mark.line + 1}, column {mark.column + 1}"

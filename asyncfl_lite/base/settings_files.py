"""Settings in files of JSON, YAML or TOML.

Words and numbers mean what they mean in YAML 1.2 and to most people: ``off`` is a word, and ``1e3`` and ``010`` are a
thousand and ten.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Hashable
from pathlib import Path
from typing import Any, ClassVar

import yaml

from asyncfl_lite.base.errors import ConfigError, reason, shown
from asyncfl_lite.base.files import regular

LARGEST = 10 * 2**20
"""Size in bytes of the largest file that is read; a grid of thousands of cells is a tenth as large."""


def small_text(path: Path) -> str:
    """Return the text of a settings file, or raise if the file is larger than :data:`LARGEST`.

    At most one byte more is read, so that a file of data does not fill the memory.
    """
    with regular(path).open("rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ConfigError(f"{path}: must be a file of settings of at most 10 MB, got more")
    return content.decode("utf-8").replace("\r\n", "\n")


def yaml_in(text: str) -> Any:
    """Parse YAML; raise an error for a duplicate key, too, whose earlier value would be lost silently."""
    return yaml.load(text, _Loader)


class _Loader(yaml.SafeLoader):
    """A loader of YAML that reads words and numbers as YAML 1.2 defines them."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {
        first: [pair for pair in pairs if not pair[0].endswith((":bool", ":int", ":float"))]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

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


for _kind, _pattern, _first in (
    ("bool", "(true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", "[-+]?[0-9][0-9_]*$", "-+0123456789"),
    ("float", r"[-+]?((\.[0-9]+|[0-9]+\.?[0-9]*)([eE][-+]?[0-9]+)?|\.inf)$|\.nan$", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(_pattern), list(_first))
_Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(node.value))


def settings_in(path: Path) -> Any:
    """Parse the settings in a JSON, YAML or TOML file (``.toml``); errors name the file."""
    try:
        text = small_text(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({reason(error)})") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: must be UTF-8 text ({reason(error)})") from None
    if path.suffix.lower() == ".toml":
        try:
            return tomllib.loads(text)
        except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
            raise ConfigError(f"{path} is not TOML ({reason(error)})") from None
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
    mark = getattr(error, "problem_mark", None)
    why = getattr(error, "problem", None) or reason(error)
    return why if mark is None else f"{why}, line {mark.line + 1}, column {mark.column + 1}"

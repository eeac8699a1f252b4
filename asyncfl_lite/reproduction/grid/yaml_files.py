"""YAML files of the experiments, read as settings that are checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from asyncfl_lite.base.errors import ConfigError, reason, shown
from asyncfl_lite.base.registry import Settings


class _Loader(yaml.SafeLoader):
    """YAML's safe loader, which also refuses a key that is there twice, of which one would silently win."""

    def compose_mapping_node(self, anchor: str | None) -> yaml.MappingNode:
        node, keys = super().compose_mapping_node(anchor), set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in keys:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"{shown(key.value)} is there twice", key.start_mark
                    )
                keys.add((key.tag, key.value))
        return node


def read_yaml(path: Path, kind: type[Settings]) -> Any:
    """Read and check a YAML file."""
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except OSError as error:
        there = sorted(p.name for p in path.parent.glob("*.yaml"))
        raise ConfigError(f"{path}: {error.strerror}; there are: {', '.join(there) or 'none'}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: must be UTF-8 text ({reason(error)})") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: no such date, a number without end
        raise ConfigError(f"{path}: no YAML ({' '.join(str(error).split())})") from None
    try:
        return kind.from_mapping(content)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None

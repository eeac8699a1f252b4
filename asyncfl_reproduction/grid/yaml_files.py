"""The experiments' YAML files, read as checked settings."""

from __future__ import annotations

import copy
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from asyncfl_lite.base.errors import ConfigError, reason
from asyncfl_lite.base.files import small_text, yaml_in
from asyncfl_lite.base.registry import Settings


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

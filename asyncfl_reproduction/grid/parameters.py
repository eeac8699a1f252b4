"""Checks of the parameters that papermill injects into ``notebooks/experiment.ipynb``; an unknown name is an error."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from asyncfl_lite.base.errors import ConfigError, unknown_name
from asyncfl_lite.base.registry import Settings, import_own, located
from asyncfl_lite.runs.config import Config
from asyncfl_reproduction.grid.families import Seeds


class Parameters(Settings):
    """Parameters of the experiment notebook."""

    cell: str
    about: str
    configuration: dict[str, Any]
    seeds: Seeds
    folder: Path | None
    imports: list[str]


def check_parameters(names: Mapping[str, Any], before: Iterable[str]) -> Config:
    """Check a notebook's parameters, import the modules they name, and return the configuration.

    Raises:
        ConfigError: in one line, if a parameter has the wrong type or is unknown. papermill itself accepts unknown
            ones.
    """
    known = {*before, *Parameters.model_fields, check_parameters.__name__}
    unknown = {name: value for name, value in names.items() if name not in known and not name.startswith("_")}
    settings = {name: value for name, value in unknown.items() if name in Config.model_fields}
    for name in unknown.keys() - settings.keys():
        raise ConfigError(unknown_name("parameter", name, Parameters.model_fields))
    parameters = Parameters(**{name: names[name] for name in Parameters.model_fields})
    if settings:
        meant = {"configuration": {**parameters.configuration, **settings}}
        line = yaml.safe_dump(meant, default_flow_style=True, sort_keys=False, width=10_000).strip()
        raise ConfigError(f"parameter: {next(iter(settings))!r} is a setting of the run; write -y '{line}'")
    for place in parameters.imports:
        import_own(located(place, Path.cwd()))
    try:
        return Config.from_mapping({**parameters.configuration, "seed": parameters.seeds[0]})
    except ConfigError as error:
        raise ConfigError(f"configuration: {error}") from None

"""The configuration of a run: its typed settings, completed with the papers' defaults and checked once.

A user writes this object, papermill injects it, a result stores it, and its hash identifies the run.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import torch
from pydantic import Field, PrivateAttr, ValidationInfo, create_model, field_validator, model_validator

from asyncfl_lite.algorithms import ALGORITHMS, Algorithm, make_algorithm
from asyncfl_lite.base.devices import AUTO
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.base.registry import Settings, nested
from asyncfl_lite.clients.local_training import LocalTraining
from asyncfl_lite.models.base import ModelSpec
from asyncfl_lite.runs.explained import explained
from asyncfl_lite.runs.fields import Fields
from asyncfl_lite.runs.filling import fill_in
from asyncfl_lite.runs.groups import GROUPS, class_of_group
from asyncfl_lite.runs.initial.base import Initialiser
from asyncfl_lite.simulator.delays.base import DelayLaw
from asyncfl_lite.simulator.scheduling import SCHEDULING, Scheduling
from asyncfl_lite.simulator.selection import SELECTIONS, Selection
from asyncfl_lite.simulator.trouble import Trouble
from asyncfl_lite.tasks.partitions import PARTITIONS

NOT_IN_HASH = {"checkpoint_every", "checkpoint_seconds", "device"}
"""Settings that say how a run is carried out. A device rounds differently, as another machine does; results name it."""
IN_HASH_IF_SET = {"autocast", "channels_last", "judged_on", "threads", "trouble"}
"""Settings that came into the hash after results had been recorded; their defaults leave the hash as it was."""
PLACES = {"folder", "download"}
"""Settings of tasks and delay laws that say where data are stored, not which data they are."""

Seed = create_model("Seed", __base__=Settings, seed=(int, Fields.model_fields["seed"]))
"""Settings with only a seed, since only the seed needs checking when a checked configuration gets another seed."""


class Config(Fields):
    """All settings of a run, checked and completed with defaults.

    A setting that is left out takes its value from a paper that trains the method on the task, or else from one that
    trains on the task at all (``runs/setups.py``); on other tasks, it takes this package's own value
    (``runs/defaults.py``). If several papers qualify, ``setup`` can name one. ``settings`` holds the method's own
    options; ``task_settings``, ``model_settings``, ``delay_settings`` and ``partition_settings`` hold the options of
    the task, the model, the delay law and the partition.

    Raises:
        ConfigError: if a setting is invalid; the message names it, the given value and the allowed ones.

    Example: FedEcho trains BERT on MRPC, so ``mrpc`` has FedEcho's settings as defaults; the given number of clients
    replaces FedEcho's.

    >>> from asyncfl_lite import Config
    >>> config = Config(task="mrpc", algorithm="fedecho", clients=20)
    >>> config.model, config.client_optimizer, config.rounds, config.clients
    ('bert', 'adamw', 200, 20)
    >>> config.with_seed(7).seed
    7
    >>> Config(clients=5, concurrency=10)
    Traceback (most recent call last):
    asyncfl_lite.base.errors.ConfigError: concurrency: must be at most clients (5), got 10
    """

    _own_task: str | None = PrivateAttr(None)
    if not TYPE_CHECKING:  # for type checkers, it stays a group, which may be written as a dict
        trouble: Trouble = Field(default=Trouble(), description=Fields.model_fields["trouble"].description)

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Add the defaults for the chosen task and method."""
        return fill_in(given)

    @field_validator("task", "model", "algorithm", "delay", "partition", "redispatch", "selection", "initial")
    @classmethod
    def _known(cls, name: str, info: ValidationInfo) -> str:
        registry = SCHEDULING if info.field_name == "redispatch" else dict(GROUPS.values())[str(info.field_name)]
        registry.get(name)
        return name

    @field_validator("device")
    @classmethod
    def _device(cls, name: str) -> str:
        """Raise an error for a device name unknown to torch; a run checks later whether the machine has the device."""
        try:
            torch.device("cpu" if name == AUTO else name)
        except RuntimeError:
            raise ValueError("must be auto or a device of torch's, such as cpu, cuda or cuda:1") from None
        return name

    @field_validator(*GROUPS, mode="before")
    @classmethod
    def _typed(cls, value: Any, info: ValidationInfo) -> Settings:
        """Convert a group of settings to the class of the task, model or law that is chosen by name."""
        group = str(info.field_name)
        name = group if group == "trouble" else info.data.get(GROUPS[group][0])
        if name is None:  # the name itself was refused, and that error is reported
            return Settings()
        wanted = class_of_group(group, name)
        alpha = info.data.get("alpha") if group == "partition_settings" else None
        if alpha is None or "alpha" not in wanted.model_fields:
            alpha = None
        elif isinstance(value, wanted):
            return value.with_checked(alpha=alpha)
        elif isinstance(value, dict):
            value = {"alpha": alpha, **value}
        if isinstance(value, wanted):
            return value
        try:
            typed = wanted.from_mapping(value)
        except ConfigError as error:
            raise ConfigError(nested(group, str(error))) from None
        if alpha is not None and (own := typed.model_dump()["alpha"]) != alpha:
            raise ConfigError(f"alpha: must be left out, or be {alpha:g} as alpha is, got {own:g}")
        return typed

    @model_validator(mode="after")
    def _possible(self) -> Config:
        """Raise an error for a combination of settings that cannot work together."""
        method = ALGORITHMS.get(self.algorithm)
        if (self.local_epochs is None) == (self.local_steps is None):
            raise ValueError("local_epochs, local_steps: exactly one of them must be given")
        if self.rounds is None and self.horizon is None:
            raise ValueError("rounds, horizon: at least one of them must be given")
        if self.concurrency > self.clients:
            raise ValueError(f"concurrency: must be at most clients ({self.clients}), got {self.concurrency}")
        if not method.buffered and self.buffer_size != 1:
            raise ValueError(f"buffer_size: {self.algorithm} has no buffer; must be 1, got {self.buffer_size}")
        if self.redispatch in ("rounds", "burst") and self.buffer_size > self.concurrency:
            raise ValueError(
                f"buffer_size: a buffer of {self.buffer_size} can never fill with {self.concurrency} clients "
                f"at a time under redispatch {self.redispatch!r}; must be at most {self.concurrency}"
            )
        if not method.uses_server_lr and self.server_lr != 1.0:
            raise ValueError(f"server_lr: {self.algorithm} has none; must be 1, got {self.server_lr}")
        if SELECTIONS.get(self.selection).needs_rounds and self.redispatch != "rounds":
            raise ValueError(
                f"selection: {self.selection!r} chooses a round at a time, so redispatch must be 'rounds', "
                f"got {self.redispatch!r}"
            )
        needs_alpha = "alpha" in PARTITIONS.get(self.partition).model_fields
        if needs_alpha != (self.alpha is not None):
            raise ValueError(
                f"alpha: partition {self.partition!r} {'needs' if needs_alpha else 'does not use'} it, got {self.alpha}"
            )
        return self

    @property
    def own_task(self) -> str | None:
        """Name of the user's own data, which must be passed to the run again; None for a named task."""
        return self._own_task

    def on_own_task(self, name: str | None) -> Config:
        """Return a copy for a run on the user's own data called ``name``; None means the task in the settings."""
        copy = self.model_copy()
        copy._own_task = name
        return copy

    def __eq__(self, other: object) -> bool:
        """Return whether all settings are equal; the name of the user's own data is not compared."""
        return isinstance(other, Config) and self.__dict__ == other.__dict__

    def with_seed(self, seed: int) -> Config:
        """Return the same configuration with a different seed."""
        return self.with_checked(**Seed(seed=seed).model_dump())

    def explain(self) -> None:
        """Print each value and its origin: the user, a paper, a method, a task, a search, or the setting's own default.

        >>> from asyncfl_lite import Config
        >>> config = Config(task="overlaid_mnist", algorithm="fedbuff", rounds=50)
        >>> config.explain()  # doctest: +ELLIPSIS, +NORMALIZE_WHITESPACE
        setting                    value           from
        task                       overlaid_mnist  given
        ...
        rounds                     50              given
        ...
        client_lr                  0.3             searched: fedecho-overlaid_mnist
        ...
        """
        rows = [("setting", "value", "from"), *((name, str(value), origin) for name, value, origin in explained(self))]
        widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
        print("\n".join(f"{name:<{widths[0]}}  {value:<{widths[1]}}  {origin}" for name, value, origin in rows))

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as plain values for JSON and YAML; α appears once, as ``alpha``."""
        values = self.model_dump(mode="json")
        values["partition_settings"].pop("alpha", None)
        return values

    @property
    def hash(self) -> str:
        """Hash (12 hexadecimal digits) of the settings on which the run's results depend."""
        as_they_were = {key for key in IN_HASH_IF_SET if getattr(self, key) == type(self).model_fields[key].default}
        whole = self.model_dump(mode="json")
        hashed = {key: value for key, value in whole.items() if key not in NOT_IN_HASH | as_they_were}
        if "trouble" in hashed:
            hashed["trouble"] = self.trouble.model_dump(mode="json", exclude_defaults=True)
        for group, places in (("task_settings", PLACES), ("delay_settings", PLACES), ("settings", set())):
            kind = getattr(self, group)
            left_out = places | {
                key for key in kind.later if getattr(kind, key) == type(kind).model_fields[key].default
            }
            hashed[group] = {key: value for key, value in hashed[group].items() if key not in left_out}
        return hashlib.sha256(json.dumps(hashed, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def model_spec(self) -> ModelSpec:
        """The model's settings, with a method that builds the model."""
        return self.model_settings

    @property
    def initialiser(self) -> Initialiser:
        """The initialiser, which makes the first weights."""
        return self.initial_settings

    @property
    def delay_law(self) -> DelayLaw:
        """The delay law, from which durations are drawn."""
        return self.delay_settings

    @property
    def held_out(self) -> float:
        """Fraction of the training samples that the server keeps as its labelled set."""
        return max(self.make_algorithm().held_out, self.initialiser.held_out)

    def make_algorithm(self) -> Algorithm:
        """Make the method, without starting it."""
        return make_algorithm(
            self.algorithm,
            buffer_size=self.buffer_size,
            server_lr=self.server_lr,
            bn_mode=self.bn_mode,
            **self.settings.model_dump(),
        )

    def make_scheduling(self) -> Scheduling:
        """Make the scheduling policy."""
        return SCHEDULING.get(self.redispatch)(self.concurrency, self.buffer_size)

    def make_selection(self) -> Selection:
        """Make the selection policy."""
        return SELECTIONS.get(self.selection)(**self.selection_settings.model_dump())

    def make_training(self, algorithm: Algorithm) -> LocalTraining:
        """Make the settings of local training; ``algorithm`` may add to the objective and to the reports."""
        return LocalTraining(
            optimiser=self.client_optimizer,
            lr=self.client_lr,
            batch_size=self.batch_size,
            epochs=self.local_epochs,
            steps=self.local_steps,
            weight_decay=self.weight_decay,
            clip=self.client_clip,
            autocast=self.autocast,
            channels_last=self.channels_last,
            lr_decay=self.client_lr_decay,
            proximal=algorithm.proximal,
            correction_once=algorithm.correction_once,
            midway=algorithm.midway or 0.0,
            reports=algorithm.client_reports,
        )

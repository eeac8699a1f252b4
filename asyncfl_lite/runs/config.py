"""The configuration of a run: its typed settings, completed with the papers' defaults and checked once.

A user writes it, papermill injects it, a result stores it, and its hash identifies the run. The defaults and their
sources are in ``defaults.yaml``. Torch is imported only when a configuration is made, since the command line's help
lists the settings.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal

import yaml
from pydantic import Field, PrivateAttr, SerializeAsAny, ValidationInfo, create_model, field_validator, model_validator

from asyncfl_lite.base.errors import ConfigError, shown, unknown_name
from asyncfl_lite.base.registry import Registry, Settings, nested

if TYPE_CHECKING:  # the types that a user may write: a dict for a group, the name of a preset
    from asyncfl_lite.algorithms import Algorithm
    from asyncfl_lite.clients.cohorts import LocalTraining
    from asyncfl_lite.models.own_models import OwnModel

    Group = Any
    PresetName = str | None
else:  # the types that are stored
    Group = SerializeAsAny[Settings]
    PresetName = None

GROUPS = {
    "task_settings": "task",
    "model_settings": "model",
    "settings": "algorithm",
    "delay_settings": "delay",
    "partition_settings": "partition",
    "selection_settings": "selection",
    "initial_settings": "initial",
    "faults": "faults",
}
"""Group of settings -> the setting that names its class; faults has only one class, of the same name."""

NOT_IN_HASH: dict[str, Any] = {
    **dict.fromkeys(("checkpoint_every", "checkpoint_seconds", "device"), True),
    **dict.fromkeys(("task_settings", "delay_settings"), {"folder", "download"}),
}
"""How a run is carried out and where data are stored.

A device rounds differently, as another machine does; results name it.
"""

RENAMED = {"redispatch": "scheduling", "trouble": "faults", "cohort": "vectorize", "judged_on": "eval_split"}
RENAMED |= {"setup": "preset"}
"""Earlier name of a setting -> its name; who writes the earlier one is told."""
SEED = Field(default=0, ge=0, description="seed of every random stream of the run")
Seed = create_model("Seed", __base__=Settings, seed=(int, SEED))
"""Settings with only a seed, since only the seed needs checking when a checked configuration gets another seed."""


@cache
def registries() -> dict[str, Registry[Any]]:
    """Return the registry of each setting that names a class."""
    from asyncfl_lite.algorithms import ALGORITHMS
    from asyncfl_lite.models import INITIALISERS, MODELS
    from asyncfl_lite.simulator.delays import DELAYS
    from asyncfl_lite.simulator.faults import FAULTS
    from asyncfl_lite.simulator.scheduling import SCHEDULING, SELECTIONS
    from asyncfl_lite.tasks import TASKS
    from asyncfl_lite.tasks.partitions import PARTITIONS

    INITIALISERS.expect("asyncfl_lite.runs", {"teacher_chain": ("teacher_chain",)})
    return {
        "algorithm": ALGORITHMS,
        "task": TASKS,
        "model": MODELS,
        "delay": DELAYS,
        "partition": PARTITIONS,
        "scheduling": SCHEDULING,
        "selection": SELECTIONS,
        "initial": INITIALISERS,
        "faults": FAULTS,
    }


def class_of_group(group: str, name: str) -> type[Settings]:
    """Return the class of a group's settings for the chosen ``name``."""
    entry = registries()[GROUPS[group]].get(name)
    return getattr(entry, "Settings", entry)  # some classes are settings themselves


class Config(Settings):
    """All settings of a run, checked and completed with defaults.

    A setting that is left out takes its value from a paper that trains the method on the task, or else from one that
    trains on the task at all (``runs/defaults.yaml``); on other tasks, it takes this package's own value
    (same file). If several papers qualify, ``preset`` can name one. ``settings`` holds the method's own
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

    task: str = Field(default=..., description="data set to learn, with its loss and its metric")
    task_settings: Group = Field(default=..., description="the task's own settings")
    model: str = Field(default=..., description="model that clients train")
    model_settings: Group = Field(default=..., description="the model's own settings")
    algorithm: str = Field(default=..., description="federated learning method of the server")
    settings: Group = Field(
        default=..., description="the method's own options, listed by `asyncfl-lite list --methods`"
    )
    delay: str = Field(default=..., description="delay law, which decides how long each job takes")
    delay_settings: Group = Field(default=..., description="the delay law's own settings")
    partition: str = Field(default=..., description="rule that divides the training samples among the clients")
    alpha: float | None = Field(
        default=None, gt=0, le=1e9, description="Dirichlet concentration of the partition; smaller is more unequal"
    )
    partition_settings: Group = Field(default=..., description="the partition's own settings")
    clients: int = Field(default=..., ge=1, le=10_000_000, description="number of clients, N")
    concurrency: int = Field(default=..., ge=1, description="number of clients that train at the same time, M_c")
    buffer_size: int = Field(default=..., ge=1, description="number of updates in a server version, M")
    scheduling: str = Field(
        default=..., description="scheduling policy, which decides when new work is sent after a report"
    )
    selection: str = Field(default="uniform", description="selection policy, which decides which client gets new work")
    selection_settings: Group = Field(default=..., description="the selection policy's own settings")
    initial: str = Field(default="random", description="source of the initial weights")
    initial_settings: Group = Field(default=..., description="the initialiser's own settings")
    rounds: int | None = Field(default=None, ge=1, description="stop at this server version (or `versions`)")
    horizon: float | None = Field(default=None, gt=0, description="stop at this virtual time, in the delay law's unit")
    local_epochs: int | None = Field(
        default=None, ge=1, description="number of passes of a job over its client's samples"
    )
    local_steps: int | None = Field(
        default=None, ge=1, description="number of minibatch steps of a job, instead of epochs"
    )
    batch_size: int = Field(default=..., ge=1, description="number of samples in a client's minibatch")
    client_optimizer: Literal["sgd", "adam", "adamw"] = Field(default=..., description="optimiser of local training")
    client_lr: float = Field(default=..., ge=0, description="learning rate of local training")
    client_lr_decay: float = Field(
        default=1.0, gt=0, le=1, description="factor on the clients' learning rate after every server version"
    )
    client_momentum: float = Field(default=0.0, ge=0, lt=1, description="momentum of the clients' SGD")
    client_nesterov: bool = Field(default=False, description="whether the clients' momentum is Nesterov's")
    client_lr_schedule: Literal["constant", "cosine", "step"] = Field(
        default="constant", description="learning rate over a client's jobs: cosine to 0, step to a tenth each time"
    )
    client_lr_period: int = Field(default=1, ge=1, description="number of a client's jobs in which its rate falls so")
    weight_decay: float = Field(default=..., ge=0, description="weight decay of local training")
    server_lr: float = Field(default=..., ge=0, description="the server's learning rate")
    server_time: float = Field(default=0.0, ge=0, description="virtual time that the server needs to make a version")
    bn_mode: Literal["avg", "delta", "freeze"] = Field(
        default="avg", description="treatment of BatchNorm's running statistics on the server"
    )
    vectorize: Literal["auto", "on", "off"] = Field(
        default="auto", description="train the jobs in flight in one computation"
    )
    device: str = Field(default="cpu", description="torch device; auto means cuda if there is one, else cpu")
    threads: int = Field(
        default=1, ge=1, le=1024, description="number of CPU threads of torch; 1 is fastest for small models"
    )
    eval_every: int = Field(default=10, ge=1, description="number of versions between two tests of the global model")
    checkpoint_every: int | None = Field(
        default=None, ge=1, description="number of versions between two checkpoints of the run"
    )
    checkpoint_seconds: float | None = Field(
        default=600.0, gt=0, description="seconds between two checkpoints, if the run has a file to save to"
    )
    eval_split: Literal["test", "validation"] = Field(
        default="test", description="samples on which accuracy is measured; choose settings on validation samples"
    )
    faults: Group = Field(
        default_factory=lambda: class_of_group("faults", "faults")(),
        description="faults at clients, such as lost or late jobs; by default none",
    )
    seed: int = SEED
    preset: PresetName = Field(
        default=None,
        exclude=True,
        description="source of the defaults: the paper fedecho, fedrevive, kuiper or fedadt, or ours; results do "
        "not record this option",
    )

    _own_task: str | None = PrivateAttr(None)

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, given: dict[str, Any]) -> dict[str, Any]:
        if old := next((name for name in given if name in RENAMED), None):
            raise ConfigError(f"{old}: is called {RENAMED[old]} now")
        if "versions" in given:
            given = {"rounds": given["versions"], **{name: given[name] for name in given if name != "versions"}}
        return fill_in(given)

    @field_validator("task", "model", "algorithm", "delay", "partition", "scheduling", "selection", "initial")
    @classmethod
    def _known(cls, name: str, info: ValidationInfo) -> str:
        registries()[str(info.field_name)].get(name)
        return name

    @field_validator("device")
    @classmethod
    def _device(cls, name: str) -> str:
        """Raise an error for a device name unknown to torch; a run checks later whether the machine has the device."""
        if name == "cpu":
            return name
        import torch

        from asyncfl_lite.base.devices import AUTO

        try:
            torch.device("cpu" if name == AUTO else name)
        except RuntimeError:
            raise ValueError("must be auto or a device of torch's, such as cpu, cuda or cuda:1") from None
        return name

    @field_validator(*GROUPS, mode="before")
    @classmethod
    def _typed(cls, value: Any, info: ValidationInfo) -> Settings:
        group = str(info.field_name)
        kind = class_of_group(group, info.data.get(GROUPS[group], "faults"))
        alpha = info.data.get("alpha") if group == "partition_settings" and "alpha" in kind.model_fields else None
        shared = {} if alpha is None else {"alpha": alpha}
        if isinstance(value, kind):
            return value.with_checked(**shared)
        try:
            return kind.from_mapping({**shared, **value} if isinstance(value, dict) else value)
        except ConfigError as error:
            raise ConfigError(nested(group, str(error))) from None

    @model_validator(mode="after")
    def _possible(self) -> Config:
        method = registries()["algorithm"].get(self.algorithm)
        if (self.local_epochs is None) == (self.local_steps is None):
            raise ValueError("local_epochs, local_steps: exactly one of them must be given")
        if self.rounds is None and self.horizon is None:
            raise ValueError("rounds, horizon: at least one of them must be given")
        if self.concurrency > self.clients:
            raise ValueError(f"concurrency: must be at most clients ({self.clients}), got {self.concurrency}")
        method.check_buffer(self.buffer_size)
        if self.scheduling in ("rounds", "burst") and self.buffer_size > self.concurrency:
            raise ValueError(
                f"buffer_size: a buffer of {self.buffer_size} can never fill with {self.concurrency} clients "
                f"at a time under scheduling {self.scheduling!r}; must be at most {self.concurrency}"
            )
        if self.client_momentum and self.client_optimizer != "sgd":
            raise ValueError(f"client_momentum: needs client_optimizer 'sgd', got {self.client_optimizer!r}")
        if self.client_nesterov and not self.client_momentum:
            raise ValueError("client_nesterov: needs a client_momentum above 0, got 0")
        if not method.uses_server_lr and self.server_lr != 1.0:
            raise ValueError(f"server_lr: {self.algorithm} has none; must be 1, got {self.server_lr}")
        if registries()["selection"].get(self.selection).needs_rounds and self.scheduling != "rounds":
            raise ValueError(
                f"selection: {self.selection!r} chooses a round at a time, so scheduling must be 'rounds', "
                f"got {self.scheduling!r}"
            )
        if ("alpha" in type(self.partition_settings).model_fields) != (self.alpha is not None):
            does = "does not use" if self.alpha is not None else "needs"
            raise ValueError(f"alpha: partition {self.partition!r} {does} it, got {self.alpha}")
        return self

    @property
    def own_task(self) -> str | None:
        """Name of the user's own data, which must be passed to the run again; None for a named task."""
        return self._own_task

    def on_own_task(self, name: str | None) -> Config:
        """Return a copy for a run on the user's own data called ``name``; None means the task in the settings."""
        copy = self.with_checked()
        copy._own_task = name
        return copy

    def __eq__(self, other: object) -> bool:
        """Return whether all settings are equal; the name of the user's own data is not compared."""
        return isinstance(other, Config) and self.__dict__ == other.__dict__

    def replace(self, **changes: Any) -> Config:
        """Return the configuration that you would have written with these changes.

        Values that are not changed stay if they differ from the defaults of the task and the method. The others are
        filled in again, so a new task or method comes with its own defaults. A setting that excludes another one, such
        as ``local_steps``, takes its place. In a group, such as ``delay_settings``, options that are not named stay.

        Args:
            changes: settings, as for :class:`Config`.

        Raises:
            ConfigError: when a new value is invalid, or does not go with the others.

        >>> from asyncfl_lite import Config
        >>> config = Config(task="digits", clients=20, delay="uniform", delay_settings={"low": 1, "high": 3})
        >>> other = config.replace(algorithm="fedecho", delay_settings={"high": 9})
        >>> other.clients, other.client_lr, other.delay_settings
        (20, 0.2, UniformLaw(low=1.0, high=9.0))
        """
        if "versions" in changes:
            changes["rounds"] = changes.pop("versions")
        plain = type(self).from_mapping({"task": self.task, "algorithm": self.algorithm})
        own = {name: value for name, value in self.__dict__.items() if value != getattr(plain, name)}
        for group, name in GROUPS.items():
            if name != group and changes.get(name, getattr(self, name)) != getattr(self, name):
                own.pop(group, None)
                if name == "partition" and "alpha" not in class_of_group(group, changes[name]).model_fields:
                    own.pop("alpha", None)
            elif isinstance(changes.get(group), dict):
                changes[group] = {**getattr(self, group).model_dump(), **changes[group]}
        own = {"task": self.task, "algorithm": self.algorithm, **without_replaced(own, changes), **changes}
        return type(self)(**own).on_own_task(None if "task" in changes else self.own_task)

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
        """Return the settings as plain values for JSON and YAML."""
        return self.model_dump(mode="json")

    @property
    def hash(self) -> str:
        """Hash (12 hexadecimal digits) of the settings on which the run's results depend.

        It covers names, and settings that differ from their class's default, so a new or an unused option leaves it as
        it was. If a default changes, the class's ``revision`` must be raised.
        """
        hashed = self.model_dump(mode="json", exclude_defaults=True, exclude=NOT_IN_HASH)
        return hashlib.sha256(json.dumps(hashed, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def held_out(self) -> float:
        """Fraction of the training samples that the server keeps as its labelled set."""
        return max(self.make_algorithm().held_out, self.initial_settings.held_out)

    def make_algorithm(self) -> Algorithm:
        """Make the method, without starting it."""
        return registries()["algorithm"].get(self.algorithm)(
            buffer_size=self.buffer_size,
            server_lr=self.server_lr,
            bn_mode=self.bn_mode,
            **self.settings.model_dump(),
        )

    def make_training(self, algorithm: Algorithm) -> LocalTraining:
        """Make the settings of local training; ``algorithm`` may add to the objective and to the reports."""
        from asyncfl_lite.clients.cohorts import LocalTraining

        names = [field.name for field in fields(LocalTraining) if field.name in Config.model_fields]
        return LocalTraining(
            **{name: getattr(self, name) for name in names},
            proximal=algorithm.proximal,
            correction_once=algorithm.correction_once,
            midway=algorithm.midway or 0.0,
            reports=algorithm.client_reports,
        )


def as_config(given: Config | Mapping[str, Any], model: OwnModel | None = None) -> Config:
    """Return ``given``, which may be a plain dict of settings, as a :class:`.Config`, with the user's own module."""
    if isinstance(given, Config):
        config = given
    elif isinstance(given, Mapping):
        config = Config.from_mapping(dict(given))
    else:
        raise ConfigError(f"config: must be a Config, or a dict of its settings, got {shown(given)}")
    if model is None:
        return config
    from asyncfl_lite.models.own_models import GivenModel

    return config.model_copy(update={"model": "given", "model_settings": GivenModel.of(model)})


# Defaults

DEFAULTS: dict[str, Any] = yaml.load(
    resources.files(__package__).joinpath("defaults.yaml").read_bytes(),
    Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader),  # the one in C is ten times as fast
)
COMMON: dict[str, Any] = DEFAULTS["common"]
PAPERS: dict[str, dict[str, Any]] = DEFAULTS["papers"]  # in the order in which preset_of looks through them
OURS = "ours"  # follows no paper: this package's own settings for small models and little data
ONE_OF = (("rounds", "horizon"), ("local_epochs", "local_steps"))
"""Mutually exclusive settings: giving one drops the other's default."""


def without_replaced(weaker: dict[str, Any], stronger: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``weaker`` without the settings that a setting in ``stronger`` excludes; see :data:`ONE_OF`."""
    given = {name for name, value in stronger.items() if value is not None}
    replaced = {pair[1 - index] for pair in ONE_OF for index in (0, 1) if pair[index] in given}
    return {name: value for name, value in weaker.items() if name not in replaced}


def preset_of(task: str, algorithm: str, wanted: str | None = None) -> str | None:
    """Return the name of the paper that gives a method on a task its default settings; None for our own settings.

    It is ``wanted`` if given; else the method's own paper if it trains on the task; else the first paper that compares
    the method there; else the first that trains on the task at all.
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


def layers_of(task: str, algorithm: str, preset: str | None = None) -> list[tuple[str, dict[str, Any]]]:
    """Return the layers of defaults, weakest first: the source in words, and its values (see :func:`preset_of`)."""
    layers = [("common to all", COMMON), (f"the method {algorithm}", DEFAULTS["methods"].get(algorithm, {}))]
    name = preset_of(task, algorithm, preset)
    if name is not None:
        paper = PAPERS[name]
        pairs = paper.get("pairs", {}).get(task, {})
        its = (paper["common"], paper["tasks"][task], paper["methods"].get(algorithm, {}), pairs.get(algorithm, {}))
        return layers + [(f"the paper of {name}", values) for values in its]
    found = DEFAULTS["searched"].get(task, {"study": "", "methods": {}})
    return [
        *layers,
        (f"the task {task}", DEFAULTS["tasks"].get(task, {})),
        (f"the method {algorithm} on {task}", DEFAULTS["pairs"].get(task, {}).get(algorithm, {})),
        (f"searched: {found['study']}", found["methods"].get(algorithm, {})),
    ]


@cache
def defaults(task: str, algorithm: str, preset: str | None = None) -> dict[str, Any]:
    """Return the merged :func:`layers_of` one method on one task, which must not be changed."""
    merged: dict[str, Any] = {"settings": {}}
    for _, layer in layers_of(task, algorithm, preset):
        options = {**merged["settings"], **layer.get("settings", {})}
        merged = {**without_replaced(merged, layer), **layer, "settings": options}
    return merged


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings in one level; one in a group is called, for example, ``settings.clip``."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= {f"{name}.{inner}": own for inner, own in value.items()}
        else:
            found[name] = value
    return found


def fill_in(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given settings, plus values for those that are left out; types and bounds are checked afterwards."""
    task, algorithm = (given.get(name, COMMON[name]) for name in ("task", "algorithm"))
    method = registries()["algorithm"].get(algorithm)
    registries()["task"].get(task)
    base = {"scheduling": method.scheduling, **without_replaced(defaults(task, algorithm, given.get("preset")), given)}
    if not method.buffered:
        base["buffer_size"] = 1
    filled = {**base, **given}
    filled.pop("preset", None)
    for group, name in GROUPS.items():
        filled[group] = own = given.get(group, {})
        if not isinstance(own, dict):
            continue
        # the defaults' group belongs to the chosen class if the name is theirs, too; settings given together with the
        # name of a model or a law are complete
        of_the_defaults = name in ("task", "algorithm") or (
            filled.get(name) == base.get(name) and not (name in given and group in given)
        )
        filled[group] = {**base.get(group, {}), **own} if of_the_defaults else dict(own)
    _share_tokenizer(filled)
    _fill_sizes(filled, given)
    own = filled["partition_settings"]
    if isinstance(own, dict) and "alpha" in own:
        raise ConfigError(f"partition_settings.alpha: must be left out; give it as alpha, got {shown(own['alpha'])}")
    if "alpha" not in given:
        uses = "alpha" in registries()["partition"].get(filled["partition"]).model_fields
        filled["alpha"] = getattr(own, "alpha", filled["alpha"]) if uses else None
    return filled


def _share_tokenizer(filled: dict[str, Any]) -> None:
    """Give a text task the tokeniser of the model's checkpoint, unless the task names its own."""
    if "tokenizer" not in registries()["task"].get(filled["task"]).model_fields:
        return
    task, model = filled["task_settings"], filled["model_settings"]
    checkpoint = model.get("checkpoint") if isinstance(model, dict) else getattr(model, "checkpoint", None)
    if checkpoint and isinstance(task, dict):
        filled["task_settings"] = {"tokenizer": checkpoint, **task}


def _fill_sizes(filled: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Choose concurrency and buffer size, if not given; they depend on each other and on the number of clients."""
    burst = filled["scheduling"] == "burst"  # a client that is not dispatched at the start never would be
    with suppress(TypeError, ValueError, OverflowError):  # a value that is not a number is refused later
        clients = int(filled["clients"])
        if "concurrency" not in given and clients >= 1:
            filled["concurrency"] = clients if burst else min(filled["concurrency"], clients)
        if "buffer_size" not in given and filled["scheduling"] == "rounds":
            filled["buffer_size"] = filled["concurrency"]
        elif "buffer_size" not in given and (burst or "concurrency" not in given):
            filled["buffer_size"] = min(filled["buffer_size"], int(filled["concurrency"]))


def explained(config: Config) -> Iterator[tuple[str, Any, str]]:
    """Yield the name, value and origin of each setting: the strongest layer of defaults that has it, or the user.

    A given value that equals the default counts as the default, since the configuration is the same. A value that
    follows from given ones, such as a concurrency of at most ``clients``, counts as given.
    """
    layers = [(origin, flat(values)) for origin, values in reversed(layers_of(config.task, config.algorithm))]
    plain = flat(Config.from_mapping({"task": config.task, "algorithm": config.algorithm}).as_dict())
    buffered = registries()["algorithm"].get(config.algorithm).buffered
    for name, value in flat(config.as_dict()).items():
        default = next((origin for origin, values in layers if name in values), "its own default")
        if name == "scheduling" or (name == "buffer_size" and not buffered):
            default = f"the method {config.algorithm}"
        chosen = name in ("task", "algorithm") or name not in plain or plain[name] != value
        yield name, value, "given" if chosen else default

"""All experimental settings that the papers print, by paper, task and method.

A grid's paper tier, ``Config(setup="fedrevive", …)`` and a plain ``Config`` for a paper's data set all take their
settings from here. :func:`setup_of` says which paper a configuration follows if none is named. A test checks every row
of ``asyncfl_reproduction/printed/hyperparameters.csv``.

The comment above a paper's settings says where the paper prints them, and which ones are ours. A run needs the latter,
but the paper does not print them; the experiments' files list them with every result (``ours:``). A server rate of 1
(FedEcho's Tables 8 to 10; ours for FedADT) and FedEcho's options are not repeated here, since they are defaults anyway.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from asyncfl_lite.base.errors import ConfigError, unknown_name

OURS = "ours"
"""The set-up that follows no paper: this package's own settings for small models and little data."""


@dataclass(frozen=True)
class SetUp:
    """One paper's experiments, as layers of settings from weak to strong.

    Attributes:
        common: settings of all its experiments.
        tasks: task -> its settings, which replace common ones.
        methods: method -> its settings on all tasks; every method that the paper compares is a key.
        pairs: (method, task) -> settings of the two together.
        proposed: the methods that are the paper's own.
    """

    common: dict[str, Any]
    tasks: dict[str, dict[str, Any]]
    methods: dict[str, dict[str, Any]]
    pairs: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    proposed: tuple[str, ...] = ()

    def layers(self, task: str, algorithm: str) -> Iterator[dict[str, Any]]:
        """Yield the layers of a method's settings on one of the paper's tasks; each overrides the ones before it."""
        yield self.common
        yield self.tasks[task]
        yield self.methods.get(algorithm, {})
        yield self.pairs.get((algorithm, task), {})


_RESNET18 = {"model": "resnet", "model_settings": {"width": 64, "blocks": "resnet18", "norm": "batch"}}

# §5.1 and App. A.1: federation, local training, rounds (captions of Tables 2 to 5); Tables 8 to 10: rates of clients
# and server. Ours: the kind of Dirichlet partition, ResNet-18's 3×3 stem, weight decay on text (printed for images).
_IMAGES = {
    **_RESNET18,
    "client_optimizer": "sgd",
    "weight_decay": 1e-4,
    "batch_size": 50,
    "local_epochs": 2,
    "alpha": 0.1,
}
_TEXT = {
    "client_optimizer": "adamw",
    "weight_decay": 1e-4,
    "client_lr": 3e-5,
    "batch_size": 8,
    "local_epochs": 1,
    "clients": 10,
    "concurrency": 5,
    "buffer_size": 3,
    "alpha": 0.6,
}
_BERT, _QWEN = "google-bert/bert-base-uncased", "Qwen/Qwen2.5-1.5B-Instruct"
_ADAPTIVE_ON_TEXT = {"client_lr": 3e-6, "server_lr": 0.1}
FEDECHO = SetUp(
    common={
        "clients": 50,
        "concurrency": 25,
        "buffer_size": 5,
        "delay": "fedecho_large",
        "partition": "dirichlet_class",
    },
    tasks={
        "cifar10": {**_IMAGES, "client_lr": 0.01, "rounds": 500},
        "cifar100": {**_IMAGES, "client_lr": 0.003, "rounds": 1000},
        "mrpc": {
            **_TEXT,
            "model": "bert",
            "model_settings": {"checkpoint": _BERT},
            "rounds": 200,
        },
        "mathinstruct": {
            **_TEXT,
            "task_settings": {"scored": 1319},
            "model": "causal_lm",
            "model_settings": {"checkpoint": _QWEN},
            "rounds": 5,
        },
    },
    methods={"fedbuff": {}, "ca2fl": {}, "fedac": {}, "fadas": {}, "fedecho": {}},
    pairs={
        **{(method, task): {"client_lr": 0.1, "server_lr": 1e-4}
           for method in ("fedac", "fadas") for task in ("cifar10", "cifar100")},
        **{(method, task): _ADAPTIVE_ON_TEXT for method in ("fedac", "fadas") for task in ("mrpc", "mathinstruct")},
        ("fedecho", "cifar10"): {"client_lr": 0.03},
        ("fedecho", "cifar100"): {"client_lr": 0.03},
        ("fedecho", "mrpc"): {"settings": {"distill_lr": 3e-7, "distill_samples": 100}},
        ("fedecho", "mathinstruct"): {"settings": {"distill_lr": 3e-6, "distill_samples": 100}},
    },
    proposed=("fedecho",),
)  # fmt: skip

# §3 and App. I: clients, samples, local training; App. D: delays; Table 4: rates of clients and server, FedBuff's
# buffer; Tables 5 and 6, App. B: rates and weights of distillation and synthesis. From the authors' code: the
# partition, dispatch after aggregation, FEMNIST's longer warm-up. Ours: horizons, 4 times FedBuff's printed time to
# target (FedAvg: 1.5 times its own); BatchNorm that normalises, where that code has `norm: tracker`; all of T5 trained.
_WRAPPED = {"partition": "dirichlet_wrap", "alpha": 0.5, "partition_settings": {"samples_per_client": 350}}
_T5 = {
    "task_settings": {"length": 128},
    "model": "t5",
    "model_settings": {"checkpoint": "t5-small"},
}
FEDREVIVE = SetUp(
    common={
        "clients": 1000,
        "concurrency": 100,
        "delay": "fedrevive",
        "client_optimizer": "adam",
        "weight_decay": 0.0,
        "local_steps": 25,
        "batch_size": 32,
    },
    tasks={
        "cifar10": {**_WRAPPED, **_RESNET18, "client_lr": 3e-4, "horizon": 400},
        "cifar100": {**_WRAPPED, **_RESNET18, "client_lr": 3e-4, "horizon": 1300},
        "femnist": {
            "task_settings": {"writers": 1000},
            "partition": "natural",
            "model": "femnist_cnn",
            "model_settings": {"norm": "batch"},
            "client_lr": 1e-3,
            "horizon": 150,
        },
        "newsgroups20": {**_WRAPPED, **_T5, "client_lr": 1e-3, "horizon": 40},
    },
    methods={
        "fedavg": {"server_lr": 1.4},
        "fedbuff": {"redispatch": "after_agg"},
        "afl_dw": {"server_lr": 0.1},
        "dd_fedrevive": {"settings": {"kd_temperature": 2.0}},
        "fedrevive": {"server_lr": 0.1},
    },
    pairs={
        ("fedavg", "cifar10"): {"horizon": 1014},
        ("fedavg", "cifar100"): {"horizon": 4436},
        ("fedavg", "femnist"): {"horizon": 1000},
        ("fedavg", "newsgroups20"): {"client_lr": 3e-3, "server_lr": 1.0, "horizon": 80},
        ("fedbuff", "cifar10"): {"server_lr": 0.05, "buffer_size": 2},
        ("fedbuff", "cifar100"): {"server_lr": 0.1, "buffer_size": 3},
        ("fedbuff", "femnist"): {"server_lr": 0.025, "buffer_size": 1},
        ("fedbuff", "newsgroups20"): {"server_lr": 0.1, "buffer_size": 3},
        ("afl_dw", "femnist"): {"server_lr": 0.05},
        ("dd_fedrevive", "cifar10"): {"server_lr": 0.2, "settings": {"kd_lr": 3e-4}},
        ("dd_fedrevive", "cifar100"): {"client_lr": 1e-4, "server_lr": 0.3, "settings": {"kd_lr": 1e-4}},
        ("dd_fedrevive", "femnist"): {"server_lr": 0.1, "settings": {"kd_lr": 3e-4}},
        ("dd_fedrevive", "newsgroups20"): {"server_lr": 0.1, "settings": {"kd_lr": 1e-4}},
        ("fedrevive", "cifar10"): {
            "settings": {
                "kd_lr": 1e-4, "generator_lr": 0.003, "latent_lr": 0.001, "alpha_feat": 0.003, "t_probe": 0.8,
            },
        },
        ("fedrevive", "cifar100"): {
            "settings": {
                "kd_lr": 3e-5, "generator_lr": 0.003, "latent_lr": 0.001, "alpha_feat": 0.0003, "t_probe": 1.0,
            },
        },
        ("fedrevive", "femnist"): {
            "server_lr": 0.05,
            "settings": {
                "kd_lr": 1e-4, "generator_lr": 0.01, "latent_lr": 0.003, "alpha_feat": 0.3, "t_probe": 1.4,
                "freeze_rounds": 400, "synthesis_only_rounds": 500, "adversarial_from": 51,
            },
        },
        ("fedrevive", "newsgroups20"): {
            "settings": {
                "kd_lr": 3e-4, "generator_lr": 0.01, "latent_lr": 0.1, "alpha_feat": 1e-4, "t_probe": 1.6,
                "snippets": "cross",
            },
        },
    },
    proposed=("fedrevive", "afl_dw", "dd_fedrevive"),
)  # fmt: skip

# §4: 12 devices, bursts of 4 (4 and 2 in the small set-up), local training, iterations; App. F: frames per clip; App.
# H: the chain of teachers on Kinetics. Ours: SGD with a weight decay of 1e-4, the partition's rule and a bias of 0.5.
_CLIPS = {
    "model": "resnet3d",
    "model_settings": {"width": 64, "blocks": "resnet18", "norm": "batch"},
    "initial": "teacher_chain",
}
KUIPER = SetUp(
    common={
        "clients": 12,
        "concurrency": 12,
        "buffer_size": 4,
        "partition": "noniid_bias",
        "partition_settings": {"bias": 0.5},
        "client_optimizer": "sgd",
        "weight_decay": 1e-4,
        "client_lr": 1e-3,
        "local_epochs": 3,
        "batch_size": 8,
        "rounds": 200,
    },
    tasks={
        "hmdb51": {**_CLIPS, "initial_settings": {"task": "kinetics"}, "delay": "kuiper_hmdb51"},
        "ucf101": {
            **_CLIPS,
            "task_settings": {"frames": 32},
            "initial_settings": {"task": "kinetics", "task_settings": {"frames": 32}},
            "delay": "kuiper_ucf101",
        },
    },
    methods={"kuiper": {}, "fedavg": {}, "fedbuff": {}, "fedasync": {}},
    proposed=("kuiper",),
)

# §V-A: clients, concurrency, response times, horizon, rates, batch, the buffer of methods that have one. From FLGo, the
# framework that the paper uses: models, the Dirichlet partition, 5 local epochs, no weight decay.
_REFILLED = {"redispatch": "refill"}
FEDADT = SetUp(
    common={
        "model": "flgo_cnn",
        "clients": 500,
        "concurrency": 100,
        "delay": "fedadt",
        "partition": "dirichlet_flgo",
        "alpha": 0.1,
        "horizon": 1_296_000,
        "local_epochs": 5,
        "batch_size": 32,
        "client_optimizer": "sgd",
        "client_lr": 0.01,
        "client_lr_decay": 0.9999,
        "weight_decay": 0.0,
    },
    tasks={"mnist": {}, "fashion_mnist": {}, "cifar10": {}, "cifar100": {}},
    methods={
        "fedavg": {},
        "fedavgm": {},
        "fedbuff": {**_REFILLED, "buffer_size": 10},
        "ca2fl": {**_REFILLED, "buffer_size": 10},
        "fedasync": _REFILLED,
        "fedfa": _REFILLED,
        "fedadt": {**_REFILLED, "settings": {"kd_fraction": 0.005}},
    },
    proposed=("fedadt",),
)

SETUPS: dict[str, SetUp] = {"fedecho": FEDECHO, "fedrevive": FEDREVIVE, "kuiper": KUIPER, "fedadt": FEDADT}
"""The papers' experiments, in the order in which :func:`setup_of` looks through them."""


def setup_of(task: str, algorithm: str, wanted: str | None = None) -> SetUp | None:
    """Return the set-up that gives a method on a task its default settings.

    Args:
        task: the task.
        algorithm: the method.
        wanted: a name in :data:`SETUPS`, or ``ours``. By default, the method's own paper if it trains on the task; else
            the first paper that compares the method there; else the first that trains on the task at all.

    Returns:
        The paper's set-up, or None for this package's own settings.

    Raises:
        ConfigError: for a name that is not known, or a paper that prints nothing for the task.
    """
    if wanted == OURS:
        return None
    if wanted is not None:
        if wanted not in SETUPS:
            raise ConfigError(unknown_name("setup", wanted, [*SETUPS, OURS]))
        if task not in SETUPS[wanted].tasks:
            raise ConfigError(f"setup: {wanted!r} has tasks {', '.join(SETUPS[wanted].tasks)}, got {task!r}")
        return SETUPS[wanted]
    there = [setup for setup in SETUPS.values() if task in setup.tasks]
    closeness = [lambda one: algorithm in one.proposed, lambda one: algorithm in one.methods, lambda one: True]
    return next((setup for near in closeness for setup in there if near(setup)), None)

"""All defaults of a configuration, each with its origin.

For each setting, a configuration takes the first value that it finds. The user's own value comes first. On a paper's
task, the values that the paper prints come next (``setups.py``). On other tasks, this package's own values come next:
the value that a search chose (``defaults.yaml``), then the method's value on the task, then the task's value. Last, on
all tasks, come the method's value and the value common to all methods. Change a number where it is defined, and nowhere
else. Nothing here depends on recorded results, so the same call is the same run everywhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib import resources
from typing import Any, NamedTuple

import yaml

from asyncfl_lite.base.errors import ResultError
from asyncfl_lite.runs.setups import SETUPS, setup_of

# FedEcho §5.1: 50 clients, 25 in flight, buffer 5, 2 local epochs, batch 50, SGD with weight decay 1e-4,
# Dirichlet 0.1, 500 rounds, large delay.
COMMON: dict[str, Any] = {
    "task": "digits",
    "model": "mlp",
    "algorithm": "fedbuff",
    "delay": "fedecho_large",
    "partition": "dirichlet_class",
    "alpha": 0.1,
    "clients": 50,
    "concurrency": 25,
    "buffer_size": 5,
    "rounds": 500,
    "local_epochs": 2,
    "batch_size": 50,
    "client_optimizer": "sgd",
    "client_lr": 0.01,
    "weight_decay": 1e-4,
    "server_lr": 1.0,
}

# Settings of a method on all tasks, from its own paper or from a paper that compares it: FedEcho Tables 8 and 9 for
# the rates of FADAS, FedAC and FedEcho; FedRevive §4 and Table 4 for its family (Adam, 25 local steps, batch 32);
# KUIPER §4; FedADT §V-A.
_FEDREVIVE: dict[str, Any] = {
    "client_optimizer": "adam",
    "client_lr": 3e-4,
    "weight_decay": 0.0,
    "local_steps": 25,
    "batch_size": 32,
    "server_lr": 0.1,
}
METHODS: dict[str, dict[str, Any]] = {
    "fedecho": {"client_lr": 0.03},
    "fadas": {"client_lr": 0.1, "server_lr": 1e-4},
    "fedac": {"client_lr": 0.1, "server_lr": 1e-4},
    "fedadam": {"server_lr": 0.1},  # ours: the paper tunes it by task
    "fedrevive": _FEDREVIVE,
    "afl_dw": _FEDREVIVE,
    "dd_fedrevive": {**_FEDREVIVE, "server_lr": 0.2},
    "kuiper": {"client_lr": 1e-3, "local_epochs": 3, "batch_size": 8},
    "fedadt": {"client_lr_decay": 0.9999, "batch_size": 32},
}

# No paper trains on these tasks; their data and models are smaller than any paper's. Model, batch size, learning rates
# and horizon are ours. The clients' rate is the best one for FedBuff at large delay and α = 0.1, on seeds 100 to 102,
# which no recorded result uses. It was chosen on digits from 0.03, 0.1, 0.2, 0.3, and on mnist5k (150 versions) from
# 0.01, 0.02, 0.03, 0.05, 0.1, 0.2.
_SMALL: dict[str, Any] = {"client_optimizer": "sgd", "weight_decay": 1e-4, "local_epochs": 2, "batch_size": 10}
# FedEcho App. A.1.2 for text: 10 clients, 5 in flight, a buffer of 3, one local epoch of AdamW, Dirichlet 0.6.
_LANGUAGE: dict[str, Any] = {
    "client_optimizer": "adamw",
    "weight_decay": 1e-4,
    "local_epochs": 1,
    "batch_size": 16,
    "clients": 10,
    "concurrency": 5,
    "buffer_size": 3,
    "alpha": 0.6,
}
TASKS: dict[str, dict[str, Any]] = {
    "digits": {**_SMALL, "model": "mlp", "client_lr": 0.1, "rounds": 100},
    "mnist5k": {**_SMALL, "model": "cnn", "client_lr": 0.05, "rounds": 300},
    "pairdigits100": {**_SMALL, "model": "mlp", "model_settings": {"hidden": (128,)}, "client_lr": 0.1, "rounds": 300},
    "glyphs": {**_SMALL, "model": "mlp", "model_settings": {"hidden": (32,)}, "client_lr": 0.02, "rounds": 200},
    "glyphs50": {
        **_SMALL,
        "model": "mlp",
        "model_settings": {"hidden": (64,)},
        "clients": 12,
        "concurrency": 12,
        "buffer_size": 4,
        "delay": "kuiper_hmdb51",
        "partition": "noniid_bias",
        "local_epochs": 3,
        "batch_size": 16,
        "client_lr": 0.2,
        "rounds": 150,
    },
    "overlaid_mnist": {**_SMALL, "model": "mlp", "model_settings": {"hidden": (32,)}, "client_lr": 0.05, "rounds": 200},
    "overlaid_pairs100": {
        **_SMALL,
        "model": "mlp",
        "model_settings": {"hidden": (64,)},
        "client_lr": 0.05,
        "rounds": 300,
    },
    "writers": {**_SMALL, "model": "cnn", "partition": "natural", "clients": 200, "client_lr": 0.1, "rounds": 200},
    "fashion_mnist": {
        **_SMALL,
        "model": "cnn",
        "model_settings": {"channels": (16, 32)},
        "client_lr": 0.1,
        "rounds": 300,
    },
    "mnist": {**_SMALL, "model": "cnn", "model_settings": {"channels": (16, 32)}, "client_lr": 0.1, "rounds": 300},
    "pydoc_topics": {
        **_LANGUAGE,
        "model": "text_transformer",
        "model_settings": {"width": 64},
        "batch_size": 8,
        "client_lr": 0.002,
        "rounds": 60,
    },
    "topics20": {**_LANGUAGE, "model": "text_transformer", "batch_size": 8, "client_lr": 0.003, "rounds": 40},
    "topics20_bags": {**_SMALL, "model": "mlp", "model_settings": {"hidden": (32,)}, "client_lr": 0.02, "rounds": 200},
    "newsgroups20_vectors": {
        **_SMALL,
        "model": "mlp",
        "model_settings": {"hidden": (32,)},
        "client_lr": 0.1,
        "rounds": 200,
    },
    "pairs": {**_LANGUAGE, "model": "t5", "batch_size": 8, "client_lr": 0.001, "rounds": 60},
    "pydoc_chars": {
        **_LANGUAGE,
        "model": "lstm",
        "clients": 30,
        "concurrency": 10,
        "buffer_size": 5,
        "partition": "natural",
        "batch_size": 10,
        "client_lr": 0.005,
        "rounds": 120,
    },
    "modmath": {
        **_LANGUAGE,
        "model": "causal_lm",
        "weight_decay": 0.0,
        "batch_size": 20,
        "client_lr": 0.001,
        "rounds": 80,
    },
    "movingdigits": {
        **_SMALL,
        "model": "resnet3d",
        "clients": 12,
        "concurrency": 12,
        "buffer_size": 4,
        "delay": "kuiper_hmdb51",
        "client_lr": 0.2,
        "rounds": 50,
    },
}

# The other methods' rates were chosen in the same way (best mean final accuracy after 500 updates) from two to five
# client rates of 0.05 to 0.5 and, if the method has a server rate, two to five server rates; FedBuff's four are above.
# FedEcho's were chosen from client rates (on mnist5k 0.05, 0.1, 0.2) and distillation rates of 1e-5 to 3e-4 (on
# mnist5k 3e-5 and 1e-4, natural set). As in the paper (0.03 against FedBuff's 0.01), its clients tolerate a larger
# rate. The paper's distillation rate of 3e-6, which moves a ResNet-18 by a hundredth in a round, is too small for
# models of this size. FedRevive's were chosen in 60 runs that changed one rate at a time: that of the clients, the
# server, the distillation, the generator or the latents. AFL-DW has its own best rates, not FedRevive's (with those,
# 0.4 and s_max 30, it is 9 points worse).
_QUICK_SYNTHESIS = {
    "s_max": 30.0,
    "freeze_rounds": 20,
    "synthesis_only_rounds": 50,
    "adversarial_from": 4,
    "nz": 32,
    "ngf": 16,
}
_OVERLAID = ("overlaid_mnist", "overlaid_pairs100")
_OURS: dict[tuple[str, str], dict[str, Any]] = {
    ("fedavg", "digits"): {"client_lr": 0.5},
    ("fedavgm", "digits"): {"client_lr": 0.2, "server_lr": 0.3},
    ("fedadam", "digits"): {"client_lr": 0.2, "server_lr": 0.1},
    ("fedprox", "digits"): {"client_lr": 0.3},
    ("fedasync", "digits"): {"client_lr": 0.3},
    ("fedfa", "digits"): {"client_lr": 0.3},
    ("fedasmu", "digits"): {"client_lr": 0.3},
    ("ca2fl", "digits"): {"client_lr": 0.3, "server_lr": 0.3},
    ("fadas", "digits"): {"client_lr": 0.2, "server_lr": 0.003},
    ("fedac", "digits"): {"client_lr": 0.1, "server_lr": 0.002},
    ("kuiper", "digits"): {"client_lr": 0.2},
    ("fedadt", "digits"): {"client_lr": 0.3, "settings": {"kd_fraction": 0.05}},  # 0.005 would be 7 samples
    ("afl_dw", "digits"): {"client_lr": 0.2, "server_lr": 0.2},
    ("dd_fedrevive", "digits"): {"client_lr": 0.2, "server_lr": 0.6, "settings": {"kd_lr": 0.003}},
    ("fedrevive", "digits"): {
        "client_lr": 0.2,
        "server_lr": 0.4,
        "settings": {
            **_QUICK_SYNTHESIS,
            "generator_lr": 0.01,
            "latent_lr": 0.3,
            "k_synth": 5,
            "kd_lr": 2e-3,
            "alpha_feat": 0.1,
        },
    },
    ("fedecho", "digits"): {"client_lr": 0.2, "settings": {"distill_lr": 1e-4, "distill_samples": 500}},
    ("fedecho", "mnist5k"): {"client_lr": 0.1, "settings": {"distill_lr": 1e-4, "distill_samples": 500}},
    **{("fedecho", task): {"settings": {"distill_lr": 1e-4, "distill_samples": 500}} for task in _OVERLAID},
}

# Values on small tasks that no search chose (the values in defaults.yaml replace them): smaller distillation sets,
# larger distillation rates, and server rates for horizons of a hundred updates.
_UNTUNED: tuple[str, ...] = (
    "pairdigits100",
    "writers",
    "mnist",
    "fashion_mnist",
    "movingdigits",
    "modmath",
    "glyphs",
    "glyphs50",
)
_UNTUNED += ("overlaid_mnist", "overlaid_pairs100", "pydoc_topics", "topics20", "topics20_bags", "pairs")
_UNTUNED += ("pydoc_chars", "newsgroups20_vectors")
_ON_SMALL_TASKS: dict[str, dict[str, Any]] = {
    "fedecho": {"settings": {"distill_samples": 100, "distill_lr": 1e-4}},
    "fedadt": {"settings": {"kd_fraction": 0.05}},
    "fedac": {"server_lr": 0.002},
    "fadas": {"server_lr": 0.003},
    "afl_dw": {"server_lr": 0.2},
    "dd_fedrevive": {"server_lr": 0.6, "settings": {"kd_lr": 0.001}},
    "fedrevive": {
        "server_lr": 0.4,
        "settings": {
            **_QUICK_SYNTHESIS,
            "kd_lr": 1e-3,
        },
    },
}

METHODS_ON_TASKS: dict[tuple[str, str], dict[str, Any]] = {
    **{(method, task): layer for task in _UNTUNED for method, layer in _ON_SMALL_TASKS.items()},
    **_OURS,
}


ONE_OF = (("rounds", "horizon"), ("local_epochs", "local_steps"))
"""Mutually exclusive settings: giving one drops the other's default."""


def without_replaced(weaker: dict[str, Any], stronger: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``weaker`` without the settings that a setting in ``stronger`` excludes; see :data:`ONE_OF`."""
    given = {name for name, value in stronger.items() if value is not None}
    replaced = {pair[1 - place] for pair in ONE_OF for place in (0, 1) if pair[place] in given}
    return {name: value for name, value in weaker.items() if name not in replaced}


DIGEST = b"# SHA-256 of all lines below: "
"""Begins the line above the searched values in ``defaults.yaml``."""


def searched_in(content: bytes) -> dict[str, dict[str, Any]]:
    """Return the searched values in the content of ``defaults.yaml``.

    Raises:
        ResultError: if they do not have their digest.
    """
    digest, _, values = content.partition(DIGEST)[2].partition(b"\n")
    if hashlib.sha256(values).hexdigest().encode() != digest:
        raise ResultError("defaults.yaml: damaged or changed by hand; restore it, or install the package again")
    return yaml.safe_load(values)


SEARCHED = searched_in(resources.files(__package__).joinpath("defaults.yaml").read_bytes())
"""Task -> ``study`` and, by method, the values that the search chose."""


class Layer(NamedTuple):
    """Defaults from one source, such as a paper or a task, with the source in words.

    Attributes:
        origin: the source of the values, in words.
        values: setting -> value; the method's own options are in the group ``settings``.
    """

    origin: str
    values: dict[str, Any]


def layers_of(task: str, algorithm: str, setup: str | None = None) -> list[Layer]:
    """Return the layers of defaults for one method on one task, weakest first.

    Args:
        task, algorithm: names of the task and the method.
        setup: the paper whose experiments to follow, or ``ours``; see :func:`~asyncfl_lite.runs.setups.setup_of`.
    """
    layers = [Layer("common to all", COMMON), Layer(f"the method {algorithm}", METHODS.get(algorithm, {}))]
    paper = setup_of(task, algorithm, setup)
    if paper is not None:
        name = next(name for name, one in SETUPS.items() if one is paper)
        return layers + [Layer(f"the paper of {name}", values) for values in paper.layers(task, algorithm)]
    found = SEARCHED.get(task, {"study": "", "methods": {}})
    return [
        *layers,
        Layer(f"the task {task}", TASKS.get(task, {})),
        Layer(f"the method {algorithm} on {task}", METHODS_ON_TASKS.get((algorithm, task), {})),
        Layer(f"searched: {found['study']}", found["methods"].get(algorithm, {})),
    ]


def defaults(task: str, algorithm: str, setup: str | None = None) -> dict[str, Any]:
    """Return the defaults of one method on one task; ``settings`` holds the method's own options.

    Args:
        task, algorithm, setup: as for :func:`layers_of`.
    """
    merged: dict[str, Any] = {"settings": {}}
    for _, layer in layers_of(task, algorithm, setup):
        options = {**merged["settings"], **layer.get("settings", {})}
        merged = {**without_replaced(merged, layer), **layer, "settings": options}
    return merged

"""Settings that cannot be: of every group, of a wrong type, out of range, misspelt, or not together."""

from __future__ import annotations

import datetime
import math
from typing import Any

from asyncfl_lite.runs.config import RENAMED

NAN, INF = math.nan, math.inf
HUGE = 10**5000
"""Python refuses to write out as long a number."""

CONFIGURATIONS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("misspelt-setting", {"roundz": 3}, ("setting: 'roundz' is not known; did you mean 'rounds'? Allowed: algorithm",)),
    ("no-string-as-name", {1: 3}, ("setting: 1 is not known. Allowed: algorithm",)),
    *((f"earlier-{old}", {old: 1}, (f"{old}: is called {now} now",)) for old, now in RENAMED.items()),
    ("break-in-a-name", {"a\nb": 3}, (r"'a\nb' is not known",)),
    ("preset-misspelt", {"preset": "fedrevibe"}, ("preset: 'fedrevibe' is not known; did you mean 'fedrevive'? Allowed: fedadt, fedecho, ",)),
    ("preset-of-other-tasks", {"preset": "fedrevive"}, ("preset: 'fedrevive' has tasks cifar10, cifar100, femnist, newsgroups20, got 'digits'",)),
    ("task-endless", {"task": "x" * 10**4}, ("task: 'xxx", "is not known. Allowed: cifar10,")),
    ("algorithm-misspelt", {"algorithm": "FedEco"}, ("algorithm: 'FedEco' is not known; did you mean 'fedecho'?",)),
    ("alpha-missing", {"alpha": None}, ("alpha: partition 'dirichlet_class' needs it, got None",)),
    ("alpha-of-none-that-uses-it", {"partition": "iid", "alpha": 0.5}, ("alpha: partition 'iid' does not use it, got 0.5",)),
    ("alpha-zero", {"alpha": 0}, ("alpha: must be greater than 0, got 0",)),
    ("alpha-infinite", {"alpha": INF}, ("alpha: must be a finite number, got inf",)),
    ("alpha-true", {"alpha": True}, ("alpha: must be a number, not true or false, got True",)),
    ("alpha-of-the-partition", {"alpha": 2, "partition_settings": {"alpha": 7}}, ("partition_settings.alpha: must be left out; give it as alpha, got 7",)),
    ("clients-zero", {"clients": 0}, ("clients: must be greater than or equal to 1, got 0",)),
    ("clients-true", {"clients": True}, ("clients: must be a number, not true or false, got True",)),
    ("clients-too-many", {"clients": 10**30}, ("clients: must be less than or equal to 10000000, got 1000",)),
    ("concurrency-above-clients", {"concurrency": 51}, ("concurrency: must be at most clients (50), got 51",)),
    ("concurrency-a-word-in-a-burst", {"scheduling": "burst", "concurrency": "x"}, ("concurrency: must be a valid integer", "got 'x'")),
    ("buffer-zero", {"buffer_size": 0}, ("buffer_size: must be greater than or equal to 1, got 0",)),
    ("buffer-of-a-method-without", {"algorithm": "fedasync", "buffer_size": 3}, ("buffer_size: FedAsync has no buffer; must be 1, got 3",)),
    ("buffer-that-never-fills", {"scheduling": "burst", "buffer_size": 60}, ("buffer_size: a buffer of 60 can never fill", "must be at most 50")),
    ("buffer-above-a-round", {"algorithm": "fedavg", "buffer_size": 26}, ("buffer_size: a buffer of 26 can never fill with 25 clients",)),
    ("rounds-half", {"rounds": 2.5}, ("rounds: must be a valid integer, got a number with a fractional part, got 2.5",)),
    ("rounds-endless", {"rounds": HUGE}, ("rounds: must be less than 2**63, got a number of thousands of digits",)),
    ("no-end", {"rounds": None}, ("rounds, horizon: at least one of them must be given",)),
    ("horizon-infinite", {"horizon": INF}, ("horizon: must be a finite number, got inf",)),
    ("epochs-and-steps", {"local_epochs": 1, "local_steps": 3}, ("local_epochs, local_steps: exactly one of them must be given",)),
    ("batch-a-huge-float", {"batch_size": 1e30}, ("batch_size: must be a whole number below 2**63, got 1e+30",)),
    ("optimiser-unknown", {"client_optimizer": "SGD"}, ("client_optimizer: must be 'sgd', 'adam' or 'adamw', got 'SGD'",)),
    ("rate-a-date", {"client_lr": datetime.date(2026, 1, 1)}, ("client_lr: must be a valid number, got datetime.date(2026, 1, 1)",)),
    ("server-rate-of-a-method-without", {"algorithm": "fedasync", "server_lr": 2}, ("server_lr: fedasync has none; must be 1, got 2.0",)),
    ("hidden-negative", {"model": "mlp", "model_settings": {"hidden": [-4]}}, ("model_settings.hidden.0: must be", "1, got -4")),
    ("device-unknown", {"device": "gpu"}, ("device: must be auto or a device of torch's, such as cpu, cuda or cuda:1, got 'gpu'",)),
    ("threads-too-many", {"threads": 10**20}, ("threads: must be less than or equal to 1024, got 100000000000000000000",)),
    ("selection-without-rounds", {"selection": "oort"}, ("selection: 'oort' chooses a round at a time, so scheduling must be 'rounds', got 'before_agg'",)),
    ("switches-no-mapping", {"settings": 3}, ("settings: must be a mapping of staleness_weight, buffer_weight, server_lr_decay, delay_adaptive, da_rule, tau_c, got 3",)),
    ("switch-of-another-method", {"settings": {"distill_lr": 1}}, ("settings: 'distill_lr' is not known. Allowed: buffer_weight, da_rule, delay_adaptive, server_lr_decay, staleness_weight, tau_c",)),
    ("layers-a-word", {"model_settings": {"hidden": "big"}}, ("model_settings.hidden: must be a valid tuple, got 'big'",)),
    ("no-channels", {"model": "cnn", "model_settings": {"channels": []}}, ("model_settings.channels: must have at least 1 item, got []",)),
    ("task-without-settings", {"task_settings": {"side": 14}}, ("task_settings: 'side' is not known. Allowed: none",)),
    ("split-not-offered", {"task": "mnist", "task_settings": {"split": "even"}}, ("task_settings.split: must be 'fixed' or 'seeded', got 'even'",)),
    ("other-images-its-own", {"task": "mnist", "task_settings": {"cross": "mnist"}}, ("task_settings.cross: must be other images than MNIST's own, got 'mnist'",)),
    ("law-needs-more", {"delay": "uniform"}, ("delay_settings.low: must be given",)),
    ("law-upside-down", {"delay": "uniform", "delay_settings": {"low": 3, "high": 1}}, ("delay_settings.low: must be at most high (1.0), got 3.0",)),
    ("law-nan", {"delay": "per_client", "delay_settings": {"durations": [1, NAN]}}, ("delay_settings.durations.1: must be", "got nan")),
    ("trace-no-path", {"delay": "trace", "delay_settings": {"path": 3}}, ("delay_settings.path: must be a path, got 3",)),
    ("momentum-of-adam", {"client_momentum": 0.9, "client_optimizer": "adam"}, ("client_momentum: needs client_optimizer 'sgd', got 'adam'",)),
    ("nesterov-without-momentum", {"client_nesterov": True}, ("client_nesterov: needs a client_momentum above 0, got 0",)),
    ("momentum-one", {"client_momentum": 1.0}, ("client_momentum: must be less than 1, got 1.0",)),
    ("bandwidth-of-nothing", {"delay": "bandwidth"}, ("delay_settings.megabytes: must be given",)),
]  # fmt: skip

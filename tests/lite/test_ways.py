"""One table of runs: in lockstep with all others, killed and resumed, and without training, each is as it is alone."""

from __future__ import annotations

import functools
import random

import pandas as pd
import pytest

from asyncfl_lite import Config, run, run_many, schedule
from asyncfl_lite.algorithms import ALGORITHMS
from conftest import EVERYTHING, die_after, same

pytestmark = pytest.mark.usefixtures("quick_syntheses")
SMALL = {
    "task": "digits", "clients": 10, "concurrency": 5, "rounds": 6, "local_steps": 4, "eval_every": 2, "client_lr": 0.1
}  # fmt: skip
ECHO = {"algorithm": "fedecho", "settings": {"distill_samples": 50}}
REVIVED = {
    "algorithm": "fedrevive", "rounds": 10, "settings": {
        "freeze_rounds": 1, "synthesis_only_rounds": 2, "adversarial_from": 3, "nz": 8, "ngf": 4, "alpha_feat": 0.1,
        "kd_batch_size": 8, "k_kd": 3,
    },
}  # fmt: skip
CNN = {"model": "cnn"}
BATCH_NORM = {**CNN, "model_settings": {"norm": "batch", "channels": (2, 3)}}
RUNS = {
    **{name: {"algorithm": name} for name in ALGORITHMS if name not in ("fedecho", "fedrevive")},
    "another seed": {"seed": 1},
    "another rate": {"algorithm": "fedasync", "client_lr": 0.05, "client_lr_decay": 0.9},
    "echo": ECHO,
    "echo's other seed": {**ECHO, "seed": 1},
    "echo on noise": {**ECHO, "settings": {"distill_samples": 51, "distill_set": "noise"}},  # the last minibatch is one
    "echo by SGD": {**ECHO, "settings": {"distill_samples": 50, "distill_opt": "sgd"}},
    "echo one by one": {**ECHO, "vectorize": "off"},
    "corrected longer jobs": {"algorithm": "fedac", "server_lr": 0.01, "seed": 3, "local_steps": 6},
    "teachers that are versions": {"algorithm": "fedadt", "rounds": 15, "seed": 1, "client_lr": 0.05},
    "revived": REVIVED,
    "revived, another seed": {**REVIVED, "seed": 1},
    "revived by trackers": {**REVIVED, **CNN, "rounds": 6, "model_settings": {"norm": "tracker", "channels": (2, 3)}},
    "revived with running statistics": {**REVIVED, **BATCH_NORM, "rounds": 6},
    "momentum on a cosine": {"client_momentum": 0.9, "client_nesterov": True, "client_lr_schedule": "cosine", "client_lr_period": 4},
    "post-evaluation": {"algorithm": "kuiper", "settings": {"acc": "post_eval"}},
    "images": CNN,
    "running statistics": BATCH_NORM,
    "a queue of running statistics": {"algorithm": "fedfa", **BATCH_NORM},
    "odd widths": {"batch_size": 10, "model_settings": {"hidden": (31,)}},
    "one sample a minibatch": {"batch_size": 1},
    "Oort": {"algorithm": "fedavg", "selection": "oort"},
    "words": {"task": "modmath", "rounds": 4, "concurrency": 2, "buffer_size": 1, "local_steps": 1},
    **{f"faults, {name}": {"scheduling": name, "faults": EVERYTHING, "rounds": 8, "server_time": 0.2}
       for name in ("before_agg", "after_agg", "burst", "refill", "rounds")},
}  # fmt: skip


def config_of(name: str, **more) -> Config:
    return Config(**{**SMALL, **RUNS[name], **more})


@functools.cache
def alone(name: str):
    return run(config_of(name))


@functools.cache
def in_company() -> dict:
    """All at once, for the first row's test."""
    return dict(zip(RUNS, run_many([config_of(name) for name in RUNS]), strict=True))


def resumed(name: str, path):
    """Killed twice, after random numbers of arrivals, and ended by a third process's beginning."""
    config, arrivals = config_of(name, checkpoint_every=1), len(alone(name).updates)
    for kill in sorted(random.Random(name).sample(range(1, arrivals), 2)):
        die_after(kill, config, path)
    result = run(config, checkpoint=path)
    assert not path.exists()
    return result


@pytest.mark.parametrize("name", RUNS)
def test_in_lockstep_it_is_as_alone(name):
    same(in_company()[name], alone(name))


@pytest.mark.parametrize("name", RUNS)
def test_killed_anywhere_it_ends_the_same(name, tmp_path):
    same(resumed(name, tmp_path / "run.pt"), alone(name))


@pytest.mark.parametrize("name", sorted(set(RUNS) - {"Oort"}))  # whose choice depends on losses
def test_its_schedule_is_known_without_training(name):
    planned, ran = schedule(config_of(name)), alone(name)
    plan = ["client", "dispatched_at", "arrived_at", "start_version", "staleness", "num_samples", "accepted", "version"]
    plan += ["faults"] if name.startswith("faults") else []
    pd.testing.assert_frame_equal(planned.updates[plan], ran.updates[plan], check_exact=True)
    assert planned.in_flight.equals(ran.in_flight) and planned.clients.equals(ran.clients)
    assert planned.digest == ran.summary["schedule_sha256"] != schedule(config_of(name, seed=9)).digest


def test_the_rows_do_what_they_are_there_for():
    """Samples are made up, jobs lost and doubled, clients' work weighted; and every row ends elsewhere."""
    weights = {name: alone(name).summary["weights_sha256"] for name in RUNS}
    assert len(set(weights.values())) >= len(RUNS) - 3, weights
    for name in RUNS:
        if name.startswith("faults"):
            assert alone(name).summary["lost_jobs"] > 0 < alone(name).summary["duplicate_updates"]
    assert run(config_of("fedbuff")).summary == alone("fedbuff").summary

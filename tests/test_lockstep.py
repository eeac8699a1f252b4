"""Several runs at once: every number exactly as alone."""

from __future__ import annotations

import pandas as pd
import pytest
import torch

from asyncfl_lite import Config, run, run_many
from asyncfl_lite.clients.cohort import Cohort
from asyncfl_lite.clients.trainer import Trainer
from asyncfl_lite.runs.results import TABLES

SMALL = {
    "task": "digits", "clients": 10, "concurrency": 5, "rounds": 6, "local_steps": 4, "eval_every": 2, "client_lr": 0.1
}  # fmt: skip
MIXED = [
    {"algorithm": "fedbuff"},
    {"algorithm": "fedbuff", "seed": 1},
    {"algorithm": "fedasync", "client_lr": 0.05},
    {"algorithm": "fedecho", "settings": {"distill_samples": 50}},
    {"algorithm": "fedac", "server_lr": 0.01},
    {"algorithm": "fedac", "server_lr": 0.01, "seed": 3, "local_steps": 6},
    {"algorithm": "fedprox"},
    {"algorithm": "fedasmu", "client_lr_decay": 0.9},
    {"algorithm": "fedbuff", "model": "cnn"},
    {"algorithm": "fedbuff", "model": "cnn", "model_settings": {"norm": "batch"}},
    {"algorithm": "kuiper", "settings": {"acc": "post_eval"}},
]


@pytest.fixture(scope="module")
def both():
    configs = [Config(**{**SMALL, **more}) for more in MIXED]
    return list(zip(run_many(configs), map(run, configs), strict=True))


@pytest.mark.parametrize("place", range(len(MIXED)), ids=lambda place: str(MIXED[place]))
def test_each_run_is_as_alone(both, place):
    together, alone = both[place]
    assert together.config == alone.config and together.summary == alone.summary
    for table in TABLES:
        pd.testing.assert_frame_equal(getattr(together, table), getattr(alone, table), check_exact=True)
    assert torch.equal(together.x, alone.x)


def test_jobs_share_cohorts_only_where_clients_compute_the_same(monkeypatch):
    shapes = []

    class Watched(Cohort):
        def __init__(self, model, data, training, works):
            shapes.append((len(works), model.num_parameters, training.proximal, works[0].job.correction is None))
            super().__init__(model, data, training, works)

    monkeypatch.setattr("asyncfl_lite.clients.trainer.Cohort", Watched)
    run_many([Config(**{**SMALL, **more}) for more in MIXED[:9]])
    assert max(size for size, *_ in shapes) > 15  # FedBuff twice, FedAsync, FedEcho: five jobs each at the start
    assert len({shape[1:] for shape in shapes}) == 4  # those, FedAC with corrections, FedProx, the CNN


def test_alone_in_company_is_alone():
    config = Config(**SMALL)
    (only,) = run_many([config])
    assert only.summary == run(config).summary


def test_nothing_to_run():
    assert run_many([]) == []


def test_time_is_shared_out(both):
    assert all(result.timing["training_cpu_seconds"] > 0 for result, _ in both)
    assert all(result.timing["cpu_seconds"] >= result.timing["training_cpu_seconds"] for result, _ in both)


def test_a_trainer_that_takes_jobs_one_by_one_shares_with_nobody():
    trainer = Trainer.__new__(Trainer)
    trainer.cohort = False
    assert trainer.shared is None

"""An interrupted run goes on bit for bit; a checkpoint that cannot be used is named."""

from __future__ import annotations

import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asyncfl_lite import Config, run
from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.errors import ConfigError
from asyncfl_lite.runner import Run

SMALL = {"clients": 8, "concurrency": 4, "eval_every": 2, "seed": 5, "delay": "fedecho_mild"}


class Interrupted(Exception):
    pass


def interrupt_after(config, path, arrivals):
    """Run until so many arrivals, then die."""
    started = Run(config, checkpoint=path)

    def die(simulation, arrival):
        if len(simulation.arrivals) >= arrivals:
            raise Interrupted

    started.simulation.observers.append(die)
    with pytest.raises(Interrupted):
        started.finish()


def equal(left, right):
    assert left.summary == right.summary
    pd.testing.assert_frame_equal(left.curve, right.curve, check_exact=True)
    pd.testing.assert_frame_equal(left.updates, right.updates, check_exact=True)
    assert torch.equal(left.x, right.x)


def configs(algorithm):
    base = {**SMALL, "algorithm": algorithm, "rounds": 8, "checkpoint_every": 1}
    method = ALGORITHMS.get(algorithm)
    if method.buffered and method.redispatch != "rounds":
        base["buffer_size"] = 3
    if algorithm == "fedecho":
        base["settings"] = {"distill_samples": 60, "adam_state": "persist"}
    return base


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kills=st.lists(st.integers(1, 7), min_size=1, max_size=3))
def test_killed_anywhere_it_ends_the_same(algorithm, kills, tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.pt"
    config = Config(**configs(algorithm))
    whole = Run(config, checkpoint=path.with_name("other.pt")).finish()
    for arrivals in sorted(kills):
        interrupt_after(config, path, arrivals)
    equal(run(config, checkpoint=path), whole)
    assert not path.exists()


@pytest.mark.parametrize("redispatch", ["burst", "refill", "rounds"])
def test_other_policies_too(redispatch, tmp_path):
    config = Config(**{**configs("fedbuff"), "redispatch": redispatch})
    interrupt_after(config, tmp_path / "run.pt", 11)
    equal(run(config, checkpoint=tmp_path / "run.pt"), run(config, checkpoint=tmp_path / "new.pt"))


def test_running_statistics_too(tmp_path):
    config = Config(**{**configs("fedbuff"), "model": "cnn", "model_settings": {"norm": "batch"}})
    interrupt_after(config, tmp_path / "run.pt", 11)
    equal(run(config, checkpoint=tmp_path / "run.pt"), run(config, checkpoint=tmp_path / "new.pt"))


@pytest.mark.parametrize("damage", ["cut", "words", "other"])
def test_an_unusable_checkpoint_is_named_and_the_run_starts_over(damage, tmp_path):
    path, config = tmp_path / "run.pt", Config(**configs("fedbuff"))
    if damage == "other":
        interrupt_after(Config(**{**configs("fedbuff"), "seed": 99}), path, 10)
    else:
        interrupt_after(config, path, 10)
        path.write_bytes(path.read_bytes()[:1000] if damage == "cut" else b"not a checkpoint")
    with pytest.warns(UserWarning, match="run.pt: checkpoint not used, the run starts over"):
        again = run(config, checkpoint=path)
    equal(again, run(config, checkpoint=tmp_path / "new.pt"))


def test_saving_changes_nothing(tmp_path):
    saved = run(Config(**configs("fedecho")), checkpoint=tmp_path / "run.pt")
    equal(saved, run(Config(**{**configs("fedecho"), "checkpoint_every": None})))


def test_it_needs_a_place():
    with pytest.raises(ConfigError, match="^checkpoint_every: needs a file"):
        run(Config(checkpoint_every=3))

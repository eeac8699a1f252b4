"""A configuration gives the same bits whatever the program around it has done to torch, or another hash."""

from __future__ import annotations

import threading
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from asyncfl_lite import Config, run, run_many, schedule
from asyncfl_lite.base.devices import SETTINGS, usual_torch
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.runs.assembly import _loaded, task_of
from asyncfl_lite.runs.store import checksum

SMALL = {"clients": 4, "concurrency": 2, "buffer_size": 1, "rounds": 1, "local_steps": 1, "batch_size": 16}
RUNS = [Config(model="cnn", **SMALL), Config(model_settings={"hidden": (128,)}, **SMALL)]
PROGRAMS = {
    "less precise products": (lambda: torch.set_float32_matmul_precision("medium"), nullcontext),
    "less precise products, said otherwise": (lambda: setattr(torch.backends, "fp32_precision", "bf16"), nullcontext),
    "no oneDNN": (lambda: setattr(torch.backends.mkldnn, "enabled", False), nullcontext),
    "another type": (lambda: torch.set_default_dtype(torch.float64), nullcontext),
    "another device": (lambda: torch.set_default_device("meta"), nullcontext),
    "two threads": (lambda: torch.set_num_threads(2), nullcontext),
    "small numbers are 0": (lambda: torch.set_flush_denormal(True), nullcontext),
    "autocast": (lambda: None, lambda: torch.autocast("cpu", torch.bfloat16)),
    "no gradients": (lambda: None, torch.no_grad),
    "inference": (lambda: None, torch.inference_mode),
    "another device around": (lambda: None, lambda: torch.device("meta")),
    "cached parametrisations": (lambda: None, torch.nn.utils.parametrize.cached),
    "numpy's errors": (lambda: None, lambda: np.errstate(all="raise")),
}


@pytest.fixture
def torch_afterwards():
    """Torch as it was, after the test."""
    options = [(owner, name, getattr(owner, name)) for owner, name, _ in SETTINGS]
    yield
    torch.backends.fp32_precision = "none"
    for owner, name, value in options:
        setattr(owner, name, value)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_num_threads(1)
    torch.set_flush_denormal(False)


def seen():
    """What this thread finds of torch's state."""
    options = [getattr(owner, name) for owner, name, _ in SETTINGS]
    modes = torch.is_autocast_enabled("cpu"), torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    return options, modes, torch.get_num_threads(), torch.get_default_dtype(), torch.get_default_device()


def computed() -> list:
    """Load the data anew; return the results of runs alone and in lockstep, and of a schedule."""
    _loaded.cache_clear()
    alone, together = [run(config) for config in RUNS], run_many(RUNS)
    task = task_of(RUNS[1])
    assert task.inputs.device.type == "cpu" and not task.inputs.is_inference()
    others = schedule(RUNS[1]).digest, alone[1].model()[1].weight.dtype, checksum(task)
    return [*(one.summary for one in (*alone, *together)), *others]


@pytest.fixture(scope="module")
def usual():
    return computed()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_program_around_a_run_does_not_change_its_bits(program, usual, torch_afterwards):
    change, around = PROGRAMS[program]
    change()
    with around():
        before = seen()
        assert computed() == usual and seen() == before


def test_small_numbers_are_kept_inside_and_flushed_again_afterwards(torch_afterwards):
    torch.set_flush_denormal(True)
    with pytest.raises(ZeroDivisionError), usual_torch():
        assert torch.tensor(1e-39).mul(0.5) > 0
        1 / 0  # noqa: B018 - an error inside
    assert torch.tensor(1e-39).mul(0.5) == 0


def test_a_block_in_another_thread_keeps_its_options_when_the_first_ends(torch_afterwards):
    torch.set_float32_matmul_precision("medium")
    first_ended, found, entered = threading.Event(), [], threading.Event()

    def second():
        with usual_torch():
            entered.set()
            first_ended.wait(10)
            found.append(torch.backends.mkldnn.matmul.fp32_precision)

    thread = threading.Thread(target=second)
    with usual_torch():
        thread.start()
        entered.wait(10)
    first_ended.set()
    thread.join()
    assert found == ["ieee"] and torch.get_float32_matmul_precision() == "medium"


def test_the_run_has_the_threads_of_its_configuration_from_the_first_tensor_on(monkeypatch, torch_afterwards):
    found = []
    monkeypatch.setattr("asyncfl_lite.runs.run.fit_model", lambda *_: found.append(torch.get_num_threads()) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(Config(threads=2, **SMALL))
    assert found == [2] and torch.get_num_threads() == 1


def test_runs_with_other_numbers_of_threads_are_not_run_together():
    with pytest.raises(ConfigError, match="^threads: must be the same for runs that train together, got 1, 2$"):
        run_many([RUNS[0], Config(**{**RUNS[0].as_dict(), "threads": 2})])

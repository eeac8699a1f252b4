"""The threads, devices and global settings that torch uses for a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Lock
from typing import Any

import torch
from torch.backends import cuda, cudnn, mkldnn
from torch.nn.utils import parametrize

from asyncfl_lite.base.errors import ConfigError, reason


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use ``count`` threads inside the block, and restore the number afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


SETTINGS: tuple[tuple[Any, str, tuple[Any, ...]], ...] = (
    *((getattr(mkldnn, part), "fp32_precision", ("ieee", "none")) for part in ("matmul", "conv", "rnn")),
    *((getattr(cudnn, part), "fp32_precision", ("tf32",)) for part in ("conv", "rnn")),
    (cuda.matmul, "fp32_precision", ("ieee", "none")),
    (mkldnn, "enabled", (True,)),
    (cudnn, "enabled", (True,)),
    (cudnn, "benchmark", (False,)),
    (parametrize, "_cache_enabled", (0,)),  # which torch.nn.utils.parametrize.cached sets
)
"""Torch's settings for the whole process that change numbers: owner, name, and the values with which torch begins."""
_lock, _inside, _callers = Lock(), [0], list[tuple[Any, str, Any]]()


@contextmanager
def usual_torch() -> Iterator[None]:
    """Inside, torch computes as it does by default, whatever the caller has set; afterwards, as it did before.

    A run's numbers must not depend on settings that its configuration does not contain: an autocast, a mode without
    gradients, a default dtype or device, a lower precision of matrix products, numbers that are flushed to zero. The
    anomaly mode and deterministic algorithms change no number on a CPU, so they stay as they are.
    """
    with ExitStack() as usual:
        usual.enter_context(torch.inference_mode(False))
        usual.enter_context(torch.enable_grad())
        if torch.get_default_device().type != "cpu":
            usual.enter_context(torch.device("cpu"))
        for kind in ("cpu", "cuda"):
            if torch.is_autocast_enabled(kind):
                torch.set_autocast_enabled(kind, False)
                usual.callback(torch.set_autocast_enabled, kind, True)
        if float(torch.tensor(1e-39, dtype=torch.float32) * 1) == 0:  # tiny numbers are flushed to zero
            torch.set_flush_denormal(False)
            usual.callback(torch.set_flush_denormal, True)
        usual.callback(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_default_dtype(torch.float32)
        usual.callback(_leave)
        with _lock:  # all threads share the SETTINGS: the first that enters notes the caller's values
            _inside[0] += 1
            for owner, name, values in SETTINGS if _inside[0] == 1 else ():
                if (value := getattr(owner, name)) not in values:
                    _callers.append((owner, name, value))
                    setattr(owner, name, values[0])
        yield


def _leave() -> None:
    with _lock:
        _inside[0] -= 1
        while _callers and not _inside[0]:
            setattr(*_callers.pop())


AUTO = "auto"
"""Name that stands for the best device of this machine; see :func:`actual`."""


def actual(name: str) -> str:
    """Return the torch device that a configuration's ``device`` stands for on this machine.

    ``auto`` means CUDA's current device if torch can use one, else the CPU.
    """
    if name != AUTO:
        return name
    return "cuda" if torch.cuda.is_available() else "cpu"


def machine(device: str = "cpu") -> str:
    """Return what the rounding of a computation depends on: torch's build, the instruction set, and the GPU, if any."""
    on_gpu = torch.device(device).type == "cuda"
    parts = [torch.__version__, torch.backends.cpu.get_cpu_capability()]
    return ", ".join([*map(str, parts), *([torch.cuda.get_device_name(device)] if on_gpu else [])])


def check_device(name: str) -> None:
    """Raise a ConfigError, which says why, if torch cannot use the device ``name`` on this machine."""
    if name == "cpu":
        return
    try:
        some = torch.ones(2, 2, device=name, requires_grad=True)
        (gradient,) = torch.autograd.grad((some @ some).sum(), some)
        gradient.tolist()  # which a device without numbers, such as meta, does not have
    except Exception as error:  # which one depends on the kind of device
        why = reason(error).partition(". ")[0]
        raise ConfigError(f"device: this machine has no {name!r} that torch can use ({why})") from None


@contextmanager
def seeded(seed: int, device: str | torch.device = "cpu") -> Iterator[list[torch.Generator]]:
    """Seed torch's generators and yield them; restore their earlier states when the block ends.

    Torch draws from the CPU's and, for a CUDA ``device``, from that device's, where it takes no generator: for layers'
    initial weights, and in dropout. ``torch.manual_seed`` takes longer than drawing a small layer's weights.
    """
    device, generators = torch.device(device), [torch.default_generator]
    if device.type == "cuda":
        torch.cuda.init()  # until then there are no generators
        generators.append(torch.cuda.default_generators[device.index or 0])
    before = [generator.get_state() for generator in generators]
    for generator in generators:
        generator.manual_seed(seed)
    try:
        yield generators
    finally:
        for generator, state in zip(generators, before, strict=True):
            generator.set_state(state)

"""Checks of a model before anything is trained, above all for users' own models: its memory, and its behaviour.

A user's module can do anything that Python can. A run therefore tries it on two samples first, so that a problem
appears as a one-line message at the start, not as a traceback or as wrong numbers in the middle of the run. Before
that, a model that does not fit into memory is refused, since a process that asks for too much may be killed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import psutil
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from asyncfl_lite.base.devices import seeded
from asyncfl_lite.base.errors import ConfigError, reason
from asyncfl_lite.base.streams import GlobalStates, untouched_generators
from asyncfl_lite.models.draws import Draws, Generators
from asyncfl_lite.models.stacked import chain_of, stacked_forward
from asyncfl_lite.models.vectors import VectorModel

LIMIT = Path("/sys/fs/cgroup/memory.max")
"""File with the number of bytes that a container may use, if there is such a limit."""
SMALL = 2**20
"""Size in bytes below which a tensor is made without a check of free memory."""
LARGE = 1 / 8
"""Share of the free memory that a model may fill before its parameters are counted."""


def free_memory() -> int:
    """Return the number of free bytes on this machine, at most the limit of its container."""
    limit = LIMIT.read_text().strip() if LIMIT.is_file() else ""
    available = psutil.virtual_memory().available
    return min(available, int(limit)) if limit.isdigit() else available


def check_copies(name: str, module: nn.Module, free: int | None = None) -> None:
    """Raise an error if memory cannot hold the copies of a model that a run needs.

    A run holds at least the module, a copy of it, and three vectors of the trained parameters: the global model, a
    client's model and its gradient.

    Args:
        name: the model's name, for the message.
        module: the model; it may be on the device ``meta``, where nothing takes memory.
        free: number of bytes that were free before the model was made; by default, those that are free now, with the
            model in memory.

    Raises:
        ConfigError: if memory does not suffice, naming the sizes.
    """
    whole = sum(part.nbytes for part in (*module.parameters(), *module.buffers()))
    trained = sum(part.nbytes for part in module.parameters() if part.requires_grad)
    needed = whole + 3 * trained
    if free is not None:
        needed += whole
    if needed <= SMALL:
        return
    free = free_memory() if free is None else free
    if needed > free:
        count = sum(part.numel() for part in module.parameters())
        raise ConfigError(
            f"model: {name!r} has {count:,} parameters; a run with it needs {_size(needed)} at least, but "
            f"{_size(free)} of memory are free"
        )


class Room(TorchDispatchMode):
    """Context that raises before allocating a tensor larger than free memory.

    A tensor that is too large is refused before it is made. When the tensors fill more than the share :data:`LARGE` of
    the memory that was free, the whole model is built once more on the device ``meta``, which takes no memory, and its
    parameters are counted.

    Args:
        name: the name of the model being built, for the message.
        build: a function that builds the model.

    Raises:
        ConfigError: if memory does not suffice, naming the tensor's shape or the number of the model's parameters,
            their size and the free memory.
    """

    def __init__(self, name: str, build: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.name, self.build = name, build
        self.free, self.made, self.counted = free_memory(), 0, False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch imports its compiler, which takes seconds

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Run a torch operation; if it makes a tensor of a given shape, check first that memory suffices."""
        kwargs = kwargs or {}
        if func.overloadpacket in MAKERS and str(kwargs.get("device")) != "meta":
            dtype = kwargs.get("dtype") or torch.get_default_dtype()
            needed = math.prod(args[0]) * dtype.itemsize
            if needed > SMALL and needed > (free := free_memory()):
                raise ConfigError(
                    f"model: {self.name!r} would make a tensor of shape {tuple(args[0])}, {_size(needed)}; "
                    f"{_size(free)} of memory are free"
                )
            self.made += needed
            if not self.counted and self.made > self.free * LARGE:
                self.counted = True
                self._count()
        return func(*args, **kwargs)

    def _count(self) -> None:
        """Raise an error if the whole model needs more memory than was free; do nothing if that cannot be counted."""
        module = None
        with suppress(Exception), warnings.catch_warnings(action="ignore"), seeded(0), torch.device("meta"):
            module = self.build()
        if isinstance(module, nn.Module):
            check_copies(self.name, module, self.free)


MAKERS = {getattr(torch.ops.aten, name) for name in ("empty", "zeros", "ones", "full", "rand", "randn")}


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count > 1e8 else f"{count / 1e6:,.1f} MB"


SAMPLES = 2
DEPENDS = "a sample's output depends on the rest of its minibatch"


def check_conduct(
    name: str, model: VectorModel, inputs: Tensor, output_shape: tuple[int, ...], vocabulary: int | None = None
) -> bool:
    """Check a model in evaluation and in training mode, and restore all random generators afterwards.

    Args:
        name: the model's name, for messages.
        model: the model to check.
        inputs: ``(n, …)`` samples of the task; the first two are used.
        output_shape: the shape of one sample's outputs.
        vocabulary: number of the task's tokens, the last of which is tried, too; None for other inputs.

    Returns:
        Whether it draws random numbers in training, as dropout does.

    Raises:
        ConfigError: when parameters are not float32, when the outputs are not of that shape, when a call fails, or when
            outputs depend on more than weights, inputs and torch's random numbers.
    """
    for place, parameter in model.module.named_parameters():
        if parameter.requires_grad and parameter.dtype != torch.float32:
            kind = str(parameter.dtype).removeprefix("torch.")
            raise ConfigError(f"model: parameters of {name!r} must be float32, {place} is {kind}; write module.float()")
    first = _first(inputs)
    if vocabulary is not None:
        first[-1, -1] = vocabulary - 1
    with untouched_generators():
        tried = _Tried(name, model, *model.flatten(), first, vocabulary)
        tried.check_in_use(output_shape)
        return tried.check_in_training()


def _first(inputs: Tensor, count: int = SAMPLES) -> Tensor:
    """Return a copy of the first samples; if there are fewer than ``count``, they are repeated."""
    return inputs[torch.arange(count, device=inputs.device) % len(inputs)]


def takes_one(model: VectorModel, inputs: Tensor, train: bool = True) -> bool:
    """Return whether a model takes a minibatch of one sample, by trying the first of ``(n, …)`` inputs.

    Args:
        model: the model.
        inputs: samples of the task.
        train: whether it is tried in training mode.
    """
    x, buffers = model.flatten()
    shapes: list[torch.Size] = []

    def loss(outputs: Tensor) -> Tensor:
        shapes.append(outputs.shape)
        return outputs.sum()

    with seeded(0, inputs.device):
        try:
            for count in (1, 2):
                model.gradient(x, _first(inputs, count), loss, buffers, train=train)
        except Exception:  # normalisation layers raise ValueError; a user's module may raise anything
            return False
    return shapes[0] == (1, *shapes[1][1:])


@dataclass
class _Tried:
    """A model together with the inputs on which it is tried.

    Attributes:
        states: states of the global random generators after the latest call.
        outputs: its outputs in evaluation mode.
    """

    name: str
    model: VectorModel
    x: Tensor
    buffers: Tensor
    inputs: Tensor
    vocabulary: int | None = None
    states: GlobalStates = field(init=False, default_factory=GlobalStates.now)
    outputs: Tensor = field(init=False)

    def check_in_use(self, output_shape: tuple[int, ...]) -> None:
        """Raise an error if outputs in evaluation mode are not logits of the task's shape, or are random."""
        wanted = (len(self.inputs), *output_shape)
        outputs, _, drew = self._call(train=False)
        if not isinstance(outputs, Tensor):
            self._refuse(f"must return a tensor of logits {wanted}, got a {type(outputs).__name__}")
        if tuple(outputs.shape) != wanted or not outputs.is_floating_point():
            kind = str(outputs.dtype).removeprefix("torch.")
            self._refuse(f"must return logits {wanted}, got {tuple(outputs.shape)} of {kind}")
        if any(drew):
            self._refuse("draws random numbers in evaluation mode; for dropout, write F.dropout(h, p, self.training)")
        self.outputs = outputs
        self.model.needs_two = not takes_one(self.model, self.inputs, train=False)

    def check_in_training(self) -> bool:
        """Return whether training uses torch's generator; raise if it uses another, or if a repeated call differs."""
        outputs, buffers, (from_torch, from_others) = self._call(train=True)
        if from_others:
            self._refuse("draws from Python's or numpy's random numbers; use torch's, which follow the run's seed")
        again, moved, _ = self._call(train=True)
        in_use, _, _ = self._call(train=False)
        if not (_close(outputs, again) and _close(buffers, moved) and _close(self.outputs, in_use)):
            self._refuse("gives something else when it is called again on the same inputs: it keeps count of its calls")
        return from_torch

    def _call(self, train: bool) -> tuple[Any, Tensor, tuple[bool, bool]]:
        """Call the model once; return outputs, buffers, and (used torch's random generator, used another one).

        From the first call that writes into its inputs on, the model gets copies of them.
        """
        buffers, x = self.buffers.clone(), self.x.clone().requires_grad_(train)
        inputs, before = self.model.laid_out(self.inputs.clone()), self.states
        written = inputs._version
        try:
            with seeded(0, inputs.device) as generators:
                seeds = [generator.get_state() for generator in generators]
                outputs = self.model(x, inputs, buffers, train=train)
                if train:
                    torch.autograd.grad(outputs.sum(), x)
                moved = [generator.get_state() for generator in generators]
            self.states = GlobalStates.now()
        except Exception as error:
            shape, how = tuple(self.inputs.shape), "in training" if train else "in evaluation mode"
            hint = ""
            if self.vocabulary is not None and "index" in str(error).lower():
                hint = (
                    f"; it must take all {self.vocabulary} tokens of the task, inputs.vocabulary in build_for(inputs)"
                )
            self._refuse(f"fails {how} on inputs {shape} ({type(error).__name__}: {reason(error)}){hint}", error)
        if inputs._version != written or not torch.equal(inputs, self.inputs):
            self.model.overwrites = True
        from_torch, from_others = not all(map(torch.equal, seeds, moved)), before.drawn(self.states) != ""
        outputs = outputs.detach() if train else outputs
        return outputs, buffers, (from_torch, from_others)

    def _refuse(self, why: str, cause: Exception | None = None) -> NoReturn:
        raise ConfigError(f"model: {self.name!r} {why}") from cause


def why_alone(model: VectorModel, inputs: Tensor, draws: bool) -> str:
    """Return the reason why several models cannot be trained in one computation; an empty string if they can.

    Args:
        model: a model without running statistics.
        inputs: ``(n, …)`` samples of the task; the first two are used.
        draws: whether the model draws random numbers in training.
    """
    chain = chain_of(model)
    if chain is not None and (not chain.images or inputs.dim() == 4):
        return ""
    if model.needs_two:
        return DEPENDS
    x, inputs = model.flatten()[0], _first(inputs)
    xs, both = torch.stack([x, 0.9 * x]), torch.stack([inputs, inputs.flip(0)])
    try:
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            together = _gradients(model, xs, both, draws)
        alone = torch.stack([_gradient(model, *row, draws) for row in zip(xs, both, range(2), strict=True)])
        whole, part = (model(x, some, train=not draws) for some in (inputs, inputs[:1]))
    except Exception as error:
        return reason(error).partition(". ")[0]
    if any("performance drop" in str(warning.message) for warning in raised):
        return "torch.func.vmap has no rule for one of its operations"
    if not _close(together, alone):
        return "torch.func.vmap gives other gradients"
    if not _close(whole[:1], part):
        return DEPENDS
    return ""


def _gradients(model: VectorModel, xs: Tensor, inputs: Tensor, draws: bool) -> Tensor:
    """Return the ``(G, d)`` gradients of models that are computed together."""
    point = xs.clone().requires_grad_()
    generators = [_generators(row, inputs.device) for row in range(len(xs))]
    of_all = Draws(generators, [inputs.shape[1]] * len(xs), inputs.shape[1]) if draws else None
    return torch.autograd.grad(_weighed(stacked_forward(model)(point, inputs, of_all)), point)[0]


def _gradient(model: VectorModel, x: Tensor, inputs: Tensor, row: int, draws: bool) -> Tensor:
    """Return the ``(d,)`` gradient of one model computed alone."""
    with Draws([_generators(row, inputs.device)]):
        return model.gradient(x, inputs, _weighed, train=True)[1]


def _generators(row: int, device: torch.device) -> Generators:
    return Generators.seeded((row, row), device)


def _weighed(outputs: Tensor) -> Tensor:
    """Return a scalar to which every output contributes differently."""
    weights = torch.linspace(-1, 1, outputs.shape[-1], device=outputs.device)
    return (outputs * weights).square().sum()


def _close(first: Tensor, second: Tensor) -> bool:
    """Return whether two tensors are equal up to rounding, relative to their largest finite number."""
    scale = float(second.nan_to_num(0, 0, 0).abs().max()) if second.numel() else 0.0
    return torch.allclose(first, second, rtol=1e-3, atol=1e-4 * scale, equal_nan=True)

"""Checks of a model's behaviour on two samples before anything is trained, above all for users' own models.

So a problem appears as a one-line message at the start, not as a traceback or wrong numbers in the middle of a run.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, NoReturn

import torch
from torch import Tensor

from asyncfl_lite.base.devices import seeded
from asyncfl_lite.base.errors import ConfigError, reason
from asyncfl_lite.base.streams import GlobalStates, untouched_generators
from asyncfl_lite.models.stacked import chain_of, stacked_forward
from asyncfl_lite.models.vectors import VectorModel

SAMPLES = 2
DEPENDS = "a sample's output depends on the rest of its minibatch"


def check_conduct(
    name: str, model: VectorModel, inputs: Tensor, output_shape: tuple[int, ...], vocabulary: int | None = None
) -> bool:
    """Check a model in evaluation and in training mode, and restore all random generators afterwards.

    Args:
        name: the model's name, for messages.
        model: the model.
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
        return _Tried(name, model, *model.flatten(), first, vocabulary).check(output_shape)


def _first(inputs: Tensor, count: int = SAMPLES) -> Tensor:
    return inputs[torch.arange(count, device=inputs.device) % len(inputs)]


def takes_one(model: VectorModel, inputs: Tensor, train: bool = True) -> bool:
    """Return whether a model takes a minibatch of one sample, by trying the first of ``(n, …)`` inputs."""
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
    """A model, the inputs on which it is tried, and the global random generators' states after the latest call."""

    name: str
    model: VectorModel
    x: Tensor
    buffers: Tensor
    inputs: Tensor
    vocabulary: int | None = None
    states: GlobalStates = field(init=False, default_factory=GlobalStates.now)

    def check(self, output_shape: tuple[int, ...]) -> bool:
        """Return whether training uses torch's generator; raise an error unless the outputs follow from the inputs."""
        wanted = (len(self.inputs), *output_shape)
        first, _, drew = self._call(train=False)
        if not isinstance(first, Tensor):
            self._refuse(f"must return a tensor of logits {wanted}, got a {type(first).__name__}")
        if tuple(first.shape) != wanted or not first.is_floating_point():
            kind = str(first.dtype).removeprefix("torch.")
            self._refuse(f"must return logits {wanted}, got {tuple(first.shape)} of {kind}")
        if any(drew):
            self._refuse("draws random numbers in evaluation mode; for dropout, write F.dropout(h, p, self.training)")
        self.model.needs_two = not takes_one(self.model, self.inputs, train=False)
        outputs, buffers, (from_torch, from_others) = self._call(train=True)
        if from_others:
            self._refuse("draws from Python's or numpy's random numbers; use torch's, which follow the run's seed")
        again, moved, _ = self._call(train=True)
        in_use, _, _ = self._call(train=False)
        if not (_close(outputs, again) and _close(buffers, moved) and _close(first, in_use)):
            self._refuse("gives something else when it is called again on the same inputs: it keeps count of its calls")
        return from_torch

    def _call(self, train: bool) -> tuple[Any, Tensor, tuple[bool, bool]]:
        """Call the model once; return outputs, buffers, and (used torch's random generator, used another one)."""
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
                known = f"all {self.vocabulary} tokens of the task, inputs.vocabulary in build_for(inputs)"
                hint = f"; it must take {known}"
            self._refuse(f"fails {how} on inputs {shape} ({type(error).__name__}: {reason(error)}){hint}", error)
        if inputs._version != written or not torch.equal(inputs, self.inputs):
            self.model.overwrites = True
        from_torch, from_others = not all(map(torch.equal, seeds, moved)), before.drawn(self.states) != ""
        outputs = outputs.detach() if train else outputs
        return outputs, buffers, (from_torch, from_others)

    def _refuse(self, why: str, cause: Exception | None = None) -> NoReturn:
        raise ConfigError(f"model: {self.name!r} {why}") from cause


def why_alone(model: VectorModel, inputs: Tensor) -> str:
    """Return why several models like this one cannot be trained in one computation; an empty string if they can.

    The model has no running statistics, and draws no random numbers. It is tried on the first two of the inputs.
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
            point = xs.clone().requires_grad_()
            (together,) = torch.autograd.grad(_weighed(stacked_forward(model)(point, both)), point)
        alone = torch.stack([model.gradient(*row, _weighed, train=True)[1] for row in zip(xs, both, strict=True)])
        whole, part = (model(x, some, train=True) for some in (inputs, inputs[:1]))
    except Exception as error:
        return reason(error).partition(". ")[0]
    if any("performance drop" in str(warning.message) for warning in raised):
        return "torch.func.vmap has no rule for one of its operations"
    if not _close(together, alone):
        return "torch.func.vmap gives other gradients"
    return "" if _close(whole[:1], part) else DEPENDS


def _weighed(outputs: Tensor) -> Tensor:
    weights = torch.linspace(-1, 1, outputs.shape[-1], device=outputs.device)
    return (outputs * weights).square().sum()


def _close(first: Tensor, second: Tensor) -> bool:
    scale = float(second.nan_to_num(0, 0, 0).abs().max()) if second.numel() else 0.0
    return torch.allclose(first, second, rtol=1e-3, atol=1e-4 * scale, equal_nan=True)

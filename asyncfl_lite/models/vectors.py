"""Models as vectors: any module's state as flat tensors, and back.

Two vectors describe a module: ``parameters`` of shape ``(d,)`` and ``buffers`` of shape ``(b,)``, the floating-point
buffers (BatchNorm's running statistics), each in the order of ``named_parameters()`` and ``named_buffers()``.
Everything else stays in the module as it is: integer buffers (``num_batches_tracked``), which no optimiser may touch,
buffers that the module does not save (``persistent=False``), parameters that require no gradient, and the running
statistics of parts whose parameters are all frozen.

Every function here copies on the way in and on the way out, with two exceptions: :meth:`VectorModel.unflatten` returns
views, so that an in-place step on a view writes into the vector; and in training mode, BatchNorm writes into the
``buffers`` that it is given. In evaluation, a module that works in place writes into copies
(:meth:`VectorModel.outputs`).

Frozen parts of a network, after ``requires_grad_(False)``, are in neither vector: no client trains them, and no update
contains them. Their weights are not sent, and their BatchNorm uses the running statistics that it came with.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm

from asyncfl_lite.base.errors import ConfigError


class Slot(NamedTuple):
    """The position of one named tensor in its vector."""

    name: str
    shape: torch.Size
    start: int
    stop: int


def _slots(named: list[tuple[str, Tensor]]) -> list[Slot]:
    slots, start = [], 0
    for name, tensor in named:
        slots.append(Slot(name, tensor.shape, start, start + tensor.numel()))
        start += tensor.numel()
    return slots


def _flatten(tensors: list[Tensor], like: Tensor) -> Tensor:
    if not tensors:
        return like.new_zeros(0)
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def batch_sizes(inputs: Tensor, size: int) -> list[int]:
    """Return the sizes of batches for evaluation; a single sample that would be left over joins the batch before it.

    Tokens are the exception: no model normalises them over samples.
    """
    sizes = [len(batch) for batch in inputs.split(size)]
    if inputs.is_floating_point() and size > 1 and len(sizes) > 1 and sizes[-1] == 1:
        sizes[-2:] = [size + 1]
    return sizes


def copied(module: nn.Module) -> nn.Module:
    """Return a deep copy of a module; tensors that it has computed, as ``weight_norm`` does, are copied as numbers."""
    parts = (value for part in module.modules() for value in vars(part).values())
    computed = {id(part): part.detach().clone() for part in parts if isinstance(part, Tensor) and not part.is_leaf}
    return copy.deepcopy(module, computed)


class VectorModel:
    """A module whose state is passed in as flat vectors.

    The module that is passed in is copied; it is never changed by anything done here.

    Args:
        module: any module whose trained parameters share one floating dtype and device. Parameters with
            ``requires_grad_(False)`` are constants: no vector holds them.

    Attributes:
        module: the module that computes the outputs; the values of its trained parameters are not used.
        parameter_slots: position of each trained parameter in the ``(d,)`` parameter vector.
        buffer_slots: position of each floating-point buffer in the ``(b,)`` buffer vector.
        overwrites: whether the module writes into its inputs, and therefore gets a copy of them at every call.
        needs_two: whether it cannot take a single sample in evaluation mode, like BatchNorm without running statistics.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = copied(module)
        every_name = [one for one in self.module.named_parameters(remove_duplicate=False) if one[1].requires_grad]
        trained: list[tuple[str, Tensor]] = [one for one in self.module.named_parameters() if one[1].requires_grad]
        self._tied = len(every_name) != len(trained)  # without ties, torch need not look for them
        self._frozen = frozen_parts(self.module)
        for part in self._frozen:
            part.eval()
        constant = {id(buffer) for part in self._frozen for buffer in part.buffers()}
        saved = self.module.state_dict()
        buffers = [(name, b) for name, b in self.module.named_buffers() if b.is_floating_point() and name in saved]
        buffers = [(name, buffer) for name, buffer in buffers if id(buffer) not in constant]
        self.parameter_slots = _slots(trained)
        self.buffer_slots = _slots(buffers)
        self._sizes = [slot.stop - slot.start for slot in self.parameter_slots]
        self._pools = any(isinstance(layer, nn.MaxPool2d) for layer in self.module.modules())
        self._steady_on_one: list[nn.Module] = []
        self.overwrites = False
        self.needs_two = False

    @cached_property
    def architecture(self) -> Hashable:
        """Key that is equal for models with the same modules and vectors; values of frozen parts are not compared."""
        return repr(self.module), tuple(self.parameter_slots)

    @property
    def num_parameters(self) -> int:
        """Length d of the parameter vector: the number of trained parameters."""
        return self.parameter_slots[-1].stop if self.parameter_slots else 0

    @property
    def num_buffers(self) -> int:
        """Length b of the vector of floating-point buffers, such as running statistics; 0 if there are none."""
        return self.buffer_slots[-1].stop if self.buffer_slots else 0

    def trained_modules(self) -> dict[str, nn.Module]:
        """Return the modules outside frozen parts, by name, in the module's order."""
        frozen = {id(inner) for part in self._frozen for inner in part.modules()}
        return {name: inner for name, inner in self.module.named_modules() if id(inner) not in frozen}

    def steady_on_one(self) -> None:
        """From now on, use BatchNorm's running statistics for minibatches of one sample, which have no spread."""
        layers = self.trained_modules().values()
        self._steady_on_one = [part for part in layers if isinstance(part, _BatchNorm) and part.track_running_stats]

    @property
    def variance_mask(self) -> Tensor:
        """Bool mask ``(b,)`` of the buffers that are running variances, which must stay positive."""
        mask = torch.zeros(self.num_buffers, dtype=torch.bool)
        for slot in self.buffer_slots:
            mask[slot.start : slot.stop] = slot.name.endswith("running_var")
        return mask

    def flatten(self, module: nn.Module | None = None) -> tuple[Tensor, Tensor]:
        """Return copies of the ``(d,)`` trained parameters and ``(b,)`` floating-point buffers of a like module.

        By default, it is the module passed to the constructor, with its initial values.
        """
        module = module or self.module
        values = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        like = next(module.parameters(), torch.zeros(0))
        return (
            _flatten([values[slot.name] for slot in self.parameter_slots], like),
            _flatten([values[slot.name] for slot in self.buffer_slots], like),
        )

    def unflatten(self, x: Tensor, buffers: Tensor | None = None) -> dict[str, Tensor]:
        """Return named parameters, and buffers if given, as differentiable views of ``x (d,)`` and ``buffers (b,)``."""
        parts = x.split(self._sizes)  # its backward pass is one concatenation, however many parts there are
        state = {s.name: part.view(s.shape) for s, part in zip(self.parameter_slots, parts, strict=True)}
        if buffers is not None:
            for slot in self.buffer_slots:
                state[slot.name] = buffers[slot.start : slot.stop].view(slot.shape)
        return state

    def load(self, module: nn.Module, x: Tensor, buffers: Tensor | None = None) -> None:
        """Copy the vectors into ``module``; later steps on the module do not change them."""
        module.load_state_dict(self.unflatten(x, buffers), strict=False)

    def loaded(self, x: Tensor, buffers: Tensor | None = None) -> nn.Module:
        """Make a new module with these parameters and running statistics, in evaluation mode on the CPU."""
        module = copied(self.module)
        self.load(module, x, buffers)
        module = module.cpu().eval()
        for part in module.modules():
            for hook in part._forward_pre_hooks.values():
                if type(hook).__module__.startswith("torch.nn.utils."):  # it computes a weight, as for weight_norm
                    with torch.no_grad():
                        hook(part, ())
        return module

    def laid_out(self, inputs: Tensor) -> Tensor:
        """Return the batch, with images in channels-last format if the model has max-pooling.

        Max-pooling is several times faster in this format, forwards and backwards; convolutions alone may be slower.
        """
        wanted = self._pools and inputs.dim() == 4
        return inputs.to(memory_format=torch.channels_last) if wanted else inputs

    def __call__(self, x: Tensor, inputs: Tensor, buffers: Tensor | None = None, *, train: bool = False) -> Tensor:
        """Return the outputs ``(n, …)`` of the model with parameters ``x``, differentiable in ``x``.

        In training mode, BatchNorm updates ``buffers`` in place. A model that has buffers raises an error in training
        mode without ``buffers``, since the call would change hidden state.

        Raises:
            ConfigError: for one sample alone, if the model needs two.
        """
        if train and self.buffer_slots and buffers is None:
            raise ValueError("buffers: training mode of a model with running statistics needs them")
        if self.needs_two and len(inputs) == 1:
            raise ConfigError(
                f"model: {type(self.module).__name__} cannot take one sample alone; choose sizes of data and batches "
                "that leave no single sample over"
            )
        if self.module.training != train:
            self.module.train(train)
            for part in self._frozen:
                part.eval()
        steady = self._steady_on_one if train and len(inputs) == 1 else ()
        for part in steady:
            part.eval()
        if self.overwrites:
            inputs = inputs.clone()
        try:
            outputs = functional_call(self.module, self.unflatten(x, buffers), (inputs,), tie_weights=self._tied)
            return getattr(outputs, "logits", outputs)  # those of Hugging Face's models
        finally:
            for part in steady:
                part.train()

    @torch.no_grad()
    def outputs(self, x: Tensor, inputs: Tensor, buffers: Tensor | None = None, batch_size: int = 500) -> Tensor:
        """Return the ``(n, …)`` outputs in evaluation mode, without gradient, batch by batch.

        The module gets copies: the inputs may be a test set that other runs read, and the vectors those of a server.
        """
        x, buffers = x.clone(), None if buffers is None else buffers.clone()
        batches = inputs.split(batch_sizes(inputs, batch_size))
        return torch.cat([self(x, self.laid_out(batch.clone()), buffers) for batch in batches])

    def gradient(
        self,
        x: Tensor,
        inputs: Tensor,
        loss: Callable[[Tensor], Tensor],
        buffers: Tensor | None = None,
        *,
        train: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Return the scalar ``loss(outputs)`` and its ``(d,)`` gradient; training mode updates ``buffers`` in place."""
        point = x.detach().requires_grad_()
        value = loss(self(point, self.laid_out(inputs), buffers, train=train))
        (gradient,) = torch.autograd.grad(value, point)
        return value.detach(), gradient


def all_finite(values: Tensor) -> bool:
    """Return whether all numbers are finite.

    Their sum is computed first, which takes a tenth of the time. If the sum is not finite, either one of the numbers is
    not, or the sum overflowed, so each number is then tested.
    """
    return math.isfinite(values.sum().item()) or bool(values.isfinite().all())


def frozen_parts(module: nn.Module) -> list[nn.Module]:
    """Return the outermost parts of ``module`` that have parameters, all of them frozen.

    The parts are used as they came: in evaluation mode, with the running statistics that they came with, and without
    dropout.
    """
    parameters = list(module.parameters())
    if parameters and not any(parameter.requires_grad for parameter in parameters):
        return [module]
    return [part for child in module.children() for part in frozen_parts(child)]

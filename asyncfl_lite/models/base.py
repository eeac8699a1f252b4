"""The base class of models: settings that build a PyTorch module for a task's inputs."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import TorchDispatchMode

from asyncfl_lite.base.devices import seeded
from asyncfl_lite.base.errors import AsyncFLError, ConfigError, reason
from asyncfl_lite.base.plugins import is_ours
from asyncfl_lite.base.registry import Registry, Settings
from asyncfl_lite.base.streams import no_global_draws
from asyncfl_lite.models.probe import Room, check_copies
from asyncfl_lite.models.vectors import VectorModel, copied

MODELS: Registry[ModelSpec] = Registry("model")


@dataclass(frozen=True)
class InputSpec:
    """Shape, range and kind of a task's inputs, for methods that synthesise inputs.

    Attributes:
        shape: the shape of one input.
        num_classes: C, the number of classes.
        low, high: range of the values of real-valued inputs.
        vocabulary: number of tokens if inputs are token ids, else None.
    """

    shape: tuple[int, ...]
    num_classes: int
    low: float = 0.0
    high: float = 1.0
    vocabulary: int | None = None


class ModelSpec(Settings):
    """Settings of a model, with a method that builds it."""

    revision: ClassVar[int] = 1
    """Revision of the model's numbers; increase it when their meaning changes, to mark older results as outdated."""

    vectorises: ClassVar[bool] = True
    """Whether several clients' models can be trained in one computation (``torch.func.vmap``)."""
    takes: ClassVar[Literal["numbers", "images", "clips", "tokens"]] = "numbers"
    """Kind of inputs: real numbers of any shape, images ``(channels, height, width)``, video (the same, with frames as
    the second axis), or ``(length,)`` token ids."""

    @abstractmethod
    def build(self, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build a module that maps ``(n, *input_shape)`` inputs to ``(n, num_classes)`` logits.

        Its weights come from torch's global generator, which :func:`initial_model` seeds.
        """

    def build_for(self, inputs: InputSpec) -> nn.Module:
        """Build a module for a task's inputs; text models take the vocabulary from the task."""
        return self.build(inputs.shape, inputs.num_classes)


AXES = {"images": 3, "clips": 4, "tokens": 1}
"""Number of axes of one input, by kind; numbers may have any shape."""


def check_fit(spec: ModelSpec, inputs: InputSpec) -> None:
    """Raise an error if a model does not accept a task's inputs.

    Raises:
        ConfigError: if it does not; the message names both.
    """
    if not _fits(type(spec), inputs):
        name = MODELS.name_of(type(spec))
        given = f"{'numbers' if inputs.vocabulary is None else 'token ids'} of shape {inputs.shape}"
        fitting = [other for other in MODELS if _fits(MODELS.get(other), inputs)]
        raise ConfigError(
            f"model: {name!r} takes {spec.takes}, but the task's inputs are {given}; "
            f"models that take them: {', '.join(fitting) or 'none'}"
        )


def _fits(kind: type[ModelSpec], inputs: InputSpec) -> bool:
    tokens = inputs.vocabulary is not None
    return tokens == (kind.takes == "tokens") and len(inputs.shape) == AXES.get(kind.takes, len(inputs.shape))


def initial_model(spec: ModelSpec, inputs: InputSpec, seed: int) -> nn.Module:
    """Build ``spec`` with weights drawn from ``seed``, without touching torch's global generator.

    Raises:
        ConfigError: when the model cannot take such inputs, or when it is not a module that can be trained, or is too
            large for this machine's memory.
    """
    check_fit(spec, inputs)
    name = MODELS.name_of(type(spec))
    with (
        no_global_draws(spec, f"model: build() of {name!r}", "torch's, which follow the run's seed while it builds"),
        seeded(seed),
    ):
        try:
            with Room(name, partial(spec.build_for, inputs)):
                module = spec.build_for(inputs)
        except AsyncFLError:
            raise
        except Exception as error:
            found = f"{type(error).__name__}: {reason(error)}"
            raise ConfigError(f"model: {name!r} cannot be built for inputs {inputs.shape} ({found})") from error
    if not is_ours(spec):
        _check_module(name, module)
    check_copies(name, module)
    if is_ours(spec):
        return module
    try:
        return copied(module)  # the user may keep this module, and pass it in again
    except Exception as error:
        raise ConfigError(f"model: {name!r} cannot be copied ({type(error).__name__}: {reason(error)})") from error


def _check_module(name: str, module: nn.Module) -> None:
    """Raise an error if an object is not a module with parameters to train.

    Args:
        name: the model's name, for the message.
        module: the object that the model's ``build`` returned.

    Raises:
        ConfigError: if the object is not a module, has lazy layers, or has no parameters to train.
    """
    if not isinstance(module, nn.Module):
        raise ConfigError(f"model: build() of {name!r} must return a torch.nn.Module, got {type(module).__name__}")
    parameters = dict(module.named_parameters())
    if lazy := next((place for place, parameter in parameters.items() if is_lazy(parameter)), None):
        raise ConfigError(
            f"model: {name!r} has a lazy layer ({lazy} has no shape yet); give its size, or call the module in build() "
            "once on torch.zeros(2, *input_shape)"
        )
    hooked = (place for place, parameter in parameters.items() if parameter._backward_hooks)
    if (place := next(hooked, None)) is not None:
        raise ConfigError(
            f"model: {name!r} has a hook on its parameter {place}, which no client would call; put it on the module"
        )
    if not any(parameter.requires_grad for parameter in parameters.values()):
        found = "requires_grad is False for all of them" if parameters else "it has none at all"
        raise ConfigError(f"model: {name!r} has no parameters to train ({found})")


class _FlopCount(TorchDispatchMode):
    """Context that counts the floating-point operations inside it, by torch's own formulas.

    It works like torch's ``FlopCounterMode``, but does not import the compiler, which takes longer than a small run.
    For linear layers, it does not import the formulas either, since they import triton.
    """

    total = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if func.is_view or torch.Tag.pointwise in func.tags:  # no formula counts these
            return func(*args, **kwargs)
        if func is torch.ops.aten.addmm.default:
            self.total += 2 * args[1].numel() * args[2].shape[1]
            return func(*args, **kwargs)
        from torch.utils.flop_counter import flop_registry

        if func.overloadpacket not in flop_registry:
            with self:  # it may consist of simpler operations
                out = func.decompose(*args, **kwargs)
            return func(*args, **kwargs) if out is NotImplemented else out
        out = func(*args, **kwargs)
        self.total += flop_registry[func.overloadpacket](*args, **kwargs, out_val=out)
        return out


def forward_flop(model: VectorModel, inputs: InputSpec) -> int:
    """Return the number of floating-point operations in one sample's forward pass, half of those in two samples'."""
    x, buffers = model.flatten()
    dtype = x.dtype if inputs.vocabulary is None else torch.int64
    samples = torch.zeros((2, *inputs.shape), dtype=dtype, device=x.device)
    with _FlopCount() as counter, torch.no_grad():
        model(x, samples, buffers)
    return counter.total // 2

"""The base class of models: settings that build a PyTorch module for a task's inputs."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import psutil
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import TorchDispatchMode

from asyncfl_lite.base.devices import seeded
from asyncfl_lite.base.errors import AsyncFLError, ConfigError, reason
from asyncfl_lite.base.registry import Registry, Settings, is_ours
from asyncfl_lite.base.streams import no_global_draws
from asyncfl_lite.models.vectors import VectorModel, copied

MODELS: Registry[ModelSpec] = Registry("model")
INITIALISERS: Registry[Initialiser] = Registry("initial")


@dataclass(frozen=True)
class InputSpec:
    """Shape of one of a task's inputs, and range of its values or, for token ids, number of tokens."""

    shape: tuple[int, ...]
    num_classes: int
    low: float = 0.0
    high: float = 1.0
    vocabulary: int | None = None

    @property
    def num_tokens(self) -> int:
        """The vocabulary, for models that need one."""
        if self.vocabulary is None:
            raise ConfigError(f"model: must be given the vocabulary of its inputs {self.shape}, got none")
        return self.vocabulary


class ModelSpec(Settings):
    """Settings of a model, with a method that builds it."""

    revision: ClassVar[int] = 1
    """Revision of the model's numbers; increase it when their meaning changes, to mark older results as outdated."""

    vectorises: ClassVar[bool] = True
    """Whether several clients' models can be trained in one computation (``torch.func.vmap``)."""
    takes: ClassVar[Literal["numbers", "images", "clips", "tokens", "anything"]] = "numbers"
    """Kind of inputs: real numbers of any shape, images ``(channels, height, width)``, video (the same, with frames as
    the second axis), ``(length,)`` token ids, or any of these."""

    @property
    def title(self) -> str:
        """The model's name in messages."""
        return MODELS.name_of(type(self))

    def build(self, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build a module that maps ``(n, *input_shape)`` inputs to ``(n, num_classes)`` logits.

        Its weights come from torch's global generator, which :func:`initial_model` seeds. A model defines this method
        or :meth:`build_for`.
        """
        return self.build_for(InputSpec(tuple(input_shape), num_classes))

    def build_for(self, inputs: InputSpec) -> nn.Module:
        """Build a module for a task's inputs; text models take the vocabulary from the task."""
        if type(self).build is ModelSpec.build:
            raise ConfigError(
                f"model: {self.title!r} must define build(input_shape, num_classes) or build_for(inputs), which return "
                "a torch.nn.Module"
            )
        return self.build(inputs.shape, inputs.num_classes)


AXES = {"images": 3, "clips": 4, "tokens": 1}
"""Number of axes of one input, by kind; numbers may have any shape."""


def check_fit(spec: ModelSpec, inputs: InputSpec) -> None:
    """Raise an error, which names both, if a model does not accept a task's inputs."""
    if spec.takes != "anything" and not _fits(type(spec), inputs):
        given = f"{'numbers' if inputs.vocabulary is None else 'token ids'} of shape {inputs.shape}"
        fitting = [other for other in MODELS if _fits(MODELS.get(other), inputs)]
        raise ConfigError(
            f"model: {spec.title!r} takes {spec.takes}, but the task's inputs are {given}; "
            f"models that take them: {', '.join(fitting) or 'none'}"
        )


def _fits(kind: type[ModelSpec], inputs: InputSpec) -> bool:
    tokens = inputs.vocabulary is not None
    return (
        kind.takes != "anything"
        and tokens == (kind.takes == "tokens")
        and len(inputs.shape) == AXES.get(kind.takes, len(inputs.shape))
    )


def content_of(values: Tensor | np.ndarray) -> memoryview | bytes:
    """Return the content of a tensor or array of any type, in a form that can be hashed."""
    if isinstance(values, Tensor):
        return values.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
    return repr(values.tolist()).encode() if values.dtype == object else np.ascontiguousarray(values).tobytes()


LIMIT = Path("/sys/fs/cgroup/memory.max")
"""File with the number of bytes that a container may use, if there is such a limit."""
SMALL = 2**20
"""Size in bytes up to which free memory is not looked up."""


def free_memory() -> int:
    """Return the number of free bytes on this machine, at most the limit of its container."""
    limit = LIMIT.read_text().strip() if LIMIT.is_file() else ""
    available = psutil.virtual_memory().available
    return min(available, int(limit)) if limit.isdigit() else available


def check_copies(name: str, module: nn.Module) -> None:
    """Raise an error if memory cannot hold the copies of a model that a run needs.

    A run holds at least a copy of the module and three vectors of the trained parameters: the global model, a client's
    model and its gradient.
    """
    whole = sum(part.nbytes for part in (*module.parameters(), *module.buffers()))
    needed = whole + 3 * sum(part.nbytes for part in module.parameters() if part.requires_grad)
    if needed > SMALL and needed > (free := free_memory()):
        count = sum(part.numel() for part in module.parameters())
        raise ConfigError(
            f"model: {name!r} has {count:,} parameters; a run with it needs {_size(needed)} at least, but "
            f"{_size(free)} of memory are free"
        )


class Room(TorchDispatchMode):
    """Context that raises before allocating a tensor larger than free memory, since the process may then be killed."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch imports its compiler, which takes seconds

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Run a torch operation; if it makes a tensor of a given shape, check first that memory suffices."""
        kwargs = kwargs or {}
        if func.overloadpacket in MAKERS and str(kwargs.get("device")) != "meta":
            needed = math.prod(args[0]) * (kwargs.get("dtype") or torch.get_default_dtype()).itemsize
            if needed > SMALL and needed > (free := free_memory()):
                raise ConfigError(
                    f"model: {self.name!r} would make a tensor of shape {tuple(args[0])}, {_size(needed)}; "
                    f"{_size(free)} of memory are free"
                )
        return func(*args, **kwargs)


MAKERS = {getattr(torch.ops.aten, name) for name in ("empty", "zeros", "ones", "full", "rand", "randn")}


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count > 1e8 else f"{count / 1e6:,.1f} MB"


def initial_model(spec: ModelSpec, inputs: InputSpec, seed: int) -> nn.Module:
    """Build ``spec`` with weights drawn from ``seed``, without touching torch's global generator.

    Raises:
        ConfigError: when the model cannot take such inputs, or when it is not a module that can be trained, or is too
            large for this machine's memory.
    """
    check_fit(spec, inputs)
    name = spec.title
    with (
        no_global_draws(spec, f"model: build() of {name!r}", "torch's, which follow the run's seed while it builds"),
        seeded(seed),
    ):
        try:
            with Room(name):
                module = spec.build_for(inputs)
        except AsyncFLError:
            raise
        except Exception as error:
            found = f"{type(error).__name__}: {reason(error)}"
            raise ConfigError(f"model: {name!r} cannot be built for inputs {inputs.shape} ({found})") from error
    if not is_ours(spec):
        _check_module(name, module)
    check_copies(name, module)
    return module if is_ours(spec) else copy_of(name, module)  # the user may keep this module, and pass it in again


def copy_of(name: str, module: nn.Module) -> nn.Module:
    """Return a copy of a user's module, or raise an error that names it."""
    try:
        return copied(module)
    except Exception as error:
        raise ConfigError(f"model: {name!r} cannot be copied ({type(error).__name__}: {reason(error)})") from error


class Initialiser(Settings):
    """A source of initial weights, with its settings."""

    revision: ClassVar[int] = 1
    """Revision of the numbers; increase it when their meaning changes, to mark older results as outdated."""

    costly: ClassVar[bool] = False
    """Whether ``build`` trains a model, which is kept for other runs (``remembered`` in ``runs/assembly.py``)."""

    @property
    def held_out(self) -> float:
        """Fraction of the training samples that the server needs as its labelled set."""
        return 0.0

    @abstractmethod
    def build(
        self, spec: ModelSpec, task: Any, labelled: tuple[Tensor, Tensor] | None, seed: int, rng: np.random.Generator
    ) -> nn.Module:
        """Build the initial model.

        Args:
            spec: the clients' model.
            task: the task, for shapes, classes and the loss.
            labelled: inputs and labels that only the server has, or None.
            seed: seed of the random weights.
            rng: a random stream for this work alone.
        """


@INITIALISERS.register("random")
class RandomInitial(Initialiser):
    """The model's own random weights."""

    def build(
        self, spec: ModelSpec, task: Any, labelled: tuple[Tensor, Tensor] | None, seed: int, rng: np.random.Generator
    ) -> nn.Module:
        """Return the model with its random weights."""
        return initial_model(spec, task.input_spec, seed)


def _check_module(name: str, module: nn.Module) -> None:
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
    """Torch's ``FlopCounterMode`` without its slow imports: the compiler and, for linear layers, triton."""

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

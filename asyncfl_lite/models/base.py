"""What a model's description is: settings that build a module for a task's shapes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from asyncfl_lite.registry import Registry, Settings
from asyncfl_lite.vectors import VectorModel

MODELS: Registry[ModelSpec] = Registry("model")


@dataclass(frozen=True)
class InputSpec:
    """What a task's inputs look like, for those who make some up.

    Attributes:
        shape: of one input.
        num_classes: C.
        low, high: range of the values of real-valued inputs.
        vocabulary: number of tokens where inputs are token ids, else None.
    """

    shape: tuple[int, ...]
    num_classes: int
    low: float = 0.0
    high: float = 1.0
    vocabulary: int | None = None


class ModelSpec(Settings):
    """A model's settings."""

    vectorises: ClassVar[bool] = True
    """Whether several clients' models can be trained as one computation (``torch.func.vmap``)."""

    @abstractmethod
    def build(self, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Return a module from ``(n, *input_shape)`` inputs to ``(n, num_classes)`` logits.

        Its weights come from torch's global generator; :func:`initial_model` seeds that.
        """

    def build_for(self, inputs: InputSpec) -> nn.Module:
        """Return a module for a task's inputs; models of token ids take the vocabulary from there."""
        return self.build(inputs.shape, inputs.num_classes)


def initial_model(spec: ModelSpec, inputs: InputSpec, seed: int) -> nn.Module:
    """Build ``spec`` with weights drawn from ``seed``, leaving torch's global generator as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return spec.build_for(inputs)


def forward_flop(model: VectorModel, inputs: InputSpec) -> int:
    """Return the floating-point operations of one sample's forward pass."""
    x, buffers = model.flatten()
    counter = FlopCounterMode(display=False)
    kind = {"dtype": x.dtype if inputs.vocabulary is None else torch.int64, "device": x.device}
    with counter, torch.no_grad():
        model(x, torch.zeros(1, *inputs.shape, **kind), buffers)
    return counter.get_total_flops()

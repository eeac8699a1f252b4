"""Dropout that draws from each job's own generator, so that a job's result is the same alone and in a cohort.

Torch's dropout draws from one generator for the whole process, so a mask would depend on what was trained before, and
``vmap`` does not allow such draws. Inside :class:`Draws`, dropout layers and functions draw a job's masks from that
job's generator. All other random numbers of a model come from torch's own generator, which :func:`.seeded` seeds when a
job is trained alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx
from torch.nn import functional
from torch.overrides import TorchFunctionMode


class Generators(NamedTuple):
    """The random generators of one job's dropout.

    Attributes:
        own: generator for the job's samples.
        padding: generator for the padding of the job's minibatches when jobs are trained side by side.
    """

    own: torch.Generator
    padding: torch.Generator

    @classmethod
    def seeded(cls, seeds: Sequence[int], device: torch.device) -> Generators:
        """Make generators on ``device`` with these two seeds."""
        return cls(*(torch.Generator(device).manual_seed(int(seed)) for seed in seeds))


class Draws(TorchFunctionMode):
    """Context in which dropout draws from the generators of the jobs that are being trained.

    Args:
        generators: the generators of each job.
        widths: number of samples in each job's minibatch; None for one job alone, whose minibatch is not padded.
        size: number of samples to which shorter minibatches are padded.

    Attributes:
        row: a tensor of the job that is being computed, set inside ``vmap``.
    """

    def __init__(self, generators: Sequence[Generators], widths: Sequence[int] | None = None, size: int = 0) -> None:
        super().__init__()
        self.generators, self.widths, self.size = generators, widths, size
        self.row: Tensor | None = None

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Replace torch's dropout functions; all other functions stay as they are."""
        kwargs = kwargs or {}
        return FUNCTIONS[func](self, *args, **kwargs) if func in FUNCTIONS else func(*args, **kwargs)

    def dropped(self, h: Tensor, p: float, channels: bool = False) -> Tensor:
        """Zero each number, or channel, of ``(G, n, …)`` activations with probability p, and scale up the others."""
        shape = (*h.shape[:3], *[1] * (h.dim() - 3)) if channels else h.shape
        keep = torch.empty(shape, device=h.device)
        for row, (own, padding) in enumerate(self.generators):
            samples = self._samples(row, shape[1])
            if samples < shape[1]:
                keep[row].bernoulli_(1 - p, generator=padding)
            keep[row, :samples].bernoulli_(1 - p, generator=own)
        return h * (keep if p == 1 else keep.div_(1 - p)).to(h.dtype)

    def _samples(self, row: int, count: int) -> int:
        if self.widths is None or count % self.size:
            return count
        return count // self.size * self.widths[row]


class _Dropped(torch.autograd.Function):
    """Function that applies :meth:`Draws.dropped` to the activations of all jobs that ``vmap`` computes at once.

    The method itself is passed as the argument ``dropped``.
    """

    generate_vmap_rule = False

    @staticmethod
    def forward(h: Tensor, row: Tensor, dropped: Callable[..., Tensor], p: float, channels: bool) -> Tensor:
        """Raise an error; torch never calls this, because ``row`` is always a tensor inside ``vmap``."""
        raise NotImplementedError

    @staticmethod
    def setup_context(ctx: FunctionCtx, inputs: tuple, output: Tensor) -> None:
        """Save nothing, because the rule for several jobs is differentiable by itself."""

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple, h: Tensor, row: Tensor, dropped: Callable[..., Tensor], p: float, channels: bool
    ) -> tuple[Tensor, int]:
        """Apply dropout to all jobs' activations at once; return them, and 0 for the axis along which the jobs lie."""
        h = h.expand(info.batch_size, *h.shape) if in_dims[0] is None else h.movedim(in_dims[0], 0)
        return dropped(h, p, channels), 0


def _dropout(channels: bool) -> Callable[..., Tensor]:
    def dropout(draws: Draws, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        if not training or p == 0:
            return input
        if draws.widths is None:
            return draws.dropped(input[None], p, channels)[0]
        return _Dropped.apply(input, draws.row, draws.dropped, p, channels)

    return dropout


FUNCTIONS = {functional.dropout: _dropout(False), torch.dropout: _dropout(False)} | dict.fromkeys(
    (functional.dropout1d, functional.dropout2d, functional.dropout3d), _dropout(True)
)
"""Torch's dropout functions -> their replacements."""

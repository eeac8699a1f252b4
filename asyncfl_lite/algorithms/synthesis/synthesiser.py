"""Synthesis of inputs, and meta-learning that makes the next synthesis better (FedRevive §2.2, steps 2 and 3).

A maker turns parameters θ, latents z and labels into inputs. Each synthesis starts from θ and fresh latents,
takes a few steps on both, keeps the best batch, and moves θ a little towards where the steps led (Reptile,
Nichol et al. 2018, as Fang et al., "Up to 100x Faster Data-Free Knowledge Distillation", AAAI 2022, use it).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor

BETAS = (0.5, 0.999)
"""Adam's betas in the inner steps and in the meta-update (the authors' code)."""


class InputMaker(Protocol):
    """Protocol for a generator or soft prompts, which make inputs from parameters and latents."""

    def initial(self) -> Tensor:
        """Return the ``(g,)`` initial parameters θ."""

    def latents(self, labels: Tensor, x: Tensor, rng: np.random.Generator) -> list[Tensor]:
        """Return fresh latents for ``(B,)`` labels, given the global model's ``(d,)`` parameters."""

    def __call__(self, theta: Tensor, latents: list[Tensor], labels: Tensor) -> Tensor:
        """Return ``(B, …)`` inputs, differentiable in ``theta`` and ``latents``."""


class Synthesiser:
    """Maker of synthetic inputs whose parameters are meta-learned.

    Args:
        maker: the maker, which turns θ, latents and labels into inputs.
        steps: K_synth, the number of gradient steps in one synthesis.
        generator_lr: Adam's learning rate on θ within a synthesis.
        latent_lr: Adam's learning rate on the latents.
        meta: ``sgd``, θ ← (1 - λ) θ + λ θ' (the paper), or ``adam``, with θ - θ' as Adam's gradient (the authors' code,
            which drops the factor of 67 in Fang et al.'s code; Adam is nearly invariant to it).
        meta_rate: λ, the step size of ``meta="sgd"``.
        meta_lr: Adam's learning rate for ``meta="adam"``; by default, ``generator_lr``.
        meta_eps: Adam's ε for ``meta="adam"``. The authors' code has 0 for a generator, so that a weight that has never
            moved keeps its value, and PyTorch's 1e-8 for prompts. ε matters only for weights that a synthesis moves by
            less than 1e-7.

    Attributes:
        theta: ``(g,)`` parameters θ; replaced, never changed in place.
        syntheses: number of syntheses that have begun.
    """

    def __init__(
        self,
        maker: InputMaker,
        *,
        steps: int = 2,
        generator_lr: float = 3e-3,
        latent_lr: float = 1e-3,
        meta: Literal["sgd", "adam"] = "sgd",
        meta_rate: float = 0.2,
        meta_lr: float | None = None,
        meta_eps: float = 0.0,
    ) -> None:
        self.maker = maker
        self.steps = steps
        self.generator_lr = generator_lr
        self.latent_lr = latent_lr
        self.meta = meta
        self.meta_rate = meta_rate
        self.meta_lr = generator_lr if meta_lr is None else meta_lr
        self.meta_eps = meta_eps
        self.theta = maker.initial()
        self.syntheses = 0
        self._adam: dict[str, Any] | None = None

    def synthesise(self, loss: Callable[[Tensor], Tensor], latents: list[Tensor], labels: Tensor) -> Tensor | None:
        """Run one synthesis, and return the ``(B, …)`` inputs that had the lowest loss among its steps.

        Args:
            loss: a function from ``(B, …)`` inputs to their loss.
            latents: latents from the maker's ``latents``.
            labels: ``(B,)``.

        Returns:
            The inputs, without gradient, or None if even the first loss was not finite; a synthesis ends early at such
            a loss.
        """
        (best,) = synthesised([self], lambda _, inputs: loss(*inputs)[None], [latents], [labels])
        return best

    def meta_update(self, adapted: Tensor) -> None:
        """Move θ towards ``adapted``, the ``(g,)`` parameters θ' after the steps of a synthesis."""
        if self.meta == "sgd":
            self.theta = torch.lerp(self.theta, adapted, self.meta_rate)
            return
        point = self.theta.clone().requires_grad_()
        optimiser = torch.optim.Adam([point], lr=self.meta_lr, betas=BETAS, eps=self.meta_eps)
        if self._adam is not None:
            optimiser.load_state_dict(self._adam)
        point.grad = self.theta - adapted
        optimiser.step()
        moved = torch.isfinite(point)  # without ε, Adam divides 0 by 0 where nothing has ever moved
        self.theta, self._adam = torch.where(moved, point, self.theta).detach(), optimiser.state_dict()

    def state(self) -> dict[str, Any]:
        """Return the state that :meth:`restore` loads."""
        return {"theta": self.theta, "adam": self._adam, "syntheses": self.syntheses}

    def restore(self, state: dict[str, Any]) -> None:
        """Load a saved state."""
        self.theta, self._adam, self.syntheses = state["theta"], state["adam"], state["syntheses"]


Losses = Callable[[Sequence[int], Sequence[Tensor]], Tensor]
"""``(indices of synthesisers, each one's (B, …) inputs) -> (len(indices),)`` losses."""


def synthesised(
    synthesisers: Sequence[Synthesiser],
    losses: Losses,
    latents: Sequence[Sequence[Tensor]],
    labels: Sequence[Tensor],
) -> list[Tensor | None]:
    """Run one synthesis of each synthesiser, side by side; see :meth:`Synthesiser.synthesise`."""
    thetas = [one.theta.clone().requires_grad_() for one in synthesisers]
    own = [[latent.clone().requires_grad_() for latent in given] for given in latents]
    groups: list[dict[str, Any]] = []
    for one, theta, given in zip(synthesisers, thetas, own, strict=True):
        one.syntheses += 1
        groups += [{"params": [theta], "lr": one.generator_lr}, {"params": given, "lr": one.latent_lr}]
    optimiser = torch.optim.Adam(groups, betas=BETAS)
    best: list[Tensor | None] = [None] * len(synthesisers)
    lowest = [float("inf")] * len(synthesisers)
    going = list(range(len(synthesisers)))
    for _ in range(synthesisers[0].steps):
        inputs = [synthesisers[place].maker(thetas[place], own[place], labels[place]) for place in going]
        values = losses(going, inputs)
        numbers = values.tolist()
        for place, value, made in zip(going, numbers, inputs, strict=True):
            if value < lowest[place]:
                best[place], lowest[place] = made.detach(), value
        finite = [math.isfinite(value) for value in numbers]
        optimiser.zero_grad()
        if not any(finite):
            break
        values.masked_fill(~torch.tensor(finite, device=values.device), 0.0).sum().backward()
        for place in (place for place, sound in zip(going, finite, strict=True) if not sound):
            for parameter in (thetas[place], *own[place]):
                parameter.grad = None  # it stays where it is
        optimiser.step()
        going = [place for place, sound in zip(going, finite, strict=True) if sound]
    for one, theta in zip(synthesisers, thetas, strict=True):
        one.meta_update(theta.detach())
    return best

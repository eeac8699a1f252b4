"""FedRevive's synthetic inputs: the losses that shape them, their generator or soft prompts, and one synthesis.

FedRevive, §2.2, steps 2 and 3, Eq. 4. K teachers classify B synthetic inputs. Every term of the loss is a mean over
the inputs of a sum over the teachers, each weighted by its ω̂ for the input's label. Leading dimensions ``…`` may hold
several servers side by side.

A maker (a generator, or soft prompts) turns parameters θ, latents z and labels into inputs. Each synthesis starts from
θ and fresh latents, takes a few steps on both, keeps the best batch, and moves θ a little towards where the steps led
(Reptile, Nichol et al. 2018, as Fang et al., "Up to 100x Faster Data-Free Knowledge Distillation", AAAI 2022, use it).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from asyncfl_lite.algorithms.losses import cross_entropy, kl_divergence
from asyncfl_lite.base.devices import seeded
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.models.base import InputSpec
from asyncfl_lite.models.features import (
    check_takes_embeddings,
    outputs_and_statistics,
    stacked_outputs_and_statistics,
    table_of,
)
from asyncfl_lite.models.stacked import keeps_bits, shared_chain
from asyncfl_lite.models.steps import Adam
from asyncfl_lite.models.vectors import VectorModel, all_finite

BETAS = (0.5, 0.999)
"""Adam's betas in the steps of a synthesis (the authors' code)."""
CLASS_WEIGHT = 0.2
"""Weight of a class's embedding relative to the noise (the authors' code)."""
META_RATE = 0.2
"""λ, the step size of the meta-update; the paper gives no value."""

# Eq. 4


def teacher_weights(proportions: Tensor) -> Tensor:
    """Return ω̂, each teacher's weight for each class: its class proportions, divided by their sum over teachers.

    Args:
        proportions: ``(K, C)`` the teachers' class proportions.

    Returns:
        ``(K, C)``; each class's column sums to 1. A class that no teacher has is shared equally.
    """
    total = proportions.sum(0)
    return torch.where(total > 0, proportions / torch.where(total > 0, total, 1.0), 1 / len(proportions))


def weights_of(labels: Tensor, weights: Tensor) -> Tensor:
    """Return each teacher's weight ω̂ for each input's label, ``(…, K, B)``."""
    return weights.gather(-1, labels.unsqueeze(-2).expand(*weights.shape[:-1], -1))


def target_loss(logits: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Return L_target: the teachers' weighted cross entropies with the requested labels; see :func:`synthesis_loss`."""
    losses = cross_entropy(logits, labels.unsqueeze(-2).expand(logits.shape[:-1]))
    return (weights_of(labels, weights) * losses).sum(-2).mean(-1)


def adversarial_loss(logits: Tensor, student: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Return L_adv: minus the divergence of the teachers from the student, where both predict the same class."""
    student = student.unsqueeze(-3)
    agree = logits.argmax(-1) == student.argmax(-1)
    divergence = kl_divergence(logits.softmax(-1), student)
    return -(weights_of(labels, weights) * agree * divergence).sum(-2).mean(-1)


def feature_loss(statistics: list[Tensor], stored: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
    """Return L_feat: the distance between the feature statistics of the batch and those of real data.

    φ is computed on the whole batch, since one sample has no variance; so each teacher's distance counts with the
    teacher's mean weight over the batch. The distance is the norm of the difference in means plus that of the
    difference in variances, summed over layers, as in the authors' code; the paper prints the squared norm of all
    differences.
    """
    targets = stored.split([layer.shape[-1] for layer in statistics], dim=-1) if statistics else ()
    distance = stored.new_zeros(stored.shape[:-2])
    for layer, target in zip(statistics, targets, strict=True):
        distance = distance + torch.linalg.vector_norm(layer - target, dim=-1).sum(-1)
    return (weights_of(labels, weights).mean(-1) * distance).sum(-1)


def synthesis_loss(
    logits: Tensor,
    statistics: list[Tensor],
    stored: Tensor | None,
    student: Tensor | None,
    labels: Tensor,
    weights: Tensor,
    *,
    alpha_feat: float = 0.0,
    alpha_adv: float = 0.0,
) -> Tensor:
    """Return L_synth (FedRevive Eq. 4): the target term, which has weight 1, the feature and the adversarial term.

    Args:
        logits: the teachers' ``(…, K, B, C)`` logits.
        statistics: for each layer of φ, the teachers' ``(…, K, 2, channels)`` statistics on the batch.
        stored: the teachers' ``(…, K, 2, F)`` statistics φ̄ on real data, or None.
        student: the global model's ``(…, B, C)`` logits, or None.
        labels: ``(…, B)`` requested classes.
        weights: the teachers' ``(…, K, C)`` weights ω̂.
        alpha_feat, alpha_adv: weights of the other terms. A term is left out if its weight is 0, or if what it compares
            is None.
    """
    loss = target_loss(logits, labels, weights)
    if alpha_feat and stored is not None:
        loss = loss + alpha_feat * feature_loss(statistics, stored, labels, weights)
    if alpha_adv and student is not None:
        loss = loss + alpha_adv * adversarial_loss(logits, student, labels, weights)
    return loss


# G_θ


def image_generator(shape: tuple[int, ...], nz: int, width: int) -> nn.Sequential:
    """Return a generator of images in [0, 1] of a given ``(channels, height, width)`` from ``(B, nz)`` latents.

    The first feature map has a quarter of the image's height and width, rounded up, and the last upsampling exactly the
    image's size. ``width`` is ngf, the number of channels before the last convolution.
    """
    channels, *sides = shape
    quarter = (2 * width, *(math.ceil(side / 4) for side in sides))
    norm = partial(nn.BatchNorm2d, track_running_stats=False)
    return nn.Sequential(
        nn.Linear(nz, math.prod(quarter)),
        nn.Unflatten(1, quarter),
        norm(2 * width),
        nn.Upsample(scale_factor=2),
        nn.Conv2d(2 * width, 2 * width, 3, padding=1, bias=False),
        norm(2 * width),
        nn.LeakyReLU(0.2),
        nn.Upsample(size=tuple(sides)),
        nn.Conv2d(2 * width, width, 3, padding=1, bias=False),
        norm(width),
        nn.LeakyReLU(0.2),
        nn.Conv2d(width, channels, 3, padding=1),
        nn.Sigmoid(),
    )


def vector_generator(shape: tuple[int, ...], nz: int, width: int) -> nn.Sequential:
    """Return a generator of other inputs in [0, 1]: two linear layers, our choice and not the paper's."""
    return nn.Sequential(
        nn.Linear(nz, 2 * width),
        nn.BatchNorm1d(2 * width, track_running_stats=False),
        nn.LeakyReLU(0.2),
        nn.Linear(2 * width, math.prod(shape)),
        nn.Sigmoid(),
        nn.Unflatten(1, shape),
    )


class GeneratedInputs:
    """The maker of images and vectors, a generator network.

    Its latents are ``(B, nz)`` noise and ``(C, nz)`` class embeddings, both drawn anew and trained in every
    synthesis, as in the authors' code.

    Args:
        spec: shape and range of the task's inputs.
        nz: length of a latent.
        width: ngf, the width of the generator.
        seed: the seed of the initial weights.
        like: a tensor with the dtype and device to use.
    """

    def __init__(self, spec: InputSpec, nz: int, width: int, seed: int, like: Tensor) -> None:
        build = image_generator if len(spec.shape) == 3 else vector_generator
        with seeded(seed):
            self.generator = VectorModel(build(spec.shape, nz, width).to(like))
        self.spec, self.nz, self.like = spec, nz, like

    def initial(self) -> Tensor:
        """Return the generator's ``(g,)`` initial weights."""
        return self.generator.flatten()[0]

    def latents(self, labels: Tensor, x: Tensor, rng: np.random.Generator) -> list[Tensor]:
        """Return ``(B, nz)`` noise and ``(C, nz)`` class embeddings, standard normal."""
        sizes = [(len(labels), self.nz), (self.spec.num_classes, self.nz)]
        return [torch.from_numpy(rng.standard_normal(size)).to(self.like) for size in sizes]

    def __call__(self, theta: Tensor, latents: list[Tensor], labels: Tensor) -> Tensor:
        """Generate ``(B, *shape)`` inputs within the task's range."""
        noise, embeddings = latents
        conditioned = noise + CLASS_WEIGHT * embeddings[labels]
        return self.spec.low + (self.spec.high - self.spec.low) * self.generator(theta, conditioned)


class SoftPrompts:
    """The maker for text: soft prompts, then embeddings of snippets (FedRevive §3.2).

    A few meta-learned vectors, θ, come directly after the model's prediction token; the embeddings of a snippet of text
    follow them and are the latents. The paper's snippets come from a language model of a billion parameters; here they
    are rows of tokens that the caller provides, or random tokens.

    Args:
        spec: length of a text and number of tokens.
        model: the clients' model; it must have an embedding layer and accept ``(n, length, width)`` embeddings in place
            of ``(n, length)`` tokens, and both are checked.
        length: number of prompt vectors.
        seed: the seed of the initial vectors, which are standard normal.
        like: the model's ``(d,)`` initial parameters.
        snippets: ``(S, text length)`` rows of tokens from which synthesis starts; random tokens if None.

    Attributes:
        table: a function from the model's ``(d,)`` parameters to its ``(vocabulary, width)`` token embeddings.

    Raises:
        ConfigError: when prompts leave no room for text, or the model has no embedding layer or takes no embeddings.
    """

    def __init__(
        self,
        spec: InputSpec,
        model: VectorModel,
        length: int,
        seed: int,
        like: Tensor,
        snippets: Tensor | None = None,
    ) -> None:
        (text_length,) = spec.shape
        if length >= text_length:
            raise ConfigError(f"inputs: texts must have more than {length} tokens, the soft prompts, got {text_length}")
        self.table = table_of(model, spec, like)
        check_takes_embeddings(model, spec, like, self.table)
        self.spec, self.length, self.snippets = spec, length, snippets
        self._initial = torch.randn(length * self.table(like).shape[-1], generator=torch.Generator().manual_seed(seed))
        self._initial = self._initial.to(like)

    def initial(self) -> Tensor:
        """Return the initial prompt vectors, concatenated to ``(length · width,)``."""
        return self._initial

    def latents(self, labels: Tensor, x: Tensor, rng: np.random.Generator) -> list[Tensor]:
        """Return the ``(B, text length - length, width)`` embeddings, in model ``x``, of snippets or random tokens."""
        shape = (len(labels), self.spec.shape[0])
        if self.snippets is None:
            tokens = torch.from_numpy(rng.integers(self.spec.vocabulary or 0, size=shape))
        else:
            tokens = self.snippets[torch.from_numpy(rng.integers(len(self.snippets), size=len(labels)))]
        return [self.table(x)[tokens[:, self.length :].to(x.device)].detach()]

    def __call__(self, theta: Tensor, latents: list[Tensor], labels: Tensor) -> Tensor:
        """Return ``(B, text length, width)`` embeddings: the prompts, then the latents."""
        (text,) = latents
        prompts = theta.view(self.length, -1).expand(len(text), -1, -1)
        return torch.cat([prompts, text], dim=1)


# One synthesis


@dataclass(eq=False)
class Synthesiser:
    """A maker of inputs with meta-learned parameters.

    Attributes:
        maker: turns θ, latents and labels into inputs.
        steps: K_synth, the number of gradient steps in one synthesis.
        generator_lr: Adam's learning rate on θ within a synthesis.
        latent_lr: Adam's learning rate on the latents.
        meta_rate: λ, the step size of the meta-update.
        theta: ``(g,)`` parameters θ; replaced, never changed in place.
        syntheses: number of syntheses that have begun.
    """

    maker: GeneratedInputs | SoftPrompts
    _: KW_ONLY
    steps: int = 2
    generator_lr: float = 3e-3
    latent_lr: float = 1e-3
    meta_rate: float = META_RATE
    syntheses: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.theta = self.maker.initial()

    def synthesise(self, loss: Callable[[Tensor], Tensor], latents: list[Tensor], labels: Tensor) -> Tensor | None:
        """Run one synthesis, with a loss of its ``(B, …)`` inputs alone; see :func:`synthesised`."""
        return synthesised([self], lambda _, inputs: loss(*inputs)[None], [latents], [labels])[0]

    def meta_update(self, adapted: Tensor) -> None:
        """Move θ towards the ``(g,)`` parameters θ' after a synthesis: θ ← (1 - λ) θ + λ θ'.

        The authors' code gives θ - θ' to Adam instead.
        """
        self.theta = torch.lerp(self.theta, adapted, self.meta_rate)


Losses = Callable[[Sequence[int], Sequence[Tensor]], Tensor]
"""``(indices of synthesisers, each one's (B, …) inputs) -> (len(indices),)`` losses."""


def synthesised(
    synthesisers: Sequence[Synthesiser],
    losses: Losses,
    latents: Sequence[Sequence[Tensor]],
    labels: Sequence[Tensor],
) -> list[Tensor | None]:
    """Run one synthesis of each synthesiser, side by side.

    Returns:
        Each one's ``(B, …)`` inputs that had the lowest loss among its steps, without gradient. They are None if even
        the first loss was not finite; a synthesis ends early at such a loss.
    """
    moved: list[list[Tensor]] = []  # each one's θ and latents
    optimisers: list[list[Adam]] = []
    for one, given in zip(synthesisers, latents, strict=True):
        one.syntheses += 1
        moved.append([part.clone().requires_grad_() for part in (one.theta, *given)])
        rates = [one.generator_lr] + [one.latent_lr] * len(given)
        optimisers.append([Adam(part.detach(), rate, betas=BETAS) for part, rate in zip(moved[-1], rates, strict=True)])
    best: list[Tensor | None] = [None] * len(synthesisers)
    lowest = [math.inf] * len(synthesisers)
    going = list(range(len(synthesisers)))
    for _ in range(synthesisers[0].steps):
        inputs = [synthesisers[index].maker(moved[index][0], moved[index][1:], labels[index]) for index in going]
        values = losses(going, inputs)
        for index, value, made in zip(going, values.tolist(), inputs, strict=True):
            if value < lowest[index]:
                best[index], lowest[index] = made.detach(), value
        finite, moving = values.isfinite(), []
        parts = [part for index in going for part in moved[index]]
        gradients = iter(torch.autograd.grad(torch.where(finite, values, 0.0).sum(), parts, allow_unused=True))
        for index, ok in zip(going, finite.tolist(), strict=True):
            found = [next(gradients) for _ in moved[index]]
            # the gradient of a finite loss may not be finite, and would ruin θ
            if ok and all(gradient is None or all_finite(gradient) for gradient in found):
                moving.append(index)
                for part, gradient, step in zip(moved[index], found, optimisers[index], strict=True):
                    if gradient is not None:
                        step(part.detach(), gradient)  # which moves the part, too
        going = moving
        if not going:
            break
    for one, (theta, *_) in zip(synthesisers, moved, strict=True):
        one.meta_update(theta.detach())
    return best


@dataclass(frozen=True, eq=False)
class Synthesis:
    """A request for synthetic inputs of given classes, made by a server's synthesiser with K teachers.

    Attributes:
        synthesiser: the server's synthesiser.
        labels: ``(B,)`` requested classes.
        latents: the latents from which the synthesis starts.
        model: the module that teachers and student share; only their vectors differ.
        xs: ``(d,)`` parameters of each teacher, and finally of the student, which is the global model.
        buffers: ``(b,)`` running statistics, or None, one entry per model.
        stored: ``(2, F)`` statistics φ̄, or None, one entry per teacher.
        weights: the teachers' ``(K, C)`` weights ω̂.
        alpha_feat, alpha_adv: weights of two terms of the loss; see :func:`synthesis_loss`.
        class_logits: ``outputs -> (n, C)``, one row of logits per input.

    The request's result is ``(B, …)`` inputs, or None; see :func:`synthesised`.
    """

    synthesiser: Synthesiser
    labels: Tensor
    latents: list[Tensor]
    model: VectorModel
    xs: Sequence[Tensor]
    buffers: Sequence[Tensor | None]
    stored: Sequence[Tensor | None]
    weights: Tensor
    alpha_feat: float
    alpha_adv: float
    class_logits: Callable[[Tensor], Tensor]

    @property
    def shared(self) -> Hashable:
        """Key that requests must share to be computed together with bit-identical results; None if computed alone.

        Each synthesiser makes its own inputs.
        """
        if (chain := shared_chain(self.model, *self.buffers)) is None:
            return None
        run = None if keeps_bits(chain, len(self.labels)) else id(self)
        size = len(self.labels), len(self.xs), self.synthesiser.steps
        alphas = self.alpha_feat, self.alpha_adv
        return run, self.model.architecture, self.xs[0].dtype, self.xs[0].device, size, alphas

    def alone(self) -> Tensor | None:
        """Return the inputs; the models are evaluated one after another."""
        return self.synthesiser.synthesise(self._loss, self.latents, self.labels)

    def _loss(self, inputs: Tensor) -> Tensor:
        asked = list(zip(self.xs, self.buffers, strict=True))[: self.asked]
        answers = [outputs_and_statistics(self.model, x, inputs, buffers) for x, buffers in asked]
        outputs, statistics = zip(*answers, strict=True)
        layers = [torch.stack(layer)[None] for layer in zip(*statistics, strict=True)]
        return _losses_of([self], torch.stack(outputs)[None], layers)[0]

    @classmethod
    def together(cls, requests: Sequence[Synthesis]) -> list[Tensor | None]:
        """Return each request's inputs; all models are evaluated together."""
        return synthesised(
            [one.synthesiser for one in requests],
            lambda indices, inputs: _losses([requests[index] for index in indices], torch.stack(list(inputs))),
            [one.latents for one in requests],
            [one.labels for one in requests],
        )

    @property
    def asked(self) -> int:
        """Number of models that are evaluated: the teachers, and the student if the adversarial term counts."""
        return len(self.xs) - (not self.alpha_adv)


def _losses(requests: Sequence[Synthesis], inputs: Tensor) -> Tensor:
    """Return the ``(G,)`` synthesis losses of G servers' ``(G, B, …)`` inputs."""
    asked = requests[0].asked
    x = torch.stack([x for one in requests for x in one.xs[:asked]])
    same = inputs.unsqueeze(1).expand(-1, asked, *inputs.shape[1:]).flatten(0, 1)
    outputs, statistics = stacked_outputs_and_statistics(requests[0].model, x, same)
    sizes = len(requests), asked
    return _losses_of(requests, outputs.unflatten(0, sizes), [layer.unflatten(0, sizes) for layer in statistics])


def _losses_of(requests: Sequence[Synthesis], outputs: Tensor, statistics: list[Tensor]) -> Tensor:
    """Return the ``(G,)`` losses, given the models' ``(G, K or K + 1, B, …)`` outputs, and statistics by layer."""
    first, count = requests[0], len(requests[0].xs) - 1
    logits = torch.stack(
        [
            one.class_logits(rows.flatten(0, 1)).unflatten(0, rows.shape[:2])
            for one, rows in zip(requests, outputs, strict=True)
        ]
    )
    stored = [torch.stack([own for own in one.stored if own is not None]) for one in requests if first.alpha_feat]
    return synthesis_loss(
        logits[:, :count],
        [layer[:, :count] for layer in statistics],
        torch.stack(stored) if stored else None,
        logits[:, count] if first.alpha_adv else None,
        torch.stack([one.labels for one in requests]),
        torch.stack([one.weights for one in requests]),
        alpha_feat=first.alpha_feat,
        alpha_adv=first.alpha_adv,
    )

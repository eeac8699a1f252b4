"""Servers' requests for synthetic inputs, so that the teachers of several servers can be evaluated together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from asyncfl_lite.algorithms.synthesis.losses import FeatureNorm, TeacherAnswers, synthesis_loss
from asyncfl_lite.algorithms.synthesis.synthesiser import Synthesiser, synthesised
from asyncfl_lite.models.features import outputs_and_statistics, stacked_outputs_and_statistics
from asyncfl_lite.models.stacked import keeps_bits, shared_chain
from asyncfl_lite.models.vectors import VectorModel


class Terms(NamedTuple):
    """Weights of the terms of the synthesis loss, and the norm of the feature term; see :func:`.synthesis_loss`."""

    alpha_target: float
    alpha_feat: float
    alpha_adv: float
    feat_norm: FeatureNorm


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
        terms: weights of the loss's terms.
        class_logits: ``outputs -> (n, C)``, one row of logits per input.
        seen: transform of the inputs before the models see them, or None.

    The request's result is ``(B, …)`` inputs, or None; see :meth:`.Synthesiser.synthesise`.
    """

    synthesiser: Synthesiser
    labels: Tensor
    latents: list[Tensor]
    model: VectorModel
    xs: Sequence[Tensor]
    buffers: Sequence[Tensor | None]
    stored: Sequence[Tensor | None]
    weights: Tensor
    terms: Terms
    class_logits: Callable[[Tensor], Tensor]
    seen: Callable[[Tensor], Tensor] | None = None

    @property
    def shared(self) -> Hashable:
        """Key that requests must share to be computed together with bit-identical results; None if computed alone.

        Each synthesiser makes its own inputs.
        """
        if self.seen is not None or (chain := shared_chain(self.model, *self.buffers)) is None:
            return None
        run = None if keeps_bits(chain, len(self.labels)) else id(self)
        size = len(self.labels), len(self.xs), self.synthesiser.steps
        return run, self.model.architecture, self.xs[0].dtype, self.xs[0].device, size, self.terms

    def alone(self) -> Tensor | None:
        """Return the inputs; the teachers are evaluated one after another."""
        return self.synthesiser.synthesise(self._loss, self.latents, self.labels)

    def _loss(self, inputs: Tensor) -> Tensor:
        inputs = inputs if self.seen is None else self.seen(inputs)
        *teachers, student = zip(self.xs, self.buffers, strict=True)
        answers = [outputs_and_statistics(self.model, x, inputs, buffers) for x, buffers in teachers]
        logits, statistics = zip(*answers, strict=True)
        of_student = self.model(student[0], inputs, student[1]) if self.terms.alpha_adv else None
        return synthesis_loss(
            TeacherAnswers(
                torch.stack([self.class_logits(rows) for rows in logits]),
                [torch.stack(layer) for layer in zip(*statistics, strict=True)],
                _all_stored(self.stored) if self.terms.alpha_feat else None,
            ),
            None if of_student is None else self.class_logits(of_student),
            self.labels,
            self.weights,
            **self.terms._asdict(),
        )

    @classmethod
    def together(cls, requests: Sequence[Synthesis]) -> list[Tensor | None]:
        """Return each request's inputs; all teachers are evaluated together."""
        return synthesised(
            [one.synthesiser for one in requests],
            lambda places, inputs: _losses([requests[place] for place in places], torch.stack(list(inputs))),
            [one.latents for one in requests],
            [one.labels for one in requests],
        )


def _all_stored(stored: Sequence[Tensor | None]) -> Tensor:
    """Stack the ``(2, F)`` feature statistics of the clients that reported them."""
    return torch.stack([own for own in stored if own is not None])


def _losses(requests: Sequence[Synthesis], inputs: Tensor) -> Tensor:
    """Return the ``(G,)`` synthesis losses of G servers' ``(G, B, …)`` inputs."""
    terms, model = requests[0].terms, requests[0].model
    asked = len(requests[0].xs) - (not terms.alpha_adv)  # the student only if it counts
    x = torch.stack([x for one in requests for x in one.xs[:asked]])
    same = inputs.unsqueeze(1).expand(-1, asked, *inputs.shape[1:]).flatten(0, 1)
    outputs, statistics = stacked_outputs_and_statistics(model, x, same)
    by_server = outputs.unflatten(0, (len(requests), asked))
    logits = torch.stack(
        [
            one.class_logits(rows.flatten(0, 1)).unflatten(0, rows.shape[:2])
            for one, rows in zip(requests, by_server, strict=True)
        ]
    )
    count = len(requests[0].xs) - 1
    return synthesis_loss(
        TeacherAnswers(
            logits[:, :count],
            [layer.unflatten(0, (len(requests), asked))[:, :count] for layer in statistics],
            torch.stack([_all_stored(one.stored) for one in requests]) if terms.alpha_feat else None,
        ),
        logits[:, count] if terms.alpha_adv else None,
        torch.stack([one.labels for one in requests]),
        torch.stack([one.weights for one in requests]),
        **terms._asdict(),
    )

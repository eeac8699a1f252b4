"""Estimates of each client's class proportions from its first uploads (FedRevive §2.1 and Appendix B).

On noise, a model predicts the classes that it was trained on most. Its mean prediction is the client's proxy π̂ of
class proportions; the teachers' proxies give each teacher's weight ω̂ for each class.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.models.base import InputSpec


def probe_inputs(spec: InputSpec, count: int, rng: np.random.Generator, like: Tensor) -> Tensor:
    """Return ``(count, *shape)`` random inputs for probing models: standard normal values, or random tokens.

    Args:
        spec: shape and kind of the task's inputs.
        count: number of inputs.
        rng: the server's random stream.
        like: a tensor with the model's dtype and device.

    Returns:
        Values of the dtype of ``like``, or int64 tokens.
    """
    shape = (count, *spec.shape)
    if spec.vocabulary is not None:
        return torch.from_numpy(rng.integers(spec.vocabulary, size=shape)).to(like.device)
    return torch.from_numpy(rng.standard_normal(shape)).to(like)


def probed_proportions(logits: Tensor, temperature: float) -> Tensor:
    """Estimate a client's class proportions: the mean of ``softmax(logits / temperature)`` over probes.

    Args:
        logits: an uploaded model's ``(n, C)`` logits on the probes.
        temperature: T_probe, the temperature of the softmax.

    Returns:
        ``(C,)`` float64 probabilities, on the CPU.
    """
    return (logits.double() / temperature).softmax(-1).mean(0).cpu()


def teacher_weights(proportions: Tensor) -> Tensor:
    """Return ω̂, each teacher's weight for each class: its class proportions, divided by their sum over teachers.

    Args:
        proportions: ``(K, C)`` the teachers' class proportions.

    Returns:
        ``(K, C)``; each class's column sums to 1. A class that no teacher has is shared equally.
    """
    total = proportions.sum(0)
    return torch.where(total > 0, proportions / torch.where(total > 0, total, 1.0), 1 / len(proportions))


class ClassProxies:
    """Class proportions of each client, averaged over its first uploads.

    Args:
        num_classes: C, the number of classes.
        uploads: T_est, the number of a client's uploads that count; later ones change nothing.

    Attributes:
        sums: client -> ``(C,)`` float64 sum of the proportions from its uploads.
        counts: client -> number of uploads in that sum.
    """

    def __init__(self, num_classes: int, uploads: int = 2) -> None:
        self.num_classes = num_classes
        self.uploads = uploads
        self.sums: dict[int, Tensor] = {}
        self.counts: dict[int, int] = {}

    def complete(self, client: int) -> bool:
        """Return whether the client's class proportions are final, because enough of its uploads have been counted."""
        return self.counts.get(client, 0) >= self.uploads

    def add(self, client: int, proportions: Tensor) -> None:
        """Add one upload's ``(C,)`` proportions to a client's estimate; values that are not finite are skipped."""
        if not self.complete(client) and torch.isfinite(proportions).all():
            self.sums[client] = self.sums.get(client, 0.0) + proportions
            self.counts[client] = self.counts.get(client, 0) + 1

    def of(self, clients: Sequence[int]) -> Tensor:
        """Return the clients' ``(len(clients), C)`` class proportions, uniform for clients without an estimate."""
        unknown = torch.full((self.num_classes,), 1 / self.num_classes, dtype=torch.float64)
        rows = [self.sums[i] / self.counts[i] if i in self.sums else unknown for i in clients]
        return torch.stack(rows)

    def state(self) -> dict[str, dict]:
        """Return the state that :meth:`restore` loads."""
        return {"sums": dict(self.sums), "counts": dict(self.counts)}

    def restore(self, state: dict[str, dict]) -> None:
        """Load a saved state."""
        self.sums = {client: total.cpu() for client, total in state["sums"].items()}
        self.counts = dict(state["counts"])

"""Trackers, which record the statistics that BatchNorm would keep, but do not normalise (FedRevive's authors' code)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from asyncfl_lite.models.vectors import VectorModel

MOMENTUM = 0.1
"""Weight of the newest minibatch in the statistics, as in PyTorch's BatchNorm."""


class Tracker(nn.Module):
    """Layer that returns its input unchanged and, in training, records means and biased variances by channel.

    In a run, the statistics begin at 0 and 1 in every job and with every version of the global model, whatever the
    method and ``bn_mode``. So a client's report contains the statistics of its own data alone.

    Args:
        channels: number of channels, the second axis of the inputs.

    >>> layer = Tracker(1)
    >>> layer(torch.tensor([[1.0], [3.0]])).tolist()
    [[1.0], [3.0]]
    >>> layer.running_mean, layer.running_var  # 0.9 of 0 and 0.1 of 2; 0.9 of 1 and 0.1 of 1
    (tensor([0.2000]), tensor([1.]))
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return ``(n, channels, …)`` inputs as they are."""
        if self.training:
            variance, mean = torch.var_mean(inputs.detach().movedim(1, -1).flatten(0, -2), dim=0, correction=0)
            self.running_mean.lerp_(mean, MOMENTUM)
            self.running_var.lerp_(variance, MOMENTUM)
        return inputs

    def reset(self) -> None:
        """Forget everything that was recorded."""
        self.running_mean.zero_()
        self.running_var.fill_(1.0)

    def extra_repr(self) -> str:
        """Return the number of channels, for ``repr``."""
        return str(self.channels)


def begin_anew(model: VectorModel) -> None:
    """Reset all trackers of a model: its module may have been trained before."""
    for layer in model.module.modules():
        if isinstance(layer, Tracker):
            layer.reset()


def only_tracks(model: VectorModel) -> bool:
    """Return whether a model keeps running statistics, and all of them are trackers'."""
    layers = dict(model.module.named_modules())
    owners = [layers[slot.name.rpartition(".")[0]] for slot in model.buffer_slots]
    return bool(owners) and all(isinstance(owner, Tracker) for owner in owners)

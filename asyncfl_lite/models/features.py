"""Statistics φ of a model's hidden features, by which synthetic inputs are compared with real ones.

FedRevive Eq. 4 (the feature term) and Appendix I; the idea is DeepInversion's (Yin et al., CVPR 2020, Eq. 4).
φ is a mean and a variance for every channel of

1. the hidden state of the first token after each layer of the encoder, if the model classifies by a prediction token of
   its own before the text, as Appendix I describes for T5 (the authors' code takes only means, of the second and the
   fifth of T5-small's six layers, and compares every sample with them);
2. otherwise, the inputs of the BatchNorm layers and trackers, if the model has any that keep running statistics,
   because the model itself then stores the statistics of real data;
3. otherwise, the inputs of its other normalisation layers;
4. otherwise, the outputs of its convolutional and linear layers except the last, which gives the logits.

Embedding layers do not count, because made-up text enters a model after them; nor do frozen parts, which no client
changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from asyncfl_lite.models.stacked import hidden_and_outputs
from asyncfl_lite.models.tracker import Tracker
from asyncfl_lite.models.vectors import VectorModel, batch_sizes

NORMALISATIONS = (_BatchNorm, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)
WEIGHTED = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
CHANNELS_LAST = (nn.Linear, nn.LayerNorm, nn.RMSNorm)

Look = Callable[[nn.Module, tuple[Any, ...], Any], Tensor]
"""A function from a layer, its inputs and its output to ``(…, channels)`` features."""


def _statistics_keepers(model: VectorModel) -> dict[str, nn.Module]:
    """Return the trackers, and the BatchNorm layers with running statistics, by name, in the module's order."""
    named = model.trained_modules().items()
    return {
        name: layer
        for name, layer in named
        if isinstance(layer, Tracker) or (isinstance(layer, _BatchNorm) and layer.track_running_stats)
    }


def _of_first_token(layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> Tensor:
    """Return the hidden state of the first token from a layer's output, which may be a tuple."""
    return (output[0] if isinstance(output, tuple) else output)[:, 0]


def _of_input(layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> Tensor:
    return _channels_last(layer, inputs[0])


def _of_output(layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> Tensor:
    return _channels_last(layer, output)


def _channels_last(layer: nn.Module, features: Tensor) -> Tensor:
    return features if isinstance(layer, CHANNELS_LAST) else features.movedim(1, -1)


def _layers(model: VectorModel) -> tuple[list[nn.Module], Look]:
    """Return the layers whose features make up φ, in the module's order, and a function that reads these features."""
    encoders = (part for part in model.module.modules() if isinstance(part, (nn.ModuleList, nn.Sequential)))
    if hasattr(model.module, "prediction_token") and (encoder := next(encoders, None)) is not None:
        return list(encoder), _of_first_token
    keepers: list[nn.Module] = list(_statistics_keepers(model).values())
    if keepers:
        return keepers, _of_input
    layers: list[nn.Module] = list(model.trained_modules().values())
    others: list[nn.Module] = [layer for layer in layers if isinstance(layer, NORMALISATIONS)]
    if others:
        return others, _of_input
    return [layer for layer in layers if isinstance(layer, WEIGHTED)], _of_output


def _moments(features: Tensor) -> Tensor:
    """Return the ``(2, channels)`` means and biased variances over samples and positions."""
    variance, mean = torch.var_mean(features.flatten(0, -2), dim=0, correction=0)
    return torch.stack([mean, variance])


@contextmanager
def _watched(layers: list[nn.Module], look: Look) -> Iterator[dict[nn.Module, Tensor]]:
    """Context that records means and variances of the features of ``layers`` in a forward pass inside the block."""
    seen: dict[nn.Module, Tensor] = {}

    def note(layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        seen.pop(layer, None)  # a layer that is called again moves to the end
        seen[layer] = _moments(look(layer, inputs, output))

    handles = [layer.register_forward_hook(note) for layer in layers]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def keeps_statistics(model: VectorModel) -> bool:
    """Return whether the model keeps running statistics, which then serve as its feature statistics."""
    return bool(_statistics_keepers(model))


def outputs_and_statistics(
    model: VectorModel, x: Tensor, inputs: Tensor, buffers: Tensor | None = None
) -> tuple[Tensor, list[Tensor]]:
    """Return a batch's outputs and feature statistics φ, both differentiable in ``inputs`` and ``x``.

    The model is in evaluation mode.

    Args:
        model: the model.
        x: the model's ``(d,)`` parameters.
        inputs: a batch of ``(n, …)`` inputs.
        buffers: the model's ``(b,)`` running statistics.

    Returns:
        ``(n, C)`` outputs, and ``(2, channels)`` means and variances for each layer, in the module's order.
    """
    layers, look = _layers(model)
    with _watched(layers, look) as seen:
        outputs = model(x, inputs, buffers)
    if seen and look is _of_output:
        seen.popitem()  # the layer that was called last gives the logits
    return outputs, [seen[layer] for layer in layers if layer in seen]


def stacked_outputs_and_statistics(model: VectorModel, x: Tensor, inputs: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Return the result of :func:`outputs_and_statistics` for several models side by side.

    Args:
        model: a chain of layers on vectors, see :func:`.shared_chain`.
        x: ``(G, d)`` parameters.
        inputs: ``(G, n, …)``, one batch per model.

    Returns:
        ``(G, n, C)`` outputs, and ``(G, 2, channels)`` means and variances for each layer.
    """
    hidden, outputs = hidden_and_outputs(model, x, inputs)
    return outputs, [torch.stack(torch.var_mean(h, dim=1, correction=0)[::-1], 1) for h in hidden[:-1]]


def stored_statistics(model: VectorModel, buffers: Tensor) -> Tensor:
    """Return the running means and variances of a model's BatchNorm layers, in the order of φ.

    Args:
        model: a model with BatchNorm.
        buffers: the model's ``(b,)`` floating-point buffers.

    Returns:
        ``(2, F)`` means and variances.
    """
    parts = {slot.name: buffers[slot.start : slot.stop] for slot in model.buffer_slots}
    names = list(_statistics_keepers(model))
    rows = [torch.cat([parts[f"{name}.running_{what}"] for name in names]) for what in ("mean", "var")]
    return torch.stack(rows)


@torch.no_grad()
def feature_statistics(
    model: VectorModel, x: Tensor, inputs: Tensor, buffers: Tensor | None = None, batch_size: int = 500
) -> Tensor:
    """Return φ̄, the feature statistics of a trained model on its client's samples.

    A model with BatchNorm already has φ̄ in its running statistics, at no cost; any other model needs one forward pass
    over the samples, batch by batch.

    Args:
        model: the model.
        x: the model's ``(d,)`` trained parameters.
        inputs: ``(n, …)`` the client's samples.
        buffers: the model's ``(b,)`` running statistics after training; needed with BatchNorm.
        batch_size: number of samples in one forward pass.

    Returns:
        ``(2, F)`` means and variances of all channels of all layers, without gradient; F may be 0.

    Raises:
        ValueError: if a model with BatchNorm comes without ``buffers``.
    """
    if keeps_statistics(model):
        if buffers is None:
            raise ValueError("buffers: the features of a model with BatchNorm are its running statistics")
        return stored_statistics(model, buffers)
    batches = inputs.split(batch_sizes(inputs, batch_size))
    per_batch = [outputs_and_statistics(model, x, batch)[1] for batch in batches]
    means, variances = torch.stack([_joined(parts, like=x) for parts in per_batch]).unbind(1)
    share = torch.tensor([len(batch) / len(inputs) for batch in batches]).to(x)[:, None]
    mean = (share * means).sum(0)
    return torch.stack([mean, (share * (variances + (means - mean).square())).sum(0)])


def _joined(parts: list[Tensor], like: Tensor) -> Tensor:
    """Concatenate the layers' ``(2, channels)`` statistics into one ``(2, F)`` tensor."""
    return torch.cat(parts, dim=-1) if parts else like.new_zeros(2, 0)

"""What servers that make up inputs read from a model: statistics of its hidden features, its table of embeddings.

The statistics φ are those by which synthetic inputs are compared with real ones (FedRevive Eq. 4, the feature term, and
Appendix I; the idea is DeepInversion's, Yin et al., CVPR 2020, Eq. 4). φ is a mean and a variance for every channel of

1. the hidden state of the first token after each layer of the encoder, if the model classifies by a prediction token of
   its own before the text, as Appendix I describes for T5 (the authors' code takes only means, of the second and the
   fifth of T5-small's six layers, and compares every sample with them);
2. otherwise, the inputs of the BatchNorm layers and trackers, if the model has any that keep running statistics,
   because the model itself then stores the statistics of real data;
3. otherwise, the inputs of its other normalisation layers;
4. otherwise, the outputs of its convolutional and linear layers except the last, which gives the logits.

Embedding layers do not count, because made-up text enters a model after them; nor do frozen parts, which no client
changes.

Made-up text consists of embeddings, ``(n, L, width)`` numbers in place of ``(n, L)`` token ids (FedRevive §3.2),
because a gradient can move an embedding but not a token id. A model for such text therefore looks tokens up in a table
of embeddings, and also accepts embeddings in place of the tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from asyncfl_lite.base.errors import ConfigError, reason
from asyncfl_lite.models.base import InputSpec
from asyncfl_lite.models.images import Tracker
from asyncfl_lite.models.stacked import SideBySide, shared_chain
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
    variance, mean = torch.var_mean(features.flatten(0, -2), dim=0, correction=0)
    return torch.stack([mean, variance])


@contextmanager
def _hooked(layers: Iterable[nn.Module], note: Callable[[nn.Module, tuple[Any, ...], Any], None]) -> Iterator[None]:
    """Context in which ``note`` is told of every call of ``layers``."""
    handles = [layer.register_forward_hook(note) for layer in layers]
    try:
        yield
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

    Returns:
        ``(n, C)`` outputs, and ``(2, channels)`` means and variances for each layer, in the module's order.
    """
    layers, look = _layers(model)
    seen: dict[nn.Module, Tensor] = {}

    def note(layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        seen.pop(layer, None)  # a layer that is called again moves to the end
        seen[layer] = _moments(look(layer, inputs, output))

    with _hooked(layers, note):
        outputs = model(x, inputs, buffers)
    if seen and look is _of_output:
        seen.popitem()  # the layer that was called last gives the logits
    return outputs, [seen[layer] for layer in layers if layer in seen]


def stacked_outputs_and_statistics(model: VectorModel, x: Tensor, inputs: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Return the result of :func:`outputs_and_statistics` for G chains of layers on vectors, each with its own inputs.

    Returns:
        ``(G, n, C)`` outputs, and ``(G, 2, channels)`` means and variances for each layer.
    """
    chain = shared_chain(model)
    if chain is None:
        raise ValueError(f"{type(model.module).__name__} is no chain of layers on vectors")
    forward = SideBySide(model, chain)
    *hidden, outputs = forward.of_vectors(inputs.flatten(2), iter(forward.parts(x)))
    return outputs, [torch.stack(torch.var_mean(h, dim=1, correction=0)[::-1], 1) for h in hidden[:-1]]


def stored_statistics(model: VectorModel, buffers: Tensor) -> Tensor:
    """Return the ``(2, F)`` running means and variances in a model's ``(b,)`` buffers, in the order of φ."""
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
    over the ``(n, …)`` samples, batch by batch.

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
    return torch.cat(parts, dim=-1) if parts else like.new_zeros(2, 0)


SAMPLES = 2
"""Number of texts on which a model is tried."""
Table = Callable[[Tensor], Tensor]
"""A function from a model's ``(d,)`` parameters to its ``(tokens, width)`` table of embeddings."""


def table_of(model: VectorModel, spec: InputSpec, x: Tensor) -> Table:
    """Return a function that reads a model's table of token embeddings from its parameters.

    The table is the weight of the ``nn.Embedding`` to which the model passes the tokens; it may be tied to other
    weights, or frozen.

    Raises:
        ConfigError: when the model has no ``nn.Embedding`` with a row for every token.
    """
    vocabulary = spec.vocabulary or 0
    embeddings = [layer for layer in model.module.modules() if isinstance(layer, nn.Embedding)]
    layers = [layer for layer in embeddings if layer.num_embeddings >= vocabulary]
    if not layers:
        raise ConfigError(
            "model: made-up text needs a model with an embedding layer, such as text_transformer: an nn.Embedding with "
            f"a row for each of the {vocabulary} tokens"
        )
    tokens, called = _tokens(spec, x), list[nn.Embedding]()

    def note(layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        if isinstance(layer, nn.Embedding) and inputs and torch.equal(inputs[0], tokens):
            called.append(layer)

    with _hooked(layers, note), torch.no_grad():
        model(x, tokens)
    weight = (called or layers)[0].weight
    names = (name for name, parameter in model.module.named_parameters() if parameter is weight)
    name, trained = next(names, None), {slot.name for slot in model.parameter_slots}
    return (lambda x: model.unflatten(x)[name]) if name in trained else (lambda x: weight.detach().to(x))


def check_takes_embeddings(model: VectorModel, spec: InputSpec, x: Tensor, table: Table) -> None:
    """Check, on two texts, that a model accepts embeddings in place of token ids.

    Raises:
        ConfigError: when the model fails on embeddings, when the shape of its outputs or the layers that a text goes
            through are not the same as for tokens, or when its outputs do not depend on the embeddings.
    """
    tokens = _tokens(spec, x)
    embedded = table(x)[tokens].detach().requires_grad_()

    def refuse(why: str, cause: Exception | None = None) -> NoReturn:
        raise ConfigError(
            f"model: {type(model.module).__name__} must also take (n, L, width) embeddings in place of (n, L) token "
            f"ids, since synthetic text is passed in that form; on embeddings {tuple(embedded.shape)} it {why}"
        ) from cause

    outputs, statistics = outputs_and_statistics(model, x, tokens)
    try:
        again, others = outputs_and_statistics(model, x, embedded)
        if depends := again.requires_grad:
            torch.autograd.grad(again.sum(), embedded)
    except Exception as error:
        refuse(f"fails ({type(error).__name__}: {reason(error)})", error)
    if again.shape != outputs.shape:
        refuse(f"returns {tuple(again.shape)}, on tokens {tuple(outputs.shape)}")
    if [part.shape for part in others] != [part.shape for part in statistics]:
        refuse("goes through other layers than on tokens")
    if not depends:
        refuse("returns outputs that do not depend on them")


def _tokens(spec: InputSpec, like: Tensor) -> Tensor:
    tokens = torch.arange(SAMPLES * spec.shape[0], device=like.device) % (spec.vocabulary or 1)
    return tokens.view(SAMPLES, *spec.shape)

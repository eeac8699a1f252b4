"""Text as embeddings: ``(n, L, width)`` numbers in place of ``(n, L)`` token ids.

Made-up text takes this form (FedRevive §3.2), because a gradient can move an embedding but not a token id. A model for
such text therefore looks tokens up in a table of embeddings, and also accepts embeddings in place of the tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from asyncfl_lite.base.errors import ConfigError, reason
from asyncfl_lite.models.base import InputSpec
from asyncfl_lite.models.features import outputs_and_statistics
from asyncfl_lite.models.frozen import Frozen
from asyncfl_lite.models.vectors import VectorModel

SAMPLES = 2
"""Number of texts on which a model is tried."""

Table = Callable[[Tensor], Tensor]
"""A function from a model's ``(d,)`` parameters to its ``(tokens, width)`` table of embeddings."""


def table_of(model: VectorModel, spec: InputSpec, x: Tensor) -> Table:
    """Return a function that reads a model's table of token embeddings from its parameters.

    The table is the weight of the ``nn.Embedding`` to which the model passes the tokens; it may be tied to other
    weights, or frozen.

    Args:
        model: a model for the task's texts.
        spec: length of a text and number of tokens.
        x: the model's ``(d,)`` parameters.

    Raises:
        ConfigError: when the model has no ``nn.Embedding`` with a row for every token.
    """
    vocabulary = spec.vocabulary or 0
    layers = [layer for layer in _embeddings(model.module) if layer.num_embeddings >= vocabulary]
    if not layers:
        raise ConfigError(
            "model: made-up text needs a model with an embedding layer, such as text_transformer: an nn.Embedding with "
            f"a row for each of the {vocabulary} tokens"
        )
    tokens, called = _tokens(spec, x), list[nn.Embedding]()

    def note(layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        if inputs and isinstance(inputs[0], Tensor) and torch.equal(inputs[0], tokens):
            called.extend([layer] if isinstance(layer, nn.Embedding) else [])

    handles = [layer.register_forward_hook(note) for layer in layers]
    try:
        with torch.no_grad():
            model(x, tokens)
    finally:
        for handle in handles:
            handle.remove()
    weight = (called or layers)[0].weight
    names = (name for name, parameter in model.module.named_parameters() if parameter is weight)
    name, trained = next(names, None), {slot.name for slot in model.parameter_slots}
    return (lambda x: model.unflatten(x)[name]) if name in trained else (lambda x: weight.detach().to(x))


def check_takes_embeddings(model: VectorModel, spec: InputSpec, x: Tensor, table: Table) -> None:
    """Check, on two texts, that a model accepts embeddings in place of token ids.

    Args:
        model: a model for the task's texts.
        spec: length of a text and number of tokens.
        x: the model's ``(d,)`` parameters.
        table: the model's table of embeddings, from :func:`table_of`.

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
    """Return two texts ``(2, L)`` with as many different tokens as possible."""
    tokens = torch.arange(SAMPLES * spec.shape[0], device=like.device) % (spec.vocabulary or 1)
    return tokens.view(SAMPLES, *spec.shape)


def _embeddings(module: nn.Module) -> Iterator[nn.Embedding]:
    """Yield the embedding layers of a module, including those in frozen parts."""
    for part in module.modules():
        if isinstance(part, nn.Embedding):
            yield part
        elif isinstance(part, Frozen):
            yield from _embeddings(part.held)

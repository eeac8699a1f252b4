"""Unlabelled sets of text for the server: damaged text and text that a chain of tokens writes.

They stand in for FedEcho's natural and synthetic sets (§5.1) where a task has no better one. Texts are ``(n, L)``
int64 token ids; labels are never looked at.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.tasks.images.unlabelled import sample


def thinned(
    inputs: Tensor,
    count: int,
    rng: np.random.Generator,
    *,
    padding: int,
    keep: tuple[int, ...] = (),
    share: float = 0.3,
) -> Tensor:
    """Return random texts that lack a random share of their tokens; the rest moves up.

    Args:
        inputs: ``(n, L)`` whole texts.
        count: how many; each text is used again only after all the others were.
        rng: the server's stream.
        padding: token that fills up.
        keep: tokens that always stay, such as separators.
        share: each other token's probability of going.
    """
    chosen = sample(inputs, count, rng)
    gone = torch.from_numpy(rng.random(chosen.shape) < share) & ~torch.isin(chosen, torch.tensor(keep))
    order = gone.long().argsort(dim=1, stable=True)
    return chosen.masked_fill(gone, padding).gather(1, order)


def written(inputs: Tensor, count: int, rng: np.random.Generator, order: int = 1) -> Tensor:
    """Return texts whose every token follows the ``order`` tokens before it as one did somewhere in ``inputs``.

    A Markov chain with the frequencies of ``inputs``, without a table: the next token is what followed a random
    occurrence. Where nothing ever followed, the chain goes on from a random occurrence of any tokens.

    Args:
        inputs: ``(n, L)`` texts to imitate, L > ``order``.
        count: how many.
        rng: the server's stream.
        order: how many tokens the next one depends on.
    """
    texts = inputs.numpy()
    size = int(texts.max()) + 1
    windows = np.lib.stride_tricks.sliding_window_view(texts, order + 1, axis=1).reshape(-1, order + 1)
    weights = size ** np.arange(order, dtype=np.int64)
    contexts = windows[:, :-1] @ weights
    places = np.argsort(contexts, kind="stable")
    contexts, followers = contexts[places], windows[places, -1]
    made = np.empty((count, texts.shape[1]), dtype=np.int64)
    made[:, :order] = texts[rng.integers(len(texts), size=count), :order]
    for place in range(order, texts.shape[1]):
        now = made[:, place - order : place] @ weights
        low, high = np.searchsorted(contexts, now, "left"), np.searchsorted(contexts, now, "right")
        low, high = np.where(low == high, 0, low), np.where(low == high, len(contexts), high)
        made[:, place] = followers[rng.integers(low, high)]
    return torch.from_numpy(made)

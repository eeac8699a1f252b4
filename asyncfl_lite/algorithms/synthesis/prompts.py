"""Soft prompts, which synthesise text as embeddings (FedRevive §3.2, text task).

A few meta-learned vectors, θ, come directly after the model's prediction token; the embeddings of a snippet of text
follow them and are the latents. The paper's snippets come from a language model of a billion parameters; here they are
rows of tokens that the caller provides, or random tokens.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.models.base import InputSpec
from asyncfl_lite.models.features import check_takes_embeddings, table_of
from asyncfl_lite.models.vectors import VectorModel


class SoftPrompts:
    """An :class:`~asyncfl_lite.algorithms.synthesis.InputMaker` for text: soft prompts, then embeddings of snippets.

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
            raise ConfigError(f"prompt_length: must be less than the texts' length {text_length}, got {length}")
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

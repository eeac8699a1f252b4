"""Small models for text: inputs ``(n, length)`` token ids, or ``(n, length, width)`` embeddings in their place."""

from __future__ import annotations

from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn

from asyncfl_lite.models.base import MODELS, InputSpec, ModelSpec

HEADS = 4
"""Number of attention heads in each layer."""


class TokenModel(ModelSpec):
    """Abstract base of the models of token ids."""

    takes = "tokens"

    width: int = Field(64, ge=1, multiple_of=HEADS)
    """Length of embeddings and hidden vectors, without a checkpoint."""
    layers: int = Field(2, ge=1)
    """Number of layers; those of transformers have 4 attention heads each."""


class _Block(nn.Module):
    """One pre-norm encoder layer, with attention written out so that ``vmap`` can train several models at once."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.attention_out = nn.Linear(width, width)
        self.mlp_norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, hidden: Tensor) -> Tensor:
        """Return ``(n, length, width)`` activations for inputs of the same shape."""
        hidden = hidden + self._attend(self.attention_norm(hidden))
        return hidden + self.mlp(self.mlp_norm(hidden))

    def _attend(self, hidden: Tensor) -> Tensor:
        count, length, width = hidden.shape
        split = self.queries_keys_values(hidden).view(count, length, 3, HEADS, width // HEADS)
        queries, keys, values = split.permute(2, 0, 3, 1, 4)
        weights = (queries @ keys.transpose(-1, -2) / (width // HEADS) ** 0.5).softmax(-1)
        return self.attention_out((weights @ values).transpose(1, 2).reshape(count, length, width))


class _TextTransformer(nn.Module):
    """Encoder that classifies a text by the output at a learned prediction token in front of it."""

    def __init__(self, length: int, num_classes: int, vocabulary: int, width: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.prediction_token = nn.Parameter(torch.randn(width))
        self.positions = nn.Parameter(0.1 * torch.randn(length + 1, width))
        self.blocks = nn.Sequential(*(_Block(width) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, num_classes)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the ``(n, num_classes)`` logits of token ids (two axes) or embeddings (three)."""
        embedded = inputs if inputs.dim() == 3 else self.embedding(inputs.long())
        first = self.prediction_token.expand(len(embedded), 1, -1)
        hidden = torch.cat([first, embedded], dim=1) + self.positions
        return self.head(self.norm(self.blocks(hidden))[:, 0])


@MODELS.register("text_transformer")
class TextTransformer(TokenModel):
    """Small transformer encoder that classifies token ids, or embeddings in their place."""

    width: int = Field(32, ge=1, multiple_of=HEADS)
    """Length of embeddings and hidden vectors."""

    def build_for(self, inputs: InputSpec) -> nn.Module:
        """Build the module for a task's texts; no dropout."""
        (length,) = inputs.shape
        return _TextTransformer(length, inputs.num_classes, inputs.num_tokens, self.width, self.layers)


class _NextToken(nn.Module):
    def __init__(self, vocabulary: int, num_classes: int, embedding: int, width: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.lstm = nn.LSTM(embedding, width, layers, batch_first=True)
        self.head = nn.Linear(width, num_classes)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return ``(n, L, num_classes)`` logits of ``(n, L)`` token ids, or of ``(n, L, embedding)`` embeddings."""
        embedded = inputs if inputs.dim() == 3 else self.embedding(inputs)
        return self.head(self.lstm(embedded)[0])


EMBEDDING = 8
"""Length of a token's embedding in the LSTM, as LEAF has it."""


@MODELS.register("lstm")
class LSTM(TokenModel):
    """LSTM that predicts the next token at every position.

    A layer has ``width`` hidden units, and a token's embedding has 8 numbers. With ``width=256`` it is LEAF's model for
    Shakespeare.
    """

    vectorises: ClassVar[bool] = False  # torch's LSTM cannot; one that can is 3 to 5 times slower overall

    def build_for(self, inputs: InputSpec) -> nn.Module:
        """Build the module for a task's tokens; no dropout."""
        return _NextToken(inputs.num_tokens, inputs.num_classes, EMBEDDING, self.width, self.layers)

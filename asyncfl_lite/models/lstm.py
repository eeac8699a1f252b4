"""An LSTM for next-character prediction, as in LEAF's Shakespeare benchmark (Caldas et al. 2018, KUIPER §4)."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field
from torch import Tensor, nn

from asyncfl_lite.models.base import MODELS, InputSpec, ModelSpec


class _NextToken(nn.Module):
    """Network that predicts next tokens: embedding, LSTM layers, and a linear layer at every position."""

    def __init__(self, vocabulary: int, num_classes: int, embedding: int, width: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding)
        self.lstm = nn.LSTM(embedding, width, layers, batch_first=True)
        self.head = nn.Linear(width, num_classes)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return ``(n, L, num_classes)`` logits of ``(n, L)`` token ids, or of ``(n, L, embedding)`` embeddings."""
        embedded = inputs if inputs.dim() == 3 else self.embedding(inputs)
        return self.head(self.lstm(embedded)[0])


@MODELS.register("lstm")
class LSTM(ModelSpec):
    """LSTM that predicts the next token at every position.

    With ``width=256`` it is LEAF's model for Shakespeare.

    >>> from asyncfl_lite.models import MODELS
    >>> module = MODELS.get("lstm")(vocabulary=50).build((40,), 50)
    >>> sum(parameter.numel() for parameter in module.parameters())
    55874
    """

    takes = "tokens"

    vectorises: ClassVar[bool] = False  # torch's LSTM cannot; one that can is 3 to 5 times slower overall

    vocabulary: int = Field(1000, ge=1)
    """Number of tokens, if the task does not set it."""
    embedding: int = Field(8, ge=1)
    """Length of a token's embedding."""
    width: int = Field(64, ge=1)
    """Number of hidden units in each layer; LEAF's model for Shakespeare has 256."""
    layers: int = Field(2, ge=1)
    """Number of LSTM layers, stacked on one another."""

    def build(self, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build the module for sequences of ``input_shape = (L,)`` tokens; no dropout."""
        return self.build_for(InputSpec(input_shape, num_classes, vocabulary=self.vocabulary))

    def build_for(self, inputs: InputSpec) -> nn.Module:
        """Build the module for a task's tokens."""
        vocabulary = inputs.vocabulary or self.vocabulary
        return _NextToken(vocabulary, inputs.num_classes, self.embedding, self.width, self.layers)

"""Encoders of the `transformers` library as text classifiers: BERT and T5, from a configuration or a checkpoint.

The classifier follows FedRevive §3.2: a small head of two linear layers reads the final hidden state of a prediction
token before the text. With a BERT checkpoint, the token is ``[CLS]`` and the head's first layer is the checkpoint's
pooler, which is the usual fine-tuning of BERT (Devlin et al., NAACL 2019), as in FedEcho §5.2. T5-small's encoder alone
with this head has FedRevive's 35.6 million parameters.

There is no dropout, so a client's results depend only on its batches.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from asyncfl_lite.base.errors import ConfigError, needs
from asyncfl_lite.models.base import MODELS, InputSpec, ModelSpec
from asyncfl_lite.models.frozen import Frozen
from asyncfl_lite.models.pretrained import TokenIds, checkpoint_tokens, from_checkpoint, only_last_layers

if TYPE_CHECKING:  # transformers takes seconds to import, so only when a model is built
    from transformers import PreTrainedConfig, PreTrainedModel

NO_DROPOUT = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout_rate", "dropout", "attention_dropout")
"""Names of the dropout options in configurations of `transformers`, all set to 0."""

EAGER: dict[str, Any] = {"attn_implementation": "eager"}
"""Option for the kind of attention that has a rule for `vmap`; the other kinds have none."""


class _PredictionToken(nn.Module):
    """The embedding of the prediction token, the same for every text."""

    def __init__(self, embedding: Tensor) -> None:
        super().__init__()
        self.embedding = nn.Parameter(embedding)

    def forward(self, count: int) -> Tensor:
        """Return the embedding ``count`` times, ``(count, 1, width)``."""
        return self.embedding.expand(count, 1, -1)


class _PredictionTokenClassifier(nn.Module):
    """An encoder, a prediction token before its input, and a head on that token's last hidden state.

    Args:
        encoder: an encoder of `transformers`.
        num_classes: C, the number of classes.
        ids: the ids of the special tokens.
        trained_layers: number of last layers that are trained, besides the head; None for all.
    """

    def __init__(
        self, encoder: PreTrainedModel, num_classes: int, ids: TokenIds, trained_layers: int | None = None
    ) -> None:
        super().__init__()
        table = encoder.get_input_embeddings().get_parameter("weight").detach()
        width = table.shape[1]
        self.encoder = encoder
        self.ids = ids
        known = ids.prediction is not None
        first = table[ids.prediction].clone() if known else table.std() * torch.randn(width)
        self.prediction_token: nn.Module = _PredictionToken(first)
        self.head = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, num_classes))
        if (pooler := getattr(encoder, "pooler", None)) is not None:
            self.head[0].load_state_dict(pooler.dense.state_dict())
            encoder.pooler = None  # type: ignore[assignment]  # this is how torch removes a part
        if trained_layers is not None:
            only_last_layers(encoder, trained_layers)
            self.prediction_token = Frozen(self.prediction_token)
        self.knows_segments = getattr(encoder.config, "type_vocab_size", 1) > 1

    def forward(self, inputs: Tensor) -> Tensor:
        """Return ``(n, num_classes)`` logits of ``(n, L)`` token ids, or of ``(n, L, width)`` embeddings."""
        segments = {}
        if inputs.dim() == 3:
            embedded, here = inputs, torch.ones_like(inputs[..., 0], dtype=torch.bool)
        else:
            embedded, here = self.encoder.get_input_embeddings()(inputs), inputs != self.ids.padding
            if self.knows_segments:
                segments["token_type_ids"] = nn.functional.pad(self._in_second_sentence(inputs), (1, 0))
        first = self.prediction_token(len(embedded))
        here = nn.functional.pad(here, (1, 0), value=True)[:, None, None]
        # A mask with four axes is used as it is; one with two would be expanded in ways that vmap cannot follow.
        mask = torch.zeros_like(here, dtype=embedded.dtype).masked_fill(~here, torch.finfo(embedded.dtype).min)
        embedded = torch.cat([first, embedded], dim=1)
        hidden = self.encoder(inputs_embeds=embedded, attention_mask=mask, **segments).last_hidden_state
        return self.head(hidden[:, 0])

    def _in_second_sentence(self, inputs: Tensor) -> Tensor:
        """Return ``(n, L)`` int64: 1 after the first separator up to the second (BERT's segment B), else 0."""
        separators = (inputs == self.ids.separator).long()
        return ((separators.cumsum(-1) - separators) == 1).long() * (inputs != self.ids.padding)


class TransformerSpec(ModelSpec):
    """Abstract base class of the models from `transformers`: BERT, T5 and causal language models."""

    takes = "tokens"

    checkpoint: str | None = None
    """Folder or name of a pretrained model, or ``minilm`` or ``smollm2``, which come in packages; None for random
    weights of the sizes below. The task's tokenizer must be the same one."""
    download: bool = False
    """Whether a checkpoint may be fetched over the network."""
    vocabulary: int = Field(1000, ge=3)
    """Number of tokens, if the task does not set it."""
    width: int = Field(64, ge=1)
    """Length of embeddings and hidden vectors, without a checkpoint; a multiple of ``heads``."""
    layers: int = Field(2, ge=1)
    """Number of layers, without a checkpoint."""
    heads: int = Field(4, ge=1)
    """Number of attention heads in each layer, without a checkpoint."""
    trained_layers: int | None = Field(None, ge=1)
    """Train and send only this many of the last layers, and a classifier's head; None for all weights."""

    @model_validator(mode="after")
    def _divides(self) -> TransformerSpec:
        if self.width % self.heads:
            raise ValueError(f"width: must be a multiple of heads ({self.heads}), got {self.width}")
        return self

    def build(self, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build the module for texts of ``input_shape = (length,)`` tokens."""
        return self.build_for(InputSpec(input_shape, num_classes, vocabulary=self.vocabulary))

    def build_for(self, inputs: InputSpec) -> nn.Module:
        """Build the module for a task's texts.

        Raises:
            ConfigError: when the checkpoint takes shorter texts, or its tokens are not the task's.
            DataError: when the checkpoint is not available.
        """
        (length,) = inputs.shape
        vocabulary = inputs.vocabulary or self.vocabulary
        if self.checkpoint is None:
            encoder = self.encoder_class()(self.configuration(vocabulary, length + 1))
            return _PredictionTokenClassifier(encoder, inputs.num_classes, TokenIds(), self.trained_layers)
        with needs("text", "a checkpoint"):
            from transformers import AutoConfig

        config = from_checkpoint(AutoConfig, self.checkpoint, self.download)
        self._check(config, vocabulary, length + 1)
        for name in NO_DROPOUT:
            if hasattr(config, name):
                setattr(config, name, 0.0)
        options = {"config": config, "dtype": torch.float32, **EAGER}
        encoder = from_checkpoint(self.encoder_class(), self.checkpoint, self.download, **options)
        _, ids = checkpoint_tokens(self.checkpoint, self.download)
        return _PredictionTokenClassifier(encoder, inputs.num_classes, ids, self.trained_layers)

    def _check(self, config: PreTrainedConfig, vocabulary: int, length: int) -> None:
        size, longest = config.vocab_size, getattr(config, "max_position_embeddings", length)
        if not 0.95 * size <= vocabulary <= size:  # tables of embeddings are often rounded up
            raise ConfigError(
                f"checkpoint: {self.checkpoint!r} knows {size} tokens, but the task's texts use {vocabulary}; "
                f"set the task's tokenizer to {self.checkpoint!r} too"
            )
        if length > longest:
            raise ConfigError(f"checkpoint: {self.checkpoint!r} takes at most {longest} tokens, got {length}")

    @property
    def whole(self) -> TransformerSpec:
        """The same network with every layer trainable, for a chain of teachers before federated training."""
        return self.model_copy(update={"trained_layers": None})

    def larger(self, scale: float) -> TransformerSpec:
        """Return a larger version with ``scale`` times as many layers, to teach this one.

        Raises:
            ConfigError: for a checkpoint.
        """
        if self.checkpoint is not None:
            raise ConfigError("checkpoint: a pretrained model has no larger relatives; name the teachers")
        return self.whole.model_copy(update={"layers": round(scale * self.layers)})

    @abstractmethod
    def encoder_class(self) -> Any:
        """Return the encoder's class, from `transformers`."""

    @abstractmethod
    def configuration(self, vocabulary: int, length: int) -> PreTrainedConfig:
        """Return the configuration of an encoder with random weights, for ``length`` tokens in all."""


@MODELS.register("bert")
class Bert(TransformerSpec):
    """BERT that classifies by its first token: untrained, or a checkpoint such as `minilm`."""

    def encoder_class(self) -> Any:
        """Return BertModel, or AutoModel if the encoder comes from a checkpoint."""
        with needs("text", "bert"):
            from transformers import AutoModel, BertModel

        return BertModel if self.checkpoint is None else AutoModel

    def configuration(self, vocabulary: int, length: int) -> PreTrainedConfig:
        """Return a BERT configuration with this model's sizes."""
        with needs("text", "bert"):
            from transformers import BertConfig

        return BertConfig(
            vocab_size=vocabulary,
            hidden_size=self.width,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            intermediate_size=4 * self.width,
            max_position_embeddings=length,
            initializer_range=self.width**-0.5,  # with BERT's own 0.02, for width 768, narrow ones pass no signal
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            pad_token_id=TokenIds().padding,
            **EAGER,
        )


@MODELS.register("t5")
class T5(TransformerSpec):
    """T5 encoder that classifies by a prepended token: untrained, or a checkpoint (FedRevive)."""

    def encoder_class(self) -> Any:
        """Return the class of T5's encoder."""
        with needs("text", "t5"):
            from transformers import T5EncoderModel

        return T5EncoderModel

    def configuration(self, vocabulary: int, length: int) -> PreTrainedConfig:
        """Return a T5 configuration with this model's sizes; positions are relative, so any ``length`` works."""
        with needs("text", "t5"):
            from transformers import T5Config

        return T5Config(
            vocab_size=vocabulary,
            d_model=self.width,
            d_kv=self.width // self.heads,
            d_ff=4 * self.width,
            num_layers=self.layers,
            num_heads=self.heads,
            dropout_rate=0.0,
            pad_token_id=TokenIds().padding,
            **EAGER,
        )

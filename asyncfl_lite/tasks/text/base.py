"""The common part of text tasks: tokenisers, unlabelled sets, and tasks with one label or one per token.

A text is a string, or several that belong together, such as the two sentences of a pair. Its token ids are
``sentence [SEP] …``, cut or padded to one length. Models add the prediction token before it (``[CLS]`` in FedRevive
and BERT) themselves (:mod:`asyncfl_lite.models.transformers`), so a text for a model of length 128 has 127 tokens
here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch
from pydantic import Field
from torch import Tensor

from asyncfl_lite.base import files
from asyncfl_lite.base.errors import DataError, ResultError, needs, reason
from asyncfl_lite.base.files import sealed, unsealed, write_atomically
from asyncfl_lite.models.transformers import TokenIds, checkpoint_tokens
from asyncfl_lite.tasks.images.unlabelled import sample, turns
from asyncfl_lite.tasks.task import DownloadedSource, Task

if TYPE_CHECKING:
    from tokenizers import Tokenizer


Text = tuple[str, ...]
"""One sentence or passage, or several that belong together."""
SPECIAL = ("[PAD]", "[UNK]", "[SEP]")
"""The first tokens of the package's own tokenisers; their ids are the defaults of :class:`TokenIds`."""


@dataclass(frozen=True)
class Tokeniser:
    """Converter of texts to token ids and back.

    Attributes:
        model: the tokeniser of the library `tokenizers`.
        ids: ids of its special tokens.
    """

    model: Tokenizer
    ids: TokenIds = TokenIds()

    @property
    def vocabulary(self) -> int:
        """Number of tokens."""
        return self.model.get_vocab_size()

    def __call__(self, texts: Sequence[Text], length: int) -> Tensor:
        """Return padded ``(n, length)`` int64 ids, with a separator after each sentence, and as the last if cut."""
        sentences = [sentence for text in texts for sentence in text]
        encoded = iter(self.model.encode_batch_fast(sentences, add_special_tokens=False))
        rows = np.full((len(texts), length), self.ids.padding, dtype=np.int64)
        for row, text in zip(rows, texts, strict=True):
            ids = [number for _ in text for number in (*next(encoded).ids, self.ids.separator)]
            if len(ids) > length:
                ids = [*ids[: length - 1], self.ids.separator]
            row[: len(ids)] = ids
        return torch.from_numpy(rows)

    def decode(self, row: Tensor) -> str:
        """Return the text of ``(L,)`` ids, without padding."""
        return self.model.decode(row[row != self.ids.padding].tolist(), skip_special_tokens=False)


def trained_tokeniser(name: str, texts: Sequence[Text], vocabulary: int) -> Tokeniser:
    """Train a small lower-case byte-pair tokeniser on ``texts``; the same texts give the same one.

    It has at most ``vocabulary`` tokens, and is kept in the cache folder, if possible, in a file with the task's name.
    """
    with needs("text", "a tokeniser"):
        from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    sentences = [sentence for text in texts for sentence in text]
    digest = hashlib.sha256("\n".join(sentences).encode()).hexdigest()[:12]
    place = files.cache_root() / "tokenizers" / f"{name}-{vocabulary}-{digest}.json"
    if place.is_file():
        with suppress(Exception):  # the library raises Exception itself for a damaged file: make a new one
            return Tokeniser(Tokenizer.from_str(bytes(unsealed(place.read_bytes())).decode()))
    model = Tokenizer(models.BPE(unk_token=SPECIAL[1]))  # WordPiece's trainer gives another vocabulary every time
    model.normalizer = normalizers.BertNormalizer(lowercase=True)
    model.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()])
    model.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, special_tokens=list(SPECIAL), show_progress=False)
    model.train_from_iterator(sentences, trainer)
    with suppress(ResultError):
        write_atomically(place, lambda file: file.write(sealed(model.to_str().encode())))
    return Tokeniser(model)


def pretrained_tokeniser(checkpoint: str, download: bool) -> Tokeniser:
    """Return a checkpoint's own tokeniser."""
    tokeniser, ids = checkpoint_tokens(checkpoint, download)
    model = tokeniser.backend_tokenizer
    model.no_truncation()
    model.no_padding()
    return Tokeniser(model, ids)


def fetched(repository: str, part: str, *keys: str, config: str | None = None) -> list[tuple[Any, ...]]:
    """Read columns of a data set on the Hugging Face hub, downloaded through `datasets` on first use."""
    with needs("text", "downloading this data set"):
        import datasets

    try:
        table = datasets.load_dataset(repository, config, split=part)
    except (OSError, ValueError) as error:
        raise DataError(f"download: {repository} cannot be fetched ({reason(error)})") from None
    return list(zip(*(table[key] for key in keys), strict=True))


def read_objects(path: Path, **kinds: type) -> pd.DataFrame:
    """Read the given fields of every object in a file: a JSON list or, in ``.jsonl``, one object per line."""
    told = f"JSON objects with {', '.join(kinds)}"
    with files.reading(path, told):
        table = pd.read_json(path, lines=".jsonl" in path.suffixes, dtype=False)[list(kinds)]
    sound = [table[key].map(lambda value, kind=kind: isinstance(value, kind)).all() for key, kind in kinds.items()]
    if table.empty or not all(sound):
        wanted = " and ".join(f"{key} ({kind.__name__})" for key, kind in kinds.items())
        raise DataError(f"{path}: must hold objects with {wanted}")
    return table


@dataclass(frozen=True)
class TextTask(Task):
    """A task that classifies texts: inputs ``(n, L)`` int64 token ids.

    Attributes:
        decode: function from one text's ``(L,)`` token ids to a string, or None.
    """

    decode: Callable[[Tensor], str] | None = None


class TokenisedSource(DownloadedSource):
    """Abstract base of the settings of tasks whose texts need a tokeniser."""

    tokenizer: str | None = None
    """Folder or name of a pretrained model whose tokeniser to use, or ``minilm`` or ``smollm2``, which come in
    packages; None for a small one made for this task."""
    vocabulary: int = Field(4000, ge=100)
    """Largest number of tokens of the task's own tokeniser."""


class TextSource(TokenisedSource):
    """Abstract base of the settings of tasks with real text."""

    length: int = Field(128, ge=8)
    """Number of tokens that a model reads, including its prediction token; longer texts lose their end."""

    def tokeniser(self, name: str, texts: Sequence[Text]) -> Tokeniser:
        """Return the chosen tokeniser, or one trained on the training ``texts`` if none is chosen."""
        if self.tokenizer is None:
            return trained_tokeniser(name, texts, self.vocabulary)
        return pretrained_tokeniser(self.tokenizer, self.download)


def text_task(
    name: str,
    tokeniser: Tokeniser,
    length: int,
    train: tuple[Sequence[Text], Sequence[int]],
    test: tuple[Sequence[Text], Sequence[int]],
    cross: Callable[[], Sequence[Text]],
    natural: Sequence[Text] | None = None,
    validation: tuple[Sequence[Text], Sequence[int]] | None = None,
    **about: Any,
) -> TextTask:
    """Make a task from texts and their classes.

    Its unlabelled sets are ``cross``, other texts; ``natural``, texts of the same kind that no client has or, if there
    are none, training texts that lack three tokens in ten; and ``synthetic``, texts from a Markov chain in which each
    token follows the one before it as in the training texts.

    Args:
        length: number of tokens that a model reads, including its prediction token.
        cross: function that returns other texts.
    """

    def encoded(part: tuple[Sequence[Text], Sequence[int]]) -> tuple[Tensor, Tensor]:
        return tokeniser(part[0], length - 1), torch.tensor(part[1])

    (inputs, labels), tests = encoded(train), encoded(test)
    ids = tokeniser.ids

    def some(texts: Sequence[Text], count: int, rng: np.random.Generator) -> Tensor:
        return tokeniser([texts[place] for place in turns(len(texts), count, rng)], length - 1)

    def unseen(count: int, rng: np.random.Generator) -> Tensor:
        if natural is None:
            return thinned(inputs, count, rng, padding=ids.padding, keep=(ids.padding, ids.separator))
        return some(natural, count, rng)

    sets = {
        "cross": lambda count, rng: some(cross(), count, rng),
        "natural": unseen,
        "synthetic": lambda count, rng: written(inputs, count, rng),
    }
    return TextTask(
        name,
        inputs,
        labels,
        *tests,
        validation=None if validation is None else encoded(validation),
        unlabelled=sets,
        vocabulary=tokeniser.vocabulary,
        decode=tokeniser.decode,
        **about,
    )


IGNORED = -100
"""Label of positions at which nothing is predicted."""


@dataclass(frozen=True)
class SequenceTask(Task):
    """A task in which models predict one of C classes at each of L positions: ``(n, L, C)`` logits, ``(n, L)`` labels.

    A batch's predictions are the rows at the positions that :meth:`counted` selects, sample after sample. This
    selection depends only on the inputs, so it works for unlabelled sets too. Labels are ``IGNORED`` at all other
    positions and nowhere else, which is checked here. So ``predictions(outputs, inputs)`` and ``answers(labels)`` of a
    labelled batch have the same m rows in the same order. A subclass with another rule overrides :meth:`counted`.

    Attributes:
        inputs: ``(n, L)`` int64 token ids.
        labels: ``(n, L)`` int64 in [0, C), or ``IGNORED``.
        padding: token id that fills up a sequence, or None if all sequences are full.
        decode: function from one sequence's ``(L,)`` token ids to text, or None.

    Raises:
        DataError: when labels do not fit :meth:`counted`.
    """

    padding: int | None = None
    decode: Callable[[Tensor], str] | None = None

    def __post_init__(self) -> None:
        for what, inputs, labels in (
            ("labels", self.inputs, self.labels),
            ("test_labels", self.test_inputs, self.test_labels),
        ):
            if labels.shape != inputs.shape[:2]:
                raise DataError(
                    f"{what}: must be one per token, {tuple(inputs.shape[:2])}, got shape {tuple(labels.shape)}"
                )
            if not torch.equal(labels != IGNORED, self.counted(inputs)):
                raise DataError(f"{what}: must be {IGNORED} exactly where nothing is predicted")

    def counted(self, inputs: Tensor) -> Tensor:
        """Return an ``(n, L)`` boolean mask of the tokens whose predictions count: all but padding.

        If ``inputs`` are ``(n, L, E)`` embeddings, nothing is padding.
        """
        if self.padding is None or inputs.is_floating_point():
            return torch.ones(inputs.shape[:2], dtype=torch.bool, device=inputs.device)
        return inputs != self.padding

    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return each sample's mean cross-entropy over its labelled positions: ``(n,)`` nats per token."""
        right = outputs.log_softmax(-1).gather(-1, labels.clamp(min=0)[..., None])[..., 0]
        return -_mean_where(labels != IGNORED, right)

    def hits(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return ``(n,)`` accuracies: the share of labelled positions at which the most likely token is right."""
        return _mean_where(labels != IGNORED, (outputs.argmax(-1) == labels).to(outputs.dtype))

    def predictions(self, outputs: Tensor, inputs: Tensor) -> Tensor:
        """Return the ``(m, C)`` logits at the :meth:`counted` positions, sample by sample."""
        return outputs[self.counted(inputs)]

    def prediction_counts(self, inputs: Tensor) -> Tensor:
        """Return ``(n,)`` int64: the number of positions at which something is predicted."""
        return self.counted(inputs).sum(-1)

    def answers(self, labels: Tensor) -> Tensor:
        """Return the ``(m,)`` correct labels for :meth:`predictions`."""
        return labels[labels != IGNORED]

    def class_logits(self, outputs: Tensor) -> Tensor:
        """Return the ``(n, C)`` logits at the last position."""
        return outputs[:, -1]

    def evaluate(self, predict: Callable[[Tensor], Tensor], batch_size: int = 500) -> dict[str, float]:
        """Return the scores on the test set, with ``perplexity`` = exp(loss) if that is the metric."""
        scores = super().evaluate(predict, batch_size)
        if self.metric == "perplexity":
            scores["perplexity"] = torch.tensor(scores["loss"], dtype=torch.float64).exp().item()  # inf, not an error
        return scores


def _mean_where(mask: Tensor, values: Tensor) -> Tensor:
    return (values * mask).sum(-1) / mask.sum(-1).clamp(min=1)


def thinned(
    inputs: Tensor,
    count: int,
    rng: np.random.Generator,
    *,
    padding: int,
    keep: tuple[int, ...] = (),
    share: float = 0.3,
) -> Tensor:
    """Draw random ``(n, L)`` texts and remove a ``share`` of their tokens, but none of those to ``keep``."""
    chosen = sample(inputs, count, rng)
    gone = torch.from_numpy(rng.random(chosen.shape) < share) & ~torch.isin(chosen, torch.tensor(keep))
    order = gone.long().argsort(dim=1, stable=True)
    return chosen.masked_fill(gone, padding).gather(1, order)


def written(inputs: Tensor, count: int, rng: np.random.Generator, order: int = 1) -> Tensor:
    """Generate texts by a Markov chain: each token follows the ``order`` tokens before it as in ``(n, L)`` inputs.

    The next token is the one that followed a random occurrence of the tokens before it; if they never had a follower,
    the chain goes on from a random occurrence of any tokens.
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

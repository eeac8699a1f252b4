"""The common part of text classification tasks: tokenisers, and a function that makes a task from texts.

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
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from asyncfl_lite.base import files
from asyncfl_lite.base.errors import ResultError, needs
from asyncfl_lite.base.files import sealed, unsealed, write_atomically
from asyncfl_lite.models.transformers import TokenIds, checkpoint_tokens
from asyncfl_lite.tasks.images.unlabelled import turns
from asyncfl_lite.tasks.task import Task, TaskSource
from asyncfl_lite.tasks.text.unlabelled import thinned, written

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
        """Return ``(n, length)`` int64 ids: a separator after each sentence, then cut or padded.

        A text that is too long loses its end, but keeps a separator as its last token.
        """
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

    The tokeniser is kept in the cache folder, and read from there the next time. It is not an error if that folder
    cannot be written to.

    Args:
        name: the task's name, for the file name.
        texts: the texts on which it is trained.
        vocabulary: largest number of its tokens.
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
    """Return a checkpoint's own tokeniser.

    Raises:
        DataError: when the checkpoint is not available.
        MissingLibraryError: for ``minilm``, when its package is not installed.
    """
    tokeniser, ids = checkpoint_tokens(checkpoint, download)
    model = tokeniser.backend_tokenizer
    model.no_truncation()
    model.no_padding()
    return Tokeniser(model, ids)


@dataclass(frozen=True)
class TextTask(Task):
    """A task that classifies texts: inputs ``(n, L)`` int64 token ids.

    Attributes:
        decode: function from one text's ``(L,)`` token ids to a string, or None.
    """

    decode: Callable[[Tensor], str] | None = None


class TextSource(TaskSource):
    """Abstract base of the settings of tasks with real text."""

    length: int = Field(128, ge=8)
    """Number of tokens that a model reads, including its prediction token; longer texts lose their end."""
    tokenizer: str | None = None
    """Folder or name of a pretrained model whose tokeniser to use, or ``minilm``; None for a small one made for this
    task."""
    vocabulary: int = Field(4000, ge=100)
    """Largest number of tokens of the task's own tokeniser."""
    download: bool = False
    """Whether missing data or a missing tokeniser may be downloaded."""

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
        name: the task's name in configurations.
        tokeniser: the tokeniser of the texts.
        length: number of tokens that a model reads, including its prediction token.
        train, test: texts and labels.
        cross: function that returns other texts.
        natural: texts for the natural set, if there are any.
        validation: texts and labels of validation samples, if there are any.
        about: the task's other fields.
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

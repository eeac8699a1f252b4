"""20 Newsgroups: posts of 1993 to classify by group (Lang 1995; FedRevive §3.2)."""

from __future__ import annotations

import io
import json
import lzma
import pickle
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from asyncfl_lite.base.errors import DataError, reason
from asyncfl_lite.base.files import data_file, data_folder, data_places, data_root, reading, text_of
from asyncfl_lite.tasks.arrays import balanced, check_labels
from asyncfl_lite.tasks.task import TASKS, Task
from asyncfl_lite.tasks.text import prose
from asyncfl_lite.tasks.text.base import Text, TextSource, text_task

HOW_TO_GET = (
    "get the by-date version (20news-bydate-train/GROUP/POST or 20news-bydate-train.jsonl.xz, and -test) and name "
    "the folder in task_settings folder or ASYNCFL_DATA, or set download to true for scikit-learn's copy"
)
FOLDERS = ("20newsgroups", "20news-bydate", "20news")
SCIKIT_LEARNS = "20news-bydate_py3.pkz"
"""Name of the file in which scikit-learn keeps the downloaded data."""

QUOTE = re.compile(r"writes in|writes:|wrote:|says:|said:|^In article|^Quoted from|^\||^>")
"""Pattern of a line that quotes, or names the author of a quotation."""

Posts = tuple[list[str], list[int]]
"""Texts with their line breaks, and their labels."""


def without_header(post: str) -> str:
    """Return the text after the first blank line."""
    return post.partition("\n\n")[2]


def without_footer(post: str) -> str:
    """Return the text before the last line that is blank or made of hyphens, or all of it if there is none."""
    lines = post.strip().split("\n")
    ends = [number for number, line in enumerate(lines) if not line.strip().strip("-")]
    return "\n".join(lines[: ends[-1]]) if ends and ends[-1] else post


def without_quotes(post: str) -> str:
    """Return the text without lines that quote, or that name the author of a quotation."""
    return "\n".join(line for line in post.split("\n") if not QUOTE.search(line))


REMOVALS: dict[str, Callable[[str], str]] = {
    "headers": without_header,
    "footers": without_footer,
    "quotes": without_quotes,
}
"""Rules, in order, as in scikit-learn's ``fetch_20newsgroups(remove=…)``."""


@TASKS.register("newsgroups20")
class Newsgroups20(TextSource):
    """20 Newsgroups, split by date: predict a post's group (11,314 training, 7,532 test posts).

    >>> from asyncfl_lite import Config
    >>> config = Config(task="newsgroups20", task_settings={"samples": 2000})  # the files are read when a run starts
    >>> config.task, config.task_settings.samples
    ('newsgroups20', 2000)
    """

    folder: str | None = None
    """Folder of the data, or a folder that contains 20newsgroups/; None for ASYNCFL_DATA, else the cache folder."""
    remove: tuple[Literal["headers", "footers", "quotes"], ...] = ("headers", "quotes")
    """Parts that are cut from the posts because they give the group away."""
    samples: int | None = Field(None, ge=20)
    """Number of training posts, balanced over groups; None for all."""
    test_samples: int | None = Field(None, ge=20)
    """Number of test posts, balanced over groups; None for all."""

    def load(self) -> Task:
        """Load the task, with training posts that lack some tokens as the unlabelled set ``natural``."""
        names, posts, test_posts = self._read()
        train = self._texts(posts, self.samples, "samples")
        test = self._texts(test_posts, self.test_samples, "test_samples")
        return text_task(
            "newsgroups20",
            self.tokeniser("newsgroups20", train[0]),
            self.length,
            train,
            test,
            cross=lambda: prose.prose(self.length // 2),
            num_classes=len(names),
            class_names=names,
            source="20 Newsgroups, by-date version (Lang 1995; split by Rennie)",
            licence="not stated; public posts of 1993",
        )

    def _texts(self, posts: Posts, count: int | None, what: str) -> tuple[list[Text], list[int]]:
        """Return ``count`` posts and their labels; unwanted parts, and text beyond what models read, are cut."""
        places = balanced(np.array(posts[1]), count, what)
        return [(self._text(posts[0][place]),) for place in places], [posts[1][place] for place in places]

    def _text(self, post: str) -> str:
        for part in REMOVALS:
            if part in self.remove:
                post = REMOVALS[part](post)
        return " ".join(post.split())[: 8 * self.length]  # tokens are about half as long; this saves most of the time

    def files(self) -> list[Path]:
        """Return a list with the data set's folder; an empty list if it does not exist."""
        return data_places(self.folder, *FOLDERS)

    def _read(self) -> tuple[tuple[str, ...], Posts, Posts]:
        """Read the groups' names, and the training and test posts, from the first layout found."""
        try:
            place = data_folder(self.folder, *FOLDERS, how=HOW_TO_GET)
        except DataError:
            if not self.download:
                raise
            return _scikit_learns(data_root(self.folder) / FOLDERS[0], download=True)
        if (place / "20news-bydate-train").is_dir():
            return _folders(place)
        if (place / SCIKIT_LEARNS).is_file():
            return _scikit_learns(place, download=False)
        path = data_file(place, "target_names.json", how=HOW_TO_GET)
        with reading(path, "a JSON list of the groups' names"):
            names = tuple(json.loads(text_of(path)))
            if not names or not all(isinstance(name, str) for name in names):
                raise TypeError("no names")
        train, test = (
            _lines(
                data_file(place, f"20news-bydate-{part}.jsonl.xz", f"20news-bydate-{part}.jsonl", how=HOW_TO_GET),
                len(names),
            )
            for part in ("train", "test")
        )
        return names, train, test


def _lines(path: Path, groups: int) -> Posts:
    """Read one JSON object per line: ``label`` and ``text``, in which tabs may stand for line breaks."""
    texts, labels = [], []
    opened = lzma.open if path.suffix == ".xz" else open
    with reading(path, "UTF-8 text, whole"), opened(path, "rt", encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                post = json.loads(line)
                text, label = post["text"].rstrip("\n\xff"), int(post["label"])  # some copies end in the byte of -1
            except (ValueError, KeyError, TypeError, AttributeError):
                raise DataError(f"{path}: line {number} is not a JSON object with text and label") from None
            texts.append(text if "\n" in text else text.replace("\t", "\n"))
            labels.append(label)
        check_labels(path, np.array(labels, dtype=np.int64), len(texts), groups)
    return texts, labels


def _folders(place: Path) -> tuple[tuple[str, ...], Posts, Posts]:
    """Read ``20news-bydate-train/GROUP/POST`` and the same for testing, the layout of the original archive."""
    from sklearn.datasets import load_files

    train, test = (
        load_files(place / f"20news-bydate-{part}", encoding="latin-1", shuffle=False) for part in ("train", "test")
    )
    return _of_bunches(train, test)


def _scikit_learns(home: Path, download: bool) -> tuple[tuple[str, ...], Posts, Posts]:
    """Read scikit-learn's copy; if needed and allowed, scikit-learn downloads the copy and checks its SHA-256.

    The copy is pickled. Only the few classes that it consists of are admitted, so nothing else in it is executed.
    """
    from sklearn.datasets import fetch_20newsgroups

    path = home / SCIKIT_LEARNS
    try:
        if download and not path.is_file():
            fetch_20newsgroups(data_home=home, shuffle=False)
    except (OSError, ValueError) as error:
        raise DataError(f"download: 20 Newsgroups cannot be fetched ({reason(error)})") from None
    with reading(path, "what scikit-learn keeps of 20 Newsgroups"):
        parts = _OnlyPosts(io.BytesIO(zlib.decompress(path.read_bytes()))).load()
        return _of_bunches(parts["train"], parts["test"])


class _OnlyPosts(pickle.Unpickler):
    """Unpickler of texts and numbers that refuses all other classes and functions."""

    allowed = re.compile(
        r"sklearn\.utils(\._bunch)?\.Bunch|numpy\.(ndarray|dtype)|numpy\.(_?core)\.multiarray\._reconstruct"
        r"|numpy\.(_?core)\.numeric\._frombuffer|_codecs\.encode"
    )

    def find_class(self, module: str, name: str) -> Any:
        """Return a class that the pickle may use; raise an error for all others."""
        if not self.allowed.fullmatch(f"{module}.{name}"):
            raise ValueError(f"it names {module}.{name}, which does not belong in it")
        return super().find_class(module, name)


def _of_bunches(train: dict, test: dict) -> tuple[tuple[str, ...], Posts, Posts]:
    names = tuple(train["target_names"])
    if names != tuple(test["target_names"]):
        raise DataError("20news-bydate-test: must have the groups that 20news-bydate-train has")
    first, second = ((list(part["data"]), part["target"].tolist()) for part in (train, test))
    return names, first, second

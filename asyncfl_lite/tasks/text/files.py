"""Text tasks read from files: MRPC's pairs of sentences, the posts of 20 Newsgroups, and Shakespeare's plays.

MRPC (Dolan and Brockett 2005; FedEcho §5.2) asks whether two news sentences mean the same. 20 Newsgroups (Lang 1995;
FedRevive §3.2) has posts of 1993 to classify by group.

In the plays (LEAF, Caldas et al. 2018; KUIPER §4), models predict the next character. A role's text is cut into windows
that follow each other. A sample has the L characters of a window as inputs and the L characters one position later as
labels, so the model predicts at every position. LEAF, instead, shifts its window of 80 by one character and predicts
one character. The first four fifths of each role's windows are for training, and the last are for testing. Roles with
little text do not become clients; their text is the unlabelled set ``natural``.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from asyncfl_lite.base.data_folders import data_file, data_root
from asyncfl_lite.base.errors import ConfigError, DataError, reason
from asyncfl_lite.base.files import reading, text_of, write_atomically
from asyncfl_lite.tasks.arrays import check_labels
from asyncfl_lite.tasks.images.unlabelled import sample
from asyncfl_lite.tasks.splits import balanced, stratified
from asyncfl_lite.tasks.task import TASKS, FolderSource, Limited, Task
from asyncfl_lite.tasks.text.base import SequenceTask, Text, TextSource, fetched, read_objects, text_task, written
from asyncfl_lite.tasks.text.prose import prose, topics

Labelled = tuple[list[Text], list[int]]
MRPC_HOW = (
    "get msr_paraphrase_train.txt and msr_paraphrase_test.txt (Microsoft Research Paraphrase Corpus) and name the "
    "folder in task_settings folder or ASYNCFL_DATA, or set download to true for GLUE's copy"
)
COLUMNS = ("Quality", "#1 String", "#2 String")


@TASKS.register("mrpc")
class MRPC(TextSource):
    """MRPC: predict if two news sentences mean the same (3,668 training, 408 test pairs).

    Two thirds of the pairs are positive. The test set is 408 of the training pairs, which no client gets. The corpus's
    test pairs are the unlabelled set ``natural``, as in FedEcho's appendix. The caption of the paper's Table 4 says
    test set, but the numbers in it are shares of 408.
    """

    places = ("MRPC", "mrpc")
    how = MRPC_HOW

    def load(self) -> Task:
        """Load the task."""
        train, validation, (natural, _) = _from_glue() if self.is_fetched else _from_files(self.home())
        return text_task(
            "mrpc",
            self.tokeniser("mrpc", train[0]),
            self.length,
            train,
            validation,
            cross=lambda: prose(25, parts=2),
            natural=natural,
            num_classes=2,
            class_names=("different", "same"),
            source="Microsoft Research Paraphrase Corpus (Dolan, Quirk, Brockett 2005)",
            licence="Microsoft Research's own, for research; not to be passed on",
        )


def _from_files(place: Path) -> tuple[Labelled, Labelled, Labelled]:
    """Read Microsoft's two files; a tenth of the training pairs of each class, 408 in all, is for validation.

    GLUE's 408 pairs follow a list that the corpus does not contain, so these are different pairs.
    """
    texts, labels = read_pairs(data_file(place, "msr_paraphrase_train.txt", how=MRPC_HOW))
    test = read_pairs(data_file(place, "msr_paraphrase_test.txt", how=MRPC_HOW))
    chosen = stratified(labels, math.ceil(0.1 * len(labels)))
    train, validation = (([texts[place] for place in part], [labels[place] for place in part]) for part in chosen)
    return train, validation, test


def _from_glue() -> tuple[Labelled, ...]:
    """Fetch GLUE's copy: 3,668 pairs for training, 408 for validation, 1,725 for testing."""

    def pairs(part: str) -> Labelled:
        rows = fetched("nyu-mll/glue", part, "sentence1", "sentence2", "label", config="mrpc")
        return [row[:2] for row in rows], [row[2] for row in rows]

    return tuple(pairs(part) for part in ("train", "validation", "test"))


def read_pairs(path: Path) -> Labelled:
    """Read pairs of sentences and their labels, 1 if both sentences say the same, else 0."""
    with reading(path, "UTF-8 text of tab-separated columns"):
        table = pd.read_csv(
            path,
            sep="\t",
            quoting=csv.QUOTE_NONE,
            dtype=str,
            encoding="utf-8-sig",
            usecols=COLUMNS,
            keep_default_na=False,  # words such as "null" are words
            na_values=[""],
        )
    wrong = table.isna().any(axis=1) | ~table["Quality"].isin(["0", "1"])
    if wrong.any():
        raise DataError(f"{path}: pair {wrong.argmax() + 1} must have a Quality, 0 or 1, and two strings")
    labels = table["Quality"].astype(int).tolist()
    if min(labels.count(0), labels.count(1)) < 2:
        raise DataError(f"{path}: must hold at least 2 pairs of each Quality, 0 and 1")
    return list(zip(table["#1 String"], table["#2 String"], strict=True)), labels


NEWSGROUPS_HOW = (
    "set download to true, which makes target_names.json, 20news-bydate-train.jsonl and -test.jsonl of scikit-learn's "
    "copy, or name a folder that has them in task_settings folder or ASYNCFL_DATA"
)
QUOTE = re.compile(r"writes in|writes:|wrote:|says:|said:|^In article|^Quoted from|^\||^>")
"""Pattern of a line that quotes, or names the author of a quotation."""
Posts = tuple[list[str], list[int]]
"""Texts with their line breaks, and their labels."""


def without_header(post: str) -> str:
    """Return the text after the first blank line."""
    return post.partition("\n\n")[2]


def without_quotes(post: str) -> str:
    """Return the text without lines that quote, or that name the author of a quotation."""
    return "\n".join(line for line in post.split("\n") if not QUOTE.search(line))


@TASKS.register("newsgroups20")
class Newsgroups20(Limited, TextSource):
    """20 Newsgroups, split by date: predict a post's group (11,314 training, 7,532 test posts).

    Headers and quotations give the group away, so they are cut. FedRevive's paper does not say what it cuts.
    """

    places = ("20newsgroups", "20news-bydate", "20news")
    how = NEWSGROUPS_HOW

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
            cross=lambda: prose(self.length // 2),
            num_classes=len(names),
            class_names=names,
            source="20 Newsgroups, by-date version (Lang 1995; split by Rennie)",
            licence="not stated; public posts of 1993",
        )

    def _texts(self, posts: Posts, count: int | None, what: str) -> tuple[list[Text], list[int]]:
        places = balanced(np.array(posts[1]), count, what)
        return [(self._text(posts[0][place]),) for place in places], [posts[1][place] for place in places]

    def _text(self, post: str) -> str:
        words = without_quotes(without_header(post)).split()
        return " ".join(words)[: 8 * self.length]  # tokens are about half as long; this saves most of the time

    def _read(self) -> tuple[tuple[str, ...], Posts, Posts]:
        if self.is_fetched:
            _download(data_root(self.folder) / self.places[0])
        place = self.home()
        path = data_file(place, "target_names.json", how=NEWSGROUPS_HOW)
        with reading(path, "a JSON list of the groups' names"):
            names = tuple(json.loads(text_of(path)))
            if not names or not all(isinstance(name, str) for name in names):
                raise TypeError("no names")
        train, test = (
            _lines(
                data_file(place, f"20news-bydate-{part}.jsonl.xz", f"20news-bydate-{part}.jsonl", how=NEWSGROUPS_HOW),
                len(names),
            )
            for part in ("train", "test")
        )
        return names, train, test


def _lines(path: Path, groups: int) -> Posts:
    posts = read_objects(path, text=str, label=int)
    check_labels(path, posts["label"].to_numpy(np.int64), len(posts), groups)
    texts = (text.rstrip("\n\xff") for text in posts["text"])  # some copies end in the byte of -1
    return [text if "\n" in text else text.replace("\t", "\n") for text in texts], posts["label"].tolist()


def _download(place: Path) -> None:
    """Let scikit-learn download the posts, and write them into a folder as JSON lines.

    scikit-learn keeps a pickle, which this package would have to trust, so it gets a folder that does not last.
    """
    from sklearn.datasets import fetch_20newsgroups

    with TemporaryDirectory() as folder:
        for part in ("train", "test"):
            try:
                posts = fetch_20newsgroups(data_home=folder, subset=part, shuffle=False)
            except (OSError, ValueError) as error:
                raise DataError(f"download: 20 Newsgroups cannot be fetched ({reason(error)})") from None
            rows = zip(posts["data"], posts["target"].tolist(), strict=True)
            lines = (json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)
            write_atomically(place / f"20news-bydate-{part}.jsonl", "".join(lines))
    write_atomically(place / "target_names.json", json.dumps(list(posts["target_names"])))


PLAYS_HOW = (
    "get tinyshakespeare's input.txt (github.com/karpathy/char-rnn), or any plays of blocks 'SPEAKER:' and speech "
    "with empty lines between them, and name the folder in task_settings folder or ASYNCFL_DATA"
)
UNKNOWN = "\N{REPLACEMENT CHARACTER}"
"""Token for every character that is not in an alphabet's texts; its id is 0."""


class Alphabet:
    """The characters of texts, numbered from 1; 0 stands for any other."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.characters = UNKNOWN + "".join(sorted(set().union(*texts)))
        self._ids = {character: number for number, character in enumerate(self.characters)}

    def __len__(self) -> int:
        return len(self.characters)

    def windows(self, text: str, length: int) -> Tensor:
        """Cut a text into ``(n, length + 1)`` ids; each window begins with the last character of the one before."""
        ids = torch.tensor([self._ids.get(character, 0) for character in text], dtype=torch.int64)
        if len(ids) <= length:
            return ids.new_zeros(0, length + 1)
        return ids.unfold(0, length + 1, length)

    def decode(self, row: Tensor) -> str:
        """Return the text of ``(L,)`` ids."""
        return "".join(self.characters[number] for number in row.tolist())


def character_task(
    name: str, roles: Mapping[str, str], others: Iterable[str], cross: Callable[[], str], length: int, **about: Any
) -> SequenceTask:
    """Make a task of predicting the next character in roles' texts; the roles are the samples' owners.

    Its unlabelled sets are ``cross``, another text; ``natural``, other roles' texts; and ``synthetic``, texts from a
    Markov chain in which each character follows the three before it as in the training windows.

    Args:
        roles: role -> text, of at least five windows each.
        others: texts of roles that are not clients.
        cross: function that returns another text.
        length: number L of characters in a window.
    """
    alphabet = Alphabet(roles.values())
    windows = [alphabet.windows(text, length) for text in roles.values()]
    if min(map(len, windows), default=0) < 5:
        raise ConfigError(f"roles: must be some, each with 5 windows of {length} characters or more")
    cuts = [len(own) * 4 // 5 for own in windows]
    train = torch.cat([own[:cut] for own, cut in zip(windows, cuts, strict=True)])
    test = torch.cat([own[cut:] for own, cut in zip(windows, cuts, strict=True)])
    owners = np.repeat(np.arange(len(windows)), cuts)

    def drawn(texts: Iterable[str], count: int, rng: np.random.Generator) -> Tensor:
        return sample(torch.cat([alphabet.windows(text, length) for text in texts])[:, :-1], count, rng)

    others = tuple(others)
    return SequenceTask(
        name,
        train[:, :-1],
        train[:, 1:],
        test[:, :-1],
        test[:, 1:],
        num_classes=len(alphabet),
        unlabelled={
            "cross": lambda count, rng: drawn([cross()], count, rng),
            "natural": lambda count, rng: drawn(others, count, rng),
            "synthetic": lambda count, rng: written(train[:, :-1], count, rng, order=3),
        },
        owners=owners,
        kinds=owners,
        vocabulary=len(alphabet),
        class_names=tuple(alphabet.characters),
        metric="perplexity",
        decode=alphabet.decode,
        **about,
    )


def roles_of(play: str) -> tuple[dict[str, str], dict[str, int]]:
    """Return each role's speeches, joined by line breaks, and the number of characters in its blocks with its name.

    Blocks have empty lines between them; each has a line ``SPEAKER:`` and a speech.
    """
    speeches: dict[str, list[str]] = {}
    sizes: dict[str, int] = {}
    for block in re.split(r"\n\n+", play.strip()):
        speaker, _, speech = block.partition("\n")
        if speaker.endswith(":") and speech:
            speeches.setdefault(speaker[:-1], []).append(speech)
            sizes[speaker[:-1]] = sizes.get(speaker[:-1], 0) + len(block)
    return {role: "\n".join([*said, ""]) for role, said in speeches.items()}, sizes


@TASKS.register("shakespeare")
class Shakespeare(FolderSource):
    """Next-character prediction on Shakespeare's plays, by role (105 of tinyshakespeare), scored by perplexity."""

    places = ("tinyshakespeare", "shakespeare")
    how = PLAYS_HOW
    least: ClassVar[int] = 2000
    """Number of characters that a role needs to become a client, counting its name at the head of each block; KUIPER
    prints none."""
    length: ClassVar[int] = 80
    """Number of characters in a window, as in LEAF."""

    def load(self) -> Task:
        """Load the task."""
        path = data_file(self.home(), "input.txt", how=PLAYS_HOW)
        speeches, sizes = roles_of(text_of(path))
        roles = {role: text for role, text in speeches.items() if sizes[role] >= self.least}
        others = [text for role, text in speeches.items() if role not in roles]
        return character_task(
            "shakespeare",
            roles,
            others,
            lambda: " ".join(topics().values()),
            self.length,
            source="William Shakespeare, compiled by Andrej Karpathy (tinyshakespeare)",
            licence="public domain; the compilation states none",
        )

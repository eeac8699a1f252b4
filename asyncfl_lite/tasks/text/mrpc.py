"""MRPC: predict whether two news sentences mean the same (Dolan and Brockett 2005; FedEcho §5.2)."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, Literal

import numpy as np

from asyncfl_lite.base.errors import DataError, needs
from asyncfl_lite.base.files import data_file, data_folder, data_places, reading
from asyncfl_lite.tasks.task import TASKS, Task
from asyncfl_lite.tasks.text import prose
from asyncfl_lite.tasks.text.base import Text, TextSource, text_task

Labelled = tuple[list[Text], list[int]]

HOW_TO_GET = (
    "get msr_paraphrase_train.txt and msr_paraphrase_test.txt (Microsoft Research Paraphrase Corpus) and name the "
    "folder in task_settings folder or ASYNCFL_DATA, or set download to true for GLUE's copy"
)
COLUMNS = ("Quality", "#1 String", "#2 String")


@TASKS.register("mrpc")
class MRPC(TextSource):
    """MRPC: predict if two news sentences mean the same (4,076 training, 1,725 test pairs).

    Two thirds of the pairs are positive.

    >>> from asyncfl_lite import Config
    >>> config = Config(task="mrpc", task_settings={"length": 64})  # the files are read when a run starts
    >>> config.task, config.task_settings.length
    ('mrpc', 64)
    """

    folder: str | None = None
    """Folder of the data, or a folder that contains MRPC/; None for ASYNCFL_DATA, else the cache folder."""
    evaluation: Literal["validation", "test"] = "validation"
    """Test set: 408 of the training pairs that no client gets, with the test pairs as unlabelled set ``natural``, as in
    FedEcho's appendix; or the test pairs, with all training pairs for the clients."""

    def load(self) -> Task:
        """Load the task."""
        train, validation, test = self._read()
        natural = None
        if self.evaluation == "validation":
            natural, test = test[0], validation
        else:
            train = (train[0] + validation[0], train[1] + validation[1])
        return text_task(
            "mrpc",
            self.tokeniser("mrpc", train[0]),
            self.length,
            train,
            test,
            cross=lambda: prose.prose(25, parts=2),
            natural=natural,
            num_classes=2,
            class_names=("different", "same"),
            source="Microsoft Research Paraphrase Corpus (Dolan, Quirk, Brockett 2005)",
            licence="Microsoft Research's own, for research; not to be passed on",
        )

    def files(self) -> list[Path]:
        """Return a list with the data set's folder; an empty list if it does not exist."""
        return data_places(self.folder, "MRPC", "mrpc")

    def _read(self) -> tuple[Labelled, Labelled, Labelled]:
        """Read the pairs for training, validation and testing."""
        try:
            place = data_folder(self.folder, "MRPC", "mrpc", how=HOW_TO_GET)
        except DataError:
            if not self.download:
                raise
            return _from_glue()
        return _from_files(place)


def _from_files(place: Path) -> tuple[Labelled, Labelled, Labelled]:
    """Read Microsoft's two files; a tenth of the training pairs of each class, 408 in all, is for validation.

    GLUE's 408 pairs follow a list that the corpus does not contain, so these are different pairs.
    """
    from sklearn.model_selection import train_test_split

    texts, labels = read_pairs(data_file(place, "msr_paraphrase_train.txt", how=HOW_TO_GET))
    test = read_pairs(data_file(place, "msr_paraphrase_test.txt", how=HOW_TO_GET))
    chosen = train_test_split(np.arange(len(labels)), test_size=0.1, stratify=labels, random_state=0)
    train, validation = (([texts[place] for place in part], [labels[place] for place in part]) for part in chosen)
    return train, validation, test


def _from_glue() -> tuple[Labelled, Labelled, Labelled]:
    """Fetch GLUE's copy: 3,668 pairs for training, 408 for validation, 1,725 for testing."""
    with needs("text", "downloading mrpc"):
        import datasets

    try:
        splits = datasets.load_dataset("nyu-mll/glue", "mrpc")
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        raise DataError(f"download: GLUE's MRPC cannot be fetched ({reason})") from None

    def pairs(part: Any) -> Labelled:
        return [*zip(part["sentence1"], part["sentence2"], strict=True)], [*part["label"]]

    return pairs(splits["train"]), pairs(splits["validation"]), pairs(splits["test"])


def read_pairs(path: Path) -> Labelled:
    """Read a file of the corpus: tab-separated with a header, no quoting.

    Returns:
        Pairs of sentences and their labels: 1 if both sentences say the same, else 0.

    Raises:
        DataError: when the file is not in this format; the message says what is wrong.
    """
    texts, labels = list[tuple[str, ...]](), list[int]()
    with reading(path, "UTF-8 text of tab-separated columns"), path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        header = next(rows, [])
        if not set(COLUMNS) <= set(header):
            raise DataError(f"{path}: must begin with a line of columns {', '.join(COLUMNS)}")
        quality, first, second = (header.index(name) for name in COLUMNS)
        for row in rows:
            if len(row) != len(header) or row[quality] not in ("0", "1"):
                raise DataError(f"{path}: line {rows.line_num} is not a pair of {len(header)} columns")
            texts.append((row[first], row[second]))
            labels.append(int(row[quality]))
    if min(labels.count(0), labels.count(1)) < 2:
        raise DataError(f"{path}: must hold at least 2 pairs of each Quality, 0 and 1")
    return texts, labels

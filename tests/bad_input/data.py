"""Data files that cannot be, by the reader that meets them: what is written, then the run that reads it."""

from __future__ import annotations

import gzip
import io
import lzma
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np

Files = Callable[[Path], None]


class Bomb:
    """Whose pickle would call a function when it is read."""

    def __reduce__(self) -> tuple:
        return (Path.touch, (Path("exploded"),))


def files(**contents: str | bytes) -> Files:
    """Write files by path, with ``/`` in it written as ``__`` and ``.`` as ``_dot_``."""

    def write(folder: Path) -> None:
        for name, content in contents.items():
            path = folder / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    return write


def idx(values: np.ndarray) -> bytes:
    """Bytes in MNIST's format."""
    return bytes([0, 0, 8, values.ndim]) + np.array(values.shape, ">i4").tobytes() + values.astype(np.uint8).tobytes()


def mnist(images: bytes | None = None, labels: bytes | None = None) -> Files:
    """MNIST's four files, unpacked, the training part's replaced."""
    sound = idx(np.zeros((6, 28, 28))), idx(np.arange(6))
    given = {"train-images-idx3": images, "train-labels-idx1": labels}

    def write(folder: Path) -> None:
        (folder / "MNIST/raw").mkdir(parents=True)
        for part in ("train", "t10k"):
            for kind, content in zip(("images-idx3", "labels-idx1"), sound, strict=True):
                replaced = given.get(f"{part}-{kind}")
                (folder / f"MNIST/raw/{part}-{kind}-ubyte").write_bytes(content if replaced is None else replaced)

    return write


def npz(**changed: object) -> Files:
    """CIFAR-10 (JPEG q75)'s file, with no image in it that is one; parts replaced."""
    whole = {"jpeg_header": np.zeros(4, np.uint8), "class_names": np.array(["a", "b"])}
    for part in ("train", "test"):
        whole |= {f"{part}_stream": np.zeros(8, np.uint8), f"{part}_offsets": np.array([0, 4, 8])}
        whole |= {f"{part}_labels": np.array([0, 1], np.uint8)}
    file = io.BytesIO()
    np.savez(file, **{**whole, **changed})
    return _as("cifar10-jpeg75.npz", file.getvalue())


def _as(name: str, content: bytes) -> Files:
    return lambda folder: (folder / name).write_bytes(content)


def posts(train: str | bytes, names: str = '["g"]', ending: str = "jsonl") -> Files:
    """20 Newsgroups as JSON lines, the training part as given."""
    content = train.encode() if isinstance(train, str) else train

    def write(folder: Path) -> None:
        (folder / "20news").mkdir()
        (folder / "20news/target_names.json").write_text(names)
        (folder / f"20news/20news-bydate-train.{ending}").write_bytes(content)
        (folder / "20news/20news-bydate-test.jsonl").write_text('{"text": "a", "label": 0}\n')

    return write


PAIRS = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"


def no_writer(folder: Path) -> None:
    """No file at all."""


def trace_law(folder: Path) -> list[str]:
    return ["--delay", "trace", "--delay-settings", f"path={folder / 'trace.csv'}"]


POST = '{"text": "a", "label": 0}\n'
VIDEO = "ucfTrainTestlist"
CUT_XZ = lzma.compress((POST * 500).encode())[:60]
# what is asked for: a task by its name, or a function of the folder; what is written; what must be said
DATA: list[tuple[str, str | Callable[[Path], list[str]], Files, tuple[str, ...]]] = [
    ("mnist-missing", "mnist", no_writer, ("folder: looked in", "for MNIST/, which is not there", "download=true")),
    ("mnist-no-such-user", lambda _: ["--task", "mnist", "--task-settings", "folder=~nobody0/x"], no_writer, ("folder: ~nobody0/x cannot be found",)),
    ("mnist-cut-off", "mnist", mnist(images=idx(np.zeros((6, 28, 28)))[:1000]), ("mnist: ", "MNIST could not be read (", "download=true")),
    ("mnist-label-too-large", "mnist", mnist(labels=idx(np.array([0, 1, 2, 3, 4, 11]))), ("mnist: ", "MNIST: labels must be 0 to 9, got 11")),
    ("mnist-labels-too-few", "mnist", mnist(labels=idx(np.arange(5))), ("mnist: ", "MNIST: must have a label for each sample, at least 1, has 5 for 6")),
    ("mnist-other-checksum", "mnist", files(**{f"MNIST__raw__{part}-{kind}-ubyte_dot_gz": gzip.compress(b"no idx") for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")}), ("train-images-idx3-ubyte.gz is damaged: its MD5 sum is not the published one",)),
    ("cifar10-changed", "cifar10", files(**{"cifar-10-batches-py__data_batch_1": pickle.dumps(Bomb())}), ("cifar10: ", "cifar-10-batches-py could not be read (Dataset not found or corrupted",)),
    ("stl10-changed", "stl10", files(stl10_binary__train_X_dot_bin=b"x"), ("stl10: ", "could not be read (Dataset not found or corrupted")),
    ("cifar10-jpeg-missing", "cifar10_jpeg75", no_writer, ("folder: looked in", "for cifar10-jpeg75.npz or", "use cifar10, or name the folder")),
    ("cifar10-jpeg-empty", "cifar10_jpeg75", _as("cifar10-jpeg75.npz", b""), ("cifar10-jpeg75.npz could not be read (EOFError",)),
    ("cifar10-jpeg-a-pickle", "cifar10_jpeg75", _as("cifar10-jpeg75.npz", pickle.dumps(Bomb())), ("cifar10-jpeg75.npz could not be read (", "contains pickled (object) data")),
    ("cifar10-jpeg-pickled-labels", "cifar10_jpeg75", npz(train_labels=np.array([Bomb(), 1], dtype=object)), ("cifar10-jpeg75.npz could not be read (", "allow_pickle=False")),
    ("cifar10-jpeg-label-too-large", "cifar10_jpeg75", npz(train_labels=np.array([0, 7], np.uint8)), ("cifar10-jpeg75.npz: labels must be 0 to 1, got 7",)),
    ("cifar10-jpeg-no-images", "cifar10_jpeg75", npz(), ("cifar10-jpeg75.npz could not be read (cannot identify image file",)),
    ("femnist-missing", "femnist", no_writer, ("folder: looked in", "for femnist/ or FEMNIST/", "flwrlabs/femnist")),
    ("femnist-neither", "femnist", files(femnist__readme="x"), ("femnist has no *.parquet; put the parquet files",)),
    ("femnist-no-parquet", "femnist", files(femnist__a_dot_parquet=b"PAR1"), ("femnist: the parquet copy could not be read (",)),
    ("mrpc-missing", "mrpc", no_writer, ("folder: looked in", "for MRPC/ or mrpc/", "msr_paraphrase_train.txt")),
    ("mrpc-columns", "mrpc", files(MRPC__msr_paraphrase_train_dot_txt=PAIRS + "1\t2\n"), ("msr_paraphrase_train.txt: pair 1 must have a Quality, 0 or 1, and two strings",)),
    ("mrpc-label", "mrpc", files(MRPC__msr_paraphrase_train_dot_txt=PAIRS + "2\t1\t2\ta\tb\n"), ("pair 1 must have a Quality, 0 or 1",)),
    ("mrpc-header-only", "mrpc", files(MRPC__msr_paraphrase_train_dot_txt=PAIRS), ("must hold at least 2 pairs of each Quality, 0 and 1",)),
    ("newsgroups-missing", "newsgroups20", no_writer, ("folder: looked in", "20newsgroups/", "set download to true")),
    ("newsgroups-names-cut-off", "newsgroups20", posts(POST, names='["g'), ("target_names.json is not a JSON list of the groups' names (",)),
    ("newsgroups-no-json", "newsgroups20", posts(POST + "{\n"), ("20news-bydate-train.jsonl is not JSON objects with text, label (ValueError",)),
    ("newsgroups-label", "newsgroups20", posts('{"text": "a", "label": 1}\n'), ("20news-bydate-train.jsonl: labels must be 0 to 0, got 1",)),
    ("newsgroups-cut-off", "newsgroups20", posts(CUT_XZ, ending="jsonl.xz"), ("20news-bydate-train.jsonl.xz is not JSON objects with text, label (EOFError",)),
    ("shakespeare-missing", "shakespeare", no_writer, ("folder: looked in", "for tinyshakespeare/")),
    ("shakespeare-empty", "shakespeare", files(tinyshakespeare__input_dot_txt=""), ("roles: must be some",)),
    ("shakespeare-not-text", "shakespeare", files(tinyshakespeare__input_dot_txt=b"\xff\xff"), ("input.txt is not UTF-8 text",)),
    ("gsm8k-cut-off", "gsm8k", files(gsm8k__train_dot_jsonl='{"question": "a'), ("train.jsonl is not JSON objects with question, answer (ValueError",)),
    ("gsm8k-other-keys", "gsm8k", files(gsm8k__train_dot_jsonl='{"q": "a", "answer": "b"}'), ("train.jsonl is not JSON objects with question, answer (KeyError",)),
    ("gsm8k-too-few", "gsm8k", files(gsm8k__train_dot_jsonl='{"question": "a", "answer": "b"}'), ("samples, held_out: must be at most 1 together",)),
    ("mathinstruct-deep", "mathinstruct", files(MathInstruct__MathInstruct_dot_json="[" * 99999), ("MathInstruct.json is not JSON objects with source, instruction, output (",)),
    ("ucf101-other-class", "ucf101", files(**{f"UCF101__{VIDEO}__trainlist01_dot_txt": "Archery/v.avi 1\n", f"UCF101__{VIDEO}__testlist01_dot_txt": "Bowling/v.avi\n"}), ("UCF101: no training clip is of class 'Bowling', as test clips are",)),
    ("ucf101-no-clips", "ucf101", files(**{f"UCF101__{VIDEO}__trainlist01_dot_txt": "\n"}), ("trainlist01.txt: must have at least one line, has none",)),
    ("hmdb51-mark", "hmdb51", files(HMDB51__brush_test_split1_dot_txt="a.avi 3\n"), ("brush_test_split1.txt: a line must end in 0, 1 or 2, got 'a.avi 3'",)),
    ("kinetics-columns", "kinetics", files(kinetics__train_dot_csv="a,b\n"), ("train.csv is not a table with columns label,youtube_id,time_start,time_end (",)),
    ("kinetics-no-clips", "kinetics", files(**{f"kinetics__{part}_dot_csv": "label,youtube_id,time_start,time_end\n" for part in ("train", "val")}), ("the split files must name clips for kinetics-train, they name none",)),
    ("trace-missing", trace_law, no_writer, ("trace.csv: No such file or directory",)),
    ("trace-empty", trace_law, files(trace_dot_csv=""), ("trace.csv, line 1: the header must name the columns client,seconds",)),
    ("trace-not-text", trace_law, files(trace_dot_csv=b"client,seconds\n\xff,1\n"), ("trace.csv: ", "can't decode byte 0xff")),
]  # fmt: skip

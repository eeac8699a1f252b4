"""Data of the same shape as the papers' own, made up: as many samples, classes and values, which say nothing.

A set of images or clips is one blank sample seen many times, so that the papers' sizes fit in memory. Texts are written
to files as their sources lay them out, and read by the project's own readers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from asyncfl_lite.tasks import Task, TaskSource

WORDS = ["north", "south", "east", "west", "river", "stone", "apple", "cloud", "paper", "train", "green", "seven",
         "horse", "table", "light", "sound"]  # fmt: skip


class Shape(NamedTuple):
    """How many samples a data set has for training and testing, of which shape, in how many classes."""

    train: int
    test: int
    sample: tuple[int, ...]
    classes: int


IMAGES = {
    "mnist": Shape(60_000, 10_000, (1, 28, 28), 10),
    "fashion_mnist": Shape(60_000, 10_000, (1, 28, 28), 10),
    "cifar10": Shape(50_000, 10_000, (3, 32, 32), 10),
    "cifar100": Shape(50_000, 10_000, (3, 32, 32), 100),
    "femnist": Shape(200_000, 30_000, (1, 28, 28), 62),
}
CLIPS = {"hmdb51": (3570, 1530, 51), "ucf101": (9537, 3783, 101), "kinetics": (240_000, 20_000, 400)}


def shape_of(name: str, source: TaskSource) -> Shape:
    """Return the shape of a set of images or clips, whose frames are a setting."""
    if name in IMAGES:
        return IMAGES[name]
    train, test, classes = CLIPS[name]
    return Shape(train, test, (3, source.frames, source.side, source.side), classes)


def made_up(name: str, source: TaskSource, most: int | None = None) -> Task:
    """Return a task of the shape of a set of images or clips: blank, or with at most so many samples of noise."""
    shape = shape_of(name, source)
    rng = np.random.default_rng(0)

    def samples(count: int) -> tuple[torch.Tensor, torch.Tensor]:
        labels = torch.from_numpy(rng.permutation(count) % shape.classes)
        if most is None:
            return torch.zeros(1, *shape.sample).expand(count, *shape.sample), labels
        return torch.randn(count, *shape.sample, generator=torch.Generator().manual_seed(count)), labels

    train, test = (samples(count if most is None else most) for count in (shape.train, shape.test))
    owners = np.sort(rng.integers(source.writers, size=len(train[1]))) if name == "femnist" else None
    if owners is not None:  # each writer has a sample
        owners[np.linspace(0, len(owners) - 1, source.writers).astype(int)] = np.arange(source.writers)
        owners = np.sort(owners)

    def unlabelled(count: int, rng: np.random.Generator) -> torch.Tensor:
        return torch.from_numpy(rng.standard_normal((count, *shape.sample), dtype=np.float32))

    sets = dict.fromkeys(("natural", "cross", "synthetic", "generated"), unlabelled)
    return Task(name, *train, *test, shape.classes, unlabelled=sets, owners=owners)


def write_texts(folder: Path) -> None:
    """Write MRPC, 20 Newsgroups, Shakespeare, GSM8K and MathInstruct as small files of made-up words."""
    rng = np.random.default_rng(0)

    def sentence(words: int = 8) -> str:
        return " ".join(rng.choice(WORDS, words))

    mrpc = folder / "MRPC"
    mrpc.mkdir()
    for part, count in (("train", 4076), ("test", 200)):
        rows = [f"{int(rng.random() < 2 / 3)}\t1\t2\t{sentence()}\t{sentence()}" for _ in range(count)]
        lines = ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String", *rows]
        (mrpc / f"msr_paraphrase_{part}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")

    groups = folder / "20newsgroups"
    groups.mkdir()
    (groups / "target_names.json").write_text(json.dumps([f"group.{number}" for number in range(20)]))
    for part, count in (("train", 11_314), ("test", 400)):
        posts = [json.dumps({"label": at % 20, "text": f"From: a\n\n{sentence()}"}) for at in range(count)]
        (groups / f"20news-bydate-{part}.jsonl").write_text("\n".join(posts) + "\n")

    snippets = [json.dumps({"label": at % 20, "text": sentence()}) for at in range(1000)]
    (groups / "snippets.jsonl").write_text("\n".join(snippets) + "\n")

    plays = folder / "tinyshakespeare"
    plays.mkdir()
    speeches = [f"ROLE{'ABCDEFGHIJ'[at % 10]}:\n{sentence(40)}\n" for at in range(4000)]
    few = [
        "SERVANT:\nYes, my lord, at once, as you say, and sooner than that, if I may go now to the river and back.\n"
    ]
    (plays / "input.txt").write_text("\n".join([*speeches, *few * 10]))

    maths = [{"question": f"{sentence()} {at}?", "answer": f"{sentence()}\n#### {at % 7}"} for at in range(600)]
    gsm8k = folder / "gsm8k"
    gsm8k.mkdir()
    for part in ("train", "test"):
        (gsm8k / f"{part}.jsonl").write_text("\n".join(map(json.dumps, maths)) + "\n")
    rows = [{"source": f"data/{at % 8}.json", "instruction": one["question"], "output": one["answer"]}
            for at, one in enumerate(maths)]  # fmt: skip
    (folder / "MathInstruct").mkdir()
    (folder / "MathInstruct/MathInstruct.json").write_text(json.dumps(rows))

"""What a task says of itself, and what it draws."""

from __future__ import annotations

import io

import matplotlib.image
import numpy as np
import pytest
import torch

from asyncfl_lite.tasks import Task
from asyncfl_lite.tasks.show import describe, label_histogram, show
from asyncfl_lite.tasks.splits import balanced
from asyncfl_reproduction.standins.images import Writers


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_task_describes_itself():
    task = Writers(writers=5, samples=20).load()
    parts = [np.arange(30), np.arange(30, 100)]
    told = describe(task, parts)
    assert told.startswith("writers, stand-in for FEMNIST\n")
    for fact in ("metric      accuracy", "100 samples of 1 × 14 × 14 float32", "1,000 samples", "10 classes: 0, 1,",
                 "5 owners with 20 samples each", "2 clients with 30 to 70 samples", "CC BY-SA"):  # fmt: skip
        assert fact in told
    custom = Task.from_tensors(torch.zeros(4, 2), torch.arange(4), torch.zeros(4, 2), torch.arange(4))
    assert describe(custom).startswith("custom\n") and "given by the user" in describe(custom)


def test_the_label_histogram_counts():
    task = Task.from_tensors(torch.zeros(6, 2), torch.tensor([0, 1, 2, 0, 1, 2]), torch.zeros(3, 2), torch.arange(3))
    parts = [np.array([0, 3]), np.array([1, 2, 4]), np.array([], dtype=int)]
    assert label_histogram(task, parts).tolist() == [[2, 0, 0], [0, 2, 1], [0, 0, 0]]


def pixels(figure) -> np.ndarray:
    figure.savefig(buffer := io.BytesIO(), format="png", dpi=60)
    return matplotlib.image.imread(io.BytesIO(buffer.getvalue()))


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 8, 12), (1, 9, 8, 8), (3, 4, 8, 8), (12,)])
def test_a_task_shows_itself(shape):
    inputs, labels = torch.randn(30, *shape, generator=generator()), torch.arange(30) % 3
    task = Task.from_tensors(inputs, labels, inputs, labels, name="mine")
    parts = [np.arange(10), np.arange(10, 30)]
    alone, both = show(task), show(task, parts)
    assert alone.get_suptitle() == both.get_suptitle() == "mine"
    assert both.get_figwidth() > alone.get_figwidth()
    assert pixels(alone)[..., :3].std() > 0.1
    histogram = both.subfigs[1].axes[0].images[0].get_array()
    assert histogram.filled(0).tolist() == label_histogram(task, parts).T.tolist()
    shown = [image.get_array() for axes in (alone.axes) for image in axes.images]
    assert len(shown) == {3: 20, 4: 5, 1: 1}[len(shape)]
    if len(shape) == 3:
        chosen = balanced(labels.numpy(), 20)
        first = inputs[chosen[np.argsort(labels.numpy()[chosen], kind="stable")[0]]].movedim(0, -1).squeeze(-1).numpy()
        assert np.corrcoef(first.ravel(), np.asarray(shown[0]).ravel())[0, 1] > 0.95
    if len(shape) == 4:
        frames = min(8, shape[1])
        assert shown[0].shape[:2] == (10, frames * 10)  # a strip, a line around each frame


def test_a_task_of_tokens_shows_text():
    tokens, labels = torch.randint(0, 50, (12, 6), generator=generator()), torch.arange(12) % 2

    class Spoken(Task):
        def decode(self, row: torch.Tensor) -> str:
            return "cost $5 " + " ".join(f"w{token}" for token in row.tolist())

    task = Spoken("spoken", tokens, labels, tokens, labels, 2, class_names=("no", "yes"), stands_in_for="speech")
    figure = show(task)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert figure.get_suptitle() == "spoken, stand-in for speech"
    assert texts[::2] == ["no"] * 4 + ["yes"] * 4
    assert texts[1].startswith(r"cost \$5 w") and pixels(figure).std() > 0.01


def test_a_task_of_sequences_shows_kinds_or_sizes():
    tokens = torch.randint(0, 9, (12, 6), generator=generator())
    fields = (tokens, tokens, tokens, tokens, 9)
    parts = [np.arange(4), np.arange(4, 12)]
    assert label_histogram(Task("s", *fields, kinds=np.arange(12) % 3), parts).shape == (2, 3)
    plain = Task("s", *fields)
    assert label_histogram(plain, parts) is None and "4 to 8 samples, median 6" in describe(plain, parts)
    assert [bar.get_height() for bar in show(plain, parts).subfigs[1].axes[0].patches] == [4, 8]

"""Labels that are no classes, and losses and scores of a user's own, are tried before anything is trained."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from asyncfl_lite import Config, Task, run
from asyncfl_lite.base.errors import DataError
from asyncfl_lite.clients.trainer import Trainer
from conftest import line

X = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
SIDES = (X.sum(1) > 0).long()
SMALL = Config(model="mlp", model_settings={"hidden": (4,)}, partition="iid", clients=4, concurrency=2, buffer_size=1,
               rounds=3, eval_every=1)  # fmt: skip


@pytest.fixture
def untrained(monkeypatch):
    """Nothing may be trained."""
    monkeypatch.setattr(Trainer, "__call__", lambda *_: pytest.fail("it was trained"))


def task_of(kind, labels=SIDES, classes: int = 2) -> Task:
    return kind("mine", X, labels, X, labels, classes)


class Focal(Task):
    """The focal loss with gamma 2."""

    def losses(self, outputs, labels):
        values = super().losses(outputs, labels)
        return (1 - torch.exp(-values)) ** 2 * values


class Distance(Task):
    """Regression."""

    def losses(self, outputs, labels):
        return (outputs[:, 0] - labels).square()

    def hits(self, outputs, labels):
        return ((outputs[:, 0] - labels).abs() < 0.1).float()


class Tags(Task):
    """Several labels a sample."""

    def losses(self, outputs, labels):
        return functional.binary_cross_entropy_with_logits(outputs, labels.float(), reduction="none").mean(-1)


def test_another_loss_is_trained_with():
    plain, focal = (run(SMALL, task=task_of(kind)) for kind in (Task, Focal))
    assert focal.curve["loss"][0] < plain.curve["loss"][0] and focal.summary["versions"] == 3


@pytest.mark.parametrize(
    ("kind", "labels", "words"),
    [
        (Distance, X.sum(1), "labels: must be one class for each sample, (n,) int64, got float32 of shape (20,)"),
        (Task, X.sum(1), "labels: must be one class for each sample, (n,) int64, got float32 of shape (20,)"),
        (Tags, (X > 0).float(), "labels: must be one class for each sample, (n,) int64, got float32 of shape (20, 3)"),
        (Tags, (X > 0).long(), "labels: must be one class for each sample, (n,) int64, got int64 of shape (20, 3)"),
    ],
)
def test_regression_and_several_labels_are_refused_by_name(kind, labels, words, untrained):
    unsupported = "; regression and several labels a sample are not supported"
    assert line(lambda: run(SMALL, task=task_of(kind, labels, 3)), DataError) == words + unsupported
    told = line(lambda: Task.from_tensors(X, labels, X, labels), DataError)
    assert told.startswith("labels: ") and told.endswith(unsupported)


def made(**methods):
    """Return a class of task with these methods."""
    return type("Mine", (Task,), {**methods, "__module__": __name__})


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        ({"losses": lambda self, outputs, labels: functional.cross_entropy(outputs, labels)},
         "task: Mine.losses must return (2,) real numbers, one for each sample, got () of float32"),
        ({"losses": lambda self, outputs, labels: functional.cross_entropy(outputs.detach(), labels, reduction="none")},
         "task: Mine.losses must return (2,) real numbers, one for each sample, with a gradient, got a tensor without"),
        ({"losses": lambda self, outputs, labels: outputs[:, 7]}, "task: Mine.losses fails on (2, 2) and (2,) (IndexErr"),
        ({"hits": lambda self, outputs, labels: outputs.argmax(-1) == labels},
         "task: Mine.hits must return (2,) real numbers, one for each sample, got (2,) of bool"),
        ({"evaluate": lambda self, predict, batch_size=500: {"error": 1.0}},
         "task: Mine.evaluate must return a dict with the numbers 'accuracy' and 'loss', got {'error': 1.0}"),
        ({"evaluate_classes": lambda self, predict, batch_size=500: 1 / 0},
         "task: Mine.evaluate_classes fails (ZeroDivisionError: division by zero)"),
        ({"evaluate_classes": lambda self, predict, batch_size=500: ([1], [1])},
         "task: Mine.evaluate_classes must return two arrays (2,), or None, got ([1], [1])"),
        ({"class_logits": lambda self, outputs: outputs[0]},
         "task: Mine.class_logits must return a tensor (2, 2), got (2,) of float32"),
    ],
)  # fmt: skip
def test_what_would_fail_at_the_end_fails_at_the_start(methods, words, untrained):
    assert line(lambda: run(SMALL, task=task_of(made(**methods))), DataError).startswith(words)

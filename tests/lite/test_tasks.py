"""Tasks: real data of known size, unlabelled sets, one's own tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from asyncfl_lite import Config, run
from asyncfl_lite.base.errors import DataError
from asyncfl_lite.runs.results import load_complete, load_result
from asyncfl_lite.tasks import Digits, MNIST5k, Task
from asyncfl_lite.tasks.images.unlabelled import sample

RNG = np.random.default_rng


@pytest.mark.parametrize(
    ("source", "train", "test", "shape"),
    [
        (Digits(), 1437, 360, (1, 8, 8)),
        (MNIST5k(), 4000, 1000, (1, 14, 14)),
    ],
)
def test_sizes_shapes_and_normalisation(source, train, test, shape):
    task = source.load()
    assert (len(task.inputs), len(task.test_inputs)) == (train, test)
    assert task.input_shape == shape and task.num_classes == 10
    assert abs(float(task.inputs.mean())) < 1e-4 and float(task.inputs.std()) == pytest.approx(1, abs=1e-3)
    for labels, count in ((task.labels, train), (task.test_labels, test)):
        assert labels.bincount().min() >= 0.9 * count / 10 * 0.9
    assert task.source


@pytest.mark.parametrize("source", [Digits(), MNIST5k()], ids=str)
@pytest.mark.parametrize("name", ["cross", "natural", "synthetic"])
def test_unlabelled_sets(source, name):
    task = source.load()
    drawn = task.unlabelled_set(name, 60, RNG(0))
    assert drawn.shape == (60, *task.input_shape) and drawn.dtype == task.inputs.dtype
    assert torch.isfinite(drawn).all() and float(drawn.std()) > 0.2
    assert torch.equal(drawn, task.unlabelled_set(name, 60, RNG(0)))
    assert not torch.equal(drawn, task.unlabelled_set(name, 60, RNG(1)))
    flat = drawn.flatten(1)
    assert (torch.cdist(flat, task.test_inputs.flatten(1)).min() > 1e-3).item()  # no test image among them


def test_sampling_uses_all_before_any_twice():
    pictures = torch.arange(10.0).reshape(10, 1, 1, 1)
    values = sample(pictures, 25, RNG(0)).flatten().tolist()
    assert sorted(values[:10]) == sorted(values[10:20]) == list(range(10))


def test_ones_own_tensors_run():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(200, 6, generator=generator)
    labels = (inputs[:, 0] > 0).long()
    task = Task.from_tensors(inputs[:150], labels[:150], inputs[150:], labels[150:], unlabelled=inputs[:40])
    config = Config(algorithm="fedecho", clients=5, concurrency=3, buffer_size=2, rounds=30, partition="iid",
                    client_lr=0.3, settings={"distill_set": "own", "distill_samples": 40})  # fmt: skip
    assert run(config, task=task).summary["final_accuracy"] > 0.8
    with pytest.warns(UserWarning, match="^distill_samples: the set 'own' has 40, which are all used in place of 50"):
        assert len(task.unlabelled_set("own", 50, RNG(0))) == 40


@pytest.mark.parametrize("batch_size", [1, 3, 4, 500])
def test_every_test_sample_counts_once_however_they_are_batched(batch_size):
    """By hand: four of five are right, the last one, alone in a batch of four's second, is not."""
    logits = torch.eye(5) * torch.arange(1, 6)[:, None]
    task = Task.from_tensors(logits, torch.arange(5), logits, torch.tensor([0, 1, 2, 3, 0]))
    losses = torch.nn.functional.cross_entropy(logits, task.test_labels, reduction="none")
    scores = task.evaluate(lambda inputs: inputs, batch_size)
    assert scores == {"accuracy": pytest.approx(0.8), "loss": pytest.approx(float(losses.mean()))}
    tested, right = task.evaluate_classes(lambda inputs: inputs, batch_size)
    assert tested.tolist() == [2, 1, 1, 1, 0] and right.tolist() == [1, 1, 1, 1, 0]


def test_noise_has_the_inputs_mean_and_spread_and_shows_nothing():
    inputs = torch.rand(200, 3, 4, generator=torch.Generator().manual_seed(1)) ** 2
    task = Task.from_tensors(inputs, torch.arange(200) % 2, 9 - inputs[:4], torch.arange(4) % 2)
    noise = task.unlabelled_set("noise", 500, RNG(0))
    assert noise.shape == (500, 3, 4) and noise.dtype == inputs.dtype
    assert noise.min() >= inputs.min() and noise.max() <= inputs.max()
    assert abs(noise.mean() - inputs.mean()) < 0.05 and abs(noise.std() / inputs.std() - 1) < 0.2
    assert torch.equal(noise, task.unlabelled_set("noise", 500, RNG(0)))
    flat = noise.flatten(1)
    assert flat.T.corrcoef().fill_diagonal_(0).abs().max() < 0.25  # pixels know nothing of each other


def test_a_map_style_dataset_becomes_a_task(tmp_path):
    import torchvision

    transform = torchvision.transforms.ToTensor()
    data = torchvision.datasets.FakeData(60, (1, 8, 8), 3, transform=transform)
    task = Task.from_dataset(data, data, name="mine")
    assert task.inputs.shape == (60, 1, 8, 8) and task.num_classes == 3
    result = run(Config(clients=4, concurrency=2, buffer_size=2, rounds=2, partition="iid"), task=task)
    assert result.summary["versions"] == 2
    assert "mine" in task.describe() and "fedbuff on mine" in repr(result)
    result.save(tmp_path)
    assert load_result(tmp_path).own_task == "mine"
    assert load_complete(tmp_path, result.config) is None  # it is no result of the task that the configuration names
    with pytest.raises(DataError, match=r"^dataset: items must be \(input, label\)"):
        Task.from_dataset([1, 2], data)

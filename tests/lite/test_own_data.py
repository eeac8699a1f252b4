"""One's own data: data sets as they come, clients with theirs, losses of one's own, runs, and a line where it does not fit."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from own import two_sides
from PIL import Image
from scipy.sparse import csr_matrix
from torch.nn import functional

from asyncfl_lite import Config, Run, Task, load_result, run, run_many, schedule
from asyncfl_lite.base.errors import ConfigError, DataError, ResultError, SimulationError
from asyncfl_lite.cli import main
from asyncfl_lite.clients.trainer import Trainer
from asyncfl_lite.runs.assembly import deal_out
from asyncfl_lite.simulator.delays import DELAYS, DelayLaw
from asyncfl_lite.tasks.partitions import Partition
from conftest import line

SMALL = {"model": "mlp", "model_settings": {"hidden": (4,)}, "partition": "iid", "clients": 4, "concurrency": 2,
         "buffer_size": 2, "rounds": 2, "local_steps": 1, "local_epochs": None, "batch_size": 4}  # fmt: skip
RNG = np.random.default_rng


# --- Hugging Face's data sets --------------------------------------------------------------------


@pytest.fixture(scope="module")
def hugging():
    return pytest.importorskip("datasets")


def pictures(hugging):
    colours = np.arange(6 * 4 * 5 * 3, dtype=np.uint8).reshape(6, 4, 5, 3)
    columns = {"image": [Image.fromarray(one) for one in colours], "label": np.arange(6) % 3}
    features = {"image": hugging.Image(), "label": hugging.ClassLabel(names=["cat", "dog", "elk"])}
    return hugging.Dataset.from_dict(columns, features=hugging.Features(features))


@pytest.mark.parametrize("format", [None, "torch", "numpy"])
def test_images_of_hugging_face(hugging, format):
    data = pictures(hugging).with_format(format)
    task = Task.from_dataset(data, data, inputs="image", labels="label")
    assert task.inputs.shape == (6, 3, 4, 5) and task.inputs.dtype == torch.float32
    assert task.inputs[0, :, 0, 1].tolist() == pytest.approx([3 / 255, 4 / 255, 5 / 255])
    assert task.class_names == ("cat", "dog", "elk") and task.labels.tolist() == [0, 1, 2, 0, 1, 2]
    assert run(Config(**SMALL), task=task).summary["versions"] == 2


@pytest.mark.parametrize(
    ("names", "labels", "numbers"),
    [(["elk", "dog", "cat"], [0, 1, 2], [2, 1, 0]), (["cat", "elk"], [0, 1], [0, 2]), (None, ["elk", "cat"], [2, 0]),
     (["ant", "cat"], [0, 1], "test_labels: must be of the training set's classes cat, dog, elk, got 'ant'")],
)  # fmt: skip
def test_classes_of_hugging_face_are_matched_by_name(hugging, names, labels, numbers):
    train = pictures(hugging).remove_columns("image").add_column("x", [[1.0, 2.0]] * 6)
    test = hugging.Dataset.from_dict({"label": labels, "x": [[1.0, 2.0]] * len(labels)})
    test = test if names is None else test.cast_column("label", hugging.ClassLabel(names=names))
    if isinstance(numbers, str):
        assert numbers in line(lambda: Task.from_dataset(train, test))
    else:
        task = Task.from_dataset(train, test)
        assert task.class_names == ("cat", "dog", "elk") and task.test_labels.tolist() == numbers
        by_column = Task.from_clients([(train["x"], train["label"])], (test["x"], test["label"]))
        assert torch.equal(by_column.test_labels, task.test_labels)


@pytest.mark.parametrize("format", [None, "torch", "numpy"])
def test_tokens_of_hugging_face(hugging, format):
    data = hugging.Dataset.from_dict({"text": ["a", "b"], "input_ids": [[1, 2, 3], [4, 0, 0]], "label": [0, 1]})
    task = Task.from_dataset(data.with_format(format), data, inputs="input_ids", labels="label")
    assert task.inputs.tolist() == [[1, 2, 3], [4, 0, 0]] and task.inputs.dtype == torch.int64
    assert task.vocabulary == 5 and Task.from_dataset(data, data, inputs="input_ids", vocabulary=9).vocabulary == 9


def test_what_hugging_face_has_and_cannot_be_taken_is_one_line(hugging):
    texts = hugging.Dataset.from_dict({"text": ["some words", "more"], "ids": [[1, 2], [3]], "label": [0, 1]})
    both = hugging.DatasetDict(train=texts, test=texts)
    hidden = pictures(hugging).cast_column("label", hugging.Value("int64")).map(lambda row: {"label": -1})
    hidden = hidden.cast_column("label", hugging.ClassLabel(names=["cat", "dog", "elk"]))
    one = "dataset: must be one data set, got 'train', 'test'; write data['train']"
    for data, named, words in [
        (texts, {"inputs": "text"}, "column 'text' holds words, got 'some words'; turn them into token ids first, such as data.map("),
        (texts, {"inputs": "ids"}, "column 'ids' holds 1 to 2 values a row; pad them to one length"),
        (texts, {}, "inputs: must name one or several of the columns text, ids, such as inputs='image'"),
        (texts, {"inputs": "txt"}, "inputs: must be one or several of the columns text, ids, label, got 'txt'"),
        (texts, {"inputs": "ids", "labels": "y"}, "labels: must name one of the columns text, ids, label, got 'y'"),
        (both, {"inputs": "ids"}, one), (both, {}, one),
        (hidden, {}, "labels: must be 0 to 2 as its features say, got -1 (no label)"),
    ]:  # fmt: skip
        assert words in line(lambda data=data, named=named: Task.from_dataset(data, data, **named), DataError)


# --- tables and words ----------------------------------------------------------------------------


TABLE = pd.DataFrame({"age": [20, 30, 40, 50], "height": [1.5, 1.6, 1.7, 1.8], "label": ["no", "yes", "no", "yes"]})


def test_a_table_becomes_a_task():
    task = Task.from_dataset(TABLE, TABLE[:2])
    assert task.inputs.dtype == torch.float32 and task.inputs[1].tolist() == pytest.approx([30, 1.6])
    assert task.class_names == ("no", "yes") and task.labels.tolist() == [0, 1, 0, 1]
    chosen = Task.from_dataset(TABLE, TABLE, inputs=["height"], labels="label", class_names=["yes", "no"])
    assert chosen.input_shape == (1,) and chosen.labels.tolist() == [1, 0, 1, 0]
    numbers = TABLE.assign(label=[0.0, 1.0, 0.0, 1.0], age=pd.array([1, 2, 3, 4], dtype="Int64"))
    assert Task.from_dataset(numbers, numbers).labels.tolist() == [0, 1, 0, 1]
    assert run(Config(**{**SMALL, "clients": 2}), task=task).summary["versions"] == 2


X, Y = torch.rand(6, 1, 4, 4), torch.arange(6) % 3


GAP = torch.tensor([0, 1, 0, 1, 0, 1_000_000])
WRONG = [  # (inputs, labels, test inputs, test labels, and more), and what is said
    ((X, Y, X, Y, {"owners": [1.0, float("nan")] * 3}), "owners: lacks 3 of 6, such as that of sample 1"),
    ((X, Y, X, Y, {"owners": np.array(["a", None] * 3, dtype=object)}), "owners: lacks 3 of 6"),
    ((X, Y, X, Y, {"owners": ["a", 1] * 3}), "owners: must be all words or all numbers, got 1 and 'a'"),
    ((X, Y, X, Y, {"owners": [np.inf] * 6}), "owners: must be finite numbers or words, one for each sample, got float64"),
    ((X, Y, X, Y, {"owners": 3}), "owners: must be a tensor or an array of numbers ('int' object is not iterable)"),
    ((X, Y, X, Y, {"owners": range(5)}), "owners: one for each of the 6 samples is needed, got shape (5,)"),
    ((X.to_sparse(), Y, X, Y), "inputs: must be a dense tensor, got a sparse_coo one"),
    ((X, Y.to_sparse(), X, Y), "labels: must be a dense tensor, got a sparse_coo one"),
    ((csr_matrix(X[:, 0, 0]), Y, X, Y), "got a csr_matrix; call its .toarray() first"),
    ((X, Y, X, Y, {"owners": Y.to_sparse()}), "owners: must be a dense tensor"),
    ((X, GAP, X, Y), "labels: 999997 of the classes 0 to 1000000 do not occur; say that they are classes, num_classes"),
    ((X, Y, X, Y, {"num_classes": 2}), "labels: must be 0 to 1 with 2 classes, got 2"),
    ((X, Y, X, Y, {"num_classes": 0}), "num_classes: must be a whole number of at least 1, got 0"),
    ((X, ["b", "a"] * 3, X, ["c"] * 6, {"class_names": ["a", "b"]}), "labels: must be of class_names a, b, got 'c'"),
    ((X, Y, X, Y, {"num_classes": 4, "class_names": "abc"}), "class_names: must be 4, one for each of num_classes"),
    ((X.long(), Y, X.long(), Y, {"vocabulary": 0}), "vocabulary: must be at least 1, as token 0 occurs, got 0"),
    ((X, Y, X, Y, {"augment": lambda inputs: inputs}), "augment: must take (inputs, generator), a batch (2, 1, 4, 4)"),
    ((X, Y, X, Y, {"augment": lambda inputs, generator: inputs[:, :, 1:]}), "augment: must return inputs as it was"),
    (((255 * X).byte(), Y, X, Y), "inputs: must be real numbers, or int64 token ids, got torch.uint8 of shape "
        "(6, 1, 4, 4); write torch.as_tensor(inputs) / 255"),
    ((torch.ones(6, 5, 5, 3).byte(), Y, X, Y), "write torch.as_tensor(inputs).permute(0, 3, 1, 2) / 255"),
    ((torch.rand(6, 5, 5, 3), Y, X, Y), "inputs: images must be (n, channels, height, width), got shape (6, 5, 5, 3); "
        "write torch.as_tensor(inputs).permute(0, 3, 1, 2)"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "words"), WRONG)
def test_what_does_not_fit_says_what_to_write(given, words):
    assert words in line(lambda: Task.from_tensors(*given[:4], **(given[4] if len(given) > 4 else {})), DataError)


def test_names_and_augmentation_reach_the_run():
    seen = []

    def shifted(inputs, generator):
        seen.append(len(inputs))
        return inputs + torch.rand(inputs.shape, generator=generator)

    task = Task.from_tensors(X, Y, X, Y, class_names=["a", "b", "c"], augment=shifted)
    plain = dataclasses.replace(task, augment=None)
    seen.clear()
    assert "a, b, c" in task.describe() and "augmented" in task.describe()
    first, again, other = (run(Config(**SMALL), task=data) for data in (task, task, plain))
    assert seen and first.summary == again.summary
    assert first.summary["weights_sha256"] != other.summary["weights_sha256"]


# --- each client's own data ----------------------------------------------------------------------


def client(count: int, label: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Samples that say their label, some of them."""
    labels = torch.full((count,), label)
    return torch.eye(3)[labels] + 0.01 * torch.arange(count)[:, None], labels


THREE = {"north": (*client(8, 0), *client(4, 0)), "south": (*client(6, 1), *client(2, 1)), "far": client(5, 2)}
GIVEN = {**SMALL, "partition": "given", "clients": 3, "concurrency": 3, "buffer_size": 1, "rounds": 40,
         "delay": "per_client", "delay_settings": {"durations": (1, 2, 7)}, "client_lr": 0.5}  # fmt: skip


def test_each_client_keeps_its_data_and_its_delay():
    task = Task.from_clients(THREE, test=client(3, 2), name="hospitals")
    parts = deal_out(Config(**GIVEN), task)
    assert [task.labels[part].unique().tolist() for part in parts] == [[0], [1], [2]]
    result = run(Config(**GIVEN), task=task)
    took = result.updates["arrived_at"] - result.updates["dispatched_at"]
    assert took.groupby(result.updates["client"]).unique().map(list).to_dict() == {0: [1.0], 1: [2.0], 2: [7.0]}
    assert result.clients[["name", "num_samples", "test_samples"]].values.tolist() == [
        ["north", 8, 4], ["south", 6, 2], ["far", 5, 0]]  # fmt: skip


def test_accuracy_by_client_is_that_of_the_final_model_on_its_samples(tmp_path):
    task = Task.from_clients(THREE, test=client(3, 2))
    started = Run(Config(**GIVEN), task)
    result = started.finish()

    def right(inputs, labels) -> torch.Tensor:
        return (started.model.outputs(started.algorithm.x, inputs).argmax(1) == labels).float()

    tested, trained = right(task.test_inputs, task.test_labels), right(task.inputs, task.labels)
    expected = [float(tested[:4].mean()), float(tested[4:6].mean()), float("nan")]
    assert result.clients["accuracy"].tolist() == pytest.approx(expected, nan_ok=True)
    means = [float(trained[part].mean()) for part in started.parts]
    assert result.clients["train_accuracy"].tolist() == pytest.approx(means)
    assert result.summary["worst_client_accuracy"] == pytest.approx(min(expected[:2]))
    result.save(tmp_path)
    assert load_result(tmp_path).clients["name"].tolist() == ["north", "south", "far"]


@pytest.mark.parametrize(
    ("clients", "test", "words"),
    [
        ([], None, "clients: must be the data of at least one client, got none"),
        ([client(3, 0), client(3, 1)], None, "test: nothing to test on; give test=(inputs, labels)"),
        ([client(3, 0), (X, Y, X)], client(3, 0), "client '1': must be (inputs, labels) or (inputs, labels, test_inputs"),
        ([client(3, 0)], (X, Y, X), "test: must be (inputs, labels), got 3 parts"),
    ],
)  # fmt: skip
def test_clients_whose_data_do_not_fit_are_named(clients, test, words):
    assert words in line(lambda: Task.from_clients(clients, test))


@pytest.mark.parametrize("change", [{"partition": "iid"}, {"clients": 4}])
def test_clients_data_are_not_dealt_out_anew(change):
    task = Task.from_clients(THREE)
    told = line(lambda: run(Config(**{**GIVEN, **change}), task=task), ConfigError)
    assert "partition: the data came with their clients, so it must be 'given' with clients=3, got" in told


# --- one's own partition and delay law -----------------------------------------------------------


def splits(parts, **attributes):
    """A partition that gives these parts."""
    return type("Mine", (Partition,), {"assign": lambda *_: parts, **attributes})()


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([[0, 1], [2]], "must give a part for each of 3 clients, got 2"),
        (None, "must give a part for each of 3 clients, got 0"),
        ([[0, 1], [1, 2], [3]], "must give no sample twice, got sample 1 for clients 0, 1; a partition whose clients share"),
        ([[0, 0], [], []], "must give no sample twice, got sample 0 for clients 0"),
        ([[0], [-1], [2]], "must give indices from 0 to 5, got -1 for client 1"),
        ([[0], [1], [6]], "must give indices from 0 to 5, got 6 for client 2"),
        ([[0.0], [1], [2]], "must give each client (n_i,) indices of samples, got float64 of shape (1,) for 0"),
        ([np.arange(6) < 3, [], []], "got bool of shape (6,) for 0; write np.flatnonzero(...)"),
        ([0, 1, 2], "got int64 of shape () for 0"),
        ([[], [], []], "must give samples to some client, got none for any"),
    ],
)  # fmt: skip
def test_ones_own_partition_is_checked(parts, words):
    found = line(lambda: splits(parts).split(np.arange(6) % 2, 3, RNG(0)), ConfigError)
    assert found.startswith("partition: Mine.assign ") and words in found


def test_a_sound_partition_of_ones_own_is_sorted_and_may_share():
    parts = splits([[2, 0], (5,), np.array([], dtype=float)]).split(np.arange(6) % 2, 3, RNG(0))
    assert [part.tolist() for part in parts] == [[0, 2], [5], []]
    assert {part.dtype for part in parts} == {np.dtype("int64")}
    shared = splits([[0, 1], [1, 2], [0]], shares_samples=True).split(np.arange(6) % 2, 3, RNG(0))
    assert [part.tolist() for part in shared] == [[0, 1], [1, 2], [0]]


@pytest.mark.parametrize("duration", [-1.0, float("nan"), float("inf"), None, "3", [1, 2]], ids=repr)
def test_a_duration_that_cannot_be_is_one_line(duration, monkeypatch):
    """Of a law whose delays need not be of the package's classes."""
    told = type("Told", (), {"draw": lambda self, client, rng: duration})()
    law = type("Mine", (DelayLaw,), {"prepare": lambda *_: told, "unit": "s", "__annotations__": {}})
    monkeypatch.setitem(DELAYS._entries, "told", law)
    found = line(lambda: schedule(Config(**{**SMALL, "task": "digits", "delay": "told"})), SimulationError)
    assert found.startswith("delay: Told.draw must return a finite number, at least 0, got ") and "for client" in found


# --- the server's set, several runs, plain dicts -------------------------------------------------


def test_fedecho_takes_the_set_that_it_was_given():
    task = Task.from_tensors(X, Y, X, Y, unlabelled=X[:4])
    config = Config(**SMALL, algorithm="fedecho")
    assert config.settings.distill_set == "cross" and config.settings.distill_samples == 500
    with pytest.warns(UserWarning, match="^distill_samples: the set 'own' has 4, which are all used in place of 500$"):
        result = run(config, task=task)
    assert result.summary["versions"] == 2
    assert task.unlabelled_set("noise", 3, RNG(0)).shape == (3, 1, 4, 4)
    with warnings.catch_warnings(action="error"):
        assert len(task.unlabelled_set("natural", 4, RNG(0))) == 4


@pytest.mark.parametrize("call", [run, schedule])
@pytest.mark.parametrize("given", [None, "digits", 3, [SMALL]], ids=repr)
def test_what_is_no_configuration_is_one_line(call, given):
    told = line(lambda: call(given), ConfigError)
    assert told.startswith("config: must be a Config, or a dict of its settings, got ")


def test_a_class_that_is_only_tested_is_said_in_one_line():
    x, y = torch.randn(6, 2), torch.tensor([0, 1, 0, 1, 0, 1])
    words = np.array(["cat", "dog"])
    said = r"^test_labels: 2 of 3 are of classes that no training label has \({}\); nothing is learned of these"
    with pytest.warns(UserWarning, match=said.format("2, 4")) as caught:
        Task.from_tensors(x, y, x[:3], torch.tensor([0, 2, 4]), num_classes=5)
    assert len(caught) == 1 and "\n" not in str(caught[0].message) and caught[0].filename == __file__
    with pytest.warns(UserWarning, match=said.format("bird")):
        task = Task.from_tensors(x, words[y], x[:3], np.array(["bird", "cat", "bird"]))
    assert task.class_names == ("bird", "cat", "dog") and task.num_classes == 3
    assert task.labels.tolist() == (y + 1).tolist() and task.test_labels.tolist() == [0, 1, 0]
    with warnings.catch_warnings(action="error"):
        Task.from_tensors(x, y, x[:2], y[:1].repeat(2))  # a class that is only trained says nothing wrong


RUN = Config(model="mlp", partition="iid", clients=6, concurrency=3, buffer_size=2, rounds=4, eval_every=2)
SEEDS = [RUN, RUN.with_seed(1), RUN.with_seed(2)]
WORDS = r"^task: this is the configuration of a run on your own data \('mine'\), which it does not contain; pass the data too"


@pytest.fixture
def saved(tmp_path):
    return run(RUN, task=two_sides()).save(tmp_path / "saved")


def test_the_configuration_of_such_a_run_wants_the_data_again(saved):
    """It names digits, which nobody asked for."""
    result, marked = run(RUN, task=two_sides()), load_result(saved).config
    copies = marked.with_seed(3), copy.deepcopy(marked), pickle.loads(pickle.dumps(marked))
    for config in (result.config, marked, *copies):
        for call in (run, schedule, lambda config: run_many([config])):
            with pytest.raises(ConfigError, match=WORDS):
                call(config)
    assert marked == RUN and marked.hash == RUN.hash and hash(marked) == hash(RUN)  # it is no other setting
    assert RUN.own_task is None and run(RUN).config.own_task is None  # nor has the user's own been touched
    assert run(marked, task=two_sides()).summary == result.summary
    assert len(schedule(marked, task=two_sides()).updates) == len(result.updates)


def test_the_command_line_does_not_train_it_on_digits_either(saved, capsys):
    assert main(["run", "--config", str(saved)]) == 2
    told = capsys.readouterr().err
    said = f"config: {saved}/result.json belongs to a run on your own data ('mine'), which the file does not contain"
    assert told.count("\n") == 1 and said in told
    assert main(["run", "--config", str(saved), "--task", "digits", "--rounds", "1"]) == 0


def test_a_sweep_in_folders_is_read_where_it_is_finished(tmp_path, monkeypatch):
    folders = [tmp_path / str(config.seed) for config in SEEDS]
    first = run_many(SEEDS, task=two_sides(), folders=folders)
    assert [load_result(folder).own_task for folder in folders] == ["mine"] * 3
    assert [one.summary for one in first] == [run(config, task=two_sides()).summary for config in SEEDS]
    with monkeypatch.context() as patch:
        patch.setattr(Run, "train", None)
        again = run_many(SEEDS, task=two_sides(), folders=folders)
        assert [one.summary for one in again] == [one.summary for one in first]
        for other, words in ((two_sides(0.01), "own data changed since"), (None, r"a run on other data \(mine\)")):
            with pytest.raises(ResultError, match=words):
                run_many(SEEDS, task=other, folders=folders)
    run_many(SEEDS, task=two_sides(0.01), folders=folders, force=True)
    assert load_result(folders[0]).summary != first[0].summary


# losses and scores of one's own


Z = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
SIDES = (Z.sum(1) > 0).long()
TRIED = Config(model="mlp", model_settings={"hidden": (4,)}, partition="iid", clients=4, concurrency=2, buffer_size=1,
               rounds=3, eval_every=1)  # fmt: skip


@pytest.fixture
def untrained(monkeypatch):
    """Nothing may be trained."""
    monkeypatch.setattr(Trainer, "__call__", lambda *_: pytest.fail("it was trained"))


def scored(kind, labels=SIDES, classes: int = 2) -> Task:
    return kind("mine", Z, labels, Z, labels, classes)


class Distance(Task):
    """Regression."""

    def losses(self, outputs, labels):
        return (outputs[:, 0] - labels).square()


class Tags(Task):
    """Several labels a sample."""

    def losses(self, outputs, labels):
        return functional.binary_cross_entropy_with_logits(outputs, labels.float(), reduction="none").mean(-1)


@pytest.mark.parametrize(
    ("kind", "labels", "words"),
    [
        (Distance, Z.sum(1), "labels: must be one class for each sample, (n,) int64, got float32 of shape (20,)"),
        (Task, Z.sum(1), "labels: must be one class for each sample, (n,) int64, got float32 of shape (20,)"),
        (Tags, (Z > 0).float(), "labels: must be one class for each sample, (n,) int64, got float32 of shape (20, 3)"),
        (Tags, (Z > 0).long(), "labels: must be one class for each sample, (n,) int64, got int64 of shape (20, 3)"),
    ],
)
def test_regression_and_several_labels_are_refused_by_name(kind, labels, words, untrained):
    unsupported = "; regression and several labels a sample are not supported"
    assert line(lambda: run(TRIED, task=scored(kind, labels, 3)), DataError) == words + unsupported
    told = line(lambda: Task.from_tensors(Z, labels, Z, labels), DataError)
    assert told.startswith("labels: ") and told.endswith(unsupported)


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
    kind = type("Mine", (Task,), {**methods, "__module__": __name__})
    assert line(lambda: run(TRIED, task=scored(kind)), DataError).startswith(words)

"""Faults in one's own data, at every door: pairs, rows, tables, arrays and clients follow the same rules."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset

import conftest
from asyncfl_lite import Task
from asyncfl_lite.base.errors import DataError

X = np.random.default_rng(0).random((12, 4), dtype=np.float32)
Y = np.arange(12) % 3
line = functools.partial(conftest.line, kind=DataError)
DOORS = {
    "arrays": lambda x, y: Task.from_tensors(x, y, x, y),
    "pairs": lambda x, y: Task.from_dataset(list(zip(x, y, strict=True)), list(zip(x, y, strict=True))),
    "rows": lambda x, y: Task.from_dataset(*[[{"x": a, "label": b} for a, b in zip(x, y, strict=True)]] * 2),
    "table": lambda x, y: Task.from_dataset(*[pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "label": y})] * 2),
    "clients": lambda x, y: Task.from_clients({"north": (x, y)}, (x, y)),
}


# --- labels: one rule for all doors --------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([0.0, 1.0, 2.0] * 4, ()),
        ([False, True, True] * 4, ()),
        (np.array([0, 1, 2] * 4, object), ()),
        (pd.array([0, 1, 2] * 4, dtype="Int64"), ()),
        (np.array([0, 1, 2] * 4, np.float16), ()),
        ([torch.tensor(0), torch.tensor(1), torch.tensor(2)] * 4, ()),
        (["a", "b", "c"] * 4, ("a", "b", "c")),
        (pd.array(["a", "b", "c"] * 4, dtype="string"), ("a", "b", "c")),
    ],
    ids=["real", "bool", "objects", "Int64", "float16", "tensors", "words", "string"],
)
def test_labels_are_whole_numbers_or_words(labels, classes):
    for make in DOORS.values():
        task = make(X, labels)
        assert task.labels[:3].tolist() == [i if classes else int(label) for i, label in enumerate(labels[:3])]
        assert task.class_names == classes and task.labels.dtype == task.test_labels.dtype == torch.int64


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0.4, 1.0, 2.0] * 4, "must be (n,) whole numbers, got shape (12,) of float64, such as 0.4; regression"),
        ([torch.tensor(0.4), torch.tensor(1.0)] * 6, "such as 0.4; regression and several labels"),
        ([0, 1, float("inf")] * 4, "must be whole numbers below 9007199254740992, got 0 to inf"),
        ([0, 1, float("nan")] * 4, "lacks 4 of 12, such as that of sample 2"),
        (["a", None, "b"] * 4, "lacks 4 of 12, such as that of sample 1"),
        (["a", float("nan"), "b"] * 4, "lacks 4 of 12"),
        (["a", " ", "b"] * 4, "lacks 4 of 12"),
        (np.array(["a", float("nan"), "b"] * 4), "lacks 4 of 12"),  # which NumPy writes as the word nan
        (np.array([0, None, 1] * 4, object), "lacks 4 of 12"),
        (pd.array([0, None, 1] * 4, dtype="Int64"), "lacks 4 of 12"),
        (pd.array(["a", None, "b"] * 4, dtype="string"), "lacks 4 of 12"),
        (pd.Categorical(["a", None, "b"] * 4), "lacks 4 of 12"),
        (["a", 1, "b"] * 4, "must be all words or all numbers, got "),
        ([1j, 0, 1] * 4, "must be all words or all numbers, got "),
        ([b"a", b"b", b"c"] * 4, "must be all words or all numbers, got b'a'"),
        ([10**30] * 12, "must be all words or all numbers, got 1000000"),
        (list(np.eye(3)[Y]), "one column per class; write labels.argmax(1)"),
        (list(Y[:, None]), "got shape (12, 1) of int64, one column; write labels[:, 0]"),
        (["cat ", "cat", "dog"] * 4, "'cat ' and 'cat' of "),
        (["cat", "Cat", "dog"] * 4, "are nearly the same; write them alike, or give both in class_names"),
        (["1", "1.0", "2"] * 4, "are nearly the same"),
        (["caf\u00e9", "cafe\u0301", "\uff34ea"] * 4, "are nearly the same"),
    ],
)  # fmt: skip
def test_labels_that_are_no_classes_are_one_line(labels, words):
    for make in DOORS.values():
        assert words in line(lambda make=make: make(X, labels))


def test_masked_labels_and_inputs_are_not_taken_as_what_lies_under_the_mask():
    labels, inputs = np.ma.masked_array(Y, mask=Y == 2), np.ma.masked_array(X, mask=X > 0.9)
    assert "labels: must not lack values, got 4 that are masked" in line(lambda: DOORS["arrays"](X, labels))
    assert "labels: lacks 4 of 12" in line(lambda: DOORS["pairs"](X, labels))
    for door in ("arrays", "pairs", "clients"):
        assert "inputs: must not lack values" in line(lambda door=door: DOORS[door](inputs, Y))


# --- names of columns ----------------------------------------------------------------------------

TABLE = pd.DataFrame({"a": X[:, 0], "b": X[:, 1] + 5, "label": Y})
INPUTS = TABLE[["a", "b"]]
ROWS = TABLE.to_dict("records")
OTHER = INPUTS.rename(columns={"b": "c"})


@pytest.mark.parametrize(
    "make",
    [
        lambda: Task.from_dataset(TABLE, TABLE[["b", "label", "a"]]),
        lambda: Task.from_dataset(TABLE, TABLE[["label", "b", "a"]].to_dict("records")),
        lambda: Task.from_dataset(ROWS, [dict(reversed(row.items())) for row in ROWS], inputs=["a", "b"]),
        lambda: Task.from_dataset(TABLE, TABLE.assign(more="x"), inputs=["a", "b"]),
        lambda: Task.from_tensors(INPUTS, Y, INPUTS[["b", "a"]], Y),
        lambda: Task.from_clients({"n": (INPUTS, Y)}, (INPUTS[["b", "a"]], Y)),
    ],
)
def test_columns_are_taken_by_name(make):
    task = make()
    assert torch.equal(task.inputs, task.test_inputs) and torch.equal(task.labels, task.test_labels)
    assert task.inputs[0].tolist() == pytest.approx([X[0, 0], X[0, 1] + 5])


# --- names of classes ----------------------------------------------------------------------------


class Wrapped(Dataset):
    """Numbers without names of classes."""

    def __init__(self, *classes: str, **more: object) -> None:
        self.count = len(classes)
        vars(self).update(more)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        return X[index], index


def Animals(*classes: str, **more: object) -> Wrapped:  # noqa: N802
    """The same with names, as torchvision's data sets have them."""
    return Wrapped(*classes, classes=list(classes), **more)


class Words(list):
    """Pairs whose labels are words, and names of classes, two of which are the same."""

    classes = ("cat", "fox", "cat")


ALL = Animals("cat", "dog", "fox")


@pytest.mark.parametrize(
    ("test", "numbers"),
    [
        (ALL, [0, 1, 2]),
        (Animals("cat", "fox"), [0, 2]),
        (Animals("fox", "dog", "cat"), [2, 1, 0]),
        (Subset(Animals("cat", "fox"), [1]), [2]),
        (ConcatDataset([Animals("cat", "fox")] * 2), [0, 2, 0, 2]),
        (Animals("fox", "cat", class_to_idx={"cat": 0, "fox": 1}), [0, 2]),
        ([(X[0], "fox"), (X[1], "cat")], [2, 0]),
        (pd.DataFrame({"x": list(X[:2]), "label": pd.Categorical(["fox", "cat"])}), [2, 0]),
    ],
)
def test_classes_are_matched_by_name(test, numbers):
    task = Task.from_dataset(ALL, test)
    assert task.class_names == ("cat", "dog", "fox") and task.num_classes == 3
    assert task.labels.tolist() == [0, 1, 2] and task.test_labels.tolist() == numbers


@pytest.mark.parametrize(
    ("train", "test", "words"),
    [
        (ALL, Animals("cat", "elk"), "test_labels: must be of the training set's classes cat, dog, fox, got 'elk'"),
        (ALL, Animals("Cat", "dog"), "test_labels: must be of the training set's classes cat, dog, fox, got 'Cat'"),
        (Animals("cat", "fox"), ALL, "test_labels: must be of the training set's classes cat, fox, got 'dog'"),
        (ConcatDataset([ALL, Animals("cat", "fox")]), ALL, "dataset: must number its classes alike in all its parts"),
        (Wrapped("cat", "dog", "fox"), Animals("cat", "dog"), "labels: must be 0 to 1, as test_labels have 2 classes"),
        (ALL, Words([(X[0], "cat")]), "test_labels: must have classes of different names, got cat, cat, fox"),
        ([(X[0], "cat")], [(X[0], 0)], "test_labels: must be words as labels, or both numbers, got numbers beside 'cat'"),
    ],
)  # fmt: skip
def test_classes_that_differ_are_one_line(train, test, words):
    assert words in line(lambda: Task.from_dataset(train, test))


def test_numbers_beside_names_are_said():
    with pytest.warns(UserWarning, match=r"^test_labels: come without names of classes, so .* cat, dog, fox") as caught:
        task = Task.from_dataset(ALL, Wrapped("cat", "dog"), class_names=["fox", "dog", "cat"])
    assert caught[0].filename == __file__ and task.labels.tolist() == [2, 1, 0] and task.test_labels.tolist() == [2, 1]
    with warnings.catch_warnings(action="error"):
        renamed = Task.from_dataset(ALL, ALL, class_names=["Katze", "Hund", "Fuchs"])
        turned = Animals("cat", "dog", "fox", target_transform=lambda label: label)
        assert Task.from_dataset(turned, turned).class_names == ()  # what it makes of labels, nobody knows
    assert renamed.class_names == ("Katze", "Hund", "Fuchs") and renamed.labels.tolist() == [0, 1, 2]
    told = line(lambda: Task.from_dataset(ALL, ALL, class_names=["a", "a", "b"]))
    assert "class_names: must differ from each other, got a, a, b" in told


def test_categories_are_classes_in_their_order():
    train = TABLE.assign(label=pd.Categorical(["low", "mid"] * 6, categories=["low", "mid", "high"]))
    test = TABLE.assign(label=pd.Categorical(["mid", "low"] * 6))
    task = Task.from_dataset(train, test)
    assert task.class_names == ("low", "mid", "high") and task.labels[:2].tolist() == [0, 1]
    assert task.test_labels[:2].tolist() == [1, 0]
    clients = Task.from_clients([(X, train["label"]), (X, test["label"])], (X, test["label"].astype(str)))
    assert torch.equal(clients.labels[12:], clients.test_labels) and clients.class_names == task.class_names


# --- clients, each in its name -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "labels", "words"),
    [
        (255 * X, Y, "client 's', inputs: go from 0.6983 to 247.5, and "),
        (X / 255, Y, "client 's', inputs: go from "),
        ((255 * X).astype(np.uint8), Y, "client 's', inputs: must be real numbers, or int64 token ids, got torch.uint8"),
        ((255 * X).astype(int), Y, "client 's', inputs: must be as client 'n', inputs, real numbers, got whole numbers"),
        (np.where(X > 0.9, np.nan, X), Y, "client 's', inputs: must be finite numbers, got NaN or infinity"),
        (X[:, :3], Y, "client 's', inputs: must be as client 'n', inputs, (4,), got (3,)"),
        (X, Y[:5], "client 's', inputs: must be as many as labels and at least 1, got 12 and 5"),
        (X, Y - 1, "client 's', labels: must be numbered from 0, got -1 to 1"),
        (X, Y + 1, "client 's', labels: must be 0 to 2 with 3 classes, got 3"),
        (X, np.eye(3)[Y], "client 's', labels: must be (n,) whole numbers, got shape (12, 3)"),
        (X, ["a", "b", "c"] * 4, "client 'n', labels: must be words as client 's', labels, or both numbers"),
    ],
)  # fmt: skip
def test_a_fault_of_one_client_is_told_in_its_name(inputs, labels, words):
    clients = {"n": (X, Y), "s": (inputs, labels), "w": (X, Y)}
    assert words in line(lambda: Task.from_clients(clients, (X, Y), num_classes=3))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        # columns and rows
        (lambda: Task.from_dataset(TABLE, TABLE.rename(columns={"b": "c"})),
            "test_dataset: must have the columns of the training set, a, b, label, but lacks 'b' and has 'c'"),
        (lambda: Task.from_dataset(TABLE, TABLE.assign(c=1.0)), "label, but has 'c'"),
        (lambda: Task.from_dataset(TABLE, TABLE.rename(columns={"label": "target"})), "lacks 'label' and has 'target'"),
        (lambda: Task.from_dataset(ROWS, TABLE.rename(columns={"b": "c"}), inputs=["a", "b"]), "but lacks 'b'"),
        (lambda: Task.from_dataset(TABLE, [(X[0, :2], 1)]), "but lacks 'a'; give all as tables, or all as arrays"),
        (lambda: Task.from_dataset([(X[0, :2], 0)] * 3, TABLE), "the training set, none, but has 'a'"),
        (lambda: Task.from_dataset(*[TABLE.set_axis(["a", "a", "label"], axis=1)] * 2), "several columns are named 'a'"),
        (lambda: Task.from_dataset(TABLE, TABLE, inputs=["a", "label"]), "must not name the column of labels, 'label'"),
        (lambda: Task.from_dataset(*[TABLE.rename(columns={"a": 0})] * 2, inputs=["0"]), "label, got '0'; write 0"),
        (lambda: Task.from_dataset(*[TABLE.rename(columns={"label": 2})] * 2, labels="2"), "b, 2, got '2'; write 2"),
        (lambda: Task.from_tensors(INPUTS, Y, OTHER, Y), "test_inputs: must have the columns of the training set"),
        (lambda: Task.from_tensors(INPUTS, Y, INPUTS.to_numpy(), Y), "test_inputs: must have the columns"),
        (lambda: Task.from_tensors(INPUTS, Y, INPUTS, Y, unlabelled=OTHER), "unlabelled: must have the columns"),
        (lambda: Task.from_clients({"n": (INPUTS, Y), "s": (OTHER, Y)}, (INPUTS, Y)), "client 's', inputs: must have the"),
        (lambda: Task.from_clients({"n": (INPUTS, Y, OTHER, Y)}), "client 'n', test_inputs: must have the columns"),
        (lambda: Task.from_tensors(INPUTS[::-1], TABLE["label"], INPUTS, Y), "labels: must have rows in the order of inputs"),
        # other scales or kinds
        (lambda: Task.from_tensors(X, Y, 255 * X, Y), "test_inputs: go from 0.6983 to 247.5, and inputs from"),
        (lambda: Task.from_tensors(X, Y, X, Y, unlabelled=255 * X), "unlabelled: go from 0.6983 to 247.5"),
        (lambda: Task.from_clients({"n": (X, Y, 255 * X, Y), "s": (X, Y)}), "client 'n', test_inputs: go from"),
        (lambda: Task.from_tensors(np.concatenate([X, 255 * X, X]), [*Y] * 3, X, Y, owners=["n"] * 12 + ["s"] * 12 + ["w"] * 12),
            "inputs of owner 's': go from"),
        (lambda: Task.from_clients({1: (X, Y), "1": (X, Y)}, (X, Y)), "clients: must have names that differ as words"),
        (lambda: Task.from_tensors(*[(9 * X).astype(int), Y] * 2, unlabelled=np.full((2, 4), 9)), "token ids below 9"),
        (lambda: Task.from_tensors(X, Y, X, Y, unlabelled=(9 * X).astype(int)), "real numbers, got whole numbers"),
        # classes counted from 1 beside classes counted from 0
        (lambda: Task.from_clients({"n": (X, Y), "s": (X, Y + 1)}, (X, Y)), "client 's', labels: must be numbered as the others"),
        (lambda: Task.from_tensors(X, Y, X, Y + 1), "test_labels: must be numbered as the others, got 1 to 3 where these are 0"),
        (lambda: Task.from_tensors(X, Y + 1, X, Y), "labels: must be numbered as the others"),
        (lambda: Task.from_tensors(X, Y % 2, X, Y % 2 + 1), "subtract 1, or give num_classes=3"),
    ],
)  # fmt: skip
def test_sets_that_differ_are_one_line(make, words):
    assert words in line(make)


def test_clients_that_only_differ_are_taken():
    few = {"a": (X, Y), "b": (3 * X, Y), "c": (X - 0.5, Y), "d": (X[:1], Y[:1]), "none": (X[:0], Y[:0])}
    with warnings.catch_warnings(action="error"):
        assert len(Task.from_clients(few, (X, Y)).labels) == 37
        two_each = Task.from_clients([(X, Y % 2), (X, Y % 2 + 1), (X, 2 * (Y % 2))], (X, Y))
        assert two_each.num_classes == 3


@pytest.mark.parametrize(
    "labels", [[], np.array([], dtype="U1"), pd.Series([], dtype=object)], ids=["list", "words", "objects"]
)
@pytest.mark.parametrize("none", [X[:0], pd.DataFrame({"a": [], "b": []})], ids=["array", "table"])
def test_a_client_without_samples_may_have_empty_labels_of_any_type(labels, none):
    inputs, words = INPUTS if isinstance(none, pd.DataFrame) else X, ["a", "b", "c"] * 4
    task = Task.from_clients({"n": (inputs, words), "none": (none, labels)}, (inputs, words))
    assert len(task.labels) == 12 and task.class_names == ("a", "b", "c")
    assert "owners: one for each of the 12" in line(lambda: Task.from_tensors(X, Y, X, Y, owners=labels))


TALL = np.random.default_rng(1).normal(1.7, 0.1, (40, 3)).astype(np.float32)
HALF = np.arange(40) % 2
METRES = pd.DataFrame(TALL / [100, 1, 1], columns=["h", "k", "l"])
CM = METRES.assign(h=TALL[:, 0])
OTHER_UNITS = r"column 'h' goes from 1\.\d+ to 1\.\d+, and that of .*inputs.* from 0\.01\d+ to .*; if the units differ, convert them"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Task.from_clients({"a": (CM, HALF), "b": (METRES, HALF)}, (METRES, HALF)), f"client 'a', inputs: {OTHER_UNITS}$"),
        (lambda: Task.from_tensors(METRES, HALF, CM, HALF), f"test_inputs: {OTHER_UNITS}"),
        (lambda: Task.from_tensors(METRES, HALF, METRES, HALF, unlabelled=CM), f"unlabelled: {OTHER_UNITS}"),
        (lambda: Task.from_tensors(pd.concat([METRES, CM, METRES]), np.tile(HALF, 3), METRES, HALF, owners=np.repeat([3, 5, 7], 40)),
            f"inputs of owner 5: {OTHER_UNITS}"),
        (lambda: Task.from_tensors(TALL, HALF, TALL / np.float32([1, 99, 99]), HALF), r"inputs: column 1 .*\(1 more are like this\)"),
        (lambda: Task.from_clients({"a": (X, Y), "b": (0 * X, Y)}, (X, Y)), "client 'b', inputs: all numbers are the same"),
    ],
)  # fmt: skip
def test_a_column_in_other_units_and_inputs_of_one_number_are_said(make, words):
    with pytest.warns(UserWarning, match=f"^{words}") as caught:
        make()
    assert len(caught) == 1


# --- numbers and pictures ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["u2", "u4", "u8", "i1", ">i4", ">u2", "f2", "f8", ">f4", "longdouble", "object"])
def test_inputs_of_every_type_of_number_are_taken(kind):
    given = np.arange(48).reshape(12, 4) % 7
    for door in ("arrays", "pairs", "rows", "clients"):
        task = DOORS[door](given.astype(kind), Y)
        assert task.inputs.tolist() == given.tolist()
        assert task.inputs.dtype == (torch.int64 if np.dtype(kind).kind in "iuO" else torch.float32)


@pytest.mark.parametrize("kind", ["uint16", "uint32", "uint64", "float16", "bfloat16", "float8_e4m3fn"])
def test_tensors_of_every_type_of_number_are_taken(kind):
    given = torch.arange(48).reshape(12, 4) % 7
    labels, tested = given[:, 0] % 3, given[:1].float() if "float" in kind else given[:1]
    task = Task.from_tensors(given.to(getattr(torch, kind)), labels.to(getattr(torch, kind)), tested, [0])
    assert task.inputs.tolist() == given.tolist() and task.labels.tolist() == labels.tolist()


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (np.full((12, 4), -1.7e308), "inputs: must be finite as float32, got -1.7e+308; scale them first"),
        (torch.full((12, 4), 3.5e38, dtype=torch.float64), "inputs: must be finite as float32, got 3.5e+38"),
        (np.full((12, 4), -np.inf), "inputs: must be finite numbers, got NaN or infinity"),
        (1.7e9 + X.astype(float), "must differ as float32, got 1700000000.0"),
        (
            INPUTS.assign(a=1e15 + INPUTS["a"].astype(float)),
            "inputs: column 'a': must differ as float32, got 1000000000000000",
        ),
        (
            np.full((12, 4), 2**63, np.uint64),
            "must be a tensor or an array of numbers (got numbers of 2 ** 63 and more)",
        ),
        (X + 1j, "must be real numbers, or int64 token ids, got torch.complex64"),
        (np.array([[1, None]] * 12, object), "must be a tensor or an array of numbers (got None)"),
        (X.astype("M8[s]"), "must be a tensor or an array of numbers (got np.datetime64("),
        (np.zeros(12, [("a", "f4")]), "must be a tensor or an array of numbers (got np.void("),
        (np.ones((12, 1, 4, 4), np.uint16), "are token ids only if you give vocabulary; images must be real numbers"),
        (INPUTS.assign(a=-1.7e308), "inputs: column 'a': must be finite as float32, got -1.7e+308"),
        (INPUTS.assign(a=1j), "inputs: column 'a' holds no numbers but complex128"),
        (INPUTS.assign(a="x"), "pd.get_dummies(table, columns=['a'])"),
    ],
)
def test_numbers_that_float32_would_falsify_are_one_line(inputs, words):
    assert words in line(lambda: Task.from_tensors(inputs, Y, inputs, Y))
    assert words.removeprefix("inputs: ") in line(lambda: Task.from_clients({"n": (inputs, Y)}, (inputs, Y)))


@pytest.mark.filterwarnings("ignore")  # torch's about kinds of tensors that it means to change
def test_tensors_that_are_not_dense_are_told_what_to_write():
    odd = {
        "nested one; pad them to one shape": torch.nested.nested_tensor([[1.0, 2.0], [3.0]] * 6),
        "sparse_coo one; call its .to_dense() first": torch.ones(12, 4).to_sparse(),
        "meta one; it holds no numbers": torch.empty(12, 4, device="meta"),
        "quantized one; call its .dequantize() first": torch.quantize_per_tensor(torch.ones(12, 4), 1, 0, torch.qint8),
    }
    for words, given in odd.items():
        for name, make in (("inputs", DOORS["arrays"]), ("labels", lambda x, y: DOORS["arrays"](y, x))):
            assert line(lambda m=make, g=given: m(g, X)) == f"{name}: must be a dense tensor, got a {words}"


LEVELS = np.arange(64, dtype=np.uint16).reshape(8, 8) * 1040
COLOURS = Image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3))


def in_mode(mode: str) -> Image.Image:
    """A picture of the mode."""
    made = {
        "I;16": lambda: Image.fromarray(LEVELS),
        "I;16B": lambda: Image.frombytes("I;16B", (8, 8), LEVELS.astype(">u2").tobytes()),
        "I": lambda: Image.fromarray(LEVELS.astype(np.int32)),
        "F": lambda: Image.fromarray(LEVELS / np.float32(65535)),
    }
    return made[mode]() if mode in made else COLOURS.convert(mode)


@pytest.mark.parametrize(
    ("mode", "channels", "levels"),
    [("1", 1, 2), ("L", 1, 64), ("I;16", 1, 64), ("I;16B", 1, 64), ("I", 1, 64), ("F", 1, 64), ("RGB", 3, 192),
     ("YCbCr", 3, 120), ("CMYK", 3, 192), ("RGBA", 4, 193), ("LA", 4, 65)],
)  # fmt: skip
def test_pictures_keep_their_levels(mode, channels, levels):
    picture = in_mode(mode)
    for data in ([(picture, 0)], [{"image": picture, "label": 0}], pd.DataFrame({"image": [picture], "label": 0})):
        inputs = Task.from_dataset(data, data).inputs
        assert inputs.shape == (1, channels, 8, 8) and inputs.min() >= 0 and inputs.max() <= 1
        assert len(inputs.unique()) >= levels
    if channels == 1 and mode not in ("1", "L"):
        assert torch.allclose(inputs[0, 0], torch.from_numpy(LEVELS / np.float32(65535)))


def test_transparency_counts_where_something_is_transparent():
    palette = COLOURS.convert("P")
    palette.info["transparency"] = palette.getpixel((0, 0))
    assert Task.from_dataset([(palette, 0)], [(palette, 0)]).inputs[0, 3].min() == 0
    opaque = [(COLOURS, 0), (COLOURS.convert("RGBA"), 0), (COLOURS.convert("L"), 0)]
    assert Task.from_dataset(opaque, opaque).input_shape == (3, 8, 8)


@pytest.mark.parametrize(
    ("pictures", "words"),
    [
        ([Image.fromarray(LEVELS.astype(np.int32) // 260)], "mode I must go from 0 to a highest level of 256 to 65535, got 0 to 252"),
        ([Image.fromarray(LEVELS.astype(np.int32) - 1)], "level of 256 to 65535, got -1 to 65519; scale or convert all of them"),
        ([Image.fromarray(LEVELS.astype(np.float32))], "mode F must go from 0 to a highest level of 0 to 1, got 0 to 65520"),
        ([in_mode("I;16"), COLOURS], "images must be of one depth, got the modes I;16, RGB; convert them to one"),
        ([COLOURS, COLOURS.resize((4, 4))], "images of several sizes"),
        ([COLOURS, np.asarray(COLOURS)], "must be real numbers, or int64 token ids, got torch.uint8"),
        ([np.asarray(COLOURS), np.asarray(COLOURS) / 255], "some are real numbers, some whole numbers"),
    ],
)  # fmt: skip
def test_pictures_that_cannot_be_scaled_safely_are_one_line(pictures, words):
    pairs = [(picture, 0) for picture in pictures]
    assert words in line(lambda: Task.from_dataset(pairs, pairs))


def test_folders_of_16_bits_are_not_clipped_by_their_loader(tmp_path):
    from torchvision.datasets import ImageFolder

    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        in_mode("I;16").save(tmp_path / name / "0.png")
    clipped = ImageFolder(tmp_path)
    for data in (clipped, Subset(clipped, [0]), ConcatDataset([clipped, clipped])):
        told = line(lambda data=data: Task.from_dataset(data, data))
        assert "dataset: must be read with loader=PIL.Image.open" in told
    whole = ImageFolder(tmp_path, loader=Image.open)
    task = Task.from_dataset(whole, whole)
    assert len(task.inputs[0].unique()) == 64 and task.class_names == ("cat", "dog")


# --- whose memory --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor, pd.DataFrame])
@pytest.mark.parametrize("type_", ["f4", "f8"])
@pytest.mark.parametrize("door", ["arrays", "pairs", "clients"])
def test_a_task_and_its_user_do_not_share_memory(door, type_, kind):
    given = np.random.default_rng(0).random((12, 4)).astype(type_), Y.copy()
    x, y = kind(given[0]), torch.as_tensor(given[1])
    data = TensorDataset(torch.as_tensor(given[0]), y)
    task = {
        "arrays": lambda: Task.from_tensors(x, y, x, y, unlabelled=x, owners=given[1]),
        "pairs": lambda: Task.from_dataset(data, data, owners=given[1]),
        "clients": lambda: Task.from_clients([(x, y)], (x, y), unlabelled=x),
    }[door]()
    mine = [given[0].copy(), given[1].copy()]
    tensors = (task.inputs, task.labels, task.test_inputs, task.test_labels)
    for tensor in tensors:
        tensor.add_(1)
    task.owners[:] = 9
    assert np.array_equal(given[0], mine[0]) and np.array_equal(given[1], mine[1])
    kept = [tensor.clone() for tensor in tensors]
    given[0][:], given[1][:] = 7, 7
    assert all(map(torch.equal, tensors, kept)) and set(task.owners) == {9}
    if task.unlabelled:
        task.unlabelled_set("own", 9, np.random.default_rng(0)).zero_()  # what a method is given
        assert 0 < task.unlabelled_set("own", 9, np.random.default_rng(0)).max() < 1


def test_a_file_that_is_mapped_is_not_copied_and_not_written(tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    task = Task.from_tensors(mapped, Y, mapped[:6], Y[:6])
    assert torch.equal(task.inputs, torch.from_numpy(X))
    task.inputs.zero_()
    assert np.array_equal(mapped, X) and np.array_equal(np.load(tmp_path / "x.npy"), X)

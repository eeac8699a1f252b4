"""Images in files: tiny ones in each real format through the real path, and the real ones where they are."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from bad_input.data import idx
from PIL import Image
from torch.nn import functional
from torchvision import datasets

from asyncfl_lite.base.data_folders import data_file, data_folder, data_root
from asyncfl_lite.base.errors import DataError
from asyncfl_lite.tasks import Task
from asyncfl_lite.tasks.images import unlabelled
from asyncfl_lite.tasks.images.files import CIFAR10, CIFAR100, FEMNIST, MNIST, STL10, FashionMNIST, read_files
from asyncfl_lite.tasks.partitions import PARTITIONS
from asyncfl_lite.tasks.show import describe
from asyncfl_reproduction.standins.images import CIFAR10JPEG75
from conftest import SHARED, needs

RNG = np.random.default_rng
BYTES = RNG(7)


@pytest.fixture(autouse=True)
def _read_afresh():
    read_files.cache_clear()
    unlabelled.folder_images.cache_clear()
    yield
    read_files.cache_clear()


def md5(path: Path) -> str:
    return hashlib.md5(path.read_bytes()).hexdigest()


def mnist_files(root: Path, name: str, *, packed: bool) -> dict[str, np.ndarray]:
    """Write 40 training and 20 test images in idx format, four and two of each class."""
    raw, written = root / name / "raw", {}
    raw.mkdir(parents=True)
    for part, count in (("train", 40), ("t10k", 20)):
        written[part] = BYTES.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        arrays = {"images-idx3": written[part], "labels-idx1": (np.arange(count) % 10).astype(np.uint8)}
        for kind, array in arrays.items():
            if packed:
                (raw / f"{part}-{kind}-ubyte.gz").write_bytes(gzip.compress(idx(array)))
            else:
                (raw / f"{part}-{kind}-ubyte").write_bytes(idx(array))
    return written


def cifar_files(root: Path, classes: int, monkeypatch, batches: int = 2) -> np.ndarray:
    """Write training batches of 20 images, a test batch and the names, and let torchvision know their sums."""
    reader = datasets.CIFAR10 if classes == 10 else datasets.CIFAR100
    folder = root / reader.base_folder
    folder.mkdir(parents=True)
    labels = "labels" if classes == 10 else "fine_labels"

    def write(name: str, content: dict) -> list[str]:
        (folder / name).write_bytes(pickle.dumps(content))
        return [name, md5(folder / name)]

    images = BYTES.integers(0, 256, (batches + 1, 20, 3072), dtype=np.uint8)
    each = [{"data": one, labels: [i * 20 + k for k in range(20)]} for i, one in enumerate(images)]
    for one in each:
        one[labels] = [label % classes for label in one[labels]]
    monkeypatch.setattr(reader, "train_list", [write(f"part_{i}", one) for i, one in enumerate(each[:-1])])
    monkeypatch.setattr(reader, "test_list", [write("test", each[-1])])
    key = reader.meta["key"]
    name, total = write(reader.meta["filename"], {key: [f"class {k}" for k in range(classes)]})
    monkeypatch.setattr(reader, "meta", {"filename": name, "key": key, "md5": total})
    return images


def stl_files(root: Path, monkeypatch) -> np.ndarray:
    """Write STL-10's binary files: columns before rows, labels from 1."""
    folder = root / "stl10_binary"
    folder.mkdir(parents=True)
    images = BYTES.integers(0, 256, (20, 3, 96, 96), dtype=np.uint8)
    content = {
        "train_X.bin": images[:10].transpose(0, 1, 3, 2).tobytes(),
        "train_y.bin": bytes(range(1, 11)),
        "unlabeled_X.bin": b"",
        "test_X.bin": images[10:].transpose(0, 1, 3, 2).tobytes(),
        "test_y.bin": bytes(range(1, 11)),
        "class_names.txt": "\n".join(f"class {k}" for k in range(10)).encode(),
    }
    for name, data in content.items():
        (folder / name).write_bytes(data)
    for part, names in (("train_list", list(content)[:3]), ("test_list", list(content)[3:5])):
        monkeypatch.setattr(datasets.STL10, part, [[name, md5(folder / name)] for name in names])
    return images


def restored(task: Task, images: np.ndarray) -> torch.Tensor:
    """What ``images`` are after the normalisation that training images of these values ask for."""
    values = torch.from_numpy(images).double() / 255
    mean, std = values.mean((0, 2, 3), keepdim=True), values.transpose(0, 1).flatten(1).std(1)[:, None, None]
    return ((values - mean) / std).to(task.inputs)


@pytest.mark.parametrize("packed", [True, False], ids=["gz", "unpacked"])
@pytest.mark.parametrize("source", [MNIST, FashionMNIST])
def test_idx_files(tmp_path, monkeypatch, source, packed):
    reader = datasets.MNIST if source is MNIST else datasets.FashionMNIST
    written = mnist_files(tmp_path, reader.__name__, packed=packed)
    raw = tmp_path / reader.__name__ / "raw"
    if packed:
        monkeypatch.setattr(reader, "resources", [(path.name, md5(path)) for path in raw.iterdir()])
    before = sorted(path.name for path in raw.iterdir())
    task = source(folder=str(tmp_path)).load()
    assert task.inputs.shape == (40, 1, 28, 28) and task.test_inputs.shape == (20, 1, 28, 28)
    assert task.labels.tolist() == [k % 10 for k in range(40)] and task.labels.dtype == torch.int64
    torch.testing.assert_close(task.inputs, restored(task, written["train"][:, None]), atol=1e-5, rtol=0)
    assert task.num_classes == len(task.class_names) == 10
    assert sorted(path.name for path in raw.iterdir()) == before  # nothing was unpacked beside the user's files


@pytest.mark.parametrize(("source", "classes"), [(CIFAR10, 10), (CIFAR100, 100)])
def test_cifar_pickles(tmp_path, monkeypatch, source, classes):
    images = cifar_files(tmp_path, classes, monkeypatch).reshape(-1, 3, 32, 32)
    task = source(folder=str(tmp_path)).load()
    torch.testing.assert_close(task.inputs, restored(task, images[:40]), atol=1e-5, rtol=0)
    assert task.labels.tolist() == [k % classes for k in range(40)]
    assert task.test_labels.tolist() == [(40 + k) % classes for k in range(20)]
    assert task.class_names[3] == "class 3" and task.num_classes == classes
    (tmp_path / source().title.lower()).mkdir()
    changed = next((tmp_path).glob("cifar-*/part_1"))
    changed.write_bytes(changed.read_bytes() + b" ")
    read_files.cache_clear()
    with pytest.raises(DataError, match="could not be read .*corrupted"):
        source(folder=str(tmp_path)).load()


def test_cifars_sets_are_the_papers(tmp_path, monkeypatch):
    own = cifar_files(tmp_path, 10, monkeypatch).reshape(-1, 3, 32, 32)[:40]
    hundred = cifar_files(tmp_path, 100, monkeypatch).reshape(-1, 3, 32, 32)
    stl = torch.from_numpy(stl_files(tmp_path, monkeypatch)[:10]) / 255
    task = CIFAR10(folder=str(tmp_path)).load()
    raw = torch.from_numpy(own).double() / 255
    mean, std = raw.mean((0, 2, 3))[:, None, None], raw.transpose(0, 1).flatten(1).std(1)[:, None, None]
    for name, others in {  # CIFAR-100's training images, and STL-10's, three times smaller
        "cross": torch.from_numpy(hundred[:40]) / 255,
        "natural": functional.interpolate(stl, size=(32, 32), mode="area"),
    }.items():
        drawn = task.unlabelled_set(name, len(others), RNG(0)) * std + mean
        assert torch.cdist(drawn.flatten(1).double(), others.flatten(1).double()).amin(1).max() < 1e-3
    synthetic = task.unlabelled_set("synthetic", 10, RNG(0)) * std + mean
    assert synthetic.shape == (10, 3, 32, 32) and synthetic.min() > -1e-4 and synthetic.max() < 1.0001


def test_stl10_binaries(tmp_path, monkeypatch):
    images = stl_files(tmp_path, monkeypatch)
    task = STL10(folder=str(tmp_path), side=None).load()
    torch.testing.assert_close(task.inputs, restored(task, images[:10]), atol=1e-5, rtol=0)
    assert task.labels.tolist() == task.test_labels.tolist() == list(range(10))
    assert STL10(folder=str(tmp_path)).load().input_shape == (3, 32, 32)


def jpeg_file(path: Path) -> list[np.ndarray]:
    """Write a file like that of CIFAR-10 (JPEG q75); return what its images decode to."""
    parts, decoded, header = {}, [], b""
    for part, count in (("train", 20), ("test", 10)):
        files = []
        for _ in range(count):
            smooth = Image.fromarray(BYTES.integers(0, 256, (4, 4, 3), dtype=np.uint8)).resize((32, 32))
            smooth.save(buffer := io.BytesIO(), "JPEG", quality=75)
            files.append(buffer.getvalue())
            decoded.append(np.asarray(Image.open(buffer)).transpose(2, 0, 1))
        header = header or os.path.commonprefix(files)
        assert all(file.startswith(header) for file in files)
        rest = [file[len(header) :] for file in files]
        parts[f"{part}_stream"] = np.frombuffer(b"".join(rest), np.uint8)
        parts[f"{part}_offsets"] = np.cumsum([0, *map(len, rest)])
        parts[f"{part}_labels"] = (np.arange(count) % 10).astype(np.uint8)
    names = np.array([f"class {k}" for k in range(10)])
    np.savez(path, jpeg_header=np.frombuffer(header, np.uint8), class_names=names, **parts)
    return decoded


def test_cifar10_jpeg_is_read_and_called_so(tmp_path):
    decoded = jpeg_file(tmp_path / "cifar10-jpeg75.npz")
    task = CIFAR10JPEG75(folder=str(tmp_path)).load()
    torch.testing.assert_close(task.inputs, restored(task, np.stack(decoded[:20])), atol=1e-5, rtol=0)
    assert task.labels.tolist() == [k % 10 for k in range(20)] and len(task.test_labels) == 10
    assert task.stands_in_for == "CIFAR-10" and "JPEG q75" in task.source
    assert describe(task).startswith("CIFAR-10 (JPEG q75), stand-in for CIFAR-10\n")
    some = CIFAR10JPEG75(folder=str(tmp_path), samples=10, test_samples=10).load()
    assert some.labels.bincount().tolist() == [1] * 10


def test_where_data_is_looked_for(tmp_path, monkeypatch):
    monkeypatch.delenv("ASYNCFL_DATA", raising=False)
    assert data_root(None) == Path("~/.cache/asyncfl_lite").expanduser()
    monkeypatch.setenv("ASYNCFL_DATA", str(tmp_path / "named"))
    assert data_root(None) == tmp_path / "named" and data_root("given") == Path("given")
    (tmp_path / "named/mrpc").mkdir(parents=True)
    assert data_folder(None, "MRPC", "mrpc") == tmp_path / "named/mrpc"
    assert data_folder(str(tmp_path / "named/mrpc"), "MRPC", "mrpc") == tmp_path / "named/mrpc"  # its own folder
    with pytest.raises(DataError, match=r"^folder: looked in .*named for A/ or B/C/, which is not there; get it so$"):
        data_folder(None, "A", "B/C", how="get it so")
    (tmp_path / "named/mrpc/x.txt").touch()
    assert data_file(tmp_path / "named/mrpc", "x.tsv", "x.txt").name == "x.txt"
    with pytest.raises(DataError, match=r"^folder: looked in .*mrpc for y.txt, which is not there; .*ASYNCFL_DATA"):
        data_file(tmp_path / "named/mrpc", "y.txt")


def test_downloads_only_when_asked_and_fails_in_one_line(tmp_path, monkeypatch):
    asked = []

    def refuse(self):
        asked.append(self.root)
        raise RuntimeError("Error downloading x:\nTried y, got:\nno network")

    monkeypatch.setattr(datasets.MNIST, "download", refuse)
    with pytest.raises(DataError):
        MNIST(folder=str(tmp_path)).load()
    assert not asked
    with pytest.raises(DataError, match=r"^mnist: .*\(Error downloading x:\)") as told:
        MNIST(folder=str(tmp_path), download=True).load()
    assert asked == [tmp_path] and "\n" not in str(told.value)


def test_a_folder_of_generated_images(tmp_path):
    mnist_files(tmp_path, "MNIST", packed=False)
    folder = tmp_path / "generated"
    (folder / "deeper").mkdir(parents=True)
    colours = np.zeros((4, 40, 60, 3), dtype=np.uint8)
    colours[:, :, 10:50] = np.array([40, 80, 120, 200])[:, None, None, None]  # what the middle square holds
    for name, pixels in zip(("b.png", "a.png", "deeper/c.bmp", "d.png"), colours, strict=True):
        Image.fromarray(pixels).save(folder / name)
    (folder / "notes.txt").write_text("not an image")
    task = MNIST(folder=str(tmp_path), generated="generated").load()  # in the data folder
    drawn = task.unlabelled_set("synthetic", 4, RNG(0))
    values = np.sort(drawn.mean((1, 2, 3)).numpy())
    raw = read_files("mnist", str(tmp_path), True, False)[0] / 255
    wanted = (np.array([40, 80, 120, 200]) / 255 - float(raw.mean())) / float(raw.std())
    assert np.allclose(values, wanted, atol=1e-4) and drawn.std((1, 2, 3)).max() < 1e-3
    (folder / "e.png").write_bytes(b"no image")
    unlabelled.folder_images.cache_clear()
    with pytest.raises(DataError, match="^generated: .*e.png cannot be read as an image"):
        task.unlabelled_set("synthetic", 4, RNG(0))
    with pytest.raises(DataError, match="^generated: looked in .*nothing for images"):
        MNIST(folder=str(tmp_path), generated=str(tmp_path / "nothing")).load().unlabelled_set("synthetic", 1, RNG(0))


@pytest.mark.parametrize(
    ("source", "train_counts"),
    [
        pytest.param(FashionMNIST, [6000] * 10, marks=needs("FashionMNIST")),
        pytest.param(MNIST, [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949], marks=needs("MNIST")),
    ],
)
def test_the_real_grey_data_sets(source, train_counts):
    task = source(folder=str(SHARED)).load()
    assert task.inputs.shape == (60_000, 1, 28, 28) and task.test_inputs.shape == (10_000, 1, 28, 28)
    assert task.labels.bincount().tolist() == train_counts
    assert abs(float(task.inputs.mean())) < 1e-3 and float(task.inputs.std()) == pytest.approx(1, abs=1e-3)


@pytest.fixture
def femnist(tmp_path, monkeypatch):
    """Write the parquet copy: four writers of five characters each; return what its files show."""
    parquet = pytest.importorskip("datasets")
    monkeypatch.setattr(parquet.config, "HF_DATASETS_CACHE", tmp_path / "cache")

    def write(darkest: int = 0, brightest: int = 256) -> np.ndarray:
        pixels = BYTES.integers(darkest, brightest, (20, 28, 28), dtype=np.uint8)
        kinds = {"image": parquet.Image(), "writer_id": parquet.Value("string"), "hsf_id": parquet.Value("int64")}
        features = parquet.Features(**kinds, character=parquet.ClassLabel(62))
        names = [f"f{k // 5:04d}_00" for k in range(20)]
        rows = {"image": [Image.fromarray(one) for one in pixels], "writer_id": names, "hsf_id": [0] * 20}
        table = parquet.Dataset.from_dict({**rows, "character": list(range(20))}, features=features)
        (tmp_path / "femnist/data").mkdir(parents=True)
        table.to_parquet(tmp_path / "femnist/data/train-00000-of-00001.parquet")
        return pixels

    return write


def test_the_parquet_copy_of_femnist(tmp_path, femnist):
    pixels = femnist(200, 256)
    task = FEMNIST(folder=str(tmp_path)).load()
    assert task.num_classes == 62 and task.class_names[36] == "a"
    assert len(task.labels) == 17 and len(task.test_labels) == 3
    assert sorted(task.labels.tolist() + task.test_labels.tolist()) == list(range(20))
    assert task.owners.tolist() == [label // 5 for label in task.labels.tolist()]
    parts = PARTITIONS.get("natural")().split(task.labels.numpy(), 3, RNG(0), owners=task.owners)
    assert all(len(np.unique(task.owners[part])) == 1 for part in parts)  # a client is a writer
    assert len(np.concatenate(parts)) < 17
    first = 255.0 - pixels[int(task.labels[0])]  # ink is made light
    assert np.corrcoef(first.ravel(), task.inputs[0].flatten())[0, 1] == pytest.approx(1)


def test_some_writers_are_the_same_every_time(tmp_path, femnist):
    femnist()
    two, three = (FEMNIST(folder=str(tmp_path), writers=count).load() for count in (2, 3))
    written = [set((torch.cat([task.labels, task.test_labels]) // 5).tolist()) for task in (two, three)]
    assert [len(writers) for writers in written] == [2, 3] and written[0] < written[1]
    assert len(two.labels) + len(two.test_labels) == 10
    with pytest.raises(DataError, match="^writers: must be at most the 4 that there are, got 7"):
        FEMNIST(folder=str(tmp_path), writers=7).load()

"""FEMNIST by writer, from LEAF's JSON and from the parquet copy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from asyncfl_lite.base.errors import DataError
from asyncfl_lite.tasks.images.files import FEMNIST
from asyncfl_lite.tasks.partitions import PARTITIONS

RNG = np.random.default_rng
BYTES = RNG(7)


def leaf_files(root: Path, *, split_users: bool = False, dark: bool = True) -> dict[str, list]:
    """Write LEAF's JSON: three writers a file, two files a part, ink dark on white."""
    labels = {}
    for part in ("train", "test"):
        (root / "data" / part).mkdir(parents=True)
        for number in range(2):
            users = [f"{'t' if split_users and part == 'test' else 'f'}{number}{k:03d}" for k in range(3)]
            data = {}
            for k, user in enumerate(users):
                pixels = BYTES.integers(0, 60, (4 + k, 784))
                labels[part, user] = BYTES.integers(0, 62, 4 + k).tolist()
                data[user] = {"x": ((255 - pixels if dark else pixels) / 255).tolist(), "y": labels[part, user]}
            content = {"users": users, "num_samples": [4, 5, 6], "user_data": data}
            (root / "data" / part / f"all_data_{number}_keep_0_{part}_9.json").write_text(json.dumps(content))
    return labels


def test_leafs_json(tmp_path):
    labels = leaf_files(tmp_path / "femnist")
    task = FEMNIST(folder=str(tmp_path)).load()
    assert task.inputs.shape == (30, 1, 28, 28) and task.num_classes == 62 and task.class_names[36] == "a"
    assert np.bincount(task.owners).tolist() == [4, 5, 6, 4, 5, 6]
    assert task.labels.tolist() == [label for (part, _), own in labels.items() if part == "train" for label in own]
    parts = PARTITIONS.get("natural")().split(task.labels.numpy(), 4, RNG(0), owners=task.owners)
    assert all(len(np.unique(task.owners[part])) == 1 for part in parts)  # a client is a writer
    assert sorted(map(len, parts))[0] >= 4 and len(np.concatenate(parts)) < 30


def test_leafs_ink_is_made_light(tmp_path):
    leaf_files(tmp_path / "a/femnist")
    dark = FEMNIST(folder=str(tmp_path / "a")).load()
    content = json.loads(next((tmp_path / "a/femnist/data/train").glob("all_data_0*")).read_text())
    first = 255 - np.rint(np.array(content["user_data"]["f0000"]["x"][0]) * 255)
    assert np.corrcoef(first, dark.inputs[0].flatten())[0, 1] == pytest.approx(1)


def test_some_writers_are_the_same_every_time(tmp_path):
    leaf_files(tmp_path / "femnist")
    two, three = (FEMNIST(folder=str(tmp_path), writers=count).load() for count in (2, 3))
    assert len(np.unique(two.owners)) == 2 and len(np.unique(three.owners)) == 3
    assert len(two.test_labels) == len(two.labels)  # the same writers' test samples
    contained = (two.inputs * 1.0).flatten(1).argmax(1)  # normalisation moves values, not which is largest
    assert set(contained.tolist()) <= set(three.inputs.flatten(1).argmax(1).tolist())
    with pytest.raises(DataError, match="^writers: must be at most the 6 that there are, got 7"):
        FEMNIST(folder=str(tmp_path), writers=7).load()


def test_the_parquet_copy_of_femnist(tmp_path, monkeypatch):
    parquet = pytest.importorskip("datasets")
    monkeypatch.setattr(parquet.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    pixels = BYTES.integers(0, 256, (20, 28, 28), dtype=np.uint8)
    features = parquet.Features(
        image=parquet.Image(),
        writer_id=parquet.Value("string"),
        hsf_id=parquet.Value("int64"),
        character=parquet.ClassLabel(62),
    )
    rows = {"image": [Image.fromarray(one) for one in pixels], "writer_id": [f"f{k // 5:04d}_00" for k in range(20)]}
    table = parquet.Dataset.from_dict({**rows, "hsf_id": [0] * 20, "character": list(range(20))}, features=features)
    (tmp_path / "femnist/data").mkdir(parents=True)
    table.to_parquet(tmp_path / "femnist/data/train-00000-of-00001.parquet")
    task = FEMNIST(folder=str(tmp_path)).load()
    assert len(task.labels) == 17 and len(task.test_labels) == 3
    assert sorted(task.labels.tolist() + task.test_labels.tolist()) == list(range(20))
    assert task.owners.tolist() == [label // 5 for label in task.labels.tolist()]
    some = FEMNIST(folder=str(tmp_path), writers=2).load()
    assert len(some.labels) + len(some.test_labels) == 10 and len(np.unique(some.owners)) == 2

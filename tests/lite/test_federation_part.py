"""Some clients of a larger federation, and clips seen in fewer frames."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.base.streams import stream
from asyncfl_lite.tasks import TASKS
from asyncfl_lite.tasks.partitions import PARTITIONS

LABELS = np.arange(1200) % 40


def split(name: str, clients: int, seed: int = 0, **settings) -> list[np.ndarray]:
    return PARTITIONS.get(name)(bias=0.8, **settings).split(LABELS, clients, stream(seed, "partition"))


def same(left: list[np.ndarray], right: list[np.ndarray]) -> bool:
    return len(left) == len(right) and all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


def test_who_is_left_has_what_it_has_in_the_whole_federation():
    whole = split("noniid_bias", 12)
    assert same(split("noniid_bias_part", 8, of=12), whole[:8])
    assert same(split("noniid_bias_part", 12), whole)  # nobody is left out unless asked for


def test_random_clients_are_of_the_federation_and_differ_by_seed():
    chosen = []
    for seed in range(8):
        whole, (alone,) = split("noniid_bias", 12, seed), split("noniid_bias_part", 1, seed, of=12, chosen="random")
        chosen.append([np.array_equal(alone, part) for part in whole].index(True))
    assert len(set(chosen)) > 3
    three = split("noniid_bias_part", 3, of=12, chosen="random")
    assert len(np.unique(np.concatenate(three))) == sum(map(len, three))


def test_a_federation_is_no_smaller_than_its_part():
    with pytest.raises(ConfigError, match=r"of: must be at least the run's 5 clients, got 4"):
        split("noniid_bias_part", 5, of=4)


def test_frames_are_evenly_spaced_and_the_rest_is_the_same_task():
    settings = {"clips": 80, "test_clips": 40}
    whole = TASKS.get("movingdigits")(**settings).load()
    for frames, places in ((8, list(range(8))), (4, [1, 3, 5, 7]), (2, [2, 6]), (1, [4])):
        seen = TASKS.get("movingdigits_frames")(frames=frames, **settings).load()
        assert torch.equal(seen.inputs, whole.inputs[:, :, places])
        assert torch.equal(seen.test_inputs, whole.test_inputs[:, :, places])
        assert torch.equal(seen.labels, whole.labels)
        assert seen.unlabelled["synthetic"](3, np.random.default_rng(0)).shape == (3, *seen.input_shape)

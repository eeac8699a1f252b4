"""Documents as bags of words: what vectors hold, worlds by seed, unlabelled sets, and methods that make vectors up."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from asyncfl_lite import Config, run
from asyncfl_reproduction.standins.text import Topics20Bags, Weighing

RNG = np.random.default_rng
FEW = {"samples": 600, "test_samples": 200, "worlds": 3}
SMALL = {
    "task": "topics20_bags", "task_settings": FEW, "clients": 10, "concurrency": 5, "rounds": 8, "local_steps": 4,
    "eval_every": 4, "client_lr": 0.1,
}  # fmt: skip


def test_a_vector_holds_how_often_each_word_occurs_and_nothing_of_their_order():
    documents = torch.tensor([[3, 3, 3, 4], [4, 5, 5, 6], [6, 3, 6, 4]])
    weighed = Weighing(documents, 8)
    vectors = weighed(documents)
    assert vectors.shape == (3, 5) and vectors.dtype == torch.float32
    assert float(vectors.mean()) == pytest.approx(0, abs=1e-6) and float(vectors.std()) == pytest.approx(1)
    torch.testing.assert_close(weighed(documents.flip(1)), vectors)
    plain = vectors * weighed.std + weighed.mean
    torch.testing.assert_close(plain.norm(dim=1), torch.ones(3))
    assert torch.allclose(plain[:, 4], torch.zeros(3), atol=1e-6)  # token 7 is in none
    rare, common = 1 + np.log(4 / 2), 1 + np.log(4 / 4)  # in one document of three, in all: scikit-learn's smooth idf
    assert float(plain[1, 2] / plain[1, 1]) == pytest.approx((1 + np.log(2)) * rare / common)


def test_a_world_is_the_same_again_and_another_one_is_not():
    task, again = (Topics20Bags(**FEW).load() for _ in range(2))
    assert task.input_shape == (100,) and task.num_classes == 20 and task.vocabulary is None
    assert task.stands_in_for == "20 Newsgroups" and len(task.own_places) == 600
    assert torch.equal(task.of_run(2).samples[0], again.of_run(2).samples[0])
    assert torch.equal(task.of_run(2).test_inputs, again.of_run(5).test_inputs)
    means = torch.stack([task.of_run(seed).samples[0].mean(0) for seed in range(3)])
    assert torch.pdist(means).min() > 1
    drawn = [world.unlabelled_set("natural", 40, RNG(0)) for world in (task, task.of_run(1))]
    assert not torch.equal(*drawn)


@pytest.mark.usefixtures("quick_syntheses")
def test_fedrevive_makes_vectors_up_and_distils_on_them():
    warm = {"freeze_rounds": 2, "synthesis_only_rounds": 4}
    result = run(Config(**{**SMALL, "algorithm": "fedrevive", "rounds": 12, "settings": warm}))
    plain = run(Config(**{**SMALL, "algorithm": "fedrevive", "rounds": 12, "settings": {**warm, "kd_lr": 0.0}}))
    assert torch.isfinite(result.x).all() and not torch.equal(result.x, plain.x)

"""Made-up topics and 20 Newsgroups: documents as bags of words, and tasks that train on snippets alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from asyncfl_lite import Config, run
from asyncfl_lite.tasks import TASKS
from asyncfl_reproduction.standins.text import Weighing

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


@pytest.mark.usefixtures("quick_syntheses")
def test_fedrevive_makes_vectors_up_and_distils_on_them():
    warm = {"freeze_rounds": 2, "synthesis_only_rounds": 4}
    result = run(Config(**{**SMALL, "algorithm": "fedrevive", "rounds": 12, "settings": warm}))
    plain = run(Config(**{**SMALL, "algorithm": "fedrevive", "rounds": 12, "settings": {**warm, "kd_lr": 0.0}}))
    assert torch.isfinite(result.x).all() and not torch.equal(result.x, plain.x)


def test_snippets_of_generated_documents_are_tested_on_the_real_ones():
    sizes = {"samples": 60, "test_samples": 40}
    alone, real = (TASKS.get(name)(**more, **sizes).load() for name, more in (
        ("topics20_snippets", {"snippets": 50}), ("topics20", {})))  # fmt: skip
    assert torch.equal(alone.test_inputs, real.test_inputs)
    assert torch.equal(alone.test_labels, real.test_labels)
    assert alone.inputs.shape == (50, 64)
    assert not torch.equal(alone.inputs, real.inputs[:50])
    assert torch.equal(alone.inputs, real.unlabelled_set("cross", 50, after_load(sizes)))


def after_load(sizes: dict[str, int]) -> np.random.Generator:
    """The stream of topics20 where its documents and topics are drawn, and no snippet yet."""
    rng = np.random.default_rng(0)
    source = TASKS.get("topics20")(**sizes)
    language, topics = source._zipf(rng), source._topics(rng)
    for count in sizes.values():
        source._documents(count, language, topics, rng)
    source._topics(rng)
    return rng


def newsgroups(folder: Path, lines: list[str]) -> Path:
    place, groups = folder / "20newsgroups", ("alt.one", "alt.two")
    place.mkdir()
    (place / "target_names.json").write_text(json.dumps(groups))
    for part in ("train", "test"):
        texts = [f"From: somebody\n\nthe {group[4:]} {part} post number {k}\n" for group in groups for k in range(12)]
        posts = [json.dumps({"text": text, "label": number // 12}) for number, text in enumerate(texts)]
        (place / f"20news-bydate-{part}.jsonl").write_text("\n".join(posts))
    (place / "snippets.jsonl").write_text("\n".join(lines))
    return place


def test_snippets_of_newsgroups_come_from_a_file(tmp_path):
    place = newsgroups(tmp_path, ['{"text": "on the first", "label": 0}', '{"text": "second", "label": 1}'])
    task = TASKS.get("newsgroups20_snippets")(folder=str(place), length=16, vocabulary=100).load()
    assert task.labels.tolist() == [0, 1]
    assert len(task.test_labels) == 24
    assert "first" in task.decode(task.inputs[0])

"""Tasks that train on snippets alone, for FedRevive's leakage check."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch

from asyncfl_lite.tasks import TASKS


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

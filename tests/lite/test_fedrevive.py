"""FedRevive, AFL-DW and DD-FedRevive: numbers worked out by hand, identities and switches."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from asyncfl_lite import Config, Run, run
from asyncfl_lite.algorithms import ServerContext
from asyncfl_lite.algorithms.afl_dw import AFLDW
from asyncfl_lite.algorithms.fedrevive import DDFedRevive, FedRevive, Teacher
from asyncfl_lite.algorithms.synthesis import synthesis_loss
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.models import MODELS, ModelSpec
from asyncfl_lite.models.base import InputSpec
from asyncfl_lite.models.features import stored_statistics
from asyncfl_lite.tasks import Task
from conftest import line, linear_model, update, vector

pytestmark = pytest.mark.usefixtures("quick_syntheses")
exactly = {"rtol": 1e-7, "atol": 1e-12}
PAPERS = FedRevive.t_gen
FAMILIES = ("cosine", "linear", "exponential", "stepwise")


@pytest.mark.parametrize(
    ("family", "tau", "expected"),
    [
        ("cosine", 0, 0.0), ("cosine", 1, 0.0001096583), ("cosine", 5, 0.0027390523), ("cosine", 10, 0.0109261996),
        ("cosine", 25, 0.0669872981), ("cosine", 50, 0.25), ("cosine", 75, 0.5), ("cosine", 100, 0.75),
        ("cosine", 150, 1.0), ("cosine", 151, 1.0), ("cosine", 10_000, 1.0),
        ("linear", 10, 0.05), ("linear", 100, 0.5), ("linear", 200, 1.0), ("linear", 201, 1.0),
        ("exponential", 10, 0.0487705755), ("exponential", 100, 0.3934693403), ("exponential", 200, 0.6321205588),
        ("stepwise", 37, 0.0), ("stepwise", 38, 0.25), ("stepwise", 75, 0.5), ("stepwise", 113, 0.75),
        ("stepwise", 149, 0.75), ("stepwise", 150, 1.0), ("stepwise", 151, 1.0),
        ("constant", 0, 0.5), ("constant", 150, 0.5),
    ],
)  # fmt: skip
def test_worked_schedule(family, tau, expected):
    assert AFLDW(beta_family=family).beta(tau) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@given(st.sampled_from(FAMILIES), st.integers(0, 500), st.integers(0, 500), st.floats(1, 200))
def test_schedule_starts_at_nothing_and_never_falls(family, one, other, span):
    method = AFLDW(beta_family=family, s_max=span)
    low, high = sorted((one, other))
    assert method.beta(0) == 0
    assert 0 <= method.beta(low) <= method.beta(high) <= 1


def faked(model, *, spec=None, labelled=None):
    spec = spec or InputSpec((1,), 2, -1.0, 1.0)
    return ServerContext(model, 4, np.random.default_rng(0), lambda name, count: None, labelled, inputs=spec)


def revive(**settings):
    """A FedRevive of two parameters at (1, 0), which synthesises once and has no warm-up."""
    given = {"synthesis_only_rounds": 0, "freeze_rounds": 0, "nz": 2, "ngf": 2, **settings}
    method = FedRevive(server_lr=0.1, alpha_feat=0, **given)
    method.start(vector(1, 0), faked(linear_model(1, 2)))
    return method


def test_worked_updates(monkeypatch):
    """Of AFL-DW's alone: ``test_servers.py``."""
    server = revive()
    for delta, distilled, tau, x in (
        ((0.4, 0), (0.1, 0.1), 0, (1.04, 0)),
        ((0, 0.8), (0.2, -0.2), 50, (1.045, 0.055)),
        ((1, 1), (-0.1, 0.3), 150, (1.035, 0.085)),
    ):
        monkeypatch.setattr(server, "distilled_update", lambda distilled=distilled: vector(*distilled))
        server.on_receive(dataclasses.replace(update(delta, start=vector(0, 0)), staleness=tau))
        torch.testing.assert_close(server.x, vector(*x), **exactly)
    assert server.version == 3


def dd(labelled, **settings):
    method = DDFedRevive(server_lr=0.2, **settings)
    method.start(vector(1, 0), faked(linear_model(1, 2), labelled=labelled))
    return method


COUNTS = torch.tensor([3, 1])
REAL = (torch.ones(6, 1, dtype=torch.float64), torch.tensor([0, 1, 0, 1, 0, 0]))


def test_worked_update_of_dd(monkeypatch):
    server = dd(REAL)
    monkeypatch.setattr(server, "distilled_update", lambda: vector(0.1, 0.1))
    server.receive(update((0.4, 0), label_counts=COUNTS))
    torch.testing.assert_close(server.x, vector(1.05, 0.01), **exactly)


def distilling(teachers, proportions=None, **settings):
    """A DD-FedRevive of three classes and two inputs, with teachers of the given weights."""
    source = torch.Generator().manual_seed(0)
    labelled = (torch.randn(30, 2, dtype=torch.float64, generator=source), torch.arange(30) % 3)
    method = DDFedRevive(**settings)
    spec = InputSpec((2,), 3, -1.0, 1.0)
    method.start(torch.zeros(6, dtype=torch.float64), faked(linear_model(2, 3), spec=spec, labelled=labelled))
    method.teachers = [Teacher(client, x, None, None) for client, x in enumerate(teachers)]
    for client in range(len(teachers)):
        method.proxies.add(client, vector(1, 1, 1) / 3 if proportions is None else proportions[client])
    return method


X = vector(1, -1, 0.5, 0.2, -0.4, 2)


@pytest.mark.parametrize(
    ("optimiser", "decay", "least"),
    [("sgd", FedRevive.weight_decay, 0), ("adam", FedRevive.weight_decay, 2e-4), ("adam", DDFedRevive.weight_decay, 0)],
)
def test_teachers_that_are_the_student_teach_nothing_but_adam_makes_steps_of_a_decay(
    optimiser, decay, least, monkeypatch
):
    """Which FedRevive has in the authors' code, 1e-5, and DD-FedRevive has not."""
    monkeypatch.setattr(DDFedRevive, "weight_decay", decay)
    monkeypatch.setattr(DDFedRevive, "kd_opt", optimiser)
    method = distilling([X, X], k_kd=1)
    method.x = X
    method.pool.inputs = torch.zeros_like(method.pool.inputs)  # no gradient at all but that of a decay
    delta = method.distilled_update().abs()
    assert delta.min() > least if least else not delta.any()


def test_one_step_is_the_gradient_of_the_mean_over_teachers():
    method = distilling([X, -X], [vector(1, 0, 0), vector(0, 1, 0)], kd_lr=0.5, k_kd=1, kd_temperature=2.0)
    method.kd_opt = "sgd"
    rng = np.random.default_rng(0)
    places = method.pool.draw(method.proportions(), 32, rng)
    assert set(method.pool.labels[places[0]].tolist()) == {0}
    student = torch.zeros(6, dtype=torch.float64, requires_grad=True)
    loss = 0.0
    for teacher, row in zip((X, -X), places, strict=True):
        inputs = method.pool.inputs[row]
        target = (inputs @ teacher.view(3, 2).T / 2).softmax(-1)
        answer = (inputs @ student.view(3, 2).T / 2).log_softmax(-1)
        loss = loss + 4 * (target * (target.log() - answer)).sum(-1).mean() / 2
    loss.backward()
    torch.testing.assert_close(method.distilled_update(), -0.5 * student.grad, rtol=1e-10, atol=1e-14)


def test_the_latest_client_models_are_the_teachers():
    server = revive(num_teachers=2, k_kd=0)
    for client, value in enumerate((1.0, 2.0, 3.0)):
        server.receive(update((value, 0), client=client, start=vector(10, 20)))
    assert [teacher.client for teacher in server.teachers] == [1, 2]
    assert server.teachers[1].x.tolist() == [13, 20]
    server.receive(update((math.nan, 0), client=3))
    assert [teacher.client for teacher in server.teachers] == [1, 2]


def test_a_clients_first_two_uploads_are_probed():
    server = revive(k_kd=0)
    for delta in ((5, 0), (5, 0), (0, 5)):
        server.receive(update(delta, client=3, start=vector(0, 0)))
    assert server.proxies.counts == {3: 2}
    assert server.proxies.of([3])[0].sum().item() == pytest.approx(1)


def test_proxies_tell_more_of_the_truth_than_nothing_does():
    _, run_ = final("fedrevive", {**BUSY, "freeze_rounds": 99, "synthesis_only_rounds": 99}, rounds=40, clients=20)
    server, labels = run_.algorithm, run_.task.labels
    clients = [client for client in server.proxies.counts if server.proxies.complete(client)]
    truth = torch.stack([labels[run_.parts[client]].bincount(minlength=10) for client in clients]).double()
    truth = truth / truth.sum(-1, keepdim=True)
    proxies = server.proxies.of(clients)
    divergence = torch.xlogy(truth, truth / proxies).sum(-1).mean()
    assert len(clients) > 10
    assert divergence < 0.8 * torch.xlogy(truth, truth * 10).sum(-1).mean()  # KL from uniform shares


def test_true_proportions_are_those_of_the_counts():
    server = dd(REAL, k_kd=0)
    server.receive(update((0.4, 0), client=2, label_counts=COUNTS))
    torch.testing.assert_close(server.proportions(), vector(0.75, 0.25)[None])
    with pytest.raises(ConfigError, match="^label_counts: "):
        server.receive(update((0.4, 0), client=2))


def phased(**settings):
    """A FedRevive on a linear model, with short phases: frozen up to version 2, the last warm-up version is 6."""
    chosen = {"alpha_feat": 0, "freeze_rounds": 3, "synthesis_only_rounds": 6, "nz": 2,
              "ngf": 2, "beta_family": "constant", **settings}  # fmt: skip
    server = FedRevive(**chosen)
    server.start(vector(0.1, 0), faked(linear_model(1, 2)))
    return server


PASSED, DAMPED, DISTILLED = 0.4, 0.2, "distilled"


def test_what_the_warmup_makes_of_updates():
    """The authors' code passes updates while frozen, then damps them, and distils at the first version above 6."""
    server, met, made = phased(), [], []
    for version in range(9):
        before = server.x
        server.receive(update((0.4, 0), start_version=version, start=vector(5, -5)))
        step = (server.x - before).tolist()
        met.append(DISTILLED if step[1] else round(step[0], 12))  # a client's part moves the first parameter alone
        made.append(server.synthesiser.syntheses)
    assert met == [PASSED] * 3 + [DAMPED] * 4 + [DISTILLED] * 2
    assert made == [0] * 4 + [1, 1, 2, 2, 3]  # every second version, once not frozen


def test_the_adversarial_term_waits_for_syntheses_and_not_for_versions(monkeypatch):
    weights = []

    def noted(*arguments, **alphas):
        weights.append(alphas["alpha_adv"])
        return synthesis_loss(*arguments, **alphas)

    monkeypatch.setattr("asyncfl_lite.algorithms.synthesis.synthesis_loss", noted)
    server = phased(adversarial_from=3, k_synth=1, freeze_rounds=0, synthesis_only_rounds=0)
    for version in range(9):
        server.receive(update((0.1, 0.2), start_version=version))
    assert weights == [0.0, 0.0, 0.1, 0.1, 0.1]  # syntheses at versions 0, 2, 4, 6, 8
    assert server.synthesiser.syntheses == 5


@pytest.mark.parametrize(("task", "version"), [("cifar10", 150), ("newsgroups20", 150), ("femnist", 900)])
def test_the_papers_adversarial_term_begins_where_the_authors_code_begins_it(task, version):
    """Its syntheses are at every update, ours at every tenth: its term begins at version 149, on FEMNIST at 899."""
    chosen = Config(task=task, algorithm="fedrevive").settings
    syntheses = [at for at in range(version + 1) if at >= chosen.freeze_rounds and at % PAPERS == 0]
    assert len(syntheses) == chosen.adversarial_from and syntheses[-1] == version
    assert chosen.freeze_rounds + chosen.synthesis_only_rounds - 1 in range(version - PAPERS, version)


SMALL = {
    "task": "digits", "clients": 8, "concurrency": 4, "rounds": 10, "seed": 3, "eval_every": 5, "local_steps": 3, "batch_size": 10,
    "client_optimizer": "sgd", "weight_decay": 1e-4, "client_lr": 0.1,
    "server_lr": 0.3, "delay": "fedecho_mild",
}  # fmt: skip
BUSY = {
    "freeze_rounds": 0, "synthesis_only_rounds": 1, "adversarial_from": 2, "nz": 8, "ngf": 2, "kd_lr": 1e-3, "s_max": 2.5,
    "kd_batch_size": 8, "alpha_feat": 0.1, "k_kd": 3,
}  # fmt: skip
BATCH_NORM = {"model": "cnn", "model_settings": {"norm": "batch"}}
SCHEDULE = ["client", "dispatched_at", "arrived_at", "start_version", "staleness"]


def final(algorithm="fedrevive", settings=None, **more):
    finished = Run(Config(**{**SMALL, **more}, algorithm=algorithm, settings=settings or {}))
    return finished.finish(), finished


def test_dd_distils_on_real_data_that_no_client_has():
    result, run_ = final("dd_fedrevive", {"kd_lr": 1e-2})
    held = round(len(run_.task.labels) / 7)
    assert len(run_.algorithm.pool) == held
    assert sum(map(len, run_.parts)) == len(run_.task.labels) - held
    assert held / (len(run_.task.labels) - held) == pytest.approx(0.167, abs=0.001)  # as §3.1 has it
    counts = np.bincount(run_.task.labels[run_.parts[run_.algorithm.teachers[0].client]], minlength=10)
    torch.testing.assert_close(run_.algorithm.proportions()[0], torch.from_numpy(counts / counts.sum()))
    without, _ = final("dd_fedrevive", {"k_kd": 0})
    assert result.updates[SCHEDULE].equals(without.updates[SCHEDULE])
    assert result.summary["final_accuracy"] > without.summary["final_accuracy"]


def test_batchnorm_is_mixed_and_its_statistics_are_the_features():
    result, run_ = final("fedrevive", BUSY, **BATCH_NORM)
    server = run_.algorithm
    assert np.isfinite(result.summary["final_loss"])
    for teacher in server.teachers:
        torch.testing.assert_close(teacher.features, stored_statistics(run_.model, teacher.buffers))
    assert len(server.pool) == 5 * 16
    before = server.buffers.clone()
    assert server.distilled_update() is not None and torch.equal(server.buffers, before)  # the student has a copy
    unfeatured, _ = final("fedrevive", {**BUSY, "alpha_feat": 0.0}, **BATCH_NORM)
    assert not torch.equal(result.x, unfeatured.x)


def token_task():
    """Texts of 8 tokens out of 30, of three classes: each has ten tokens of its own, half of a text is noise."""
    rng = np.random.default_rng(0)
    labels = np.arange(240) % 3
    own = labels[:, None] * 10 + rng.integers(10, size=(240, 8))
    tokens = torch.from_numpy(np.where(rng.random((240, 8)) < 0.5, own, rng.integers(30, size=(240, 8))))
    tokens[0, 0] = 29
    labels = torch.from_numpy(labels)
    return Task.from_tensors(tokens[:180], labels[:180], tokens[180:], labels[180:], unlabelled=tokens[:40])


WORDS = {
    "model": "text_transformer", "model_settings": {"width": 8, "layers": 1},
    "client_optimizer": "adam", "client_lr": 0.03, "partition": "iid", "alpha": None, "server_lr": 0.5, "rounds": 16, "local_epochs": 3, "local_steps": None,
}  # fmt: skip


def text_run(settings, **more):
    config = Config(**{**SMALL, **WORDS, **more}, algorithm="fedrevive", settings={**BUSY, **settings})
    finished = Run(config, token_task())
    return finished.finish(), finished


def test_text_is_made_up_by_soft_prompts():
    result, run_ = text_run({})
    pool = run_.algorithm.pool
    assert len(run_.algorithm.synthesiser.maker.snippets) == 40
    bare = Run(run_.config, dataclasses.replace(token_task(), unlabelled={}))  # from random tokens
    assert bare.algorithm.synthesiser.maker.snippets is None
    assert pool.inputs.shape == (8 * 16, 8, 8)
    assert len(run_.algorithm.synthesiser.theta) == 4 * 8
    assert result.summary["final_accuracy"] > 0.5
    first, second = pool.inputs[0, :4], pool.inputs[15, :4]
    torch.testing.assert_close(first, second)  # one batch has the same prompts
    assert not torch.allclose(pool.inputs[-1, :4], first)  # which are learned


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


@pytest.fixture
def own(monkeypatch):
    """Register a model of text whose module is made by a function; return a configuration of FedRevive with it."""

    def register(make, **settings) -> Config:
        spec = type("Own", (ModelSpec,), {"takes": "tokens", "build": lambda *_: make()})
        monkeypatch.setitem(MODELS._entries, "own", spec)
        return Config(model="own", algorithm="fedrevive", settings=QUICK, vectorize="off", **SHORT, **settings)

    return register


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
    ("make", "why"),
    [
        *((lambda kind=kind: kind(False), "it fails (") for kind in MODELS_OF_TEXT.values()),
        (lambda: Odd("shape"), "it returns (2, 8, 3), on tokens (2, 3)"),
        (lambda: Odd("layers"), "it goes through other layers than on tokens"),
        (lambda: Odd("detached"), "it returns outputs that do not depend on them"),
    ],
)
def test_a_model_that_does_not_treat_embeddings_as_tokens_is_refused_before_anything_is_trained(
    own, make, why, tmp_path
):
    """Otherwise the run would end when the first text is made up."""
    told = line(lambda: Run(own(make), TASK, checkpoint=tmp_path / "run.pt"), ConfigError)
    takes = f"{type(make()).__name__} must also take (n, L, width) embeddings in place of (n, L) token ids"
    assert told.startswith(f"model: {takes}") and why in told
    assert not list(tmp_path.iterdir())

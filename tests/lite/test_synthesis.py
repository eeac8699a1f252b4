"""Class proxies, synthesis losses, pool, generators and soft prompts: numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from asyncfl_lite.algorithms.losses import multi_teacher_loss
from asyncfl_lite.algorithms.pool import ClassProxies, Pool, probe_inputs, probed_proportions
from asyncfl_lite.algorithms.synthesis import (
    GeneratedInputs,
    SoftPrompts,
    Synthesiser,
    adversarial_loss,
    feature_loss,
    synthesis_loss,
    target_loss,
    teacher_weights,
)
from asyncfl_lite.models.base import InputSpec
from asyncfl_lite.models.text import TextTransformer
from asyncfl_lite.models.vectors import VectorModel
from conftest import vector

PROXIES = torch.stack([vector(0.7, 0.2, 0.1), vector(0.1, 0.3, 0.6)])
TEACHERS = torch.stack(
    [torch.stack([vector(2, 0, -1), vector(0, 1, 0)]), torch.stack([vector(0, 0, 2), vector(1, 0, 0)])]
)
STUDENT = torch.stack([vector(0.5, 0, 0), vector(0, 0.5, 0)])
LABELS = torch.tensor([0, 1])
exactly = {"rtol": 1e-7, "atol": 1e-10}


def rng(seed=0):
    return np.random.default_rng(seed)


def test_worked_weights():
    expected = torch.stack([vector(0.875, 0.4, 0.1428571429), vector(0.125, 0.6, 0.8571428571)])
    torch.testing.assert_close(teacher_weights(PROXIES), expected, **exactly)


def test_worked_proxy():
    proxies, logits = ClassProxies(3), torch.stack([vector(1, 0, -1), vector(0, 2, 0)])
    first, both = vector(0.7306791292, 0.2093430755, 0.0599777953), vector(0.4005942949, 0.5341620771, 0.065243628)
    torch.testing.assert_close(probed_proportions(logits, 0.8), both, **exactly)  # averaged after the softmax
    for upload, expected in ((logits[:1], first), (logits[1:], both)):
        proxies.add(5, probed_proportions(upload, 0.8))
        torch.testing.assert_close(proxies.of([5])[0], expected, **exactly)
    assert proxies.complete(5)
    proxies.add(5, vector(1, 0, 0))  # a third upload changes nothing
    torch.testing.assert_close(proxies.of([5])[0], both, **exactly)


def test_a_client_that_is_not_known_or_overflows_counts_as_uniform():
    proxies = ClassProxies(4)
    proxies.add(1, vector(float("nan"), 0, 0, 0))
    torch.testing.assert_close(proxies.of([0, 1]), torch.full((2, 4), 0.25, dtype=torch.float64))
    assert not proxies.complete(1)


proportions = st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=5)


def test_probes_are_noise_or_random_tokens():
    noise = probe_inputs(InputSpec((1, 8, 8), 10, low=5.0, high=6.0), 400, rng(), LIKE.double())
    assert noise.dtype == torch.float64
    assert noise.shape == (400, 1, 8, 8)
    assert noise.mean().item() == pytest.approx(0, abs=0.02)
    assert noise.std().item() == pytest.approx(1, abs=0.02)
    tokens = probe_inputs(InputSpec((6,), 10, vocabulary=7), 300, rng(), LIKE)
    assert tokens.dtype == torch.int64
    assert tokens.shape == (300, 6)
    assert sorted(tokens.unique().tolist()) == list(range(7))


def test_worked_synthesis_loss():
    weights = teacher_weights(PROXIES)
    assert target_loss(TEACHERS, LABELS, weights).item() == pytest.approx(0.7900015384, rel=1e-7)
    assert adversarial_loss(TEACHERS, STUDENT, LABELS, weights).item() == pytest.approx(-0.1585411932, rel=1e-7)
    total = synthesis_loss(TEACHERS, [], None, STUDENT, LABELS, weights, alpha_adv=0.1)
    assert total.item() == pytest.approx(0.7741474191, rel=1e-7)
    assert synthesis_loss(TEACHERS, [], None, None, LABELS, weights).item() == pytest.approx(0.7900015384, rel=1e-7)


def test_worked_distillation_loss():
    batches = [[0, 0], [1, 0]]
    student = torch.cat([STUDENT[batch] for batch in batches])
    teachers = torch.cat([TEACHERS[k][batch] for k, batch in enumerate(batches)])
    assert multi_teacher_loss(student, teachers).item() == pytest.approx(0.3712635826, rel=1e-7)
    softer = 4 * multi_teacher_loss(student / 2, teachers / 2)
    torch.testing.assert_close(multi_teacher_loss(student, teachers, 2.0), softer)


def test_features_count_by_layer_and_by_mean_weight():
    weights = teacher_weights(PROXIES)
    stored = torch.zeros(2, 2, 3, dtype=torch.float64)
    layers = [torch.stack([vector(3, 4), vector(0, 5)]), torch.stack([vector(1), vector(-2)])]
    layers = [torch.stack([layer, torch.zeros_like(layer)]) for layer in layers]  # teacher 2 has nothing
    share = (0.875 + 0.4) / 2  # of teacher 1 in labels 0 and 1
    l2 = feature_loss(layers, stored, LABELS, weights)
    assert l2.item() == pytest.approx(share * (5 + 5 + 1 + 2))
    total = synthesis_loss(TEACHERS, layers, stored, None, LABELS, weights, alpha_feat=0.5)
    assert total.item() == pytest.approx(0.7900015384 + 0.5 * share * 13)


@given(st.integers(1, 12), st.lists(st.integers(1, 15), min_size=1, max_size=6))
def test_pool_keeps_the_latest_and_never_more_than_it_may(capacity, sizes):
    pool, everything = Pool(capacity), []
    for size in sizes:
        new = torch.arange(len(everything), len(everything) + size)
        everything += new.tolist()
        pool.add(new[:, None].float(), new)
        assert pool.labels.tolist() == everything[-capacity:]
        assert pool.inputs[:, 0].tolist() == everything[-capacity:]
        assert pool.inputs.untyped_storage().nbytes() <= 4 * max(capacity, size)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30), proportions, st.integers(0, 1000))
def test_what_is_drawn_has_a_label_of_the_teacher(labels, shares, seed):
    pool = Pool(100)
    pool.add(torch.zeros(len(labels), 1), torch.tensor(labels))
    table = torch.tensor([[*row, 0.0, 0.0] for row in shares])
    places = pool.draw(table, 20, rng(seed))
    assert places.shape == (len(shares), 20)
    for row, share in zip(places, table, strict=True):
        allowed = {label for label in labels if share[label] > 0} or set(labels)
        assert set(pool.labels[row].tolist()) <= allowed


LIKE = torch.zeros(1)


@pytest.mark.parametrize(
    "shape", [(1, 8, 8), (3, 14, 14), (1, 28, 28), (3, 32, 32), (2, 5, 9), (1, 1, 2), (12,), (2, 3, 4, 5)]
)
def test_generator_meets_shape_and_range(shape):
    maker = GeneratedInputs(InputSpec(shape, 10, -0.5, 2.0), nz=6, width=3, seed=1, like=LIKE)
    labels = torch.arange(7)
    made = maker(maker.initial() * 5, maker.latents(labels, LIKE, rng()), labels)
    assert made.shape == (7, *shape)
    assert made.min() >= -0.5
    assert made.max() <= 2.0
    assert made.std() > 0


def test_generator_has_the_papers_layers():
    maker = GeneratedInputs(InputSpec((3, 32, 32), 10), nz=256, width=128, seed=1, like=LIKE)
    linear = 256 * 256 * 64 + 256 * 64
    convolutions = 256 * 256 * 9 + 256 * 128 * 9 + (128 * 3 * 9 + 3)
    norms = 2 * (256 + 256 + 128)
    assert len(maker.initial()) == linear + convolutions + norms


def test_initial_weights_come_from_the_seed_alone():
    def make(seed):
        return GeneratedInputs(InputSpec((1, 8, 8), 10), nz=6, width=3, seed=seed, like=LIKE).initial()

    before = torch.random.get_rng_state()
    assert torch.equal(make(1), make(1))
    assert not torch.equal(make(1), make(2))
    assert torch.equal(torch.random.get_rng_state(), before)


TEXT = VectorModel(TextTransformer(width=8, layers=1).build_for(InputSpec((6,), 3, vocabulary=20)))


def test_prompts_stand_before_the_snippets_embeddings():
    x = TEXT.flatten()[0]
    snippets = torch.tensor([[1, 2, 3, 4, 5, 6]])
    maker = SoftPrompts(InputSpec((6,), 3, vocabulary=20), TEXT, 2, 1, x, snippets)
    labels = torch.zeros(3, dtype=torch.int64)
    (text,) = maker.latents(labels, x, rng())
    table = dict(TEXT.unflatten(x))["embedding.weight"]
    assert torch.equal(text, table[snippets[:, 2:]].expand(3, -1, -1))
    made = maker(maker.initial(), [text], labels)
    assert made.shape == (3, 6, 8)
    assert torch.equal(made[1, :2].flatten(), maker.initial())
    assert torch.equal(made[:, 2:], text)
    assert TEXT(x, made).shape == (3, 3)


class Line:
    """A maker whose inputs are its θ plus its latents."""

    def initial(self):
        return vector(1, 2)

    def latents(self, labels, x, rng):
        return [torch.zeros(len(labels), 2, dtype=torch.float64)]

    def __call__(self, theta, latents, labels):
        return theta + latents[0]


def test_worked_meta_step():
    synthesiser = Synthesiser(Line(), meta_rate=0.2)
    synthesiser.meta_update(vector(2, 0))
    torch.testing.assert_close(synthesiser.theta, vector(1.2, 1.6), **exactly)


def test_syntheses_are_counted():
    synthesiser, counts = Synthesiser(Line()), []

    def loss(inputs):
        counts.append(synthesiser.syntheses)
        return inputs.square().sum()

    for _ in range(2):
        synthesiser.synthesise(loss, Line().latents(LABELS, None, rng()), LABELS)
    assert counts == [1, 1, 2, 2]


def test_the_best_batch_is_kept_and_both_rates_apply():
    synthesiser = Synthesiser(Line(), steps=3, generator_lr=0.5, latent_lr=0.25, meta_rate=1.0)
    seen = []

    def loss(inputs):
        seen.append(inputs.detach()[0])
        return (inputs - vector(0.2, 2)).abs().sum()

    best = synthesiser.synthesise(loss, Line().latents(LABELS, None, rng()), LABELS)
    first = torch.stack(seen)[:, 0]  # θ' goes by 0.5 a step, the latents by 0.25; the second step goes too far
    torch.testing.assert_close(first, vector(1, 0.25, -0.5))
    torch.testing.assert_close(best, seen[1].expand(2, -1))
    assert not best.requires_grad
    one_step = Synthesiser(Line(), steps=1, generator_lr=0.5, latent_lr=0.25, meta_rate=0.5)
    one_step.synthesise(loss, Line().latents(LABELS, None, rng()), LABELS)
    torch.testing.assert_close(one_step.theta, vector(0.75, 2))  # half of the way to θ' = (0.5, 2)


@pytest.mark.parametrize(
    ("loss", "made"),
    [(lambda inputs: inputs.sum() / 0, None),
     (lambda inputs: (inputs * 0).sqrt().sum(), vector(1, 2).expand(2, -1))],  # as xlogy's slope at 0 is infinite
    ids=["loss", "gradient"],
)  # fmt: skip
def test_what_is_not_finite_leaves_the_generator_sound(loss, made):
    synthesiser = Synthesiser(Line(), steps=2)
    found = synthesiser.synthesise(loss, Line().latents(LABELS, None, rng()), LABELS)
    assert torch.equal(found, made) if made is not None else found is None
    assert torch.equal(synthesiser.theta, vector(1, 2))

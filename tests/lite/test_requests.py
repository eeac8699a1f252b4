"""What servers ask for: the same bits alone and in company, and the steps that torch's own optimisers take;
gradients of losses that are written by hand have the bits of autograd's.
"""

from __future__ import annotations

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from asyncfl_lite import Config, run
from asyncfl_lite.algorithms.losses import labelled_distillation_loss, multi_teacher_loss, uncertainty_aware_loss
from asyncfl_lite.models import handwritten_gradients as handwritten
from asyncfl_lite.models.compute import (
    MODELS_AT_ONCE,
    Answers,
    Descent,
    Minibatches,
    Optimiser,
    fulfilled,
    fulfilled_now,
)
from asyncfl_lite.models.steps import losses_and_gradient
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.tasks import Task


def mlp() -> nn.Sequential:  # where matrices of odd sizes lie in memory may decide how a library rounds their products
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 5))


def cnn() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(24, 5))


def drawn(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def answers(model: VectorModel, seed: int, count: int = 3, **more) -> Answers:
    inputs = drawn(32, 1, 3, 4, seed=seed)
    if not more.get("one_for_all", True):
        inputs = torch.stack([inputs + index for index in range(count)])
    return Answers(model, drawn(count, model.num_parameters, seed=-seed - 1).unbind(), inputs, [None] * count, **more)


@pytest.mark.parametrize("build", [mlp, cnn])
@pytest.mark.parametrize("more", [{}, {"one_for_all": False}, {"batch_size": 7}], ids=str)
def test_answers_are_those_of_each_model(build, more):
    model = VectorModel(build())
    requests = [answers(model, seed, count=2 + seed, **more) for seed in range(MODELS_AT_ONCE // 3)]
    assert (requests[0].shared is None) == (build is cnn)
    for request, found in zip(requests, fulfilled(requests), strict=True):
        assert len(found) == len(request.xs)
        for index, (x, outputs) in enumerate(zip(request.xs, found, strict=True)):
            inputs = request.inputs if request.one_for_all else request.inputs[index]
            torch.testing.assert_close(outputs, model.outputs(x, inputs), rtol=1e-4, atol=1e-4)
        assert all(torch.equal(*pair) for pair in zip(found, fulfilled_now(request), strict=True))


def descent(model: VectorModel, seed: int, kind: str = "adam", sizes=(8, 8, 8, 4), **more) -> Descent:
    """A descent of FedEcho's kind: three minibatches of 8 and one of 4, of 20 inputs."""
    generator = torch.Generator().manual_seed(seed)
    indices = torch.randint(20, (28,), generator=generator)
    given = {
        "start": 0.3 * drawn(model.num_parameters, seed=seed),
        "batches": Minibatches(drawn(20, 1, 3, 4, seed=seed + 50), indices, sizes),
        "tables": (drawn(20, 5, seed=seed + 60).softmax(-1),),
        "given": (torch.rand(28, generator=generator),),
        "loss": uncertainty_aware_loss,
        "optimiser": Optimiser(kind, 0.05, clip=0.4),
    }
    return Descent(model, **{**given, **more})


def by_torch(request: Descent, build) -> torch.Tensor:
    """Where torch's own optimiser leads the module."""
    module = build()
    request.model.load(module, request.start)
    lr, decay, clip = request.optimiser.lr, request.optimiser.weight_decay, request.optimiser.clip
    kind = torch.optim.Adam if request.optimiser.kind == "adam" else torch.optim.SGD
    optimiser = kind(module.parameters(), lr=lr, weight_decay=decay)
    batches = request.batches
    compared = [*(table[batches.rows] for table in request.tables), *request.given]
    for indices, *rows in zip(*(part.split(batches.sizes) for part in (batches.indices, *compared)), strict=True):
        optimiser.zero_grad()
        request.loss(module(batches.inputs[indices]), *rows).backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(module.parameters(), clip)
        optimiser.step()
    return request.model.flatten(module)[0]


LABELLED = {
    "loss": partial(labelled_distillation_loss, temperature=3.0),
    "tables": (drawn(20, 5, seed=1), torch.arange(20) % 5),
    "given": (torch.linspace(0.1, 0.9, 28, dtype=torch.float64),),
}
SEVERAL = {"loss": partial(multi_teacher_loss, temperature=2.0), "tables": (drawn(20, 5, seed=2),), "given": ()}


@pytest.mark.parametrize("build", [mlp, cnn])
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"kind": "sgd"},
        {"optimiser": Optimiser("adam", 0.01, weight_decay=0.1)},
        {"kind": "sgd", **LABELLED},
        SEVERAL,
    ],
    ids=["adam", "sgd", "decay", "labelled", "several"],
)
def test_descents_take_torchs_steps_and_have_the_same_bits_in_company(build, more):
    model = VectorModel(build())
    requests = [descent(model, seed, **more) for seed in range(4)]
    assert (requests[0].shared is None) == (build is cnn)
    if build is mlp:
        assert len({request.shared for request in requests}) == 1
    for request, found in zip(requests, fulfilled(requests), strict=True):
        torch.testing.assert_close(found, by_torch(request, build), rtol=1e-4, atol=1e-5)
        assert torch.equal(found, fulfilled_now(request)) and not torch.equal(found, request.start)


def test_plain_steps_may_have_rates_of_their_own():
    model = VectorModel(mlp())
    slow, fast = (descent(model, 0, optimiser=Optimiser("sgd", lr)) for lr in (0.01, 0.1))
    assert slow.shared == fast.shared
    found = [one - slow.start for one in fulfilled([slow, fast])]
    assert found[1].norm() > 3 * found[0].norm()


def test_what_differs_does_not_share():
    model, other = VectorModel(mlp()), VectorModel(nn.Sequential(*mlp(), nn.Tanh()))
    drops = VectorModel(nn.Sequential(nn.Flatten(), nn.Linear(12, 8), nn.Dropout(), nn.Linear(8, 5)))
    first = descent(model, 0).shared
    different = [
        descent(other, 0),
        descent(model, 0, optimiser=Optimiser("adam", 0.01)),
        descent(model, 0, sizes=[9, 9, 9]),
        descent(model, 0, **SEVERAL),
        descent(VectorModel(mlp().double()), 0, start=torch.zeros(149, dtype=torch.float64)),
    ]
    assert all(request.shared != first for request in different)
    alone = [descent(drops, 0, train=True), descent(model, 0, buffers=torch.zeros(3))]
    assert all(request.shared is None for request in alone) and descent(drops, 0).shared is not None


def test_results_come_in_the_order_of_requests():
    model, image = VectorModel(mlp()), VectorModel(cnn())
    requests = [descent(model, 0), answers(model, 0), descent(image, 1), descent(model, 2), answers(model, 1)]
    for request, result in zip(requests, fulfilled(requests), strict=True):
        alone = fulfilled_now(request)
        pairs = [(result, alone)] if isinstance(request, Descent) else zip(result, alone, strict=True)
        assert all(torch.equal(*pair) for pair in pairs)
    assert fulfilled([]) == []


def test_a_mean_over_a_minibatch_is_of_its_own_rows():
    """By hand: the first minibatch has samples 2 and 0, the second, shorter one sample 1."""
    batches = Minibatches(torch.zeros(3, 1), torch.tensor([2, 0, 1]), [2, 1])
    assert batches.means(torch.tensor([1.0, 2.0, 6.0])).tolist() == [3.5, 3.5, 2.0]


TASK = Task.from_tensors(torch.zeros(4, 3), torch.arange(4), torch.zeros(4, 3), torch.arange(4))
TEMPERATURES = st.sampled_from([1.0, 0.7, 3.0])


def by_autograd(loss, weights, logits, *compared):
    leaf = logits.detach().requires_grad_()
    return torch.autograd.grad((loss(leaf, *compared) * weights).sum(), leaf)[0]


@st.composite
def cases(draw):
    """A loss, the weights of its values, logits, and what they are compared with."""
    models, rows, classes = draw(st.integers(1, 4)), draw(st.integers(1, 33)), draw(st.integers(2, 12))
    rng = torch.Generator().manual_seed(draw(st.integers(0, 10_000)))
    dtype = draw(st.sampled_from([torch.float32, torch.float64]))
    logits, teacher = (3 * torch.randn(2, models, rows, classes, generator=rng)).to(dtype)
    labels = torch.randint(classes, (models, rows), generator=rng)
    weight = torch.rand(models, rows, generator=rng, dtype=torch.float64)
    over_models = torch.rand(models, generator=rng).to(dtype)
    which, temperature = draw(st.sampled_from(["entropy", "FedEcho", "FedADT", "FedRevive"])), draw(TEMPERATURES)
    if which == "entropy":
        losses = TASK.losses
        return losses, over_models.repeat_interleave(rows), logits.flatten(0, 1), labels.flatten()
    if which == "FedEcho":
        mixed = draw(st.sampled_from([0.3, weight.to(dtype)]))
        return uncertainty_aware_loss, over_models, logits, teacher.softmax(-1), mixed
    if which == "FedADT":
        loss = partial(labelled_distillation_loss, temperature=temperature)
        return loss, over_models, logits, teacher, labels, weight
    return partial(multi_teacher_loss, temperature=temperature), over_models, logits, teacher


@given(cases())
@settings(max_examples=200, deadline=None)
def test_a_gradient_has_the_bits_of_autograd(case):
    loss, weights, logits, *compared = case
    _, gradient = losses_and_gradient(loss, weights, logits, *compared)
    assert torch.equal(gradient, by_autograd(loss, weights, logits, *compared))


def test_all_four_are_written_by_hand_and_a_loss_of_ones_own_is_left_to_autograd(monkeypatch):
    """Otherwise the test above would compare autograd with itself."""
    monkeypatch.setattr(torch.autograd, "grad", None)
    logits, labels = torch.randn(2, 5, 3), torch.zeros(2, 5, dtype=torch.int64)
    ones, weight = torch.ones(2), torch.full((2, 5), 0.5)
    losses_and_gradient(uncertainty_aware_loss, ones, logits, logits.softmax(-1), weight)
    losses_and_gradient(labelled_distillation_loss, ones, logits, logits, labels, weight)
    losses_and_gradient(multi_teacher_loss, ones, logits, logits)
    losses_and_gradient(TASK.losses, torch.ones(5), logits[0], labels[0])
    with pytest.raises(TypeError, match="not callable"):
        losses_and_gradient(lambda logits: logits.square().mean((-2, -1)), ones, logits)


def test_a_subclass_with_losses_of_its_own_does_not_inherit_the_gradient():
    class Halved(type(TASK)):
        def losses(self, outputs, labels):
            return super().losses(outputs, labels) / 2

    task = Halved.from_tensors(torch.zeros(4, 3), torch.arange(4), torch.zeros(4, 3), torch.arange(4))
    logits, labels, weights = torch.randn(5, 10), torch.arange(5), torch.ones(5)
    losses, gradient = losses_and_gradient(task.losses, weights, logits, labels)
    assert torch.equal(losses, task.losses(logits, labels))
    assert torch.equal(gradient, by_autograd(task.losses, weights, logits, labels))


@pytest.mark.parametrize("method", ["fedbuff", "fedecho"])
def test_a_run_has_the_same_bits_with_and_without_hand_written_gradients(method, monkeypatch):
    """Adam is given the gradient itself; plain gradient steps of chains are rounded differently (see test_client)."""
    settings = {"client_optimizer": "adam", "client_lr": 0.01, "rounds": 4, "clients": 10, "concurrency": 5}
    config = Config(task="digits", algorithm=method, **settings)
    by_hand = run(config)
    monkeypatch.setattr(handwritten, "ENABLED", False)
    assert torch.equal(by_hand.x, run(config).x)

"""Hand-written gradients of losses have the bits of autograd, for all shapes and settings."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfl_lite import Config, run
from asyncfl_lite.algorithms.losses import labelled_distillation_loss, multi_teacher_loss, uncertainty_aware_loss
from asyncfl_lite.models import fast
from asyncfl_lite.models.steps import losses_and_gradient
from asyncfl_lite.tasks import Task

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
    monkeypatch.setattr(fast, "ENABLED", False)
    assert torch.equal(by_hand.x, run(config).x)

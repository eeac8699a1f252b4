"""Models of one's own: random layers, frozen parts, models that cannot be vectorised, and mistakes in one line each."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest
import torch
from own import SMALL, points
from torch import nn
from torch.func import vmap
from torch.nn import functional

from asyncfl_lite import Config, Run, run
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.models.probe import takes_one, why_alone
from asyncfl_lite.models.vectors import VectorModel


def layers(*middle: nn.Module, last: int = 3) -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(8, 6), *middle, nn.Linear(6, last))


apply = nn.Linear.forward


def of(forward) -> nn.Module:
    """A linear layer whose forward pass is ``forward(layer, inputs)``."""
    return type("Own", (nn.Linear,), {"forward": forward, "calls": 0})(8, 3)


class Functional(nn.Module):
    """Dropout as a function, behind layers that are no chain."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last, self.drop = nn.Linear(8, 6), nn.Linear(6, 3), nn.Dropout(0.2)

    def forward(self, inputs):
        return self.last(functional.dropout(self.first(self.drop(inputs)).relu(), 0.4, self.training))


DRAW = {
    "a layer of a chain": lambda: layers(nn.ReLU(), nn.Dropout(0.4)),
    "functions": Functional,
    "noise": lambda: of(lambda layer, x: apply(layer, x + torch.randn_like(x) if layer.training else x)),
}


@pytest.mark.parametrize("name", DRAW)
def test_a_model_that_draws_is_trained_one_by_one_with_the_same_bits_each_time(own, name):
    config, before = own(DRAW[name]), torch.get_rng_state()
    first = run(config, task=points())
    assert first.summary["training"] == "one by one"
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(7)
    assert torch.equal(run(config, task=points()).x, first.x)
    with pytest.raises(ConfigError, match="^vectorize: a model that draws random numbers trains one by one, got 'on'$"):
        run(own(DRAW[name], vectorize="on"), task=points())


def frozen_first() -> nn.Module:
    """A network whose first half stays: a layer, BatchNorm with statistics from elsewhere, dropout."""
    body = nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.5))
    body[1].running_mean.fill_(0.3)
    return nn.Sequential(body.requires_grad_(False), nn.Linear(6, 3))


def test_a_frozen_part_is_used_as_it_came():
    """By its running statistics, without dropout; gradients still go through it."""
    module = frozen_first()
    model = VectorModel(module)
    assert model.num_buffers == 0 and [slot.name for slot in model.parameter_slots] == ["1.weight", "1.bias"]
    inputs = torch.randn(5, 8)
    x, buffers = model.flatten()
    expected = module.eval()(inputs)
    torch.testing.assert_close(model(x, inputs, buffers, train=True), expected)
    torch.testing.assert_close(model(x, inputs, buffers), expected)
    together = vmap(lambda row: model(row, inputs, train=True))(torch.stack([x, x]))
    torch.testing.assert_close(together[1], expected)


class Gru(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru, self.last = nn.GRU(1, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, inputs):
        return self.last(self.gru(inputs[..., None])[0][:, -1])


ALONE = {
    "gru": (Gru, "aten::gru"),
    "item": (lambda: of(lambda layer, x: apply(layer, x / (1 + x.abs().max().item()))), r"calling \.item\(\)"),
    "branch": (lambda: of(lambda layer, x: apply(layer, x if x.sum() > 0 else -x)), "data-dependent control flow"),
    # which a filled-up minibatch would falsify without a word
    "batchwise": (lambda: of(lambda layer, x: apply(layer, x - x.mean(0))), "depends on the rest of its minibatch"),
}


@pytest.mark.parametrize("name", ALONE)
def test_a_model_that_cannot_be_vectorised_is_trained_one_by_one_which_a_line_says(own, name):
    make, why = ALONE[name]
    config = own(make)
    with pytest.warns(UserWarning, match=f"^model: 'own' is trained one by one.*{why}") as said:
        result = run(config, task=points())
    assert len(said) == 1 and "\n" not in str(said[0].message)
    assert result.summary["training"] == "one by one" and result.summary["versions"] == 2
    with pytest.raises(ConfigError, match=f"^vectorize: 'own' trains one by one .*{why}.*got 'on'$"):
        run(own(make, vectorize="on"), task=points())
    with warnings.catch_warnings(action="error"):
        assert torch.equal(run(own(make, vectorize="off"), task=points()).x, result.x)


def test_a_model_that_vmap_computes_otherwise_is_found():
    """It sees in its inputs' type whether it is vectorised."""
    sees = of(lambda layer, x: apply(layer, x) * (2 if torch._C._functorch.is_batchedtensor(x) else 1))
    assert why_alone(VectorModel(sees), torch.randn(4, 8)) == "torch.func.vmap gives other gradients"
    assert why_alone(VectorModel(of(apply)), torch.randn(4, 8)) == ""


@pytest.mark.parametrize("batch_size", [3, 1])
def test_batch_norm_takes_a_last_minibatch_of_one_sample(own, batch_size):
    """Ten samples in threes: the last is alone, and has no spread to be normalised by."""
    config = own(lambda: layers(nn.BatchNorm1d(6), nn.ReLU()), batch_size=batch_size)
    with pytest.warns(UserWarning, match="client 0's last; BatchNorm goes by its running statistics there$") as said:
        result = run(config, task=points())
    assert len(said) == 1 and torch.isfinite(result.x).all()
    with warnings.catch_warnings(action="error"):
        run(config.model_copy(update={"batch_size": 4}), task=points())


def test_one_sample_goes_by_running_statistics_and_leaves_them():
    module = layers(nn.BatchNorm1d(6))
    model = VectorModel(module)
    x, buffers = model.flatten()
    buffers[:6] = 0.5
    inputs, before = torch.randn(3, 8), buffers.clone()
    assert not takes_one(model, inputs)
    model.steady_on_one()
    assert takes_one(model, inputs)
    torch.testing.assert_close(model(x, inputs[:1], buffers, train=True), model(x, inputs[:1], buffers))
    assert torch.equal(buffers, before)
    model(x, inputs, buffers, train=True)
    assert not torch.equal(buffers, before)


def counted(layer, x):
    layer.calls += layer.training
    return apply(layer, x) * (1 + layer.calls)


def counted_for_tests(layer, x):
    layer.calls += layer.training
    return apply(layer, x) * (1 if layer.training else 1 + layer.calls)


def with_a_hook() -> nn.Module:
    net = layers()
    net[1].weight.register_hook(lambda gradient: 0 * gradient)
    return net


def keeping(**attributes: object) -> nn.Module:
    net = layers()
    vars(net).update(attributes)
    return net


def drawn_in_build(draw) -> nn.Module:
    net = layers()
    net[1].weight.data.mul_(draw())
    return net


MISTAKES = {
    "too few outputs": (lambda: layers(last=2), r"must return logits \(2, 3\), got \(2, 2\) of float32"),
    "too many outputs": (lambda: layers(last=4), r"must return logits \(2, 3\), got \(2, 4\) of float32"),
    "an axis too many": (lambda: nn.Sequential(layers(), nn.Unflatten(1, (3, 1))), r"got \(2, 3, 1\)"),
    "a tuple": (lambda: of(lambda layer, x: (apply(layer, x), x)), r"must return a tensor of logits \(2, 3\), got a tuple"),
    "doubles": (lambda: layers().double(), r"parameters of 'own' must be float32, 1\.weight is float64"),
    "lazy": (lambda: nn.Sequential(nn.LazyLinear(3)), r"has a lazy layer \(0\.weight has no shape yet\)"),
    "nothing to train": (lambda: nn.Flatten(), r"has no parameters to train \(it has none at all\)"),
    "all frozen": (lambda: layers().requires_grad_(False), "requires_grad is False for all"),
    "a mistake in build": (lambda: layers(5), r"cannot be built for inputs \(8,\) \(TypeError"),
    "no module": (lambda: 3, r"build\(\) of 'own' must return a torch.nn.Module, got int"),
    "wrong inputs": (lambda: nn.Linear(9, 3), r"fails in evaluation mode on inputs \(2, 8\) \(RuntimeError: .*mat1"),
    "dropout in use": (lambda: of(lambda layer, x: functional.dropout(apply(layer, x))), r"draws random numbers in evaluation mode"),
    "other generators": (lambda: of(lambda layer, x: apply(layer, x) * (random.random() if layer.training else 1)),
                         r"draws from Python's or numpy's random numbers"),
    "calls that count": (lambda: of(counted), r"it keeps count of its calls"),
    "calls that count in tests": (lambda: of(counted_for_tests), r"it keeps count of its calls"),
    "batches that count": (lambda: layers(nn.BatchNorm1d(6, momentum=None)), r"it keeps count of its calls"),
    "what cannot be copied": (lambda: keeping(lines=(line for line in "abc")), r"'own' cannot be copied \(TypeError: .*generator"),
    "a hook on a parameter": (with_a_hook, "has a hook on its parameter 1.weight, which no client would"),
    "numpy in build": (lambda: drawn_in_build(np.random.rand), r"build\(\) of 'own' draws from .*\(numpy.random\)"),
    "random in build": (lambda: drawn_in_build(random.random), r"build\(\) of 'own' draws from .*\(random\)"),
}  # fmt: skip


def test_a_model_too_large_for_memory_is_said_before_it_is_made(monkeypatch):
    monkeypatch.setattr("asyncfl_lite.models.base.free_memory", lambda: 10**9)
    config = Config(**SMALL, model_settings={"hidden": [10**9]})
    with pytest.raises(ConfigError, match=r"'mlp' would make a tensor of shape \(1000000000, 8\), 32.0 GB; 1.0 GB of"):
        Run(config, points())


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_before_anything_is_trained(own, name):
    make, line = MISTAKES[name]
    with pytest.raises(ConfigError, match=f"^model: .*{line}") as raised:
        Run(own(make), points())
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 200

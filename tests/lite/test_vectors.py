"""Modules as flat vectors: there and back, nothing shared that should not be."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from asyncfl_lite.models import CNN, MLP, ResNet
from asyncfl_lite.models.vectors import VectorModel, all_finite

SPECS = [MLP(), CNN(), CNN(norm="group"), CNN(norm="batch"), ResNet(width=4), ResNet(width=4, norm="batch")]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_there_and_back_with_autograds_gradient(spec):
    module = spec.build((1, 8, 8), 10).double()
    model = VectorModel(module)
    x, buffers = model.flatten()
    assert x.shape == (sum(p.numel() for p in module.parameters()),) == (model.num_parameters,)
    assert buffers.shape == (model.num_buffers,)
    parts = model.unflatten(x)
    assert list(parts) == [name for name, _ in module.named_parameters()]
    assert torch.equal(torch.cat([part.flatten() for part in parts.values()]), x)
    copy = spec.build((1, 8, 8), 10).double()
    model.load(copy, x, buffers)
    for name, value in module.state_dict().items():
        assert torch.equal(copy.state_dict()[name], value)
    inputs = torch.randn(5, 1, 8, 8, dtype=torch.float64)
    outputs = module.eval()(inputs)
    torch.testing.assert_close(model.outputs(x, inputs, buffers), outputs)
    value, gradient = model.gradient(x, inputs, lambda outputs: outputs.square().mean(), buffers)
    loss = outputs.square().mean()
    loss.backward()
    expected = torch.cat([p.grad.reshape(-1) for p in module.parameters()])
    torch.testing.assert_close(value, loss.detach())
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-12)


def test_which_part_is_what():
    model = VectorModel(nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)))
    assert [slot.name for slot in model.parameter_slots] == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert [(slot.start, slot.stop) for slot in model.parameter_slots] == [(0, 6), (6, 9), (9, 12), (12, 15)]
    assert [slot.name for slot in model.buffer_slots] == ["1.running_mean", "1.running_var"]
    assert model.variance_mask.tolist() == [False] * 3 + [True] * 3


def test_vectors_are_copies_and_modules_too():
    module = nn.Linear(3, 2)
    model = VectorModel(module)
    x, _ = model.flatten()
    before = x.clone()
    with torch.no_grad():
        module.weight += 1  # the module given is not the model's
    assert torch.equal(model.flatten()[0], before)
    x += 5  # nor is the vector given out
    assert torch.equal(model.flatten()[0], before)
    model.load(module, x)
    optimiser = torch.optim.SGD(module.parameters(), lr=1.0)
    module(torch.ones(1, 3)).sum().backward()
    optimiser.step()
    assert torch.equal(x, before + 5)


def test_only_a_model_that_pools_wants_its_images_channels_last():
    images = torch.rand(4, 3, 8, 8)
    for spec, wanted in ((CNN(norm="batch"), True), (ResNet(width=4), False), (MLP(), False)):
        model = VectorModel(spec.build((3, 8, 8), 10))
        x, buffers = model.flatten()
        laid_out = model.laid_out(images)
        assert laid_out.is_contiguous(memory_format=torch.channels_last) is wanted
        torch.testing.assert_close(model.outputs(x, images, buffers), model(x, images, buffers))
    vectors = torch.rand(4, 3)
    assert VectorModel(CNN().build((3, 8, 8), 10)).laid_out(vectors) is vectors


def test_training_mode_moves_the_buffers_it_is_given_and_no_others():
    model = VectorModel(CNN(norm="batch").build((1, 8, 8), 10))
    x, buffers = model.flatten()
    given = buffers.clone()
    model(x, torch.randn(9, 1, 8, 8), given, train=True)
    assert not torch.equal(given, buffers)
    assert torch.equal(model.flatten()[1], buffers)
    with pytest.raises(ValueError, match="^buffers:"):
        model(x, torch.randn(9, 1, 8, 8), train=True)


def test_tied_weights_stay_tied():
    module = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    module[1].weight = module[0].weight
    model = VectorModel(module)
    x, _ = model.flatten()
    assert x.shape == (9,)
    inputs = torch.randn(4, 3)
    weight = 2 * x.view(3, 3)
    torch.testing.assert_close(model(2 * x, inputs), inputs @ weight.T @ weight.T)


@pytest.mark.parametrize(
    "values",
    [[], [1.0, -2.0], [3e38, 3e38], [1.0, math.nan], [math.inf, 1.0], [math.inf, -math.inf], [3e38, -math.inf]],
)
def test_a_sum_tells_whether_all_are_finite_as_each_number_does(values):
    assert all_finite(torch.tensor(values)) == all(map(math.isfinite, values))

"""Models for images: the papers' sizes, shapes for any image, norms, relatives."""

from __future__ import annotations

import pytest
import torch

from asyncfl_lite.models.base import InputSpec, forward_flop
from asyncfl_lite.models.images import CNN, FEMNISTCNN, MLP, FLGoCNN, ResNet
from asyncfl_lite.models.vectors import VectorModel

GREY, COLOUR = (1, 28, 28), (3, 32, 32)


@pytest.mark.parametrize(
    ("spec", "shape", "classes", "parameters"),
    [
        (ResNet(width=64, blocks="resnet18", norm="batch"), COLOUR, 10, 11_173_962),  # the papers' 11.17 M
        (ResNet(width=64, blocks="resnet18", norm="batch"), COLOUR, 100, 11_220_132),
        (ResNet(width=64, blocks="resnet18", norm="group"), COLOUR, 10, 11_173_962),  # as many weights and biases
        (ResNet(width=64, blocks="resnet18", norm="none"), COLOUR, 10, 11_173_962 - 2 * 4_800),
        (ResNet(width=64, blocks="resnet18", norm="tracker"), COLOUR, 10, 11_173_962 - 2 * 4_800),
        (FLGoCNN(), GREY, 10, 1_663_370),
        (FLGoCNN(), COLOUR, 10, 797_962),
        (FEMNISTCNN(), GREY, 62, 421_058),  # FedRevive's 421k
        (MLP(), (1, 8, 8), 10, 64 * 64 + 64 + 64 * 10 + 10),
    ],
    ids=str,
)
def test_parameters_are_the_papers(spec, shape, classes, parameters):
    assert sum(part.numel() for part in spec.build(shape, classes).parameters()) == parameters


def test_femnists_layers():
    kinds = [type(one).__name__ for one in FEMNISTCNN(norm="batch").build(GREY, 62)]
    block, pool = ["Conv2d", "BatchNorm2d", "ReLU"], ["MaxPool2d"]
    head = ["Flatten", "Linear", "ReLU", "Linear", "ReLU", "Linear"]
    assert kinds == [*block, *block, *pool, *block, *pool, *head]
    assert VectorModel(FEMNISTCNN(norm="batch").build(GREY, 62)).num_buffers == 2 * 3 * 64
    assert VectorModel(FEMNISTCNN().build(GREY, 62)).num_buffers == 0


def test_resnet18_keeps_32_pixels_in_its_stem_and_ends_at_4():
    module = ResNet(width=8, blocks="resnet18").build(COLOUR, 10)
    sides = []
    for layer in module:
        layer.register_forward_hook(lambda _layer, _inputs, output: sides.append(output.shape[-1]))
    module(torch.zeros(1, *COLOUR))
    assert sides[:3] == [32, 32, 32] and sides[3:11] == [32, 32, 16, 16, 8, 8, 4, 4]


def test_flgos_cost_is_the_measured_one():
    spec = InputSpec(GREY, 10)
    assert forward_flop(VectorModel(FLGoCNN().build(GREY, 10)), spec) == pytest.approx(24.6e6, rel=0.05)


@pytest.mark.parametrize("model", [MLP(), CNN(), ResNet()])
def test_the_count_of_operations_is_torchs_own(model):
    from torch.utils.flop_counter import FlopCounterMode

    network, counter = VectorModel(model.build(GREY, 10)), FlopCounterMode(display=False)
    x, buffers = network.flatten()
    with counter, torch.no_grad():
        network(x, torch.zeros(1, *GREY), buffers)
    assert forward_flop(network, InputSpec(GREY, 10)) == counter.get_total_flops() > 0

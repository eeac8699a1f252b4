"""The count of operations behind the paper tier's estimate in days."""

from __future__ import annotations

import re

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from asyncfl_lite import Config
from asyncfl_lite.models import MODELS
from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.measure import operations as count
from conftest import ROOT


def forward(model: torch.nn.Module, shape: tuple[int, ...]) -> float:
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.to("meta")(torch.zeros(1, *shape, device="meta"))
    return counter.get_total_flops() / 1e9


@pytest.mark.parametrize("blocks", count.CLIP_GFLOP)
def test_forward_passes_of_clips(blocks):
    network = MODELS.get("resnet3d")(width=64, blocks=blocks, norm="batch").build((3, 8, 112, 112), 51)
    assert forward(network, (3, 8, 112, 112)) / 8 == pytest.approx(count.CLIP_GFLOP[blocks], abs=0.01)


@pytest.mark.parametrize(("model", "shape"), [("flgo_cnn", (3, 32, 32)), ("femnist_cnn", (1, 28, 28))])
def test_forward_passes_of_images(model, shape):
    assert forward(MODELS.get(model)().build(shape, 10), shape) == pytest.approx(count.GFLOP[model], rel=0.1)


def test_a_run_by_hand():
    """FedBuff on HMDB51: 200 versions of 4 updates, 3 epochs of 297.5 clips at 41 GFLOP and thrice that."""
    config = Config(preset="kuiper", task="hmdb51", algorithm="fedbuff", eval_every=5, initial="random")
    trained, tested = 800 * 3 * 3570 / 12 * 3, 200 / 5 * 1530
    assert count.federation(config) == pytest.approx((trained + tested) * 8 * 5.09e9, rel=0.001)
    assert count.chain(config) == 0


def test_the_documented_numbers_are_the_counted_ones():
    parts = count.operations(expand_grid(ROOT / "asyncfl_reproduction/cells/paper.yaml"))
    total = parts.sum()
    text = " ".join((ROOT / "docs/running.md").read_text().split())
    assert f"{total / 1e21:.1f}·10²¹ operations" in text
    assert f"{100 * parts['chains of teachers'] / total:.0f} %" in text
    fast, slow = (round(count.days(total, rate)) for rate in (300e12, 100e12))
    assert re.search(rf"{fast} to {slow} days", text)
    without = parts.drop("chains of teachers").sum()
    assert f"{count.days(without, 300e12):.0f} to {count.days(without, 100e12):.0f} days" in text

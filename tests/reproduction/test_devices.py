"""`device: auto`: this machine's device, recorded as what it was, and no part of what a run is."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from asyncfl_lite import Config, load_result, run
from asyncfl_lite.base.devices import actual
from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.grid.cost import estimate, kind_of

PAPER = Path(__file__).parents[2] / "asyncfl_reproduction/cells/paper.yaml"
SMALL = {"clients": 10, "concurrency": 5, "buffer_size": 2, "rounds": 2}


@pytest.fixture(params=[False, True], ids=["without CUDA", "with CUDA"])
def cuda(request, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: request.param)
    return request.param


def test_auto_is_what_the_machine_has_and_a_named_device_stays(cuda):
    assert actual("auto") == ("cuda" if cuda else "cpu")
    assert [actual(name) for name in ("cpu", "cuda", "cuda:1")] == ["cpu", "cuda", "cuda:1"]


def test_a_hash_does_not_depend_on_the_machine(cuda):
    configs = [Config(**SMALL, device=device) for device in ("auto", "cpu", "cuda")]
    assert len({config.hash for config in configs}) == 1
    assert configs[0].device == configs[0].with_seed(1).device == "auto", "the machine that runs it chooses"
    assert kind_of(configs[0])[-1] == actual("auto"), "an estimate goes by what was recorded on such a device"


def test_a_result_records_the_device_that_it_ran_on(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    result = run(Config(**SMALL, device="auto"))
    assert result.config.device == "cpu"
    result.save(tmp_path)
    assert load_result(tmp_path).config.device == "cpu"
    assert result.summary == run(Config(**SMALL, device="cpu")).summary


def test_the_paper_tier_runs_on_either_and_can_be_estimated_without_a_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    cells = expand_grid(PAPER)
    assert {cell.config.device for cell in cells} == {"auto"}
    made = {"task": "digits", "task_settings": {}, "model": "mlp", "model_settings": {}, "rounds": 2}
    (cell,) = [cell for cell in cells if cell.name == "fedecho/table2/large-dir0.1/fedbuff"]
    given = cell.config.as_dict() | made
    small = type(cell)(cell.name, cell.tier, Config(**given), (0,))
    assert not estimate([small], tmp_path).unknown

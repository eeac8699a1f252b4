"""What the README shows works as it is written there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from asyncfl_lite import Config, run
from asyncfl_lite.algorithms import ALGORITHMS

README = (Path(__file__).parent.parent / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


def test_python_blocks_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in blocks("python"):
        exec(block, names)
    assert names["result"].config.rounds == 100
    torch.testing.assert_close(names["method"].x, torch.tensor([1.1, 0.2]))
    assert (tmp_path / "runs/mine/result.json").exists()


@pytest.fixture
def window():
    """The README's method, registered for one test."""
    (diff,) = blocks("diff")
    added = diff.split("--- asyncfl_lite")[0].splitlines()[1:]
    exec("\n".join(line[1:] for line in added), {"__name__": "window"})
    yield ALGORITHMS.get("window")
    del ALGORITHMS._entries["window"]


def test_the_example_of_adding_a_method_works(window, tmp_path):
    config = Config(algorithm="window", settings={"length": 5}, horizon=20.0, checkpoint_every=10)
    result = run(config, checkpoint=tmp_path / "run.pt")
    assert result.summary["best_accuracy"] > 0.3
    assert result.summary["client_updates"] == result.summary["versions"]


def test_the_example_computes_the_worked_numbers(window):
    """Specification §7: with two models, (2, 2), (0, 4), (4, 0) give (2, 2), (1, 3), (2, 2)."""
    from asyncfl_lite import Update

    method = window(length=2)
    method.start(torch.zeros(2))
    seen = []
    for model in ((2.0, 2.0), (0.0, 4.0), (4.0, 0.0)):
        method.receive(Update(client=0, delta=torch.tensor(model), start_version=0))
        seen.append(method.x.tolist())
    assert seen == [[2, 2], [1, 3], [2, 2]]


def test_commands_that_it_names_exist():
    makefile = (Path(__file__).parent.parent / "Makefile").read_text()
    for target in set(re.findall(r"make ([a-z]+)", README)):
        assert re.search(rf"^{target}:", makefile, re.M), target

"""What the README shows works as it is written there."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pandas as pd
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


def added(path: str) -> str:
    """What the README's diff adds to a new file."""
    (diff,) = blocks("diff")
    part = diff.split(f"+++ {path}\n")[1]
    lines = itertools.takewhile(lambda line: line.startswith("+") and not line.startswith("+++"), part.splitlines())
    return "\n".join(line[1:] for line in lines)


@pytest.fixture
def fedmedian(monkeypatch):
    """The README's method, added as its diff adds it, for one test."""
    from asyncfl_lite import algorithms

    names = {"__name__": "fedmedian"}
    exec(added("asyncfl_lite/algorithms/fedmedian.py"), names)
    monkeypatch.setattr(algorithms, "FedMedian", names["FedMedian"], raising=False)
    yield ALGORITHMS.get("fedmedian")
    ALGORITHMS.remove("fedmedian")


def test_the_example_of_adding_a_method_works(fedmedian, tmp_path):
    config = Config(algorithm="fedmedian", buffer_size=3, horizon=20.0, checkpoint_every=10)
    result = run(config, checkpoint=tmp_path / "run.pt")
    assert result.summary["best_accuracy"] > 0.3
    assert result.summary["client_updates"] // 3 == result.summary["versions"]


def test_the_examples_own_test_passes(fedmedian):
    names: dict = {}
    exec(added("tests/test_fedmedian.py"), names)
    names["test_it_keeps_the_rules"]()


def test_the_example_takes_the_median(fedmedian):
    from asyncfl_lite import Update

    method = fedmedian(buffer_size=3)
    method.start(torch.zeros(2))
    for delta in ((2.0, 2.0), (0.0, 4.0), (9.0, 0.0)):
        method.receive(Update(client=0, delta=torch.tensor(delta), start_version=0))
    assert method.x.tolist() == [2, 2]


def test_commands_that_it_names_exist():
    makefile = (Path(__file__).parent.parent / "Makefile").read_text()
    for target in set(re.findall(r"make ([a-z]+)", README)):
        assert re.search(rf"^{target}:", makefile, re.M), target


ROOT = Path(__file__).parent.parent
TITLES = {"FedAvg with Oort": "fedavg-oort", "FedEcho (cross)": "fedecho", "KUIPER, Eq. 2 as printed": "kuiper-literal"}
"""Cells that the README calls by another name than their method's title."""


def rows_below(heading: str) -> list[list[str]]:
    """The rows of the first table below a line of the README that contains ``heading``, without its head."""
    lines = README[README.index(heading) :].splitlines()
    table = list(itertools.takewhile(lambda line: line.startswith("|"), itertools.dropwhile(
        lambda line: not line.startswith("|"), lines)))  # fmt: skip
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def recorded(tier: str, prefix: str) -> dict[str, str]:
    """Cell -> its final accuracies as mean ± standard deviation."""
    runs = pd.read_csv(ROOT / "results" / tier / "runs.csv")
    runs = runs[runs["cell"].str.startswith(prefix)]
    values = 100 * runs.groupby("cell")["final_accuracy"].agg(["mean", "std"])
    return {row.Index.split("/")[-1]: f"{row.mean:.2f} ± {row.std:.2f}" for row in
            values.rename(columns=str).itertuples()}  # fmt: skip


def test_the_table_of_methods_is_what_was_recorded():
    ours, titles = recorded("smoke", "methods/"), {ALGORITHMS.get(name).title: name for name in ALGORITHMS}
    shown = {}
    for row in rows_below("### Every method, one setting"):
        shown |= {title: number for title, number in zip(row[::2], row[1::2], strict=True) if title}
    assert {(titles | TITLES)[title]: number for title, number in shown.items()} == ours


@pytest.mark.long
@pytest.mark.parametrize(("tier", "heading"), [("smoke", "At smoke scale"), ("core", "core set, claims of")])
def test_the_tables_of_claims_are_what_was_recorded(tier, heading):
    from asyncfl_lite.reproduction.report import Recorded

    found = Recorded(ROOT / "experiments" / f"{tier}.yaml", ROOT / "nothing", ROOT / "results")
    for paper, *counts in rows_below(heading):
        verdicts = [str(count) for count in found.verdicts(paper.lower())]
        assert counts[-len(verdicts) :] == verdicts, paper

"""What the README shows works as it is written there; its tables, and those of docs/results.md, are what was recorded."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pandas as pd
import pytest
from test_findings import counts_by_kind, of_kinds

from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_reproduction import home
from asyncfl_reproduction.claims import CLAIMS
from asyncfl_reproduction.grid.tidy import RUNS
from asyncfl_reproduction.parquet import read_table
from asyncfl_reproduction.published import published

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
RUNNING = (ROOT / "docs/running.md").read_text()
RESULTS = (ROOT / "docs/results.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
TITLES = {"FedAvg with Oort": "fedavg-oort", "FedEcho (cross)": "fedecho", "KUIPER, Eq. 2 as printed": "kuiper-literal"}
"""Cells that the table of methods calls by another name than their method's title."""
SETS = {"FedEcho, another data set": "cross", "FedEcho, natural images": "natural", "FedEcho, synthetic": "synthetic"}
"""FedEcho's rows of the first table, each with its distillation set."""

REAL = {
    "Fashion-MNIST": ("fashion_mnist", "fedecho"),
    "MNIST": ("mnist", "fedecho"),
    "20 Newsgroups": ("newsgroups20", "fedecho"),
    "MRPC": ("mrpc", "fedecho"),
    "GSM8K": ("gsm8k", "fedecho"),
}
"""How rows on real data begin, with the cells' data and FedEcho's cell."""


def test_python_blocks_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", README, re.S):
        exec(block, names)
    assert names["result"].config.rounds == 100
    assert (tmp_path / "runs/mine/result.json").exists()
    for column in re.findall(r"result\.(?:summary|curve|updates)  # (.*)", RUNNING):
        shown = [name for name in column.split(", ") if name != "..."]
        assert all(
            any(name in part for part in vars(names["result"]).values() if hasattr(part, "keys")) for name in shown
        )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_it_names_exist(page):
    makefile = (ROOT / "Makefile").read_text()
    for target in set(
        re.findall(r"make ([a-z-]+)", "\n".join(re.findall(r"`[^`]*`|```.*?```", page.read_text(), re.S)))
    ):
        assert re.search(rf"^{target}:", makefile, re.M), target


def rows_below(heading: str, text: str) -> list[list[str]]:
    """The rows of the first table below a line of ``text`` that contains ``heading``, without its head."""
    lines = text[text.index(heading) :].splitlines()
    table = list(itertools.takewhile(lambda line: line.startswith("|"), itertools.dropwhile(
        lambda line: not line.startswith("|"), lines)))  # fmt: skip
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def recorded(tier: str, prefix: str, number: str = "final_accuracy") -> dict[str, str]:
    """Cell -> its accuracies in percent as mean ± standard deviation, or a single run's alone."""
    runs = pd.concat(map(read_table, (home.RESULTS / tier).glob(f"*/{RUNS}")))
    runs = runs[runs["cell"].str.startswith(prefix)]
    values = 100 * runs.groupby("cell")[number].agg(["mean", "std"])
    spreads = {cell: f" ± {std:.2f}" if std == std else "" for cell, std in values["std"].items()}
    return {cell.split("/")[-1]: f"{mean:.2f}{spreads[cell]}" for cell, mean in values["mean"].items()}


def test_the_table_of_methods_is_what_was_recorded():
    ours, titles = (
        recorded("smoke", "methods/large-dir0.1/"),
        {ALGORITHMS.get(name).about.title: name for name in ALGORITHMS},
    )
    shown = {}
    for row in rows_below("## Every method, one setting", RESULTS):
        shown |= {title: number for title, number in zip(row[::2], row[1::2], strict=True) if title}
    assert {(titles | TITLES)[title]: number for title, number in shown.items()} == ours


def fedechos_cell(title: str) -> str:
    """The last part of the cell's name of which a row of the first table tells."""
    name = SETS.get(title.split(" (")[0])
    return f"fedecho-{name}" if name else title.lower()


def test_the_table_of_fedecho_is_what_was_printed_and_recorded():
    column = "fedecho/table2/large-dir0.1/"
    smoke, laptop = (recorded(tier, column, "last5_accuracy") for tier in ("smoke", "laptop"))
    printed = published("FedEcho", "Table 2")
    printed = printed[(printed["dataset"] == "CIFAR-10") & (printed["delay"] == "large") & (printed["alpha"] == "0.1")]
    assert len(rows_below("## FedEcho against FedBuff", RESULTS)) == 4
    for title, paper, *ours in rows_below("## FedEcho against FedBuff", RESULTS):
        cell = fedechos_cell(title)
        assert ours == [smoke[cell], laptop[f"{cell}@server-rate"], laptop[cell]], title
        mean, spread = (float(number) for number in paper.split(" ± "))
        assert ((printed["value"] == mean) & (printed["std"] == spread)).any(), title


def test_the_table_of_real_data_is_what_was_recorded():
    for title, _, fedbuff, fedecho, _ in rows_below("## Real data", RESULTS):
        (data, cell) = REAL[re.split(r",| \(", title)[0]]
        ours = recorded("real", f"real/{data}/")
        assert [fedbuff, fedecho] == [ours["fedbuff"], ours.get(cell, "not run")], title


def photographs() -> dict[str, list[str]]:
    """The rows of the table on CIFAR-10's images: title -> as printed, tuned."""
    ours = recorded("real", "real/cifar10_jpeg75/", "last5_accuracy")
    titles = {"FedBuff": "fedbuff", "CA²FL": "ca2fl"}
    titles |= {"FedEcho, natural images": "fedecho-natural", "FedEcho, noise": "fedecho-noise"}
    return {title: [ours.get(f"{cell}@printed", ""), ours[cell]] for title, cell in titles.items()}


def test_the_table_of_photographs_is_what_was_recorded():
    assert {title: ours for title, *ours in rows_below("On CIFAR-10's images", RESULTS)} == photographs()


@pytest.mark.long
@pytest.mark.parametrize("tier", ["smoke", "laptop"])
def test_the_table_of_claims_is_what_was_recorded(tier):
    from asyncfl_reproduction.report import Recorded

    found = Recorded(
        ROOT / "asyncfl_reproduction/cells" / f"{tier}.yaml", ROOT / "nothing", ROOT / "asyncfl_reproduction/results"
    )
    rows = [row for row in rows_below("## Claims, paper by paper", RESULTS) if row[1] == tier]
    assert [paper.lower() for paper, *_ in rows] == list(CLAIMS)
    for paper, _, claims, *counts in rows:
        verdicts = found.verdicts(paper.lower())
        assert counts == [str(count) for count in verdicts], paper
        assert int(claims) == verdicts.sum() == len(CLAIMS[paper.lower()])
    if tier == "laptop":
        assert of_kinds(RESULTS) == counts_by_kind(found)

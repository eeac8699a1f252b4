"""Names that people use in place of cells' paths."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from asyncfl_reproduction.grid.cells import TWIN, expand_grid
from asyncfl_reproduction.report.names import in_names, names, place, words
from conftest import ROOT


@pytest.fixture(scope="module")
def laptop():
    return {cell.name: cell for cell in expand_grid(ROOT / "asyncfl_reproduction/cells/laptop.yaml")}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("fedecho/table2/large-dir0.1/fedecho-natural", "FedEcho, natural set · large delay, α = 0.1"),
        ("fedecho/table2/mild-dir0.3/ca2fl@server-rate", "CA²FL · mild delay, α = 0.3, server rate 1"),
        ("fedecho/table6/samples-100", "FedEcho · 100 samples"),
        ("fedecho/table7/ce-only", "FedEcho · cross-entropy alone"),
        ("fedrevive/table1/cifar10/afl_dw", "AFL-DW · CIFAR-10"),
        ("fedrevive/figure3/cifar10-shifted/fedbuff", "FedBuff · CIFAR-10, shifted delays"),
        ("kuiper/fig2/clients12-bias0/alone", "alone · 12 clients, bias 0"),
        ("kuiper/fig6/k2/oort", "Oort · burst of 2"),
        ("kuiper/fig9a/bias0.8/no-error", "KUIPER · bias 0.8, without error"),
        ("kuiper/table3/assistants-1", "centralised training · 1 assistant"),
        ("fedadt/table1/fmnist-dir0.1/fedadt", "FedADT · Fashion-MNIST, α = 0.1"),
        ("fedadt/table4/concurrency-20/fedfa", "FedFa† · 20 % in flight"),
    ],
)
def test_a_cell_is_called_by_its_method_and_what_its_path_says(laptop, path, name):
    assert names(laptop)[path] == name


@pytest.mark.parametrize("tier", ["smoke", "headline", "laptop"])
def test_names_are_unique_within_a_table_or_figure_and_are_no_paths(tier):
    found = names({cell.name: cell for cell in expand_grid(ROOT / f"asyncfl_reproduction/cells/{tier}.yaml")})
    often = Counter((place(path), name) for path, name in found.items())
    assert max(often.values()) == 1
    assert not [name for name in found.values() if "/" in name or "_" in name or TWIN in name]


def test_two_cells_of_one_name_are_told_apart_by_their_paths(laptop):
    cell = laptop["fedecho/table2/large-dir0.1/fedbuff"]
    paths = ["fedecho/table2/dir0.1/fedbuff", "fedecho/table2/alpha0.1/fedbuff"]
    found = names({path: replace(cell, name=path) for path in paths})
    assert list(found.values()) == ["FedBuff · α = 0.1 (dir0.1/fedbuff)", "FedBuff · α = 0.1 (alpha0.1/fedbuff)"]


def test_what_is_not_known_stays_as_it_is_written(laptop):
    assert words("some-part") == "some part" and words("dir0.1x") == "dir0.1x"
    text = "large-dir0.1/fedbuff against kuiper/fig3b/bias1/oort: 1.0/2.0; fedecho/table9/none"
    assert in_names(text, names(laptop)) == (
        "FedBuff · large delay, α = 0.1 against Oort · bias 1: 1.0/2.0; fedecho/table9/none"
    )
    same = "kuiper/fig3b/bias1/kuiper against kuiper/fig3b/bias1/oort: 1"
    assert in_names(same, names(laptop)) == "KUIPER against Oort · bias 1: 1"
    assert in_names("fig9c/bias0.8/beta0.3, fig9c/bias0.8/beta0.", names(laptop)) == (
        "KUIPER · bias 0.8, β = 0.3, KUIPER · bias 0.8, β = 0."
    )

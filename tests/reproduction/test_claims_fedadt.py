"""FedADT's grid and claims: every cell, every printed row, and predicates that can hold and fail."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from asked import Asked

from asyncfl_reproduction.claims import EQUIVALENT, FAILS, HOLDS, NOT_RUN, OPEN, REVERSED, Measured
from asyncfl_reproduction.claims import fedadt as claims
from asyncfl_reproduction.claims.fedadt import COLUMNS, FEDADT, METHODS, TARGETS
from asyncfl_reproduction.grid.cells import Cell, expand_grid
from asyncfl_reproduction.measure import fedadt as measure
from asyncfl_reproduction.published import published
from conftest import seeds_apart

GRID = Path(__file__).parents[2] / "asyncfl_reproduction/cells" / "fedadt.yaml"
IDS = ["T1-a", "T1-b", "T1-c", "T1-d", "T1-e", "T2-a", "T2-b", "T2-c", "T2-d", "F1-a", "F3-a", "T3-a", "T4-a", "T4-b",
       "T4-c", "X-a"]  # fmt: skip
ARITHMETIC = ("X-a",)
"""Needs no cell."""
COUNTS = {
    "smoke": {"table1": 7, "table3": 2, "table4": 4},
    "laptop": {"table1": 84, "control": 1, "table3": 16, "table4": 12, "fig1": 6},
    "paper": {"table1": 84, "table3": 12, "table4": 12, "fig1": 6},
}
BY_ID = {claim.id.removeprefix("FA-"): claim for claim in FEDADT}
CSV_DATA = {"mnist": "MNIST", "fmnist": "FMNIST", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
CSV_METHOD = {"fedavg": "FedAvg", "fedavgm": "FedAvgM", "fedbuff": "FedBuff", "ca2fl": "CA2FL", "fedasync": "FedAsync",
              "fedfa": "FedFa", "fedadt": "FedADT"}  # fmt: skip


@pytest.fixture(scope="module")
def tiers(tmp_path_factory) -> dict[str, list[Cell]]:
    """The grid's cells by tier."""
    folder, found = tmp_path_factory.mktemp("tiers"), {}
    for tier in COUNTS:
        (folder / f"{tier}.yaml").write_text(yaml.safe_dump({"tier": tier, "papers": [str(GRID)]}))
        found[tier] = expand_grid(folder / f"{tier}.yaml")
    return found


def verdict(name: str, measured: Measured) -> str:
    return BY_ID[name].check(measured).verdict


def runs(cells: dict[str, float], times: dict[str, float] | None = None, spread: float = 1.0) -> Measured:
    """Cells with ten seeds: accuracies in percent, and when each was at its target (absent: never)."""
    summaries, curves = {}, {}
    for cell, final in cells.items():
        row = seeds_apart(cell) / 1000
        accuracies = final / 100 + spread * (row - row.mean())
        summaries[cell] = pd.DataFrame({"final_accuracy": accuracies, "last5_accuracy": accuracies, "versions": 1000})
        target = TARGETS.get(cell.split("/")[2].split("-")[0], claims.FIG1_TARGET)
        at = (times or {}).get(cell)
        curves[cell] = [
            pd.DataFrame(
                {
                    "version": [0, 1] if at is None else [0, 1, 2],
                    "time": [0.0, 2e6] if at is None else [0.0, at * (1 + aside), 2e6],
                    "accuracy": [0.0, accuracy] if at is None else [0.0, target, accuracy],
                }
            )
            for accuracy, aside in zip(accuracies, row, strict=True)
        ]
    return Measured(summaries, curves)


def test_every_claim_is_there():
    assert list(BY_ID) == IDS


@pytest.mark.parametrize("tier", COUNTS)
def test_every_artefact_has_its_cells(tiers, tier):
    names = [cell.name.split("/")[1] for cell in tiers[tier]]
    assert {artefact: names.count(artefact) for artefact in dict.fromkeys(names)} == COUNTS[tier]
    assert all(re.fullmatch(r"fedadt/[a-z0-9./-]+", cell.name) for cell in tiers[tier])


def test_every_printed_row_has_one_cell_at_paper_scale(tiers):
    """Fig. 1 and Fig. 3 print no numbers; every row of the tables is named by exactly one cell."""
    named = [row for cell in tiers["paper"] for row in cell.published if not row["artefact"].startswith("Fig.")]
    for artefact, count in (("Table I", 84), ("Table II", 84), ("Table III", 18), ("Table IV", 12)):
        table, rows = published("FedADT", artefact), [row for row in named if row["artefact"] == artefact]
        found = [tuple(table.index[_matches(table, row)]) for row in rows]
        assert all(len(places) == 1 for places in found)
        assert len({places[0] for places in found}) == len(found) == len(table) == count


def _matches(table: pd.DataFrame, row: dict[str, str]) -> pd.Series:
    return (table[list(row)].astype(str) == pd.Series(row)).all(axis=1)


def test_what_the_paper_prints_is_kept(tiers):
    for tier, cells in tiers.items():
        for cell in cells:
            c = cell.config
            fig1 = cell.name.startswith("fedadt/fig1")
            assert (c.clients, c.delay, c.client_lr_decay) == (100 if fig1 else 500, "fedadt", 0.9999)
            assert c.scheduling == ("rounds" if c.algorithm in ("fedavg", "fedavgm") else "refill")
            assert c.buffer_size == {"rounds": c.concurrency}.get(c.scheduling, 10 if "uff" in c.algorithm else
                                                                  10 if c.algorithm == "ca2fl" else 1)  # fmt: skip
            if "table4" not in cell.name:
                assert c.concurrency == c.clients // 5
            if tier == "paper":
                assert (c.client_lr, c.batch_size, c.model) == (0.01, 32, "flgo_cnn")
                if c.algorithm == "fedadt":
                    assert (c.settings.kd_fraction, c.settings.alpha_versions) == (0.005, 1000)
            assert cell.ours["local_epochs"]


def test_every_cell_that_a_claim_asks_for_exists_and_without_cells_nothing_is_claimed(tiers):
    asked = Asked()
    for claim in FEDADT:
        expected = HOLDS if claim is BY_ID["X-a"] else NOT_RUN
        assert claim.check(Measured(asked, asked)).verdict == expected, claim.id
    there = {cell.name for cells in tiers.values() for cell in cells}
    asked_for = {name for name in asked.names if name.startswith("fedadt/")}
    absent = {f"fedadt/table3/cifar100-dir{alpha}/fixed-{weight}" for alpha in ("0.1", "0.5") for weight in (2, 6)}
    assert asked_for - there - absent == set()
    assert len(asked_for) > 100


@functools.cache
def as_printed() -> Measured:
    """Tables I, II and IV as if every cell had ten seeds almost without spread."""
    cells, times = {}, {}
    reached, final = published("FedADT", "Table I"), published("FedADT", "Table II")
    for data, column in COLUMNS:
        for method in METHODS:
            row = {"dataset": CSV_DATA[data], "method": CSV_METHOD[method], "alpha": column.rsplit("dir")[-1]}
            cells[f"{column}/{method}"] = float(final[_matches(final, row)]["value"].iloc[0])
            time = float(reached[_matches(reached, row)]["value"].iloc[0])
            if np.isfinite(time):
                times[f"{column}/{method}"] = time
    for _, row in published("FedADT", "Table IV").iterrows():
        name = f"fedadt/table4/concurrency-{row['concurrency'].rstrip('%')}/{row['method'].lower()}"
        cells[name] = 100 * float(row["value"])
    return runs(cells, times, spread=0.001)


WITHIN_A_POINT = ("T2-a", "T2-c", "F3-a", "T4-b")
"""Claims that the printed numbers bear out, or deny, by less than a point in some column and by more in no other way."""


@pytest.mark.parametrize("name", [name for name in IDS if name not in ("F1-a", "T3-a", *ARITHMETIC)])
def test_the_papers_own_numbers_give_its_own_verdict(name):
    """The printed tables, put through our predicates, which call a printed lead of less than a point level."""
    expected = HOLDS if BY_ID[name].printed == "holds" else FAILS if name == "T1-e" else REVERSED
    expected = EQUIVALENT if name in WITHIN_A_POINT else expected
    assert verdict(name, as_printed()) == expected


def test_distilling_is_cheaper_than_training_with_five_epochs_and_dearer_with_one(monkeypatch):
    """300 of 60,000 samples, a step and a teacher's pass on each, against 119.4 samples a client, a step an epoch."""
    ours, once = (measure.distilling_over_training(epochs) for epochs in (5, 1))
    assert ours == pytest.approx(300 * 4 / (119.4 * 5 * 3)) == pytest.approx(0.67, abs=0.001)
    assert once == pytest.approx(5 * ours) == pytest.approx(3.35, abs=0.001)
    assert verdict("X-a", Measured({})) == HOLDS
    monkeypatch.setattr(measure, "EPOCHS", 1)
    assert verdict("X-a", Measured({})) == FAILS


def test_table_3_reads_the_adaptive_run_where_the_fixed_ones_end():
    adaptive, high, low = "fedadt/table1/mnist-dir0.1/fedadt", *(
        f"fedadt/table3/mnist-dir0.1/fixed-{weight}" for weight in ("0.6", "0.2")
    )  # fmt: skip
    for at_round, later, expected in ((0.88, 0.5, HOLDS), (0.6, 0.99, REVERSED)):
        m = runs({adaptive: 0, high: 84.6, low: 62.2})
        m.curves[adaptive] = [pd.DataFrame({"version": [500, 1000, 9000], "time": [1.0, 2.0, 3.0],
                                            "accuracy": [0.1, at_round + aside, later]})
                              for aside in seeds_apart("") / 1000]  # fmt: skip
        assert verdict("T3-a", m) == expected
    assert verdict("T3-a", runs({high: 60, low: 84})) == REVERSED
    assert verdict("T3-a", runs({high: 84})) == NOT_RUN


MNIST = "fedadt/table1/mnist-dir0.1"
PAIRS = "fedadt/table1/mnist-dir0.5"


@pytest.mark.parametrize(
    ("name", "cells", "times", "expected"),
    [
        (
            "T1-a",
            {f"{MNIST}/fedadt": 95, f"{MNIST}/fedavg": 95},
            {f"{MNIST}/fedadt": 5, f"{MNIST}/fedavg": 2},
            REVERSED,
        ),
        ("T1-a", {f"{MNIST}/fedadt": 85, f"{MNIST}/fedavg": 85}, {}, OPEN),
        ("T1-b", {f"{MNIST}/fedbuff": 85, f"{MNIST}/fedfa": 95}, {f"{MNIST}/fedfa": 5}, REVERSED),
        ("T1-c", {f"{MNIST}/fedadt": 85}, {}, FAILS),
        ("T1-d", {f"{MNIST}/fedfa": 95, f"{PAIRS}/fedfa": 95}, {f"{MNIST}/fedfa": 9, f"{PAIRS}/fedfa": 5}, HOLDS),
        ("T1-e", {f"{MNIST}/fedfa": 95}, {f"{MNIST}/fedfa": 9}, HOLDS),
        ("T2-a", {f"{MNIST}/fedadt": 80, f"{MNIST}/fedasync": 90}, {}, REVERSED),
        ("T2-b", {f"{MNIST}/fedadt": 90, f"{MNIST}/ca2fl": 80}, {}, HOLDS),
        ("T2-c", {f"{MNIST}/fedavg": 90, f"{MNIST}/fedfa": 80}, {}, HOLDS),
        ("F3-a", {f"{MNIST}/fedadt": 80, f"{MNIST}/fedfa": 90}, {}, REVERSED),
        ("F3-a", {f"{PAIRS}/fedadt": 90, f"{PAIRS}/fedfa": 80}, {}, NOT_RUN),
    ],
)
def test_made_up_numbers_turn_verdicts(name, cells, times, expected):
    assert verdict(name, runs(cells, times)) == expected

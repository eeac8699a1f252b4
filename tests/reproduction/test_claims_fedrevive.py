"""FedRevive's grid and claims: complete, consistent with each other, and every claim can hold and fail."""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from asked import Asked

from asyncfl_lite.runs.assembly import make_simulation
from asyncfl_lite.simulator.clock_only import ClockOnly, VersionCounter
from asyncfl_lite.simulator.jobs import Outcome
from asyncfl_reproduction.claims import FAILS, HOLDS, NOT_RUN, OPEN, REVERSED, Measured
from asyncfl_reproduction.claims.fedrevive import FEDREVIVE, RECORDED, roughness, sooner
from asyncfl_reproduction.grid.cells import Cell, expand_grid
from asyncfl_reproduction.published import published

GRID = Path(__file__).parents[2] / "asyncfl_reproduction/cells" / "fedrevive.yaml"
COUNTS = {
    "paper": {"table1": 20, "figure3": 8, "figure4": 2, "control": 4, "figure5": 3, "figure8": 15, "text": 1},
    "laptop": {
        "table1": 20,
        "figure3": 8,
        "figure4": 2,
        "control": 3,
        "figure5": 3,
        "figure8": 6,
        "text": 1,
        "same-rates": 13,
    },
    "smoke": {"table1": 5, "figure3": 2, "figure4": 2, "control": 1, "figure5": 1},
}
TABLE4 = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "femnist": "FEMNIST", "newsgroups": "20NewsGroups"}
WANTED = {"T1": "abcdef", "F9": "a", "T2": "ab", "T3": "abc", "F3": "a", "F4": "abc", "F5": "a", "F6": "a", "F7": "a",
          "F8": "a", "F11": "a", "X": "abc"}  # fmt: skip
IDS = [f"FR-{artefact}-{letter}" for artefact, letters in WANTED.items() for letter in letters]
BY_ID = {claim.id: claim for claim in FEDREVIVE}


@lru_cache(maxsize=3)
def grid(tier: str) -> tuple[Cell, ...]:
    """The cells of one tier, read by way of a tier's file of their own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{tier}.yaml"
        path.write_text(json.dumps({"tier": tier, "papers": [str(GRID)]}))
        return tuple(expand_grid(path))


def names() -> set[str]:
    return {cell.name for tier in COUNTS for cell in grid(tier)}


# The grid


@pytest.mark.parametrize("tier", COUNTS)
def test_every_tier_has_its_cells(tier):
    assert Counter(cell.name.split("/")[1] for cell in grid(tier)) == COUNTS[tier]
    numbers = {10, 32} if tier == "laptop" else {3}
    assert {len(cell.seeds) for cell in grid(tier)} == numbers
    assert all(cell.seeds == tuple(range(len(cell.seeds))) and cell.ours for cell in grid(tier))


@pytest.mark.parametrize("tier", COUNTS)
def test_printed_rows_are_there(tier):
    for cell in grid(tier):
        assert bool(cell.published) != ("/control/" in cell.name or "/same-rates/" in cell.name), cell.name
        for row in cell.published:
            table = published("FedRevive", row["artefact"])
            if row["artefact"].startswith("Fig."):
                assert table.empty  # figures have no printed values
                continue
            for column, value in row.items():
                table = table[table[column] == value]
            assert len(table), (cell.name, row)


def test_the_papers_numbers_are_in_the_papers_tier():
    by_name = {cell.name: cell.config for cell in grid("paper")}
    assert {(c.clients, c.concurrency, c.local_steps, c.batch_size, c.client_optimizer) for n, c in by_name.items()
            if "snippets" not in n} == {(1000, 100, 25, 32, "adam")}  # fmt: skip
    table4 = {
        "cifar10": (3e-4, 0.05, 2),
        "cifar100": (3e-4, 0.1, 3),
        "newsgroups": (1e-3, 0.1, 3),
        "femnist": (1e-3, 0.025, 1),
    }
    for data, expected in table4.items():
        buff = by_name[f"fedrevive/table1/{data}/fedbuff"]
        assert (buff.client_lr, buff.server_lr, buff.buffer_size) == expected
        own, damped = by_name[f"fedrevive/table1/{data}/fedrevive"], by_name[f"fedrevive/table1/{data}/afl_dw"]
        assert (own.client_lr, own.server_lr) == (damped.client_lr, damped.server_lr)  # the paper gives AFL-DW the same
    assert by_name["fedrevive/table1/cifar100/dd_fedrevive"].client_lr == 1e-4
    assert by_name["fedrevive/table1/cifar10/fedrevive"].settings.kd_lr == 1e-4
    assert all(c.alpha == 1.0 for n, c in by_name.items() if "dir1" in n)
    assert all(c.delay == "fedrevive_shift" for n, c in by_name.items() if "shifted" in n)


def test_the_versions_that_ours_names_are_the_clocks():
    """Beside the authors' code's 50,000; one clock, since all four data sets have the same delays."""
    by_name = {cell.name: cell for cell in grid("paper")}
    horizons = [by_name[f"fedrevive/table1/{data}/fedrevive"].config.horizon for data in TABLE4]
    config = by_name["fedrevive/table1/newsgroups/fedrevive"].config
    clock = make_simulation(config, [range(350)] * config.clients, VersionCounter(1), kind=ClockOnly)
    clock.run_alone([Outcome(None)] * config.clients)
    told = by_name["fedrevive/table1/cifar10/fedrevive"].ours["horizon"]
    found = {data: re.search(rf"([\d,]+) (?:versions )?on {data}", told)[1] for data in TABLE4.values()}
    versions = [clock.algorithm.version / config.horizon * horizon for horizon in horizons]
    assert [float(number.replace(",", "")) for number in found.values()] == pytest.approx(versions, rel=0.02)


# The claims


def test_ids_are_complete():
    assert len(FEDREVIVE) == len(IDS)
    assert set(BY_ID) == set(IDS)


GOOD = {  # pattern: (final accuracy, time at which it is reached, noise); later ones are stronger
    "*": (0.6, 30, 0.01),
    "*/fedavg": (0.6, 300, 0.0),
    "*/afl_dw": (0.58, 40, 0.01),
    "*/dd_fedrevive": (0.7, 10, 0.01),
    "*/fedrevive": (0.8, 20, 0.01),
    "*shifted/fedbuff": (0.4, 30, 0.01),
    "*shifted/afl_dw": (0.38, 40, 0.01),
    "*beta*": (0.5, 30, 0.01),
    "*true-shares": (0.8, 20, 0.01),
    "*snippets-alone": (0.1, 30, 0.0),
    "*dispatch-first": (0.8, 20, 0.01),
}
WORSE = {  # what makes each claim fail
    "FR-T1-a": {"*table1/femnist/fedrevive": (0.55, 20, 0.0)},
    "FR-T1-b": {"*table1/cifar100/fedrevive": (0.8, 80, 0.0)},
    "FR-T1-c": {"*table1/*/fedavg": (0.6, 25, 0.0)},
    "FR-T1-d": {"*table1/cifar10/afl_dw": (0.9, 20, 0.0)},
    "FR-T1-e": {"*table1/newsgroups/dd_fedrevive": (0.7, 90, 0.0)},
    "FR-T1-f": {"*table1/cifar10/dd_fedrevive": (0.9, 20, 0.0)},
    "FR-F9-a": {"*/fedavg": (0.6, 300, 0.1)},
    "FR-F3-a": {"*cifar10-shifted/fedrevive": (0.3, 20, 0.0)},
    "FR-F4-a": {"*beta-1": (0.9, 30, 0.0)},
    "FR-F5-a": {"*cifar100/true-shares": (0.9, 30, 0.0)},
    "FR-F8-a": {"*cifar10-dir1/fedbuff": (0.9, 10, 0.0)},
    "FR-X-a": {"*snippets-alone": (0.9, 10, 0.0)},
    "FR-X-c": {"*dispatch-first": (0.7, 20, 0.01)},
}


@lru_cache
def runs(final: float, when: float, noise: float, end: float, seeds: int) -> tuple[list[pd.DataFrame], pd.DataFrame]:
    """Curves that rise evenly to their final accuracy, and their summaries; seeds differ by tenths of points and tenths of time."""
    time = np.linspace(0, end, 401)
    shaking = noise * (-1) ** np.arange(len(time))
    aside = np.random.default_rng(int(1000 * final + when)).permutation(10)[:seeds] / 5000
    made = [np.minimum(1, time / when / (1 + 50 * place)) * final + shaking * (1 + place) + place for place in aside]
    summaries = pd.DataFrame([{"last5_accuracy": one[-5:].mean(), "best_accuracy": one.max()} for one in made])
    return [pd.DataFrame({"time": time, "accuracy": one}) for one in made], summaries


def made_up(values: dict[str, tuple[float, float, float]], seeds: int = 10) -> Measured:
    """Runs of every cell of the grid."""
    cells = {}
    for name in sorted(names()):
        chosen = next(value for pattern, value in reversed(values.items()) if fnmatch(name, pattern))
        cells[name] = runs(*chosen, 400 if name.endswith("/fedavg") else 100, seeds)
    staler = {"fedrevive/control/cifar10/dispatch-first": 100.0}
    summaries = {name: one.assign(mean_staleness=staler.get(name, 99.0)) for name, (_, one) in cells.items()}
    return Measured(Asked(summaries), Asked({name: curves for name, (curves, _) in cells.items()}))


@pytest.mark.parametrize("claim", RECORDED, ids=lambda claim: claim.id)
def test_a_recorded_claim_can_hold_be_reversed_and_be_open(claim):
    good = made_up(GOOD)
    assert claim.check(good).verdict == HOLDS
    asked = good.summaries.names | good.curves.names
    assert asked
    assert asked <= names()
    assert claim.check(made_up({**GOOD, **WORSE[claim.id]})).verdict == REVERSED
    assert claim.check(made_up(GOOD, seeds=2)).verdict == OPEN
    assert claim.check(Measured({})).verdict == NOT_RUN


def test_the_target_is_that_of_the_same_seed():
    """With seed 1 FedBuff is worse, so that there both reach its target, which with the other's they would not."""
    time = np.arange(0, 100.5, 0.5)

    def curve(when: float, level: float) -> pd.DataFrame:
        return pd.DataFrame({"time": time, "accuracy": np.where(time >= when, level, 0.1)})

    levels = [0.6, 0.3, 0.6]
    cells = {"p/a": (10, 15, 12), "p/b": (30, 36, 31), "p/buff": (5, 5, 5)}
    m = Measured({}, {name: [curve(*at) for at in zip(whens, levels, strict=True)] for name, whens in cells.items()})
    found = sooner(m, "p/a", "p/b", "p/buff")
    assert found.verdict == HOLDS and "time to 42.5%: 14.2 ± 2.3, 34.2 ± 2.9, × 2.43 [" in found.detail
    assert sooner(m, "p/b", "p/a", "p/buff").verdict == REVERSED
    assert sooner(m, "p/a", "p/b", "p/buff", 9.0).verdict == FAILS
    assert sooner(m, "p/a", "p/b", "p/other").verdict == NOT_RUN


def test_roughness_does_not_count_a_steady_rise():
    steady = pd.DataFrame({"accuracy": np.linspace(0, 1, 21)})
    shaking = pd.DataFrame({"accuracy": np.linspace(0, 1, 21) + 0.01 * (-1) ** np.arange(21)})
    assert roughness(steady) == pytest.approx(0, abs=1e-9)
    assert roughness(shaking) == pytest.approx(0.02)
    assert np.isnan(roughness(steady[:3]))

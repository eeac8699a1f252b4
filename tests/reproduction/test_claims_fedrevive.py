"""FedRevive's cells are set as printed, and every claim can hold and fail."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest
from asked import TIERS, Asked, cells_of

from asyncfl_lite.runs.assembly import make_simulation
from asyncfl_lite.simulator.clock_only import ClockOnly, VersionCounter
from asyncfl_lite.simulator.jobs import Outcome
from asyncfl_reproduction.claims import FAILS, HOLDS, NOT_RUN, OPEN, REVERSED, Finding, Measured
from asyncfl_reproduction.claims import fedrevive as claims
from asyncfl_reproduction.claims.fedrevive import RECORDED, roughness, sooner
from asyncfl_reproduction.measure import fedrevive as measure
from asyncfl_reproduction.published import published

TABLE4 = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "femnist": "FEMNIST", "newsgroups": "20NewsGroups"}
PAPER = cells_of("fedrevive", "paper")


def test_figures_have_the_heterogeneity_and_delays_that_they_print():
    """What tables print is in test_setups.py."""
    for name, cell in PAPER.items():
        assert "dir1" not in name or cell.config.alpha == 1.0
        assert "shifted" not in name or cell.config.delay == "fedrevive_shift"


def test_the_versions_that_ours_names_are_the_clocks():
    """Beside the authors' code's 50,000; one clock, since all four data sets have the same delays."""
    horizons = [PAPER[f"fedrevive/table1/{data}/fedrevive"].config.horizon for data in TABLE4]
    config = PAPER["fedrevive/table1/newsgroups/fedrevive"].config
    clock = make_simulation(config, [range(350)] * config.clients, VersionCounter(1), kind=ClockOnly)
    clock.run_alone([Outcome(None)] * config.clients)
    told = PAPER["fedrevive/table1/cifar10/fedrevive"].ours["horizon"]
    found = {data: re.search(rf"([\d,]+) (?:versions )?on {data}", told)[1] for data in TABLE4.values()}
    versions = [clock.algorithm.version / config.horizon * horizon for horizon in horizons]
    assert [float(number.replace(",", "")) for number in found.values()] == pytest.approx(versions, rel=0.02)


def names() -> set[str]:
    return {name for tier in TIERS for name in cells_of("fedrevive", tier)}


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


BY_ID = {claim.id: claim for claim in claims.SIMULATED}


def verdict(name: str) -> str:
    return BY_ID[name].check(Measured({})).verdict


@pytest.mark.parametrize("name", ["FR-T3-a", "FR-T3-b", "FR-T3-c", "FR-F6-a", "FR-F7-a", "FR-F11-a", "FR-X-b"])
def test_what_needs_no_training_holds(name):
    assert verdict(name) == HOLDS


@pytest.mark.parametrize(
    ("name", "row"), [("FR-T3-a", "distillation, sequential"), ("FR-T3-b", "client"), ("FR-X-b", "T4")]
)
def test_printed_arithmetic_can_fail(monkeypatch, name, row):
    def other(paper, artefact):
        table = published(paper, artefact).copy()
        text = table["component"] if "component" in table else table["metric"]
        ours = text.str.contains(row, regex=False) & ~table["metric"].str.contains("per iteration")
        table.loc[ours, "value"] *= 0.1 if name == "FR-X-b" else 3
        return table

    monkeypatch.setattr(claims, "published", other)
    assert verdict(name) == FAILS


SHAKE = np.random.default_rng(7).standard_normal((4, 10)) / 1000


@pytest.mark.parametrize(("values", "better"), [((1, 2, 3, 4), HOLDS), ((1, 3, 2, 9), REVERSED)])
def test_divergences(monkeypatch, values, better):
    tables = dict(zip(measure.PROBED, values, strict=True))
    monkeypatch.setattr(
        measure,
        "short_run_divergences",
        lambda data: pd.DataFrame({"proxy": tables[data] + SHAKE[0], "uniform": 5 + SHAKE[1]}),
    )
    assert (verdict("FR-T2-a"), verdict("FR-T2-b")) == (better, NOT_RUN)


@pytest.mark.parametrize(
    ("parts", "first", "second"),
    [((1, 2, 3), HOLDS, HOLDS), ((2, 1, 0.5), REVERSED, REVERSED), ((1, 2, 1.5), HOLDS, REVERSED)],
)
def test_parts_of_an_update(monkeypatch, parts, first, second):
    named = zip(("stale", "distilled", "both"), parts, SHAKE[:3], strict=True)
    table = pd.DataFrame({name: part + aside for name, part, aside in named})
    monkeypatch.setattr(measure, "short_run_parts", lambda: table)
    assert (verdict("FR-F4-b"), verdict("FR-F4-c")) == (first, second)


def test_short_runs_give_findings():
    for name in ("FR-F4-b", "FR-F4-c"):
        finding = BY_ID[name].check(Measured({}))
        assert isinstance(finding, Finding)
        assert finding.verdict != NOT_RUN
    table = measure.short_run_divergences("CIFAR-10")
    assert len(table) == 3
    assert (table["proxy"] < table["uniform"]).all()

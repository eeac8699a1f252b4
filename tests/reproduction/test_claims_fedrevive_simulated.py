"""FedRevive's claims that need no recorded cell: each holds or fails by what it looks at."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from asyncfl_reproduction.claims import FAILS, HOLDS, NOT_RUN, REVERSED, Finding, Measured
from asyncfl_reproduction.claims import fedrevive as claims
from asyncfl_reproduction.measure import fedrevive as measure
from asyncfl_reproduction.published import published

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

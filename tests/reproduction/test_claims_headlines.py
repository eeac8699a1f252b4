"""The twelve headlines: fixed, untuned, and corrected together."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from asked import Asked
from refresh import printed_gain

from asyncfl_reproduction.claims import CLAIMS, Measured
from asyncfl_reproduction.claims.headlines import HEADLINES, check_headlines
from asyncfl_reproduction.league.across import QUESTIONS
from asyncfl_reproduction.published import published
from asyncfl_reproduction.statistics import holm
from asyncfl_reproduction.verdict_words import EQUIVALENT, HOLDS, NOT_RUN, REVERSED
from conftest import seeds_apart


def world(**levels: float) -> Measured:
    """Every cell that a headline asks for, at an accuracy by the end of its name, reached the sooner the higher it is."""
    asked = Asked()
    for headline in HEADLINES:
        headline.check(Measured(asked, asked))
    later = ("fedavg", "fedavgm", "fedbuff", "ca2fl", "fedasync", "fedfa", "fedadt")  # asked for once others are there
    summaries, curves = {}, {}
    for cell in asked.names | {f"fedadt/table1/mnist-dir0.1/{method}" for method in later}:
        row = seeds_apart(cell) / 200
        level = levels.get(re.split("[/-]", cell)[-1], levels["rest"]) + row
        summaries[cell] = pd.DataFrame({"last5_accuracy": level, "seed": range(10)})
        curves[cell] = [
            pd.DataFrame({"time": [0.0, *((1 - end) * 100 + np.arange(6)), 200.0], "accuracy": [0.1, *[end] * 7]})
            for end in level
        ]
    return Measured(summaries, curves)


def test_there_are_three_a_paper_each_of_a_claim_or_question():
    assert len(HEADLINES) == 12
    assert [one.id[:2] for one in HEADLINES] == [x for x in ("FE", "FR", "KU", "FA") for _ in "123"]
    known = {claim.id for claims in CLAIMS.values() for claim in claims} | {question.id for question in QUESTIONS}
    assert {one.artefact for one in HEADLINES} <= known


def test_printed_numbers_are_those_of_the_papers():
    said = {one.id: float(found[0]) for one in HEADLINES if (found := re.findall(r"[0-9.]+", one.printed))}

    def time(paper: str, data: str, method: str) -> float:
        table = published(paper, {"FedADT": "Table I", "FedRevive": "Table 1"}[paper])
        rows = table.query("dataset == @data and method == @method and metric == 'virtual time to target'")
        return float(rows[rows["alpha"].isin(["0.1", 0.1]) | (paper == "FedRevive")]["value"].item())

    def gain(place: str, ours: str, other: str) -> float:
        return printed_gain(f"{place}/{ours}", f"{place}/{other}")

    echo, revive, adt = "fedecho/table2/large-dir0.1", "fedrevive/table1/cifar10", "fedadt/table1/mnist-dir0.1"
    table6 = published("FedEcho", "Table 6")["value"].astype(float)
    assert said == pytest.approx({
        "FE-1": gain(echo, "fedecho-natural", "fedac"), "FE-2": gain(echo, "fedecho-natural", "fedbuff"),
        "FE-3": table6.max() - table6.min(),
        "FR-1": gain(revive, "fedrevive", "fedbuff"), "FR-3": gain(revive, "fedrevive", "afl_dw"),
        "FR-2": time("FedRevive", "CIFAR-10", "FedBuff") / time("FedRevive", "CIFAR-10", "FedRevive"),
        "KU-1": gain("kuiper/fig3b/bias1", "kuiper", "fedbuff"), "KU-2": gain("kuiper/fig3b/bias1", "kuiper", "oort"),
        "FA-1": time("FedADT", "MNIST", "CA2FL") / time("FedADT", "MNIST", "FedADT"),
        "FA-2": gain(adt, "fedadt", "fedasync"),
    }, abs=0.06)  # fmt: skip


def test_each_can_hold_be_reversed_and_be_told_from_no_difference():
    ours = {"natural": 0.8, "1000": 0.8, "fedrevive": 0.8, "kuiper": 0.8, "fedadt": 0.8}
    good, bad = world(rest=0.5, **ours), world(rest=0.8, **dict.fromkeys(ours, 0.5))
    table = check_headlines(good)
    assert set(table["verdict"]) == {HOLDS} and table["survives"].all() and (table["seeds"] == 10).all()
    assert (table.loc[table["unit"] == "points", "mean"] > 0.25).all()
    assert table.loc[table["unit"] == "log ratio", "id"].tolist() == ["FR-2", "FA-1"]
    assert set(check_headlines(bad)["verdict"]) == {REVERSED}
    level = check_headlines(world(rest=0.8)).set_index("id")["verdict"]
    assert set(level.drop(["FE-1", "FA-1", "FA-2"])) <= {EQUIVALENT, "open"} and level["FE-2"] == EQUIVALENT


def test_all_twelve_count_however_many_were_run():
    everything = world(rest=0.5, kuiper=0.506)
    one = Measured({name: of for name, of in everything.summaries.items() if "/bias1/" in name})
    table = check_headlines(one).set_index("id")
    ran = table["verdict"] != NOT_RUN
    assert sorted(table.index[ran]) == ["KU-1", "KU-2"] and table.loc[~ran, "holm"].isna().all()
    p = [min(1, 5 * x) for x in table.loc[ran, "p"]]  # the bar with ten seeds is 1 %
    assert table.loc[ran, "holm"].tolist() == pytest.approx(holm([*p, *[1.0] * 10])[:2])
    twin = Measured(
        one.summaries | {"kuiper/fig3b/bias1/fedbuff@server-rate": one.summaries["kuiper/fig3b/bias1/fedbuff"]}
    )
    assert check_headlines(twin)["column"].tolist() == [*["tuned"] * 7, "server_rate", *["tuned"] * 5]

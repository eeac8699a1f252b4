"""Headlines: the papers' central results as twelve comparisons, three per paper, fixed before they were run.

Each headline is one difference or ratio, so that it has an interval. Their p values are corrected together by Holm's
method, which counts all twelve whether they were run or not. If a method is compared with the best of several others,
that one is chosen by its mean among the cells recorded here. This makes the comparison harder than one with a method
named beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from asyncfl_reproduction.claims import fedadt, fedecho, fedrevive, kuiper
from asyncfl_reproduction.claims.checking import Claim, check_all
from asyncfl_reproduction.claims.findings import Finding
from asyncfl_reproduction.claims.measured import Measured
from asyncfl_reproduction.statistics import ERROR_LEVEL, holm
from asyncfl_reproduction.verdict_words import NOT_RUN


def _best(m: Measured, cells: Sequence[str]) -> str | None:
    means = {cell: values.mean() for cell in cells if (values := m.by_seed(cell)) is not None}
    return max(means, key=means.get) if len(means) == len(cells) else None


def _above_best(m: Measured, ours: str, others: list[str]) -> Finding:
    best = _best(m, others)
    return Finding(NOT_RUN, "not all of the others were run") if best is None else m.above(ours, best)


def _sooner_than_best(m: Measured, column: str) -> Finding:
    """Compare FedADT's time to target with that of the fastest baseline, chosen by mean log time."""
    target, mean = fedadt.targets(m, column), {}
    for method in fedadt.BASELINES:
        times = m.times_to(f"{column}/{method}", target)
        if times is None:
            return Finding(NOT_RUN, "not all of the others were run")
        mean[method] = np.log(times).mean()
    return m.sooner(f"{column}/fedadt", f"{column}/{min(mean, key=mean.get)}", target)


SETS, COLUMN = fedecho.SETS, fedadt.COLUMNS[0][1]
REVIVE, BUFF, DOWN = (fedrevive.cell("cifar10", method) for method in ("fedrevive", "fedbuff", "afl_dw"))
BIAS_1 = {method: kuiper.cell("fig3b", "bias1", method) for method in kuiper.METHODS}

HEADLINES = [
    Claim("FE-1", "FE-T2-a", "FedEcho with natural images ends above the best baseline at large delay, α = 0.1",
             "+15.8 points", lambda m: _above_best(
                 m, f"{fedecho.LARGE}/{SETS[1]}", [f"{fedecho.LARGE}/{method}" for method in fedecho.BASELINES])),
    Claim("FE-2", "FE-T2-a", "FedEcho with natural images ends above FedBuff there", "+25.0 points",
             lambda m: m.above(f"{fedecho.LARGE}/{SETS[1]}", f"{fedecho.LARGE}/fedbuff")),
    Claim("FE-3", "FE-T6-a", "FedEcho gains from ten times as many unlabelled samples to distil on", "+15.2 points",
             lambda m: m.above(fedecho.samples(m)[-1], fedecho.samples(m)[0])),
    Claim("FR-1", "FR-T1-a", "FedRevive ends above FedBuff on images", "+16.5 points",
             lambda m: m.above(REVIVE, BUFF)),
    Claim("FR-2", "FR-T1-b", "FedRevive is sooner at 85% of FedBuff's best accuracy", "× 1.47",
             lambda m: fedrevive.sooner(m, REVIVE, BUFF, BUFF)),
    Claim("FR-3", "FR-T1-d", "FedRevive ends above AFL-DW, which only weighs stale updates less", "+34.7 points",
             lambda m: m.above(REVIVE, DOWN)),
    Claim("KU-1", "KU-F3-a", "KUIPER ends above FedBuff on 12 devices at bias 1", "+12 points",
             lambda m: m.above(BIAS_1["kuiper"], BIAS_1["fedbuff"])),
    Claim("KU-2", "KU-F3-a", "KUIPER ends above Oort there", "+9 points",
             lambda m: m.above(BIAS_1["kuiper"], BIAS_1["oort"])),
    Claim("KU-3", "KU-F9-a", "KUIPER's error reward raises its accuracy at bias 0.8", "not printed",
             lambda m: m.above(kuiper.cell("fig3b", "bias0.8", "kuiper"), kuiper.cell("fig9a", "bias0.8", "no-error"))),
    Claim("FA-1", "FA-T1-a", "FedADT is sooner at the target than the soonest other method, MNIST, α = 0.1",
             "× 1.42", lambda m: _sooner_than_best(m, COLUMN)),
    Claim("FA-2", "FA-T2-a", "FedADT ends above the better of FedAsync and FedFa there", "+5.2 points",
             lambda m: _above_best(m, f"{COLUMN}/fedadt", [f"{COLUMN}/{method}" for method in fedadt.ASYNCHRONOUS])),
    Claim("FA-3", "X-3", "FedADT's distillation adds to what the server's labels alone are worth", "not printed",
             lambda m: m.above(f"{COLUMN}/fedadt", fedadt.LABELS_ONLY)),
]  # fmt: skip
"""The headlines, each with the claim to which it belongs as its artefact; there must always be twelve."""


def check_headlines(measured: Measured) -> pd.DataFrame:
    """Return one row per headline and column of verdicts, with its verdict, interval and corrected p value.

    The columns are id, claim, sentence, paper (the paper's number), column (of :data:`.COLUMNS`), verdict, the fields
    of a :class:`.Contrast` that a forest plot needs, holm (the p value adjusted over the twelve headlines of a column,
    with the threshold 5 % at every look) and survives (whether ``holm`` is at most 5 %). Numbers are NaN if nothing was
    run.
    """
    rows = []
    for claim, column, finding, *_ in check_all(measured, HEADLINES):
        (found,) = finding.contrasts or [None]
        numbers = {name: np.nan if found is None else getattr(found, name) for name in SHOWN}
        first = {"id": claim.id, "claim": claim.artefact, "sentence": claim.text, "paper": claim.printed}
        rows.append(first | {"column": column, "verdict": finding.verdict, **numbers, "scaled": finding.weight})
    table = pd.DataFrame(rows)
    table["holm"] = table.groupby("column")["scaled"].transform(_over_all)
    return table.drop(columns="scaled").assign(survives=table["holm"] <= ERROR_LEVEL)


SHOWN = ("unit", "mean", "low", "high", "level", "seeds", "p", "wilcoxon")


def _over_all(p: pd.Series) -> np.ndarray:
    """Adjust the headlines' p values by Holm's method for all twelve headlines, including those not run."""
    rest = len(HEADLINES) - len(p)
    adjusted = holm([*p.fillna(1.0), *[1.0] * rest])[: len(p)]
    return np.where(p.isna(), np.nan, adjusted)

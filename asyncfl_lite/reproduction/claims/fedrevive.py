"""FedRevive's claims over recorded cells, with the identifiers of the list of experiments.

Those that need no recorded cell (delays, schedules, printed arithmetic, proxies, parts of an update) are in
``fedrevive_simulated.py``. Accuracy is the mean of a run's last five evaluations. Time to target
is the paper's: virtual time to 85% of the best accuracy of FedBuff on the same data, both on the running average,
here of five evaluations; FedAvg's curve, whose evaluations are far apart and do not fluctuate, is taken raw.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from asyncfl_lite.reproduction.claims.base import (
    FAILS,
    FEWEST_SEEDS,
    HOLDS,
    NOT_RUN,
    UNDECIDED,
    Claim,
    Finding,
    Measured,
    all_of,
    deviation,
    pooled_deviation,
    time_text,
)
from asyncfl_lite.reproduction.claims.fedrevive_simulated import SIMULATED

DATA = ("cifar10", "cifar100", "newsgroups", "femnist")
ASYNCHRONOUS = ("fedbuff", "afl_dw", "dd_fedrevive", "fedrevive")
WINDOW = 5
ACCURACY = "last5_accuracy"
SHARE = 0.85


def cell(data: str, method: str, group: str = "table1") -> str:
    """Return a cell's name."""
    return f"fedrevive/{group}/{data}/{method}"


def target(m: Measured, buff: str) -> float | None:
    """Return 85% of the best running average of FedBuff's cell ``buff``, mean over seeds, in percent."""
    if buff not in m.curves:
        return None
    best = [curve["accuracy"].rolling(WINDOW, min_periods=1).mean().max() for curve in m.curves[buff]]
    return float(100 * SHARE * np.mean(best))


def sooner(m: Measured, faster: str, slower: str, buff: str, factor: float = 1.0) -> Finding:
    """Whether ``factor`` times one cell's mean time to target is shorter than another's.

    A seed that does not reach the target counts with its run's end, which is less than it would have needed: that
    may show the slower cell to be slower, or the faster not to be faster, and never the reverse.
    """
    names = f"{faster.removeprefix('fedrevive/')} against {slower.removeprefix('fedrevive/')}"
    goal = target(m, buff)
    if goal is None or faster not in m.curves or slower not in m.curves:
        return Finding(NOT_RUN, f"{names}: not run")
    times = [m.times_to(name, goal, 1 if name.endswith("/fedavg") else WINDOW) for name in (faster, slower)]
    text = f"{names}, time to {goal:.1f}%: {time_text(times[0])}, {time_text(times[1])}"
    ends = [np.array([curve["time"].iloc[-1] for curve in m.curves[name]]) for name in (faster, slower)]
    short, long = (np.where(np.isinf(time), end, time) for time, end in zip(times, ends, strict=True))
    difference, spread = long.mean() - factor * short.mean(), pooled_deviation(factor * short, long)
    if min(len(short), len(long)) < FEWEST_SEEDS or abs(difference) <= spread:
        return Finding(UNDECIDED, text)
    if difference > 0:
        return Finding(UNDECIDED if np.isinf(times[0]).any() else HOLDS, text)
    return Finding(UNDECIDED if np.isinf(times[1]).any() else FAILS, text)


def _above_on_every_data_set(m: Measured, better: str, worse: str) -> Finding:
    return all_of(*(m.above(cell(data, better), cell(data, worse), number=ACCURACY) for data in DATA))


def _revive_sooner_than_buff(m: Measured) -> Finding:
    return all_of(*(sooner(m, cell(d, "fedrevive"), cell(d, "fedbuff"), cell(d, "fedbuff")) for d in DATA))


def _fedavg_slowest(m: Measured) -> Finding:
    """FedAvg takes at least four times FedBuff's time, and longer than each of the others."""
    factors = {"fedbuff": 4.0, "afl_dw": 1.0, "dd_fedrevive": 1.0, "fedrevive": 1.0}
    return all_of(
        *(sooner(m, cell(d, x), cell(d, "fedavg"), cell(d, "fedbuff"), by) for d in DATA for x, by in factors.items())
    )


def _dd_fastest(m: Measured) -> Finding:
    others = ("fedavg", "fedbuff", "afl_dw", "fedrevive")
    return all_of(
        *(sooner(m, cell(d, "dd_fedrevive"), cell(d, other), cell(d, "fedbuff")) for d in DATA for other in others)
    )


def roughness(curve: pd.DataFrame) -> float:
    """Return how far, on average, an evaluation is from the mean of its two neighbours, in points.

    Over a run's second half, in which accuracy rises little; NaN for fewer than three evaluations.
    """
    raw = 100 * curve["accuracy"].to_numpy()[len(curve) // 2 :]
    return float(np.abs(raw[1:-1] - (raw[:-2] + raw[2:]) / 2).mean()) if len(raw) > 2 else float("nan")


def _asynchronous_curves_rougher(m: Measured) -> Finding:
    cells = [
        cell(data, method) for data in DATA for method in ("fedavg", *ASYNCHRONOUS) if cell(data, method) in m.curves
    ]
    rough = Measured({name: pd.DataFrame({"roughness": [roughness(one) for one in m.curves[name]]}) for name in cells})
    pairs = [(cell(data, method), cell(data, "fedavg")) for data in DATA for method in ASYNCHRONOUS]
    return all_of(*(rough.above(left, right, number="roughness") for left, right in pairs))


def _loss_by_shift(m: Measured, data: str, method: str) -> pd.DataFrame | None:
    """Return the points that a method loses from the paper's delays to the shifted ones, a row a seed."""
    usual, shifted = (
        m.values(cell(data, method), ACCURACY),
        m.values(cell(f"{data}-shifted", method, "figure3"), ACCURACY),
    )
    if usual is None or shifted is None or len(usual) != len(shifted):
        return None
    return pd.DataFrame({"loss": usual - shifted})


def _distilling_loses_less(m: Measured) -> Finding:
    findings = []
    for data in ("cifar10", "newsgroups"):
        lost = {f"loss on {data} of {method}": _loss_by_shift(m, data, method) for method in ASYNCHRONOUS}
        losses = Measured({name: frame for name, frame in lost.items() if frame is not None})
        buff, damped, dd, revive = lost
        findings += [losses.above(plain, kd, number="loss") for plain in (buff, damped) for kd in (revive, dd)]
    return all_of(*findings)


def _adaptive_above_constant(m: Measured) -> Finding:
    constants = [cell("cifar10", f"beta-{beta}", "figure4") for beta in ("0.75", "1")]
    return all_of(*(m.above(cell("cifar10", "fedrevive"), constant, number=ACCURACY) for constant in constants))


def _proxy_as_good_as_truth(m: Measured) -> Finding:
    """Whether two means differ by less than one pooled deviation; that is the claim, so more fails it."""
    findings = []
    for data in ("cifar10", "cifar100", "femnist"):
        proxy, true = (
            m.values(name, ACCURACY) for name in (cell(data, "fedrevive"), cell(data, "true-shares", "figure5"))
        )
        if proxy is None or true is None:
            findings.append(Finding(NOT_RUN, f"{data}: not run"))
            continue
        means = " against ".join(f"{values.mean():.1f} ± {deviation(values):.1f}" for values in (proxy, true))
        text = f"{data}: proxies against true shares, {means}"
        near = abs(proxy.mean() - true.mean()) <= pooled_deviation(proxy, true)
        enough = min(len(proxy), len(true)) >= FEWEST_SEEDS
        findings.append(Finding((HOLDS if near else FAILS) if enough else UNDECIDED, text))
    return all_of(*findings)


def _milder_heterogeneity(m: Measured) -> Finding:
    findings = []
    for data in ("cifar10-dir1", "cifar100-dir1", "newsgroups-dir1"):
        revive, buff = (cell(data, method, "figure8") for method in ("fedrevive", "fedbuff"))
        findings += [sooner(m, revive, buff, buff), m.above(revive, buff, number=ACCURACY)]
    return all_of(*findings)


def _snippets_alone_below(m: Measured) -> Finding:
    alone = "fedrevive/text/snippets-alone"
    best = m.values(alone, "best_accuracy")
    if best is None:
        return Finding(NOT_RUN, "text/snippets-alone: not run")
    federated = {cell("newsgroups", x): m.values(cell("newsgroups", x), ACCURACY) for x in ("fedavg", *ASYNCHRONOUS)}
    ran = {name: values for name, values in federated.items() if values is not None}
    points = Measured({name: pd.DataFrame({"points": values}) for name, values in {**ran, alone: best}.items()})
    return all_of(*(points.above(name, alone, number="points") for name in federated))


RECORDED = [
    Claim("FR-T1-a", "Table 1", "FedRevive more accurate than FedBuff on all four data sets", "fails in 1 of 4",
          lambda m: _above_on_every_data_set(m, "fedrevive", "fedbuff")),
    Claim("FR-T1-b", "Table 1", "FedRevive at target sooner than FedBuff on all four data sets", "holds",
          _revive_sooner_than_buff),
    Claim("FR-T1-c", "Table 1", "FedAvg slowest to target, at least 4 times FedBuff's time", "holds", _fedavg_slowest),
    Claim("FR-T1-d", "Table 1", "FedRevive more accurate than AFL-DW: it is not down-weighting alone", "holds",
          lambda m: _above_on_every_data_set(m, "fedrevive", "afl_dw")),
    Claim("FR-T1-e", "Table 1", "DD-FedRevive fastest to target", "fails in 1 of 4", _dd_fastest),
    Claim("FR-T1-f", "Table 1", "FedRevive ends at least as accurate as DD-FedRevive", "fails in 2 of 4",
          lambda m: _above_on_every_data_set(m, "fedrevive", "dd_fedrevive")),
    Claim("FR-F9-a", "Fig. 9", "raw curves of the asynchronous methods vary more from step to step than FedAvg's",
          "not printed", _asynchronous_curves_rougher),
    Claim("FR-F3-a", "Fig. 3", "FedRevive and DD-FedRevive lose less than FedBuff and AFL-DW under shifted delays",
          "not printed", _distilling_loses_less),
    Claim("FR-F4-a", "Fig. 4, Fig. 10", "adaptive β more accurate than a constant 0.75 and than 1", "not printed",
          _adaptive_above_constant),
    Claim("FR-F5-a", "Fig. 5", "proxies and true class shares less than one deviation apart", "not printed",
          _proxy_as_good_as_truth),
    Claim("FR-F8-a", "Fig. 8", "FedRevive faster and more accurate than FedBuff at α = 1", "not printed",
          _milder_heterogeneity),
    Claim("FR-X-a", "Section 3.2 text", "training on the snippets alone far below every federated run (ours: below)",
          "holds", _snippets_alone_below),
]  # fmt: skip

FEDREVIVE = [*RECORDED, *SIMULATED]

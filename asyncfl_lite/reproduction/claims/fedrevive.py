"""FedRevive's claims, in the order of the paper's tables and figures.

Those about delays, schedules, printed arithmetic, proxies and parts of an update need no recorded cell; their numbers
are in ``measure/fedrevive.py``. Accuracy is the mean of a run's last five evaluations. Time to target is the paper's:
virtual time to 85% of the best accuracy of FedBuff on the same data, both on the running average, here of five
evaluations; FedAvg's curve, whose evaluations are far apart and do not fluctuate, is taken raw.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from asyncfl_lite.reproduction.claims.base import (
    FAILS,
    FEWEST_SEEDS,
    HOLDS,
    NOT_RUN,
    UNDECIDED,
    Claim,
    Finding,
    Measured,
    against,
    all_of,
    compare,
    mean_text,
    pooled_deviation,
    time_text,
)
from asyncfl_lite.reproduction.measure import fedrevive as measure
from asyncfl_lite.reproduction.published import published

DATA = ("cifar10", "cifar100", "newsgroups", "femnist")
ASYNCHRONOUS = ("fedbuff", "afl_dw", "dd_fedrevive", "fedrevive")
WINDOW = 5
ACCURACY = "last5_accuracy"
SHARE = 0.85


def cell(data: str, method: str, group: str = "table1") -> str:
    """Return a cell's name."""
    return f"fedrevive/{group}/{data}/{method}"


def target(m: Measured, buff: str) -> float | None:
    """Return 85% of the best running average of FedBuff's cell ``buff``, mean over seeds, a fraction."""
    if buff not in m.curves:
        return None
    best = [curve["accuracy"].rolling(WINDOW, min_periods=1).mean().max() for curve in m.curves[buff]]
    return float(SHARE * np.mean(best))


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
    text = f"{names}, time to {100 * goal:.1f}%: {time_text(times[0])}, {time_text(times[1])}"
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
    """Return how far, on average, an evaluation is from the mean of its two neighbours, a fraction.

    Over a run's second half, in which accuracy rises little; NaN for fewer than three evaluations.
    """
    raw = curve["accuracy"].to_numpy()[len(curve) // 2 :]
    return float(np.abs(raw[1:-1] - (raw[:-2] + raw[2:]) / 2).mean()) if len(raw) > 2 else float("nan")


def _asynchronous_curves_rougher(m: Measured) -> Finding:
    def rough(name: str) -> np.ndarray | None:
        return np.array([roughness(curve) for curve in m.curves[name]]) if name in m.curves else None

    pairs = [(cell(data, method), cell(data, "fedavg")) for data in DATA for method in ASYNCHRONOUS]
    return all_of(*(compare(rough(one), rough(two), f"{against(one, two)}, roughness") for one, two in pairs))


def _distilling_loses_less(m: Measured) -> Finding:
    findings = []
    for data in ("cifar10", "newsgroups"):
        lost = {
            method: m.gap(cell(data, method), cell(f"{data}-shifted", method, "figure3"), ACCURACY)
            for method in ASYNCHRONOUS
        }
        name = f"loss on {data} of {{}}".format
        findings += [
            compare(lost[plain], lost[distilling], f"{against(name(plain), name(distilling))}, loss")
            for plain in ("fedbuff", "afl_dw")
            for distilling in ("fedrevive", "dd_fedrevive")
        ]
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
        means = " against ".join(mean_text(100 * values) for values in (proxy, true))
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
    federated = [cell("newsgroups", method) for method in ("fedavg", *ASYNCHRONOUS)]
    return all_of(*(compare(m.values(name, ACCURACY), best, f"{against(name, alone)}, points") for name in federated))


def _right_skewed(m: Measured) -> Finding:
    tau = measure.staleness("fedrevive")
    mean, skew, late = tau.mean(), stats.skew(tau), np.quantile(tau, 0.99)
    text = f"mean {mean:.2f}, skewness {skew:.2f}, 99th percentile {late:.0f}"
    holds = abs(mean - (measure.IN_FLIGHT - 1)) < 1 and skew > 0 and late > 2 * mean
    return Finding(HOLDS if holds else FAILS, text)


def _shape_differs_mean_does_not(m: Measured) -> Finding:
    usual, shifted = measure.staleness("fedrevive"), measure.staleness("fedrevive_shift")
    test = stats.ks_2samp(usual[::50], shifted[::50])  # neighbours depend on each other
    text = f"means {usual.mean():.2f} and {shifted.mean():.2f}, KS distance {test.statistic:.2f}, p = {test.pvalue:.1g}"
    holds = test.pvalue < 0.01 and abs(usual.mean() - shifted.mean()) < 1
    return Finding(HOLDS if holds else FAILS, text)


def _schedules_in_bounds(m: Measured) -> Finding:
    for family in measure.FAMILIES:
        values = measure.betas(family, 1000)
        if values[0] != 0 or values.max() > 1 or (np.diff(values) < 0).any():
            return Finding(
                FAILS, f"{family}: from {values[0]:g} to {values.max():g}, falls {(np.diff(values) < 0).sum()} times"
            )
    return Finding(HOLDS, f"{', '.join(measure.FAMILIES)}, staleness 0 to 1000")


def _table3() -> pd.DataFrame:
    """Return Table 3 with one row per component: ``iteration`` and ``total``, in its GFLOP."""
    table = published("FedRevive", "Table 3")
    kind = np.where(table["metric"].str.contains("over all"), "total", "iteration")
    wide = table.assign(kind=kind).pivot_table(index="component", columns="kind", values="value")
    iterations = table.groupby("component")["horizon"].first().str.extract(r"(\d+) iters")[0].astype(int)
    return wide.assign(iterations=iterations)


def _totals_add_up(m: Measured) -> Finding:
    table = _table3()
    wrong = table[~np.isclose(table["total"], table["iteration"] * table["iterations"], rtol=1e-3)]
    text = "; ".join(f"{row.total:g} = {row.iterations} × {row.iteration:g}" for row in table.itertuples())
    return Finding(HOLDS if wrong.empty else FAILS, text)


def _server_works_more(m: Measured) -> Finding:
    total = _table3()["total"]
    client, made, distilled = (
        total[name]
        for name in ("client local training", "generator training and synthesis", "distillation, sequential")
    )
    return Finding(
        HOLDS if made + distilled > client else FAILS, f"{distilled:g} + {made:g} against {client:g} a sample"
    )


def _counts_mac(m: Measured) -> Finding:
    """Whether a training step, three forwards, is the printed number in multiply-accumulates, half of FLOP."""
    forward, printed = measure.resnet18_gflop(), _table3()["iteration"]["client local training"]
    text = f"ResNet-18: forward {forward:.2f} GFLOP, step {1.5 * forward:.2f} GMAC, printed {printed:g}"
    return Finding(HOLDS if abs(1.5 * forward - printed) < 0.05 * printed else FAILS, text)


def _server_faster_than_client(m: Measured) -> Finding:
    table = published("FedRevive", "Appendix D text").set_index("metric")["value"]
    made, distilled, client = (
        table[table.index.str.contains(what)].item() for what in ("synthesis", "distillation, sequential", "T4")
    )
    text = f"printed: {made:g} + {distilled:g} = {made + distilled:g} s against {client:g} s"
    return Finding(HOLDS if made + distilled < client else FAILS, text)


def _proxy_beats_uniform(m: Measured) -> Finding:
    findings = []
    for dataset in measure.PROBED:
        table, name = measure.short_run_divergences(dataset), f"{dataset} {{}}".format
        label = f"{against(name('uniform'), name('proxy'))}, nats × 100"
        findings.append(compare(table["uniform"].to_numpy(), table["proxy"].to_numpy(), label))
    return all_of(*findings)


def _divergences_in_order(m: Measured) -> Finding:
    nats = {dataset: measure.short_run_divergences(dataset)["proxy"].to_numpy() for dataset in measure.PROBED}
    pairs = zip(list(nats)[1:], nats, strict=False)
    return all_of(*(compare(nats[more], nats[less], f"{against(more, less)}, nats × 100") for more, less in pairs))


def _part_above(better: str, worse: str) -> Finding:
    """Compare the mean one-step changes of accuracy of two parts of an update."""
    left, right = (measure.short_run_parts()[part].to_numpy() for part in (better, worse))
    return compare(left, right, f"{against(better, worse)}, points × 100", scale=1e4)


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

SIMULATED = [
    Claim("FR-T2-a", "Table 2", "true shares nearer to the proxy than to equal shares (ours: short runs of stand-ins, "
          "24 clients, in 0.01 nats)", "not printed", _proxy_beats_uniform),
    Claim("FR-T2-b", "Table 2", "KL(true || proxy) in the order CIFAR-10 < FEMNIST < CIFAR-100 < 20NewsGroups (ours: "
          "short runs of stand-ins, in 0.01 nats)", "holds", _divergences_in_order),
    Claim("FR-T3-a", "Table 3", "totals are iterations times compute per iteration", "holds", _totals_add_up),
    Claim("FR-T3-b", "Table 3", "server work per sample exceeds a client's with 8 teachers, sequential", "holds",
          _server_works_more),
    Claim("FR-T3-c", "Table 3", "what is called FLOP are multiply-accumulates of ResNet-18", "holds", _counts_mac),
    Claim("FR-F4-b", "Fig. 4, Fig. 10", "adaptive β: the distilled part alone gains more per step than the stale part "
          "alone (ours: short smoke runs, in 0.01 points)", "not printed",
          lambda m: _part_above("distilled", "stale")),
    Claim("FR-F4-c", "Fig. 4, Fig. 10", "adaptive β: both parts together gain at least as much per step as either "
          "(ours: short smoke runs, in 0.01 points)", "not printed",
          lambda m: all_of(_part_above("both", "distilled"), _part_above("both", "stale"))),
    Claim("FR-F6-a", "Fig. 6", "staleness right-skewed, mean 99, 99th percentile more than twice the mean",
          "not printed", _right_skewed),
    Claim("FR-F7-a", "Fig. 7", "shifted delays change the histogram of staleness, not its mean", "not printed",
          _shape_differs_mean_does_not),
    Claim("FR-F11-a", "Fig. 11", "every schedule rises from 0 at no staleness to at most 1 (ours: the authors' code's)",
          "not printed", _schedules_in_bounds),
    Claim("FR-X-b", "Appendix D text", "server time per update on an H100 is below client time on a T4", "holds",
          _server_faster_than_client),
]  # fmt: skip

FEDREVIVE = [*RECORDED, *SIMULATED]

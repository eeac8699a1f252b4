"""FedRevive's claims, in the order of the paper's tables and figures.

Claims about delays, schedules, printed arithmetic, proxies and parts of an update need no recorded cell; their numbers
come from ``measure/fedrevive.py``. Accuracy is the mean of a run's last five evaluations. Time to target is defined as
in the paper: the virtual time to 85% of FedBuff's best accuracy on the same data, and here also with the same seed,
both on the running average of five evaluations. FedAvg's curve, whose evaluations are far apart and do not fluctuate,
is used without averaging.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from asyncfl_reproduction.claims.checking import ARITHMETIC, CONSTRUCTED, NOT_CHECKABLE, Claim, not_run
from asyncfl_reproduction.claims.findings import Finding, against, all_of, as_finding, compare
from asyncfl_reproduction.claims.measured import Measured, best_average
from asyncfl_reproduction.measure import fedrevive as measure
from asyncfl_reproduction.number_texts import mean_text
from asyncfl_reproduction.published import published
from asyncfl_reproduction.statistics import contrast
from asyncfl_reproduction.verdict_words import FAILS, HOLDS, NOT_RUN

DATA = ("cifar10", "cifar100", "newsgroups", "femnist")
ASYNCHRONOUS = ("fedbuff", "afl_dw", "dd_fedrevive", "fedrevive")
WINDOW = 5
SHARE = 0.85
ALONE = "fedrevive/text/snippets-alone"
SMALL_STALENESS = 0.05
"""Largest relative growth of staleness that counts as small."""


def cell(data: str, method: str, group: str = "table1") -> str:
    """Return the full name of one of FedRevive's cells."""
    return f"fedrevive/{group}/{data}/{method}"


def targets(m: Measured, buff: str) -> pd.Series | None:
    """Return 85% of the best running average of accuracy in FedBuff's cell ``buff``, as fractions by seed."""
    best = m.of_curves(buff, lambda curve: best_average(curve, WINDOW))
    return None if best is None else SHARE * best


def target(m: Measured, buff: str) -> float | None:
    """Return the target accuracy from FedBuff's cell ``buff``, as the mean of :func:`targets` over seeds."""
    found = targets(m, buff)
    return None if found is None else float(found.mean())


def sooner(m: Measured, faster: str, slower: str, buff: str, factor: float = 1.0) -> Finding:
    """Check that ``slower`` takes at least ``factor`` times as long as ``faster`` to reach FedBuff's target."""
    goals = targets(m, buff)
    windows = tuple(1 if name.endswith("/fedavg") else WINDOW for name in (faster, slower))
    return m.sooner(faster, slower, pd.Series(dtype=float) if goals is None else goals, windows, factor)


def _sooner_on(m: Measured, data: str, faster: str, slower: str, factor: float = 1.0) -> Finding:
    return sooner(m, cell(data, faster), cell(data, slower), cell(data, "fedbuff"), factor)


def roughness(curve: pd.DataFrame) -> float:
    """Return the mean distance of an evaluation's accuracy from the mean of its two neighbours, as a fraction.

    It is measured over a run's second half, in which accuracy rises little, and is NaN for fewer than three
    evaluations.
    """
    raw = curve["accuracy"].to_numpy()[len(curve) // 2 :]
    return float(np.abs(raw[1:-1] - (raw[:-2] + raw[2:]) / 2).mean()) if len(raw) > 2 else float("nan")


def _rougher(m: Measured, one: str, other: str) -> Finding:
    sides = (m.of_curves(name, roughness) for name in (one, other))
    return compare(*sides, f"{against(one, other)}, roughness", unit="roughness")


def _distilling_loses_less(m: Measured) -> Finding:
    findings = []
    for data in ("cifar10", "newsgroups"):
        lost = {
            method: m.gap(cell(data, method), cell(f"{data}-shifted", method, "figure3")) for method in ASYNCHRONOUS
        }
        name = f"loss on {data} of {{}}".format
        findings += [
            compare(lost[plain], lost[distilling], f"{against(name(plain), name(distilling))}, loss")
            for plain in ("fedbuff", "afl_dw")
            for distilling in ("fedrevive", "dd_fedrevive")
        ]
    return all_of(findings)


def _milder_heterogeneity(m: Measured) -> Finding:
    findings = []
    for data in ("cifar10-dir1", "cifar100-dir1", "newsgroups-dir1"):
        revive, buff = (cell(data, method, "figure8") for method in ("fedrevive", "fedbuff"))
        findings += [sooner(m, revive, buff, buff), m.above(revive, buff)]
    return all_of(findings)


def _small_additional_staleness(m: Measured) -> Finding:
    first, after = cell("cifar10", "dispatch-first", "control"), cell("cifar10", "fedrevive")
    ages = [m.by_seed(name, "mean_staleness") for name in (first, after)]
    label = f"{against(first, after)}, staleness"
    if any(age is None for age in ages):
        return Finding(NOT_RUN, f"{label}: not run")
    more = (ages[0] / ages[1]).dropna() - 1
    found = contrast((SMALL_STALENESS - more).to_numpy(), label, unit="share", equal=None)
    shown = f"{mean_text(ages[0])} and {mean_text(ages[1])} versions, {100 * more.mean():+.1f}%"
    staler = Finding(found.verdict, f"{label}: {shown} (asked: at most {100 * SMALL_STALENESS:g})", found)
    return all_of([staler, m.level(first, after)])


def _right_skewed(m: Measured) -> Finding:
    tau = measure.staleness("fedrevive")
    mean, skew, late = tau.mean(), stats.skew(tau), np.quantile(tau, 0.99)
    text = f"mean {mean:.2f}, skewness {skew:.2f}, 99th percentile {late:.0f}"
    holds = abs(mean - (measure.IN_FLIGHT - 1)) < 1 and skew > 0 and late > 2 * mean
    return as_finding(holds, text)


def _shape_differs_mean_does_not(m: Measured) -> Finding:
    usual, shifted = measure.staleness("fedrevive"), measure.staleness("fedrevive_shift")
    test = stats.ks_2samp(usual[::50], shifted[::50])  # because neighbours are not independent
    text = f"means {usual.mean():.2f} and {shifted.mean():.2f}, KS distance {test.statistic:.2f}, p = {test.pvalue:.1g}"
    holds = test.pvalue < 0.01 and abs(usual.mean() - shifted.mean()) < 1
    return as_finding(holds, text)


def _schedules_in_bounds(m: Measured) -> Finding:
    for family in measure.FAMILIES:
        values = measure.betas(family, 1000)
        if values[0] != 0 or values.max() > 1 or (np.diff(values) < 0).any():
            return Finding(
                FAILS, f"{family}: from {values[0]:g} to {values.max():g}, falls {(np.diff(values) < 0).sum()} times"
            )
    return Finding(HOLDS, f"{', '.join(measure.FAMILIES)}, staleness 0 to 1000")


def _table3() -> pd.DataFrame:
    """Return Table 3's printed GFLOP by component, for one iteration and in total, with the number of iterations."""
    table = published("FedRevive", "Table 3")
    kind = np.where(table["metric"].str.contains("over all"), "total", "iteration")
    wide = table.assign(kind=kind).pivot_table(index="component", columns="kind", values="value")
    iterations = table.groupby("component")["horizon"].first().str.extract(r"(\d+) iters")[0].astype(int)
    return wide.assign(iterations=iterations)


def _totals_add_up(m: Measured) -> Finding:
    table = _table3()
    wrong = table[~np.isclose(table["total"], table["iteration"] * table["iterations"], rtol=1e-3)]
    text = "; ".join(f"{row.total:g} = {row.iterations} × {row.iteration:g}" for row in table.itertuples())
    return as_finding(wrong.empty, text)


def _server_works_more(m: Measured) -> Finding:
    total = _table3()["total"]
    client, made, distilled = (
        total[name]
        for name in ("client local training", "generator training and synthesis", "distillation, sequential")
    )
    return as_finding(made + distilled > client, f"{distilled:g} + {made:g} against {client:g} a sample")


def _counts_mac(m: Measured) -> Finding:
    forward, printed = measure.resnet18_gflop(), _table3()["iteration"]["client local training"]
    text = f"ResNet-18: forward {forward:.2f} GFLOP, step {1.5 * forward:.2f} GMAC, printed {printed:g}"
    return as_finding(abs(1.5 * forward - printed) < 0.05 * printed, text)


def _server_faster_than_client(m: Measured) -> Finding:
    table = published("FedRevive", "Appendix D text").set_index("metric")["value"]
    made, distilled, client = (
        table[table.index.str.contains(what)].item() for what in ("synthesis", "distillation, sequential", "T4")
    )
    text = f"printed: {made:g} + {distilled:g} = {made + distilled:g} s against {client:g} s"
    return as_finding(made + distilled < client, text)


def _proxy_beats_uniform(m: Measured) -> Finding:
    findings = []
    for dataset in measure.PROBED:
        table, name = measure.short_run_divergences(dataset), f"{dataset} {{}}".format
        label = f"{against(name('uniform'), name('proxy'))}, nats × 100"
        findings.append(compare(table["uniform"].to_numpy(), table["proxy"].to_numpy(), label, unit="nats"))
    return all_of(findings)


def _part_above(better: str, worse: str) -> Finding:
    left, right = (measure.short_run_parts()[part].to_numpy() for part in (better, worse))
    return compare(left, right, f"{against(better, worse)}, points × 100", unit="points a step", scale=1e4)


RECORDED = [
    Claim("FR-T1-a", "Table 1", "FedRevive more accurate than FedBuff on all four data sets", "fails in 1 of 4",
          lambda m: all_of(m.above(cell(data, "fedrevive"), cell(data, "fedbuff")) for data in DATA)),
    Claim("FR-T1-b", "Table 1", "FedRevive at target sooner than FedBuff on all four data sets", "holds",
          lambda m: all_of(_sooner_on(m, data, "fedrevive", "fedbuff") for data in DATA)),
    Claim("FR-T1-c", "Table 1", "FedAvg slowest to target, at least 4 times FedBuff's time", "holds",
          lambda m: all_of(_sooner_on(m, data, method, "fedavg", 4.0 if method == "fedbuff" else 1.0)
                           for data in DATA for method in ASYNCHRONOUS)),
    Claim("FR-T1-d", "Table 1", "FedRevive more accurate than AFL-DW: it is not down-weighting alone", "holds",
          lambda m: all_of(m.above(cell(data, "fedrevive"), cell(data, "afl_dw")) for data in DATA)),
    Claim("FR-T1-e", "Table 1", "DD-FedRevive fastest to target", "fails in 1 of 4",
          lambda m: all_of(_sooner_on(m, data, "dd_fedrevive", other) for data in DATA
                           for other in ("fedavg", "fedbuff", "afl_dw", "fedrevive"))),
    Claim("FR-T1-f", "Table 1", "FedRevive ends at least as accurate as DD-FedRevive", "fails in 2 of 4",
          lambda m: all_of(m.at_least(cell(data, "fedrevive"), cell(data, "dd_fedrevive")) for data in DATA)),
    Claim("FR-F9-a", "Fig. 9", "raw curves of the asynchronous methods vary more from step to step than FedAvg's",
          "not printed", lambda m: all_of(_rougher(m, cell(data, method), cell(data, "fedavg"))
                                          for data in DATA for method in ASYNCHRONOUS)),
    Claim("FR-F3-a", "Fig. 3", "FedRevive and DD-FedRevive lose less than FedBuff and AFL-DW under shifted delays",
          "not printed", _distilling_loses_less),
    Claim("FR-F4-a", "Fig. 4, Fig. 10", "adaptive β more accurate than a constant 0.75 and than 1", "not printed",
          lambda m: all_of(m.above(cell("cifar10", "fedrevive"), cell("cifar10", f"beta-{beta}", "figure4"))
                           for beta in ("0.75", "1"))),
    Claim("FR-F5-a", "Fig. 5", "proxies as good as true class shares (ours: within a point)", "not printed",
          lambda m: all_of(m.level(cell(data, "fedrevive"), cell(data, "true-shares", "figure5"))
                           for data in ("cifar10", "cifar100", "femnist"))),
    Claim("FR-F8-a", "Fig. 8", "FedRevive faster and more accurate than FedBuff at α = 1", "not printed",
          _milder_heterogeneity),
    Claim("FR-X-a", "Section 3.2 text", "training on the snippets alone far below every federated run (ours: below)",
          "holds", lambda m: all_of(
              compare(m.by_seed(name), m.by_seed(ALONE, "best_accuracy"), f"{against(name, ALONE)}, points")
              for name in (cell("newsgroups", method) for method in ("fedavg", *ASYNCHRONOUS)))),
    Claim("FR-X-c", "Appendix C text", "dispatching before the server distils adds a small staleness (ours: under 5%, "
          "and accuracy within a point)", "not printed", _small_additional_staleness),
]  # fmt: skip

SIMULATED = [
    Claim("FR-T2-a", "Table 2", "true shares nearer to the proxy than to equal shares (ours: short runs of stand-ins, "
          "24 clients, in 0.01 nats)", "not printed", _proxy_beats_uniform),
    Claim("FR-T2-b", "Table 2", "KL(true || proxy) in the order CIFAR-10 < FEMNIST < CIFAR-100 < 20NewsGroups",
          "holds", not_run("it is an order of these four data sets, for which stand-ins say nothing"), NOT_CHECKABLE),
    Claim("FR-T3-a", "Table 3", "totals are iterations times compute per iteration", "holds", _totals_add_up,
          ARITHMETIC),
    Claim("FR-T3-b", "Table 3", "server work per sample exceeds a client's with 8 teachers, sequential", "holds",
          _server_works_more, ARITHMETIC),
    Claim("FR-T3-c", "Table 3", "what is called FLOP are multiply-accumulates of ResNet-18", "holds", _counts_mac,
          ARITHMETIC),
    Claim("FR-F4-b", "Fig. 4, Fig. 10", "adaptive β: the distilled part alone gains more per step than the stale part "
          "alone (ours: short smoke runs, in 0.01 points)", "not printed",
          lambda m: _part_above("distilled", "stale")),
    Claim("FR-F4-c", "Fig. 4, Fig. 10", "adaptive β: both parts together gain at least as much per step as either "
          "(ours: short smoke runs, in 0.01 points)", "not printed",
          lambda m: all_of([_part_above("both", "distilled"), _part_above("both", "stale")])),
    Claim("FR-F6-a", "Fig. 6", "staleness right-skewed, mean 99, 99th percentile more than twice the mean",
          "not printed", _right_skewed, CONSTRUCTED,
          because="mean staleness is the number in flight less one, and the delay law is skewed"),
    Claim("FR-F7-a", "Fig. 7", "shifted delays change the histogram of staleness, not its mean", "not printed",
          _shape_differs_mean_does_not, CONSTRUCTED,
          because="mean staleness is the number in flight less one under any delay law, and the laws differ"),
    Claim("FR-F11-a", "Fig. 11", "every schedule rises from 0 at no staleness to at most 1 (ours: the authors' code's)",
          "not printed", _schedules_in_bounds, CONSTRUCTED, because="the schedules are defined so"),
    Claim("FR-X-b", "Appendix D text", "server time per update on an H100 is below client time on a T4", "holds",
          _server_faster_than_client, ARITHMETIC),
]  # fmt: skip

FEDREVIVE = [*RECORDED, *SIMULATED]

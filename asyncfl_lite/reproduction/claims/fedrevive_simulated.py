"""FedRevive's claims that need no recorded cell: delays, schedules, printed arithmetic, and what short runs show."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd
from scipy import stats

from asyncfl_lite.algorithms.afl_dw import AFLDW
from asyncfl_lite.models import MODELS
from asyncfl_lite.models.base import InputSpec, forward_flop
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.reproduction.claims.base import FAILS, HOLDS, Claim, Finding, Measured, all_of
from asyncfl_lite.reproduction.claims.fedrevive_probes import PROBED, short_run_divergences, short_run_parts
from asyncfl_lite.reproduction.published import published
from asyncfl_lite.runs.assembly import schedule
from asyncfl_lite.runs.config import Config

IN_FLIGHT, UPDATES = 100, 20_000
FAMILIES = ("cosine", "linear", "exponential", "stepwise")


@lru_cache(maxsize=2)
def staleness(delay: str) -> np.ndarray:
    """Return the ``(n,)`` staleness of updates at 1,000 clients, 100 in flight, a version an update.

    The first tenth, in which the clients that began together have not spread out yet, is left out.
    """
    planned = schedule(
        Config(
            delay=delay,
            algorithm="afl_dw",
            partition="iid",
            clients=1000,
            concurrency=IN_FLIGHT,
            rounds=UPDATES,
        )
    )
    return planned.updates["staleness"].to_numpy()[UPDATES // 10 :]


def _right_skewed(m: Measured) -> Finding:
    tau = staleness("fedrevive")
    mean, skew, late = tau.mean(), stats.skew(tau), np.quantile(tau, 0.99)
    text = f"mean {mean:.2f}, skewness {skew:.2f}, 99th percentile {late:.0f}"
    holds = abs(mean - (IN_FLIGHT - 1)) < 1 and skew > 0 and late > 2 * mean
    return Finding(HOLDS if holds else FAILS, text)


def _shape_differs_mean_does_not(m: Measured) -> Finding:
    usual, shifted = staleness("fedrevive"), staleness("fedrevive_shift")
    test = stats.ks_2samp(usual[::50], shifted[::50])  # neighbours depend on each other
    text = f"means {usual.mean():.2f} and {shifted.mean():.2f}, KS distance {test.statistic:.2f}, p = {test.pvalue:.1g}"
    holds = test.pvalue < 0.01 and abs(usual.mean() - shifted.mean()) < 1
    return Finding(HOLDS if holds else FAILS, text)


def _schedules_in_bounds(m: Measured) -> Finding:
    for family in FAMILIES:
        method = AFLDW(beta_family=family)
        values = np.array([method.beta(tau) for tau in range(1001)])
        if values[0] != 0 or values.max() > 1 or (np.diff(values) < 0).any():
            return Finding(
                FAILS, f"{family}: from {values[0]:g} to {values.max():g}, falls {(np.diff(values) < 0).sum()} times"
            )
    return Finding(HOLDS, f"{', '.join(FAMILIES)}, staleness 0 to 1000")


def _table3() -> pd.DataFrame:
    """Return Table 3 with a row a component: ``iteration`` and ``total``, in its GFLOP."""
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
    spec = MODELS.get("resnet")(width=64, blocks="resnet18", norm="batch")
    model = VectorModel(spec.build((3, 32, 32), 10))
    forward = forward_flop(model, InputSpec((3, 32, 32), 10)) / 1e9
    printed = _table3()["iteration"]["client local training"]
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
    for dataset in PROBED:
        table = short_run_divergences(dataset)
        cells = {f"{dataset} {name}": pd.DataFrame({"nats × 100": 100 * table[name]}) for name in ("uniform", "proxy")}
        findings.append(Measured(cells).above(*cells, number="nats × 100"))
    return all_of(*findings)


def _divergences_in_order(m: Measured) -> Finding:
    cells = {name: pd.DataFrame({"nats × 100": 100 * short_run_divergences(name)["proxy"]}) for name in PROBED}
    pairs = zip(list(cells)[1:], cells, strict=False)
    return all_of(*(Measured(cells).above(larger, smaller, number="nats × 100") for larger, smaller in pairs))


def _part_above(better: str, worse: str) -> Finding:
    """Compare the mean one-step changes of accuracy of two parts of an update."""
    cells = {name: pd.DataFrame({"points × 100": 1e4 * short_run_parts()[name]}) for name in (better, worse)}
    return Measured(cells).above(better, worse, number="points × 100")


SIMULATED = [
    Claim("FR-T2-a", "Table 2", "true shares nearer to the proxy than to equal shares (ours: short runs of stand-ins, "
          "24 clients, in 0.01 nats)", "not printed", _proxy_beats_uniform),
    Claim("FR-T2-b", "Table 2", "KL(true || proxy) in the order CIFAR-10 < FEMNIST < CIFAR-100 < 20NewsGroups (ours: "
          "short runs of stand-ins, in 0.01 nats)", "holds", _divergences_in_order),
    Claim("FR-T3-a", "Table 3", "totals are iterations times compute an iteration", "holds", _totals_add_up),
    Claim("FR-T3-b", "Table 3", "server work a sample exceeds a client's with 8 teachers, sequential", "holds",
          _server_works_more),
    Claim("FR-T3-c", "Table 3", "what is called FLOP are multiply-accumulates of ResNet-18", "holds", _counts_mac),
    Claim("FR-F4-b", "Fig. 4, Fig. 10", "adaptive β: the distilled part alone gains more a step than the stale part "
          "alone (ours: short smoke runs, in 0.01 points)", "not printed",
          lambda m: _part_above("distilled", "stale")),
    Claim("FR-F4-c", "Fig. 4, Fig. 10", "adaptive β: both parts together gain at least as much a step as either "
          "(ours: short smoke runs, in 0.01 points)", "not printed",
          lambda m: all_of(_part_above("both", "distilled"), _part_above("both", "stale"))),
    Claim("FR-F6-a", "Fig. 6", "staleness right-skewed, mean 99, 99th percentile more than twice the mean",
          "not printed", _right_skewed),
    Claim("FR-F7-a", "Fig. 7", "shifted delays change the histogram of staleness, not its mean", "not printed",
          _shape_differs_mean_does_not),
    Claim("FR-F11-a", "Fig. 11", "every schedule rises from 0 at no staleness to at most 1 (ours: the authors' code's)",
          "not printed", _schedules_in_bounds),
    Claim("FR-X-b", "Appendix D text", "server time an update on an H100 below client time on a T4", "holds",
          _server_faster_than_client),
]  # fmt: skip

"""FedADT's claims, in the order of the paper's tables and figures.

Times to target are as the paper's Table I has them: the first evaluation at the target, 90% on MNIST, 75% on
Fashion-MNIST, 40% on CIFAR-10 and 10% on CIFAR-100, whatever stands in for these data; "Fail" is never there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np

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
    all_ran,
    compare,
)

TARGETS = {"mnist": 0.9, "fmnist": 0.75, "cifar10": 0.4, "cifar100": 0.1}
FIG1_TARGET = 0.35
ALPHAS = ("0.1", "0.5", "1.0")
COLUMNS = [(data, f"fedadt/table1/{data}-dir{alpha}") for data in TARGETS for alpha in ALPHAS]
SYNCHRONOUS, BUFFERED, ASYNCHRONOUS = ("fedavg", "fedavgm"), ("fedbuff", "ca2fl"), ("fedasync", "fedfa")
BASELINES = (*SYNCHRONOUS, *BUFFERED, *ASYNCHRONOUS)
METHODS = (*BASELINES, "fedadt")
SHARES = ("10", "20", "25", "30")
NOTHING = "no cell of it was run"
_joined = partial(all_ran, nothing=NOTHING)


def _sooner(m: Measured, pairs: Iterable[tuple[str, str]]) -> Finding:
    """Whether FedADT's table has the first of each two methods reach the target first, in every column."""
    pairs = list(pairs)
    return _joined(
        m.sooner(f"{column}/{faster}", f"{column}/{slower}", TARGETS[data])
        for data, column in COLUMNS
        for faster, slower in pairs
    )


def _above(m: Measured, pairs: Iterable[tuple[str, str]], columns: Iterable[str] | None = None) -> Finding:
    """Whether the first of each two methods ends above the second, in every column."""
    pairs = list(pairs)
    chosen = [column for _, column in COLUMNS] if columns is None else columns
    return _joined(m.above(f"{column}/{better}", f"{column}/{worse}") for column in chosen for better, worse in pairs)


def _reached_by(m: Measured, cell: str, target: float) -> Finding:
    """Whether all seeds reach the target: undecided if some do, or if there are too few."""
    times = m.times_to(cell, target)
    if times is None:
        return Finding(NOT_RUN, f"{cell}: not run")
    reached = int(np.isfinite(times).sum())
    text = f"{cell.split('/', 2)[-1]}: {reached} of {len(times)} seeds reach {100 * target:g}%"
    if reached == 0:
        return Finding(FAILS, text)
    return Finding(HOLDS if reached == len(times) >= FEWEST_SEEDS else UNDECIDED, text)


def _never_fail(m: Measured) -> Finding:
    return _joined(
        _reached_by(m, f"{column}/{method}", TARGETS[data])
        for data, column in COLUMNS
        for method in ("fedadt", "fedbuff")
    )


def _sooner_with_alpha(m: Measured) -> Finding:
    def columns() -> Iterator[tuple[str, str, float]]:
        for data, target in TARGETS.items():
            for less, more in zip(ALPHAS, ALPHAS[1:], strict=False):
                yield f"fedadt/table1/{data}-dir{more}", f"fedadt/table1/{data}-dir{less}", target

    return _joined(
        m.sooner(f"{even}/{method}", f"{uneven}/{method}", target)
        for even, uneven, target in columns()
        for method in METHODS
    )


def _fail_is_ending_below(m: Measured) -> Finding:
    """Compare run by run; one run that reached its target and ended below it is a counterexample."""
    runs, exceptions = 0, []
    for data, column in COLUMNS:
        for method in METHODS:
            cell = f"{column}/{method}"
            times, final = m.times_to(cell, TARGETS[data]), m.values(cell)
            if times is None or final is None:
                continue
            runs += len(times)
            differ = np.isfinite(times) != (final >= TARGETS[data])
            exceptions += [f"{cell.split('/', 2)[-1]} ({differ.sum()})"] * bool(differ.any())
    if not runs:
        return Finding(NOT_RUN, NOTHING)
    named = ", reached the target and ended below: " + ", ".join(exceptions) if exceptions else ", no exception"
    return Finding(FAILS if exceptions else HOLDS, f"{runs} runs{named}")


def _margins(m: Measured) -> dict[str, np.ndarray]:
    """Return column -> FedADT's accuracy less that of the better asynchronous baseline, seed by seed."""
    margins = {}
    for _, column in COLUMNS:
        ours, baselines = m.values(f"{column}/fedadt"), [m.values(f"{column}/{method}") for method in ASYNCHRONOUS]
        if ours is None or any(values is None or len(values) != len(ours) for values in baselines):
            continue
        margins[column] = ours - max(baselines, key=np.mean)
    return margins


def _most_on_cifar10(m: Measured) -> Finding:
    margins, most = _margins(m), "fedadt/table1/cifar10-dir0.1"
    if most not in margins or len(margins) < 2:
        return Finding(NOT_RUN, "needs CIFAR-10 at α = 0.1, for which nothing stands in, and another column")
    return all_of(*(compare(margins[most], margins[other], against(most, other)) for other in margins if other != most))


def _at_round_of(m: Measured, cell: str, other: str) -> np.ndarray | None:
    """Return a cell's ``(seeds,)`` accuracies at the version at which another one ended."""
    if cell not in m.curves or other not in m.summaries:
        return None
    last = int(m.summaries[other]["versions"].max())
    rows = [curve[curve["version"] == last] for curve in m.curves[cell]]
    return None if any(row.empty for row in rows) else np.array([row["accuracy"].iloc[-1] for row in rows])


def _adaptive_then_more(m: Measured) -> Finding:
    def findings() -> Iterator[Finding]:
        for data in TARGETS:
            for alpha in ALPHAS[:2]:
                column = f"{data}-dir{alpha}"
                low, high = (f"fedadt/table3/{column}/fixed-{weight}" for weight in ("0.2", "0.6"))
                yield m.above(high, low)
                adaptive = _at_round_of(m, f"fedadt/table1/{column}/fedadt", high)
                yield compare(adaptive, m.values(high), against(f"fedadt/table3/{column}/adaptive", high))

    return _joined(findings())


def _in_flight(method: str, share: str) -> str:
    return f"fedadt/table4/concurrency-{share}/{method}"


def _falls_with_concurrency(m: Measured) -> Finding:
    compared = ("fedasync", "fedfa", "fedadt")
    return _joined(m.above(_in_flight(method, "10"), _in_flight(method, "30")) for method in compared)


def _in_order_at_each_share(m: Measured) -> Finding:
    order = (("fedadt", "fedasync"), ("fedasync", "fedfa"), ("fedadt", "fedfa"))
    return _joined(m.above(_in_flight(one, share), _in_flight(two, share)) for share in SHARES for one, two in order)


def _falls_least(m: Measured) -> Finding:
    def fall(method: str) -> np.ndarray | None:
        return m.gap(_in_flight(method, "10"), _in_flight(method, "30"))

    return _joined(
        compare(fall(method), fall("fedadt"), f"table4/fall of {method} against table4/fall of fedadt")
        for method in ASYNCHRONOUS
    )


def _family_lowest(m: Measured) -> Finding:
    """Compare means of two methods a family: final accuracy, and best time over own time, 0 if never there."""
    cells = {method: f"fedadt/fig1/{method}" for method in BASELINES}
    accuracy = {method: m.values(cell) for method, cell in cells.items()}
    times = {method: m.times_to(cell, FIG1_TARGET) for method, cell in cells.items()}
    every = [*accuracy.values(), *times.values()]
    if any(values is None for values in every) or len({len(values) for values in every}) > 1:
        return Finding(NOT_RUN, "needs all six methods with the same seeds")
    best = np.min(list(times.values()), axis=0)
    nobody = np.isinf(best)
    efficiency = {method: np.where(nobody, 0, np.where(nobody, 1, best) / own) for method, own in times.items()}
    findings = []
    for what, numbers in (("accuracy", accuracy), ("efficiency", efficiency)):
        synchronous, buffered, asynchronous = (
            (numbers[one] + numbers[two]) / 2 for one, two in (SYNCHRONOUS, BUFFERED, ASYNCHRONOUS)
        )
        for name, other in (("synchronous", synchronous), ("buffered", buffered)):
            label = f"{what} of {name} against {what} of asynchronous"
            findings.append(compare(other, asynchronous, label))
    return all_of(*findings)


PURE = [("fedadt", method) for method in ASYNCHRONOUS]
ALL = [("fedadt", method) for method in BASELINES]

FEDADT = [
    Claim("FA-T1-a", "Table I", "FedADT reaches the target first in every column", "holds", lambda m: _sooner(m, ALL)),
    Claim("FA-T1-b", "Table I", "FedAsync and FedFa reach it later than FedBuff in every column", "holds",
          lambda m: _sooner(m, [("fedbuff", method) for method in ASYNCHRONOUS])),
    Claim("FA-T1-c", "Table I", "FedADT and FedBuff reach it in every column", "holds", _never_fail),
    Claim("FA-T1-d", "Table I", "the time falls as α rises, for every method", "fails in 2 of 28", _sooner_with_alpha),
    Claim("FA-T1-e", "Table I", "a target is missed exactly where Table II ends below it", "fails in 1 of 84",
          _fail_is_ending_below),
    Claim("FA-T2-a", "Table II", "FedADT ends above FedAsync and FedFa in every column", "holds",
          lambda m: _above(m, PURE)),
    Claim("FA-T2-b", "Table II", "FedADT ends above all six others in every column", "fails in 8 of 12",
          lambda m: _above(m, ALL)),
    Claim("FA-T2-c", "Table II", "FedAsync and FedFa end below FedAvg and FedAvgM", "fails in 1 of 12",
          lambda m: _above(m, [(one, two) for one in SYNCHRONOUS for two in ASYNCHRONOUS])),
    Claim("FA-T2-d", "Table II", "FedADT's lead over the better of FedAsync and FedFa is largest on CIFAR-10, α = 0.1",
          "holds", _most_on_cifar10),
    Claim("FA-F1-a", "Fig. 1", "the asynchronous family is the lowest in accuracy and efficiency (which two methods "
          "stand for each family is ours)", "not printed", _family_lowest),
    Claim("FA-F3-a", "Fig. 3", "at α = 0.1 FedADT ends above FedAsync and FedFa on all data sets (ours: those run)",
          "holds", lambda m: _above(m, PURE, [f"fedadt/table1/{data}-dir0.1" for data in TARGETS])),
    Claim("FA-T3-a", "Table III", "at round T_g the adaptive weight is above 0.6, and that above 0.2", "holds",
          _adaptive_then_more),
    Claim("FA-T4-a", "Table IV", "accuracy falls from 10% to 30% in flight, for each method", "holds",
          _falls_with_concurrency),
    Claim("FA-T4-b", "Table IV", "FedADT > FedAsync > FedFa at each concurrency", "holds", _in_order_at_each_share),
    Claim("FA-T4-c", "Table IV", "FedADT's fall from 10% to 30% is the smallest", "holds", _falls_least),
]  # fmt: skip

"""FedEcho's claims, in the order of the paper's tables and figures.

A claim about several columns or methods consists of several comparisons, all of which must hold. The finding says how
many of them were run: the smoke tier has one full column of Table 2, and the laptop tier has all of them. "At least as
good" allows a point. Claims about delays and learning rates need no recorded cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations, product

import numpy as np
from scipy import stats

from asyncfl_reproduction.claims.checking import ARITHMETIC, CLOCK, CONSTRUCTED, NOT_CHECKABLE, Claim, not_run
from asyncfl_reproduction.claims.findings import (
    Finding,
    against,
    all_of,
    as_finding,
    by_seed,
    compare,
    pooled_deviation,
)
from asyncfl_reproduction.claims.measured import UNTRAINED, Measured
from asyncfl_reproduction.measure import fedecho as measure
from asyncfl_reproduction.published import hyperparameters
from asyncfl_reproduction.statistics import ERROR_LEVEL, FEWEST_SEEDS, deviation, scaled
from asyncfl_reproduction.verdict_words import FAILS, HOLDS, NOT_RUN, OPEN, REVERSED

BASELINES = ("fedbuff", "ca2fl", "fedac", "fadas")
SETS = ("fedecho-cross", "fedecho-natural", "fedecho-synthetic")
TABLE2 = tuple(f"fedecho/table2/{delay}-dir{alpha}" for delay in ("large", "mild") for alpha in ("0.1", "0.3"))
TABLE3 = tuple(f"fedecho/table3/{delay}-dir{alpha}" for delay in ("large", "mild") for alpha in ("0.03", "0.1"))
LARGE = TABLE2[0]
ORDER = ("fedac", "fadas", "ca2fl", "fedbuff")
"""The baselines at large delay, best first."""
DEFAULT = f"{LARGE}/fedecho-cross"
TABLE4 = tuple(f"fedecho/table4/{method}" for method in ("fedecho", "fedac", "ca2fl", "fedbuff", "fadas"))
TABLE5 = tuple(f"fedecho/table5/{method}" for method in ("fedecho", "fedac", "fedbuff", "ca2fl", "fadas"))
SAMPLES = (
    ("fedecho/table6/samples-100", "fedecho/table6/samples-250", DEFAULT, "fedecho/table6/samples-1000"),
    ("fedecho/table6/paper-500", "fedecho/table6/paper-1000", DEFAULT, "fedecho/table6/paper-5000"),
)
"""Table 6's cells, fewest samples first: those of the smoke and laptop tiers, and the paper tier's."""
WEIGHTS = ("fedecho/table7/ce-only", "fedecho/table7/kl-only", "fedecho/table7/fixed-0.5", DEFAULT)
MRPC_MAJORITIES = {
    "MRPC, GLUE's validation pairs": 279 / 408,
    "MRPC, pairs drawn from Microsoft's": 276 / 408,
}
"""Share of the larger class among the test pairs."""
TABLE1 = {
    measure.LARGE: {"short": (1, 2), "medium": (3, 5), "long": (50, 80)},
    measure.MILD: {"short": (1, 2), "medium": (3, 5), "long": (10, 20)},
}
"""Law -> category of clients -> shortest and longest duration."""
MOST_LONG = 5
"""Largest number of clients in the category ``long``: 10% of 50."""
ONE_ORDER = 10
"""Largest ratio to one model that still counts as of the same order of magnitude, or below."""
Pairs = Iterable[tuple[str, str]]
"""Pairs of cells: the one that should be better, and the one that should be worse."""


def _above(pairs: Pairs) -> Callable[[Measured], Finding]:
    """Build a check that the first cell of every pair is above the second."""
    pairs = tuple(pairs)
    return lambda m: all_of(m.above(better, worse) for better, worse in pairs)


def _at_least(pairs: Pairs) -> Callable[[Measured], Finding]:
    """Build a check that the first cell of every pair is at most one point below the second."""
    pairs = tuple(pairs)
    return lambda m: all_of(m.at_least(better, worse) for better, worse in pairs)


def _in_columns(columns: Iterable[str], better: Iterable[str], worse: Iterable[str]) -> Pairs:
    """Return, for each column, all pairs of a cell in ``better`` and a cell in ``worse``."""
    chosen = product(columns, product(better, worse))
    return [(f"{column}/{left}", f"{column}/{right}") for column, (left, right) in chosen]


def _across(columns: Iterable[tuple[str, str]], methods: Iterable[str]) -> Pairs:
    """Return each method's cells in the better and the worse of each pair of columns."""
    return [(f"{better}/{method}", f"{worse}/{method}") for (better, worse), method in product(columns, methods)]


def _best_above_best(columns: Iterable[str], margin: float) -> Callable[[Measured], Finding]:
    """Build a check that, in each column, FedEcho's best set of samples beats the best baseline by over ``margin``."""

    def column_holds(m: Measured, column: str) -> Finding:
        sets, baselines = ([f"{column}/{method}" for method in methods] for methods in (SETS, BASELINES))
        means = {cell: values.mean() for cell in sets + baselines if (values := m.by_seed(cell)) is not None}
        if len(means) < len(sets + baselines):
            return Finding(NOT_RUN, f"{column}: not all methods run")
        return m.above(max(sets, key=means.get), max(baselines, key=means.get), margin=margin)

    return lambda m: all_of(column_holds(m, column) for column in columns)


def _varies_less_than_ca2fl(m: Measured) -> Finding:
    def less_than_ca2fl(method: str) -> Finding:
        ranges = []
        for name in ("ca2fl", method):
            columns = [m.by_seed(f"{column}/{name}") for column in TABLE2]
            if any(values is None for values in columns):
                return Finding(NOT_RUN, f"{method}: not all columns run")
            ranges.append(max(columns, key=np.mean) - min(columns, key=np.mean))
        return compare(*ranges, f"range of ca2fl over columns against {method}'s")

    return all_of(less_than_ca2fl(method) for method in SETS)


def _fadas_says_the_majority(m: Measured) -> Finding:
    accuracies = m.values("fedecho/table4/fadas")
    if accuracies is None:
        return Finding(NOT_RUN, "not run")
    shares = {"generated pairs": measure.larger_class_of_pairs(), **MRPC_MAJORITIES}
    known = ", ".join(f"{100 * share:.2f}% ({name})" for name, share in shares.items())
    text = f"{100 * accuracies.min():.2f} to {100 * accuracies.max():.2f}%; the larger class: {known}"
    if not any(np.abs(accuracies - share).max() < 1e-4 for share in shares.values()):
        return Finding(FAILS, text)
    return Finding(HOLDS if len(accuracies) >= FEWEST_SEEDS else OPEN, text)


def _above_start(m: Measured, cell: str) -> Finding:
    start = m.of_curves(cell, lambda curve: curve["accuracy"].iloc[0])
    ends = m.by_seed(cell, "final_accuracy")
    finding = compare(ends, start, against(cell, f"{cell} at version 0"), marks=(m.mark(cell), ""))
    untrained = m.is_constant(cell) and finding.contrast
    return Finding(OPEN, f"{finding.detail}, {UNTRAINED}") if untrained else finding


def samples(m: Measured) -> tuple[str, ...]:
    """Return the cells of Table 6 for the numbers of samples that this tier uses, fewest samples first."""
    return max(SAMPLES, key=lambda cells: sum(cell in m.summaries for cell in cells))


def _spread_falls(m: Measured) -> Finding:
    """Check that accuracy varies less over seeds with the most samples than with the fewest (Pitman-Morgan test)."""
    fewest, most = (m.by_seed(cell) for cell in (samples(m)[0], samples(m)[-1]))
    if fewest is None or most is None:
        return Finding(NOT_RUN, "not run")
    common = fewest.index.intersection(most.index)
    one, other = (by_seed(values).loc[common].to_numpy() for values in (fewest, most))
    text = f"± {100 * deviation(one):.2f} with fewest samples, ± {100 * deviation(other):.2f} with most"
    total, difference = one + other, one - other
    if len(common) < FEWEST_SEEDS or min(np.ptp(total), np.ptp(difference)) == 0:
        return Finding(OPEN, text)
    test = stats.pearsonr(total, difference)
    p = scaled(test.pvalue, len(common))
    verdict = OPEN if p > ERROR_LEVEL else HOLDS if test.statistic > 0 else REVERSED
    return Finding(verdict, f"{text}, p = {test.pvalue:.2g}, {len(common)} seeds", p=p)


def _dynamic_beyond_one_deviation(m: Measured) -> Finding:
    dynamic, fixed = (m.by_seed(cell) for cell in (DEFAULT, WEIGHTS[2]))
    margin = 0.0 if dynamic is None or fixed is None else pooled_deviation(dynamic.to_numpy(), fixed.to_numpy())
    return m.above(DEFAULT, WEIGHTS[2], margin=round(margin, 3))


def _runtimes_as_printed(m: Measured) -> Finding:
    details = []
    for law, drawn in measure.runtimes().items():
        for category, (low, high) in drawn.ranges.items():
            least, most = TABLE1[law][category]
            if low < least or high > most:
                return Finding(FAILS, f"{law}, {category}: {low:.2f} to {high:.2f}")
            details.append(f"{law} {category} {low:.1f} to {high:.1f}")
        if drawn.long > MOST_LONG:
            return Finding(FAILS, f"{law}: more than 10% of clients are long")
    return Finding(HOLDS, ", ".join(details))


def _staler_at_large_delay(m: Measured) -> Finding:
    large, mild = (measure.staleness_of_long_clients(law) for law in measure.LAWS)
    shown = (f"{values.mean():.0f} ± {deviation(values):.0f}" for values in (large, mild))
    text = "mean staleness of long clients " + " against ".join(shown)
    return as_finding(large.min() > mild.max(), text)


def _few_models_held(m: Measured) -> Finding:
    held = {law: measure.versions_held(law) for law in measure.LAWS}
    text = ", ".join(f"{law} {min(counts)} to {max(counts)}" for law, counts in held.items())
    return Finding(NOT_RUN, f"it depends on the shares of slow clients, which are not printed; with ours: {text}")


def _logits_of_one_models_order(tasks: Iterable[str]) -> Finding:
    shares = {task: measure.STORED[task].logits_over_model for task in tasks}
    text = "stored logits over one model: " + ", ".join(f"{task} {share:.2g}" for task, share in shares.items())
    return as_finding(max(shares.values()) <= ONE_ORDER, text)


def _one_pair_of_rates(m: Measured) -> Finding:
    table = hyperparameters("FedEcho")
    rates = table[table["name"].isin(["local_lr", "global_lr"])]
    kinds = rates.groupby(["dataset", "method", "name"])["value"].nunique()
    several = [" ".join(key) for key, count in kinds.items() if count > 1]
    text = f"{len(kinds)} rates, {', '.join(several) or 'none'} with more than one value"
    return as_finding(not several, text)


FEDECHO = [
    Claim("FE-T1-a", "Table 1", "runtimes lie in Table 1's ranges and at most 10% of clients are long", "printed",
          _runtimes_as_printed, CONSTRUCTED, because="the delay law draws from these ranges"),
    Claim("FE-T1-b", "Table 1", "stragglers' updates are staler at large delay than at mild delay", "not printed",
          _staler_at_large_delay, CLOCK),
    Claim("FE-T2-a", "Table 2", "every FedEcho variant above every baseline in every column", "holds",
          _above(_in_columns(TABLE2, SETS, BASELINES))),
    Claim("FE-T2-b", "Table 2", "best FedEcho at least 7 points above the best baseline in every column", "holds",
          _best_above_best(TABLE2, 0.07)),
    Claim("FE-T2-c", "Table 2", "FedAC and FADAS above FedBuff and CA2FL in every column", "holds",
          _above(_in_columns(TABLE2, ("fedac", "fadas"), ("fedbuff", "ca2fl")))),
    Claim("FE-T2-d", "Table 2", "FedEcho > FedAC > FADAS > CA2FL > FedBuff at large delay, α = 0.1",
          "holds; FedAC and FADAS differ by 0.8",
          _above([*_in_columns([LARGE], SETS, ORDER), *combinations((f"{LARGE}/{method}" for method in ORDER), 2)])),
    Claim("FE-T2-e", "Table 2", "FedEcho varies less over the four columns than CA2FL, with each set", "holds",
          _varies_less_than_ca2fl),
    Claim("FE-T2-f", "Table 2", "natural and cross-dataset sets at least as good as synthetic in every column", "holds",
          _at_least(_in_columns(TABLE2, SETS[:2], SETS[2:]))),
    Claim("FE-T2-g", "Table 2", "more delay hurts every baseline",
          "fails for FedBuff, for CA2FL at α = 0.1, for FADAS at 0.3",
          _above(_across([(TABLE2[2], TABLE2[0]), (TABLE2[3], TABLE2[1])], BASELINES))),
    Claim("FE-T3-a", "Table 3", "best FedEcho at least 3 points above the best baseline on CIFAR-100, in every column",
          "holds", _best_above_best(TABLE3, 0.03)),
    Claim("FE-T3-b", "Table 3", "every FedEcho variant above every baseline on CIFAR-100, in every column",
          "fails in 3 of 12", _above(_in_columns(TABLE3, SETS, BASELINES))),
    Claim("FE-T3-c", "Table 3", "natural and cross-dataset sets at least as good as synthetic on CIFAR-100",
          "fails in 1 of 4", _at_least(_in_columns(TABLE3, SETS[:2], SETS[2:]))),
    Claim("FE-T3-d", "Table 3", "α = 0.1 above α = 0.03 for every method", "holds",
          _above(_across([(TABLE3[1], TABLE3[0]), (TABLE3[3], TABLE3[2])], BASELINES + SETS))),
    Claim("FE-T4-a", "Table 4", "FedEcho > FedAC > CA2FL > FedBuff > FADAS on MRPC", "holds",
          _above(combinations(TABLE4, 2))),
    Claim("FE-T4-b", "Table 4", "FADAS on MRPC scores the share of the larger class, with every seed", "holds",
          _fadas_says_the_majority, of_constant_answers=True),
    Claim("FE-T5-a", "Table 5", "FedEcho > FedAC > FedBuff > CA2FL > FADAS > start on GSM8K",
          "holds, by 6 of 1,319 problems at the top",
          not_run("the paper's first two are 6 of 1,319 problems apart, which its own runs cannot tell apart"),
          NOT_CHECKABLE),
    Claim("FE-T5-b", "Table 5", "every federated run above its own start on GSM8K", "holds",
          lambda m: all_of(_above_start(m, cell) for cell in TABLE5), CONSTRUCTED,
          because="here a run starts from random weights, above which any training ends"),
    Claim("FE-T6-a", "Table 6", "accuracy rises with the number of distillation samples", "holds",
          lambda m: all_of(m.above(more, fewer) for fewer, more in combinations(samples(m), 2))),
    Claim("FE-T6-b", "Table 6", "spread falls from the fewest to the most distillation samples", "holds",
          _spread_falls),
    Claim("FE-T6-c", "Table 6", "the fewest samples are not above FedAC", "holds",
          lambda m: m.at_least(f"{LARGE}/fedac", samples(m)[0])),
    Claim("FE-T7-a", "Table 7", "CE only < KL only ≤ fixed 0.5 ≤ dynamic mixing weight", "holds",
          lambda m: all_of([*(m.above(other, WEIGHTS[0]) for other in WEIGHTS[1:]),
                            *(m.at_least(right, left) for left, right in combinations(WEIGHTS[1:], 2))])),
    Claim("FE-T7-b", "Table 7", "dynamic above fixed 0.5 by more than one pooled deviation", "fails",
          _dynamic_beyond_one_deviation),
    Claim("FE-T8-a", "Tables 8-10", "one pair of learning rates for each method in all its columns", "holds",
          _one_pair_of_rates, ARITHMETIC),
    Claim("FE-T11-a", "Table 11", "clipping at 5 above clipping at 1 and above none", "open",
          _above((DEFAULT, f"fedecho/table11/{other}") for other in ("clip-1", "no-clip"))),
    Claim("FE-X-a", "Section 5.1 text", "server distillation takes 2.2 to 3.5 s a round on an A6000", "printed",
          not_run("it is a time of an A6000, with a model and a set of that size"), NOT_CHECKABLE),
    Claim("FE-X-b", "Section 5.1 text", "at most 8 distinct global models are held for clients in flight", "printed",
          _few_models_held, NOT_CHECKABLE),
    Claim("FE-X-c", "Section 3.2 text", "stored logits are of the order of one model, or below, for images and for "
          "sentence pairs (ours: at most ten models)", "holds: 0.09, 0.89 and 0.00002 models",
          lambda m: _logits_of_one_models_order(("CIFAR-10", "CIFAR-100", "MRPC")), ARITHMETIC),
    Claim("FE-X-d", "Section 3.2 text", "stored logits are of the order of one model, or below, for generation (ours: "
          "at most ten models, 320 tokens a sample)", "fails: 31 models",
          lambda m: _logits_of_one_models_order(("MathInstruct",)), ARITHMETIC),
]  # fmt: skip

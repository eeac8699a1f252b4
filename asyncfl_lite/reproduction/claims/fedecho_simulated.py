"""FedEcho's claims that need no training: its delays, what they do to staleness, its table of learning rates."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from asyncfl_lite.reproduction.claims.base import FAILS, HOLDS, Claim, Finding, Measured, deviation
from asyncfl_lite.reproduction.published import hyperparameters
from asyncfl_lite.runs.assembly import schedule
from asyncfl_lite.runs.config import Config
from asyncfl_lite.simulator.delays import DELAYS
from asyncfl_lite.simulator.tables import Schedule

TABLE1 = {
    "fedecho_large": {"short": (1, 2), "medium": (3, 5), "long": (50, 80)},
    "fedecho_mild": {"short": (1, 2), "medium": (3, 5), "long": (10, 20)},
}
SEEDS = range(5)
MOST_MODELS = 8
"""Global models of former versions that the paper's server had to hold at most."""


@lru_cache(maxsize=2 * len(SEEDS))
def _schedule(law: str, seed: int) -> Schedule:
    """Simulate the paper's 500 versions without training."""
    return schedule(Config(delay=law, rounds=500, seed=seed))


def sampler_keeps_table_1(m: Measured) -> Finding:
    """Draw 200 durations for each of 50 clients."""
    rng, details = np.random.default_rng(0), []
    for name, bounds in TABLE1.items():
        delays = DELAYS.get(name)().prepare(np.arange(1, 51), rng)
        for category, (low, high) in bounds.items():
            members = [client for client in range(50) if delays.categories[client] == category]
            draws = [delays.draw(client, rng) for client in members for _ in range(200)]
            if min(draws) < low or max(draws) > high:
                return Finding(FAILS, f"{name}, {category}: {min(draws):.2f} to {max(draws):.2f}")
            details.append(f"{name} {category} {min(draws):.1f} to {max(draws):.1f}")
        if delays.categories.count("long") > 5:
            return Finding(FAILS, f"{name}: more than 10% of clients are long")
    return Finding(HOLDS, ", ".join(details))


def staler_at_large_delay(m: Measured) -> Finding:
    """Compare the long clients' mean staleness between the laws; every seed has to say the same."""
    means = {}
    for law in TABLE1:
        stale = []
        for seed in SEEDS:
            planned = _schedule(law, seed)
            category = planned.updates["client"].map(planned.clients["category"])
            stale.append(planned.updates["staleness"][category == "long"].mean())
        means[law] = np.array(stale)
    large, mild = (means[law] for law in TABLE1)
    shown = (f"{values.mean():.0f} ± {deviation(values):.0f}" for values in (large, mild))
    text = "mean staleness of long clients " + " against ".join(shown)
    return Finding(HOLDS if large.min() > mild.max() else FAILS, text)


def most_versions_held(planned: Schedule) -> int:
    """Return how many versions clients in flight had started from, at most, at any time."""
    updates, waiting = planned.updates, planned.in_flight
    began = np.concatenate([updates["dispatched_at"], waiting["dispatched_at"]])
    ended = np.concatenate([updates["arrived_at"], np.full(len(waiting), np.inf)])
    started_from = np.concatenate([updates["start_version"], waiting["start_version"]])
    return max(len(np.unique(started_from[(began <= time) & (time < ended)])) for time in np.unique(began))


def at_most_eight_models(m: Measured) -> Finding:
    """Count the distinct versions in flight under both laws."""
    held = {law: [most_versions_held(_schedule(law, seed)) for seed in SEEDS] for law in TABLE1}
    text = ", ".join(f"{law} {min(counts)} to {max(counts)}" for law, counts in held.items())
    most = max(max(counts) for counts in held.values())
    return Finding(HOLDS if most <= MOST_MODELS else FAILS, f"most versions at once: {text}")


def one_pair_of_rates_a_method(m: Measured) -> Finding:
    """Look the printed rates up."""
    table = hyperparameters("FedEcho")
    rates = table[table["name"].isin(["local_lr", "global_lr"])]
    kinds = rates.groupby(["dataset", "method", "name"])["value"].nunique()
    several = [" ".join(key) for key, count in kinds.items() if count > 1]
    text = f"{len(kinds)} rates, {', '.join(several) or 'none'} with more than one value"
    return Finding(FAILS if several else HOLDS, text)


SIMULATED = [
    Claim("FE-T1-a", "Table 1", "runtimes lie in Table 1's ranges and at most 10% of clients are long", "printed",
          sampler_keeps_table_1),
    Claim("FE-T1-b", "Table 1", "stragglers' updates are staler at large delay than at mild delay", "not printed",
          staler_at_large_delay),
    Claim("FE-T8-a", "Tables 8-10", "one pair of learning rates a method in all its columns", "holds",
          one_pair_of_rates_a_method),
    Claim("FE-X-b", "Section 5.1 text", "at most 8 distinct global models are held for clients in flight", "printed",
          at_most_eight_models),
]  # fmt: skip

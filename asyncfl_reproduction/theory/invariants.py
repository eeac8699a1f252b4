"""Check T12, which tests invariants of the package's own engine and methods; no paper prints them."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.algorithms import ALGORITHMS, make_algorithm
from asyncfl_lite.base.streams import stream
from asyncfl_lite.simulator.clock_only import ClockOnly, VersionCounter
from asyncfl_lite.simulator.delays import DELAYS
from asyncfl_lite.simulator.scheduling import SCHEDULING
from asyncfl_reproduction.theory.beds import context, feed, started, train, vector
from asyncfl_reproduction.theory.results import AS_PRINTED, ASIDE, Case, Check, checked

SYNCHRONOUS = ("fedavg", "fedavgm", "fedadam", "fedprox")


def staleness_expected(in_flight: int, buffer_size: int, scheduling: str) -> float:
    """Return the long-run mean staleness if A jobs are always in flight and a version takes M updates.

    Every version makes every job in flight one version older, and every M arrivals make a version. If the client that
    reports is sent the new version (``after_agg``), its job does not age, so the mean is (A - 1)/M; otherwise it is
    A/M.
    """
    return (in_flight - (scheduling == "after_agg")) / buffer_size


def staleness_measured(
    in_flight: int, buffer_size: int, scheduling: str, law: str = "exponential", versions: int = 2000
) -> np.ndarray:
    """Return the staleness of arrivals in a simulation without training, after the first ``10 * in_flight``.

    There are twice as many clients as jobs in flight.
    """
    clients = 2 * in_flight
    clock = ClockOnly(
        VersionCounter(buffer_size),
        SCHEDULING.get(scheduling)(in_flight, buffer_size),
        DELAYS.get(law)().prepare(np.ones(clients), stream(0, "delays setup")),
        range(clients),
        rounds=versions,
    )
    clock.run_alone()
    return np.array([arrival.staleness for arrival in clock.arrivals[10 * in_flight :]])


def path(name: str, x0: Tensor, deltas: Tensor, **settings: object) -> Tensor:
    """Return a method's model after ``(n, d)`` fresh updates, sent by clients 0 to n - 1."""
    server = started(name, x0, context(len(deltas)), **settings)
    return feed(server, deltas, received_accuracy=0.3)


def some_deltas() -> Tensor:
    """Return ``(8, 3)`` fixed updates."""
    return torch.from_numpy(stream(0, "theory T12").standard_normal((8, 3)))


def translated(name: str, **settings: object) -> float:
    """Return the largest change in a method's final model, relative to its start, if the start moves by (5, -2, 1)."""
    deltas, by = some_deltas(), vector(5, -2, 1)
    moved = path(name, vector(1, 0, 2) + by, deltas, **settings)
    return float((moved - by - path(name, vector(1, 0, 2), deltas, **settings)).abs().max())


def scaled(name: str, factor: float = 1000.0, **settings: object) -> float:
    """Return the largest difference in a method's final model if every update is ``factor`` times as long."""
    deltas, x0 = some_deltas(), vector(1, 0, 2)
    ends = [path(name, x0, factor * d, **settings) for d in (deltas, deltas / factor)]
    return float((ends[0] - ends[1]).abs().max())


def renumbered(name: str) -> float:
    """Return the largest difference in a synchronous method's final model if clients are renumbered with their data."""
    deltas, order = some_deltas(), torch.tensor([3, 1, 7, 0, 2, 6, 5, 4])
    sizes = torch.arange(1, 9)
    ends = []
    for places in (torch.arange(8), order):
        server = started(name, vector(1, 0, 2), buffer_size=8)
        for _ in range(2):
            feed(server, deltas[places], server.version, num_samples=sizes[places].tolist())
        ends.append(server.x)
    return float((ends[0] - ends[1]).abs().max())


def resting(name: str, **settings: object) -> float:
    """Return how far a method moves in 12 client updates, starting from their common optimum (2, 2, 2)."""
    centre = vector(2, 2, 2)
    server = started(name, centre, context(4), **settings)
    for _ in range(12):
        feed(server, [train(server.x, lambda x, _: x - centre, 0.1, 3)], received_accuracy=0.3)
    return float((server.x - centre).abs().max())


def approaching(name: str, **settings: object) -> float:
    """Return the factor by which 60 updates of 3 steps each change the distance to the clients' common optimum."""
    centre = vector(2, 2, 2)
    server = started(name, vector(3, 3, 3), context(4), **settings)
    for _ in range(60):
        feed(server, [train(server.x, lambda x, _: x - centre, 0.1, 3)], received_accuracy=0.3)
    return float((server.x - centre).norm() / 3**0.5)


def still_methods() -> list[str]:
    """Return the methods whose model stays put if all updates are zero; those that distil by default are left out."""
    return [name for name in ALGORITHMS if not make_algorithm(name).moves_by_itself]


def frozen(name: str, **settings: object) -> float:
    """Return how far a method moves from (1, 0, 2) in 12 updates of zero, as with η_l = 0."""
    x0 = vector(1, 0, 2)
    return float((path(name, x0, torch.zeros(12, 3, dtype=torch.float64), **settings) - x0).abs().max())


def _mean_staleness(name: str, in_flight: int, buffer_size: int, scheduling: str) -> Case:
    mean = float(staleness_measured(in_flight, buffer_size, scheduling, versions=20_000 // buffer_size).mean())
    expected = staleness_expected(in_flight, buffer_size, scheduling)
    what = f"mean staleness: {name}, A = {in_flight}, M = {buffer_size}"
    return Case(AS_PRINTED, what, mean, "=", expected, 0.01 * expected)


def check_t12() -> Check:
    """Check T12 on the package's engine and methods: staleness, equivariance, renumbering, fixed point and η_l = 0."""
    fleets = {
        "FedEcho": (25, 5, "before_agg"),
        "after_agg": (25, 5, "after_agg"),
        "FedRevive": (100, 1, "after_agg"),
    }
    still, literal = still_methods(), {"kuiper_norm": "literal"}
    zero = 1e-12
    cases = [
        *(_mean_staleness(name, *fleet) for name, fleet in fleets.items()),
        Case(AS_PRINTED, "translation: FedBuff", translated("fedbuff"), "=", 0, zero),
        Case(AS_PRINTED, "translation: KUIPER, renormalised", translated("kuiper"), "=", 0, zero),
        Case(ASIDE, "translation: KUIPER as printed", translated("kuiper", **literal), "=", 0, zero),
        Case(AS_PRINTED, "scale: FADAS, ε = 0", scaled("fadas", eps=0.0), "=", 0, zero),
        Case(AS_PRINTED, "scale: FedAC, ε = 0", scaled("fedac", eps=0.0), "=", 0, zero),
        *(Case(AS_PRINTED, f"renumbering: {name}", renumbered(name), "=", 0, zero) for name in SYNCHRONOUS),
        Case(AS_PRINTED, "fixed point: the farthest of all methods", max(map(resting, still)), "=", 0, zero),
        Case(AS_PRINTED, "approach: the least of all methods", max(map(approaching, still)), "<=", 0.95),
        Case(AS_PRINTED, "η_l = 0: the farthest of all methods", max(map(frozen, still)), "=", 0, zero),
        Case(ASIDE, "fixed point: KUIPER as printed", resting("kuiper", **literal), "=", 0, zero),
        Case(ASIDE, "η_l = 0: KUIPER as printed", frozen("kuiper", **literal), "=", 0, zero),
    ]
    return checked("T12", cases)

"""The selection policy Oort, which prefers clients of high utility and always tries a few new ones.

Lai et al., "Oort: Efficient Federated Learning via Guided Participant Selection", OSDI 2021, Algorithm 1 and §4.
Numbers and the order of steps follow its authors' code (SymbioticLab/Oort, ``oort.py``), with two exceptions: the range
of utilities ends at the clipped maximum, and a client's speed is unknown before its first job. Oort chooses clients one
round at a time, and leaves the aggregation to FedAvg.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from asyncfl_lite.simulator.jobs import Update
from asyncfl_lite.simulator.scheduling import SELECTIONS, IdleClients, Selection

EXPLORATION, EXPLORATION_DECAY, EXPLORATION_MIN = 0.9, 0.98, 0.2
"""ε, the fraction of a round for clients never tried before: at first, its factor before each round, and at least."""
CLIP_BOUND = 0.98
"""Quantile of the utilities; larger utilities are clipped to it."""
ROUND_THRESHOLD = 10.0
"""Initial percentile of durations that defines the preferred duration T."""
PACER_STEP, PACER_DELTA = 20, 5.0
"""Rounds in a window of the pacer, which acts once per window, and δ, its step in percentage points."""
CUT_OFF = 0.7
"""Clients may be drawn if they score at least this fraction of the (k+1)-th largest score."""
WINDOW = 5
"""New clients are drawn from the most promising ones; this pool is ``WINDOW`` times as large as the number wanted."""
SMALLEST_WEIGHT = 1e-300
"""Smallest weight in a draw: a client that scores 0 can still be drawn, after all others."""


def statistical_utility(num_samples: int, mean_square_loss: float) -> float:
    """Return ``U = |B| sqrt(mean of squared sample losses)``; an unknown or infinite mean counts as 1."""
    return num_samples * math.sqrt(mean_square_loss if math.isfinite(mean_square_loss) else 1.0)


def preferred_duration(durations: Sequence[float], percentile: float) -> float:
    """Return the preferred duration T, a percentile (0-100) of the durations; infinite at 100 or if none is known."""
    if percentile >= 100 or not len(durations):
        return math.inf
    return float(np.sort(durations)[min(int(len(durations) * percentile / 100), len(durations) - 1)])


def speed_factor(durations: np.ndarray, preferred: float, penalty: float) -> np.ndarray:
    """Return the factor that penalises durations t above the preferred T: ``(T / t)^a``, a the ``penalty``; else 1."""
    durations = np.asarray(durations, dtype=float)
    ratio = np.divide(preferred, durations, out=np.ones_like(durations), where=durations > preferred)
    return ratio**penalty


def temporal_term(last_rounds: np.ndarray, now: int) -> np.ndarray:
    """Return ``sqrt(0.1 ln R / L)``, where R is the round ``now`` and L the round of a client's last report."""
    return np.sqrt(0.1 * math.log(now) / np.asarray(last_rounds, dtype=float))


def scores(
    utilities: np.ndarray,
    durations: np.ndarray,
    last_rounds: np.ndarray,
    now: int,
    preferred: float,
    *,
    others: np.ndarray | Sequence[float] = (),
    penalty: float = 2.0,
) -> np.ndarray:
    """Return the candidates' ``(n,)`` scores: scaled utility plus temporal term, times the speed factor.

    Args:
        utilities, durations, last_rounds: ``(n,)`` of the last reports: U, t, and the round L, counted from 1.
        now, preferred, penalty: the current round R, the preferred duration T, and the exponent a.
        others: ``(m,)`` utilities of clients that are not candidates, on which the bounds of U depend, too.
    """
    utilities = np.asarray(utilities, dtype=float)
    everyone = np.sort(np.concatenate([utilities, np.asarray(others, dtype=float)]))
    clip = everyone[min(int(CLIP_BOUND * len(everyone)), len(everyone) - 1)]
    low = 0.999 * everyone[0]
    # the range ends at the clipped maximum, as specified; the authors' code takes the unclipped one
    scaled = (np.minimum(utilities, clip) - low) / max(clip - low, 1e-4)
    return (scaled + temporal_term(last_rounds, now)) * speed_factor(durations, preferred, penalty)


def paced(threshold: float, before: float, now: float) -> float:
    """Return the new percentile of durations that sets T, given the old one and the last two windows' summed utility.

    As in the authors' code, it rises when the sums differ by at most 10 %, and falls when they differ by at least five
    times the earlier sum. In the paper's text, it rises when utility falls.
    """
    if abs(now - before) <= 0.1 * before:
        return min(100.0, threshold + PACER_DELTA)
    return max(PACER_DELTA, threshold - PACER_DELTA) if abs(now - before) >= 5 * before else threshold


def drawn(clients: Sequence[int], weights: np.ndarray, count: int, rng: np.random.Generator) -> list[int]:
    """Draw ``count`` different clients, one after another, each with probability proportional to its weight.

    Of exponential variables with these weights as rates, each is the smallest with exactly that probability.
    """
    keys = rng.standard_exponential(len(clients)) / np.maximum(weights, SMALLEST_WEIGHT)
    return [clients[index] for index in np.argsort(keys, kind="stable")[:count]]


@SELECTIONS.register("oort")
class Oort(Selection):
    """Clients with high loss and speed, plus some never tried; chosen in rounds (Lai et al. 2021).

    A client without a report is "never tried", and its size stands for its utility. Its speed is unknown before its
    first job, so its speed factor is 1. Once its job has been called off, the client is known to be slower than all
    clients that reported in that round, and their longest duration counts as its own until it reports. If too few
    clients are left that were never tried, more of the tried ones are taken, and vice versa.

    Attributes:
        round: R, the number of rounds for which clients have been chosen.
        threshold: the current percentile of durations that defines T.
        utilities, durations, last_rounds: client -> the value from its last report; a later job that is called off may
            also raise its duration.
    """

    needs_rounds = True

    class Settings(Selection.Settings):
        """Options of Oort; the defaults are those of its authors' code."""

        penalty: float = Field(2.0, ge=0)
        """a, the exponent of the penalty on clients slower than T; 0 ignores speed."""
        overcommit: float = Field(1.1, ge=1)
        """Number of clients that a round invites, as a multiple of the number wanted."""

    settings: Settings

    state_names = ("round", "threshold", "history", "invited", "exploited", "utilities", "durations", "last_rounds")

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.overcommit = self.settings.overcommit

    def start(self, num_samples: Mapping[int, int]) -> None:
        """Reset the policy to its state before the first round, with no client tried."""
        self.num_samples = dict(num_samples)
        self.round = 0
        self.threshold = ROUND_THRESHOLD
        self.history: list[float] = []
        self.invited: list[int] = []
        self.exploited: list[int] = []
        self.utilities: dict[int, float] = {}
        self.durations: dict[int, float] = {}
        self.last_rounds: dict[int, int] = {}

    @property
    def epsilon(self) -> float:
        """Fraction of this round for clients never tried before."""
        return max(EXPLORATION * EXPLORATION_DECAY**self.round, EXPLORATION_MIN)

    def choose(self, idle: IdleClients, count: int, reporter: int | None, rng: np.random.Generator) -> Iterator[int]:
        """Yield a round's clients: exploited ones first, then explored ones."""
        if self.round:
            self._close_round()
        self.round += 1
        everyone = sorted(idle.as_list())
        tried = [client for client in everyone if client in self.last_rounds]
        new = [client for client in everyone if client not in self.last_rounds]
        num_explored = min(count - math.floor(count * (1 - self.epsilon) + 1e-9), len(new))
        num_exploited = min(count - num_explored, len(tried))
        preferred = preferred_duration(list(self.durations.values()), self.threshold)
        self.exploited = self._exploit(tried, num_exploited, preferred, rng, others=[self.num_samples[i] for i in new])
        self.invited = self.exploited + self._explore(new, count - num_exploited, preferred, rng)
        yield from self.invited

    def _exploit(
        self, tried: list[int], count: int, preferred: float, rng: np.random.Generator, others: Sequence[float]
    ) -> list[int]:
        """Sample k = ``count`` tried clients that score at least ``CUT_OFF`` times the (k+1)-th largest score."""
        if not count:
            return []
        known = (self.utilities, self.durations, self.last_rounds)
        utilities, durations, last_rounds = (np.array([column[client] for client in tried]) for column in known)
        known_and_now = (utilities, durations, last_rounds, self.round)
        score = scores(*known_and_now, preferred, others=others, penalty=self.settings.penalty)
        first_unwanted = np.sort(score)[max(len(score) - count - 1, 0)]
        good = np.flatnonzero(score >= CUT_OFF * first_unwanted)
        return drawn([tried[index] for index in good], score[good], count, rng)

    def _explore(self, new: list[int], count: int, preferred: float, rng: np.random.Generator) -> list[int]:
        """Sample from the largest clients never tried, weighted by size; one known to be slow counts as smaller."""
        sizes = np.array([self.num_samples[client] for client in new], dtype=float)
        known = np.array([self.durations.get(client, 0.0) for client in new])
        reward = sizes * speed_factor(known, preferred, self.settings.penalty)
        first = np.argsort(-reward, kind="stable")[: WINDOW * count]
        return drawn([new[index] for index in first], reward[first], count, rng)

    def observe(self, update: Update) -> None:
        """Record a client's utility and duration."""
        self.utilities[update.client] = statistical_utility(update.num_samples, update.mean_square_loss)
        self.durations[update.client] = update.duration
        self.last_rounds[update.client] = self.round

    def _close_round(self) -> None:
        reported = {client for client in self.invited if self.last_rounds.get(client) == self.round}
        if reported:
            slowest = max(self.durations[client] for client in reported)
            for client in set(self.invited) - reported:
                self.durations[client] = max(self.durations.get(client, 0.0), slowest)
        useful = [self.utilities[client] for client in self.exploited if client in reported]
        self.history.append(sum(useful) / len(useful) if useful else 0.0)
        if self.round >= 2 * PACER_STEP and self.round % PACER_STEP == 0:
            before, now = sum(self.history[-2 * PACER_STEP : -PACER_STEP]), sum(self.history[-PACER_STEP:])
            self.threshold = paced(self.threshold, before, now)

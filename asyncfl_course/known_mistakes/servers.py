"""Known mistakes of lessons 00 to 05: buffers, clocks, class shares, staleness weights, caches, bursts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor


def _poly(staleness: Tensor) -> Tensor:
    return (1 + staleness) ** -0.5


def _corrections(cache: Tensor, entries: list) -> Tensor:
    return torch.stack([delta - cache[client] for client, delta in entries]).mean(0)


def _filled(cache: Tensor, entries: list) -> Tensor:
    new = cache.clone()
    for client, delta in entries:
        new[client] = delta
    return new


def _late(a: float, tau: int, versions: int) -> list[float]:
    path = [1.0]
    for t in range(versions):
        path.append(path[-1] - a * path[max(0, t - tau)])
    return path


def _burst(x: Tensor, models: Tensor, shares: Tensor, rate: Tensor | float) -> Tensor:
    return (1 - rate) * x + rate * shares @ models


KNOWN: dict[str, dict[str, Callable[..., Any]]] = {
    "00.3": {
        "This is plain FedBuff: the staleness weights are missing.":
            lambda x, d, s, lr: x + lr * d.mean(0),
        "You divide by the sum of the weights; the paper divides by the number of updates.":
            lambda x, d, s, lr: x + lr * _poly(s) @ d / _poly(s).sum(),
        "You take the sum of the updates; divide it by their number.":
            lambda x, d, s, lr: x + lr * _poly(s) @ d,
        "The server learning rate is missing.":
            lambda x, d, s, lr: x + _poly(s) @ d / len(d),
        "You move away from the updates; they are added.":
            lambda x, d, s, lr: x - lr * _poly(s) @ d / len(d),
        "Each weight belongs to an update, which is a row of deltas; your weights multiply the columns.":
            lambda x, d, s, lr: x + lr * (d * _poly(s)).mean(0),
    },
    "01.3": {
        "This shares the slots out evenly; but a slow client holds its slot for longer.":
            lambda d, a: a / len(d) / d,
        "This is the rate of a client that is never idle; but there are more clients than slots.":
            lambda d, a: 1 / d,
    },
    "02.1": {
        "You did not divide the integral by C α.":
            lambda a, c: {(1, 10): 2.92897, (1, 2): 1.5}.get((a, c)),
    },
    "02.2": {
        "You compare each client with the mean of the clients' shares; q is the share among all samples.":
            lambda n: 0.5 * np.abs(n / n.sum(1, keepdims=True) - (n / n.sum(1, keepdims=True)).mean(0)).sum(1).mean(),
        "The factor ½ is missing.":
            lambda n: np.abs(n / n.sum(1, keepdims=True) - n.sum(0) / n.sum()).sum(1).mean(),
        "You compare each client with equal shares of all classes; q is what all clients hold together.":
            lambda n: 0.5 * np.abs(n / n.sum(1, keepdims=True) - 1 / n.shape[1]).sum(1).mean(),
    },
    "03.1": {
        "The + 1 in the denominator is missing.":
            lambda tau, a, b: 1.0 if tau <= b else 1 / (a * (tau - b)),
        "You count the whole age τ; only τ − b, the age above b, counts.":
            lambda tau, a, b: 1.0 if tau <= b else 1 / (a * tau + 1),
        "At τ = b the weight is still 1: compare with ≤.":
            lambda tau, a, b: 1.0 if tau < b else 1 / (a * tau + 1),
    },
    "03.2": {
        "You take the mean of the new cache alone; add the mean correction to the mean of the old one.":
            lambda cache, entries: _filled(cache, entries).mean(0),
        "You take the mean of the new cache; Equation 2 has the mean of the old one.":
            lambda cache, entries: _filled(cache, entries).mean(0) + _corrections(cache, entries),
        "The mean of the cache is missing.":
            lambda cache, entries: _corrections(cache, entries),
    },
    "03.3": {
        "The weights are missing: an update of weight ½ counts as half an update.":
            lambda k, fast, slow: (k - 1) / (k + 1),
        "The denominator needs the weights, too: it is the sum of both pulls.":
            lambda k, fast, slow: (k * fast - slow) / (k + 1),
        "The sign is the wrong way round: 1 is the fast client's optimum.":
            lambda k, fast, slow: (slow - k * fast) / (k * fast + slow),
    },
    "04.1": {
        "The sign of a jump does not count: take absolute values before the mean.":
            lambda tests, last: np.diff(tests[-last:]).mean(),
        "You take all tests; only the last ones count.":
            lambda tests, last: np.abs(np.diff(tests)).mean(),
        "You take the last differences; take the last tests, then their differences.":
            lambda tests, last: np.abs(np.diff(tests))[-last:].mean(),
        "This is the standard deviation, the distance from the mean; swing is the distance from the test before.":
            lambda tests, last: np.std(tests[-last:]),
        "You divide by the number of tests; n tests have n − 1 differences.":
            lambda tests, last: np.abs(np.diff(tests[-last:])).sum() / len(tests[-last:]),
    },
    "04.2": {
        "κ is missing: clients go only part of the way.":
            lambda eta, k, sigma, m: sigma * (eta / (2 - eta) / m) ** 0.5,
        "This is the variance; take its square root.":
            lambda eta, k, sigma, m: sigma**2 * eta * k / (2 - eta * k) / m,
        "The buffer is missing: a mean of M centres scatters less than one.":
            lambda eta, k, sigma, m: sigma * (eta * k / (2 - eta * k)) ** 0.5,
        "You divide the deviation by M; the variance is divided by M.":
            lambda eta, k, sigma, m: sigma * (eta * k / (2 - eta * k)) ** 0.5 / m,
    },
    "04.3": {
        "You look one version further back than τ.":
            lambda a, tau, n: _late(a, tau + 1, n),
        "This is τ = 0: each step uses the newest model.":
            lambda a, tau, n: _late(a, 0, n),
    },
    "05.2": {
        "Nobody has a weight here, so you divide 0 by 0; the model stays.":
            lambda x, m, n, acc, s: x * math.nan if not (n * (1 - acc)).sum() else None,
        "You divide n by its sum, and the weights do not add up to 1; divide n (1 − acc) by its sum.":
            lambda x, m, n, acc, s: _burst(x, m, n / n.sum() * (1 - acc), 0.7 * (1 + s.mean()) ** -0.5),
        "You take the mean of the rates; take the rate of the mean staleness.":
            lambda x, m, n, acc, s: _burst(x, m, n * (1 - acc) / (n * (1 - acc)).sum(), 0.7 * _poly(s).mean()),
        "The accuracies are missing in the weights.":
            lambda x, m, n, acc, s: _burst(x, m, n / n.sum(), 0.7 * (1 + s.mean()) ** -0.5),
        "You weigh by accuracy; the reward is for error, 1 − acc.":
            lambda x, m, n, acc, s: _burst(x, m, n * acc / (n * acc).sum(), 0.7 * (1 + s.mean()) ** -0.5),
    },
}  # fmt: skip

"""The table of known mistakes: common wrong functions, and the hint for each.

A wrong function is recognised by its result. Where it gives on an input what a function of this table gives, and that
differs from what is right, the reader hears that function's message. Otherwise the checker's own hint stands.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from asyncfl_course.plain import Found, numbers_of

Mistake = Callable[..., Any]
SIMULATED = {"15.1", "16.1"}
"""Exercises with simulated results, so that their mistakes' results are simulated, too."""


def named(id: str, found: Found) -> str | None:
    """Return the hint of the known mistake that gives the same wrong result on the same input, or None.

    Args:
        id: of the exercise.
        found: what the reader's function gave.
    """
    rtol = 0.03 if id in SIMULATED else 2e-3
    for message, wrong in KNOWN.get(id, {}).items():
        try:
            made = wrong(*found.inputs)
        except Exception:  # a mistake that this input does not allow
            continue
        if _alike(made, found.given, rtol) and not _alike(made, found.wanted, rtol):
            return message
    return None


def _alike(one: Any, other: Any, rtol: float) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    try:
        ours, theirs = numbers_of(one), numbers_of(other)
    except (TypeError, ValueError):
        return False
    if ours.size == theirs.size == 1:
        ours, theirs = ours.ravel(), theirs.ravel()
    return ours.shape == theirs.shape and np.allclose(
        ours, theirs, atol=2e-4 + 0.1 * rtol * (rtol > 0.01), rtol=rtol, equal_nan=True
    )


def _poly(staleness: Tensor) -> Tensor:
    return (1 + staleness) ** -0.5


def _corrections(cache: Tensor, entries: list) -> Tensor:
    return torch.stack([delta - cache[client] for client, delta in entries]).mean(0)


def _filled(cache: Tensor, entries: list) -> Tensor:
    new = cache.clone()
    for client, delta in entries:
        new[client] = delta
    return new


def _burst(x: Tensor, models: Tensor, shares: Tensor, rate: Tensor | float) -> Tensor:
    return (1 - rate) * x + rate * shares @ models


def _softened(z: Tensor, v: Tensor) -> Tensor:
    return z.softmax(-1) - v.softmax(-1)


def _certainty(p: Tensor) -> Tensor:
    return -torch.xlogy(p, p).sum(-1) / math.log(p.shape[-1])


def _echo(
    W: Tensor, buffer: list, store: dict, inputs: Tensor, lr: float,
    *, base: str = "start", student: str = "moved", heard: str = "all", mean: str = "logits",
) -> Tensor:  # fmt: skip
    """Return one version of FedEcho with one deliberate mistake."""
    moved = W + sum(delta for _, _, delta in buffer) / len(buffer)
    said = dict(store)
    for client, start, delta in buffer:
        said[client] = inputs @ ((start if base == "start" else W) + delta).T
    votes = torch.stack([said[client] for client in said if heard == "all" or client in {one for one, *_ in buffer}])
    p = votes.softmax(-1).mean(0) if mean == "probabilities" else votes.mean(0).softmax(-1)
    share = _certainty(p).mean()
    alpha = 0.8 * share + 0.2 * (1 - share)
    target = alpha * p + (1 - alpha) * one_hot(p.argmax(-1), p.shape[-1])
    error = (inputs @ (moved if student == "moved" else W).T).softmax(-1) - target
    return moved - lr * error.T @ inputs / len(inputs)


def _kl(teacher: Tensor, student: Tensor) -> Tensor:
    return (teacher.softmax(-1) * (teacher.log_softmax(-1) - student.log_softmax(-1))).sum(-1)


def _labelled(z_C: Tensor, z_S: Tensor, y: Tensor, alpha: float, T: float, **other: Any) -> Tensor:
    """Return FedADT's loss with one deliberate mistake."""
    teacher, student = z_S / T, z_C / T
    kl = _kl(student, teacher) if other.get("turned") else _kl(teacher, student)
    ce = cross_entropy(student if other.get("softened") else z_C, y, reduction="none")
    losses = alpha * other.get("times", 1) * kl + (1 - alpha) * ce
    return losses.sum() if other.get("summed") else losses.mean()


def _beta(tau: float, s_max: float, *, held: bool = True) -> float:
    return 0.5 * (1 - math.cos(math.pi * (min(tau, 2 * s_max) if held else tau) / (2 * s_max)))


def _adversarial(t: Tensor, s: Tensor, y: Tensor, omega: Tensor, mask: Tensor | float = 1.0) -> Tensor:
    return -(omega[:, y] * mask * _kl(t, s)).sum(0).mean()


def _agree(t: Tensor, s: Tensor) -> Tensor:
    return t.argmax(-1) == s.argmax(-1)


def _moments(features: Tensor, correction: int = 0) -> Tensor:
    return torch.stack([features.mean(1), features.var(1, correction=correction)], dim=1)


def _norms(difference: Tensor) -> Tensor:
    return torch.linalg.vector_norm(difference, dim=-1).sum(-1)


def _missed(g: Tensor, delays: list[int], eta: float, L: float, *, squared: bool = True, own: int = 0) -> list[float]:
    size = g.square().sum(1) if squared else g.square().sum(1).sqrt()
    return [float(size[t - late : t + own].sum()) for t, late in enumerate(delays)]


def _times(factor: float, values: list[float]) -> list[float]:
    return [factor * one for one in values]


def _alarms(n: int, scale: float) -> float:
    """Return how often two equal methods differ by more than this many pooled deviations."""
    return 2 * stats.t.sf(scale * math.sqrt(n / 2), 2 * n - 2)


def _ends(d: np.ndarray, half: float) -> tuple[float, float]:
    return d.mean() - half, d.mean() + half


def _t(d: np.ndarray, quantile: float) -> float:
    return float(stats.t.ppf(quantile, len(d) - 1))


def _stepped(p: np.ndarray) -> np.ndarray:
    return np.sort(p) * np.arange(len(p), 0, -1)


KNOWN: dict[str, dict[str, Mistake]] = {
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
        "A weight belongs to an update, a row of deltas; yours multiply its columns.":
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
        "At τ = b trust is still whole: compare with ≤.":
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
        "The sign is wrong way round: 1 is the fast client's optimum.":
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
        "κ is missing: clients walk only a share of the way.":
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
    "05.3": {
        "Each version multiplies what is left; you subtract the same again and again.":
            lambda acc, n: 1 - 0.7 * acc * n,
        "You took the error 1 − acc; Equation 2 as printed keeps 1 − β times the accuracy.":
            lambda acc, n: (1 - 0.7 * (1 - acc)) ** n,
    },
    "05.4": {
        "Nobody has a weight here, so you divide 0 by 0; return 0.":
            lambda n, acc: math.nan if not (n * (1 - acc)).sum() else None,
        "The sizes n are missing: the weights are n (1 − acc).":
            lambda n, acc: 1 / (((1 - acc) / (1 - acc).sum()) ** 2).sum(),
        "You count the clients that have any weight; a client with a small weight counts for less than one.":
            lambda n, acc: ((1 - acc) > 0).sum(),
    },
    "06.1": {
        "The chain rule's 1 / T is missing: z stands inside z / T.":
            lambda z, v, T: _softened(z / T, v / T),
        "The sign is the wrong way round: it is the student's probabilities less the teacher's.":
            lambda z, v, T: -_softened(z / T, v / T) / T,
        "Both softmaxes must be at temperature T.":
            lambda z, v, T: _softened(z, v) / T,
        "You multiply by T; the chain rule divides by it.":
            lambda z, v, T: _softened(z / T, v / T) * T,
        "The factor T² is not in this loss.":
            lambda z, v, T: _softened(z / T, v / T) * T**2 / T,
    },
    "06.3": {
        "That is for one other client; the loud one must outweigh all n.":
            lambda n: 2.0,
        "The loud client does not outweigh itself: n others say 2.":
            lambda n: 2.0 * (n + 1),
    },
    "07.1": {
        "You weigh by the number of reports, as a buffer does; the store keeps one set of predictions per client.":
            lambda reports, client: reports.count(client) / len(reports),
    },
    "07.2": {
        "Divide the entropy by log C, so that it lies between 0 and 1.":
            lambda p, low, high: low + (high - low) * -torch.xlogy(p, p).sum(-1).mean(),
        "The ends are the wrong way round: an unsure teacher gets the high weight.":
            lambda p, low, high: high + (low - high) * _certainty(p).mean(),
        "One weight is asked for the whole batch: take the mean over its rows.":
            lambda p, low, high: low + (high - low) * _certainty(p),
        "A probability of 0 gives 0 log 0, which is NaN here; torch.xlogy makes it 0.":
            lambda p, low, high: math.nan if (p == 0).any() else None,
    },
    "07.3": {
        "Predictions are those of the client's own model: start + delta, not W + delta.":
            lambda *known: _echo(*known, base="W"),
        "The step starts from the model after the mean delta, not from W: its error is taken there.":
            lambda *known: _echo(*known, student="W"),
        "The teacher is the mean over everybody in the store, not only over the clients in the buffer.":
            lambda *known: _echo(*known, heard="buffer"),
        "Average the logits first, then take softmax.":
            lambda *known: _echo(*known, mean="probabilities"),
    },
    "08.1": {
        "Your own rows are among the rivals: leave them out before you take the best.":
            lambda table, ours: (table.loc[ours] - table.max()).to_numpy(),
        "You subtract the mean of the others; the claim is about the best of them.":
            lambda table, ours: (table.loc[ours] - table.drop(index=ours).mean()).to_numpy(),
        "You subtract one fixed row; the best rival may be another one in each column.":
            lambda table, ours: (table.loc[ours] - table.iloc[0]).to_numpy(),
    },
    "09.2": {
        "Later arrivals shrink the shares of earlier ones, too, not only the initial model's.":
            lambda taus: [1 - sum((t + 1) ** -0.5 for t in taus), *((t + 1) ** -0.5 for t in taus)],
        "The share of the initial model is missing at the beginning.":
            lambda taus: _shares(taus)[1:],
    },
    "09.3": {
        "You softened the cross entropy as well; the label's term does not know T.":
            lambda *known: _labelled(*known, softened=True),
        "The divergence is the wrong way round: it goes from the teacher to the student.":
            lambda *known: _labelled(*known, turned=True),
        "You multiplied by T²; Equation 7 has no such factor.":
            lambda *known: _labelled(*known, times=known[4] ** 2),
        "You took the sum; the mean over the batch is asked for.":
            lambda *known: _labelled(*known, summed=True),
    },
    "10.1": {
        "The weights are swapped: beta weighs the distilled part, and the client's has 1 − beta.":
            lambda x, d, k, tau, lr, s: x + lr * (_beta(tau, s) * d + (1 - _beta(tau, s)) * k),
        "The cosine turns back: hold the staleness at 2 s_max.":
            lambda x, d, k, tau, lr, s: x + lr * ((1 - _beta(tau, s, held=False)) * d + _beta(tau, s, held=False) * k),
        "The learning rate multiplies both parts; you left it out of the distilled one.":
            lambda x, d, k, tau, lr, s: x + lr * (1 - _beta(tau, s)) * d + _beta(tau, s) * k,
        "The learning rate is missing.":
            lambda x, d, k, tau, lr, s: x + (1 - _beta(tau, s)) * d + _beta(tau, s) * k,
    },
    "10.3": {
        "The mask is missing: where teacher and student disagree, nothing counts.":
            lambda t, s, y, omega: _adversarial(t, s, y, omega),
        "The sign is missing: the generator is rewarded where the two differ.":
            lambda t, s, y, omega: -_adversarial(t, s, y, omega, _agree(t, s)),
        "Your mask compares with the label; it asks whether teacher and student name the same class.":
            lambda t, s, y, omega: _adversarial(t, s, y, omega, t.argmax(-1) == y),
    },
    "10.4": {
        "Your variance divides by B − 1; stored variances divide by B (correction=0).":
            lambda f, real, y, omega: (omega[:, y].mean(-1) * _norms(_moments(f, 1) - real)).sum(),
        "The norms are not squared here.":
            lambda f, real, y, omega: (omega[:, y].mean(-1) * (_moments(f) - real).square().sum((-2, -1))).sum(),
        "The teachers' weights are missing: each counts with the mean of its omega on the batch's labels.":
            lambda f, real, y, omega: _norms(_moments(f) - real).sum(),
    },
    "11.1": {
        "The commonest class is not always class 1, and there may be more than two.":
            lambda labels: [labels.float().mean(), 0.5],
        "You divide by the number of possible classes; only those that occur count.":
            lambda labels: [labels.bincount().max() / len(labels), 1 / len(labels.bincount())],
        "There are not always two classes: count those that occur.":
            lambda labels: [labels.bincount().max() / len(labels), 0.5],
    },
    "11.2": {
        "You left out the runs: all of them together have pairs · runs answers.":
            lambda printed, pairs, runs: round(100 * round(printed / 100 * pairs) / pairs, 2) == printed,
        "A printed percentage is rounded: ask whether some whole number of answers rounds to it.":
            lambda printed, pairs, runs: (printed / 100 * pairs * runs).is_integer(),
    },
    "11.3": {
        "A score of 0 still gets a weight in softmax; padding needs the score −∞.":
            lambda s, v, here: (s * here).softmax(-1) @ v,
        "You mask after softmax, so the weights no longer add up to 1.":
            lambda s, v, here: (s.softmax(-1) * here) @ v,
        "exp(200) is infinite in single precision; softmax subtracts the largest score first.":
            lambda s, v, here: math.nan if s.max() > 80 else None,
    },
    "11.4": {
        "You divide by all clients; divide by those that used the word.":
            lambda d: d.mean(0),
        "A word that nobody used gives 0 / 0; it stays where it is.":
            lambda d: d.sum(0) / (d != 0).any(-1).sum(0)[:, None],
        "You count users for each number; a client used the whole row if any of its numbers moved.":
            lambda d: d.sum(0) / (d != 0).sum(0).clamp(min=1),
    },
    "12.1": {
        "That is one error; the lead shall be two.":
            lambda lead, differ: differ / lead**2,
        "You used an error of two independent accuracies; the two models answer the same problems.":
            lambda lead, differ: 2 / lead**2,
        "You multiplied by 2; two errors make a factor 2² in n.":
            lambda lead, differ: 2 * differ / lead**2,
    },
    "12.3": {
        "The place of the end itself does not count: nothing is predicted there.":
            lambda rows: ((rows == 1).cumsum(-1) > 0) & (rows != 0),
        "The marker's own place counts: there the first token of the answer is predicted.":
            lambda rows: ((rows == 1).cumsum(-1) > 0) & (rows != 1) & (rows != 0),
        "An end before the marker belongs to the question; only one after it stops the answer.":
            lambda rows: ((rows == 1).cumsum(-1) > 0) & ((rows == 2).cumsum(-1) == 0),
    },
    "12.4": {
        "You took all tokens together; take each problem's share first, then the mean over problems.":
            lambda said, y: [((said == y) & (y != -100)).sum() / (y != -100).sum(),
                             ((said == y) | (y == -100)).all(1).float().mean()],
        "Places with the label −100 count here; leave them out.":
            lambda said, y: [(said == y).float().mean(), (said == y).all(1).float().mean()],
    },
    "13.1": {
        "You spread the frames from the first to the last; take the middle of each part.":
            lambda length, n: np.linspace(0, length - 1, n).astype(int),
        "This is where each part begins; add half of a part.":
            lambda length, n: [k * length // n for k in range(n)],
        "You round; the brackets ⌊ ⌋ cut off.":
            lambda length, n: [round((k + 0.5) * length / n) for k in range(n)],
    },
    "13.4": {
        "The squared error is a sum over classes here; take the mean over classes, too.":
            lambda s, t, y, a: a * cross_entropy(s, y) + (1 - a) * ((s - t) ** 2).sum(-1).mean(),
        "The weights are swapped: a weighs the labels.":
            lambda s, t, y, a: (1 - a) * cross_entropy(s, y) + a * ((s - t) ** 2).mean(),
        "You compare probabilities; the squared error is of the logits.":
            lambda s, t, y, a: a * cross_entropy(s, y) + (1 - a) * ((s.softmax(-1) - t.softmax(-1)) ** 2).mean(),
    },
    "14.1": {
        "You count the step of version t itself, too; the sum ends at t − 1.":
            lambda g, late, eta, L: _times(L**2 * eta**2 * max(late), _missed(g, late, eta, L, own=1)),
        "The lengths of the steps are to be squared.":
            lambda g, late, eta, L: _times(L**2 * eta**2 * max(late), _missed(g, late, eta, L, squared=False)),
        "L is squared.":
            lambda g, late, eta, L: _times(L * eta**2 * max(late), _missed(g, late, eta, L)),
        "η is squared.":
            lambda g, late, eta, L: _times(L**2 * eta * max(late), _missed(g, late, eta, L)),
        "τ is not squared.":
            lambda g, late, eta, L: _times(L**2 * eta**2 * max(late) ** 2, _missed(g, late, eta, L)),
        "The factor τ, the largest delay, is missing.":
            lambda g, late, eta, L: _times(L**2 * eta**2, _missed(g, late, eta, L)),
    },
    "14.2": {
        "This is the step that the theorem allows; the largest that works is asked for.":
            lambda tau, L: 1 / (2 * L * (1 + tau)),
        "This fits τ = 0 and 1 only; look at the roots for larger τ.":
            lambda tau, L: 2 / (L * (1 + tau)),
        "L is missing: the step is divided by it.":
            lambda tau, L: 2 * math.sin(math.pi / (2 * (2 * tau + 1))),
    },
    "14.3": {
        "You draw with replacement; a buffer holds M different clients.":
            lambda u, m: np.mean([np.mean(b) ** 2 for b in itertools.product(u, repeat=m)]),
        "You square the mean of the means; square each buffer's mean, then average.":
            lambda u, m: np.mean([np.mean(b) for b in itertools.combinations(u, m)]) ** 2,
        "This is the variance of independent draws; here clients are drawn without replacement.":
            lambda u, m: np.var(u) / m,
    },
    "14.4": {
        "You count all clients alike; a fast client arrives more often.":
            lambda d, c: np.mean(c),
        "You weigh by duration; a client of duration d arrives 1/d times in a unit of time.":
            lambda d, c: np.average(c, weights=d),
    },
    "15.1": {
        "You count differences in one direction only; take the absolute value.":
            lambda n, trials: _alarms(n, 1) / 2,
        "Divide the squares by n − 1 (ddof=1).":
            lambda n, trials: _alarms(n, math.sqrt((n - 1) / n)),
        "You divide the deviation by √n; the rule compares with the deviation of a run.":
            lambda n, trials: _alarms(n, 1 / math.sqrt(n)),
        "This is in percent; a share is asked for.":
            lambda n, trials: 100 * _alarms(n, 1),
    },
    "15.2": {
        "You used the normal distribution; with few seeds the t distribution is wider.":
            lambda d, level: _ends(d, stats.norm.ppf((1 + level) / 2) * d.std(ddof=1) / len(d) ** 0.5),
        "This quantile leaves 1 − level on one side; half of that belongs on each.":
            lambda d, level: _ends(d, _t(d, level) * d.std(ddof=1) / len(d) ** 0.5),
        "The deviation divides by n; divide by n − 1 (ddof=1).":
            lambda d, level: _ends(d, _t(d, (1 + level) / 2) * d.std() / len(d) ** 0.5),
        "This is the interval of one difference; that of their mean is narrower by √n.":
            lambda d, level: _ends(d, _t(d, (1 + level) / 2) * d.std(ddof=1)),
    },
    "15.5": {
        "This is Bonferroni's correction, every value times k; Holm multiplies by k, k − 1, and so on.":
            lambda p: np.minimum(1, len(p) * p),
        "A value may not fall below the one before it: take the running maximum.":
            lambda p: np.minimum(1, _stepped(p))[np.argsort(np.argsort(p))],
        "You gave them back sorted; give them back in the order in which they came.":
            lambda p: np.minimum(1, np.maximum.accumulate(_stepped(p))),
    },
    "16.1": {
        "This is a quantile of one score, not the mean of the best of n.":
            lambda n: stats.norm.ppf(1 - 1 / (n + 1)),
        "You took the absolute value; a score below the mean stays below it.":
            lambda n: math.sqrt(2 / math.pi) if n == 1 else None,
        "You averaged the n scores; keep the largest of them.":
            lambda n: 0.0 if n > 1 else None,
    },
    "16.2": {
        "Rank 1 is for the largest accuracy; you ranked the smallest first.":
            lambda table: stats.rankdata(table, axis=1).mean(axis=0),
        "Equal accuracies must share the mean of their ranks; argsort breaks ties by column.":
            lambda table: (1 + np.argsort(np.argsort(-table, axis=1), axis=1)).mean(axis=0),
        "You ranked the mean accuracies; rank within each row, then average the ranks.":
            lambda table: stats.rankdata(-table.mean(axis=0)),
    },
    "16.3": {
        "Divide the studentised range's quantile by √2.":
            lambda k, n: stats.studentized_range.ppf(0.95, k, np.inf) * (k * (k + 1) / (6 * n)) ** 0.5,
        "It is k (k + 1), not k (k − 1).":
            lambda k, n: stats.studentized_range.ppf(0.95, k, np.inf) * (k * (k - 1) / (12 * n)) ** 0.5,
    },
}  # fmt: skip
"""Exercise -> hint -> the wrong function; in 03.2, 07.1, 07.3 and 08.1 the part that the checker names."""


def _late(a: float, tau: int, versions: int) -> list[float]:
    path = [1.0]
    for t in range(versions):
        path.append(path[-1] - a * path[max(0, t - tau)])
    return path


def _shares(taus: list[int]) -> list[float]:
    found = [1.0]
    for tau in taus:
        found = [(1 - (tau + 1) ** -0.5) * share for share in found] + [(tau + 1) ** -0.5]
    return found

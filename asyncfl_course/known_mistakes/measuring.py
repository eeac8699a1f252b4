"""Known mistakes of lessons 11 to 16: text, generation, video, theory, statistics, evidence."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats
from torch import Tensor
from torch.nn.functional import cross_entropy


def _missed(g: Tensor, delays: list[int], eta: float, L: float, *, squared: bool = True, own: int = 0) -> list[float]:
    size = g.square().sum(1) if squared else g.square().sum(1).sqrt()
    return [float(size[t - late : t + own].sum()) for t, late in enumerate(delays)]


def _times(factor: float, values: list[float]) -> list[float]:
    return [factor * one for one in values]


def _alarms(n: int, scale: float) -> float:
    """Return the probability that two equal methods' means differ by over ``scale`` pooled standard deviations."""
    return 2 * stats.t.sf(scale * math.sqrt(n / 2), 2 * n - 2)


def _ends(d: np.ndarray, half: float) -> tuple[float, float]:
    return d.mean() - half, d.mean() + half


def _t(d: np.ndarray, quantile: float) -> float:
    return float(stats.t.ppf(quantile, len(d) - 1))


def _stepped(p: np.ndarray) -> np.ndarray:
    return np.sort(p) * np.arange(len(p), 0, -1)


KNOWN: dict[str, dict[str, Callable[..., Any]]] = {
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
        "That is one error; the lead must be two.":
            lambda lead, differ: differ / lead**2,
        "You used an error of two independent accuracies; the two models answer the same problems.":
            lambda lead, differ: 2 / lead**2,
        "You multiplied by 2; two errors make a factor 2² in n.":
            lambda lead, differ: 2 * differ / lead**2,
    },
    "12.3": {
        "The end's own position does not count: nothing is predicted there.":
            lambda rows: ((rows == 1).cumsum(-1) > 0) & (rows != 0),
        "The marker's own position counts: the first token of the answer is predicted there.":
            lambda rows: ((rows == 1).cumsum(-1) > 0) & (rows != 1) & (rows != 0),
        "An end before the marker belongs to the question; only one after it stops the answer.":
            lambda rows: ((rows == 1).cumsum(-1) > 0) & ((rows == 2).cumsum(-1) == 0),
    },
    "12.4": {
        "You took all tokens together; take each problem's share first, then the mean over problems.":
            lambda said, y: [((said == y) & (y != -100)).sum() / (y != -100).sum(),
                             ((said == y) | (y == -100)).all(1).float().mean()],
        "You count positions with the label −100; leave them out.":
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
        "Your squared error is a sum over classes; take the mean over classes, too.":
            lambda s, t, y, a: a * cross_entropy(s, y) + (1 - a) * ((s - t) ** 2).sum(-1).mean(),
        "The weights are swapped: a weighs the labels.":
            lambda s, t, y, a: (1 - a) * cross_entropy(s, y) + a * ((s - t) ** 2).mean(),
        "You compare probabilities; the squared error compares logits.":
            lambda s, t, y, a: a * cross_entropy(s, y) + (1 - a) * ((s.softmax(-1) - t.softmax(-1)) ** 2).mean(),
    },
    "14.1": {
        "You count the step of version t itself, too; the sum ends at t − 1.":
            lambda g, late, eta, L: _times(L**2 * eta**2 * max(late), _missed(g, late, eta, L, own=1)),
        "The lengths of the steps must be squared.":
            lambda g, late, eta, L: _times(L**2 * eta**2 * max(late), _missed(g, late, eta, L, squared=False)),
        "L must be squared.":
            lambda g, late, eta, L: _times(L * eta**2 * max(late), _missed(g, late, eta, L)),
        "η must be squared.":
            lambda g, late, eta, L: _times(L**2 * eta * max(late), _missed(g, late, eta, L)),
        "τ must not be squared.":
            lambda g, late, eta, L: _times(L**2 * eta**2 * max(late) ** 2, _missed(g, late, eta, L)),
        "The factor τ, the largest delay, is missing.":
            lambda g, late, eta, L: _times(L**2 * eta**2, _missed(g, late, eta, L)),
    },
    "14.2": {
        "This is the largest step that the theorem allows; the question is which is the largest that works.":
            lambda tau, L: 1 / (2 * L * (1 + tau)),
        "This fits τ = 0 and 1 only; look at the roots for larger τ.":
            lambda tau, L: 2 / (L * (1 + tau)),
        "L is missing: the step is divided by it.":
            lambda tau, L: 2 * math.sin(math.pi / (2 * (2 * tau + 1))),
    },
    "14.3": {
        "You weigh all clients equally; a fast client arrives more often.":
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
        "Your deviation divides by n; divide by n − 1 (ddof=1).":
            lambda d, level: _ends(d, _t(d, (1 + level) / 2) * d.std() / len(d) ** 0.5),
        "This is the interval of one difference; the interval of their mean is narrower by a factor of √n.":
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
        "Nobody has a weight here, so you divide 0 by 0; return 0.":
            lambda n, acc: math.nan if not (n * (1 - acc)).sum() else None,
        "The sizes n are missing: the weights are n (1 − acc).":
            lambda n, acc: 1 / (((1 - acc) / (1 - acc).sum()) ** 2).sum(),
        "You count the clients that have any weight; a client with a small weight counts for less than one.":
            lambda n, acc: ((1 - acc) > 0).sum(),
    },
}  # fmt: skip

"""Numbers as texts: a mean with its deviation, a difference with its interval."""

from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd

from asyncfl_lite.base.errors import how_many
from asyncfl_reproduction.statistics import Contrast, deviation


def mean_text(values: pd.Series | np.ndarray, digits: int = 1) -> str:
    """Return the mean and standard deviation of numbers over seeds, such as ``93.1 ± 0.5``."""
    return f"{np.mean(values):.{digits}f} ± {deviation(np.asarray(values)):.{digits}f}"


def time_text(times: pd.Series | np.ndarray) -> str:
    """Return times as text, such as ``31.2 ± 4.0``, or the number of seeds that did not reach the target."""
    never = int(np.isinf(times).sum())
    if never:
        return "not reached" + (f" with {never} of {len(times)} seeds" if never < len(times) else "")
    return mean_text(times)


def with_ends(mean: float, low: float, high: float, digits: int = 1) -> str:
    """Return a difference with its interval, such as ``+17.1 [13.4, 20.8]``."""
    ends = f"[{low:.{digits}f}, {high:.{digits}f}]".replace("inf", "∞")
    return f"{mean:+.{digits}f} {ends}"


def interval_text(found: Contrast, scale: float = 100.0) -> str:
    """Return a difference as ``+17.1 [13.4, 20.8], 10 seeds``, or a ratio as ``× 2.10 [1.41, 3.20], 10 seeds``."""
    ratio = found.unit == "log ratio"
    numbers = [math.exp(x) if ratio else scale * x for x in (found.mean, found.low, found.high)]
    shown = with_ends(*numbers, 2 if ratio else 1)
    if math.isinf(found.low) and math.isinf(found.high):
        shown = shown.partition(" [")[0]
    return f"{'× ' + shown.lstrip('+') if ratio else shown}, {how_many(found.seeds, 'seed')}"


def in_points(found: Contrast) -> str:
    """Return a difference of accuracies in points, with minus signs, such as ``−0.3 [−1.4, 0.7]``."""
    return with_signs(with_ends(100 * found.mean, 100 * found.low, 100 * found.high))


def with_signs(text: str) -> str:
    """Replace the hyphens in negative numbers with minus signs."""
    return re.sub(r"(?<![\w.])-(?=\d)", "−", text)

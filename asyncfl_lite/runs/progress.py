"""How far a run is, as it is shown while it runs: a bar where it can move, lines where it cannot."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from asyncfl_lite.base.bars import tqdm

Shown = bool | Literal["lines"]
"""False shows nothing, True a bar of versions with the accuracy, "lines" a line to stderr for evaluations."""

Curve = Sequence[Mapping[str, float]]
"""Rows of evaluations: version, time, accuracy and more."""

SECONDS_BETWEEN_LINES = 5.0


class Progress:
    """Shows versions and the accuracy of the last one that was tested; a context, whose end closes the bar.

    Args:
        shown: how.
        rounds: the version at which the run ends; None if it ends at a time.
        horizon: the virtual time at which it ends, or None.
        curve: returns the rows of evaluations so far.
    """

    def __init__(self, shown: Shown, rounds: int | None, horizon: float | None, curve: Callable[[], Curve]) -> None:
        self.lines, self.curve, self.rounds, self.horizon = shown == "lines", curve, rounds, horizon
        self.bar = tqdm(total=rounds, unit="version", disable=shown is not True)
        self.began, self.said_at = time.monotonic(), -float("inf")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()

    def at(self, version: int) -> None:
        """Show that the run has come to this version."""
        self.bar.update(version - self.bar.n)
        row = self.curve()[-1]
        if row["version"] != version:
            return
        self.bar.set_postfix(accuracy=f"{row['accuracy']:.4f}", refresh=False)
        last = version == self.rounds
        if self.lines and (last or time.monotonic() - self.said_at >= SECONDS_BETWEEN_LINES):
            self.said_at = time.monotonic()
            print(self._line(row), file=sys.stderr, flush=True)

    def _line(self, row: Mapping[str, float]) -> str:
        versions = f"version {row['version']:.0f}" + (f" of {self.rounds}" if self.rounds else "")
        times = f"time {row['time']:.1f}" + (f" of {self.horizon:g}" if self.horizon else "")
        return f"{versions}, {times}: accuracy {row['accuracy']:.4f} ({time.monotonic() - self.began:.0f} s)"

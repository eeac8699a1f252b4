"""Callbacks: a user's own functions, which a run calls after versions and evaluations, and which can end the run."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from asyncfl_lite.base.errors import ConfigError, shown

OnVersion = Callable[[Any], None]
OnEvaluate = Callable[[Any, dict[str, float]], None]
"""Types of the two callbacks; see :func:`asyncfl_lite.runs.run.run`. The first argument is the
:class:`asyncfl_lite.runs.run.Run`; it is not imported here, since its module imports this one."""


class StopRun(Exception):
    """Raised by a callback to end its run after the current version; the message becomes the result's ``stopped``.

    Callbacks are given to :func:`run`, whose result is complete up to this version.

    Example: early stopping, when the accuracy has not risen for twenty versions.

    >>> from asyncfl_lite import Config, StopRun, run
    >>> def early(run, row):
    ...     best = max(run.curve_rows, key=lambda row: row["accuracy"])
    ...     if row["version"] - best["version"] >= 20:
    ...         raise StopRun(f"no gain since version {best['version']}")
    >>> result = run(Config(task="digits", client_lr=0.0, rounds=100, eval_every=5), on_evaluate=early)
    >>> result.stopped, result.summary["versions"]
    ('no gain since version 0', 20)
    """


class Callbacks:
    """The callbacks of one run; one that cannot be called with its arguments raises a ConfigError at once."""

    def __init__(self, on_version: OnVersion | None = None, on_evaluate: OnEvaluate | None = None) -> None:
        _check("on_version", on_version, "run")
        _check("on_evaluate", on_evaluate, "run", "row")
        self.on_version, self.on_evaluate = on_version, on_evaluate

    def made_version(self, run: Any) -> None:
        """Call ``on_version``, if it is given, after a new version."""
        _call(run, self.on_version, run)

    def evaluated(self, run: Any, row: dict[str, float]) -> None:
        """Call ``on_evaluate``, if it is given, with a new row of the curve."""
        _call(run, self.on_evaluate, run, dict(row))


def _check(name: str, callback: Any, *arguments: str) -> None:
    if callback is None:
        return
    wanted = f"must be a function of {' and '.join(arguments)}"
    if not callable(callback):
        raise ConfigError(f"{name}: {wanted}, got {shown(callback)}")
    try:
        signature = inspect.signature(callback)
    except ValueError:  # some functions that are written in C have no signature
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        called = getattr(callback, "__name__", type(callback).__name__)
        raise ConfigError(f"{name}: {wanted}, but {called}{signature} cannot be called so ({error})") from None


def _call(run: Any, callback: Callable[..., None] | None, *arguments: Any) -> None:
    """Call a callback; if it fails, save the run where possible, and say so in a note on the error."""
    if callback is None:
        return
    try:
        callback(*arguments)
    except StopRun:
        raise
    except (Exception, SystemExit) as error:
        error.add_note(f"a callback failed at version {run.algorithm.version}; {run.saved()}")
        raise

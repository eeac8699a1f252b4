"""What a run tells while it goes on: to its log, and to callbacks, a user's own functions, which can end the run."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any

from asyncfl_lite.base.errors import ConfigError, shown

LOG = logging.getLogger("asyncfl_lite")
"""The package's log. At the level INFO it gets the lines of :class:`~asyncfl_lite.runs.progress.Progress`, whether they
are displayed or not."""
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


def check_callback(name: str, callback: Any, *arguments: str) -> None:
    """Raise a ConfigError for a callback that cannot be called with arguments of these names."""
    try:
        inspect.signature(callback).bind(*arguments)
    except TypeError as error:
        wanted = f"must be a function of {' and '.join(arguments)}"
        raise ConfigError(f"{name}: {wanted}, got {shown(callback)} ({error})") from None
    except ValueError:  # some functions that are written in C have no signature
        pass


def call(callback: Callable[..., None], run: Any, *more: Any) -> None:
    """Call a run's callback; if it fails, save the run where possible, and say so in a note on the error."""
    try:
        callback(run, *more)
    except StopRun:
        raise
    except (Exception, SystemExit) as error:
        error.add_note(f"a callback failed at version {run.algorithm.version}; {run.saved()}")
        raise

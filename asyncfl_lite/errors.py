"""The package's own errors: one line that names what, where, and what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AsyncFLError(Exception):
    """Base of every error that this package raises on purpose."""


class ConfigError(AsyncFLError, ValueError):
    """A setting that does not exist, or whose value is impossible."""


class DataError(AsyncFLError, ValueError):
    """Data that cannot be read or cannot be used as asked."""


class ResultError(AsyncFLError, ValueError):
    """A result file that is missing, cut off, or of another format."""


class SimulationError(AsyncFLError, RuntimeError):
    """A run that broke its own rules (the self-check) or cannot go on."""


class MissingLibraryError(AsyncFLError, ImportError):
    """An optional library that is not installed; the message holds the install line."""


def unknown_name(kind: str, name: object, allowed: Iterable[str]) -> str:
    """Return a one-line message for an unknown ``name``, with the nearest allowed one.

    >>> unknown_name("algorithm", "fedecoh", ["fedavg", "fedecho"])
    "algorithm: 'fedecoh' is not known; did you mean 'fedecho'? Allowed: fedavg, fedecho"
    """
    names = sorted(allowed)
    near = difflib.get_close_matches(str(name), names, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else "."
    return f"{kind}: {name!r} is not known{guess} Allowed: {', '.join(names)}"

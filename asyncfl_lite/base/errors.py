"""The package's own errors, whose one-line messages say what is wrong, where, and what is allowed."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

LONGEST = 80
"""Largest number of characters of a user's value in a message."""


class AsyncFLError(Exception):
    """Base class of every error that this package raises on purpose; its message is always one line.

    >>> from asyncfl_lite import AsyncFLError, Config
    >>> try:
    ...     Config(algorithm="fedbuf")
    ... except AsyncFLError as error:
    ...     print(str(error)[:59])
    algorithm: 'fedbuf' is not known; did you mean 'fedbuff'? A
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(" ".join(line.strip() for line in str(message).splitlines()))


class ConfigError(AsyncFLError, ValueError):
    """Raised for a setting that does not exist or has an invalid value."""


class DataError(AsyncFLError, ValueError):
    """Raised for data that cannot be read or cannot be used as asked."""


class ResultError(AsyncFLError, ValueError):
    """Raised for a result or checkpoint that cannot be read, written or replaced."""


class SimulationError(AsyncFLError, RuntimeError):
    """Raised when a run breaks the simulator's rules (the self-check) or cannot go on."""


class DivergedError(SimulationError):
    """Raised when every recent update of a run was refused, usually because its learning rates are too large."""


class MissingLibraryError(AsyncFLError, ImportError):
    """Raised when an optional library is not installed; the message says how to install it."""


def unknown_name(kind: str, name: object, allowed: Iterable[str]) -> str:
    """Return a one-line message that rejects an unknown ``name`` and suggests the most similar allowed name."""
    names = sorted(allowed)
    near = nearest(name, names)
    guess = f"; did you mean {near!r}?" if near is not None else "."
    return f"{kind}: {shown(name)} is not known{guess} Allowed: {', '.join(names) or 'none'}"


def nearest(name: object, allowed: Iterable[str]) -> str | None:
    """Return the allowed name that is most similar to ``name``, ignoring case; None if none is similar."""
    by_small_letters = {other.lower(): other for other in allowed}
    given = name.decode("latin-1") if isinstance(name, bytes) else name
    near = difflib.get_close_matches(given[:LONGEST].lower(), by_small_letters, n=1) if isinstance(given, str) else []
    return by_small_letters[near[0]] if near else None


def shown(value: object) -> str:
    """Return a user's value as text for a message, in one line of at most :data:`LONGEST` characters.

    A value may contain itself, or be small in a file and huge when written out, so only the shown part of it is read.
    """
    try:
        text = _BRIEF.repr(value)
    except ValueError:  # Python refuses to write out an integer of more than 4,300 digits
        text = "a number of thousands of digits"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]} …"


def how_many(count: int, noun: str) -> str:
    """Return a count with its noun, such as "1 cell" or "2,000 cells"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def reason(error: BaseException) -> str:
    """Return the first line of an exception's message, or the name of its type if it has no message."""
    text = getattr(error, "strerror", None) or str(error).strip().partition("\n")[0]
    return text or type(error).__name__


@contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """Turn a failed import inside the block into a one-line error that says which extra installs the library.

    ``what`` is the model, option or action that needs it, by a name that the user knows.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or str(error)).partition(".")[0]
        raise MissingLibraryError(f"{what}: needs {missing}; pip install 'asyncfl-lite[{extra}]'") from None


_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = _BRIEF.maxlong = LONGEST - 2
_BRIEF.maxlevel = 3

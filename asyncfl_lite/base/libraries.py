"""Errors for missing optional libraries; each says which extra installs the library.

``pip install .`` installs all libraries that ``run`` needs on digits. Texts, videos, grids and notebooks need more;
each of these has an extra in ``pyproject.toml``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from asyncfl_lite.base.errors import MissingLibraryError


@contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """Turn a failed import inside the block into a one-line error that says which extra installs the library.

    Args:
        extra: extra of the package, such as ``"text"``.
        what: the model, option or action that needs the library, by a name that the user knows.

    Raises:
        MissingLibraryError: with the command that installs the library.

    >>> with needs("text", "bert"):
    ...     import transfomers
    Traceback (most recent call last):
    asyncfl_lite.base.errors.MissingLibraryError: bert: needs transfomers; pip install 'asyncfl-lite[text]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or str(error)).partition(".")[0]
        raise MissingLibraryError(f"{what}: needs {missing}; pip install 'asyncfl-lite[{extra}]'") from None

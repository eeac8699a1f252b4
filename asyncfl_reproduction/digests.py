"""SHA-256 digests of recorded files: no number is read from a file that is damaged.

A Parquet file holds its own digest (:mod:`.parquet`). The digests of other files, such as CSV, are in a file
``SHA256SUMS`` beside them, which ``sha256sum -c SHA256SUMS`` checks, too. After you have changed a recorded file by
hand, accept it with ``python -m asyncfl_reproduction.digests FILE …``.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from asyncfl_lite.base.errors import AsyncFLError, ResultError, reason
from asyncfl_lite.base.files import write_atomically
from asyncfl_reproduction.parquet import ACCEPT, accept_table, alone_in

SUMS = "SHA256SUMS"


def checked(path: str | Path) -> Path:
    """Return the path of a recorded file whose content has its digest in ``SHA256SUMS``.

    Raises:
        ResultError: if the file cannot be read, has no digest, or was changed or damaged since it was recorded.

    Example:
        >>> from asyncfl_reproduction.home import PAPERS
        >>> checked(PAPERS / "results.csv").name
        'results.csv'
    """
    path = Path(path)
    digest = _digest(path)
    recorded = _sums(path.parent).get(path.name)
    if digest != recorded:
        what = f"has no SHA-256 in {SUMS}" if recorded is None else "is damaged or changed: it has another SHA-256"
        raise ResultError(f"{path}: {what}; restore it, record it again, or {ACCEPT} {path}")
    return path


def keep(table: pd.DataFrame | pd.Series, path: str | Path, **options: Any) -> None:
    """Write a table as CSV, with pandas' options of ``to_csv``, and its digest into ``SHA256SUMS`` beside it."""
    write_atomically(path, table.to_csv(**options))
    seal(Path(path))


def seal(path: Path) -> None:
    """Write the digest of a file, as it is now, into ``SHA256SUMS`` beside it."""
    digest = _digest(path)
    with alone_in(path.parent):
        sums = _sums(path.parent) | {path.name: digest}
        write_atomically(path.parent / SUMS, "".join(f"{sums[name]}  {name}\n" for name in sorted(sums)))


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise ResultError(f"{path}: cannot be read ({reason(error)})") from None


def _sums(folder: Path) -> dict[str, str]:
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines) if name}


def main(arguments: Sequence[str]) -> int:
    """Accept files as they are now, and return the exit code."""
    try:
        for path in map(Path, arguments):
            accept_table(path) if path.suffix == ".parquet" else seal(path)
    except AsyncFLError as error:
        print(f"digests: {error}", file=sys.stderr)
        return 2
    print(f"{len(arguments)} files accepted")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

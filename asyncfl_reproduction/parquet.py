"""Reading and writing of records as Parquet files in ``results/``, by one process at a time.

A paper's folder in a tier, ``results/<tier>/<paper>/``, has up to three files: ``runs.parquet`` and ``curves.parquet``
(:mod:`~asyncfl_reproduction.grid.record`) and ``searches.parquet`` (:mod:`~asyncfl_reproduction.tuning.outcomes`). Each
file holds the SHA-256 of its other bytes, and is not read if a byte has changed.
``asyncfl-lite results --csv FOLDER`` writes all of them as CSV.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from asyncfl_lite.base.errors import ConfigError, ResultError, needs, reason
from asyncfl_lite.base.files import DAMAGE, write_atomically

TEXTS = frozenset({
    "cell", "search", "point", "config_hash", "meaning", "torch", "numpy", "instructions", "training",
    "weights_sha256", "schedule_sha256",
})  # fmt: skip
"""Columns that hold text instead of numbers."""


DIGEST = b"SHA-256 of all other bytes: "
"""Text in a file's footer before the 64 hexadecimal digits of its digest."""
ACCEPT = "accept it as it is with python -m asyncfl_reproduction.digests"


def read_table(path: Path) -> pd.DataFrame:
    """Read a table, and check the file's digest, and that all columns except :data:`TEXTS` hold numbers.

    Raises:
        ResultError: if the file cannot be read, has another digest or none, or if a column does not hold numbers; the
            message names the file and the column.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ResultError(f"{path}: cannot be read ({reason(error)}); record it again") from None
    _, mark, rest = content.rpartition(DIGEST)
    if not mark:
        _parsed(path, content)  # says what is wrong with a file that is no such table
        raise ResultError(f"{path}: has no SHA-256; restore it, record it again, or {ACCEPT} {path}")
    if rest[:64] != _digest(content):
        raise ResultError(f"{path}: damaged: its content does not have its SHA-256; restore it, or record it again")
    return _parsed(path, content)


def _parsed(path: Path, content: bytes) -> pd.DataFrame:
    with needs("grid", "recorded results"):
        from pyarrow import ArrowException, BufferReader
        from pyarrow.parquet import ParquetFile
    try:
        with ParquetFile(BufferReader(content)) as file:
            table = file.read().to_pandas()
    except (ArrowException, MemoryError, *DAMAGE) as error:
        raise ResultError(f"{path}: cannot be read ({reason(error)}); record it again") from None
    for name in table.columns.difference(list(TEXTS)):
        if not pd.api.types.is_numeric_dtype(table[name]):
            raise ResultError(f"{path}: {name}: must be numbers, got {table[name].dtype}; record it again")
    return table


def _digest(content: bytes) -> bytes:
    """Return the SHA-256 of a file's content without the digits of its digest, in hexadecimal digits."""
    before, mark, rest = content.rpartition(DIGEST)
    return hashlib.sha256(before + mark + rest[64:]).hexdigest().encode()


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a table and its digest atomically; the same table always gives the same bytes.

    All columns except :data:`TEXTS` hold numbers or nothing.
    """
    with needs("grid", "recorded results"):
        import pyarrow
        from pyarrow import parquet
    typed = {name: pd.to_numeric(table[name]) if name not in TEXTS else table[name].astype("str") for name in table}
    typed = {name: column.astype(float) if column.isna().all() else column for name, column in typed.items()}
    content = pyarrow.Table.from_pandas(pd.DataFrame(typed), preserve_index=False).replace_schema_metadata(None)
    sink = io.BytesIO()
    with parquet.ParquetWriter(sink, content.schema, compression="zstd", compression_level=12) as writer:
        writer.write_table(content)
        writer.add_key_value_metadata({"digest": DIGEST.decode() + 64 * "0"})
    before, mark, rest = sink.getvalue().rpartition(DIGEST)
    sealed = before + mark + _digest(sink.getvalue()) + rest[64:]
    write_atomically(path, lambda file: file.write(sealed))


def accept_table(path: Path) -> None:
    """Write a table again with its digest, if it has none or that of another content."""
    with alone_in(path.parent):
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ResultError(f"{path}: cannot be read ({reason(error)})") from None
        write_table(path, _parsed(path, content))


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Create a folder if needed, and let only one process at a time read and rewrite its tables inside the block."""
    with needs("grid", "recorded results"):
        from filelock import FileLock
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        yield


def write_csv(results: Path, folder: Path) -> int:
    """Write every table of a folder of records as CSV into another folder, and return the number of tables."""
    paths = sorted(results.rglob("*.parquet"))
    if not paths:
        raise ConfigError(f"results: nothing is recorded in {results}")
    for path in paths:
        place = folder / path.relative_to(results).with_suffix(".csv")
        write_atomically(place, read_table(path).to_csv(index=False))
    return len(paths)

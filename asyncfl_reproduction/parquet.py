"""Reading and writing of records as Parquet files in ``results/``, by one process at a time.

A paper's folder in a tier, ``results/<tier>/<paper>/``, has up to three files: ``runs.parquet`` and ``curves.parquet``
(:mod:`~asyncfl_reproduction.grid.tidy`) and ``searches.parquet`` (:mod:`~asyncfl_reproduction.tuning.outcomes`).
``asyncfl-lite results --csv FOLDER`` writes all of them as CSV.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from asyncfl_lite.base.errors import ConfigError, ResultError, reason
from asyncfl_lite.base.files import write_atomically
from asyncfl_lite.base.libraries import needs

TEXTS = frozenset(
    {
        "cell",
        "search",
        "point",
        "config_hash",
        "meaning",
        "torch",
        "numpy",
        "instructions",
        "training",
        "weights_sha256",
        "schedule_sha256",
    }
)
"""Columns that hold text instead of numbers."""


def read_table(path: Path) -> pd.DataFrame:
    """Read a table, and check that all columns except :data:`TEXTS` hold numbers.

    Raises:
        ResultError: if it cannot be read, or a column does not hold numbers; the message names the file and the column.
    """
    with needs("grid", "recorded results"):
        from pyarrow.parquet import ParquetFile
    try:
        with ParquetFile(path) as file:
            table = file.read().to_pandas()
    except (OSError, ValueError) as error:
        raise ResultError(f"{path}: cannot be read ({reason(error)}); record it again") from None
    for name in table.columns.difference(list(TEXTS)):
        if not pd.api.types.is_numeric_dtype(table[name]):
            raise ResultError(f"{path}: {name}: must be numbers, got {table[name].dtype}; record it again")
    return table


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a table atomically; the same table always gives the same bytes.

    Args:
        path: ``….parquet``; its folder is created if needed.
        table: the table; its columns except :data:`TEXTS` hold numbers or nothing.
    """
    with needs("grid", "recorded results"):
        import pyarrow
        from pyarrow import parquet
    typed = {name: pd.to_numeric(table[name]) if name not in TEXTS else table[name].astype("str") for name in table}
    typed = {name: column.astype(float) if column.isna().all() else column for name, column in typed.items()}
    content = pyarrow.Table.from_pandas(pd.DataFrame(typed), preserve_index=False).replace_schema_metadata(None)
    write_atomically(path, lambda file: parquet.write_table(content, file, compression="zstd", compression_level=12))


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Create a folder if needed, and let only one process at a time read and rewrite its tables inside the block."""
    with needs("grid", "recorded results"):
        from filelock import FileLock
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        yield


def write_csv(results: Path, folder: Path) -> int:
    """Write every table of a folder of records as CSV into another folder, and return the number of tables.

    Raises:
        ConfigError: if there is none.
    """
    paths = sorted(results.rglob("*.parquet"))
    if not paths:
        raise ConfigError(f"results: nothing is recorded in {results}")
    for path in paths:
        place = folder / path.relative_to(results).with_suffix(".csv")
        write_atomically(place, read_table(path).to_csv(index=False))
    return len(paths)

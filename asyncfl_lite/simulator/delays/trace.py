"""The delay law that replays recorded durations."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from asyncfl_lite.base.errors import DataError
from asyncfl_lite.base.files import regular
from asyncfl_lite.simulator.delays.base import DELAYS, DelayLaw, TraceDelays


@DELAYS.register("trace")
class TraceLaw(DelayLaw):
    """Durations from a CSV file (client,seconds); each job draws one of its client's rows.

    Client numbers start at 0. All rows of a client are equally likely. Rows of clients that a run does
    not have, and other columns, are ignored.

    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from asyncfl_lite.simulator.delays import DELAYS
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "seconds.csv"
    >>> written = path.write_text("client,seconds\\n0,12.5\\n1,40.0\\n")
    >>> delays = DELAYS.get("trace")(path=path).prepare(np.array([10, 10]), rng := np.random.default_rng(0))
    >>> [delays.draw(client, rng) for client in (0, 1)]
    [12.5, 40.0]
    """

    unit = "s"

    path: Path
    """Path of the file, relative to the working folder."""

    def prepare(self, num_samples: np.ndarray, rng: np.random.Generator) -> TraceDelays:
        """Read the recorded durations from the file.

        Raises:
            DataError: if the file cannot be read, has a bad row (the message names its line), or lacks a client.
        """
        clients, seconds = read_trace(self.path, len(num_samples))
        rows = np.bincount(clients, minlength=len(num_samples))
        if not rows.all():
            raise DataError(f"{self.path}: no row for client {rows.argmin()} of {len(num_samples)}")
        by_client = np.argsort(clients, kind="stable")
        return TraceDelays(seconds[by_client], np.concatenate([[0], np.cumsum(rows)]))


def read_trace(path: Path, num_clients: int) -> tuple[np.ndarray, np.ndarray]:
    """Read the rows of clients 0 to ``num_clients - 1``, in the order of the file.

    Returns:
        (R,) int64 client numbers and (R,) float64 seconds.

    Raises:
        DataError: if the file cannot be read, or has a bad header or row; the message names its line.
    """
    clients, seconds = [], []
    try:
        with regular(path).open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file)
            if not {"client", "seconds"} <= set(rows.fieldnames or ()):
                raise DataError(f"{path}, line 1: the header must name the columns client,seconds")
            for row in rows:
                where = f"{path}, line {rows.line_num}"
                client = parse_number(row["client"], int, f"{where}: client must be a whole number")
                duration = parse_number(row["seconds"], float, f"{where}: seconds must be a number")
                if client < num_clients:
                    clients.append(client)
                    seconds.append(duration)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    return np.array(clients, dtype=np.int64), np.array(seconds, dtype=np.float64)


def parse_number(text: str | None, kind: Callable[[str], float], message: str) -> float:
    """Parse ``text`` as a finite number of at least 0, or raise a DataError that starts with ``message``."""
    try:
        number = kind(text or "")
    except ValueError:
        number = -1
    if not 0 <= number < math.inf:
        raise DataError(f"{message} of at least 0, got {text!r}")
    return number

"""The addresses on which processes listen."""

from __future__ import annotations

from collections.abc import Iterable

import psutil


def listening(pids: Iterable[int]) -> set[str]:
    """Addresses on which processes, and those that they started, wait for connections."""
    family = [one for pid in pids for one in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True))]
    found = [end for one in family for end in one.net_connections(kind="inet") if end.status == psutil.CONN_LISTEN]
    return {end.laddr.ip for end in found}

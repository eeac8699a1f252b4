"""Workers that run a grid's cells, as processes on this machine or on a Dask cluster.

A worker may be lost, for example because it was killed for its memory use, or because its machine is gone. Its cell is
then started again on another worker. On this machine such a cell runs alone, so that a cell that kills workers takes no
other cell with it. The number of starts is noted in the cell's folder; after :data:`RETRIES` restarts the cell has
failed.

Another grid may run cells of the same folder at the same time, here or elsewhere (such as an array of jobs on a
cluster). A cell that it has claimed (:mod:`asyncfl_lite.base.locks`) is left to it.

Dask is used through its own client. joblib's Dask backend (1.6) waits forever for a task whose workers died, and if
there is only one worker with one thread, it runs the tasks itself.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
from asyncio import CancelledError
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from asyncfl_lite.base.errors import ConfigError, ResultError, SimulationError, needs, reason
from asyncfl_lite.base.files import write_atomically
from asyncfl_lite.base.locks import CLAIM, Elsewhere, claimed, is_left_behind
from asyncfl_reproduction.grid.cells import Cell
from asyncfl_reproduction.grid.interrupts import end_with

if TYPE_CHECKING:
    from distributed import Client, Future

RETRIES = 2
"""Number of times a cell whose worker was lost is restarted."""
BEGUN = ".begun"
"""File in the folder of a running cell: the number of times it was started."""
GPU = "GPU"
"""Dask's resource that a worker with a GPU offers; cells whose device is not cpu then run on such workers alone."""
TLS_FILES = "DASK_DISTRIBUTED__COMM__TLS__" + " and …".join(("CA_FILE", "CLIENT__CERT", "CLIENT__KEY"))
FINISHED = Elsewhere("finished by another grid")
SCHEDULER_SECONDS = 30
"""Seconds to wait for a scheduler's reply, and for its first worker."""

Outcome = tuple[str, str | None]
"""A cell's name, and the error's last line if it failed, or :class:`.Elsewhere` if another grid has it."""
Work = Callable[[Cell, Path], Outcome]
"""Function that runs one cell, whose folder lies below the given one."""


def outcomes(
    work: Work, cells: Sequence[Cell], runs: Path, *, workers: int = 1, scheduler: str | None = None
) -> Iterator[Outcome]:
    """Run cells and yield the outcome of each as it ends; cells that other grids run come last.

    With one worker, the cells run in this process. With a scheduler, all its workers must share the folder ``runs``
    under the same path. ``work`` must be picklable by reference, such as a module's function.

    Raises:
        ConfigError: if the scheduler does not answer, or has no worker.
        SimulationError: if this machine's processes die repeatedly before they begin a cell, or the scheduler is gone.
    """
    grid = secrets.token_hex(8)
    for cell in cells:
        _tidy_up_after_others(cell.folder(runs), grid)
    job = partial(_attempt, work, runs=runs, grid=grid)
    if scheduler is None:
        return _in_rounds(lambda left: _on_this_machine(job, left, runs, workers, grid), cells)
    return _in_rounds(lambda left: _on_dask(job, left, runs, scheduler), cells)


def _in_rounds(run: Callable[[Sequence[Cell]], Iterator[Outcome]], cells: Sequence[Cell]) -> Iterator[Outcome]:
    """Run cells in rounds, and retry cells that other grids had claimed, because these may have ended."""
    left = {cell.name: cell for cell in cells}
    while left:
        others: dict[str, str] = {}
        for name, error in run(list(left.values())):
            if isinstance(error, Elsewhere) and error != FINISHED:
                others[name] = error
            else:
                yield name, error
        if len(others) == len(left):
            yield from others.items()
            return
        left = {name: left[name] for name in others}


def _attempt(work: Work, cell: Cell, runs: Path, grid: str) -> Outcome:
    """Claim and run a cell, unless it is complete, is claimed by another grid, or was started too often."""
    if cell.is_complete(runs):
        return cell.name, FINISHED
    with ExitStack() as claim:
        try:
            elsewhere = claim.enter_context(claimed(cell.folder(runs) / CLAIM, grid))
        except ResultError as trouble:  # becomes the cell's error, and the others go on
            return cell.name, f"{ResultError.__name__}: {trouble}"
        if elsewhere:
            return cell.name, elsewhere
        return (cell.name, FINISHED) if cell.is_complete(runs) else _begin(work, cell, runs)


def _begin(work: Work, cell: Cell, runs: Path) -> Outcome:
    """Run a cell that this process has claimed and count the start, unless it was started too often."""
    begun = _times_begun(cell, runs)
    _tidy(cell.folder(runs))
    if begun > RETRIES:
        return cell.name, f"its worker was lost {begun} times, killed or out of memory"
    try:
        write_atomically(cell.folder(runs) / BEGUN, str(begun + 1))
    except (OSError, ValueError) as trouble:
        return cell.name, f"{type(trouble).__name__}: {trouble}"
    try:
        return work(cell, runs)
    finally:
        _tidy(cell.folder(runs))


def _tidy_up_after_others(folder: Path, grid: str) -> None:
    """Delete the unfinished files of a killed grid in a cell's folder; files of a running grid stay."""
    with suppress(OSError, ResultError):  # the next process that writes there reports the error
        if (folder / CLAIM).exists() or any(_unfinished(folder)):
            with claimed(folder / CLAIM, grid) as elsewhere:
                if not elsewhere:
                    _tidy(folder)


def _tidy(folder: Path) -> None:
    with suppress(OSError):
        for path in _unfinished(folder):
            path.unlink(missing_ok=True)


def _unfinished(folder: Path) -> Iterator[Path]:
    yield from folder.glob(BEGUN)
    yield from folder.rglob(".*.part*")


def _times_begun(cell: Cell, runs: Path) -> int:
    try:
        return int((cell.folder(runs) / BEGUN).read_text())
    except (OSError, ValueError):
        return 0


def _times_lost(cell: Cell, runs: Path, grid: str) -> int:
    """Return how often a cell was started, if this grid lost the process that ran it, and 0 otherwise."""
    return _times_begun(cell, runs) if is_left_behind(cell.folder(runs) / CLAIM, grid) else 0


def _on_this_machine(
    job: Callable[[Cell], Outcome], cells: Sequence[Cell], runs: Path, workers: int, grid: str
) -> Iterator[Outcome]:
    """Run cells in processes on this machine, and restart cells whose process died."""
    with needs("grid", "several workers"):
        from joblib import Parallel, delayed

    left, in_vain = {cell.name: cell for cell in cells}, 0
    while left:
        begun = {cell.name: _times_lost(cell, runs, grid) for cell in left.values()}
        fresh = [cell for cell in left.values() if not begun[cell.name]]
        # cells that were running when a process died run one at a time, to find out which of them killed it
        size = {"n_jobs": workers} if fresh else {"n_jobs": 2, "pre_dispatch": 1}
        ends = {"initializer": end_with, "initargs": (os.getpid(),)}
        parallel = Parallel(batch_size=1, return_as="generator_unordered", **ends, **size)
        try:
            for name, error in parallel(delayed(job)(cell) for cell in fresh or list(left.values())):
                del left[name]
                yield name, error
        except BrokenProcessPool:
            if begun != {cell.name: _times_lost(cell, runs, grid) for cell in left.values()}:
                in_vain = 0
            elif (in_vain := in_vain + 1) > RETRIES:
                raise SimulationError(f"workers: the processes died {in_vain} times before they began a cell") from None


def _on_dask(job: Callable[[Cell], Outcome], cells: Sequence[Cell], runs: Path, scheduler: str) -> Iterator[Outcome]:
    with needs("dask", "backend 'dask'"):
        from distributed import KilledWorker, as_completed

    with connected(scheduler) as client:
        gpus = _have_gpus(client, cells)

        def start(cell: Cell) -> Future:
            return client.submit(job, cell, pure=False, resources={GPU: 1} if gpus and _wants_gpu(cell) else None)

        futures = {start(cell): cell for cell in cells}
        ended, again = as_completed(list(futures), loop=client.loop), Counter[str]()
        try:
            for future in ended:
                cell = futures.pop(future)
                if future.status == "finished":
                    yield future.result()
                    continue
                if future.cancelled():  # but not by this process
                    raise CancelledError
                trouble, name = future.exception(), cell.name
                lost = isinstance(trouble, KilledWorker) and max(again[name], _times_begun(cell, runs)) <= RETRIES
                if not lost:  # or its code is not on that machine
                    yield name, f"{type(trouble).__name__}: {' '.join(str(trouble).split())}"
                    continue
                again[name] += 1
                futures[future := start(cell)] = cell
                ended.add(future)
        except (OSError, CancelledError):
            raise SimulationError(
                f"scheduler: {scheduler} is gone, and its workers end with it; start a scheduler and workers again, "
                "and the same command continues"
            ) from None
        finally:
            with suppress(OSError, CancelledError):
                client.cancel(list(futures))


def _wants_gpu(cell: Cell) -> bool:
    return cell.config.device != "cpu"


def _have_gpus(client: Client, cells: Sequence[Cell]) -> bool:
    """Whether a worker offers a GPU; say so if none does and a cell would take one."""
    offered = (worker.get("resources", {}) for worker in client.scheduler_info(n_workers=-1)["workers"].values())
    gpus = any(resources.get(GPU) for resources in offered)
    if not gpus and any(map(_wants_gpu, cells)):
        print(
            f"grid: no worker offers a {GPU} (dask worker … --resources {GPU}=1), so any worker may take a cell with "
            "device auto, and one without CUDA computes it on its processor",
            file=sys.stderr,
        )
    return gpus


@contextmanager
def connected(scheduler: str) -> Iterator[Client]:
    """Connect to a Dask scheduler; raise ConfigError if it does not answer, or has no worker."""
    with needs("dask", "backend 'dask'"):
        from distributed import Client
    _check_answers(scheduler)
    _check_certificates(scheduler)
    for name in ("distributed", "distributed.client"):  # they print tracebacks where an error says it in one line
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(scheduler, timeout=SCHEDULER_SECONDS, set_as_default=False)
    except OSError as trouble:  # the library's own connection errors are subclasses
        why = f"what answers at {scheduler!r} is not a Dask scheduler of that kind ({reason(trouble)})"
        raise ConfigError(f"scheduler: {why}; a scheduler with TLS has an address such as tls://HOST:PORT") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=SCHEDULER_SECONDS)
        except TimeoutError:
            raise ConfigError(
                f"scheduler: {scheduler} has no worker after {SCHEDULER_SECONDS} s; start some first"
            ) from None
        yield client


def _check_answers(scheduler: str) -> None:
    """Raise an error at once if nothing answers at an address, because Dask's client would wait for a minute."""
    try:
        parts = urlsplit(scheduler)
        if parts.scheme not in ("tcp", "tls") or not parts.hostname or parts.port is None:
            raise ValueError
    except ValueError:
        raise ConfigError(f"scheduler: must be tcp://HOST:PORT, got {scheduler!r}") from None
    try:
        socket.create_connection((parts.hostname, parts.port), timeout=SCHEDULER_SECONDS).close()
    except OSError as trouble:
        raise ConfigError(f"scheduler: nothing answers at {scheduler!r} ({reason(trouble)})") from None


def _check_certificates(scheduler: str) -> None:
    with needs("dask", "backend 'dask'"):
        from distributed import Security

    if not scheduler.startswith("tls:"):
        return
    try:
        context = Security().get_connection_args("client").get("ssl_context")
    except OSError as trouble:
        raise ConfigError(f"scheduler: the files of {TLS_FILES} cannot be read ({reason(trouble)})") from None
    if context is None:
        raise ConfigError(f"scheduler: tls:// needs certificates, whose files are named by {TLS_FILES}")


def count_workers(scheduler: str) -> int:
    """Return how many cells a scheduler's workers run at a time, and warn if other machines may use them."""
    with connected(scheduler) as client:
        threads: dict[str, Any] = client.nthreads()
        if there := [one for one in (client.scheduler_info()["address"], *threads) if _is_open(one)]:
            print(f"scheduler: anyone who reaches {there[0]} can run code as you; see docs/cluster.md", file=sys.stderr)
        return sum(threads.values())


def _is_open(address: str) -> bool:
    host = urlsplit(address).hostname or ""
    return not (address.startswith("tls:") or host.startswith("127.") or host in ("localhost", "::1"))

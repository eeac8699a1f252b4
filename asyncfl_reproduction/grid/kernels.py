"""Jupyter kernels for grids, reports and tests; they print no warnings and can start from a warm process.

A grid runs one notebook per cell, and a small cell would spend most of its time importing torch and the plotting
libraries. Inside :func:`warm_kernels`, a process has therefore imported them and does nothing else. Each kernel is a
fork of this process, as fresh as a newly started kernel, and ready in a tenth of a second. Nothing is computed before
the fork, so no thread or random stream is shared. On systems without fork, kernels are started as usual.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from types import FrameType
from typing import IO, Any, ClassVar

import psutil

from asyncfl_lite.base.errors import needs
from asyncfl_reproduction.grid.interrupts import GRACE, ask_kernels, wait_for

with needs("grid", "a grid"):
    from jupyter_client.connect import KernelConnectionInfo
    from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

WARM = "asyncfl-lite-warm"
"""Name under which Jupyter knows the provisioner."""


def quiet_kernels() -> None:
    """Keep kernels of this process from printing warnings and from reading the user's profile.

    This does nothing if ``IPYTHONDIR`` is already set.
    """
    if "IPYTHONDIR" in os.environ:
        return
    folder = Path(tempfile.mkdtemp(prefix="asyncfl-lite-ipython-"))
    (folder / "profile_default").mkdir()
    (folder / "profile_default" / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 50\n")
    os.environ["IPYTHONDIR"] = str(folder)
    atexit.register(_remove, folder, os.getpid())


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def warm_kernels(modules: Sequence[str]) -> Iterator[None]:
    """Start kernels inside the block as forks of a process that has imported ``modules``."""
    factory = KernelProvisionerFactory.instance()
    before, WarmProvisioner.modules = factory.default_provisioner_name, tuple(modules)
    if hasattr(os, "fork"):
        group = KernelProvisionerFactory.GROUP_NAME
        factory.provisioners[WARM] = EntryPoint(WARM, f"{__name__}:{WarmProvisioner.__name__}", group)
        factory.default_provisioner_name = WARM
    try:
        yield
    finally:
        factory.default_provisioner_name = before


class Forked(psutil.Process):
    """A forked kernel, which is not a child of this process, in the form that Jupyter expects of a child."""

    stdin = stdout = stderr = None

    def poll(self) -> int | None:
        """Return None while the kernel runs, and 0 afterwards because its exit code is unknown."""
        return None if self.is_running() else 0

    def send_signal(self, sig: int) -> None:
        """Send a signal to the kernel, unless it has ended."""
        with suppress(psutil.NoSuchProcess):
            super().send_signal(sig)


class WarmProvisioner(LocalProvisioner):
    """Provisioner that starts a kernel as a fork of :class:`Preloaded`."""

    modules: ClassVar[tuple[str, ...]] = ()

    async def launch_kernel(self, cmd: list[str], **options: Any) -> KernelConnectionInfo:
        """Fork a kernel instead of running ``cmd``."""
        # papermill passes no folder, but changes this process's own, which a newly started kernel would inherit
        cwd, env = str(Path(options.get("cwd") or "").resolve()), {**options.get("env", os.environ)}
        self.pid = self.pgid = preloaded(os.getpid(), self.modules).fork(self.parent.connection_file, cwd, env)
        self.process = Forked(self.pid)
        return self.connection_info

    def get_shutdown_wait_time(self, recommended: float = 5.0) -> float:
        """Return the seconds that a kernel gets to end: half of them before it is asked, half to save its runs."""
        return 2 * GRACE


class Preloaded:
    """A process with imported modules, from which kernels are forked; it ends with the process that made it."""

    def __init__(self, modules: Sequence[str]) -> None:
        # matplotlib and torch read these when they are imported, which happens here before a kernel could set them.
        env = {**os.environ, "MPLBACKEND": "module://matplotlib_inline.backend_inline", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", __name__, *modules]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env, start_new_session=True
        )
        atexit.register(self.close)

    def fork(self, connection_file: str, cwd: str, env: dict[str, str]) -> int:
        """Start a kernel and return its process ID.

        Raises:
            RuntimeError: if the process has died.
        """
        try:
            print(json.dumps([connection_file, cwd, env]), file=self.process.stdin, flush=True)
            pid = self.process.stdout.readline()
        except OSError:
            pid = ""
        if not pid:
            preloaded.cache_clear()
            raise RuntimeError("the process that kernels are forked from has died")
        return int(pid)

    def close(self) -> None:
        """End the process, and its kernels with it."""
        with suppress(BrokenPipeError):  # it has already died
            self.process.stdin.close()
        self.process.terminate()


@cache
def preloaded(owner: int, modules: tuple[str, ...]) -> Preloaded:
    """Return the process from which kernels of process ``owner`` are forked."""
    return Preloaded(modules)


def serve(modules: Sequence[str], requests: IO[str], answers: IO[str]) -> None:
    """Import ``modules``; then fork a kernel for each line of ``requests`` and reply with its process ID."""
    import ipykernel.kernelapp

    for module in modules:
        importlib.import_module(module)
    sys.path[:] = [place for place in sys.path if place not in ("", str(Path.cwd()))]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that ended kernels leave no zombies
    signal.signal(signal.SIGTERM, _end_if_idle)
    for line in requests:
        connection_file, cwd, env = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become_kernel(connection_file, cwd, env)
            parent = f"--IPKernelApp.parent_handle={os.getppid()}"  # a kernel ends with its parent
            ipykernel.kernelapp.IPKernelApp.launch_instance(argv=["-f", connection_file, parent])
            os._exit(0)
        print(pid, file=answers, flush=True)
    wait_for(ask_kernels())


def _end_if_idle(number: int, frame: FrameType | None) -> None:
    """End this process if it has no kernels; one that has kernels ends with its owner instead."""
    if not psutil.Process().children():
        os._exit(0)


def _become_kernel(connection_file: str, cwd: str, env: dict[str, str]) -> None:
    """Give a forked process its own session, standard streams, folder and environment."""
    os.setsid()
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # standard output is the pipe for replies, which is not for the kernel
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv = ["ipykernel_launcher", "-f", connection_file]
    if pandas := sys.modules.get("pandas"):
        pandas.set_option("display.max_columns", 20)  # its value in a kernel, because pandas was imported outside one


if __name__ == "__main__":
    serve(sys.argv[1:], sys.stdin, sys.stdout)

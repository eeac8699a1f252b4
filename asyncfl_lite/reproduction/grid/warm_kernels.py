"""Kernels that start warm: forked from a process that has imported everything already.

A grid runs a notebook a cell, and most of a small cell's time would go into importing torch and the plotting
libraries. A grid's worker therefore keeps one process that has imported them and does nothing else; each kernel is a
fork of it, as fresh as one that was started, and ready in a tenth of a second. Nothing is computed before the fork, so
no thread or random stream is shared. Where processes cannot fork, kernels are started as usual.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

from jupyter_client.manager import AsyncKernelManager, KernelManager


def kernel_manager() -> type[KernelManager]:
    """Return the class of kernel managers for this system."""
    return WarmKernelManager if hasattr(os, "fork") else AsyncKernelManager


class ForkedKernel:
    """A kernel's process, which is no child of this one; offers what a kernel manager uses of ``Popen``."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        """Return None while it runs, 0 afterwards; how it ended is not known."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    def wait(self) -> int:
        """Return at once: callers have polled until it was gone."""
        return 0

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


class WarmKernelManager(AsyncKernelManager):
    """Starts the kernel of a notebook as a fork of this process's :class:`Preloaded`."""

    async def _async_launch_kernel(self, kernel_cmd: list[str], **options: Any) -> None:
        # papermill names no folder: it changes this process's own, which a kernel that is started would inherit
        cwd = str(Path(options.get("cwd") or "").resolve())
        process = _preloaded(os.getpid()).fork(self.connection_file, cwd, {**options.get("env", os.environ)})
        provisioner = self.provisioner
        provisioner.process, provisioner.pid, provisioner.pgid = process, process.pid, process.pid
        self._reconcile_connection_info(provisioner.connection_info)


class Preloaded:
    """The process that kernels are forked from; it ends with the one that made it."""

    def __init__(self) -> None:
        # What matplotlib and torch read when they are imported, which here is before a kernel could set it.
        env = {**os.environ, "MPLBACKEND": "module://matplotlib_inline.backend_inline", "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", __name__]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env, start_new_session=True
        )
        atexit.register(self.close)

    def fork(self, connection_file: str, cwd: str, env: dict[str, str]) -> ForkedKernel:
        """Start a kernel.

        Args:
            connection_file: where the kernel reads its ports and key.
            cwd: the kernel's folder, whatever this process has.
            env: all environment variables of the kernel.

        Raises:
            RuntimeError: when the process has died.
        """
        try:
            print(json.dumps([connection_file, cwd, env]), file=self.process.stdin, flush=True)
            pid = self.process.stdout.readline()
        except OSError:
            pid = ""
        if not pid:
            _preloaded.cache_clear()
            raise RuntimeError("the process that kernels are forked from has died")
        return ForkedKernel(int(pid))

    def close(self) -> None:
        """End the process, and with it its kernels."""
        with suppress(BrokenPipeError):  # it has died before
            self.process.stdin.close()
        self.process.terminate()


@cache
def _preloaded(owner: int) -> Preloaded:
    """Return the process that kernels of process ``owner`` are forked from."""
    return Preloaded()


def serve(requests: IO[str], answers: IO[str]) -> None:
    """Import everything, then fork a kernel for every line of ``requests`` and answer with its number."""
    import ipykernel.kernelapp
    import pandas  # noqa: F401 - for the kernels, as what follows
    import sklearn.datasets  # noqa: F401

    import asyncfl_lite.plots  # noqa: F401

    sys.path[:] = [place for place in sys.path if place not in ("", str(Path.cwd()))]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # ended kernels leave no zombies
    for line in requests:
        connection_file, cwd, env = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become_kernel(connection_file, cwd, env)
            parent = f"--IPKernelApp.parent_handle={os.getppid()}"  # a kernel ends when its parent has
            ipykernel.kernelapp.IPKernelApp.launch_instance(argv=["-f", connection_file, parent])
            os._exit(0)
        print(pid, file=answers, flush=True)


def _become_kernel(connection_file: str, cwd: str, env: dict[str, str]) -> None:
    """Give a forked process a session, standard streams, folder and environment of its own."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # the pipe of answers is not the kernel's
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.argv = ["ipykernel_launcher", "-f", connection_file]


if __name__ == "__main__":
    serve(sys.stdin, sys.stdout)

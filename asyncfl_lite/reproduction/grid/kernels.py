"""Jupyter kernels that a grid, a report or a test starts."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path


def quiet_kernels() -> None:
    """Keep kernels that this process starts from printing a warning each, and from the user's profile.

    Does nothing where ``IPYTHONDIR`` is set already.
    """
    if "IPYTHONDIR" in os.environ:
        return
    folder = Path(tempfile.mkdtemp(prefix="asyncfl-lite-ipython-"))
    (folder / "profile_default").mkdir()
    (folder / "profile_default" / "ipython_kernel_config.py").write_text("c.IPKernelApp.log_level = 50\n")
    os.environ["IPYTHONDIR"] = str(folder)
    atexit.register(_remove, folder, os.getpid())


def _remove(folder: Path, owner: int) -> None:
    """Remove a folder at the end of the process that made it, not of its forks."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)

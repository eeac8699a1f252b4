"""Revisions of the code, and versions of the libraries, on which a run's numbers depend."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import metadata

import torch

from asyncfl_lite.base.version import __version__
from asyncfl_lite.runs.config import GROUPS, Config, registries

LIBRARIES = ("numpy", "pandas", "scipy", "scikit-learn", "mlxtend", "torchvision", "av", "transformers", "tokenizers")
"""Libraries, besides torch, that may influence a run's numbers or data; some may not be installed."""
VARIABLES = (
    *("MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "NVIDIA_TF32_OVERRIDE"),
    *("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "ONEDNN_DEFAULT_FPMATH_MODE", "DNNL_DEFAULT_FPMATH_MODE"),
)
"""Environment variables that change how torch's own libraries round."""
MEANING = 2
"""Revision of the package's numbers as a whole, whatever the method or the task.

Raise it by one when the same configuration now gives other numbers on purpose, so that old results must not be compared
with new ones; for example, when the clock, local training, a metric or a number of the summary was corrected. If only
one method, task, model, delay law, partition, selection or initialisation is affected, raise its class's ``revision``
(1 if it has none) instead. Leave both unchanged for changes of speed, rounding or wording, and for new settings, which
the configuration's hash covers.
"""


def meaning(config: Config) -> dict[str, int]:
    """Return the revisions on which a run's numbers depend: the package's, and those of every class it uses."""
    named = {kind: registries()[kind].get(getattr(config, kind)) for kind in GROUPS.values()}
    return {"package": MEANING, **{kind: getattr(entry, "revision", 1) for kind, entry in named.items()}}


def revised(then: Mapping[str, int], now: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return the revisions that changed between two results of :func:`meaning`, as (then, now) by kind."""
    return {kind: (then.get(kind, 1), revision) for kind, revision in now.items() if then.get(kind, 1) != revision}


def versions() -> dict[str, str]:
    """Return the version of everything on which numbers depend: package, Python, CPU instructions, libraries.

    Torch's version includes its build. The rounding of its operations depends on the CPU instructions that it finds,
    and on the :data:`VARIABLES` that are set. A library that is not installed is left out.
    """
    machine = {"torch": str(torch.__version__), "instructions": torch.backends.cpu.get_cpu_capability()}
    machine |= {name: os.environ[name] for name in VARIABLES if name in os.environ}
    return {"asyncfl_lite": __version__, "python": platform.python_version(), **machine, **_libraries()}


def changed_versions(then: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return, as text, in which of their :func:`versions` numbers may differ; empty if in none.

    The versions of this package, whose revisions count instead, and of Python are not compared, and neither are those
    of libraries that only one of the two names. If one of the two is empty, nothing is known, and nothing is compared.

    >>> changed_versions({"torch": "2.14.0", "numpy": "2.4.0"}, {"torch": "2.15.0", "scipy": "1.17.0"})
    'torch 2.14.0 and 2.15.0'
    """
    optional = ("gpu", *VARIABLES)  # absent means none
    names = [name for name in {**then, **now} if then and now and (name in optional or (name in then and name in now))]
    pairs = {name: (then.get(name, "none"), now.get(name, "none")) for name in names}
    left_out = ("asyncfl_lite", "python")
    return ", ".join(f"{name} {a} and {b}" for name, (a, b) in pairs.items() if a != b and name not in left_out)


@cache
def _libraries() -> dict[str, str]:
    """Return the versions of all installed :data:`LIBRARIES`."""
    found = {}
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found

"""The package's file of defaults, written from recorded outcomes of searches only."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import yaml

from asyncfl_lite import runs
from asyncfl_lite.base.files import write_atomically
from asyncfl_lite.runs.defaults import DIGEST
from asyncfl_reproduction.tuning.outcomes import kept_in, of_studies
from asyncfl_reproduction.tuning.tuned import chosen

STUDIES = {"overlaid_mnist": "fedecho-overlaid_mnist", "overlaid_pairs100": "fedecho-overlaid_pairs100"}
"""Task -> the study whose choices its methods take by default."""
FILE = Path(runs.__file__).with_name("defaults.yaml")
HEAD = """\
# What searches chose, as defaults of the methods on these tasks, with the study whose outcomes it comes from.
# `asyncfl-lite tune --defaults` writes this file: a later search changes nothing here until somebody asks for it.
"""


def searched() -> dict[str, Any]:
    """Return, for each task, its ``study`` and the study's tuned choice for each method of this package."""
    found = {}
    for task, study in STUDIES.items():
        searches = (
            name.removeprefix(f"{study}/").rpartition("-")
            for name in kept_in(of_studies())
            if name.startswith(study + "/")
        )
        methods = sorted(method for method, _, column in searches if column == "tuned")
        own = [method for method in methods if "-" not in method]  # other names are controls, such as fedecho-noise
        found[task] = {"study": study, "methods": {method: chosen(study, method) for method in own}}
    return found


def write_defaults(path: Path = FILE) -> None:
    """Write the file of defaults from the outcomes that are recorded now."""
    values = yaml.safe_dump(searched(), sort_keys=False)
    write_atomically(path, f"{HEAD}{DIGEST.decode()}{hashlib.sha256(values.encode()).hexdigest()}\n{values}")

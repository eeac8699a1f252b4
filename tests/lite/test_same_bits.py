"""The bits of short runs, recorded: a change of shape must not change them.

Bits depend on the processor and on torch's build. The table has the digests of one such build, and under ``others`` those
of more; elsewhere the tests skip, and ``.ci/same_bits`` compares a change with what was before it. ``python
tests/lite/test_same_bits.py`` adds this machine's digests. After a change that is meant to change bits it writes the table
anew, without those of other builds, and the commit says why.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from asyncfl_lite import Config, run
from asyncfl_lite.algorithms import ALGORITHMS

OWN = Path(__file__).parents[1] / "same_bits.json"
TABLE = Path(os.environ.get("SAME_BITS", OWN))
SMALL = {"task": "digits", "clients": 10, "concurrency": 6, "eval_every": 3, "client_lr": 0.05, "rounds": 9, "seed": 4}
QUICK = {  # what makes a method's run short
    "fedecho": {"settings": {"distill_samples": 60}},
    "fedrevive": {"settings": {"synthesis_only_rounds": 1, "k_synth": 3, "k_kd": 5}},
    "dd_fedrevive": {"settings": {"k_kd": 5}},
}
METHODS = list(ALGORITHMS)
TROUBLE = {"dropout": 0.1, "crash": 0.2, "partial": 0.2, "duplicate": 0.1, "damage": 0.1, "time_out": 40.0}
RUNS = {
    **{name: {"algorithm": name, **QUICK.get(name, {})} for name in METHODS},
    "adamw": {"algorithm": "fedac", "client_optimizer": "adamw", "client_lr": 0.002},
    "batch norm": {"model": "cnn", "model_settings": {"norm": "batch"}},
    "oort": {"algorithm": "fedavg", "selection": "oort"},
    "words": {"task": "modmath", "rounds": 2, "concurrency": 2, "buffer_size": 1},
    "trouble": {"faults": TROUBLE, "rounds": 20},
    "coming and going": {"faults": {"available": 30.0, "away": 20.0, "time_out": 40.0}, "rounds": 12},
    "coming and going in rounds": {
        "algorithm": "fedavg",
        "faults": {"available": 30.0, "away": 20.0, "time_out": 40.0},
        "rounds": 4,
    },
}


def build() -> str:
    """The processor and the libraries that bits depend on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    name = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())
    capability = torch.backends.cpu.get_cpu_capability()
    return f"{name}, {capability}, torch {torch.__version__}, numpy {np.__version__}, pandas {pd.__version__}"


def digest(result) -> dict[str, str]:
    """Digests of a result's weights, and of its curve and its updates to the last digit.

    The column ``faults`` had the name ``trouble`` when the digests were recorded.
    """
    tables = [
        getattr(result, name).rename(columns={"faults": "trouble"}).to_csv(index=False, float_format="%.17g").encode()
        for name in ("curve", "updates", "in_flight")
    ]
    weights = result.summary["weights_sha256"][:16]
    return {"weights": weights, "tables": hashlib.sha256(b"".join(tables)).hexdigest()[:16]}


def config_of(name: str) -> Config:
    return Config(**{**SMALL, **RUNS[name]})


def one(name: str) -> dict[str, str]:
    return digest(run(config_of(name)))


def by_build(table: dict) -> dict[str, dict[str, dict[str, str]]]:
    """The digests of a table, by build and by run."""
    return {table["build"]: table["runs"], **table.get("others", {})}


def with_runs(table: dict, build: str, runs: dict[str, dict[str, str]]) -> dict:
    """A table with the digests of a build; where they differ from those it had, the code has changed: others go."""
    known = by_build(table)
    if build in known and known[build] != runs:
        return {"build": build, "runs": runs}
    more = {name: digests for name, digests in (known | {build: runs}).items() if name != table["build"]}
    return {**table, "others": more} if more else table


TABLES = json.loads(TABLE.read_text())
RECORDED = by_build(TABLES).get(build(), {})
LONG = ("words", "batch norm")
"""Runs that take seconds."""


@pytest.mark.skipif(not RECORDED, reason=f"recorded on {', '.join(by_build(TABLES))}; .ci/same_bits compares here")
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in RUNS])
def test_a_run_has_the_bits_that_were_recorded(name):
    if TABLE != OWN and name not in RECORDED:
        pytest.skip("new since then")
    assert one(name) == RECORDED[name]


def test_a_table_keeps_other_builds_until_bits_change():
    old, new = {"a": {"weights": "1"}}, {"a": {"weights": "2"}}
    two = {"build": "here", "runs": old, "others": {"there": old}}
    assert with_runs({"build": "here", "runs": old}, "there", old) == with_runs(two, "here", old) == two
    assert all(with_runs(two, where, new) == {"build": where, "runs": new} for where in ("here", "there"))
    assert all(set(runs) == set(RUNS) for runs in by_build(json.loads(OWN.read_text())).values())


if __name__ == "__main__":
    torch.set_num_threads(1)
    table = with_runs(json.loads(OWN.read_text()), build(), {name: one(name) for name in RUNS})
    OWN.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n")

"""Runs that are really killed, a dozen times each, end as if nothing had happened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from asyncfl_lite import Config, load_result, run
from asyncfl_lite.runs.store import TABLES

KILLS = 12
SCRIPT = Path(__file__).parents[1] / "killed.py"
COMMON = {"clients": 20, "concurrency": 10, "eval_every": 20, "checkpoint_every": 1, "delay": "fedecho_large"}
RUNS = {
    "fedecho": {"buffer_size": 3, "rounds": 60, "settings": {"distill_samples": 100}},
    "fedrevive": {
        "rounds": 120,
        "settings": {"freeze_rounds": 10, "synthesis_only_rounds": 10, "num_teachers": 3, "k_kd": 2, "k_synth": 2},
    },
    "fedadt": {"rounds": 250},
}

pytestmark = [pytest.mark.long, pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")]


@pytest.mark.parametrize("algorithm", RUNS)
def test_a_dozen_kills_change_nothing(algorithm, tmp_path):
    config = Config(**COMMON, algorithm=algorithm, **RUNS[algorithm])
    (tmp_path / "configuration.json").write_text(json.dumps(config.as_dict()))
    arguments = [str(tmp_path / "configuration.json"), str(tmp_path / "run"), str(KILLS), "1"]
    done = subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    print(algorithm, told)
    assert told["killed"] == KILLS and told["cut_off"] == told["unnamed"] == KILLS // 4
    survived, whole = load_result(tmp_path / "run"), run(config, checkpoint=tmp_path / "alone.pt")
    assert survived.summary == whole.summary  # with the digest of the final weights
    whole.save(tmp_path / "whole")
    for table in TABLES:
        pd.testing.assert_frame_equal(
            getattr(survived, table), getattr(load_result(tmp_path / "whole"), table), check_exact=True
        )
    left = {"result.json", "weights.safetensors", *(f"{name}.csv" for name in TABLES)}
    assert {path.name for path in (tmp_path / "run").iterdir()} == left

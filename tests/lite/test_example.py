"""The examples: async_in_one_file.py keeps our clock without the package, and the bridges lead to other libraries."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from asyncfl_lite import Config, run, schedule
from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.testing import check_algorithm

EXAMPLE = Path(__file__).parents[2] / "examples/async_in_one_file.py"


@pytest.fixture(scope="module")
def printed() -> str:
    """What it prints in a process of its own, which does not see this package's folder."""
    done = subprocess.run([sys.executable, "-I", str(EXAMPLE)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_one_short_file_that_needs_numpy_alone():
    tree = ast.parse(EXAMPLE.read_text())
    imported = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert [ast.unparse(node) for node in imported] == ["import heapq", "import numpy as np"]
    assert len(EXAMPLE.read_text().splitlines()) <= 70


def test_its_clock_is_the_package_s(printed):
    """The same clients on the package's clock report at the same minutes, as stale."""
    arrivals = re.findall(r"^minute +([\d.]+): client (\d) sends an update with staleness (\d+)$", printed, re.M)
    config = Config(
        **{"clients": 10, "concurrency": 10, "buffer_size": 3, "rounds": 20, "alpha": 100.0},
        **{"selection": "same_client", "scheduling": "after_agg"},
        **{"delay": "per_client", "delay_settings": {"durations": tuple(np.geomspace(1, 9.5, 10))}},
    )
    ours = schedule(config).updates
    assert len(arrivals) == 60
    assert arrivals == [(f"{row.arrived_at:.2f}", str(row.client), str(row.staleness)) for row in ours.itertuples()]


def test_accuracy_rises_when_the_slowest_clients_arrive(printed):
    shares = [int(share) for share in re.findall(r"^ +version \d+ has a test accuracy of (\d+)%$", printed, re.M)]
    assert len(shares) == 20
    assert shares == pytest.approx(
        [44, 44, 52, 55, 64, 64, 69, 69, 75, 74, 82, 87, 85, 84, 87, 86, 87, 86, 90, 89], abs=1
    )
    first = {client: printed.index(f"client {client} sends") for client in (8, 9)}
    for client, before in first.items():
        shown = [int(share) for share in re.findall(r"of (\d+)%", printed[:before])]
        assert shares[len(shown)] - shown[-1] >= 4, f"client {client}"
    assert printed.endswith("needs 9.5 minutes for each version.\n")


BRIDGES = {
    ("uplinks", ""): ("asyncfl_lite", "", "256 hidden units: .* versions in half a minute"),
    ("flower_datasets", ""): ("flwr_datasets", "", r"Result\(fedbuff on digits of two classes, .*at version 30"),
    ("hf_classifier", ""): ("transformers", "runs/reviews/config.json", r"accuracy (1\.0|0\.9)\d* at version 30"),
    ("trackers", "mlflow"): ("mlflow", "runs/mlflow.db", "at version 20"),
    ("trackers", "wandb"): ("wandb", "runs/wandb/**/run-*.wandb", "at version 20"),
    ("trackers", "tensorboard"): ("tensorboard", "runs/*/events*", "at version 20"),
}


@pytest.mark.parametrize(("example", "argument"), BRIDGES)
def test_a_bridge_leads_over(example, argument, tmp_path, monkeypatch, capsys):
    library, written, said = BRIDGES[example, argument]
    pytest.importorskip(library, reason=f"{library}, an optional library, is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [example, argument])
    runpy.run_path(str(EXAMPLE.with_name(f"{example}.py")), run_name="__main__")
    assert re.search(said, capsys.readouterr().out)
    assert any(tmp_path.glob(written)) if written else True


def test_a_strategy_of_flower_is_a_server(monkeypatch):
    """It passes the checks of a method, and Flower's FedAvg does what FedBuff does with weights by samples."""
    strategies = pytest.importorskip("flwr.server.strategy", reason="flwr, an optional library, is not installed")
    monkeypatch.setattr(ALGORITHMS, "_entries", dict(ALGORITHMS._entries))  # in no other test
    server = runpy.run_path(str(EXAMPLE.with_name("flower_strategy.py")))["Flower"]
    check_algorithm(server)
    monkeypatch.setattr(server, "strategy", lambda self, initial: strategies.FedAvg())
    config = Config(task="digits", algorithm="flower", rounds=4)
    ours = run(config.replace(algorithm="fedbuff", settings={"buffer_weight": "samples"}, client_lr=config.client_lr))
    torch.testing.assert_close(run(config).x, ours.x, rtol=0, atol=1e-6)

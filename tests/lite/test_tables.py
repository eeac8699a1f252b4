"""Several results in one table."""

from __future__ import annotations

import numpy as np
import pytest

from asyncfl_lite import Config, Task, results_table, run, run_many

SMALL = {"clients": 6, "concurrency": 3, "buffer_size": 2, "rounds": 2, "partition": "iid"}


@pytest.fixture(scope="module")
def results():
    configs = [
        Config(**SMALL, algorithm="fedecho", settings={"distill_samples": 40, "clip": clip}) for clip in (1.0, None)
    ]
    return run_many([*configs, Config(**SMALL, seed=3)])


def test_a_row_says_what_was_run_and_how_it_ended(results):
    table = results_table(results)
    assert len(table) == 3 and list(table.columns[:3]) == ["algorithm", "task", "seed"]
    assert table["algorithm"].tolist() == ["fedecho", "fedecho", "fedbuff"] and table["seed"].tolist() == [0, 0, 3]
    assert table["settings.clip"].iloc[0] == 1.0 and table["settings.clip"].isna().tolist() == [False, True, True]
    assert not {"clients", "delay", "weights_sha256"} & set(table.columns)  # the same in all; no number
    assert table["final_accuracy"].tolist() == [one.summary["final_accuracy"] for one in results]
    assert table.groupby("algorithm")["versions"].max().to_dict() == {"fedbuff": 2, "fedecho": 2}


def test_own_data_and_a_reason_to_stop_have_their_places(results):
    x, y = np.random.default_rng(0).standard_normal((40, 4)).astype(np.float32), np.arange(40) % 2
    own = run(Config(**SMALL, model="mlp"), task=Task.from_tensors(x, y, x, y, name="mine"))
    own.summary["stopped"] = "enough"
    table = results_table(iter([own, results[2]]))
    assert table["task"].tolist() == ["mine", "digits"] and table["stopped"].iloc[0] == "enough"
    assert len(results_table([])) == 0

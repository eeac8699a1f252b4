"""The generator gallery: snapshots are what the run made up, and watching changes nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from asyncfl_course.explore import Snapshot, gallery_figure, watch_generator
from asyncfl_lite import Config, Run
from asyncfl_lite.algorithms import FedRevive
from asyncfl_lite.base.errors import ConfigError

SWITCHES = {"freeze_rounds": 3, "synthesis_only_rounds": 6, "k_synth": 2}
SMALL = {
    "clients": 8, "concurrency": 4, "rounds": 14, "eval_every": 7, "alpha": 1.0, "seed": 3,
    "settings": {**SWITCHES, "nz": 8, "ngf": 2, "k_kd": 2},
}  # fmt: skip


def small_run(**more) -> Run:
    return Run(Config(task="digits", **{"algorithm": "fedrevive", **SMALL, **more}))


@pytest.fixture(scope="module", autouse=True)
def twelve_at_every_fourth(quick_syntheses):
    quick_syntheses.setattr(FedRevive, "t_gen", 4)
    quick_syntheses.setattr(FedRevive, "synth_batch_size", 12)


@pytest.fixture(scope="module")
def watched():
    run = small_run()
    snapshots = watch_generator(run, every=2)
    return run, snapshots, run.finish()


def test_snapshots_are_the_newest_of_the_pool(watched):
    run, snapshots, _ = watched
    assert [one.version for one in snapshots] == [6, 8, 10, 12, 14]  # batches were made at versions 4, 8 and 12
    assert [one.pool for one in snapshots] == [12, 12, 24, 24, 36]
    assert torch.equal(snapshots[0].images, snapshots[1].images)
    assert torch.equal(snapshots[-1].images, run.algorithm.pool.inputs[-12:])
    assert torch.equal(snapshots[-1].labels, run.algorithm.pool.labels[-12:])
    assert not torch.equal(snapshots[1].images, snapshots[2].images)


def test_answers_are_those_of_the_models(watched):
    run, snapshots, result = watched
    last, server = snapshots[-1], run.algorithm
    assert torch.equal(last.student, run.model.outputs(server.x, last.images).argmax(-1))
    votes = sum(run.model.outputs(teacher.x, last.images).softmax(-1) for teacher in server.teachers)
    assert torch.equal(last.teachers, votes.argmax(-1))
    assert last.accuracy == result.summary["final_accuracy"]
    assert last.share("teachers") == np.mean((last.teachers == last.labels).numpy())


def test_watching_changes_nothing(watched):
    assert small_run().finish().summary["weights_sha256"] == watched[2].summary["weights_sha256"]


def by_hand(version: int) -> Snapshot:
    """Four images of classes 2, 0, 2, 2, of which the global model names the first two as asked."""
    images = torch.arange(4.0)[:, None, None, None].expand(4, 1, 3, 5)
    said, asked = torch.tensor([2, 0, 1, 1]), torch.tensor([2, 0, 2, 2])
    return Snapshot(version, images, asked, asked, said, 0.25, 4)


def test_the_latest_snapshot_up_to_a_version():
    snapshots = [by_hand(10), by_hand(20)]
    assert gallery_figure(snapshots, 19).axes[0].get_title("left") == "version 10: the newest of 4 samples"
    assert gallery_figure(snapshots, 20).axes[1].lines[-1].get_xdata()[0] == 20
    with pytest.raises(ConfigError, match="version: no snapshot up to version 9; the first is of version 10"):
        gallery_figure(snapshots, 9)
    with pytest.raises(ConfigError, match="version: no snapshot up to version 9; there is none"):
        gallery_figure([], 9)

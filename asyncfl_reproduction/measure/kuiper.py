"""KUIPER's numbers that need no training: the boards' times and the virtual times of schedules."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from asyncfl_lite.runs.assembly import schedule
from asyncfl_lite.runs.config import Config
from asyncfl_lite.simulator.delays import DELAYS
from asyncfl_lite.simulator.jobs import Schedule

BOARDS = {"Nano": "Jetson Nano", "TX2": "Jetson TX2", "NX": "Jetson Xavier NX", "AGX": "Jetson AGX Xavier"}
"""Board in the delay laws -> board in the paper's tables, slowest first."""
LAWS = {"HMDB51": "kuiper_hmdb51", "UCF101": "kuiper_ucf101"}
"""Data set -> delay law."""
JOBS = 4 * round(80 / 3)
"""Number of jobs of 4 boards in 80 epochs of training, 3 epochs each."""
VIDEOS = {"HMDB51": (3570, 1530), "UCF101": (9537, 3783)}
"""Data set -> number of training and test videos in the first of its authors' splits."""
HMDB51_CLIPS = 8062
"""Number of clips of eight frames that the paper uses for training, over all clients (§5)."""
PASSES = {"all": 2.97, "last": 1.0}
"""Operations of a training step in forward passes, by the layers that are trained: ResNet-18 on 8 frames of 112×112."""


def passes_a_clip(
    dataset: str,
    epoch: Mapping[str, float],
    testing: Mapping[str, float],
    clients: int = 4,
    clips_a_video: float = 1.0,
) -> dict[str, float]:
    """Return, by board, the time to train on one clip divided by the time to test on one clip.

    ``epoch`` and ``testing`` are seconds by board: of an epoch over one client's clips, and of a test on the whole test
    set. The sizes in Table 1's caption are quarters of the data sets, so four clients share the training videos.
    ``clips_a_video`` is the number of clips per training video, divided by that per test video.
    """
    train, test = VIDEOS[dataset]
    clips = train * clips_a_video / clients
    return {board: (seconds / clips) / (testing[board] / test) for board, seconds in epoch.items()}


def epoch_seconds(dataset: str) -> dict[str, float]:
    """Return the seconds per epoch of each board under the data set's delay law."""
    return DELAYS.get(LAWS[dataset]).epoch_seconds


def test_set_seconds(dataset: str) -> dict[str, float]:
    """Return each board's seconds for the whole test set, under the data set's delay law."""
    return DELAYS.get(LAWS[dataset]).test_seconds


@lru_cache(maxsize=4)
def seconds_of_80_epochs(dataset: str, algorithm: str) -> float:
    """Return the virtual time of 80 epochs on 4 boards, in seconds, for synchronous rounds or bursts of 2."""
    versions = {"buffer_size": 2, "rounds": JOBS // 2} if algorithm == "kuiper" else {"rounds": JOBS // 4}
    base = {"task": "digits", "delay": LAWS[dataset], "partition": "iid", "clients": 4, "concurrency": 4}
    return float(schedule(Config(**base, algorithm=algorithm, **versions)).updates["arrived_at"].max())


def five_clients() -> Schedule:
    """Simulate KUIPER's schedule for five clients on the paper's boards: six bursts of three updates."""
    base = {"task": "digits", "delay": LAWS["HMDB51"], "partition": "iid"}
    return schedule(Config(**base, algorithm="kuiper", clients=5, concurrency=5, buffer_size=3, rounds=6))

"""The generator gallery: images that FedRevive's generator synthesised during a run (FedRevive §2.2, steps 2-3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from asyncfl_course.explore.controls import Explorer, played
from asyncfl_lite.algorithms.fedrevive import FedRevive
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.plots import ACCENT, NEUTRAL, colour, use_style
from asyncfl_lite.runs.run import Run
from asyncfl_lite.simulator.jobs import Arrival
from asyncfl_lite.simulator.simulation import Simulation

RIGHT_COLOUR = "#0f766e"
"""Frame colour of images that are classified as requested."""


class Snapshot(NamedTuple):
    """The newest synthetic batch at one version of a run, with the models' classifications of it.

    Attributes:
        version: the server's version.
        images: ``(B, channels, height, width)`` the batch that joined the pool last.
        labels: ``(B,)`` int64 the requested classes.
        teachers: ``(B,)`` int64 the classes that the buffered client models name, by the mean of their probabilities.
        student: ``(B,)`` int64 the classes that the global model names.
        accuracy: the global model's accuracy on the test set.
        pool: number of samples in the pool.
    """

    version: int
    images: Tensor
    labels: Tensor
    teachers: Tensor
    student: Tensor
    accuracy: float
    pool: int

    def share(self, judge: str) -> float:
        """Return the share of the batch that ``judge`` (``teachers`` or ``student``) classifies as requested."""
        return float((getattr(self, judge) == self.labels).double().mean())


def watch_generator(run: Run, every: int = 10) -> list[Snapshot]:
    """Return a list to which a run of FedRevive appends a snapshot every ``every`` versions.

    Nothing is drawn from the run's random streams, so the run is the same with and without the snapshots.

    Args:
        run: a run of FedRevive on images that has not begun.
        every: number of versions between two snapshots; there is no snapshot before the first synthetic batch.

    Raises:
        ConfigError: for another method, or inputs that are not images.
    """
    server = run.algorithm
    if not isinstance(server, FedRevive):
        raise ConfigError(f"algorithm: only fedrevive makes up samples, got {run.config.algorithm!r}")
    if server.spec.vocabulary is not None or len(server.spec.shape) != 3:
        raise ConfigError(f"task: only made-up images can be shown, got inputs of shape {server.spec.shape}")
    kept: list[Snapshot] = []

    def look(simulation: Simulation, arrival: Arrival) -> None:
        again = kept and kept[-1].version == arrival.version  # a refused update makes no version
        if arrival.version % every == 0 and len(server.pool) and not again:
            kept.append(_snapshot(run, arrival.version))

    run.simulation.observers.append(look)
    return kept


def _snapshot(run: Run, version: int) -> Snapshot:
    server, model = run.algorithm, run.model
    size = server.synth_batch_size
    images, labels = server.pool.inputs[-size:].clone(), server.pool.labels[-size:].clone()
    answers = [model.outputs(teacher.x, images, teacher.buffers).softmax(-1) for teacher in server.teachers]
    student = model.outputs(server.x, images, server.buffers)
    named = torch.stack(answers).mean(0).argmax(-1).cpu(), student.argmax(-1).cpu()
    return Snapshot(version, images.cpu(), labels, *named, run.evaluate()["accuracy"], len(server.pool))


def gallery_figure(snapshots: Sequence[Snapshot], version: int, rows: int = 5) -> Figure:
    """Draw the images of the latest snapshot up to a version, by requested class, and the scores of all snapshots.

    A frame is green if the global model names the requested class, and orange otherwise.

    Args:
        snapshots: the list from :func:`watch_generator`, after the run.
        version: the server's version.
        rows: largest number of images per class.

    Raises:
        ConfigError: if there is no snapshot up to that version.
    """
    past = [snapshot for snapshot in snapshots if snapshot.version <= version]
    if not past:
        first = f"the first is of version {snapshots[0].version}" if snapshots else "there is none"
        raise ConfigError(f"version: no snapshot up to version {version}; {first}")
    now = past[-1]
    use_style()
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.6), width_ratios=(6, 5), layout="constrained")
    ends = [end for snapshot in snapshots for end in (snapshot.images.min(), snapshot.images.max())]
    _draw_images(now, rows, (float(min(ends)), float(max(ends))), left)
    left.set_title(f"version {now.version}: the newest of {now.pool:,} samples")
    right.set_title(f"as asked: {now.share('teachers'):.0%} say teachers,\n{now.share('student'):.0%} the global model")
    _draw_shares(snapshots, now, right)
    plt.close(figure)  # a notebook shows what the call returns, once
    return figure


def _draw_images(now: Snapshot, rows: int, span: tuple[float, float], axes: Axes) -> None:
    """Draw framed images in one column per class, with colours scaled to the limits in ``span``."""
    low, high = span
    pixels = ((now.images - low) / max(high - low, 1e-12)).movedim(1, -1).numpy()
    classes = sorted(set(now.labels.tolist()))
    for column, label in enumerate(classes):
        for row, place in enumerate(np.flatnonzero(now.labels.numpy() == label)[:rows]):
            image = pixels[place] if pixels.shape[-1] == 3 else pixels[place, ..., 0]
            box = (column + 0.08, column + 0.92, row + 0.92, row + 0.08)
            axes.imshow(image, cmap="gray_r", vmin=0, vmax=1, extent=box, interpolation="nearest")
            frame = RIGHT_COLOUR if now.student[place] == label else ACCENT
            axes.add_patch(Rectangle((box[0], box[3]), 0.84, 0.84, fill=False, edgecolor=frame, linewidth=2))
    axes.set(xlim=(0, len(classes)), ylim=(rows, 0), yticks=[], xlabel="class asked for")
    axes.set_xticks(np.arange(len(classes)) + 0.5, classes)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    axes.grid(False)


def _draw_shares(snapshots: Sequence[Snapshot], now: Snapshot, axes: Axes) -> None:
    versions = [snapshot.version for snapshot in snapshots]
    own = colour("fedrevive")
    axes.plot(versions, [one.share("teachers") for one in snapshots], color=NEUTRAL, label="teachers name as asked")
    axes.plot(versions, [one.share("student") for one in snapshots], color=own, label="global model names as asked")
    axes.plot(versions, [one.accuracy for one in snapshots], color="black", linestyle="--", label="test accuracy")
    axes.axvline(now.version, color=ACCENT, linewidth=1)
    axes.set(xlabel="server version", ylabel="share", ylim=(0, 1.03))
    axes.legend(loc="lower center", fontsize=9)


def explore_gallery(snapshots: Sequence[Snapshot]) -> Explorer:
    """Return :func:`gallery_figure` with a slider over snapshots and a play button.

    Args:
        snapshots: the list from :func:`watch_generator`, after the run; it holds at least one snapshot.
    """
    versions = [one.version for one in snapshots]
    return played("version", versions, len(versions) - 1, lambda place: gallery_figure(snapshots, versions[place]))

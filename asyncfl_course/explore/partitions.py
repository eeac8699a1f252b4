"""Explorer of partitions: each client's samples by class under a partition law."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets
import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from asyncfl_course.explore.controls import Explorer
from asyncfl_lite.base.streams import stream
from asyncfl_lite.plots import NEUTRAL, use_style
from asyncfl_lite.tasks import Task
from asyncfl_lite.tasks.partitions import PARTITIONS, label_counts, total_variation

ALPHAS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
"""Steps of the slider for Dirichlet's α."""


def partition_figure(
    task: Task, law: str = "dirichlet_class", *, clients: int = 20, seed: int = 0, **settings: Any
) -> Figure:
    """Draw the number of samples of each class that each client holds under a partition law.

    Samples are dealt out as in a run with this seed whose method keeps none of them on the server. The title gives the
    law's settings, and the mean total variation distance between a client's label shares and those of all samples
    (:func:`~asyncfl_lite.tasks.partitions.total_variation`).

    Args:
        task: the task whose training samples are dealt out, by kind if the task has kinds, otherwise by label.
        law: name of the partition.
        clients: number of clients.
        seed: the run's seed.
        settings: the law's own settings, such as ``alpha`` or ``bias``.

    Raises:
        ConfigError: if there is no such law or setting, or the samples cannot be split in this way.
    """
    partition = PARTITIONS.get(law)(**settings)
    labels = task.samples[1].cpu().numpy() if task.kinds is None else task.kinds
    parts = partition.split(labels, clients, stream(seed, "partition"), owners=task.owners)
    counts = label_counts(labels, parts, int(labels.max()) + 1)
    given = ", ".join(f"{name} {value}" for name, value in partition if value is not None)
    return _label_map(counts, f"{law}{': ' if given else ''}{given}; {clients} clients, seed {seed}")


def _label_map(counts: np.ndarray, title: str) -> Figure:
    use_style()
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(8.5, 4.8), height_ratios=(1, 3), sharex=True, layout="constrained"
    )
    sizes = counts.sum(axis=1)
    above.bar(range(len(sizes)), sizes, width=0.9, color=NEUTRAL, linewidth=0)
    above.set(ylabel="samples")
    above.grid(False, axis="x")
    empty = int((sizes == 0).sum())
    low, high = int(sizes.min()), int(sizes.max())
    spread = f"{low:,}{f' to {high:,}' if low < high else ''} samples per client, {empty or 'none'} empty"
    above.set_title(f"{title}\ntotal variation {total_variation(counts):.2f}; {spread}")
    palette = sns.color_palette("crest", as_cmap=True)
    held = np.ma.masked_equal(counts.T, 0)  # a client that holds none of a class stays white
    drawn = below.imshow(held, aspect="auto", cmap=palette, vmin=1, vmax=max(2, counts.max()), interpolation="nearest")
    figure.colorbar(drawn, ax=[above, below], label="samples of the class")
    below.xaxis.set_major_locator(MaxNLocator(integer=True))
    below.yaxis.set_major_locator(MaxNLocator(integer=True))
    below.set(xlabel="client", ylabel="class")
    below.grid(False)
    plt.close(figure)  # a notebook shows what the call returns, once
    return figure


def explore_partitions(task: Task) -> Explorer:
    """Return :func:`partition_figure` with controls for law, α or bias, clients and seed.

    A control that the chosen law does not use is greyed out. Partitions by owner are offered where the task has owners.
    """
    laws = [name for name in PARTITIONS if task.owners is not None or not PARTITIONS.get(name).needs_owners]
    law = widgets.Dropdown(options=laws, value="dirichlet_class", description="law")
    alpha = widgets.SelectionSlider(options=ALPHAS, value=0.1, description="α", continuous_update=False)
    bias = widgets.FloatSlider(0.5, min=0, max=1, step=0.05, description="bias", continuous_update=False)
    clients = widgets.IntSlider(20, min=2, max=100, description="clients", continuous_update=False)
    seed = widgets.IntSlider(0, min=0, max=9, description="seed", continuous_update=False)

    def draw() -> Figure:
        fields = PARTITIONS.get(law.value).model_fields
        alpha.disabled, bias.disabled = "alpha" not in fields, "bias" not in fields
        settings = {} if alpha.disabled else {"alpha": alpha.value}
        if not bias.disabled:
            settings["bias"] = round(bias.value, 2)  # a slider adds its steps up: 0.15000000000000002
        return partition_figure(task, law.value, clients=clients.value, seed=seed.value, **settings)

    return Explorer([law, alpha, bias, clients, seed], draw)

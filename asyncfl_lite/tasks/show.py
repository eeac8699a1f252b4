"""A description of a task in words and pictures: its fields, examples with labels, and the clients' shares."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from asyncfl_lite.base.style import NEUTRAL, use_style
from asyncfl_lite.tasks.partitions import label_counts
from asyncfl_lite.tasks.splits import balanced

Task = Any
"""A task; its class imports this module."""
Parts = Sequence[np.ndarray]
"""Client -> ``(n_i,)`` indices of its samples in the task's training set."""

COLUMNS = 5
"""Images per row of the figure."""


def describe(task: Task, parts: Parts | None = None) -> str:
    """Describe a task, one fact per line: sizes, shapes, classes, metric, source, licence."""
    shape = " × ".join(str(length) for length in task.input_shape)
    kind = str(task.inputs.dtype).removeprefix("torch.")
    low, high = task.samples[0].aminmax()
    span = f"{low:.3g} to {high:.3g}" if task.inputs.is_floating_point() else f"{int(low)} to {int(high)}"
    facts = {
        "name": task.name,
        "metric": task.metric,
        "training": f"{len(task.own_places):,} samples of {shape} {kind}, {span}",
        "testing": f"{len(task.test_inputs):,} samples",
        "labels": _labels_in_words(task),
        "tokens": f"{task.vocabulary:,} in the vocabulary" if task.vocabulary else "",
        "owners": _spread(np.unique(task.owners, return_counts=True)[1], "owners") if task.owners is not None else "",
        "unlabelled": ", ".join(task.unlabelled),
        "augmented": "yes, in training" if task.augment is not None else "",
        "clients": _clients_in_words(task, parts) if parts is not None else "",
        "source": task.source,
        "licence": task.licence,
    }
    told = [(key, textwrap.wrap(value, 96)) for key, value in facts.items() if value]
    lines = [f"  {key if not more else '':<11} {line}" for key, value in told for more, line in enumerate(value)]
    return "\n".join([task.title, *lines])


def _labels_in_words(task: Task) -> str:
    if task.labels.dim() > 1:
        return f"{task.num_classes:,} classes at each position"
    names = ", ".join(list(task.class_names[:10]) + ["…"] * (len(task.class_names) > 10))
    return f"{task.num_classes:,} classes{': ' if names else ''}{names}"


def _spread(sizes: np.ndarray, of: str) -> str:
    low, high = int(sizes.min()), int(sizes.max())
    each = f"{low:,} samples each" if low == high else f"{low:,} to {high:,} samples, median {int(np.median(sizes)):,}"
    return f"{len(sizes):,} {of} with {each}"


def _clients_in_words(task: Task, parts: Parts) -> str:
    sizes, counts = np.array([len(part) for part in parts]), label_histogram(task, parts)
    told = _spread(sizes, "clients")
    if counts is None:
        return told
    held = (counts > 0).sum(1)
    span = str(held.min()) if held.min() == held.max() else f"{held.min()} to {held.max()}"
    return f"{told}, of {span} {'classes' if task.labels.dim() == 1 else 'kinds'}"


def label_histogram(task: Task, parts: Parts) -> np.ndarray | None:
    """Count each client's samples by class, ``(N, C)``, or by kind if a sample has many labels.

    The result is None if samples have neither a single label nor a kind.
    """
    labels = task.labels.cpu().numpy() if task.labels.dim() == 1 else task.kinds
    if labels is None:
        return None
    classes = max(int(labels.max()) + 1, task.num_classes if task.labels.dim() == 1 else 0)
    return label_counts(labels, parts, classes)


def show(task: Task, parts: Parts | None = None) -> Figure:
    """Draw examples of a task with their labels, and the clients' label histogram.

    Images are drawn as a grid, each clip ``(C, T, height, width)`` as a strip of frames, token ids as a table of
    texts, and other inputs as rows of a matrix.

    Args:
        parts: the clients' samples; None for examples alone.
    """
    use_style()
    figure = plt.figure(figsize=(7.0 if parts is None else 12.0, 4.6), layout="constrained")
    figure.suptitle(task.title, x=0.01, ha="left", fontsize=12)
    if parts is None:
        _draw_examples(task, figure)
    else:
        left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=[7, 5])[0]
        _draw_examples(task, left)
        _draw_histogram(task, parts, right.subplots())
    plt.close(figure)  # so that a notebook shows the figure only once, as the call's result
    return figure


def _draw_examples(task: Task, figure: Figure | SubFigure) -> None:
    if not task.inputs.is_floating_point() and task.inputs.dtype != torch.uint8:
        _draw_texts(task, _examples(task, 8), figure.subplots())
    elif task.inputs.dim() == 5:
        chosen = _examples(task, 5)
        _draw_pictures(task, chosen, _strips(_seen(task.inputs[chosen])), 1, figure)
    elif task.inputs.dim() == 4:
        chosen = _examples(task, 4 * COLUMNS)
        _draw_pictures(task, chosen, _seen(task.inputs[chosen]), COLUMNS, figure)
    else:
        _draw_rows(task, _examples(task, 20), figure.subplots())


def _examples(task: Task, count: int) -> list[int]:
    own, labels = task.own_places, task.samples[1].cpu().numpy()
    count = min(count, len(own))
    if labels.ndim > 1:
        return own[:: max(1, len(own) // count)][:count].tolist()
    chosen = balanced(labels, count)
    return own[chosen[np.argsort(labels[chosen], kind="stable")]].tolist()


def _named(task: Task, index: int) -> str:
    if task.labels.dim() > 1:
        return ""
    label = int(task.labels[index])
    return task.class_names[label] if task.class_names else str(label)


def _seen(inputs: Tensor) -> np.ndarray:
    """Scale ``(n, C, …)`` to ``(n, …, C)`` values between 0 and 1, each colour over its own range."""
    values = inputs.detach().float().cpu().transpose(0, 1).flatten(1)
    low, high = values.amin(1, keepdim=True), values.amax(1, keepdim=True)
    stretched = ((values - low) / (high - low).clamp(min=1e-12)).unflatten(1, (len(inputs), *inputs.shape[2:]))
    return stretched.movedim(0, -1).numpy()


def _strips(clips: np.ndarray) -> np.ndarray:
    """Lay up to eight frames of each of ``(n, T, height, width, C)`` clips side by side, with a white line between."""
    shown = np.unique(np.linspace(0, clips.shape[1] - 1, min(8, clips.shape[1])).round().astype(int))
    framed = np.pad(clips[:, shown], ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0)), constant_values=1.0)
    return np.concatenate(list(framed.swapaxes(0, 1)), axis=2)


def _draw_pictures(
    task: Task, indices: list[int], pictures: np.ndarray, columns: int, figure: Figure | SubFigure
) -> None:
    grid = np.atleast_1d(figure.subplots(-(-len(indices) // columns), columns)).ravel()
    for axes in grid:
        axes.set_axis_off()
    for axes, index, picture in zip(grid, indices, pictures, strict=False):
        axes.imshow(picture.squeeze(-1) if picture.shape[-1] == 1 else picture, cmap="gray", interpolation="nearest")
        axes.set_title(_named(task, index), fontsize=9, loc="center", pad=2)


def _draw_texts(task: Task, indices: list[int], axes: Axes) -> None:
    decode = getattr(task, "decode", None) or (lambda row: " ".join(str(token) for token in row.tolist()))
    axes.set(xlim=(0, 1), ylim=(len(indices), -0.5))
    axes.set_axis_off()
    for row, index in enumerate(indices):
        words = " ".join(decode(task.inputs[index].cpu()).split())
        text = "\n".join(textwrap.wrap(words, 72, max_lines=2, placeholder=" …")).replace("$", r"\$")
        label = textwrap.shorten(_named(task, index), 18, placeholder="…")
        axes.axhline(row - 0.42, color=NEUTRAL, linewidth=0.4)
        axes.text(0.0, row, label, weight="bold", fontsize=8, va="center")
        axes.text(0.22 if label else 0.0, row, text, fontsize=8, va="center")


def _draw_rows(task: Task, indices: list[int], axes: Axes) -> None:
    values = task.inputs[indices].detach().float().cpu().flatten(1).numpy()
    axes.imshow(values, aspect="auto", cmap="viridis", interpolation="nearest")
    axes.set_yticks(range(len(indices)), [_named(task, index) for index in indices], fontsize=8)
    axes.set(xlabel="input", ylabel="label")
    axes.grid(False)


def _draw_histogram(task: Task, parts: Parts, axes: Axes) -> None:
    counts = label_histogram(task, parts)
    if counts is None:
        axes.bar(range(len(parts)), [len(part) for part in parts], color=NEUTRAL)
        axes.set(xlabel="client", ylabel="samples")
        return
    drawn = axes.imshow(counts.T, aspect="auto", cmap=sns.color_palette("crest", as_cmap=True), interpolation="nearest")
    drawn.set_data(np.ma.masked_equal(counts.T, 0))  # a client that holds none of a class stays white
    axes.figure.colorbar(drawn, ax=axes, label="samples")
    named = task.class_names if len(task.class_names) == counts.shape[1] <= 20 else ()
    if named:
        axes.set_yticks(range(len(named)), [textwrap.shorten(name, 18, placeholder="…") for name in named], fontsize=8)
    else:
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel="client", ylabel="class" if task.labels.dim() == 1 else "kind")
    axes.grid(False)

"""Explorer of distillation losses: loss and gradient on one input, for a chosen teacher, student, label and weight.

FedADT (Eq. 7) and FedEcho (Eq. 3) both mix a divergence from a teacher with a cross entropy. They differ in the label
of the second term (the server's own, or the teacher's first choice), in the temperature, and in what sets the mixing
weight, which is the version (FedADT Eq. 8) or the teacher's entropy (FedEcho Eq. 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import ipywidgets as widgets
import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from asyncfl_course.explore.controls import Explorer
from asyncfl_lite.algorithms import make_algorithm
from asyncfl_lite.algorithms.losses import cross_entropy, entropy, kl_divergence, uncertainty_weight
from asyncfl_lite.base.errors import ConfigError, unknown_name
from asyncfl_lite.plots import ACCENT, NEUTRAL, colour, use_style

RULES = {
    "fixed": "FedADT's loss, fixed weight",
    "fedadt": "FedADT, weight by version",
    "fedecho": "FedEcho, weight by entropy",
}
"""Rules that set the mixing weight, and so decide which method's loss it is."""


class Terms(NamedTuple):
    """A mixed loss on one input of C classes, term by term; tensors are float64, divergences and entropies in nats.

    Attributes:
        teacher, student: ``(C,)`` probabilities that the divergence compares, both at its temperature.
        plain: ``(C,)`` the student's probabilities at temperature 1, which the cross entropy sees.
        temperature: of the divergence.
        label: the class of the cross entropy.
        entropy: the entropy of ``teacher``.
        weight: weight of the divergence in the loss; the cross entropy has the rest.
        kl, ce: the two terms, unweighted.
        loss: the mixed loss.
        pull: ``(C,)`` gradient of the weighted divergence in the student's logits.
        push: ``(C,)`` gradient of the weighted cross entropy; the loss's gradient is the sum of the two.
    """

    teacher: Tensor
    student: Tensor
    plain: Tensor
    temperature: float
    label: int
    entropy: float
    weight: float
    kl: float
    ce: float
    loss: float
    pull: Tensor
    push: Tensor


def distillation_terms(
    teacher: Sequence[float],
    student: Sequence[float],
    label: int = 0,
    *,
    rule: Literal["fixed", "fedadt", "fedecho"] = "fixed",
    weight: float = 0.3,
    version: int = 250,
    temperature: float = 3.0,
    direction: Literal["forward", "reverse"] = "forward",
    times_t2: bool = False,
) -> Terms:
    """Return the terms of one input's mixed loss, computed with :mod:`asyncfl_lite.algorithms.losses`.

    Args:
        teacher, student: C logits each.
        label: the input's class; FedEcho, which has no labels, uses the teacher's first choice instead.
        rule: what sets the mixing weight: ``fixed``, ``fedadt`` (its Eq. 8, default settings) or ``fedecho`` (its
            Eq. 4, default settings). The first two rules use FedADT's loss.
        weight: the mixing weight; only ``fixed`` uses it.
        version: the server's version; only ``fedadt`` uses it.
        temperature: T of both softmax functions in the KL term; not used by ``fedecho``, and neither are the next two.
        direction: ``forward`` for KL(teacher ‖ student), as FedADT prints it; ``reverse`` for KL(student ‖ teacher).
        times_t2: multiply the KL term by T², as is usual elsewhere.

    Raises:
        ConfigError: if there is no such rule.
    """
    if rule not in RULES:
        raise ConfigError(unknown_name("rule", rule, RULES))
    given = torch.tensor([list(teacher)], dtype=torch.float64)
    free = torch.tensor([list(student)], dtype=torch.float64, requires_grad=True)
    if rule == "fedadt":
        weight = make_algorithm("fedadt").kl_weight(version)
    if rule == "fedecho":
        temperature, label, direction, times_t2 = 1.0, int(given.argmax()), "forward", False
        chosen = make_algorithm("fedecho").settings
        weight = float(uncertainty_weight(given.softmax(-1), chosen.alpha_min, chosen.alpha_max))
    target, guess = (given, free) if direction == "forward" else (free, given)
    kl = kl_divergence((target / temperature).softmax(-1), guess / temperature).mean()
    kl = kl * temperature**2 if times_t2 else kl
    ce = cross_entropy(free, torch.tensor([label])).mean()
    (pull,), (push,) = torch.autograd.grad(weight * kl, free), torch.autograd.grad((1.0 - weight) * ce, free)
    softened, seen = (given / temperature).softmax(-1), free.detach()
    return Terms(
        softened[0], (seen / temperature).softmax(-1)[0], seen.softmax(-1)[0], temperature, label,
        float(entropy(softened)), weight, kl.item(), ce.item(), (weight * kl + (1.0 - weight) * ce).item(),
        pull[0], push[0],
    )  # fmt: skip


def distillation_figure(
    teacher: Sequence[float] = (2.0, 0.0, -1.0),
    student: Sequence[float] = (0.0, 1.0, 0.0),
    label: int = 0,
    *,
    rule: Literal["fixed", "fedadt", "fedecho"] = "fixed",
    version: int = 250,
    **options: Any,
) -> Figure:
    """Draw the inputs of a mixed loss, its value at every mixing weight, and its gradient.

    The default is a loss of 1.1226: FedADT's Eq. 7 at version 250, where its Eq. 8 gives the weight 0.3.

    Args:
        teacher, student, label, rule, version, options: as in :func:`distillation_terms`.
    """
    terms = distillation_terms(teacher, student, label, rule=rule, version=version, **options)
    use_style()
    figure, grid = plt.subplot_mosaic(
        [["left", "middle"], ["right", "right"]], figsize=(8.4, 6.0), height_ratios=(4, 3), layout="constrained"
    )
    shade = colour("fedecho" if rule == "fedecho" else "fedadt")
    heading = f"{RULES[rule]} (version {version:,})" if rule == "fedadt" else RULES[rule]
    heading += f"; T = {terms.temperature:g}"
    if rule != "fedecho":
        heading += ", KL times T²" * options.get("times_t2", False)
        heading += ", KL reversed" * (options.get("direction") == "reverse")
    numbers = f"H = {terms.entropy:.4f} of at most {np.log(len(terms.teacher)):.4f} nats, α = {terms.weight:.4f}, "
    numbers += f"KL = {terms.kl:.4f}, CE = {terms.ce:.4f}, loss = {terms.loss:.4f}"
    figure.suptitle(f"{heading}\n{numbers}", x=0.01, ha="left", fontsize=11)
    _draw_probabilities(terms, shade, "first choice" if rule == "fedecho" else "label", grid["left"])
    _draw_loss(terms, shade, grid["middle"])
    _draw_gradient(terms, shade, grid["right"])
    plt.close(figure)  # a notebook shows what the call returns, once
    return figure


def _draw_probabilities(terms: Terms, shade: str, mark: str, axes: Axes) -> None:
    at = "" if terms.temperature == 1 else f", T = {terms.temperature:g}"
    bars = [(f"teacher{at}", terms.teacher, shade), (f"student{at}", terms.student, NEUTRAL)]
    if at:
        bars.append(("student, T = 1", terms.plain, "#c7cbd1"))
    _bars(axes, bars)
    names = [f"{c}\n{mark}" if c == terms.label else str(c) for c in range(len(terms.teacher))]
    axes.set_xticks(range(len(names)), names)
    axes.set(xlabel="class", ylabel="probability", ylim=(0, 1), title="what the loss sees")
    axes.legend(loc="upper right", fontsize=8)


def _draw_loss(terms: Terms, shade: str, axes: Axes) -> None:
    axes.plot([0, 1], [terms.ce, terms.kl], color="#c7cbd1", zorder=1)
    axes.scatter([0, 1, terms.weight], [terms.ce, terms.kl, terms.loss], c=[ACCENT, shade, "black"], s=[40, 40, 80])
    places = (("CE", 0, terms.ce, "right"), ("KL", 1, terms.kl, "left"), ("loss", terms.weight, terms.loss, "center"))
    for name, x, y, side in places:
        shift = {"right": (-8, -4), "left": (8, -4), "center": (0, 10)}[side]
        axes.annotate(name, (x, y), xytext=shift, textcoords="offset points", ha=side)
    axes.set(xlabel="mixing weight α", ylabel="loss (nats)", xlim=(-0.25, 1.25), title="the loss at every weight")
    axes.set(ylim=(0, max(1.3 * max(terms.ce, terms.kl), 0.1)), xticks=(0, 0.25, 0.5, 0.75, 1))


def _draw_gradient(terms: Terms, shade: str, axes: Axes) -> None:
    parts = [("α KL", terms.pull, shade), ("(1 - α) CE", terms.push, ACCENT), ("sum", terms.pull + terms.push, "black")]
    _bars(axes, [(f"{name}, norm {float(values.norm()):.3f}", values, bar) for name, values, bar in parts])
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xticks(range(len(terms.pull)))
    most = max(0.1, *(float(values.abs().max()) for _, values, _ in parts))
    axes.set(xlabel="class", ylabel="gradient, by logit", ylim=(-1.2 * most, 1.9 * most))
    axes.set_title("a step goes against it")
    axes.legend(loc="upper right", fontsize=8)


def _bars(axes: Axes, groups: Sequence[tuple[str, Tensor, str]]) -> None:
    width = 0.8 / len(groups)
    for number, (name, values, shade) in enumerate(groups):
        places = np.arange(len(values)) + width * (number - (len(groups) - 1) / 2)
        axes.bar(places, values.numpy(), width=0.9 * width, color=shade, label=name)
    axes.grid(False, axis="x")


def explore_distillation() -> Explorer:
    """Return :func:`distillation_figure` with controls for logits of 3 or 4 classes, label, rule, weight, temperature.

    A control that the chosen rule does not use is greyed out.
    """
    rule = widgets.Dropdown(options=[(heading, name) for name, heading in RULES.items()], description="rule")
    classes = widgets.Dropdown(options=(3, 4), description="classes")
    label = widgets.Dropdown(options=(0, 1, 2), description="label")
    weight = widgets.FloatSlider(0.3, min=0, max=1, step=0.05, description="weight α", continuous_update=False)
    version = widgets.IntSlider(250, min=0, max=2000, step=50, description="version", continuous_update=False)
    temperature = widgets.FloatSlider(3, min=0.5, max=10, step=0.5, description="T", continuous_update=False)
    times_t2 = widgets.Checkbox(False, description="KL times T²")
    reverse = widgets.Checkbox(False, description="KL reversed")
    teacher = [_logit(f"teacher {c}", value) for c, value in enumerate((2.0, 0.0, -1.0, 0.0))]
    student = [_logit(f"student {c}", value) for c, value in enumerate((0.0, 1.0, 0.0, 0.0))]

    def draw() -> Figure:
        count, chosen = classes.value, rule.value
        teacher[3].disabled = student[3].disabled = count == 3
        weight.disabled, version.disabled = chosen != "fixed", chosen != "fedadt"
        for control in (label, temperature, times_t2, reverse):
            control.disabled = chosen == "fedecho"
        return distillation_figure(
            [slider.value for slider in teacher[:count]], [slider.value for slider in student[:count]], label.value,
            rule=chosen, weight=round(weight.value, 2), version=version.value, temperature=temperature.value,
            direction="reverse" if reverse.value else "forward", times_t2=times_t2.value,
        )  # fmt: skip

    def offer_labels(change: dict) -> None:
        chosen, label.options = label.value, tuple(range(change["new"]))
        label.value = chosen if chosen in label.options else 0

    classes.observe(offer_labels, names="value")
    settings = [rule, classes, label, weight, version, temperature, times_t2, reverse]
    return Explorer([*settings, *teacher, *student], draw)


def _logit(name: str, value: float) -> widgets.FloatSlider:
    return widgets.FloatSlider(value, min=-5, max=5, step=0.5, description=name, continuous_update=False)

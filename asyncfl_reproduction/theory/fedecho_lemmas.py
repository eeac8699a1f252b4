"""Checks T4 and T5, which test FedEcho's Lemmas D.2 and D.3 and their use in its proof."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor, nn

from asyncfl_lite.base.streams import stream
from asyncfl_lite.models import MODELS
from asyncfl_lite.models.steps import clipped_to
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_reproduction.theory.beds import Bumps, context, feed, started, train, vector
from asyncfl_reproduction.theory.results import AS_PRINTED, ASIDE, CONDITIONED, REPAIRED, Case, Check


def lemma_d2(steps: int, lr: float, noise: float, variance: float, grads: float) -> float:
    """Return the right-hand side of Lemma D.2 (Eq. 34), 5 K η_l² (σ_l² + 6 K σ_g²) + 30 K² η_l² E‖∇f‖²."""
    return 5 * steps * lr**2 * (noise + 6 * steps * variance) + 30 * steps**2 * lr**2 * grads


def linear_drift(slopes: Tensor, noise: float = 0.0, steps: int = 5, lr: float = 0.02) -> tuple[float, float]:
    """Return both sides of Lemma D.2 for F_i = a_i x and noise of ±σ_l, exactly: every sequence of signs is tried.

    ``slopes`` are the ``(N,)`` a_i; K and η_l are ``steps`` and ``lr``.
    """
    signs = torch.tensor(list(product((-1.0, 1.0), repeat=steps)), dtype=slopes.dtype).T  # (K, 2^K)
    start = slopes.new_zeros(len(slopes), signs.shape[1])
    moved = train(start, lambda x, k: slopes[:, None] + noise * signs[k].expand_as(x), lr, steps)
    variance, mean = float(slopes.var(correction=0)), float(slopes.mean())
    return float(moved.square().mean()), lemma_d2(steps, lr, noise**2, variance, mean**2)


def drift_sides(clients: int, steps: int = 5) -> dict[str, float]:
    """Return, for T4's bumps, the squared distance that clients drift in K steps, and the bounds on this distance.

    Returns:
        ``each`` and ``bound``: both sides of Eq. 22, with every client starting at its own peak. ``bound with N``: the
        bound with N σ_g². ``one``: the drift of client 0 from its peak (Eq. 27). ``common``: the mean drift of clients
        that all start there (Lemma D.2). ``bound at one point``: the bound on these two.
    """
    bumps = Bumps(clients)
    lr = 1e-2 / (8 * steps * bumps.smoothness)

    def bound(variance: float, points: Tensor) -> float:
        return lemma_d2(steps, lr, 0.0, variance, float(bumps.mean_gradients(points).square().mean()))

    def drift(points: Tensor) -> Tensor:
        return train(points, lambda x, _: bumps.gradients(x), lr, steps).square()

    first = bumps.peaks[:1]
    return {
        "each": float(drift(bumps.peaks).mean()),
        "bound": bound(bumps.variance, bumps.peaks),
        "bound with N": bound(clients * bumps.variance, bumps.peaks),
        "one": float(drift(first.expand(clients))[0]),
        "common": float(drift(first.expand(clients)).mean()),
        "bound at one point": bound(bumps.variance, first),
    }


def check_t4() -> Check:
    """Check T4, FedEcho's Lemma D.2 (Eq. 34) on client drift in K local steps, and its use in Eqs. 22 and 27."""
    at = {clients: drift_sides(clients) for clients in (10, 30, 31, 100)}
    one, none = vector(1.0), vector(0.0)
    straight = {
        "noise alone": linear_drift(none, 0.5),
        "differences alone": linear_drift(vector(-1, 1)),
        "one gradient for all": linear_drift(one),
    }
    cases = [
        Case(AS_PRINTED, "Lemma D.2, one version for all, N = 100", _ratio(at[100], "common"), "<=", 1.0),
        *(
            Case(AS_PRINTED, f"Eq. 22, each client its own version, N = {n}", s["each"] / s["bound"], "<=", 1.0)
            for n, s in at.items()
        ),
        Case(AS_PRINTED, "Eq. 27, one client alone, N = 100", _ratio(at[100], "one"), "<=", 1.0),
        Case(REPAIRED, "Eq. 22 with N σ_g², N = 100", at[100]["each"] / at[100]["bound with N"], "<=", 1.0),
        *(
            Case(REPAIRED, f"Lemma D.2, linear objectives, {name}", left, "<=", right)
            for name, (left, right) in straight.items()
        ),
    ]
    return Check(
        "T4",
        "FedEcho",
        "Lemma D.2 (Eq. 34), used in Eqs. 22, 27",
        "The bound on how far clients drift from one common version, a mean over clients, also holds where each "
        "client started from a version of its own, and for each client alone.",
        tuple(cases),
        condition="all clients start from one version (the lemma itself)",
        counterexample="bumps with disjoint supports: left over right is N/30, so N = 31 breaks it, and nothing "
        "bounds it",
        repair="assume ‖∇F_i(x) - ∇f(x)‖² ≤ σ_g² for every client i, or put N σ_g² for σ_g² in Eqs. 22 and 27. "
        "The lemma is loose: linear objectives need 1 of its 5 for noise, and 1 of its 30 for the gradients",
    )


def _ratio(sides: dict[str, float], left: str) -> float:
    return sides[left] / sides["bound at one point"]


def distilled_distance(optimiser: str, steps: int = 10, clip: float = 5.0, rate: float = 3e-6) -> tuple[float, int]:
    """Return ‖x̂_q - x̂‖² after Q full-batch steps of FedEcho's distillation, and the number of parameters.

    The student is a linear softmax model with 100 inputs and 10 classes. Its inputs are large, so that every gradient
    is clipped.
    """
    rng = stream(0, "theory T5")
    model = VectorModel(nn.Linear(100, 10, bias=False, dtype=torch.float64))
    inputs = torch.from_numpy(30 * rng.standard_normal((20, 100)))
    teacher = torch.from_numpy(rng.standard_normal((1, model.num_parameters)))
    settings = {"distill_opt": optimiser, "distill_lr": rate, "distill_unit": "steps", "distill_q": steps, "clip": clip}
    student = torch.zeros(model.num_parameters, dtype=torch.float64)
    server = started("fedecho", student, context(model=model, inputs=inputs), server_lr=0.0, **settings)
    return float((feed(server, teacher) - student).square().sum()), model.num_parameters


def lemma_d3(steps: int, clip: float, rate: float, noise: float = 0.0) -> float:
    """Return the right-hand side of Lemma D.3 (Eq. 35), 5 η_d² Q (σ_d² + 2 Q ν²)."""
    return 5 * rate**2 * steps * (noise + 2 * steps * clip**2)


def noise_alone(steps: int = 10, rate: float = 3e-6) -> float:
    """Return E‖x̂_q - x̂‖² after Q steps of SGD whose gradients are noise of ±1 and nothing else, exactly."""
    signs = torch.tensor(list(product((-1.0, 1.0), repeat=steps)), dtype=torch.float64).T
    return float(train(torch.zeros_like(signs[0]), lambda x, q: signs[q], rate, steps).square().mean())


def growth(steps: int) -> float:
    """Return (1 + 1/(2Q - 1))^Q, which the proof of Lemma D.3 bounds by 5."""
    return (1 + 1 / (2 * steps - 1)) ** steps


def constant_needed(steps: int) -> float:
    """Return the constant that the proof's recursion needs instead of 5."""
    return (2 * steps - 1) * (growth(steps) - 1) / steps


def clipped_mean(gradients: Tensor, largest: float = 5.0) -> float:
    """Return the mean of scalar gradients after the package's clipping to at most ``largest``."""
    return float(clipped_to(gradients[:, None], largest).mean())


def resnet_parameters() -> int:
    """Return d, the number of parameters of ResNet-18 for 10 classes (FedEcho's model on CIFAR-10)."""
    spec = MODELS.get("resnet")(width=64, blocks="resnet18", norm="batch")
    with torch.device("meta"):  # only shapes
        return VectorModel(spec.build((3, 32, 32), 10)).num_parameters


def check_t5() -> Check:
    """Check T5, FedEcho's Lemma D.3 (Eqs. 35, 36): E‖x̂_q - x̂‖² ≤ 5 η_d² Q (σ_d² + 2 Q ν²)."""
    adam, d = distilled_distance("adam")
    sgd, longer = distilled_distance("sgd")[0], distilled_distance("sgd", 40)[0]
    bound = lemma_d3(10, 5.0, 3e-6)
    step, cap = 3e-6 * resnet_parameters() ** 0.5, 3e-6 * 5
    noisy = vector(20, *[-1] * 9)
    return Check(
        "T5",
        "FedEcho",
        "Lemma D.3 (Eqs. 35, 36)",
        "In Q distillation steps with gradients clipped to ν the model moves by a mean square of at most "
        "5 η_d² Q (σ_d² + 2 Q ν²).",
        (
            Case(AS_PRINTED, f"Adam, as in the experiments, {d} parameters, 10 steps", adam, "<=", bound),
            Case(CONDITIONED, f"clipped SGD, as in Algorithm 1, {d} parameters, 10 steps", sgd, "<=", bound),
            Case(CONDITIONED, "the same, 40 steps", longer, "<=", lemma_d3(40, 5.0, 3e-6)),
            Case(CONDITIONED, "SGD, noise alone, ν = 0, σ_d = 1", noise_alone(), "<=", lemma_d3(10, 0.0, 3e-6, 1.0)),
            Case(ASIDE, "clipped SGD, all in one direction, goes Q η_d ν", sgd, "=", (10 * cap) ** 2, 1e-4 * sgd),
            Case(ASIDE, "the proof's factor (1 + 1/(2Q-1))^Q, at most 5", growth(1), "=", 2.0),
            Case(ASIDE, "a clipped gradient is unbiased: 20 and nine -1, ν = 5", clipped_mean(noisy), "=", 1.1, 1e-9),
            Case(ASIDE, "one step of Adam on ResNet-18 against η_d ν", step, "<=", cap),
        ),
        condition="distillation is SGD, as in Algorithm 1",
        counterexample="Adam moves every parameter by about η_d a step, whatever ν: with d parameters η_d √d",
        repair="Q η_d ν for clipped SGD, exact and without expectation or variance, a tenth of the bound when squared; "
        "about Q η_d √d for Adam. If ν bounds the mean gradient alone, as in Eq. 36, noise needs a fifth of its term",
    )

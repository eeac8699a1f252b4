"""Checks T1 to T5: FedEcho's distillation gradient (Appendix B), and Lemmas D.1 to D.3 with their use in its proof."""

from __future__ import annotations

from itertools import combinations, product

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from asyncfl_lite.algorithms.losses import kl_divergence, mean_teacher
from asyncfl_lite.base.streams import stream
from asyncfl_lite.models import MODELS
from asyncfl_lite.models.steps import clipped_to
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_reproduction.theory.beds import Bumps, context, feed, spread, started, train, vector
from asyncfl_reproduction.theory.results import AS_PRINTED, ASIDE, CONDITIONED, REPAIRED, Case, Check, checked

INPUT = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
LABEL = torch.tensor([0])
STUDENT = torch.tensor([[0.1, 0.2], [0.0, -0.1], [-0.2, 0.3]], dtype=torch.float64)
TEACHERS = torch.tensor(
    [[[1.0, 0.0], [0.0, 0.5], [-0.5, 0.0]], [[-1.0, 0.5], [0.5, 0.0], [0.5, 0.5]]], dtype=torch.float64
)
"""T1's linear softmax models, one row of weights per class."""


def distillation_gradient(
    model: VectorModel, student: Tensor, teachers: Tensor, inputs: Tensor, how: str, alpha: tuple[float, float] = (1, 1)
) -> Tensor:
    """Return the ``(d,)`` gradient along which FedEcho's server distils.

    The server gets one update from each teacher and has a server rate of 0, so the model is moved only by one unclipped
    SGD step of rate 1 over all inputs (Eqs. 2 to 4). The student is ``(d,)``, and the teachers are ``(N, d)``. ``how``
    says whether the teachers' ``logits`` (Alg. 1) or ``probs`` (App. B) are averaged. ``alpha`` is α_min and α_max; (1,
    1) is pure KL, as in App. B.
    """
    settings = {"distill_opt": "sgd", "distill_lr": 1.0, "distill_unit": "steps", "distill_q": 1, "clip": None}
    settings |= {"teacher_avg": how, "alpha_min": alpha[0], "alpha_max": alpha[1], "buffer_size": len(teachers)}
    around = context(len(teachers), model=model, inputs=inputs)
    server = started("fedecho", student, around, server_lr=0.0, **settings)
    return student - feed(server, teachers - student)


def loss_gradient(model: VectorModel, x: Tensor, inputs: Tensor, labels: Tensor) -> Tensor:
    """Return the ``(d,)`` gradient of cross-entropy on true labels, ∇f."""
    return model.gradient(x, inputs, lambda outputs: cross_entropy(outputs, labels))[1]


def linear_gradients() -> dict[str, Tensor]:
    """Return T1's ``(3, 2)`` gradients: by Eq. 8, at the teachers' mean parameters, and by readings of FedEcho."""
    model = VectorModel(nn.Linear(2, 3, bias=False, dtype=torch.float64))
    student, teachers = STUDENT.reshape(-1), TEACHERS.reshape(2, -1)

    def of_loss(x: Tensor) -> Tensor:
        return loss_gradient(model, x, INPUT, LABEL)

    found = {
        "Eq. 8": of_loss(student) - sum(map(of_loss, teachers)) / len(teachers),
        "at the mean of parameters": of_loss(student) - of_loss(teachers.mean(0)),
        "probs": distillation_gradient(model, student, teachers, INPUT, "probs"),
        "logits": distillation_gradient(model, student, teachers, INPUT, "logits"),
        "mixed": distillation_gradient(model, student, teachers, INPUT, "probs", (0.2, 0.8)),
    }
    return {name: gradient.view(3, 2) for name, gradient in found.items()}


def _gap(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max())


def check_t1() -> Check:
    """Check T1, FedEcho's Eq. 8 for linear softmax: ∇f_d = ∇f(x) - (1/N) Σ ∇f(x_i)."""
    g = linear_gradients()
    right, averaged = g["Eq. 8"], _gap(g["logits"], g["at the mean of parameters"])
    return checked(
        "T1",
        [
            Case(AS_PRINTED, "mean of logits, as in Algorithm 1", _gap(g["logits"], right), "=", 0, 1e-12),
            Case(AS_PRINTED, "α from 0.2 to 0.8, as in Eq. 3", _gap(g["mixed"], right), "=", 0, 1e-12),
            Case(CONDITIONED, "mean of probabilities, α = 1", _gap(g["probs"], right), "=", 0, 1e-12),
            Case(ASIDE, "mean of logits against the gradient at the averaged parameters", averaged, "=", 0, 1e-12),
        ],
    )


def network_gradients(seed: int = 0) -> dict[str, Tensor]:
    """Return T2's ``(d,)`` gradients for a 3-4-3 tanh network and three random teachers.

    Eq. 13 is computed directly, as the student's Jacobian times the difference of the loss's derivatives in the logits.
    The finite differences are taken of the loss itself.
    """
    generator = torch.Generator().manual_seed(seed)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3)).double()
    model = VectorModel(net)
    points = torch.randn(4, model.num_parameters, dtype=torch.float64, generator=generator)
    inputs = torch.randn(1, 3, dtype=torch.float64, generator=generator)
    student, teachers = points[0], points[1:]
    label = nn.functional.one_hot(LABEL, 3)

    def in_logits(x: Tensor) -> Tensor:
        return (model.outputs(x, inputs).softmax(-1) - label)[0]

    jacobian = torch.autograd.functional.jacobian(lambda x: model(x, inputs)[0], student)
    target = mean_teacher(torch.stack([model.outputs(x, inputs) for x in teachers]), "probs")

    def loss(x: Tensor) -> Tensor:
        return kl_divergence(target, model.outputs(x, inputs)).mean()

    h = 1e-5 * torch.eye(len(student), dtype=torch.float64)
    mean_of_own = sum(loss_gradient(model, x, inputs, LABEL) for x in teachers) / len(teachers)
    return {
        "Eq. 13": (in_logits(student) - sum(map(in_logits, teachers)) / len(teachers)) @ jacobian,
        "Eq. 8": loss_gradient(model, student, inputs, LABEL) - mean_of_own,
        "finite differences": torch.stack([(loss(student + e) - loss(student - e)) / 2e-5 for e in h]),
        "probs": distillation_gradient(model, student, teachers, inputs, "probs"),
        "logits": distillation_gradient(model, student, teachers, inputs, "logits"),
    }


def check_t2() -> Check:
    """Check T2, FedEcho's Eq. 13, which is Eq. 8 for any network, with the student's Jacobian for every teacher."""
    g = network_gradients()
    right = g["Eq. 13"]
    return checked(
        "T2",
        [
            Case(AS_PRINTED, "mean of logits, as in Algorithm 1", _gap(g["logits"], right), "=", 0, 1e-12),
            Case(CONDITIONED, "mean of probabilities, α = 1", _gap(g["probs"], right), "=", 0, 1e-12),
            Case(CONDITIONED, "finite differences of that loss", _gap(g["finite differences"], right), "=", 0, 1e-8),
            Case(CONDITIONED, "not Eq. 8, the models' own gradients", _gap(g["Eq. 8"], right), ">=", 0.1),
        ],
    )


def every_buffer(deltas: Tensor, size: int) -> Tensor:
    """Return FedBuff's step for every possible buffer of M = ``size`` different clients, ``(buffers, …)``.

    There is one row of deltas for each client, ``(N,)`` or ``(N, trials)``. The mean of the steps is the expectation
    under uniform sampling without replacement (Assumption 4.4).
    """
    chosen = torch.tensor(list(combinations(range(len(deltas)), size)))
    entries = deltas[chosen].transpose(0, 1)  # (M, buffers, …)
    server = started("fedbuff", torch.zeros(entries[0].numel(), dtype=deltas.dtype), buffer_size=size)
    return feed(server, entries.reshape(size, -1), 0).view(entries[0].shape)


def mean_square_step(deltas: Tensor, size: int, noise: float = 0.0) -> float:
    """Return FedBuff's E‖Δ_t‖² exactly, from the variance of a mean of M = ``size`` without replacement.

    ``deltas`` are the ``(N,)`` clients' expected updates, and ``noise`` is the variance of each one's independent
    noise.
    """
    count = len(deltas)
    between = float(deltas.var(correction=0)) * (count - size) / (size * (count - 1)) if size < count else 0.0
    return float(deltas.mean()) ** 2 + between + noise / size


def lemma_d1(
    clients: int,
    size: int,
    steps: int,
    lr: float,
    smooth: float,
    noise: float,
    variance: float,
    grads: float,
    total: float,
) -> float:
    """Return the right-hand side of FedEcho's Lemma D.1.

    Args:
        clients, size, steps: N (at least 2: the bound divides by N - 1), M, K.
        lr, smooth: η_l and L.
        noise, variance: σ_l² and σ_g².
        grads: Σ_i E‖∇f(x_{t-τ_i})‖².
        total: E‖Σ_i Σ_k ∇F_i(x_{t-τ_i,k})‖².
    """
    n, m, k, s2 = clients, size, steps, lr**2
    drift = 15 * n * k**3 * smooth**2 * s2 * (noise + 6 * k * variance)
    middle = drift + (90 * n * k**4 * smooth**2 * s2 + 3 * k**2) * grads + 3 * n * k**2 * variance
    first = 2 * k * s2 * noise / m
    return first + 2 * s2 * ((n - m) * middle + (m - 1) * total) / (n * m * (n - 1))


def quadratic_sides(
    centres: Tensor, points: Tensor, size: int, steps: int, lr: float, noise: float
) -> tuple[float, float]:
    """Return both sides of Lemma D.1 in closed form, for quadratics with L = 1.

    ``centres`` and ``points`` are the ``(N,)`` c_i and the points from which clients start; ``size``, ``steps`` and
    ``lr`` are M, K and η_l; and ``noise`` is σ_l, the deviation of Gaussian noise on every gradient.
    """
    keep = 1 - lr
    moved = 1 - keep**steps  # share of the way to its centre
    own = noise**2 * sum((lr * keep**j) ** 2 for j in range(steps))
    in_sum = noise**2 * sum((1 - keep**j) ** 2 for j in range(1, steps))  # noise of Σ_k ∇F_i
    total = float((moved / lr * (points - centres)).sum()) ** 2 + len(centres) * in_sum
    grads = float((points - centres.mean()).square().sum())
    left = mean_square_step(moved * (centres - points), size, own)
    variance = float(centres.var(correction=0))
    return left, lemma_d1(len(centres), size, steps, lr, 1.0, noise**2, variance, grads, total)


def bump_sides(clients: int, size: int, steps: int = 5, *, each: bool = False) -> tuple[float, float]:
    """Return both sides of Lemma D.1 for N clients (even) that each start from their own peak, over all buffers.

    If ``each``, σ_g² bounds every client's squared distance from ∇f, instead of Assumption 4.2's mean.
    """
    bumps = Bumps(clients, alternate=True)
    lr = 1e-2 / (8 * steps * bumps.smoothness)
    deltas = train(bumps.peaks, lambda x, _: bumps.gradients(x), lr, steps)
    left = float(every_buffer(deltas, size).square().mean())
    grads, total = float(bumps.mean_gradients(bumps.peaks).square().sum()), float(deltas.sum() / lr) ** 2
    variance = bumps.largest_variance if each else bumps.variance
    return left, lemma_d1(clients, size, steps, lr, bumps.smoothness, 0.0, variance, grads, total)


def linear_sides(
    slopes: Tensor, size: int, noise: float = 0.0, steps: int = 20, lr: float = 0.02
) -> tuple[float, float]:
    """Return both sides of Lemma D.1 for F_i = a_i x and K = ``steps``, where L = 0 leaves only three terms."""
    left = mean_square_step(-lr * steps * slopes, size, steps * lr**2 * noise**2)
    grads, total = len(slopes) * float(slopes.mean()) ** 2, (steps * float(slopes.sum())) ** 2
    variance = float(slopes.var(correction=0))
    return left, lemma_d1(len(slopes), size, steps, lr, 0.0, noise**2, variance, grads, total)


def sampled_step(trials: int = 10_000, seed: int = 0) -> float:
    """Return E‖Δ_t‖² of T3's quadratics, measured with FedBuff over all 120 buffers and ``trials`` noisy runs."""
    centres = spread(10)[:, None].expand(10, trials)
    rng = stream(seed, "theory T3")
    noise = torch.from_numpy(0.5 * rng.standard_normal((4, 10, trials)))
    deltas = train(torch.full_like(centres, 0.7), lambda x, k: x - centres + noise[k], 0.02, 4)
    return float(every_buffer(deltas, 3).square().mean())


def check_t3() -> Check:
    """Check T3, FedEcho's Lemma D.1, which bounds E‖Δ_t‖², the mean square of FedBuff's step."""
    centres = spread(10)
    here = quadratic_sides(centres, torch.full((10,), 0.7, dtype=torch.float64), 3, 4, 0.02, 0.5)
    apart = quadratic_sides(centres, centres.flip(0), 3, 4, 0.02, 0.5)
    everyone = quadratic_sides(centres, torch.full((10,), 0.7, dtype=torch.float64), 10, 4, 0.02, 0.5)
    large = quadratic_sides(centres, torch.zeros(10, dtype=torch.float64), 3, 20, 3.0, 0.0)
    bumps, each = bump_sides(10, 3), bump_sides(10, 3, each=True)
    one, none = torch.ones(10, dtype=torch.float64), torch.zeros(10, dtype=torch.float64)
    straight = {
        "noise alone": linear_sides(none, 3, noise=0.5),
        "differences alone": linear_sides(centres, 3),
        "one gradient for all, M = 1": linear_sides(one, 1),
        "one gradient for all, M = N": linear_sides(one, 10),
    }
    return checked(
        "T3",
        [
            Case(AS_PRINTED, "10 quadratics, M = 3, all from one version", here[0], "<=", here[1]),
            Case(AS_PRINTED, "10 bumps, M = 3, each client from its own peak", bumps[0], "<=", bumps[1]),
            Case(AS_PRINTED, "10 quadratics, η_l = 3, K = 20", large[0], "<=", large[1]),
            Case(CONDITIONED, "10 quadratics from 10 different versions", apart[0], "<=", apart[1]),
            Case(CONDITIONED, "10 bumps, own peaks, σ_g² that bounds every client", each[0], "<=", each[1]),
            Case(CONDITIONED, "everybody in the buffer, M = N", everyone[0], "<=", everyone[1]),
            *(
                Case(CONDITIONED, f"10 linear objectives, {name}", left, "<=", right)
                for name, (left, right) in straight.items()
            ),
            Case(ASIDE, "FedBuff's own steps against the closed form", sampled_step(), "=", here[0], 5e-5),
        ],
    )


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
    return checked("T4", cases)


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
    return checked(
        "T5",
        [
            Case(AS_PRINTED, f"Adam, as in the experiments, {d} parameters, 10 steps", adam, "<=", bound),
            Case(CONDITIONED, f"clipped SGD, as in Algorithm 1, {d} parameters, 10 steps", sgd, "<=", bound),
            Case(CONDITIONED, "the same, 40 steps", longer, "<=", lemma_d3(40, 5.0, 3e-6)),
            Case(CONDITIONED, "SGD, noise alone, ν = 0, σ_d = 1", noise_alone(), "<=", lemma_d3(10, 0.0, 3e-6, 1.0)),
            Case(ASIDE, "clipped SGD, all in one direction, goes Q η_d ν", sgd, "=", (10 * cap) ** 2, 1e-4 * sgd),
            Case(ASIDE, "the proof's factor (1 + 1/(2Q-1))^Q, at most 5", growth(1), "=", 2.0),
            Case(ASIDE, "a clipped gradient is unbiased: 20 and nine -1, ν = 5", clipped_mean(noisy), "=", 1.1, 1e-9),
            Case(ASIDE, "one step of Adam on ResNet-18 against η_d ν", step, "<=", cap),
        ],
    )

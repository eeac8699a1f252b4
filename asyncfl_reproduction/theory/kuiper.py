"""Checks T7 to T10, T14 and T15: KUIPER's convergence analysis (§3.2, Appendix I), and what it says of K and bias.

The proof's iteration is FedBuff's: w ← w - η_g mean(Δ), with Δ = old minus new. The package's FedBuff does the same,
with deltas that are new minus old. The paper's ``K`` is the buffer size M here.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from asyncfl_lite.algorithms import Update
from asyncfl_lite.base.streams import stream
from asyncfl_lite.tasks import TASKS
from asyncfl_lite.tasks.partitions import PARTITIONS
from asyncfl_reproduction.theory.beds import feed, started, train, vector
from asyncfl_reproduction.theory.results import AS_PRINTED, ASIDE, REPAIRED, Case, Check, checked


def lemma_1(noise: float, spread: float, largest: float) -> float:
    """Return the right-hand side of KUIPER's Lemma 1 (Eq. 11): 3 (σ_l² + σ_g² + G)."""
    return 3 * (noise + spread + largest)


def mean_square_gradient(centres: Tensor, x: float, noise: float) -> float:
    """Return E‖g_k‖² at ``x`` exactly, over clients and noise, as mean_i (x - c_i)² + σ_l²."""
    return float((x - centres).square().mean()) + noise


def check_t7() -> Check:
    """Check T7, KUIPER's Lemma 1 (Eq. 11): E‖g_k‖² ≤ 3 (σ_l² + σ_g² + G).

    The lemma leaves out everything that distinguishes KUIPER: bursts, staleness, the reward, and the mixing of models.
    T8 to T10 are about these. The lemma is checked on a bounded region, where G is known.
    """
    centres, noise, x = vector(-1, 1), 0.25, 1.0
    largest = float((x - centres).square().max())
    exact = mean_square_gradient(centres, x, noise)
    one, apart = mean_square_gradient(vector(0), 1.0, 0.0), mean_square_gradient(centres, 0.0, 0.0)
    alone = mean_square_gradient(vector(0), 0.0, noise)
    rng = stream(0, "theory T7")
    drawn = x - centres.numpy()[rng.integers(0, 2, 100_000)] + 0.5 * rng.standard_normal(100_000)
    return checked(
        "T7",
        [
            Case(AS_PRINTED, "optima -1 and 1, at w = 1, σ_l = 0.5", exact, "<=", lemma_1(noise, 1.0, largest)),
            Case(AS_PRINTED, "one client, every gradient at its bound", one, "<=", lemma_1(0.0, 0.0, 1.0)),
            Case(AS_PRINTED, "noise alone", alone, "<=", lemma_1(noise, 0.0, 0.0)),
            Case(AS_PRINTED, "optima -1 and 1, at w = 0, G for ‖∇f‖² as in Eq. 11", apart, "<=", lemma_1(0, 1.0, 0)),
            Case(REPAIRED, "σ_l² + G, one client, every gradient at its bound", one + noise, "<=", noise + 1.0),
            Case(REPAIRED, "σ_l² + G, optima -1 and 1, at w = 1", exact, "<=", noise + largest),
            Case(ASIDE, "100,000 gradients drawn", float((drawn**2).mean()), "=", exact, 0.05),
        ],
    )


def corollary_1(
    excess: float,
    global_lr: float,
    local_lr: float,
    length: float,
    smooth: float,
    spread: float,
    largest: float,
    noise: float = 0.0,
    late: float = 0.0,
) -> float:
    """Return the right-hand side of KUIPER's Corollary 1 (Eqs. 5, 9) for Q = 1.

    Args:
        excess: F* = f(w_0) - min f.
        global_lr, local_lr: η_g and η_l.
        length: T.
        smooth: L.
        spread: σ_g².
        largest: G.
        noise: σ_l².
        late: τ_max,K, the largest staleness.
    """
    rate = global_lr * local_lr
    old = 3 * smooth**2 * local_lr**2 * (global_lr**2 * late**2 + 1) * (noise + spread + largest)
    return 2 * excess / (rate * length) + smooth / 2 * rate * noise + old


def lost_term(global_lr: float, local_lr: float, smooth: float, largest: float) -> float:
    """Return L η_g η_l Q G for Q = 1, the term that repairs Corollary 1."""
    return smooth * global_lr * local_lr * largest


def exact_mean(step: float, length: float, x0: float, spread: float) -> float:
    """Return the mean of E‖∇f‖² over T versions on quadratics with L = 1, optimum 0 and one client per version.

    w ← w - a (w - c_i) gives E w² ← (1 - a)² E w² + a² Var(c): a geometric approach to a Var(c) / (2 - a). The step is
    a = η_g η_l, in (0, 2); ``length`` is T, ``x0`` is w_0, and ``spread`` is Var(c) = σ_g².
    """
    settled = step * spread / (2 - step)
    keep = (1 - step) ** 2
    return settled + (x0**2 - settled) * (1 - keep**length) / (length * (1 - keep))


def sampled_mean(global_lr: float, local_lr: float, length: int, x0: float, chains: int = 400, size: int = 1) -> float:
    """Measure the mean of :func:`exact_mean` with FedBuff, optima 1 and -1 and M random clients per version.

    There are as many repetitions as ``chains``, one per coordinate. With independent clients, the variance of a step is
    the M-th part of one client's (M is ``size``).
    """
    rng = stream(0, "theory T8")
    start = torch.full((chains,), x0, dtype=torch.float64)
    server = started("fedbuff", start, server_lr=global_lr, buffer_size=size)
    total = 0.0
    for _ in range(length):
        total += float(server.x.square().mean())
        centres = torch.from_numpy(rng.choice([-1.0, 1.0], (size, chains)))
        feed(server, train(server.x.expand(size, chains), lambda x, _, c=centres: x - c, local_lr, 1), server.version)
    return total / length


def equal_deltas_step(size: int) -> float:
    """Return the squared norm of FedBuff's mean of M equal updates of length 1; Eq. 13 prints at most 1/M."""
    return float(feed(started("fedbuff", vector(0.0), buffer_size=size), [vector(1.0)] * size, 0).square())


def check_t8() -> Check:
    """Check T8, KUIPER's bound on the mean squared gradient (Theorem 1, Corollary 1, and rate; Eqs. 5, 6, 8, 9)."""
    setting = {"smooth": 1.0, "spread": 1.0, "largest": 4.0}
    wide, narrow = sampled_mean(100.0, 0.01, 1000, 1.0, 2), exact_mean(0.01, 1e6, 0.0, 1.0)
    bounds = corollary_1(0.5, 100.0, 0.01, 1000, **setting), corollary_1(0.0, 1.0, 0.01, 1e6, **setting)
    lost = lost_term(100.0, 0.01, 1.0, 4.0), lost_term(1.0, 0.01, 1.0, 4.0)
    first = exact_mean(0.5, 1, 1.0, 0.0)
    begin = corollary_1(0.5, 50.0, 0.01, 1, 1.0, 0.0, 1.0) + lost_term(50.0, 0.01, 1.0, 1.0)
    by_length = {length: exact_mean(length**-0.5, length, 0.0, 1.0) for length in (1e3, 1e4, 1e5)}
    printed = {length: corollary_1(0.0, 1.0, length**-0.5, length, **setting) for length in by_length}
    drawn = sampled_mean(1.0, 0.1, 1000, 0.0)
    return checked(
        "T8",
        [
            Case(AS_PRINTED, "η_g = 100, η_l = 0.01, T = 1000, from 1", wide, "<=", bounds[0]),
            Case(AS_PRINTED, "η_g = 1, η_l = 0.01, T = 10^6, from 0", narrow, "<=", bounds[1]),
            *(
                Case(AS_PRINTED, f"η_l = T^-1/2, T = {t:.0e}, from 0", value, "<=", printed[t])
                for t, value in by_length.items()
            ),
            Case(AS_PRINTED, "Eq. 13: square of the mean of 4 equal updates", equal_deltas_step(4), "<=", 1 / 4),
            Case(REPAIRED, "with + L η_g η_l Q G: η_g = 100, from 1", wide, "<=", bounds[0] + lost[0]),
            Case(REPAIRED, "with + L η_g η_l Q G: η_g = 1, from 0", narrow, "<=", bounds[1] + lost[1]),
            Case(REPAIRED, "with + L η_g η_l Q G: one client, one version from 1", first, "<=", begin),
            Case(ASIDE, "FedBuff, 400 chains, η_l = 0.1, T = 1000", drawn, "=", exact_mean(0.1, 1000, 0.0, 1.0), 2e-3),
        ],
    )


def gentle_parabola(global_lr: float, local_lr: float = 0.01, length: int = 1000) -> tuple[float, float]:
    """Return FedBuff's mean squared gradient over T versions on F = w²/4 with one client, and its last model."""
    server, total = started("fedbuff", vector(1.0), server_lr=global_lr), 0.0
    for version in range(length):
        total += float((server.x / 2).square())
        delta = train(server.x, lambda x, _: x / 2, local_lr, 1)
        server.receive(Update(client=0, delta=delta, start_version=version))
    return total / length, server.x.item()


def check_t9() -> Check:
    """Check T9, KUIPER's Assumption 4: ‖∇F(w) - ∇F(w')‖² ≤ L ‖w - w'‖², where the proof needs L²."""
    stuck, end = gentle_parabola(400.0)
    slower, _ = gentle_parabola(200.0)
    excess = {"excess": 0.25, "local_lr": 0.01, "length": 1000, "spread": 0.0, "largest": 0.25}
    bound = corollary_1(global_lr=400.0, smooth=0.25, **excess)
    repaired = corollary_1(global_lr=200.0, smooth=0.5, **excess)
    return checked(
        "T9",
        [
            Case(AS_PRINTED, "one client, F = w²/4, η_g η_l = 4 = 1/L", stuck, "<=", bound),
            Case(REPAIRED, "η_g η_l = 2 = 1/L with the true L = 1/2", slower, "<=", repaired),
            Case(ASIDE, "where the model is after 1,000 versions with η_g η_l = 4", end, "=", 1.0, 1e-9),
        ],
    )


def shrink_factor() -> float:
    """Return the factor by which Eq. 2, taken literally, shrinks a model that all clients return unchanged.

    The two clients of the example: c = (0.1, 0.6), staleness 0 and 2, β_t = 0.7 / √2.
    """
    server = started("kuiper", vector(1.0), buffer_size=2, kuiper_norm="literal")
    server.version = 2
    for client, (version, size, accuracy) in enumerate(((2, 100, 0.6), (0, 300, 0.2))):
        fields = {"num_samples": size, "received_accuracy": accuracy, "start": server.x}
        server.receive(Update(client, vector(0.0), version, **fields))
    return server.x.item()


def one_version(name: str, deltas: Tensor, starts: Tensor, accuracy: float, **settings: object) -> float:
    """Return the model after one buffer of clients that started from ``starts``, while the server's model is 1."""
    server = started(name, vector(1.0), buffer_size=len(deltas), **settings)
    feed(server, deltas[:, None], 0, start=list(starts[:, None]), received_accuracy=accuracy)
    return server.x.item()


def fixed_point(accuracies: tuple[float, float]) -> float:
    """Return the model at which KUIPER settles with optima -1 and 1 and no staleness, for constant accuracies."""
    server, centres = started("kuiper", vector(0.0), buffer_size=2), (vector(-1.0), vector(1.0))
    for _ in range(250):
        deltas = [train(server.x, lambda x, _, c=c: x - c, 0.1, 1) for c in centres]
        feed(server, deltas, server.version, received_accuracy=accuracies)
    return server.x.item()


def check_t10() -> Check:
    """Check T10: do KUIPER's theorem and Algorithm 1 describe the same iteration with the same limit?"""
    deltas, here, stale, beta = vector(-0.2, 0.4), vector(1, 1), vector(1, 3), 0.7
    buffered = one_version("fedbuff", deltas, here, math.nan, server_lr=beta)
    kuiper = {
        (base, accuracy): one_version("kuiper", deltas, start, accuracy, t0=None if accuracy else 0)
        for base, start in (("fresh", here), ("stale", stale))
        for accuracy in (0.0, 0.3)
    }
    literal = shrink_factor()
    return checked(
        "T10",
        [
            Case(AS_PRINTED, "one version, a burst with a stale member", kuiper["stale", 0.0], "=", buffered, 1e-12),
            Case(AS_PRINTED, "clients that return the model leave it (Eq. 2)", literal, "=", 1.0, 1e-12),
            Case(AS_PRINTED, "limit, optima -1 and 1, accuracies 0.6 and 0.2", fixed_point((0.6, 0.2)), "=", 0, 1e-6),
            Case(REPAIRED, "one version, all fresh, e = 1, renormalised", kuiper["fresh", 0.0], "=", buffered, 1e-12),
            Case(REPAIRED, "limit with equal accuracies", fixed_point((0.5, 0.5)), "=", 0, 1e-6),
            Case(ASIDE, "limit of the reweighted objective", fixed_point((0.6, 0.2)), "=", 1 / 3, 1e-6),
        ],
    )


def rates(size: int, length: float) -> dict[str, float]:
    """Return the paper's rates for bursts of K and T versions with Q = 1: η_g = K and η_l = 1 / (K √T)."""
    return {"global_lr": size, "local_lr": 1 / (size * length**0.5)}


def of_bursts(size: int, length: float, *, late: float = 8.0) -> float:
    """Return the right-hand side of Eq. 9 at the paper's rates, with optima 1 and -1, from 1, without noise.

    K and T are ``size`` and ``length``. ``late`` is τ_max,1, the largest staleness if every update made a version;
    bursts of K divide it by K.
    """
    return corollary_1(0.5, **rates(size, length), length=length, smooth=1, spread=1, largest=4, late=late / size)


def check_t14() -> Check:
    """Check T14, that KUIPER's guarantee (Eqs. 6, 10) gets better with more clients K in a burst."""
    more_versions = exact_mean(1000**-0.5, 1000, 1.0, 1 / 8) / exact_mean(8000**-0.5, 8000, 1.0, 1.0)
    drawn = [sampled_mean(**rates(size, 250), length=250, x0=0.0, size=size) for size in (8, 1)]
    return checked(
        "T14",
        [
            Case(AS_PRINTED, "Eq. 9, T = 1000: K = 8 over K = 1", of_bursts(8, 1e3) / of_bursts(1, 1e3), "<=", 1.0),
            Case(AS_PRINTED, "FedBuff, T = 250, from 0: K = 8 over K = 1", drawn[0] / drawn[1], "<=", 1.0),
            Case(ASIDE, "FedBuff: the same, exactly", drawn[0] / drawn[1], "=", 1 / 8, 0.01),
            Case(ASIDE, "Eq. 9, T = 10^9: K = 8 over K = 1", of_bursts(8, 1e9) / of_bursts(1, 1e9), "<=", 1.0),
            Case(ASIDE, "FedBuff, 8,000 updates, from 1: K = 8 over K = 1", more_versions, "<=", 1.0),
        ],
    )


def two_clients(bias: float) -> dict[str, float]:
    """Return σ_l², σ_g² and G on [-1, 1] for two clients whose samples are 1 and -1, half of them each, with Q = 1.

    A sample z has the loss ½ (w - z)². Client 0 has a share of (1 + bias)/2 of the samples 1, and client 1 that of -1.
    A client's gradient is w ∓ bias, so the variances add up to 1 at every bias.
    """
    return {"noise": 1 - bias**2, "spread": bias**2, "largest": (1 + bias) ** 2}


def of_bias(bias: float, local_lr: float = 0.01, *, repaired: bool = False) -> float:
    """Return the right-hand side of Eq. 9 for :func:`two_clients`, T = 10^6, η_g = 1, from 0; or the repaired one."""
    known = two_clients(bias)
    printed = corollary_1(0.0, 1.0, local_lr, 1e6, 1.0, **known)
    return printed + (lost_term(1.0, local_lr, 1.0, known["largest"]) if repaired else 0.0)


def gradient_variances(bias: float, clients: int = 10) -> tuple[float, float]:
    """Return σ_l² and σ_g² of softmax regression at its start, on digits that the partition ``noniid_bias`` deals out.

    σ_l² is for minibatches of one sample. Clients count by their samples.
    """
    task = TASKS.get("digits")().load()
    parts = PARTITIONS.get("noniid_bias")(bias=bias).split(task.labels.numpy(), clients, stream(0, "partition"))
    wrong = 1 / task.num_classes - one_hot(task.labels)  # all classes are equally likely at the start
    own = (wrong[:, :, None] * task.inputs.flatten(1)[:, None]).flatten(1)  # (n, d) gradient of each sample
    squares = [
        (len(part) * own[part].var(0, correction=0).sum(), len(part) * (own[part].mean(0) - own.mean(0)).square().sum())
        for part in parts
    ]
    within, between = (float(sum(part)) / len(own) for part in zip(*squares, strict=True))
    return within, between


def check_t15() -> Check:
    """Check T15, that non-IID bias increases the variances of gradients and so weakens KUIPER's guarantee."""
    (noise, spread), (noise_0, spread_0) = gradient_variances(1.0), gradient_variances(0.0)
    both = (noise + spread) / (noise_0 + spread_0)
    repaired = of_bias(1, repaired=True) / of_bias(0, repaired=True)
    exact = exact_mean(0.01, 1e6, 0, 1)
    return checked(
        "T15",
        [
            Case(AS_PRINTED, "σ_g² of digits: bias 1 over bias 0", spread / spread_0, ">=", 1.0),
            Case(AS_PRINTED, "σ_l² of digits: bias 1 over bias 0", noise / noise_0, ">=", 1.0),
            Case(AS_PRINTED, "Eq. 9, two clients, long runs: bias 1 over bias 0", of_bias(1) / of_bias(0), ">=", 1.0),
            Case(REPAIRED, "Eq. 9 with + L η_g η_l Q G: the same", repaired, ">=", 1.0),
            Case(ASIDE, "σ_l² + σ_g² of digits: bias 1 over bias 0", both, "=", 1, 1e-4),
            Case(ASIDE, "the mean squared gradient itself, bias 1, within Eq. 9", exact, "<=", of_bias(1)),
            Case(ASIDE, "the same, bias 0, where it is the same number", exact, "<=", of_bias(0)),
        ],
    )

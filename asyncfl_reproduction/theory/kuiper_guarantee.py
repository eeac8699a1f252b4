"""Checks T14 and T15: KUIPER's guarantee is said to increase with K and to weaken with non-IID bias (§3.2)."""

from __future__ import annotations

from torch.nn.functional import one_hot

from asyncfl_lite.base.streams import stream
from asyncfl_lite.tasks import TASKS
from asyncfl_lite.tasks.partitions import PARTITIONS
from asyncfl_reproduction.theory.kuiper import corollary_1, exact_mean, lost_term, sampled_mean
from asyncfl_reproduction.theory.results import AS_PRINTED, ASIDE, REPAIRED, Case, Check


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
    return Check(
        "T14",
        "KUIPER",
        "§3.2, on K (Eqs. 6, 10)",
        "With η_g growing as K and η_l falling as 1/K, the guarantee gets better with more clients in a burst.",
        (
            Case(AS_PRINTED, "Eq. 9, T = 1000: K = 8 over K = 1", of_bursts(8, 1e3) / of_bursts(1, 1e3), "<=", 1.0),
            Case(AS_PRINTED, "FedBuff, T = 250, from 0: K = 8 over K = 1", drawn[0] / drawn[1], "<=", 1.0),
            Case(ASIDE, "FedBuff: the same, exactly", drawn[0] / drawn[1], "=", 1 / 8, 0.01),
            Case(ASIDE, "Eq. 9, T = 10^9: K = 8 over K = 1", of_bursts(8, 1e9) / of_bursts(1, 1e9), "<=", 1.0),
            Case(ASIDE, "FedBuff, 8,000 updates, from 1: K = 8 over K = 1", more_versions, "<=", 1.0),
        ),
        counterexample="none for a given number of versions; for a given number of updates K = 1 may be better",
        repair="the terms with K fall as 1/T and those in T^-1/2 have none, so in a long run the bound gains nothing, "
        "though the drawn clients' variance does fall as 1/K. η_g = O(K) cannot be, as β_t ≤ 1 (T10)",
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
    return Check(
        "T15",
        "KUIPER",
        "§3.2, on bias (Eqs. 6, 10)",
        "Gradients vary more as non-IID bias increases, and this weakens the guarantee.",
        (
            Case(AS_PRINTED, "σ_g² of digits: bias 1 over bias 0", spread / spread_0, ">=", 1.0),
            Case(AS_PRINTED, "σ_l² of digits: bias 1 over bias 0", noise / noise_0, ">=", 1.0),
            Case(AS_PRINTED, "Eq. 9, two clients, long runs: bias 1 over bias 0", of_bias(1) / of_bias(0), ">=", 1.0),
            Case(
                REPAIRED,
                "Eq. 9 with + L η_g η_l Q G: the same",
                of_bias(1, repaired=True) / of_bias(0, repaired=True),
                ">=",
                1.0,
            ),
            Case(
                ASIDE,
                "σ_l² + σ_g² of digits: bias 1 over bias 0",
                (noise + spread) / (noise_0 + spread_0),
                "=",
                1,
                1e-4,
            ),
            Case(
                ASIDE,
                "the mean squared gradient itself, bias 1, within Eq. 9",
                exact_mean(0.01, 1e6, 0, 1),
                "<=",
                of_bias(1),
            ),
            Case(ASIDE, "the same, bias 0, where it is the same number", exact_mean(0.01, 1e6, 0, 1), "<=", of_bias(0)),
        ),
        counterexample="two clients with samples 1 and -1: what σ_g² gains σ_l² loses, and only σ_l² is in the leading "
        "term, so Eq. 9 falls from 0.0056 to 0.0015 while the mean squared gradient stays at 0.0050",
        repair="add L η_g η_l Q G (T8), which grows with bias; with Q = 1 and one sample a step bias changes nothing",
    )

"""Exercises of the course's third part, "Distillation": lessons 06 to 10."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from asyncfl_course.evidence import in_column
from asyncfl_course.exercises import asks_for, exercise
from asyncfl_course.expectations import Wrong, call, expect, expect_close, number, numbers, shown, word, words
from asyncfl_course.explore import predicted_staleness, staleness_weight
from asyncfl_course.records import HOLDS, PLAIN, RATE_1, TUNED
from asyncfl_lite.algorithms import FedADT, ServerContext, make_algorithm, synthesis
from asyncfl_lite.algorithms.losses import kl_divergence, labelled_distillation_loss, uncertainty_weight
from asyncfl_lite.algorithms.mixing import poly
from asyncfl_lite.base.errors import AsyncFLError
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.simulator.jobs import Update


def _tensor(*values: float | Sequence) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


# --- 06: distillation -----------------------------------------------------------------------------


def _gradient(z: Tensor, v: Tensor, temperature: float) -> Tensor:
    free = z.clone().requires_grad_()
    kl_divergence((v / temperature).softmax(-1), free / temperature).backward()
    return free.grad


def _apart(z: Tensor, v: Tensor) -> Tensor:
    return z.softmax(-1) - v.softmax(-1)


asks_for(
    "06.1", "The gradient of a softened loss", _gradient,
    cases=[
        ((_tensor(0, 1, 0), _tensor(2, 0, -1), 1.0), "at T = 1 it is the student's probabilities minus the teacher's"),
        ((_tensor(0, 1, 0), _tensor(2, 0, -1), 4.0), "both softmaxes have temperature T, and z enters as z / T"),
        ((_tensor(3, -2), _tensor(0, 0), 0.5), "T below 1 makes both sharper, and the gradient in z larger"),
        ((_tensor(1, 2, 3, 4), _tensor(6, 7, 8, 9), 2.0),
         "logits that differ by a constant give the same probabilities"),
    ],
    right="The chain rule through z/T adds one factor 1/T to the difference of outputs.",
    mistakes={
        "The chain rule's 1 / T is missing: z enters as z / T.":
            lambda z, v, T: _apart(z / T, v / T),
        "The sign is the wrong way round: it is the student's probabilities minus the teacher's.":
            lambda z, v, T: -_apart(z / T, v / T) / T,
        "Both softmaxes must be at temperature T.":
            lambda z, v, T: _apart(z, v) / T,
        "You multiply by T; the chain rule divides by it.":
            lambda z, v, T: _apart(z / T, v / T) * T,
        "The factor T² is not in this loss.":
            lambda z, v, T: _apart(z / T, v / T) * T**2 / T,
    },
)  # fmt: skip


@exercise("06.2", "From T = 10 to T = 30")
def shrinks(answer: Any) -> str:
    """Check that the answer is a factor of 8 to 10, and explain the missing 1 / T if it is near 3."""
    factor = number(answer, "Please give one number, such as 2.0.")
    if abs(factor - 3) < 0.8:
        raise Wrong(
            f"Your answer {factor:g} contains only the chain rule's 1 / T, from 10 to 30. The two distributions also "
            "come closer to each other by a factor of about 1 / T."
        )
    expect(factor >= 1, f"Your answer {factor:g} is below 1. By what factor is the gradient smaller at T = 30?")
    if not 8 <= factor <= 10:
        off = "too large" if factor > 10 else "too small"
        raise Wrong(
            f"Your answer {factor:g} for T from 10 to 30 is {off}, because there are two factors 1 / T.",
            f"Your answer {factor:g} is {off}. What factor does the chain rule give for z / T, and how far apart are "
            "the two softened distributions?",
        )
    return "One factor 1/T comes from the chain rule, the other from outputs that grow alike."


asks_for(
    "06.3", "The loud one", lambda others: 2.0 * others,
    cases=[  # FedEcho's experiments have 49 others
        ((others,), f"softmax keeps the order of logits, and each mean is over all {others + 1} clients")
        for others in (1, 9, 49)
    ],
    right="In a mean of logits, size is power: one large logit outweighs many small ones.",
    mistakes={
        "That is for one other client; the loud one must outweigh all n.":
            lambda n: 2.0,
        "The loud client need not outweigh itself: only the n others say 2.":
            lambda n: 2.0 * (n + 1),
    },
)  # fmt: skip


@exercise("06.4", "Before you run it")
def stale(answer: Any) -> str:
    """Accept guesses of at most 20 % accuracy if the update is added, and at least 75 % if it is distilled."""
    added, taught = numbers(answer, 2, "Please give two numbers in percent: (added, taught).")
    expect(min(added, taught) >= 0 and max(added, taught) <= 100, "Both are percentages, from 0 to 100.")
    expect(max(added, taught) > 1, "Both are percentages: 50 means half of the images, 0.5 means nearly none.")
    expect(
        added <= 20,
        f"Added: {added:g}% is too much. The update led from the common start to the client. From a server that has "
        "moved 300 steps it leads elsewhere, and the server's output layer has learned never to predict 7, 8 or 9.",
    )
    expect(
        taught >= 75,
        f"Taught: {taught:g}% is too little. The client's outputs are about the inputs, and the server's 300 steps "
        "have changed neither the inputs nor the outputs.",
    )
    return "An update depends on where it was computed; a prediction does not."


# --- 07: FedEcho ----------------------------------------------------------------------------------


@exercise(
    "07.1", "Who has how much say?",
    mistakes={  # one client's weight
        "You weigh by the number of reports, as a buffer does; the store keeps one set of predictions per client.":
            lambda reports, client: reports.count(client) / len(reports),
    },
)  # fmt: skip
def say(answer: Any) -> str:
    """Check that each client has the same weight, however often and in whatever order it reported."""
    for reports in ([3, 3, 5], [7], [0, 1, 0, 2, 0, 0, 0, 4], [4, 0, 0, 0, 0, 0, 0, 0, 0, 0]):
        given = call(answer, reports)
        expect(isinstance(given, dict), f"say({reports}) gives {shown(given)}, not a dictionary from client to weight.")
        heard = set(reports)
        expect(
            set(given) == heard, f"say({reports}) gives {shown(given)}. Each client that reported is in the store once."
        )
        for client in sorted(heard):
            because = "a new report replaces the client's old one"
            weight = f"The weight of client {client} after {reports}"
            expect_close(given[client], None, 1 / len(heard), because=because, called=weight, of=(reports, client))
    return "The store keeps one row per client, so it counts clients and not reports."


def _certainty(p: Tensor) -> Tensor:
    return -torch.xlogy(p, p).sum(-1) / math.log(p.shape[-1])


asks_for(
    "07.2", "The mixing weight", uncertainty_weight,
    cases=[
        ((_tensor([0.6, 0.3, 0.1]), 0.2, 0.8), "use natural logarithms, and divide the entropy by log C"),
        ((_tensor([0.25, 0.25, 0.25, 0.25]), 0.2, 0.8),
         "equal probabilities have the largest entropy, so the weight is high"),
        ((_tensor([1.0, 0.0, 0.0]), 0.2, 0.8), "a teacher that is certain has entropy 0, and 0 log 0 counts as 0"),
        ((_tensor([0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]), 0.0, 1.0),
         "the batch has one weight, from the mean over rows"),
    ],
    right="The less sure the teacher is, the more its soft targets count.",
    mistakes={
        "Divide the entropy by log C, so that it lies between 0 and 1.":
            lambda p, low, high: low + (high - low) * -torch.xlogy(p, p).sum(-1).mean(),
        "The ends are the wrong way round: an unsure teacher gets the high weight.":
            lambda p, low, high: high + (low - high) * _certainty(p).mean(),
        "The whole batch has one weight: take the mean over its rows.":
            lambda p, low, high: low + (high - low) * _certainty(p),
        "A probability of 0 gives 0 log 0, which is NaN here; torch.xlogy makes it 0.":
            lambda p, low, high: math.nan if (p == 0).any() else None,
    },
)  # fmt: skip


def _echo(
    W: Tensor, buffer: list, store: dict, inputs: Tensor, lr: float,
    *, base: str = "start", student: str = "moved", heard: str = "all", mean: str = "logits",
) -> Tensor:  # fmt: skip
    """Return the model after one version of FedEcho with one deliberate mistake."""
    moved = W + sum(delta for _, _, delta in buffer) / len(buffer)
    said = dict(store)
    for client, start, delta in buffer:
        said[client] = inputs @ ((start if base == "start" else W) + delta).T
    votes = torch.stack([said[client] for client in said if heard == "all" or client in {one for one, *_ in buffer}])
    p = votes.softmax(-1).mean(0) if mean == "probabilities" else votes.mean(0).softmax(-1)
    alpha = uncertainty_weight(p, 0.2, 0.8)
    target = alpha * p + (1 - alpha) * one_hot(p.argmax(-1), p.shape[-1])
    error = (inputs @ (moved if student == "moved" else W).T).softmax(-1) - target
    return moved - lr * error.T @ inputs / len(inputs)


@exercise(
    "07.3", "One version of FedEcho",
    mistakes={
        "Predictions are those of the client's own model: start + delta, not W + delta.":
            lambda *known: _echo(*known, base="W"),
        "The step starts from the model after the mean delta, not from W, so take the gradient there.":
            lambda *known: _echo(*known, student="W"),
        "The teacher is the mean over everybody in the store, not only over the clients in the buffer.":
            lambda *known: _echo(*known, heard="buffer"),
        "Average the logits first, then take softmax.":
            lambda *known: _echo(*known, mean="probabilities"),
    },
)  # fmt: skip
def version(answer: Any) -> str:
    """Compare the answer with the package's FedEcho server over three versions, with stale and repeated reports."""
    classes, width, samples, lr = 3, 2, 7, 0.5
    inputs = torch.randn(samples, width, dtype=torch.float64, generator=torch.manual_seed(0))
    deltas = torch.randn(6, classes, width, dtype=torch.float64, generator=torch.manual_seed(1))
    server = _server(inputs, classes, lr)
    past = [torch.zeros(classes, width, dtype=torch.float64)]
    turns = [  # (client, the version that it began with) twice, and a hint
        ([(0, 0), (1, 0)], "the student is the model after the mean delta, and the gradient is a mean over inputs"),
        ([(2, 0), (0, 1)], "client 2 began at an older version, and client 1 teaches although it is not in the buffer"),
        ([(1, 1), (1, 2)], "client 1 reports twice, both deltas count, and only its latest predictions are stored"),
    ]
    for turn, (reports, because) in enumerate(turns):
        store = {client: logits.clone() for client, logits in server.logits.items()}
        own = deltas[2 * turn : 2 * turn + 2]
        buffer = [(client, past[start], delta) for (client, start), delta in zip(reports, own, strict=True)]
        for (client, start), delta in zip(reports, own, strict=True):
            server.receive(Update(client=client, delta=delta.flatten(), start_version=start))
        known = dict(store)
        given = call(answer, past[-1].clone(), buffer, store, inputs, lr)
        wanted = server.x.view(classes, width).clone()
        expect_close(given, None, wanted, called=f"Version {turn + 1}, after reports {reports},", because=because,
                     of=(past[-1], buffer, known, inputs, lr))  # fmt: skip
        past.append(wanted)
    return "First store, then add, then distil: the student is the model after the mean update."


def _server(inputs: Tensor, classes: int, lr: float) -> Any:
    """Return a FedEcho server for a linear model; after every two reports it takes one SGD step on all inputs."""
    model = VectorModel(torch.nn.Linear(inputs.shape[1], classes, bias=False, dtype=inputs.dtype))
    settings = {"distill_opt": "sgd", "distill_lr": lr, "distill_unit": "steps", "distill_q": 1, "clip": None}
    server = make_algorithm("fedecho", buffer_size=2, distill_batch_size=len(inputs), **settings)
    zero = torch.zeros(classes * inputs.shape[1], dtype=inputs.dtype)
    server.start(zero, ServerContext(model, 3, np.random.default_rng(0), lambda name, count: inputs))
    return server


# --- 08: FedEcho's evidence -----------------------------------------------------------------------


PHOTOGRAPHS = "fedecho/photographs/large-dir0.1"


@exercise(
    "08.1", "The lead over the best other",
    mistakes={
        "Your own rows are among the rivals: leave them out before you take the best.":
            lambda table, ours: (table.loc[ours] - table.max()).to_numpy(),
        "You subtract the mean of the others; the claim is about the best of them.":
            lambda table, ours: (table.loc[ours] - table.drop(index=ours).mean()).to_numpy(),
        "You subtract one fixed row; the best rival may be another one in each column.":
            lambda table, ours: (table.loc[ours] - table.iloc[0]).to_numpy(),
    },
)  # fmt: skip
def lead(answer: Any) -> str:
    """Check the leads for several rivals, for a method that is behind, and for rows in a different order."""
    table = pd.DataFrame({"a": [50.0, 60.0, 75.0, 74.0], "b": [70.0, 40.0, 69.0, 71.0]}, index=["F", "G", "E1", "E2"])
    cases = [
        (table, ["E1", "E2"], "each column may have a different best rival, and E1 and E2 are not rivals"),
        (table, ["F"], "if ours is below the best other row, the lead is negative"),
        (table[["b"]].iloc[::-1], ["E2", "E1"], "rows and columns are found by name, not by position"),
    ]
    for place, (given, ours, because) in enumerate(cases, start=1):
        where = f"table {place}, rows {given.index.tolist()}, columns {given.columns.tolist()}, ours {ours}: {because}"
        found = call(answer, given.copy(), list(ours))
        expect(isinstance(found, pd.DataFrame), f"lead gives a {type(found).__name__}, not a DataFrame; {where}.")
        named = set(found.index) == set(ours) and set(found.columns) == set(given.columns)
        expect(named, f"lead gives rows {found.index.tolist()}, columns {found.columns.tolist()}; {where}.")
        wanted = (given.loc[ours] - given.drop(index=ours).max()).to_numpy()
        expect_close(found.loc[ours, given.columns].to_numpy(), None, wanted, called="The lead", because=where,
                     of=(given, list(ours)))  # fmt: skip
    return "A method's own variants are no rivals, and the best rival may differ from column to column."


@exercise("08.2", "Was it deaf?")
def is_deaf(answer: Any) -> str:
    """Check the answer for a control that works, plain FedEcho, two faulty stores and a run that ends too soon."""
    heard = [{1}, {1, 2}, {1, 2, 9}, {1, 2, 3, 9}]
    cases = [
        ("a control that works", [{1}, {1, 2}, {1, 2}, {1, 2, 3}], heard, {8, 9}, True, "only stragglers are missing"),
        ("plain FedEcho", heard, heard, {8, 9}, False, "client 9, a straggler, is stored from the third version on"),
        ("a store that is always empty", [set()] * 4, heard, {8, 9}, False, "clients 1, 2 and 3 are also missing"),
        ("one that forgot client 1", [{1}, {1, 2}, {2}, {2, 3}], heard, {8, 9}, False, "client 1 is not a straggler"),
        ("a run that ended too soon", heard[:2], heard[:2], {8, 9}, False, "no straggler reports, so it shows nothing"),
    ]
    for name, stored, so_far, stragglers, wanted, because in cases:
        copies = [set(one) for one in stored], [set(one) for one in so_far], set(stragglers)
        given = bool(call(answer, *copies))
        inputs = f"stored {stored}, heard {so_far}, stragglers {stragglers}"
        expect(given == wanted, f"For {name} ({inputs}) is_deaf gives {given}, expected {wanted}: {because}.")
    return "A control must show that it shut out the stragglers, all of them, and nobody else."


@exercise("08.3", "And on photographs?")
def above_fedbuff(answer: Any) -> str:
    """Compare the answer with the recorded results, and name the column that it gets wrong."""
    plain = PLAIN[RATE_1]
    named = {"plain": {plain}, TUNED: {TUNED}, "both": {plain, TUNED}, "neither": set()}
    said = word(answer, named, f"One of {', '.join(named)} is expected, not {shown(answer)}.")
    for column in (plain, TUNED):
        recorded = in_column("fedecho", column, "real")
        found = recorded.above(f"{PHOTOGRAPHS}/fedecho-natural", f"{PHOTOGRAPHS}/fedbuff")
        if (column in named[said]) != (found.verdict == HOLDS):
            looks = "On digits tuning took the lead away. What differs here, and does it matter?"
            raise Wrong(f"Not {said!r}. {column}: {found.detail}: {found.verdict}.", f"Not {said!r}. {looks}")
    return "Most of the lead was plain FedBuff's own setting, as on digits. But here a part of it stays."


# --- 09: FedADT -----------------------------------------------------------------------------------


@exercise("09.1", "How late, and how light")
def late_and_light(answer: Sequence[float]) -> str:
    """Check the mean staleness for a target of 200 clients in flight, and the weight that follows from it."""
    wanted = predicted_staleness("refill", 200, 1)
    age, weight = numbers(answer, 2, f"Please give two numbers, (staleness, beta); this is {shown(answer)}.")
    if abs(age - wanted) >= 10:
        hint = (
            "groups of 100 are sent when fewer than 200 are in flight, so think of the mean between the fewest and the "
            "most in flight"
        )
        raise Wrong(
            f"Your staleness is {age:g}, expected about {wanted:g} for a target of 200 clients: {hint}.",
            f"Your staleness {age:g} is too {'large' if age > wanted else 'small'}: {hint}.",
        )
    expect_close(
        weight, None, poly(age), atol=2e-3, because="beta is one over the square root of staleness plus one",
        called="Your beta",
    )  # fmt: skip
    return "While one client trains, each of the others in flight makes a version, so staleness is their number."


def _shares(taus: Sequence[int]) -> list[float]:
    found = [1.0]
    for tau in taus:
        found = [(1 - poly(tau)) * share for share in found] + [poly(tau)]
    return found


asks_for(
    "09.2", "Whose model is the global one?", _shares,
    cases=[
        ((taus,), "an arrival multiplies every older share, even the initial one, by 1 - beta")
        for taus in ([0], [3], [8, 3], [0, 1, 3], [5, 0, 99], [99] * 4, [])
    ],
    right="Each arrival takes its share from all before it, so a fresh one wipes out everything older.",
    mistakes={
        "Later arrivals shrink the shares of earlier ones, too, not only the initial model's.":
            lambda taus: [1 - sum(map(poly, taus)), *map(poly, taus)],
        "The share of the initial model is missing at the beginning.":
            lambda taus: _shares(taus)[1:],
    },
)  # fmt: skip


def _labelled(z_C: Tensor, z_S: Tensor, y: Tensor, alpha: float, T: float, **other: Any) -> Tensor:
    """Return FedADT's loss with one deliberate mistake."""
    teacher, student = (z_C / T, z_S / T) if other.get("turned") else (z_S / T, z_C / T)
    kl = kl_divergence(teacher.softmax(-1), student)
    ce = cross_entropy(z_C / T if other.get("softened") else z_C, y, reduction="none")
    losses = alpha * other.get("times", 1) * kl + (1 - alpha) * ce
    return losses.sum() if other.get("summed") else losses.mean()


_SEED_0 = torch.Generator().manual_seed(0)


def _batch(rows: int, alpha: float, temperature: float) -> tuple[Tensor, Tensor, Tensor, float, float]:
    z_C, z_S = (torch.round(3 * torch.randn(rows, 3, generator=_SEED_0)).double() for _ in range(2))
    return z_C, z_S, torch.randint(3, (rows,), generator=_SEED_0), alpha, temperature


asks_for(
    "09.3", "Equation 7 for a batch",
    lambda z_C, z_S, y, alpha, T: labelled_distillation_loss(z_C, z_S, y, alpha, temperature=T),
    cases=[
        (_batch(1, 0.0, 3.0), "with alpha = 0 only the label's cross entropy is left, which does not use T"),
        (_batch(1, 1.0, 3.0),
         "with alpha = 1 only the divergence is left, from the teacher to the student, both softened by T, not "
         "multiplied by T²"),
        (_batch(1, 0.3, 3.0), "alpha weights the divergence, and 1 - alpha the cross entropy"),
        (_batch(4, 0.6, 2.0), "take the mean over the batch"),
        ((_tensor([900, 0, 0]), _tensor([0, 0, 0]), torch.tensor([1]), 0.5, 1.0),
         "take log_softmax, not log of softmax"),
    ],
    right="Only the teacher's term is softened, so a high temperature weakens the teacher and not the label.",
    mistakes={
        "You softened the cross entropy as well; the label's term does not use T.":
            lambda *known: _labelled(*known, softened=True),
        "The divergence is the wrong way round: it goes from the teacher to the student.":
            lambda *known: _labelled(*known, turned=True),
        "You multiplied by T²; Equation 7 has no such factor.":
            lambda *known: _labelled(*known, times=known[4] ** 2),
        "You took the sum; the mean over the batch is asked for.":
            lambda *known: _labelled(*known, summed=True),
    },
)  # fmt: skip


@exercise("09.4", "Take the teacher out, and nothing else")
def without_teacher(answer: Callable) -> str:
    """Check that the answer removes the teacher's term but keeps the length of the labels' gradient step."""
    for rate, weight in ((0.3, 0.6), (0.1, 0.2), (0.03, 0.0), (0.3, 1.0)):
        given: Any = call(answer, rate, weight)
        where = f"control({rate:g}, {weight:g}) gives {shown(given)}"
        needed = {"alpha_min", "alpha_max", "kd_lr"}
        expect(isinstance(given, dict) and set(given) == needed, f"{where}; a dictionary of {', '.join(sorted(needed))}"
               " is asked for.")  # fmt: skip
        try:
            server = FedADT(**given)
        except AsyncFLError as error:
            raise Wrong(f"{where}, which FedADT does not take: {error}") from None
        most = max(server.kl_weight(0), server.kl_weight(10**6))
        expect(most == 0, f"{where}: the teacher still has the weight {most:g} in the loss.")
        before, after = rate * (1 - weight), float(server.settings.kd_lr)
        expect(
            abs(before - after) < 1e-9,
            f"{where}: a label's step was {rate:g} · {1 - weight:g} = {before:g} long, and is now {after:g}. A"
            " difference may then come from the labels.",
        )
    return "Without the teacher a label has the whole weight, so the rate must shrink to keep its step as long."


# --- 10: FedRevive --------------------------------------------------------------------------------


def _arrival(x: Tensor, delta: Tensor, distilled: Tensor, tau: int, lr: float, s_max: float) -> Tensor:
    beta = staleness_weight("fedrevive", beta_family="cosine", s_max=s_max)(tau)
    return x + lr * ((1 - beta) * delta + beta * distilled)


def _beta(tau: float, s_max: float, *, held: bool = True) -> float:
    return 0.5 * (1 - math.cos(math.pi * (min(tau, 2 * s_max) if held else tau) / (2 * s_max)))


_PARTS = _tensor(1, 0), _tensor(0, 0.8), _tensor(0.2, -0.2)

asks_for(
    "10.1", "One arrival", _arrival,
    cases=[
        ((*_PARTS, 0, 0.1, 75.0),
         "a fresh update has beta 0, so the server takes all of it and nothing of the distilled one"),
        ((*_PARTS, 50, 0.1, 75.0),
         "beta(50) is 1/4 and weighs the distilled part; the client's part has weight 3/4"),
        ((*_PARTS, 200, 0.1, 75.0), "beyond 2 s_max beta stays at 1; the cosine must not turn back"),
        ((*_PARTS, 2, 0.1, 2.0), "beta is 1/2 at s_max, for every s_max"),
    ],
    right="The staler an update, the more of the step comes from what the teachers say about the model of today.",
    mistakes={
        "The weights are swapped: beta weighs the distilled part, and the client's has 1 − beta.":
            lambda x, d, k, tau, lr, s: x + lr * (_beta(tau, s) * d + (1 - _beta(tau, s)) * k),
        "The cosine turns back: hold the staleness at 2 s_max.":
            lambda x, d, k, tau, lr, s: x + lr * ((1 - _beta(tau, s, held=False)) * d + _beta(tau, s, held=False) * k),
        "The learning rate multiplies both parts; you left it out of the distilled one.":
            lambda x, d, k, tau, lr, s: x + lr * (1 - _beta(tau, s)) * d + _beta(tau, s) * k,
        "The learning rate is missing.":
            lambda x, d, k, tau, lr, s: x + (1 - _beta(tau, s)) * d + _beta(tau, s) * k,
    },
)  # fmt: skip


@exercise("10.2", "Eight times quicker")
def eight_times_quicker(answer: Sequence[str]) -> str:
    """Check a guess about how staleness and beta change if all delays are about eight times shorter."""
    allowed = ("up", "down", "same")
    asked = f"Please give two words of {', '.join(allowed)} as (staleness, beta); this is {shown(answer)}."
    said = words(answer, 2, allowed, asked)
    if said[0] != "same":
        raise Wrong(
            f"You say {said[0]!r} for staleness, but staleness counts versions. 100 clients stay in flight, so 99"
            " others make a version while one trains, however long that takes.",
            "Staleness: does it count time or versions, and how many clients are in flight?",
        )
    if said[1] != "up":
        raise Wrong(
            f"You say {said[1]!r} for beta. But nearly fresh updates, with beta near 0, become rarer, and so do very"
            " late ones, with beta 1. More updates lie in between, where beta is steep.",
            "Beta: draw it over staleness. The spread shrinks on both sides; on which side does beta change more?",
        )
    return "Staleness counts versions, so its mean stays; its shape changes, and with it the mean of beta."


_SEED_1 = torch.Generator().manual_seed(1)
_OMEGA = _tensor([0.875, 0.4, 1 / 7], [0.125, 0.6, 6 / 7])
_WRONG_TOGETHER, _HALF_SURE = _tensor([[0, 4, 0]], [[0, 3, 0]]), _tensor([0, 1, 0])


def _drawn(*shape: int) -> Tensor:
    return torch.round(3 * torch.randn(shape, generator=_SEED_1)).double()


def _adversarial(t: Tensor, s: Tensor, y: Tensor, omega: Tensor, mask: Tensor | float = 1.0) -> Tensor:
    return -(omega[:, y] * mask * kl_divergence(t.softmax(-1), s)).sum(0).mean()


asks_for(
    "10.3", "The adversarial term", synthesis.adversarial_loss,
    cases=[
        ((_WRONG_TOGETHER, _HALF_SURE, torch.tensor([0]), _OMEGA),
         "the mask compares teacher and student with each other, not with the label; the term is negative"),
        ((_WRONG_TOGETHER, -_HALF_SURE, torch.tensor([1]), _OMEGA),
         "where teacher and student disagree, the term is 0"),
        ((_drawn(2, 4, 3), _drawn(4, 3), torch.tensor([0, 1, 2, 1]), _OMEGA),
         "sum over the teachers, mean over the inputs, KL from the teacher to the student"),
    ],
    right="It looks for images on which the teachers are sure of a class and the student only leans towards it.",
    mistakes={
        "The mask is missing: where teacher and student disagree, nothing counts.":
            _adversarial,
        "The sign is missing: the generator is rewarded where the two differ.":
            lambda t, s, y, omega: -_adversarial(t, s, y, omega, t.argmax(-1) == s.argmax(-1)),
        "Your mask compares with the label; it should ask whether teacher and student name the same class.":
            lambda t, s, y, omega: _adversarial(t, s, y, omega, t.argmax(-1) == y),
    },
)  # fmt: skip


def _moments(features: Tensor, correction: int = 0) -> Tensor:
    return torch.stack([features.mean(1), features.var(1, correction=correction)], dim=1)


def _norms(difference: Tensor) -> Tensor:
    return torch.linalg.vector_norm(difference, dim=-1).sum(-1)


_BY_HAND, _STORED = _tensor([[2, -1], [6, -3]]), _tensor([[1, 2], [4, 5]])

asks_for(
    "10.4", "The feature term", lambda f, real, y, omega: synthesis.feature_loss([_moments(f)], real, y, omega),
    cases=[
        ((_BY_HAND, _STORED, torch.tensor([0, 1]), torch.ones_like(_OMEGA[:1])),
         "the means are off by (3, -4), the variances by (0, -4): 5 + 4, with variances that divide by the number of "
         "inputs"),
        ((_BY_HAND.expand(2, 2, 2), _STORED.expand(2, 2, 2), torch.tensor([0, 1]), _OMEGA),
         "each teacher counts with the mean of its weights on the labels of the batch"),
        ((_drawn(2, 5, 3), _drawn(2, 2, 3), torch.tensor([0, 1, 2, 2, 1]), _OMEGA),
         "one norm for the means and one for the variances of each teacher, not squared"),
    ],
    right="Images look like data if they excite a layer as the client's own data did, in mean and in variance.",
    mistakes={
        "Your variance divides by B − 1; stored variances divide by B (correction=0).":
            lambda f, real, y, omega: (omega[:, y].mean(-1) * _norms(_moments(f, 1) - real)).sum(),
        "The norms are not squared here.":
            lambda f, real, y, omega: (omega[:, y].mean(-1) * (_moments(f) - real).square().sum((-2, -1))).sum(),
        "The teachers' weights are missing: each counts with the mean of its omega on the batch's labels.":
            lambda f, real, y, omega: _norms(_moments(f) - real).sum(),
    },
)  # fmt: skip

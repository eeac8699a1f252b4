"""The content of each method's diagram, after the method's class and paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from board import Board, Place, at

from asyncfl_course.explore.schedules import staleness_weight

STEPS_FROM, STEP = 356.0, 24.0
"""Vertical position of the first step's words, and distance to the next step's, in pixels."""

CLIENTS = tuple(Place(16, y, 132, 68) for y in (76, 158, 240))
SERVER = Place(284, 76, 464, 240)
DISPATCH, REPORT = 166.0, 190.0
"""Horizontal positions of the line to all clients and of the line from all clients."""

SLOW = 2


class Drawing(NamedTuple):
    """A method's diagram.

    Attributes:
        idea: what the method does, in one line.
        steps: the steps in order, one line each.
        draw: function that draws clients, server and arrows.
        against: the method that it is compared with.
        sentence: what the page says about the method, if the drawing has room only for a shorter idea.
    """

    idea: str
    steps: tuple[str, ...]
    draw: Callable[[Board], None]
    against: str = "fedbuff"
    sentence: str = ""


# Durations of the jobs of a fast, a medium and the slow client, as shares of the strip of time.
ASYNCHRONOUS = ((0.16, 0.2, 0.14, 0.18, 0.16, 0.16), (0.3, 0.36, 0.34), (1.0,))
WAITS_LONG = ((0.2, -0.5, 0.22, -0.08), (0.38, -0.32, 0.3), (0.7, 0.3))
"""A negative number means that the client waits."""
WAITS_FOR_BURST = ((0.18, -0.2, 0.2, -0.16, 0.2, -0.06), (0.38, 0.36, 0.26), (1.0,))


def _clients(
    board: Board,
    *,
    sent: str = "x_t",
    reported: str = "Δ_i",
    jobs: Sequence[Sequence[float]] = ASYNCHRONOUS,
    waits_are_new: bool = False,
    notes: Sequence[str] = ("", "", "arrives stale"),
    new_notes: bool = False,
    sent_new: bool = False,
    reported_new: bool = False,
) -> None:
    """Draw three clients, the lines to and from them, and the server's frame."""
    for client, (place, name) in enumerate(zip(CLIENTS, ("client A", "client B", "client C: slow"), strict=True)):
        board.frame(place, dashed=client == SLOW)
        board.text(name, place.x + 8, place.y + 18, inside=place, bold=client == SLOW)
        start, span = place.x + 8, place.width - 16
        for job in jobs[client]:
            wide = abs(job) * span
            bar = Place(start, place.y + 26, wide - 2, 12)
            board.bar(bar, waits=job < 0, new=job < 0 and waits_are_new)
            start += wide
        if notes[client]:
            board.note(Place(place.x + 4, place.y + 43, place.width - 8, 19), notes[client], new=new_notes)
    board.frame(SERVER)
    board.text("server", SERVER.x + SERVER.width, SERVER.y - 5, anchor="end", size=12, colour="#4b5563")
    board.text("time →", CLIENTS[0].x, 331, size=12, colour="#4b5563")
    model, entry = at(0, 0), at(0, 2)
    y = model.y + 20
    board.line((model.x, y), (DISPATCH, y), head=False, new=sent_new)
    board.line((DISPATCH, CLIENTS[0].y + 20), (DISPATCH, CLIENTS[2].y + 20), head=False, new=sent_new)
    for place in CLIENTS:
        board.line((DISPATCH, place.y + 20), (place.x + place.width, place.y + 20), new=sent_new)
    out = CLIENTS[2].y + 50
    board.line((REPORT, CLIENTS[0].y + 50), (REPORT, out), head=False, new=reported_new)
    for place in CLIENTS:
        board.line(
            (place.x + place.width + 2, place.y + 50), (REPORT, place.y + 50), head=False, new=reported_new, over=True
        )
    board.line((REPORT, out), (entry.x, out), new=reported_new)
    board.circle(1, 186, y - 12)
    board.text(sent, 200, y - 7)
    board.circle(2, 204, out - 14)
    board.text(reported, 217, out - 9)


def _model(board: Board, *, new: bool = False) -> Place:
    return board.box(at(0, 0), "global model", "x_{t+1}", new=new)


def _buffer_and_mean(
    board: Board, *, new: bool = False, lead_on: bool = True, rated: bool = True, number: int | None = 3
) -> None:
    """Draw FedBuff's server: buffer, mean and model; without ``rated``, the rate η belongs to an optimiser's step."""
    model = _model(board)
    words = ("mean of the M,", "times η") if rated else ("mean of the M",)
    mean = board.box(at(0, 1), *words, new=new, number=number)
    buffer = board.slots(at(0, 2), "buffer of size M", ("Δ", "Δ", "Δ"), new=new)
    board.line(buffer.top, mean.bottom, new=new)
    if lead_on:
        board.line(mean.top, model.bottom, new=new)
    board.text("when full", mean.bottom[0] + 8, 242, size=12, colour="#4b5563")


def _round_and_mean(
    board: Board, *, new: bool = False, lead_on: bool = True, rated: bool = True, number: int | None = 3
) -> None:
    """Draw FedAvg's server: a round's updates, mean by size, and model; ``rated`` as in :func:`_buffer_and_mean`."""
    model = _model(board)
    words = ("mean by size n_i,", "times η") if rated else ("mean", "by size n_i")
    mean = board.box(at(0, 1), *words, new=new, number=number)
    updates = board.slots(at(0, 2), "round's updates", ("Δ_A", "Δ_B", "Δ_C"), new=new)
    board.line(updates.top, mean.bottom, new=new)
    if lead_on:
        board.line(mean.top, model.bottom, new=new)
    board.text("when all are in", mean.bottom[0] + 8, 242, size=12, colour="#4b5563")


def _formula(board: Board, *lines: str, y: float = 200) -> None:
    """Write a method's update rule in large type, in the free part of the server's frame."""
    for row, line in enumerate(lines):
        board.text(line, 590, y + 26 * row, size=16, anchor="middle", inside=SERVER)


def _fedavg(board: Board) -> None:
    _clients(
        board, reported="Δ_i, n_i", jobs=WAITS_LONG, waits_are_new=True, notes=("waits", "waits", "all wait for it")
    )
    _round_and_mean(board, new=True)
    _formula(board, "x_{t+1} = x_t + η Σ n_iΔ_i / Σ n_j", "staleness τ = 0, always")


def _fedprox(board: Board) -> None:
    _clients(
        board, reported="Δ_i, n_i", jobs=WAITS_LONG, notes=("+ μ/2·‖w−x_t‖²",) * 3, new_notes=True, 
    )  # fmt: skip
    _round_and_mean(board)
    _formula(board, "a client minimises", "F_i(w) + μ/2 · ‖w − x_t‖^2", "μ = 0 is FedAvg")


def _fedavgm(board: Board) -> None:
    _clients(board, reported="Δ_i, n_i", jobs=WAITS_LONG, notes=("", "", ""))
    _round_and_mean(board, lead_on=False, rated=False)
    _optimiser(board, ("velocity", "v ← β v + mean Δ"), ("v, kept for", "the whole run"), "+ η v")


def _fedadam(board: Board) -> None:
    _clients(board, reported="Δ_i, n_i", jobs=WAITS_LONG, notes=("", "", ""))
    _round_and_mean(board, lead_on=False, rated=False)
    _optimiser(board, ("Adam's step", "m / (√v + ε)"), ("m and v, kept for", "the whole run"), "+ η m / (√v + ε)")


def _optimiser(board: Board, step: Sequence[str], kept: Sequence[str], added: str) -> None:
    """Draw a server's optimiser between the mean and the model."""
    box = board.box(at(1.75, 1), *step, new=True, number=4)
    store = board.store(at(1.75, 2), *kept, new=True)
    x = box.top[0] - 30
    board.line((x, store.y), (x, box.bottom[1]), new=True)
    board.line((x + 60, box.bottom[1]), (x + 60, store.y), new=True)
    mean, model = at(0, 1), at(0, 0)
    board.line(mean.right, box.left)
    board.text("mean Δ", (mean.right[0] + box.x) / 2, mean.right[1] - 8, anchor="middle")
    board.line(box.top, (box.top[0], model.right[1]), model.right, new=True)
    board.text(added, (model.right[0] + box.top[0]) / 2, model.right[1] - 8, anchor="middle")


def _oort(board: Board) -> None:
    _clients(
        board, reported="Δ_i, n_i, loss", jobs=((0.2, -0.22, 0.22, -0.16, 0.2), (0.42, 0.36, 0.22), (0.8,)),
        notes=("chosen again", "", "chosen less often"), new_notes=True, sent_new=True,
    )  # fmt: skip
    model, choice = at(1.2, 0), at(0, 0)
    board.box(choice, "choose clients", "for the round", new=True, number=4)
    board.box(model, "global model", "x_{t+1}")
    board.line(model.left, choice.right)
    store = board.store(at(0, 1), "each client's loss", "and duration", new=True, number=3)
    board.line(store.top, choice.bottom, new=True)
    updates = board.slots(at(0, 2), "round's updates", ("Δ_A", "Δ_B", "Δ_C"))
    board.line(updates.top, store.bottom, new=True)
    mean = board.box(at(1.2, 2), "mean by size n_i,", "times η")
    board.line(updates.right, mean.left)
    board.line(mean.top, model.bottom)
    board.text("score =", 566, 190, inside=SERVER)
    board.text("(loss + age) × speed", 566, 208, inside=SERVER)


def _fedasync(board: Board) -> None:
    _clients(board)
    _mixing(board, "α_t")
    _weights(board, staleness_weight("fedasync"), "α_t = α · s(τ)", 1.0)


def _mixing(board: Board, weight: str) -> None:
    """Draw a server that mixes a client's model into the global one at every arrival."""
    model = _model(board)
    mix = board.box(at(0, 1), f"(1 − {weight}) x_t", f"+ {weight} x_i", new=True, number=4)
    arrived = board.box(at(0, 2), "client's model", "x_i = x_{t−τ} + Δ_i", new=True, number=3)
    board.line(arrived.top, mix.bottom, new=True)
    board.line(mix.top, model.bottom, new=True)


def _weights(
    board: Board, weight: Callable[[int], float], title: str, top: float, most: int = 20, place: Place | None = None
) -> None:
    """Draw a weight as a curve over staleness."""
    place = place or Place(500, 130, 190, 130)
    board.curve(place, lambda tau: weight(tau), most, top, title, f"staleness τ, 0 to {most}")


def _fedasmu(board: Board) -> None:
    _clients(board, notes=("", "", "merges it half-way"), new_notes=True)
    _mixing(board, "α")
    model, slow, between = at(0, 0), CLIENTS[2], 206.0
    y, ends = model.y + 40, slow.y + 9
    board.line((model.x, y), (between, y), (between, ends), (slow.x + slow.width, ends), new=True, over=True)
    board.text("half-way:", between + 7, 190, size=12)
    board.text("newest x_g", between + 7, 206, size=12)
    _formula(board, "α = μξ / (1 + μξ)", "ξ = λ / (√t · (τ+1)^σ) + ι", y=190)


def _fedbuff(board: Board) -> None:
    _clients(board)
    _buffer_and_mean(board, new=True)
    _formula(board, "x_{t+1} = x_t + η · (1/M) Σ Δ_i", y=120)
    _version_axis(board)


def _version_axis(board: Board) -> None:
    """Draw the versions made while a slow client trains, which staleness counts."""
    left, top, wide = 470.0, 170.0, 250.0
    board.text("job of C, from v_0", left, top + 4, size=12, inside=SERVER)
    board.bar(Place(left, top + 12, wide * 0.82, 14))
    for version, share in enumerate((0.0, 0.22, 0.47, 0.7)):
        x = left + wide * share
        board.line((x, top + 34), (x, top + 62), head=False, new=True)
        board.text(f"v_{version}", x + 4, top + 58, size=12, inside=SERVER)
    board.line((left, top + 70), (left + wide, top + 70))
    board.text("time", left + wide, top + 88, size=12, anchor="end", inside=SERVER)
    board.text("arrives 3 versions late: τ = 3", left, top + 110, inside=SERVER)


def _ca2fl(board: Board) -> None:
    _clients(board)
    model = _model(board)
    step = board.box(at(0, 1), "h + mean of M,", "times η", new=True, number=4)
    buffer = board.slots(at(0, 2), "corrections", ("Δ−h", "Δ−h", "Δ−h"), new=True, number=3)
    store = board.store(at(1.75, 2), "every client's", "latest update h_i", new=True)
    mean = board.box(at(1.75, 1), "mean over all N:", "h", new=True)
    board.line(buffer.top, step.bottom, new=True)
    board.line(step.top, model.bottom)
    board.text("when full", step.bottom[0] + 8, 242, size=12, colour="#4b5563")
    board.line(store.top, mean.bottom, new=True)
    board.line(mean.left, step.right, new=True)
    board.text("for absent clients", (mean.x + step.right[0]) / 2, step.right[1] - 8, anchor="middle")
    board.line((store.x, store.y + 16), (buffer.right[0], store.y + 16), new=True)
    board.text("h_i, to subtract", (store.x + buffer.right[0]) / 2, store.y + 9, anchor="middle", size=12)
    board.line((buffer.right[0], store.y + 40), (store.x, store.y + 40), new=True, dashed=True)
    board.text("then h_i ← Δ_i", (store.x + buffer.right[0]) / 2, store.y + 57, anchor="middle", size=12)


def _fadas(board: Board) -> None:
    _clients(board)
    _buffer_and_mean(board, lead_on=False, rated=False)
    _optimiser(
        board, ("AMSGrad's step", "m / (√v̂ + ε)"), ("m, v, largest v̂,", "kept for the run"), "+ η_t m / (√v̂ + ε)"
    )


def _fedac(board: Board) -> None:
    _clients(board, sent="x_t and C", sent_new=True, notes=("gradient + C − C_i",) * 3, new_notes=True)
    model = _model(board)
    control = board.store(at(0, 1), "control C", new=True)
    buffer = board.slots(at(0, 2), "buffer of size M", ("Δ", "Δ", "Δ"))
    board.line(buffer.top, control.bottom, new=True)
    board.line(control.left, (291, control.left[1]), (291, model.y + 20), head=False, new=True)
    weigh = board.box(at(1, 2), "weigh by r_i,", "the agreement", new=True, number=3)
    board.line(buffer.right, weigh.left)
    versions = board.store(at(2, 2), "versions", "in flight", new=True)
    board.line(versions.left, weigh.right, new=True)
    step = board.box(at(1, 1), "momentum", "m̂ / (√v + ε)", new=True, number=4)
    board.line(weigh.top, step.bottom, new=True)
    kept = board.store(at(2, 1), "m and v", new=True)
    board.line((kept.x, kept.y + 18), (step.right[0], kept.y + 18), new=True)
    board.line((step.right[0], kept.y + 38), (kept.x, kept.y + 38), new=True)
    board.line(step.top, (step.top[0], model.right[1]), model.right, new=True)
    board.text("r_i = cos(x_t − x_{t−τ}, Δ_i)", 540, 112, inside=SERVER)
    board.text("at least 0.1", 540, 130, inside=SERVER, size=12)


def _fedfa(board: Board) -> None:
    _clients(board)
    model = _model(board)
    mean = board.box(at(0, 1), "mean of the", "queue", new=True, number=4)
    queue = board.slots(at(0, 2), "the latest models", ("x_i", "x_j", "x_k"), new=True, number=3)
    board.line(queue.top, mean.bottom, new=True)
    board.line(mean.top, model.bottom, new=True)
    board.line(queue.right, (queue.right[0] + 90, queue.right[1]), new=True, dashed=True)
    board.text("the oldest leaves", queue.right[0] + 98, queue.right[1] + 4, inside=SERVER)
    _formula(board, "x_{t+1} = (1/|Q|) Σ x_q", "x_i = x_{t−τ} + Δ_i", y=150)


def _kuiper(board: Board) -> None:
    _clients(
        board, reported="Δ_i, n_i, acc_i", jobs=WAITS_FOR_BURST, waits_are_new=True,
        notes=("waits for the burst", "", "arrives stale"), sent_new=True, reported_new=True,
    )  # fmt: skip
    model = _model(board)
    mix = board.box(at(0, 1), "(1 − β_t) x_t", "+ β_t · mean", new=True, number=4)
    burst = board.slots(at(0, 2), "a burst: K models", ("x_A", "x_B"), new=True)
    mean = board.box(at(1.35, 2), "mean, weighed by", "n_i (1 − acc_i)", new=True, number=3)
    board.line(burst.right, mean.left, new=True)
    board.line((mean.x + 30, mean.y), (mean.x + 30, mix.right[1] + 12), (mix.right[0], mix.right[1] + 12), new=True)
    board.line(mix.top, model.bottom, new=True)
    _weights(board, staleness_weight("kuiper"), "β_t", 1.0, place=Place(570, 112, 150, 62))


def _fedecho(board: Board) -> None:
    _clients(board, notes=("", "", "its logits still count"))
    _buffer_and_mean(board, lead_on=False, number=None)
    model, mean = at(0, 0), at(0, 1)
    predict = board.box(at(1, 2), "x_{t−τ} + Δ_i predicts", "on the set U", new=True, number=3)
    board.line(at(0, 2).right, predict.left, new=True)
    logits = board.store(at(2, 2), "latest logits of", "every client", new=True)
    board.line(predict.right, logits.left, new=True)
    teacher = board.box(at(2, 1), "mean logits → p,", "uncertainty → α", new=True)
    board.line(logits.top, teacher.bottom, new=True)
    distil = board.box(at(1, 1), "distil on U:", "αKL + (1−α)CE", new=True, number=4)
    board.line(teacher.left, distil.right, new=True)
    board.line(mean.right, distil.left)
    unlabelled = board.store(at(2, 0), "unlabelled set U", new=True)
    board.line(
        (unlabelled.x, unlabelled.y + 40),
        (distil.top[0] + 40, unlabelled.y + 40),
        (distil.top[0] + 40, distil.y),
        new=True,
    )
    board.line((distil.top[0] - 20, distil.y), (distil.top[0] - 20, model.right[1]), model.right, new=True)


def _fedadt(board: Board) -> None:
    _clients(board)
    model = _model(board)
    mix = board.box(at(0, 1), "(1 − β) x_t + β x_i", "β = (1 + τ)^{−½}", new=True, number=4)
    arrived = board.box(at(0, 2), "client's model", "x_i = x_{t−τ} + Δ_i", new=True)
    board.line(arrived.top, mix.bottom, new=True)
    board.text("τ ≤ 1", mix.bottom[0] + 8, 242)
    board.line(mix.top, model.bottom, new=True)
    distil = board.box(at(1.25, 2), "student: x_i", "α̃KL + (1−α̃)CE", new=True, number=3)
    board.line((arrived.right[0], 292), (distil.x, 292), new=True)
    board.text("τ > 1", 462, 286, anchor="middle")
    board.line((distil.x, 266), (446, 266), (446, mix.right[1]), mix.right, new=True)
    labelled = board.store(Place(650, 252, 84, 52), "labelled", "set", new=True)
    board.line(labelled.left, distil.right, new=True)
    teacher = board.box(at(1.25, 1), "teacher: logits", "of x_t", new=True)
    board.line(teacher.bottom, distil.top, new=True)
    board.line(model.right, (teacher.top[0], model.right[1]), teacher.top, new=True)
    board.text("α̃ grows with t", 656, 242, size=12, inside=SERVER)


def _afl_dw(board: Board) -> None:
    _clients(board)
    model = _model(board)
    add = board.box(at(0, 1), "x_t + η (1 − β) Δ_i", new=True, number=4)
    damp = board.box(at(0, 2), "update, damped:", "(1 − β(τ)) Δ_i", new=True, number=3)
    board.line(damp.top, add.bottom, new=True)
    board.line(add.top, model.bottom, new=True)
    _weights(board, staleness_weight("afl_dw"), "1 − β(τ)", 1.0, most=200)


def _revived(board: Board, blend: str, kept: str, number: int) -> tuple[Place, Place]:
    """Draw the parts common to FedRevive and DD-FedRevive; return the places of the teachers and the distillation."""
    model = _model(board)
    mix = board.box(at(0, 1), "x_t + η ·", f"({blend})", new=True, number=number)
    arrived = board.box(at(0, 2), "update Δ_i; model", "x_i = x_{t−τ} + Δ_i", new=True)
    board.line(arrived.top, mix.bottom, new=True)
    board.line(mix.top, model.bottom, new=True)
    teachers = board.slots(at(1, 2), kept, ("x_i", "x_j", "…"), new=True, number=3)
    board.line(arrived.right, teachers.left, new=True)
    distil = board.box(at(1, 1), "distil: x_t learns", "of all 8: Δ^{KD}", new=True, number=number - 1)
    board.line(teachers.top, distil.bottom, new=True)
    board.line(distil.left, mix.right, new=True)
    board.line(model.right, (distil.top[0], model.right[1]), distil.top, dashed=True)
    board.text("x_t", distil.top[0] - 40, model.right[1] - 7)
    return teachers, distil


def _dd_fedrevive(board: Board) -> None:
    _clients(board, reported="Δ_i, counts")
    _, distil = _revived(board, "½ Δ_i + ½ Δ^{KD}", "last 8 models", 5)
    labelled = board.store(at(2, 1), "real data, kept", "from clients", new=True)
    board.line(labelled.left, distil.right, new=True)


def _fedrevive(board: Board) -> None:
    _clients(board)
    teachers, distil = _revived(board, "(1−β)Δ_i + βΔ^{KD}", "last 8 models", 5)
    generator = board.box(at(2, 2), "generator makes", "up samples", new=True)
    board.line((generator.x, generator.y + 16), (teachers.right[0], generator.y + 16), new=True)
    board.line((teachers.right[0], generator.y + 38), (generator.x, generator.y + 38), new=True)
    pool = board.store(at(2, 1), "pool of made-up", "samples", new=True)
    board.line(generator.top, pool.bottom, new=True)
    board.line(pool.left, distil.right, new=True)
    _weights(board, staleness_weight("fedrevive"), "β(τ)", 1.0, most=200, place=Place(630, 104, 100, 34))


SENDS = "Whenever a client is free, it is sent the model as it stands, x_t; nobody waits for anybody."
REPORTS = "A client trains and reports its update Δ_i; τ counts the versions made since its model was sent."
IN_ROUNDS = "All clients of a round are sent the same model x_t."
WAITS = "Each trains and reports its update Δ_i and its size n_i; the fast ones wait for the slow one."
EACH_MAKES = "Every report makes a version, which goes out at once; nobody waits for anybody."

DRAWINGS: dict[str, Drawing] = {
    "fedavg": Drawing(
        "The server waits for a whole round, so no update is stale.",
        (
            IN_ROUNDS,
            WAITS,
            "The mean of the updates, weighted by size, moves the model; then the next round begins.",
        ),
        _fedavg,
    ),
    "fedprox": Drawing(
        "FedAvg whose clients are held near the model that they were sent.",
        (
            IN_ROUNDS,
            "Each trains with μ/2 · ‖w − x_t‖^2 added to its loss, and reports its update Δ_i and its size n_i.",
            "The mean of the updates, weighted by size, moves the model, as in FedAvg.",
        ),
        _fedprox,
        against="fedavg",
        sentence="FedProx is FedAvg with a penalty that keeps each client's model near the model that it was sent.",
    ),
    "fedavgm": Drawing(
        "FedAvg with momentum on the server.",
        (
            IN_ROUNDS,
            WAITS,
            "The server takes the mean of the updates, weighted by size.",
            "The mean feeds a velocity, v ← β v + mean Δ, and the model moves by η v.",
        ),
        _fedavgm,
        against="fedavg",
        sentence="FedAvgM is FedAvg with momentum on the server.",
    ),
    "fedadam": Drawing(
        "FedAvg with Adam on the server.",
        (
            IN_ROUNDS,
            WAITS,
            "The server takes the mean of the updates, weighted by size.",
            "The mean and its square feed two moving averages m and v; the step is η m / (√v + ε).",
        ),
        _fedadam,
        against="fedavg",
        sentence="FedAdam is FedAvg with Adam on the server.",
    ),
    "oort": Drawing(
        "FedAvg's rounds, with clients chosen by how much they may teach and how fast they are.",
        (
            "The chosen clients are sent the model x_t.",
            "Each reports its update, its size and its samples' losses; the last ones are called off.",
            "The server notes each client's loss and duration.",
            "It chooses high loss and high speed first, and always some clients never tried before.",
        ),
        _oort,
        against="fedavg",
        sentence="Oort runs FedAvg's rounds. It prefers fast clients with large losses, and always tries some new "
        "clients.",
    ),
    "fedasync": Drawing(
        "Every client's model is mixed into the global one; a stale model counts less.",
        (
            EACH_MAKES,
            REPORTS,
            "The server adds the update to the version that the client started from: the client's model x_i.",
            "It mixes x_i in with weight α_t = α · s(τ); by default s falls as (1 + τ)^{−½}.",
        ),
        _fedasync,
        sentence="The server mixes every client's model into the global model. A stale model gets less weight.",
    ),
    "fedasmu": Drawing(
        "FedAsync whose clients merge a newer model half-way through their training.",
        (
            "The newest model goes out after every report, and once more, half-way, to those still training.",
            "A client merges it, trains on, and reports Δ_i.",
            "The server adds the update to the version that the client started from: x_i.",
            "It mixes x_i in with weight α, which falls with staleness τ and with version t.",
        ),
        _fedasmu,
        sentence="FedASMU extends FedAsync. Half-way through a job, the client merges a newer global model into its "
        "own.",
    ),
    "fedbuff": Drawing(
        "Every M updates make a version, no matter which clients sent them.",
        (
            SENDS,
            REPORTS,
            "The server gathers updates; when M are in, it adds their mean, times η, to the model.",
        ),
        _fedbuff,
        against="fedavg",
        sentence="The server makes a version from every M updates, no matter which clients sent them.",
    ),
    "ca2fl": Drawing(
        "FedBuff that remembers every client's latest update, so that absent clients count.",
        (
            SENDS,
            REPORTS,
            "The buffer gathers corrections: the new update minus that client's remembered one, Δ_i − h_i.",
            "When M are in, the model moves by the mean of all N remembered updates plus the mean correction.",
        ),
        _ca2fl,
        sentence="CA²FL is FedBuff with a memory of every client's latest update, so that absent clients count, too.",
    ),
    "fadas": Drawing(
        "FedBuff with an adaptive optimiser (AMSGrad) on the server.",
        (
            SENDS,
            REPORTS,
            "When M updates are in, the server takes their mean, as FedBuff does.",
            "It feeds moving averages m and v; v̂ is the largest v so far. Very stale buffers may get a smaller η_t.",
        ),
        _fadas,
        sentence="FADAS is FedBuff with an adaptive optimiser (AMSGrad) on the server.",
    ),
    "fedac": Drawing(
        "FedBuff with more weight for updates that agree with the model's movement since they started.",
        (
            "A free client is sent the model and the server's control C; it adds C − C_i to its gradients.",
            "It reports its update Δ_i, from which its new control C_i follows.",
            "The server weighs an update by its cosine with the model's movement since it was sent.",
            "The weighted mean feeds momentum m and squares v; the model steps along both.",
        ),
        _fedac,
        sentence="FedAC extends FedBuff. An update gets more weight if it points in the direction in which the global "
        "model has moved since the client was sent its model.",
    ),
    "fedfa": Drawing(
        "The global model is the mean of the latest client models.",
        (
            EACH_MAKES,
            REPORTS,
            "The client's model x_i joins a queue of fixed length; the oldest one leaves.",
            "The mean of the queue is the new global model.",
        ),
        _fedfa,
    ),
    "kuiper": Drawing(
        "Clients wait for bursts of K, weighted by size and error; a stale burst counts less.",
        (
            "Only the members of a burst are sent the new model, all at once.",
            "A client reports its update, its size and the accuracy of the received model on its data; it waits.",
            "The burst's models are averaged; large clients, and those on which the model errs, count more.",
            "The mean is mixed in with β_t, which falls with the burst's mean staleness.",
        ),
        _kuiper,
        sentence="Clients that have reported wait until K of them form a burst. The server averages their models, "
        "weighted by sample count and error, and mixes the average into the global model. A stale burst gets "
        "less weight.",
    ),
    "fedecho": Drawing(
        "FedBuff, then distillation from what every client's latest model predicts.",
        (
            SENDS,
            REPORTS,
            "The server rebuilds the client's model; its logits on unlabelled data replace the client's old ones.",
            "After each mean, the model learns the mean logits of all clients: soft where unsure, hard where sure.",
        ),
        _fedecho,
        sentence="After each step of FedBuff, the server distils the predictions of every client's latest model into "
        "the global model.",
    ),
    "fedadt": Drawing(
        "FedAsync whose stale models first learn from the global one.",
        (
            EACH_MAKES,
            REPORTS,
            "If τ > 1, the client's model learns from the global model's logits and the server's labels.",
            "It is mixed in with β, which falls with staleness; a fresh model replaces the global one.",
        ),
        _fedadt,
        sentence="FedADT is FedAsync with one more step. A stale client model first learns from the global model and "
        "from labelled data on the server.",
    ),
    "afl_dw": Drawing(
        "Every update is added at once; a stale update counts less.",
        (
            EACH_MAKES,
            REPORTS,
            "The server multiplies the update by 1 − β(τ): all of it when fresh, nothing when very stale.",
            "The rest, times η, is added to the model.",
        ),
        _afl_dw,
        sentence="The server adds every update as soon as it arrives. A stale update gets less weight.",
    ),
    "dd_fedrevive": Drawing(
        "Half of every update gives way to what the latest client models teach on real data.",
        (
            EACH_MAKES,
            "A client reports its update Δ_i and how many samples of each class it has.",
            "The server keeps the latest 8 client models as teachers.",
            "Starting from x_t, a student learns from all of them on the server's own data: Δ^{KD}.",
            "The model moves by η times half the update and half of Δ^{KD}.",
        ),
        _dd_fedrevive,
        sentence="The server replaces half of every update with a step distilled from the latest client models, on "
        "real data.",
    ),
    "fedrevive": Drawing(
        "The staler an update, the more of it gives way to what client models teach on made-up data.",
        (
            EACH_MAKES,
            REPORTS,
            "The latest 8 client models are the teachers; a generator makes up samples that they recognise.",
            "Starting from x_t, a student learns from all teachers on the pool of made-up samples: Δ^{KD}.",
            "The model moves by η times (1 − β) of the update and β of Δ^{KD}.",
        ),
        _fedrevive,
        sentence="The server replaces a part of every update with a step distilled from the latest client models, on "
        "made-up data. The staler the update, the larger this part.",
    ),
}

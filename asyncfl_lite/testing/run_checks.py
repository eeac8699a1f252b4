"""Checks in a small run: versions, late updates, changes in place, fixed points, the schedule, running statistics."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import pandas as pd
import torch
from torch import Tensor

from asyncfl_lite.algorithms import make_algorithm
from asyncfl_lite.runs.assembly import make_simulation
from asyncfl_lite.runs.run import Run
from asyncfl_lite.simulator.jobs import Job, Outcome, Receipt, Update
from asyncfl_lite.simulator.server import untrue_answer
from asyncfl_lite.simulator.simulation import Train
from asyncfl_lite.simulator.tables import who_did_what
from asyncfl_lite.testing.candidate import Candidate, RuleBroken, expect, simulate
from asyncfl_lite.testing.values import Kept, difference

PLAN_COLUMNS = ["client", "dispatched_at", "arrived_at", "start_version", "staleness"]
BATCH_NORM = {"model": "cnn", "model_settings": {"channels": (2,), "norm": "batch"}, "cohort": "off", "rounds": 2}


def check_versions(make: Candidate) -> None:
    """Check that ``on_receive`` returns True exactly for new versions, and ``x`` stays finite and keeps its shape."""
    run = make.run()
    method, first = run.algorithm, run.algorithm.x
    answers: list[object] = []

    def watch(update: Update, receive: Callable[[Update], Receipt]) -> Receipt:
        before = method.version
        answer = receive(update)
        untrue = untrue_answer(method, answer.made_version, before)
        expect(untrue is None, untrue or "")
        answers.append(answer.made_version)
        _expect_like(method.x, first, "x")
        return answer

    simulate(run, watch)
    odd = [answer for answer in answers if not isinstance(answer, bool)]
    expect(not odd, f"{make.cls.__name__}.on_receive must return True or False; it returned {(odd or [None])[0]!r}")


def _expect_like(now: Tensor, first: Tensor, name: str) -> None:
    """Check that clients can start from a vector: it is finite, and has the shape and type of the first one."""
    for what in ("shape", "dtype", "device", "requires_grad"):
        is_now, was = getattr(now, what), getattr(first, what)
        expect(is_now == was, f"{name} must keep its {what}, since clients start from it; it was {was} and is {is_now}")
    expect(bool(torch.isfinite(now).all()), f"{name} must stay finite, since clients start from it; it did not")


def check_late_updates(make: Candidate) -> None:
    """Check that an update of any staleness keeps the model finite.

    In synchronous rounds, no update is late. For other methods, this run has many clients in flight, so that some
    updates are at least fifteen versions late; in the run of the other checks, updates are two versions late.
    """
    if make.cls.redispatch == "rounds":
        return
    many = 6 * max(2, make.buffer_size)
    run = make.run(concurrency=many, clients=many + 2, rounds=24)

    def watch(update: Update, receive: Callable[[Update], Receipt]) -> Receipt:
        answer = receive(update)
        expect(
            bool(torch.isfinite(run.algorithm.x).all()),
            "x must stay finite however late an update is, since a slow client may be dozens of versions late; it did "
            f"not after one of staleness {update.staleness}",
        )
        return answer

    simulate(run, watch)


def check_in_place(make: Candidate) -> None:
    """Check that neither an earlier global model nor anything in an update is changed in place."""
    run, kept = make.run(), Kept()
    method = run.algorithm
    kept.add(method.x, "x of version 0")

    def watch(update: Update, receive: Callable[[Update], Receipt]) -> Receipt:
        kept.add(update, "update")
        answer = receive(update)
        kept.add(method.x, f"x of version {method.version}")
        return answer

    simulate(run, watch)
    found = kept.changed()
    expect(
        found is None,
        "models and updates must not be changed in place, since clients in flight, the record of versions and other "
        f"methods hold the same tensors; {found} was",
    )


def check_standing_still(make: Candidate) -> None:
    """Check that updates of zero, fresh or stale, and clients at their optimum leave the model unchanged.

    A method that moves anyway declares ``moves_by_itself``; its model only has to stay finite.
    """
    resting = make.run(client_lr=0.0)
    _expect_at_rest(resting, resting.train, "updates of zero must leave the model unchanged")
    quadratic = make.run(local_steps=3)
    centre, lr = quadratic.algorithm.x, quadratic.config.client_lr

    def train(jobs: Sequence[Job]) -> list[Outcome]:
        outcomes = zip(jobs, quadratic.train(jobs), strict=True)
        return [dataclasses.replace(outcome, delta=_pull(job, centre, lr, steps=3)) for job, outcome in outcomes]

    _expect_at_rest(quadratic, train, "clients whose common optimum is the model must leave it unchanged")


def _pull(job: Job, centre: Tensor, lr: float, steps: int) -> Tensor:
    """Return the delta of gradient steps on ½‖x - centre‖² from the job's start, each with the job's correction."""
    x = job.sent
    for _ in range(steps):
        x = x - lr * (x - centre if job.correction is None else x - centre + job.correction)
    return x - job.sent


def _expect_at_rest(run: Run, train: Train, why: str) -> None:
    method, first = run.algorithm, run.algorithm.x

    def watch(update: Update, receive: Callable[[Update], Receipt]) -> Receipt:
        answer = receive(update)
        _expect_like(method.x, first, "x")
        return answer

    simulate(run, watch, train)
    moved = float((method.x - first).abs().max())
    expect(
        method.moves_by_itself or moved <= 1e-6 * max(1.0, float(first.abs().max())),
        f"{why}, since nothing asks it to move (or the method declares moves_by_itself); it moved by {moved:.2g}",
    )


def check_schedule(make: Candidate) -> None:
    """Check that the schedule, which says when each client trains, does not depend on the method."""
    run = make.run()
    simulate(run)
    server = make_algorithm("fedbuff", buffer_size=run.config.buffer_size)
    server.start(torch.zeros(1), keep_versions=False)
    plan = make_simulation(run.config, run.parts, server)
    plan.run(lambda jobs: [Outcome(torch.zeros(1), num_samples=len(run.parts[job.client])) for job in jobs])
    expected, found = (who_did_what(clock, run.parts).updates[PLAN_COLUMNS] for clock in (plan, run.simulation))
    expect(
        expected.equals(found),
        "which client trains when must not depend on the method, so that methods are compared on the same arrivals; "
        + _first_row_apart(expected, found),
    )


def _first_row_apart(expected: pd.DataFrame, found: pd.DataFrame) -> str:
    both = min(len(expected), len(found))
    apart = (expected[:both] != found[:both]).any(axis=1).to_numpy().nonzero()[0]
    if not len(apart):
        return f"{len(expected)} arrivals were planned and {len(found)} came"
    row = int(apart[0])
    planned, came = (", ".join(f"{key} {table[key][row]:g}" for key in PLAN_COLUMNS) for table in (expected, found))
    return f"arrival {row + 1} was planned as {planned} and came as {came}"


def _running_statistics(run: Run) -> Tensor:
    """Return the method's running statistics; raise if there are none although the model has some."""
    if run.algorithm.buffers is None:
        raise RuleBroken("buffers must stay a vector where the model has running statistics; they are None")
    return run.algorithm.buffers


def check_running_statistics(make: Candidate) -> None:
    """Check that running statistics stay finite with positive variances, and that ``bn_mode="freeze"`` keeps them."""
    for mode in (make.bn_mode, "freeze"):
        run = make.run(**BATCH_NORM, bn_mode=mode)
        first = _running_statistics(run).clone()
        simulate(run)
        last = _running_statistics(run)
        _expect_like(last, first, "buffers")
        variances = last[run.model.variance_mask]
        expect(
            bool((variances > 0).all()),
            "running variances must stay positive, since BatchNorm divides by their roots; the least is "
            f"{float(variances.min()):.2g}",
        )
    found = difference(first, last, "buffers")
    expect(
        found is None, f"bn_mode='freeze' must leave running statistics alone, as it says; before and after, {found}"
    )

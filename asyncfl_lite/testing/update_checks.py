"""Checks on a few updates, passed to a method by hand: buffers, refusals, flushing, starting."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from asyncfl_lite.algorithms.base import Algorithm
from asyncfl_lite.simulator.update import Receipt, Update, in_dtype
from asyncfl_lite.testing.candidate import Candidate, expect, feed, reports, restart
from asyncfl_lite.testing.values import copied, difference


def check_buffer_size(make: Candidate) -> None:
    """Check that every M fresh updates make a version; with a buffer of one, or no buffer, every update makes one."""
    updates = reports(make, 2 * make.at_least_two)
    for size in sorted({1, make.at_least_two}):
        method = make.run(buffer_size=size).algorithm
        for count, update in enumerate(updates, start=1):
            method.receive(dataclasses.replace(update, start=method.x, start_version=method.version))
            expect(
                method.version == count // size,
                f"with buffer_size={size} there must be {count // size} versions after {count} updates, since runs are "
                f"planned in versions; there are {method.version}",
            )


def check_same_client(make: Candidate) -> None:
    """Check that a buffer counts updates, not clients, so that a fast client may report several times or fill it."""
    size = make.at_least_two
    updates = [dataclasses.replace(update, client=0) for update in reports(make, max(size, 3))]
    method = feed(make.run(buffer_size=size).algorithm, updates)
    why = f"{len(updates)} updates of one client must count like those of {len(updates)}, since fast ones report twice"
    expect(
        method.version == len(updates) // size,
        f"{why}; with a buffer of {size} they made {method.version} versions",
    )
    expect(bool(torch.isfinite(method.x).all()), f"{why}; the model is not finite any more")


def check_order(make: Candidate) -> None:
    """Check that the order of fresh updates of different clients in one buffer does not matter, up to rounding.

    The check computes in float64. If the order is meant to matter, a method declares
    ``about = About(order_matters=True)``.
    """
    if not make.cls.buffered or make.cls.about.order_matters:
        return
    size = max(3, make.buffer_size)
    updates = [in_dtype(update, torch.float64) for update in reports(make, size)]
    models = [
        feed(restart(make.run(buffer_size=size), dtype=torch.float64), order).x
        for order in (updates, updates[::-1], [*updates[1:], updates[0]])
    ]
    apart = max(float((model - models[0]).abs().max()) for model in models)
    expect(
        apart <= 1e-9 * max(1.0, float(models[0].abs().max())),
        "the order inside a buffer must not matter, since only chance decides it (or the method declares "
        f"about.order_matters); another order moved the model by {apart:.2g}",
    )


def check_refusals(make: Candidate) -> None:
    """Check that an update that is not finite, of a wrong shape or from the future is recorded and changes nothing."""
    updates = reports(make, 2 * make.at_least_two)
    disturbed = make.run().algorithm
    for good in updates:
        for kind, bad in _unsound(good, disturbed.version).items():
            _expect_refused(disturbed, kind, bad)
        disturbed.receive(good)
    found = difference(
        _all_but_rejections(feed(make.run().algorithm, updates)), _all_but_rejections(disturbed), "state"
    )
    expect(
        found is None,
        "a method must continue after refused updates as if they had not arrived, since clients do diverge; "
        "without and with "
        f"them, {found}",
    )


def _unsound(good: Update, version: int) -> dict[str, Update]:
    """Return faulty copies of an update, which no method may accept, by kind of fault."""
    nan, infinite = good.delta.clone(), good.delta.clone()
    nan[0], infinite[-1] = float("nan"), float("inf")
    return {
        "a NaN": dataclasses.replace(good, delta=nan),
        "an infinite value": dataclasses.replace(good, delta=infinite),
        "a wrong shape": dataclasses.replace(good, delta=good.delta[:-1]),
        "a start version of the future": dataclasses.replace(good, start_version=version + 1),
        "a negative start version": dataclasses.replace(good, start_version=-1),
    }


def _expect_refused(method: Algorithm, kind: str, bad: Update) -> None:
    before, noted = copied(_all_but_rejections(method)), len(method.rejections)
    why = f"an update with {kind} must be refused, since one is enough to ruin the model"
    try:
        answer = method.receive(bad)
    except Exception as error:
        expect(False, f"{why}; it raised {type(error).__name__}: {' '.join(str(error).split())}")
    expect(len(method.rejections) == noted + 1, f"{why}, and noted in rejections; it was not noted")
    expect(isinstance(answer, Receipt) and bool(answer.refused), f"{why}; receive returned {answer!r}")
    found = difference(before, _all_but_rejections(method), "state")
    expect(found is None, f"{why}, and must change nothing; before and after, {found}")


def _all_but_rejections(method: Algorithm) -> dict[str, Any]:
    """Return the state of a method and its random stream, without the recorded rejections."""
    state = {name: value for name, value in method.state().items() if name != "rejections"}
    return {**state, "rng": method.context.rng.bit_generator.state}


def check_flush(make: Candidate) -> None:
    """Check that ``flush`` changes nothing and returns False if the buffer is empty, and otherwise makes a version."""
    method = make.run(buffer_size=make.at_least_two).algorithm
    _expect_idle_flush(method)
    if make.cls.buffered:
        method.receive(reports(make, 1)[0])
        answer = method.flush()
        expect(
            answer is True and method.version == 1,
            "flush() must make a version of a partly filled buffer and return True, since a round in which an update "
            f"was refused ends so; it returned {answer!r}, and the version is {method.version}",
        )
        _expect_idle_flush(method)


def _expect_idle_flush(method: Algorithm) -> None:
    before = copied(_all_but_rejections(method))
    why = "flush() of an empty buffer must return False and change nothing, since a round may bring nothing"
    answer = method.flush()
    expect(answer is False, f"{why}; at version {before['version']} it returned {answer!r}")
    found = difference(before, _all_but_rejections(method), "state")
    expect(found is None, f"{why}; before and after, {found}")


def check_starts(make: Candidate) -> None:
    """Check that, without ``start`` in an update, the method finds the starting model in its own record of versions."""
    updates = reports(make, 2 * make.at_least_two)
    bare = [dataclasses.replace(update, start=None) for update in updates]
    informed = feed(make.run().algorithm, updates)
    found = difference(informed.state(), feed(restart(make.run(), keep_versions=True), bare).state(), "state")
    expect(
        found is None,
        "self.start_of(update) must be asked for what an update started from, since outside a simulation updates come "
        f"without it; with and without, {found}",
    )


def check_starting_again(make: Candidate) -> None:
    """Check that a method that is started again keeps nothing from before."""
    updates = reports(make, 2 * make.at_least_two)
    method = make.run().algorithm
    first = copied(feed(restart(make.run(), method=method), updates).state())
    second = feed(restart(make.run(), method=method), updates).state()
    found = difference(first, second, "state")
    expect(
        found is None,
        f"start() must begin anew, since an instance may be used again; the first and second time, {found}",
    )

"""Exercises of the course's last part, "Your own": lesson 19."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from asyncfl_course import capstone
from asyncfl_course.exercises import asks_for, exercise
from asyncfl_course.expectations import Wrong, call, expect
from asyncfl_course.records import HOLDS, OPEN, REVERSED
from asyncfl_course.referee import Control, Question, Runs, chance
from asyncfl_course.referee.verdict import NO_VERDICT
from asyncfl_course.zoo.bench import send, started
from asyncfl_lite.algorithms import ALGORITHMS, Algorithm, FedBuff
from asyncfl_lite.base.errors import AsyncFLError, how_many

WORKED = Path(__file__).parents[2] / "examples/fedpatience.py"
SETTINGS = (
    {"buffer_size": 2, "server_lr": 0.5, "patience": 1},
    {"buffer_size": 3, "server_lr": 1.0, "patience": 2},
    {"buffer_size": 2, "server_lr": 0.25, "patience": 4},
)
"""Options of the servers on which invariants are tried."""
HEADINGS = ["Question", "Plan", "Result", "Control", "Limits"]
WORDS = (100, 700)
"""Fewest and most words of a report; the most is two pages."""


@exercise("19.1", "A method of your own")
def own(answer: Any) -> str:
    """Check that the league accepts the file, and that its method passes tests on the bench of lesson 17."""
    expect(isinstance(answer, str | Path), "Give the path of a Python file.")
    try:
        entry = capstone.enter(answer)
    except AsyncFLError as error:
        raise Wrong(f"The league refuses it: {error}.") from None
    grid = entry.grid or {}
    expect(
        len(grid.get("server_lr", [])) >= 2,
        f"GRID must try at least two values of server_lr, because FedBuff's is searched too. It has {grid}.",
    )
    size = 2 if entry.method.buffered else 1
    theirs, versions = _path(entry.method(buffer_size=size))
    expect(
        versions == len(theirs) // size,
        f"{len(theirs)} updates made {versions} versions instead of {len(theirs) // size}. A dropped update must "
        "count as received: give it the weight 0.",
    )
    alike = size == 2 and torch.allclose(torch.stack(theirs), torch.stack(_path(FedBuff(buffer_size=2))[0]))
    expect(not alike, f"On the bench {entry.method.__name__} moves the model exactly as FedBuff does. What is new?")
    worked = "" if entry.name != "fedpatience" else " This is the worked method, so change it."
    expect(not worked, f"Enter a method of your own.{worked}")
    return f"{entry.name} keeps the league's rules; its code is {entry.digest}."


def _path(server: Algorithm) -> tuple[list[torch.Tensor], int]:
    """Send 24 updates of different sizes, some stale, from six clients; return each new model and the last version."""
    started(server)
    path = []
    for turn in range(24):
        delta = (0.1 + turn % 5) * torch.tensor([1.0, -1.0, 2.0, 0.5, -3.0, 0.1], dtype=torch.float64)
        stale = server.version if turn % 3 == 2 else 0
        send(server, delta, client=turn % 6, staleness=stale, num_samples=1 + turn % 4)
        path.append(server.x)
    return path, server.version


@exercise("19.2", "Three invariants")
def invariants(answer: Any) -> str:
    """Test three invariants on the worked method, FedPatience, and on copies of it with one bug each."""
    tests = list(answer) if isinstance(answer, list | tuple) else []
    expect(len(tests) == 3 and all(map(callable, tests)), "Give a list of three functions.")
    expect(len({test.__name__ for test in tests}) == 3, "The three functions must have different names.")
    method = ALGORITHMS.get("fedpatience") if "fedpatience" in ALGORITHMS else capstone.enter(WORKED).method
    found = capstone.bench(method, tests, capstone.CHANGES, SETTINGS)
    if alarms := [name for name in found if not found.loc["healthy", name]]:
        raise Wrong(f"False alarm: {', '.join(alarms)} is not True for the healthy server with every setting.")
    missed = [copy for copy in capstone.CHANGES if found.loc[copy].all()]
    expect(
        not missed, f"Blind: all three are True for the ill copy {' and for the ill copy '.join(map(repr, missed))}."
    )
    return f"\n{found}"


def _seeds(claimed: float, deviation: float) -> int:
    """Return the smallest number of seeds that confirms a claim, by half of it, with probability 0.8."""
    return next(n for n in range(3, 1000) if chance("above", claimed / 2, claimed, deviation, n, 0.95) >= 0.8)


asks_for(
    "19.3", "How many seeds?", _seeds,
    cases=[
        (inputs, "the margin is half of the claim, the level is 0.95, and there must be at least three seeds")
        for inputs in ((10.0, 2.0), (3.0, 1.5), (2.0, 3.0), (25.0, 2.4))
    ],
    right="Seeds grow with the square of deviation over claim, so a small claim asks for many.",
)  # fmt: skip


def _outcome(verdict: str, differences: list[float]) -> capstone.Outcome:
    """Return a made-up outcome of a plan; if ``differences`` is empty, the plan's control has failed its proofs."""
    cells = {
        "mine": capstone.Cell(algorithm="fedbuff", server_lr=1.0),
        "fedbuff": capstone.Cell(algorithm="fedbuff", server_lr=0.3),
        "off": capstone.Cell(algorithm="fedbuff", server_lr=0.1),
    }
    plan = capstone.Plan(
        code="0a1b2c3d",
        cells=cells,
        asks=Question(first="mine", predicate="above", second="fedbuff", margin=1.5),
        runs=Runs(metric="last5_accuracy", column="tuned", seeds=3, level=0.95),
        control=Control(cell="off", changes=["server_lr"], shows=["other_weights"]),
        claimed=3,
        deviation=1,
    )
    digest, drawn = "5ea1" * 16, (31415, 92653, 58979)
    if not differences:
        told = "the control did not act: other_weights fails on 2 of 3 seeds"
        return capstone.Outcome(plan, digest, drawn, verdict, pd.Series(dtype=float), because=told)
    gap, half = pd.Series(differences, drawn), max(differences) - min(differences)
    mean = float(gap.mean())
    return capstone.Outcome(plan, digest, drawn, verdict, gap, mean, mean - half, mean + half)


@exercise("19.4", "A report before its result")
def report(answer: Any) -> str:
    """Check the reports on four made-up outcomes; each report must state its outcome's result."""
    for outcome in (
        _outcome(HOLDS, [2.75, 3.25, 3.5]),
        _outcome(OPEN, [-0.75, 1.25, 2.5]),
        _outcome(REVERSED, [-3.25, -2.75, -2.5]),
        _outcome(NO_VERDICT, []),
    ):
        _reported(call(answer, outcome), outcome)
    return "It is true whatever comes out, so nothing in it was written to suit a result."


def _reported(text: Any, outcome: capstone.Outcome) -> None:
    which = f"For an outcome with the verdict {outcome.verdict!r}"
    expect(isinstance(text, str), f"{which} the report is {type(text).__name__}. It should be a string.")
    text = text.strip().lower()
    fewest, most = WORDS
    count = len(text.split())
    found = re.findall(r"^### (.*)$", text, re.M)
    expect(
        found == [one.lower() for one in HEADINGS],
        f"{which} the headings are {found}. They should be {HEADINGS}, each written as '### Question'.",
    )
    expect(
        fewest <= count <= most, f"{which} the report has {how_many(count, 'word')}. It should have {fewest} to {most}."
    )
    parts = dict(zip(HEADINGS, re.split(r"^### .*$", text, flags=re.M)[1:], strict=True))
    asked = {
        "Plan": (outcome.digest[:8], "the seal's first eight digits"),
        "Result": (outcome.verdict, "the verdict"),
        "Control": (outcome.plan.control.cell, "the control's cell"),
    }
    for part, (needle, what) in asked.items():
        expect(needle.lower() in parts[part], f"{which} the part {part} does not say {what}, {needle!r}.")
    for other in {HOLDS, OPEN, REVERSED} - {outcome.verdict}:
        expect(other not in parts["Result"], f"{which} the part Result says {other!r}.")
    if outcome.because:
        expect(outcome.because.lower() in text, f"{which} the report does not say why: outcome.because.")
        expect(not re.search(r"\bnan\b", text), f"{which} there is no mean, but the report quotes 'nan'.")
    else:
        quoted = outcome.interval
        expect(quoted in parts["Result"], f"{which} the part Result does not quote the mean and interval, {quoted}.")
    expect(len(parts["Limits"].split()) >= 20, f"{which} the part Limits has fewer than 20 words.")

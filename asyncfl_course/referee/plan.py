"""A referee's plan, written before any result is seen, its seal, and the proofs that it may demand of its control."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from textwrap import fill
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from pydantic import AfterValidator, Field

from asyncfl_lite.base.errors import AsyncFLError, ConfigError, shown, unknown_name
from asyncfl_lite.base.registry import Settings

Names = Annotated[tuple[str, ...], AfterValidator(lambda names: tuple(sorted(set(names))))]
"""Names in any order."""


class Question(Settings):
    """The two cells to compare, and the claim about them."""

    first: str
    predicate: Literal["above", "level"]
    """``above``: the first is above the second by more than the margin; ``level``: they differ by less than it."""
    second: str
    margin: float = Field(ge=0)
    """Margin in points of accuracy."""


class Runs(Settings):
    """The runs that decide a question, and the metric that is compared."""

    metric: Literal["last5_accuracy", "final_accuracy", "best_accuracy"]
    """The mean of a run's last five tests, its last test, or the best of all its tests."""
    column: Literal["tuned", "rate 1"]
    """Column: every method's rates searched, or server rate 1 and the clients' searched."""
    seeds: int = Field(ge=3)
    """Number of seeds: 0, 1, …"""
    level: float = Field(gt=0, lt=1)
    """Level of the interval; since the number of seeds is sealed, there is one look."""


class Control(Settings):
    """A control cell, which differs from the first cell in one setting, and the proofs required of its runs."""

    cell: str
    changes: Names
    """Settings that differ, such as ``settings.distill_set``."""
    shows: Names
    """Proofs from :data:`PROOFS`, each required on every seed."""


class Plan(Settings):
    """A referee's plan: the comparison, the runs and the control that decide a claim.

    Example:
        >>> plan = Plan(
        ...     case="lead",
        ...     asks=Question(first="fedecho-natural", predicate="above", second="fedbuff", margin=0),
        ...     runs=Runs(metric="best_accuracy", column="rate 1", seeds=3, level=0.95),
        ...     control=Control(cell="fedbuff", changes=["algorithm"], shows=[]),
        ... )
        >>> seal(plan).digest[:8]
        '4b4c896e'
    """

    case: Literal["lead", "deaf", "weight", "targets"]
    asks: Question
    runs: Runs
    control: Control


@dataclass(frozen=True)
class Sealed:
    """A plan's text at the moment of sealing, as JSON with sorted keys, with its SHA-256 in hexadecimal digits."""

    text: str
    digest: str

    def __repr__(self) -> str:
        return f"sealed: {self.digest}"


def canonical(content: Settings | dict[str, Any]) -> str:
    """Return a plan, or a mapping, as JSON with sorted keys, so that the same content always gives the same text."""
    return json.dumps(content.model_dump(mode="json") if isinstance(content, Settings) else content, sort_keys=True)


def digest_of(text: str | bytes) -> str:
    """Return the SHA-256 of bytes, or of a text in UTF-8."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def seal(plan: Settings) -> Sealed:
    """Seal a plan by recording its digest, before you look at a result."""
    return Sealed(canonical(plan), digest_of(canonical(plan)))


def unchanged(plan: Settings, sealed: Sealed) -> None:
    """Raise an error if a plan was changed after it was sealed.

    Raises:
        AsyncFLError: one line that names each field that was changed, or says that the seal is broken.
    """
    if digest_of(sealed.text) != sealed.digest:
        raise AsyncFLError("the seal is broken: its text no longer has its digest; seal a plan anew, and say so")
    changes = differing(json.loads(sealed.text), json.loads(canonical(plan)))
    changed = [f"{name} was {shown(then)}, is {shown(now)}" for name, (then, now) in changes.items()]
    if changed:
        raise AsyncFLError(f"the plan was changed after it was sealed: {'; '.join(changed)}")


def leaves(content: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested mappings, with names such as ``settings.distill_set``."""
    for name, value in content.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def differing(one: dict[str, Any], other: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Map each name in :func:`leaves` whose values differ to the two values; a missing value is None."""
    ours, theirs = dict(leaves(one)), dict(leaves(other))
    both = {name: (ours.get(name), theirs.get(name)) for name in ours | theirs}
    return {name: pair for name, pair in both.items() if pair[0] != pair[1]}


SMALLEST = 1e-6
"""Difference of accuracies, as a fraction, below which they count as the same; one image makes more."""


class Proof(NamedTuple):
    """A property that a plan may require of its control's runs.

    ``shown`` gets the treated cell's runs and the control's, and says for each seed whether they have it.
    """

    says: str
    shown: Callable[[pd.DataFrame, pd.DataFrame], pd.Series]


PROOFS: dict[str, Proof] = {
    "it_ran": Proof("the control has an accuracy", lambda treated, control: np.isfinite(control["last5_accuracy"])),
    "other_weights": Proof(
        "its final weights differ from the treated run's",
        lambda treated, control: treated["weights_sha256"] != control["weights_sha256"],
    ),
    "other_accuracy": Proof(
        "its accuracy differs",
        lambda treated, control: (treated["last5_accuracy"] - control["last5_accuracy"]).abs() > SMALLEST,
    ),
    "lower_accuracy": Proof(
        "its accuracy is lower",
        lambda treated, control: treated["last5_accuracy"] - control["last5_accuracy"] > SMALLEST,
    ),
    "same_schedule": Proof(
        "the same clients arrive at the same times, so the control left the schedule unchanged",
        lambda treated, control: treated["schedule_sha256"] == control["schedule_sha256"],
    ),
}
"""Name -> the property that a plan may demand of its control."""


def failed(names: Iterable[str], treated: pd.DataFrame, control: pd.DataFrame) -> dict[str, int]:
    """Return the proofs that the runs fail, each with its number of failing seeds among those that both cells have.

    Raises:
        ConfigError: there is no such proof.
    """
    seeds = treated.index.intersection(control.index)
    sides = treated.loc[seeds], control.loc[seeds]
    found = {}
    for name in names:
        if name not in PROOFS:
            raise ConfigError(unknown_name("shows", name, PROOFS))
        wrong = int((~PROOFS[name].shown(*sides)).sum())
        if wrong or not len(seeds):
            found[name] = wrong
    return found


def in_lines(text: str) -> str:
    """Wrap a text, because JupyterLab breaks long lines within words; align continuation lines with a label's text."""
    shown = []
    for line in text.splitlines():
        label = re.match(r" *(?:[+-] \S+ +|\w+: +)?", line)[0]
        hanging = " " * len(label)
        shown.append(fill(line, 100, subsequent_indent=hanging, break_on_hyphens=False, break_long_words=False))
    return "\n".join(shown)

"""Sealed envelopes with the truth behind each claim, fixed before a plan is run and opened afterwards."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from asyncfl_course.records import NOT_RUN
from asyncfl_course.referee.cases import case
from asyncfl_course.referee.lines import in_lines
from asyncfl_course.referee.plan import Plan, digest_of, seal
from asyncfl_course.referee.verdict import Verdict, run
from asyncfl_lite.base.errors import AsyncFLError

FOLDER = Path(__file__).parent / "sealed"
"""Folder outside the notebooks, so that students do not see the envelopes' content in the file browser."""


@dataclass(frozen=True)
class Envelope:
    """The content of an opened envelope.

    Attributes:
        digest: SHA-256 of the file, as stated by the case.
        says: the truth behind the claim.
        verdicts: subject of a plan in the envelope -> that plan's verdict on the records, computed now.
    """

    digest: str
    says: str
    verdicts: dict[str, Verdict]

    def __repr__(self) -> str:
        plans = [f"{about}\n    {found.detail}: {found.verdict}" for about, found in self.verdicts.items()]
        return in_lines("\n".join([f"envelope {self.digest[:8]}, as committed", self.says, *plans]))


def open_envelope(verdict: Verdict, folder: Path = FOLDER) -> Envelope:
    """Open the envelope for a plan's case; the plan must have been run.

    Args:
        verdict: that plan's verdict.
        folder: folder of the envelopes.

    Raises:
        AsyncFLError: the plan was not run, or the envelope is not the one to which the case is committed.
    """
    of = case(verdict.plan.case)
    if verdict.verdict == NOT_RUN:
        raise AsyncFLError(f"{of.name}: the envelope stays sealed until a plan has been run; {verdict.detail}")
    content = (folder / f"{of.name}.json").read_bytes()
    digest = digest_of(content)
    if digest != of.commitment:
        raise AsyncFLError(f"{of.name}: the envelope is not the one that was committed to: {digest[:8]}, not "
                           f"{of.commitment[:8]}")  # fmt: skip
    told = json.loads(content)
    plans = {about: Plan.from_mapping(plan) for about, plan in told["plans"].items()}
    return Envelope(digest, told["says"], {about: run(plan, seal(plan)) for about, plan in plans.items()})

"""The papers' claims as predicates over recorded results, one file a paper."""

from asyncfl_lite.claims.base import (
    FAILS,
    HOLDS,
    NOT_RUN,
    UNDECIDED,
    VERDICTS,
    Claim,
    Finding,
    Measured,
    check_claims,
    pooled_deviation,
)
from asyncfl_lite.claims.fedecho import FEDECHO

CLAIMS: dict[str, list[Claim]] = {"fedecho": FEDECHO}

__all__ = [
    "CLAIMS",
    "FAILS",
    "HOLDS",
    "NOT_RUN",
    "UNDECIDED",
    "VERDICTS",
    "Claim",
    "Finding",
    "Measured",
    "check_claims",
    "pooled_deviation",
]

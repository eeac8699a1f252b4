"""The papers' claims as predicates over recorded results, one file for each paper."""

from asyncfl_lite.reproduction.claims.base import (
    DID_NOT_TRAIN,
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
from asyncfl_lite.reproduction.claims.fedadt import FEDADT
from asyncfl_lite.reproduction.claims.fedecho import FEDECHO
from asyncfl_lite.reproduction.claims.fedrevive import FEDREVIVE
from asyncfl_lite.reproduction.claims.kuiper import KUIPER

CLAIMS: dict[str, list[Claim]] = {
    "fedecho": FEDECHO,
    "fedrevive": FEDREVIVE,
    "kuiper": KUIPER,
    "fedadt": FEDADT,
}

__all__ = [
    "CLAIMS",
    "DID_NOT_TRAIN",
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

"""The papers' claims, one file per paper; each claim is checked by a function of recorded results."""

from asyncfl_reproduction.claims.checking import (
    KINDS,
    Claim,
    check_all,
    check_claims,
    table_of_claims,
    table_of_discoveries,
)
from asyncfl_reproduction.claims.fedadt import FEDADT
from asyncfl_reproduction.claims.fedecho import FEDECHO
from asyncfl_reproduction.claims.fedrevive import FEDREVIVE
from asyncfl_reproduction.claims.findings import Finding
from asyncfl_reproduction.claims.kuiper import KUIPER
from asyncfl_reproduction.claims.measured import Measured
from asyncfl_reproduction.verdicts import EQUIVALENT, FAILS, HOLDS, NOT_RUN, OPEN, REVERSED, VERDICTS

CLAIMS: dict[str, list[Claim]] = {"fedecho": FEDECHO, "fedrevive": FEDREVIVE, "kuiper": KUIPER, "fedadt": FEDADT}

__all__ = [
    "CLAIMS",
    "EQUIVALENT",
    "FAILS",
    "HOLDS",
    "KINDS",
    "NOT_RUN",
    "OPEN",
    "REVERSED",
    "VERDICTS",
    "Claim",
    "Finding",
    "Measured",
    "check_all",
    "check_claims",
    "table_of_claims",
    "table_of_discoveries",
]

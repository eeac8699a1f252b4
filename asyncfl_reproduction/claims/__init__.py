"""The papers' claims, one file per paper; each claim is checked by a function of recorded results."""

from asyncfl_reproduction.claims import fedadt, fedrevive, kuiper
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
from asyncfl_reproduction.verdict_words import EQUIVALENT, FAILS, HOLDS, NOT_RUN, OPEN, REVERSED, VERDICTS

CLAIMS: dict[str, list[Claim]] = {"fedecho": FEDECHO, "fedrevive": FEDREVIVE, "kuiper": KUIPER, "fedadt": FEDADT}


def sooner(measured: Measured, ours: str, other: str) -> Finding:
    """Check that a paper's method reaches its target sooner than another, by the rule of the paper's claims.

    FedRevive's rule makes the target from the other cell, which must be FedBuff's; KUIPER's and FedADT's take any.
    """
    paper = ours.split("/")[0]
    if paper == "kuiper":
        return kuiper.sooner_in_order(measured, [ours, other])
    if paper == "fedadt":
        return measured.sooner(ours, other, fedadt.targets(measured, ours.rpartition("/")[0]))
    return fedrevive.sooner(measured, ours, other, other)


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
    "sooner",
    "table_of_claims",
    "table_of_discoveries",
]

"""What texts say that a paper prints of its rates is what its tables print, and is said so that it can be checked."""

from __future__ import annotations

import re
from functools import cache

import pytest
import statements
from statements import Sentence, everything, false, sentences, unrecognised

COLUMN = re.compile(
    r"(?i:as printed)[*\"]*:|(?:tuned|points?|FedBuff|leads|FedEcho|FedADT|FedRevive|KUIPER|CA²FL|methods|server|rate|differences|cells|leads?)"
    r",? (?:in \w+ )?[*\"]*as printed|as printed[*\"]*,? (?:and|or) (?:.{0,30})tuned|[*\"]*As printed[*\"]*,? (?!the model\b|\(…\))",
)
"""What would call a column of results "as printed"; equations, assumptions and layouts may be as printed."""
OF_EQUATIONS = re.compile(r"KUIPER as printed (?:shrinks|breaks|pulls)|FedADT as printed distils|As printed \(dotted\)")


@cache
def every() -> list[Sentence]:
    return list(everything())


def test_no_statement_on_printed_rates_is_contradicted_by_the_tables():
    assert [(one.where, wrong) for one in every() for wrong in false(one.text)] == []


def test_every_statement_on_printed_rates_can_be_checked():
    assert [(one.where, one.text) for one in every() if unrecognised(one)] == []


def test_there_are_statements_of_each_kind():
    texts = " ".join(one.text for one in every())
    assert all(
        len(pattern.findall(texts)) >= 3 for pattern in (statements.SAYS, statements.SAYS_NONE, statements.LABEL)
    )
    assert {"findings.md", "lead.json", "08_fedecho_evidence"} <= {
        one.where for one in every() if statements.SAYS.search(one.text) or statements.SAYS_BOTH.search(one.text)
    }


OLD = [
    "**as printed**: the server's rate is the paper's, 1 for FedBuff, which prints none; the clients' rate is searched;",
    "The paper prints FedEcho's rates, and none for FedBuff's server.",
    "*As printed*: the server's settings as their paper prints them, FedBuff's rate 1 where it prints none.",
    "*printed*, with the servers' settings as the papers print them (FedBuff's rate 1), and *tuned*.",
    "FedBuff chose the server's rate 0.3, where its paper prints 1.",
    "FedBuff as its paper prints it (server rate 1), on FedEcho's first setting, has ten seeds here.",
    "Tuned: as many tries; as printed: the server's rate is the paper's.",
    "Server rates of 1, printed by FedEcho and FedADT, and its switches are everybody's defaults already.",
]
"""Sentences that stood here, some of them false."""


@pytest.mark.parametrize("text", OLD)
def test_what_stood_here_is_noticed(text):
    assert any(unrecognised(Sentence("docs", one, text)) for one in sentences(text))


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("FedEcho's Table 8 prints the server rate 1.0 for FedBuff", False),
        ("FedEcho's Table 8 prints the client rate 0.01 and the server rate 1.0 for FedBuff", False),
        ("FedEcho's Table 8 prints the client rate 0.03 and the server rate 1.0 for FedBuff", True),
        ("FedEcho's Table 8 prints the server rate 1.0 for FedBuff and FedAC", True),
        ("The paper's Table 8 prints FedBuff's rates, 0.01 for clients and 1.0 for the server", False),
        ("The paper's Table 8 prints FedBuff's rates, 0.01 for clients and 0.1 for the server", True),
        ("FedEcho's Tables 8 to 10 print the server rate 1 for FedBuff, CA²FL and FedEcho", False),
        ("FedEcho's Tables 8 to 10 print the server rate 0.1 for FADAS", True),
        ("FedEcho prints the client rate 0.01 for FedBuff", True),
        ("FedEcho prints the client rate 0.01 for FedBuff on CIFAR-10", False),
        ("FedEcho prints no server rate for FedBuff", True),
        ("KUIPER and FedADT print no server rate for FedBuff", False),
        ("KUIPER and FedEcho print no server rate for FedBuff", True),
        ("FedADT prints the client rate 0.01 for all methods", False),
        ("FedADT prints the server rate 1 for FedBuff", True),
        ("FedRevive's Table 4 prints the server rate 0.05 for FedBuff on CIFAR-10", False),
        ("FedRevive's Table 4 prints the server rate 0.05 for FedBuff", True),
        ("FedBuff's printed server rate, 0.05, is its best", False),
        ("FedBuff's printed server rate, 1.0, is its best", True),
    ],
)  # fmt: skip
def test_a_statement_is_held_to_the_table(text, wrong):
    assert bool(false(text)) is wrong and not unrecognised(Sentence("docs", text, f"{text} FedRevive"))


def test_no_column_of_results_is_called_as_printed():
    found = [one for one in every() if COLUMN.search(OF_EQUATIONS.sub("", one.text)) and "theory" not in one.where]
    assert [(one.where, one.text) for one in found] == []


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("*As printed*: the server's settings are fixed.", True), ("FedEcho leads as printed; tuned it does not.", True),
        ("As printed FedEcho is ahead.", True), ("+10.9 points as printed, +0.1 tuned", True),
        ("FedBuff as printed is unsteady.", True), ("It is undecided as printed and no difference tuned.", True),
        ("Equation 2 as printed melts the model.", False), ("As printed, the model melts.", False),
    ],
)  # fmt: skip
def test_what_calls_a_column_as_printed(text, column):
    assert bool(COLUMN.search(text)) is column

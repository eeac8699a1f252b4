"""What texts say that a paper prints of its rates is what its tables print."""

from __future__ import annotations

from functools import cache

import pytest
from statements import Sentence, everything, false


@cache
def every() -> list[Sentence]:
    return list(everything())


def test_no_statement_on_printed_rates_is_contradicted_by_the_tables():
    assert [(one.where, wrong) for one in every() for wrong in false(one.text)] == []


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
    assert bool(false(text)) is wrong

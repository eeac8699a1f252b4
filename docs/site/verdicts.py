"""A page of all the papers' claims with their recorded verdicts, which is the laptop tier's report in brief."""

from __future__ import annotations

import pandas as pd

from asyncfl_lite.base.style import VERDICT_COLOURS
from asyncfl_reproduction.claims import CLAIMS
from asyncfl_reproduction.claims.headlines import HEADLINES
from asyncfl_reproduction.home import RESULTS
from asyncfl_reproduction.report.laptop_verdicts import in_brief, read_decided
from asyncfl_reproduction.report.styled_tables import with_signs
from asyncfl_reproduction.report.summary import TITLES

TOP = """# The report in brief

The laptop tier tested every claim at small scale, with ten seeds or more. This page begins with the papers' central
comparisons, three for each paper, with every method tuned. Every claim with its verdict follows.
`make report TIER=laptop` writes the whole report, with every number. [Results](docs/results.md) explains the names of
the verdicts, and [findings](docs/findings.md) explains what they mean.
"""


def verdicts_page() -> str:
    """Return the page of verdicts in Markdown."""
    kept = read_decided(RESULTS)
    rows = [f"| {one.text} | {one.printed} | {_said(in_brief(kept, one.id))} |" for one in HEADLINES]
    parts = [TOP, "## Central comparisons", _table("what is compared | the paper | recorded", rows)]
    for paper, claims in CLAIMS.items():
        rows = [
            f"| {one.artefact} | {_cell(one.text)} | {_cell(with_signs(one.printed))} "
            f"| {_said(kept['verdict'].get(one.id, 'not run'))} | {_said(kept['fixed'].get(one.id, ''))} |"
            for one in claims
        ]
        head = "where | what it says | the paper's numbers | tuned | fixed server rate"
        parts += [f"## {TITLES[paper]}", _table(head, rows)]
    return "\n\n".join(parts) + "\n"


def _table(head: str, rows: list[str]) -> str:
    return "\n".join([f"| {head} |", "|" + "---|" * (head.count("|") + 1), *rows])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("*", "\\*").replace("$", "\\$")


def _said(text: str) -> str:
    """Return a verdict as HTML, on a background in its colour."""
    verdict = "" if pd.isna(text) else str(text)
    colour = VERDICT_COLOURS.get(verdict.split(":")[0])
    return f'<span class="verdict" style="background: {colour}">{verdict}</span>' if colour else verdict

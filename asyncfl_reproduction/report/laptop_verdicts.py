"""The laptop tier's verdicts in one small table, so that a smaller tier's report can show them with its own.

Three seeds, as in the tiers headline and smoke, leave most comparisons open. Judging the laptop tier's records takes
minutes, so ``make docs`` judges them once and saves the verdicts; a test checks the table against the records.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from asyncfl_lite.base.errors import how_many
from asyncfl_reproduction.claims.measured import TUNED
from asyncfl_reproduction.digests import checked
from asyncfl_reproduction.grid.columns import FIXED
from asyncfl_reproduction.number_texts import interval_text, with_signs
from asyncfl_reproduction.report.printed_tables import coloured, listed
from asyncfl_reproduction.report.recorded import Recorded
from asyncfl_reproduction.report.styled_tables import RECORDED
from asyncfl_reproduction.verdict_words import NOT_RUN, parts_counted

TIER = "laptop"
FILE = f"{TIER}/verdicts.csv"
"""Name of the table, in the folder of recorded tables."""
NUMBERS = ["seeds", "mean", "low", "high", "unit"]
COLUMNS = ["verdict", "fixed", *NUMBERS]
"""All columns beside the id."""


def decided(recorded: Recorded) -> pd.DataFrame:
    """Return one row per claim and one per headline of a tier: verdicts and, for headlines, their differences.

    The columns are id, verdict, fixed (the verdict at the fixed server rate) and the numbers. Numbers are a headline's
    difference with its interval; claims, which rest on several, have none.
    """
    claims = pd.concat([recorded.claims(paper) for paper in recorded.checked], ignore_index=True)
    rows = claims[["id"]].assign(verdict=claims["ours"], fixed=claims.get(FIXED, ""))
    heads = recorded.headlines
    tuned, twins = heads[heads["column"] == TUNED], heads[heads["column"] != TUNED].set_index("id")["verdict"]
    more = tuned[["id", "verdict", *NUMBERS]].assign(fixed=tuned["id"].map(twins))
    table = pd.concat([rows, more], ignore_index=True).reindex(columns=["id", *COLUMNS])
    return table.round({"mean": 6, "low": 6, "high": 6})


def read_decided(kept: str | Path | None) -> pd.DataFrame:
    """Read the kept verdicts by id; the table is empty if none are kept, as in an installed package."""
    path = None if kept is None else Path(kept) / FILE
    if path is None or not path.exists():
        return pd.DataFrame(columns=COLUMNS)
    words = ["fixed", "unit"]
    return pd.read_csv(checked(path), index_col="id", dtype=dict.fromkeys(words, str)).fillna(dict.fromkeys(words, ""))


def beside(headlines: pd.DataFrame, kept: pd.DataFrame) -> str:
    """Return the headlines as an HTML table with the paper's, this run's and the laptop tier's recorded numbers."""
    own = headlines[headlines["column"] == TUNED]
    there = kept.reindex(own["id"]).fillna({"verdict": NOT_RUN})
    table = pd.DataFrame(
        {
            "what is compared": own["sentence"],
            "the paper": own["paper"],
            "this run": [*map(_said, own.itertuples())],
            RECORDED: [*map(_said, there.itertuples())],
        }
    )
    style = listed(table.map(lambda value: with_signs(str(value)).replace(" points", "\u00a0points")))
    for column, found in (("this run", own["verdict"]), (RECORDED, there["verdict"])):
        style = coloured(style, column, found)
    return style.to_html()


def in_brief(kept: pd.DataFrame, name: str) -> str:
    """Return a headline's kept verdict with its difference, interval and seeds."""
    return next((_said(row) for row in kept.loc[kept.index == name].itertuples()), NOT_RUN)


def _said(row: Any) -> str:
    if pd.isna(row.mean):
        return row.verdict
    return f"{row.verdict}: {with_signs(interval_text(row._replace(seeds=int(row.seeds))))}"


def in_words(recorded: Recorded, kept: pd.DataFrame, agreed: str = "") -> str:
    """Say which verdicts the record and this run give on the headlines, and how many runs agree with the record."""
    own = recorded.headlines[recorded.headlines["column"] == TUNED]
    there = kept.reindex(own["id"])
    parts = [_answer(where, found) for where, found in (("Recorded", there), ("This run", own))]
    done = len(recorded.results)
    cells = f"{done} of {how_many(len(recorded.cells), 'cell')} {'was' if done == 1 else 'were'} run."
    return (
        f"**The papers' {len(own)} central comparisons. {' '.join(parts)} {agreed}**".replace(" **", "**")
        + f"\n\n{cells} With fewer seeds, more comparisons stay open."
    )


def _answer(where: str, found: pd.DataFrame) -> str:
    seeds = found["seeds"].max()
    with_seeds = "" if pd.isna(seeds) else f", with up to {how_many(int(seeds), 'seed')}"
    return f"{where}{with_seeds}: {parts_counted(found['verdict'].fillna(NOT_RUN)) or 'none was run'}."


NEXT = (
    "**Open next** [FedEcho](report-fedecho.html), the first of four papers: its tables as printed, with the numbers "
    "of this run below, and its claims, again with both verdicts. Then read `docs/findings.md`, which says what the "
    "recorded verdicts mean. `make lab` opens the lessons; lesson 04 shows why most leads vanish once every method is "
    "tuned."
)

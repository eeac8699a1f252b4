"""Export of the report's tables as CSV, Markdown and LaTeX, in files named by paper and artefact."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from asyncfl_lite.base.files import write_atomically
from asyncfl_reproduction.claims import CLAIMS
from asyncfl_reproduction.published import artefacts
from asyncfl_reproduction.report import head_to_head, summary
from asyncfl_reproduction.report.printed_tables import beside, laid_out
from asyncfl_reproduction.report.recorded import Recorded


def slug(*words: str) -> str:
    """Join words into a file name without its ending, such as ``fedecho-table-2``."""
    return re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-")


def every_table(recorded: Recorded) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame]]:
    """Yield the name of each table in the report, with its tidy form and the form that is shown."""
    plain = {
        "summary": summary.verdicts(recorded),
        "headlines": summary.headlines(recorded),
        "questions": recorded.questions,
        "head-to-head": head_to_head.table(recorded.league.measured),
        "methods": summary.methods(recorded),
        "compute": summary.compute(recorded),
        "ours": summary.ours(recorded),
        "stand-ins": summary.stand_ins(recorded),
        "cells": recorded.table,
        **{f"{paper}-claims": recorded.claims(paper) for paper in CLAIMS},
    }
    for name, table in plain.items():
        yield name, table, table
    for paper in summary.TITLES.values():
        for artefact in artefacts(paper):
            table = beside(recorded, paper, artefact)
            yield slug(paper, artefact), table, laid_out(table, paper, artefact)


def own_tables(recorded: Recorded) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame]]:
    """Yield the tables of a user's own grid, as :func:`every_table` does."""
    for name, table in {"cells": recorded.table, "compute": summary.compute(recorded)}.items():
        yield name, table, table


def write_tables(recorded: Recorded, folder: str | Path, *, own: bool = False) -> list[Path]:
    """Write every table of the report into ``folder`` as CSV, Markdown and LaTeX, and return the files.

    The CSV is tidy, with one number per row. Markdown and LaTeX are laid out as printed, with the paper's and our lines
    for each row.
    """
    written = []
    for name, tidy, shown in (own_tables if own else every_table)(recorded):
        flat = _flat(shown)
        contents = {"csv": tidy.to_csv(index=False), "md": markdown(flat), "tex": latex(flat)}
        for ending, text in contents.items():
            path = Path(folder) / f"{name}.{ending}"
            write_atomically(path, text)
            written.append(path)
    return written


def _flat(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with its index as columns and only one header row."""
    if isinstance(table.index, pd.RangeIndex):
        return table.astype(str)
    table = table.copy()
    if isinstance(table.columns, pd.MultiIndex):
        table.columns = [", ".join(map(str, head)) for head in table.columns]
    table.columns.name = None
    return table.reset_index().astype(str)


def markdown(table: pd.DataFrame) -> str:
    """Return a table as GitHub's Markdown, with special characters escaped."""
    head, *rows = _escaped(table, PLAIN)
    lines = ("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))
    return "\n".join(lines) + "\n"


def latex(table: pd.DataFrame) -> str:
    """Return a table as LaTeX for ``booktabs``, with special characters escaped and symbols as commands."""
    head, *rows = (" & ".join(row) + r" \\" for row in _escaped(table, COMMANDS))
    begin = rf"\begin{{tabular}}{{{'l' * len(table.columns)}}}"
    lines = [begin, r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines) + "\n"


def _escaped(table: pd.DataFrame, characters: dict[int, str]) -> list[list[str]]:
    rows = [table.columns, *table.to_numpy().tolist()]
    return [[" ".join(str(text).split()).translate(characters) for text in row] for row in rows]


PLAIN = str.maketrans({"|": r"\|", "[": r"\[", "&": "&amp;", "<": "&lt;"})
"""Special character in a Markdown table -> its escaped form."""
GREEK = {"α": "alpha", "β": "beta", "γ": "gamma", "η": "eta", "λ": "lambda", "ν": "nu", "τ": "tau"}
SIGNS = {"±": "pm", "×": "times", "≥": "geq", "≤": "leq", "≈": "approx", "†": "dagger"}
COMMANDS = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {c: f"${c}$" for c in "<>|"}
    | {c: f"$\\{name}$" for c, name in (GREEK | SIGNS).items()}
)
"""Special character in LaTeX, or symbol missing in its text fonts -> its command or formula."""

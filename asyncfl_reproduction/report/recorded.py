"""A tier's cells with their recorded results, and the claims and tables that are computed from them."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from asyncfl_lite.runs.results import Result
from asyncfl_reproduction.claims import CLAIMS, VERDICTS, Measured, check_all, table_of_claims
from asyncfl_reproduction.claims.checking import KINDS, TRAINED, Checked
from asyncfl_reproduction.claims.findings import Seeds
from asyncfl_reproduction.claims.headlines import check_headlines
from asyncfl_reproduction.claims.measured import ACCURACY, TUNED
from asyncfl_reproduction.grid.cells import Cell, expand_grid
from asyncfl_reproduction.grid.columns import FIXED
from asyncfl_reproduction.grid.record import outdated_tidy, read_tidy
from asyncfl_reproduction.home import field_in, tier_file
from asyncfl_reproduction.league.across import answer_questions
from asyncfl_reproduction.number_texts import mean_text
from asyncfl_reproduction.verdict_words import counted, of_parts

MISSING = "not run"
LEAGUE = "league"
NOT_MEASURED = "not measured"


class Ours(NamedTuple):
    """Our measurement of a printed number.

    Attributes:
        values: numbers in the printed unit, one per run, infinite if a target was not reached; None without any run.
        source: the cells; or "simulated", "counted" or "delay law" with details; or "not measured" with the reason, if
            nothing in the package can measure it.
        mark: " (constant answer)", with the number of seeds, if runs behind it predict one class for every input.
        trained: False if most runs of a cell behind it do so.
    """

    values: Seeds | None
    source: str = ""
    mark: str = ""
    trained: bool = True


class Recorded:
    """A tier's cells and their recorded results.

    Args:
        file: ``cells/<tier>.yaml``.
        runs: folder of results.
        kept: folder of the tables that ``asyncfl-lite record`` wrote, for each tier. A cell is read from these tables,
            without its table of updates, if they hold more of its runs than ``runs`` does. If None, only ``runs`` is
            read.

    Attributes:
        cells: every cell of the tier, by name.
        results: cell -> its finished runs, by seed; cells without any are absent.
        from_kept: the cells that were read from ``kept``.
        outdated: cell -> ``stale`` (run with code whose meaning has changed since) or ``changed`` (run with another
            configuration), for cells that have such runs; these runs count as not run.
        tables: (paper, artefact) -> the printed table with ours beside it, kept by :func:`.printed_tables.beside`.
    """

    def __init__(self, file: str | Path, runs: str | Path, kept: str | Path | None = None) -> None:
        self.cells: dict[str, Cell] = {cell.name: cell for cell in expand_grid(file)}
        self._runs, self._kept = runs, kept
        there = [name for name, cell in self.cells.items() if cell.folder(Path(runs)).is_dir()]
        loaded = dict.fromkeys(self.cells, []) | {name: self.cells[name].load(Path(runs)) for name in there}
        tables = {} if kept is None else read_tidy(self.cells.values(), Path(kept) / self.tier)
        self.from_kept = {name for name, results in tables.items() if len(results) > len(loaded[name])}
        loaded |= {name: tables[name] for name in self.from_kept}
        self.results: dict[str, list[Result]] = {name: results for name, results in loaded.items() if results}
        standings = {name: self.cells[name].state(Path(runs)) for name in there if name not in self.from_kept}
        self.outdated = {name: state for name, state in standings.items() if state in ("stale", "changed")}
        if kept is not None:
            lacking = [cell for name, cell in self.cells.items() if name not in self.results]
            self.outdated |= outdated_tidy(lacking, Path(kept) / self.tier)
        self.tables: dict[tuple[str, str], pd.DataFrame] = {}

    @property
    def tier(self) -> str:
        """Name of the cells' tier, or of the part of a tier that has a folder of its own."""
        return next(iter(self.cells.values())).shelf

    @cached_property
    def measured(self) -> Measured:
        """The results on which the claims are checked."""
        return Measured.of(self.results, self.cells)

    def in_column(self, column: str) -> Recorded:
        """Return a copy with the measurements of one column, such as "tuned"; see :meth:`.Measured.column`."""
        other = copy.copy(self)
        other.measured, other.tables = self.measured.column(column), {}
        return other

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per cell, with accuracy over seeds, virtual time, updates, staleness and seconds."""
        rows = []
        for name, cell in self.cells.items():
            results = self.results.get(name)
            if not results:
                why = f" ({self.outdated[name]})" if name in self.outdated else ""
                rows.append({"cell": name, "accuracy %": MISSING + why})
                continue
            numbers = pd.DataFrame([result.summary for result in results])
            rows.append(
                {
                    "cell": name,
                    "accuracy %": mean_and_deviation(100 * numbers[ACCURACY]) + self.measured.mark(name),
                    "seeds": len(results)
                    if len(results) == len(cell.seeds)
                    else f"{len(results)} of {len(cell.seeds)}",
                    "versions": int(numbers["versions"].mean()),
                    "virtual time": round(numbers["virtual_time"].mean(), 1),
                    "updates": int(numbers["client_updates"].mean()),
                    "mean staleness": round(numbers["mean_staleness"].mean(), 1),
                    "max staleness": int(numbers["max_staleness"].max()),
                    "CPU s per run": round(np.mean([result.timing["cpu_seconds"] for result in results]), 1),
                }
            )
        return pd.DataFrame(rows, dtype=object).fillna("")

    def cell_of(self, row: pd.Series) -> str | None:
        """Return the cell that belongs to a printed row, or None if there is none."""
        candidates = self._beside_what.get((row["paper"].lower(), row["artefact"]), [])
        for name, wanted in candidates:
            if all(str(row.get(column)) == value for column, value in wanted.items()):
                return name
        return None

    @cached_property
    def _beside_what(self) -> dict[tuple[str, str], list[tuple[str, dict[str, str]]]]:
        """Cells by (paper, artefact), each with the values that identify its printed row."""
        found: dict[tuple[str, str], list[tuple[str, dict[str, str]]]] = {}
        for name, cell in self.cells.items():
            for wanted in cell.published:
                found.setdefault((name.split("/")[0], wanted["artefact"]), []).append((name, wanted))
        return found

    @cached_property
    def checked(self) -> dict[str, list[Checked]]:
        """Every paper's claims with their findings in each column; some findings come from simulations run now."""
        return {paper: check_all(self.measured, claims) for paper, claims in CLAIMS.items()}

    @cached_property
    def headlines(self) -> pd.DataFrame:
        """The headlines with their intervals; see :func:`.check_headlines`."""
        return check_headlines(self.measured)

    def claims(self, paper: str) -> pd.DataFrame:
        """Return one row per claim of a paper; see :func:`.table_of_claims`."""
        return table_of_claims(self.checked[paper])

    def verdicts(self, paper: str) -> pd.Series:
        """Return how many of a paper's claims have each verdict when tuned."""
        return self.claims(paper)["ours"].value_counts().reindex(VERDICTS, fill_value=0)

    def verdicts_by_kind(self) -> pd.DataFrame:
        """Return one row per kind of claim and column: kind, column, number of claims, and number with each verdict."""
        columns = {"tuned": "ours", FIXED: FIXED}
        every = pd.concat([self.claims(paper) for paper in CLAIMS], ignore_index=True)
        rows = []
        for kind in KINDS:
            claims = every[every["kind"] == kind]
            for name, column in columns.items():
                if column in claims and (name == "tuned" or kind == TRAINED):
                    counts = claims[column].value_counts().reindex(VERDICTS, fill_value=0)
                    rows.append(
                        {"kind": kind, "column": name if kind == TRAINED else "", "claims": int(counts.sum()), **counts}
                    )
        return pd.DataFrame(rows, columns=["kind", "column", "claims", *VERDICTS])

    def trained_in_words(self) -> str:
        """Describe how many trained claims, and which share of their parts, have each verdict, every method tuned."""
        tuned = [one.finding for found in self.checked.values() for one in found
                 if one.claim.kind == TRAINED and one.column == TUNED]  # fmt: skip
        return f"{counted(Counter(one.verdict for one in tuned))} {of_parts(one.verdicts for one in tuned)}"

    @cached_property
    def league(self) -> Recorded:
        """The league's cells and results; only the league compares methods of different papers."""
        if self.tier == LEAGUE:
            return self
        return Recorded(tier_file(LEAGUE), self._runs, None if self._kept is None else field_in(self._kept))

    @cached_property
    def questions(self) -> pd.DataFrame:
        """One row per question that compares the papers: id, question, state, and answer from the league's cells."""
        return answer_questions(self.league.measured)


def mean_and_deviation(values: Sequence[float]) -> str:
    """Return the mean and standard deviation as ``93.10 ± 0.52``, or "not run" if there are no numbers."""
    if not len(values):
        return MISSING
    values = np.asarray(values)
    return mean_text(values, 2) if len(values) > 1 else f"{values.mean():.2f}"

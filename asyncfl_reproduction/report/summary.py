"""The report's first page, its computing time, and the settings that we had to choose."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np
import pandas as pd
from pandas.io.formats.style import Styler

from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.base.errors import how_many
from asyncfl_reproduction.claims import CLAIMS, VERDICTS
from asyncfl_reproduction.number_texts import with_signs
from asyncfl_reproduction.published import published
from asyncfl_reproduction.report.names import marked, place, words
from asyncfl_reproduction.report.printed_tables import (
    FIXED,
    PAPER,
    as_list,
    beside,
    coloured,
    folded,
    lines_of,
    listed,
    of_html,
    part,
)
from asyncfl_reproduction.report.recorded import Recorded

TITLES = {"fedecho": "FedEcho", "fedrevive": "FedRevive", "kuiper": "KUIPER", "fedadt": "FedADT"}

SETTING = "large-dir0.1"
"""The setting in which every method is run once."""

HEADLINES = [
    ("FedEcho", "Table 2", {"delay": "large", "alpha": "0.1", "method": "FedEcho", "distill_set": "CIFAR-100"},
     "accuracy of FedEcho with the cross-dataset set, large delay, α = 0.1"),
    ("FedEcho", "Table 2", {"delay": "large", "alpha": "0.1", "method": "FedBuff"}, "FedBuff's there"),
    ("FedRevive", "Table 1", {"dataset": "CIFAR-10", "method": "FedRevive", "metric": "virtual time to target"},
     "FedRevive's virtual time to target, CIFAR-10"),
    ("FedRevive", "Table 1", {"dataset": "CIFAR-10", "method": "FedBuff", "metric": "virtual time to target"},
     "FedBuff's there"),
    ("FedRevive", "Abstract; Table 1 caption", {"dataset": "CIFAR-10"},
     "FedRevive's lead over FedBuff in final accuracy"),
    ("KUIPER", "Fig. 3(b) caption", {"baseline": "FedBuff"}, "KUIPER's lead over FedBuff, 12 devices, bias 1"),
    ("KUIPER", "Fig. 3(b) caption", {"baseline": "Oort"}, "KUIPER's lead over Oort there"),
    ("FedADT", "Table I", {"dataset": "MNIST", "alpha": "0.1", "method": "FedADT"},
     "FedADT's virtual time to 90%, MNIST, α = 0.1"),
    ("FedADT", "Table I", {"dataset": "MNIST", "alpha": "0.1", "method": "FedBuff"}, "FedBuff's there"),
    ("FedADT", "Table II", {"dataset": "MNIST", "alpha": "0.1", "method": "FedADT"}, "FedADT's final accuracy there"),
    ("FedADT", "Table II", {"dataset": "MNIST", "alpha": "0.1", "method": "FedAsync"}, "FedAsync's there"),
]  # fmt: skip
"""Paper, artefact, selection of its rows, and the name on the first page."""


def verdicts(recorded: Recorded) -> pd.DataFrame:
    """Return one row per paper and one for all, with recorded cells and the number of claims that have each verdict."""
    rows = []
    for paper in CLAIMS:
        cells = [name for name in recorded.cells if name.split("/")[0] == paper]
        counts = recorded.verdicts(paper)
        done = f"{sum(name in recorded.results for name in cells)} of {len(cells)}"
        rows.append({"paper": TITLES[paper], "cells recorded": done, "claims": int(counts.sum()), **counts})
    table = pd.DataFrame(rows, columns=["paper", "cells recorded", "claims", *VERDICTS])
    papers = [name for name in recorded.cells if name.split("/")[0] in CLAIMS]
    every = {"paper": "all", "cells recorded": f"{sum(n in recorded.results for n in papers)} of {len(papers)}"}
    return pd.concat([table, pd.DataFrame([every | table[["claims", *VERDICTS]].sum().to_dict()])], ignore_index=True)


def headlines(recorded: Recorded) -> pd.DataFrame:
    """Return the papers' headline numbers with ours, tuned and at the fixed server rate.

    The columns are ``paper``, ``number``, ``unit``, ``printed``, ``ours``, ``verdict``, :data:`.FIXED`, and the verdict
    at the fixed server rate.
    """
    rows, tables, found = [], {}, ["ours", "verdict", FIXED, f"{FIXED}, verdict"]
    for paper, artefact, which, text in HEADLINES:
        if (paper, artefact) not in tables:
            tables[paper, artefact] = published(paper, artefact), beside(recorded, paper, artefact)
        printed, ours = tables[paper, artefact]
        matches = np.logical_and.reduce([printed[column] == value for column, value in which.items()])
        row = ours.loc[int(np.flatnonzero(matches)[0])]
        rows.append([paper, text, row["unit"], row["paper"], *row[found]])
    return pd.DataFrame(rows, columns=["paper", "number", "unit", "printed", *found])


def headlines_shown(recorded: Recorded) -> Styler:
    """Return :func:`headlines` styled for the first page, with colours by verdict."""
    table = headlines(recorded)
    lines, kept = lines_of(table), table[["paper", "number", "unit", "printed"]]
    style = listed(kept.assign(**{head: table[line].map(with_signs) for line, head in lines.items() if line != PAPER}))
    for line, head in list(lines.items())[1:]:
        style = coloured(style, head, table[part(line, "verdict")])
    return style


def compute(recorded: Recorded) -> pd.DataFrame:
    """Return the processor time by group of cells and method, with sums at the end.

    The columns are cells, runs, client updates and minutes.
    """
    rows = []
    for name, results in recorded.results.items():
        method = recorded.cells[name].config
        label = "oort" if method.selection == "oort" else method.algorithm
        minutes = sum(result.timing["cpu_seconds"] for result in results) / 60
        updates = sum(result.summary["client_updates"] for result in results)
        rows.append([name.split("/")[0], marked(label), 1, len(results), updates, minutes])
    columns = ["paper", "method", "cells", "runs", "client updates", "CPU minutes"]
    numbers = pd.DataFrame(rows, columns=columns)
    by_method = numbers.groupby(["paper", "method"], sort=False, as_index=False).sum()
    sums = numbers.drop(columns="method").groupby("paper", sort=False, as_index=False).sum().assign(method="all")
    every = numbers[columns[2:]].sum().to_frame().T.assign(paper="all", method="all")
    table = pd.concat([by_method, sums, every], ignore_index=True)[columns]
    table[columns[2:5]] = table[columns[2:5]].astype(int)
    return table.assign(**{"CPU minutes": table["CPU minutes"].astype(float).round(2)})


def ours(recorded: Recorded) -> pd.DataFrame:
    """Return our values for settings that the papers do not print: paper, setting, value and why, number of cells."""
    rows = [(name.split("/")[0], setting, " ".join(text.split()))
            for name, cell in recorded.cells.items() for setting, text in cell.ours.items()]  # fmt: skip
    table = pd.DataFrame(rows, columns=["paper", "setting", "ours"])
    return table.value_counts(sort=False).rename("cells").reset_index()


def stand_ins(recorded: Recorded) -> pd.DataFrame:
    """Return a table that says, by paper, which data and models of the tier stand in for which originals."""
    rows = {(name.split("/")[0], " ".join(cell.about.split())) for name, cell in recorded.cells.items() if cell.about}
    return pd.DataFrame(sorted(rows), columns=["cells", "data and model"])


def methods(recorded: Recorded) -> pd.DataFrame:
    """Return the cells that run all methods in one setting; a cell in another setting is marked with that setting."""
    table = recorded.table
    table = table[table["cell"].str.startswith("methods/")]
    parts = [path.split("/")[-2:] for path in table["cell"]]
    names = [marked(method) + f", {words(where)}" * (where != SETTING) for where, method in parts]
    return table.assign(cell=names).rename(columns={"cell": "method"})


def methods_by_kind(recorded: Recorded) -> dict[str, dict[str, str]]:
    """Return the cells in :data:`SETTING` by method, grouped by the event that makes a version."""
    kinds: dict[str, dict[str, str]] = {"rounds": {}, "one update per version": {}, "buffers and bursts": {}}
    synchronous, single, buffered = kinds.values()
    for name, cell in recorded.cells.items():
        if name.startswith(f"methods/{SETTING}/"):
            rounds, several = cell.config.scheduling == "rounds", ALGORITHMS.get(cell.config.algorithm).buffered
            (synchronous if rounds else buffered if several else single)[name.split("/")[-1]] = name
    return kinds


def cells_shown(recorded: Recorded, names: Mapping[str, str]) -> str:
    """Return the table of cells as HTML, in one fold for each table or figure that uses them.

    Cells are shown by name, with their paths as tooltips. The cells that were not run are listed at the end.
    """
    table = recorded.table
    run = table["cell"].isin(list(recorded.results))
    parts = [
        folded(f"{escape(title)}: {how_many(len(rows), 'cell')}", _cells(rows, names))
        for title, rows in table[run].groupby(table["cell"].map(place), sort=False)
    ]
    if left := [f"{place(path)}: {names[path]}" for path in table["cell"][~run]]:
        parts.append(folded(f"{how_many(len(left), 'cell')} of {len(table)} not run", as_list(left)))
    return "".join(parts)


def _cells(table: pd.DataFrame, names: Mapping[str, str]) -> str:
    shown = table.map(lambda value: escape(str(value).replace(" ± ", "\u00a0±\u00a0")))
    shown["cell"] = [f'<span title="{escape(path)}">{escape(names[path])}</span>' for path in table["cell"]]
    return of_html(shown).to_html()


def constant_answers(recorded: Recorded, names: Mapping[str, str]) -> str:
    """Return, as folded HTML, the cells with runs that predict one class for everything; empty if there are none."""
    marks = {path: recorded.measured.mark(path) for path in recorded.results}
    marked = [f"{place(path)}: {names[path]}{mark}" for path, mark in marks.items() if mark]
    if not marked:
        return ""
    line = f"{len(marked)} of {len(recorded.results)} cells predict one class for everything, with some seeds or all"
    why = "<p>Claims that rest on a cell most of whose runs do so are open, because it did not train.</p>"
    return folded(line, why + as_list(marked))


def outdated(recorded: Recorded) -> str:
    """Return, as HTML, the cells whose recorded runs are outdated or have other settings; empty if there are none."""
    reasons = {"stale": "run with code whose meaning has changed since", "changed": "run with other settings"}
    parts = []
    for state, reason in reasons.items():
        if paths := [path for path, found in recorded.outdated.items() if found == state]:
            line = f"{how_many(len(paths), 'cell')} {reason}, left out here until run again"
            parts.append(folded(line, as_list(paths)))
    return "".join(parts)

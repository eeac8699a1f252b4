"""The first page, what was spent, and what is ours."""

from __future__ import annotations

import numpy as np
import pandas as pd

from asyncfl_lite import plots
from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.reproduction.claims import CLAIMS, VERDICTS
from asyncfl_lite.reproduction.published import published
from asyncfl_lite.reproduction.report.recorded import MISSING, Recorded
from asyncfl_lite.reproduction.report.tables import beside

TITLES = {"fedecho": "FedEcho", "fedrevive": "FedRevive", "kuiper": "KUIPER", "fedadt": "FedADT"}

HEADLINES = [
    ("FedEcho", "Table 2", {"delay": "large", "alpha": "0.1", "method": "FedEcho", "distill_set": "CIFAR-100"},
     "accuracy of FedEcho with the cross-dataset set, large delay, α = 0.1"),
    ("FedEcho", "Table 2", {"delay": "large", "alpha": "0.1", "method": "FedBuff"}, "FedBuff's there"),
    ("FedRevive", "Table 1", {"dataset": "CIFAR-10", "method": "FedRevive", "metric": "virtual time to target"},
     "FedRevive's virtual time to target, CIFAR-10"),
    ("FedRevive", "Table 1", {"dataset": "CIFAR-10", "method": "FedBuff", "metric": "virtual time to target"},
     "FedBuff's there"),
    ("FedRevive", "Abstract; Table 1 caption", {"dataset": "CIFAR-10"}, "FedRevive's final accuracy above FedBuff's"),
    ("KUIPER", "Fig. 3(b) caption", {"baseline": "FedBuff"}, "KUIPER's accuracy above FedBuff's, 12 devices, bias 1"),
    ("KUIPER", "Fig. 3(b) caption", {"baseline": "Oort"}, "above Oort's there"),
    ("FedADT", "Table I", {"dataset": "MNIST", "alpha": "0.1", "method": "FedADT"},
     "FedADT's virtual time to 90%, MNIST, α = 0.1"),
    ("FedADT", "Table I", {"dataset": "MNIST", "alpha": "0.1", "method": "FedBuff"}, "FedBuff's there"),
    ("FedADT", "Table II", {"dataset": "MNIST", "alpha": "0.1", "method": "FedADT"}, "FedADT's final accuracy there"),
    ("FedADT", "Table II", {"dataset": "MNIST", "alpha": "0.1", "method": "FedAsync"}, "FedAsync's there"),
]  # fmt: skip
"""Paper, artefact, which of its rows, and what that is called on the first page."""


def verdicts(recorded: Recorded) -> pd.DataFrame:
    """Return one row per paper, and one for all: cells recorded, claims, and how many of them have each verdict."""
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
    """Return the papers' headline numbers with ours: paper, number, unit, printed, ours, verdict."""
    rows, tables = [], {}
    for paper, artefact, which, text in HEADLINES:
        if (paper, artefact) not in tables:
            tables[paper, artefact] = published(paper, artefact), beside(recorded, paper, artefact)
        printed, ours = tables[paper, artefact]
        matches = np.logical_and.reduce([printed[column] == value for column, value in which.items()])
        row = ours.loc[int(np.flatnonzero(matches)[0])]
        rows.append([paper, text, row["unit"], row["paper"], row["ours"], row["verdict"]])
    return pd.DataFrame(rows, columns=["paper", "number", "unit", "printed", "ours", "verdict"])


def compute(recorded: Recorded) -> pd.DataFrame:
    """Return processor time spent: one row per group of cells and method, then sums.

    The columns are cells, runs, client updates and minutes.
    """
    rows = []
    for name, results in recorded.results.items():
        method = recorded.cells[name].config
        label = "oort" if method.selection == "oort" else method.algorithm
        minutes = sum(result.timing["cpu_seconds"] for result in results) / 60
        updates = sum(result.summary["client_updates"] for result in results)
        rows.append([name.split("/")[0], plots.title(label), 1, len(results), updates, minutes])
    columns = ["paper", "method", "cells", "runs", "client updates", "CPU minutes"]
    numbers = pd.DataFrame(rows, columns=columns)
    by_method = numbers.groupby(["paper", "method"], sort=False, as_index=False).sum()
    sums = numbers.drop(columns="method").groupby("paper", sort=False, as_index=False).sum().assign(method="all")
    every = numbers[columns[2:]].sum().to_frame().T.assign(paper="all", method="all")
    table = pd.concat([by_method, sums, every], ignore_index=True)[columns]
    table[columns[2:5]] = table[columns[2:5]].astype(int)
    return table.assign(**{"CPU minutes": table["CPU minutes"].astype(float).round(2)})


def ours(recorded: Recorded) -> pd.DataFrame:
    """Return settings that the papers do not print: paper, setting, what was taken and why, in how many cells."""
    rows = [(name.split("/")[0], setting, " ".join(text.split()))
            for name, cell in recorded.cells.items() for setting, text in cell.ours.items()]  # fmt: skip
    table = pd.DataFrame(rows, columns=["paper", "setting", "ours"])
    return table.value_counts(sort=False).rename("cells").reset_index()


def stand_ins(recorded: Recorded) -> pd.DataFrame:
    """Return what the tier's data and models are: paper, text."""
    rows = {(name.split("/")[0], " ".join(cell.about.split())) for name, cell in recorded.cells.items() if cell.about}
    return pd.DataFrame(sorted(rows), columns=["cells", "data and model"])


def methods(recorded: Recorded) -> pd.DataFrame:
    """Return the cells in which every method stands once, in one setting."""
    table = recorded.table()
    table = table[table["cell"].str.startswith("methods/")]
    names = table["cell"].str.split("/").str[-1]
    return table.assign(cell=[plots.title(name) for name in names]).rename(columns={"cell": "method"})


def methods_by_kind(recorded: Recorded) -> dict[str, dict[str, str]]:
    """Return those cells by what makes a version: kind -> method -> cell."""
    kinds: dict[str, dict[str, str]] = {"rounds of all": {}, "a version an update": {}, "buffers and bursts": {}}
    synchronous, single, buffered = kinds.values()
    for name, cell in recorded.cells.items():
        if name.startswith("methods/"):
            rounds, several = cell.config.redispatch == "rounds", ALGORITHMS.get(cell.config.algorithm).buffered
            (synchronous if rounds else buffered if several else single)[name.split("/")[-1]] = name
    return kinds


def not_run(recorded: Recorded) -> str:
    """Name the cells that were not run, by folder."""
    missing = [name for name in recorded.cells if name not in recorded.results]
    if not missing:
        return "Every cell of the tier was run." + _outdated(recorded)
    folders = pd.Series([name.rsplit("/", 1)[0] for name in missing]).value_counts(sort=False)
    named = ", ".join(f"{folder} ({count})" for folder, count in folders.items())
    return f"{len(missing)} of {len(recorded.cells)} cells were {MISSING}: {named}." + _outdated(recorded)


def constant_answers(recorded: Recorded) -> str:
    """Name the cells of which runs answer one class for everything; empty if there are none."""
    marked = [f"{name}{mark}" for name in recorded.results if (mark := recorded.measured.mark(name))]
    if not marked:
        return ""
    return (
        f"**{len(marked)} of {len(recorded.results)} cells answer one class for everything, with some seeds or all:** "
        f"{', '.join(marked)}. Claims that rest on such a cell are not decided: most of its runs did not train."
    )


def _outdated(recorded: Recorded) -> str:
    """Name cells whose recorded runs do not count, and why."""
    reasons = {"stale": "run with code whose meaning has changed since", "changed": "run with other settings"}
    parts = []
    for state, reason in reasons.items():
        names = [name for name, found in recorded.outdated.items() if found == state]
        parts += [f" **{len(names)} {reason}, left out here until run again:** {', '.join(names)}."] if names else []
    return "".join(parts)

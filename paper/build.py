"""Write paper/asyncfl-reproduction.pdf: every number is read from the records, every figure is the report's own.

``make paper``. The text is ``manuscript.typ``. This script looks up the differences and accuracies that it asks for,
counts claims and runs, draws two figures, and lets typst set the pages.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import typst
from matplotlib import rc_context

from asyncfl_lite import Config
from asyncfl_lite.algorithms.base import ALGORITHMS
from asyncfl_lite.base.style import use_style
from asyncfl_lite.models.base import initial_model
from asyncfl_lite.runs.assembly import load_task
from asyncfl_lite.tasks import Task
from asyncfl_reproduction.claims import CLAIMS, Measured
from asyncfl_reproduction.claims.base import TRAINED
from asyncfl_reproduction.claims.measured import AT_FIXED_RATE, TUNED
from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.grid.columns import FIXED, PLAIN, RATE_1
from asyncfl_reproduction.home import RESULTS
from asyncfl_reproduction.places import tier_file
from asyncfl_reproduction.report.forest import draw_forest
from asyncfl_reproduction.report.recorded import Recorded
from asyncfl_reproduction.report.together import RATES as FEDBUFFS
from asyncfl_reproduction.report.tries import draw_tries, tries
from asyncfl_reproduction.statistics import Contrast, contrast
from asyncfl_reproduction.tuning.grids import read_grids
from asyncfl_reproduction.tuning.outcomes import kept_in, of_cells
from asyncfl_reproduction.verdicts import NOT_RUN, VERDICTS, counted
from asyncfl_reproduction.written import in_points

HERE = Path(__file__).parent
BUILD = HERE / "build"
ASKED = re.compile(r'#(?:d|says)\(\s*"([^"]+)",\s*"([^"]+)"(?:,\s*column:\s*"([^"]+)")?\s*\)')
ASKED_ALONE = re.compile(r'#accuracy\(\s*"([^"]+)"(?:,\s*column:\s*"([^"]+)")?\s*\)')
COLUMNS = {TUNED: TUNED, RATE_1: AT_FIXED_RATE, PLAIN[RATE_1]: "printed", "printed": "all_printed"}
"""Column of the text -> its name in code."""
EQUAL_TIME = "equal time"
"""Column of the tuned difference when the first of the two runs ends."""
ON_REAL_DATA = " on real data"
"""Ends a column's name where the cells are those of the tier ``real``."""
PLACES = [(f"{delay} delay, α = {alpha}", f"fedecho/table2/{delay}-dir{alpha}") for delay in ("large", "mild")
          for alpha in ("0.1", "0.3")]  # fmt: skip
SETS = ("natural", "cross", "synthetic")
OWN_SIZE = [(f"{data}, {clients:,}", f"{task}-clients{clients}")
            for task, data in (("mnist", "MNIST"), ("fmnist", "Fashion-MNIST"), ("shakespeare", "Shakespeare"))
            for clients in (1000, 500, 100)]  # fmt: skip
"""Settings of KUIPER's Figure 5, with the number of clients, and their names in cells."""
EXACT = [setting for setting in OWN_SIZE if setting[1] in ("mnist-clients1000", "fmnist-clients1000")]
"""Those with three seeds, of which the text tells differences."""
RATES = {cell.partition("-rate")[2] or "1": cell for cell in FEDBUFFS}
"""FedBuff's server rate -> its cell at the paper's own size."""
MAIN = (
    "fedecho/table2/large-dir0.1/fedecho-natural",
    "fedrevive/table1/cifar10/fedrevive",
    "kuiper/fig3b/bias1/kuiper",
    "fedadt/table1/mnist-dir0.1/fedadt",
)
"""The paper's own method in its main comparison."""
DATA = {"overlaid_mnist": "overlaid digits", "glyphs50": "drawn shapes"}
TRIED = ("fedecho/table2/large-dir0.1", "kuiper/fig3b/bias0", "fedadt/table1/mnist-dir0.1")
"""Studies that the figure of tries shows."""


@cache
def recorded(tier: str) -> Recorded:
    """Return what the repository keeps of a tier."""
    return Recorded(tier_file(tier), HERE / "nothing", RESULTS)


def measured(cell: str) -> Measured:
    """Return the results of the tier in which a cell is recorded."""
    paper = cell.split("/")[0]
    own = recorded(paper if paper in ("league", "real") else "laptop").measured
    return own if cell in own.summaries or paper != "kuiper" else recorded("exact").measured


def compared(left: str, right: str, column: str) -> Contrast | None:
    """Return the difference of two cells in a column; None where one was not run."""
    if column == EQUAL_TIME:
        return contrast(measured(left).gap_in_time(left, right).to_numpy(), "")
    found = recorded("real").measured if column.endswith(ON_REAL_DATA) else measured(left)
    gap = found.column(COLUMNS[column.removesuffix(ON_REAL_DATA)]).gap(left, right)
    return None if gap is None else contrast(gap.to_numpy(), "")


def said(found: Contrast | None) -> str:
    """Return how the text says where the left cell lies."""
    words = {"equivalent": "equivalent to", "open": "not distinguishable from"}
    return "not compared with" if found is None else words.get(found.side, found.side)


def asked_for(text: str) -> dict[str, dict]:
    """Return what the text looks up: differences and accuracies.

    Raises:
        SystemExit: if a comparison that the text tells was not run.
    """
    differences, accuracies = {}, {}
    for left, right, column in ASKED.findall(text):
        column = column or "tuned"
        found = compared(left, right, column)
        if found is None:
            raise SystemExit(f"paper: {left} and {right} are not both recorded in column {column!r}")
        differences[f"{left} - {right} in {column}"] = {"text": in_points(found), "words": said(found)}
    for cell, column in ASKED_ALONE.findall(text):
        column = column or "tuned"
        values = measured(cell).column(COLUMNS[column]).by_seed(cell)
        if values is None:
            raise SystemExit(f"paper: {cell} is not recorded in column {column!r}")
        accuracies[f"{cell} in {column}"] = f"{100 * values.mean():.1f} ± {100 * values.std():.1f}"
    return {"differences": differences, "accuracies": accuracies}


def shown(found: Contrast | None) -> str:
    """Return a difference in points with its interval, or that it was not run."""
    return NOT_RUN if found is None else in_points(found)


def fedecho_table() -> list[dict[str, str]]:
    """Return FedEcho above FedBuff: a row for each column of its Table 2 and unlabelled set."""
    rows = []
    for title, cells in PLACES:
        for unlabelled in SETS:
            pair = f"{cells}/fedecho-{unlabelled}", f"{cells}/fedbuff"
            leads = {column.replace(" ", "_"): shown(compared(*pair, column)) for column in COLUMNS}
            rows.append({"place": f"{title}, {unlabelled}", **leads})
    return rows


def exact_table() -> list[dict[str, str]]:
    """Return KUIPER's accuracy and its lead over FedBuff at five server rates, in cells of the paper's own size."""
    rows = []
    for title, setting in EXACT:
        cells = f"kuiper/fig5/{setting}"
        kuiper = f"{cells}/kuiper"
        leads = {rate: shown(compared(kuiper, f"{cells}/{name}", "tuned")) for rate, name in RATES.items()}
        if set(leads.values()) != {NOT_RUN}:
            accuracy = recorded("exact").measured.by_seed(kuiper).mean()
            rows.append({"place": f"{title} clients", "kuiper": f"{100 * accuracy:.1f}", **leads})
    return rows


def own_size_table() -> list[list[str]]:
    """Return accuracies in cells of the paper's own size: setting, seeds, then a column for each method and bias."""

    def best(names: list[str]) -> str:  # a dash for a single one of several
        found = [recorded("exact").measured.by_seed(f"kuiper/{name}") for name in names]
        means = [100 * values.mean() for values in found if values is not None]
        return f"{max(means):.1f}" if len(means) >= min(2, len(names)) else "–"

    rows = []
    for title, setting in OWN_SIZE:
        seeds = recorded("exact").measured.by_seed(f"kuiper/fig5/{setting}/kuiper")
        if seeds is not None:
            cells = [[f"fig5/{setting}/{name}" for name in names] for names in (["kuiper"], FEDBUFFS[:1], FEDBUFFS)]
            cells += [[f"fig5/{setting}/fedasync"], [f"fig5/{setting}/oort"]]
            cells += [[f"fig10/{setting}/bias{bias}"] for bias in ("0", "0.8", "1")]
            rows.append([title, str(len(seeds)), *map(best, cells)])
    return rows


def settings_table() -> list[dict[str, str]]:
    """Return the settings of the main comparison of each paper, from the configuration of its own method's cell."""
    rows = []
    for name in MAIN:
        config = recorded("laptop").cells[name].config
        task = load_task(config.task_settings)
        end = f"{config.rounds} versions" if config.rounds else f"{config.horizon:,.0f} units of time"
        rows.append({"method": ALGORITHMS.get(config.algorithm).about.title, "data": DATA[config.task],
                     "model": f"perceptron, {_weights(config, task):,} weights", "clients": str(config.clients),
                     "in_flight": str(config.concurrency), "length": end})  # fmt: skip
    return rows


def _weights(config: Config, task: Task) -> int:
    module = initial_model(config.model_settings, task.input_spec, 0)
    return sum(weights.numel() for weights in module.parameters())


def choices() -> list[dict[str, str]]:
    """Return the choices that docs/fair.md lists."""
    text = (HERE.parent / "docs/fair.md").read_text(encoding="utf-8").partition("## What we chose, and when")[2]
    rows = [[part.strip() for part in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return [{"choice": choice, "ours": ours, "made": made.partition("; ")[0].replace("`", "")}
            for choice, ours, _, made in rows[2:]]  # fmt: skip


def headlines() -> tuple[pd.DataFrame, list[dict[str, str]]]:
    """Return the twelve headlines as the report has them, and as rows of a table."""
    table = recorded("laptop").headlines

    def in_a_cell(row: pd.Series) -> str:
        if row["verdict"] == NOT_RUN or np.isnan(row["mean"]):
            return row["verdict"]
        scale = (
            100 * row[["mean", "low", "high"]]
            if row["unit"] == "points"
            else np.exp(row[["mean", "low", "high"]].astype(float))
        )
        mean, low, high = (f"{value:+.1f}" if row["unit"] == "points" else f"{value:.2f}" for value in scale)
        numbers = f"{'× ' * (row['unit'] != 'points')}{mean} [{low.lstrip('+')}, {high.lstrip('+')}]"
        return f"{numbers.replace('-', '−')}, {row['verdict']}"

    rows = []
    for name, of in table.groupby("id", sort=False):
        cells = {row["column"]: in_a_cell(row) for _, row in of.iterrows()}
        first = of.iloc[0]
        rows.append({"id": name, "claim": first["sentence"], "paper": first["paper"].replace("-", "−"),
                     "fixed": cells.get(AT_FIXED_RATE, ""), "tuned": cells.get("tuned", "")})  # fmt: skip
    return table, rows


def verdict_counts() -> tuple[list[list[str]], str]:
    """Return a table of verdicts by kind of claim, every method tuned, and the sentence on trained claims."""
    table = recorded("laptop").verdicts_by_kind()
    table = table[table["column"] != FIXED]
    used = [name for name in VERDICTS if table[name].sum()]
    rows = [["", "claims", *used]]
    rows += [[row["kind"], *(str(row[name]) for name in ("claims", *used))] for _, row in table.iterrows()]
    (trained,) = table[table["kind"] == TRAINED].to_dict("records")
    return rows, counted({name: trained[name] for name in VERDICTS})


def costs() -> dict[str, str]:
    """Return how many runs are recorded in all tiers and how many searches made, and their hours of one core."""
    runs, seconds = 0, 0.0
    for tier in ("laptop", "league", "real", "exact"):
        for results in recorded(tier).results.values():
            runs += len(results)
            seconds += sum(result.timing["cpu_seconds"] for result in results)
    tables = {of_cells(cell.tier, cell.name) for cell in recorded("laptop").cells.values() if cell.search}
    searched = [row["cpu_seconds"] for table in tables for rows in kept_in(table).values() for row in rows]
    return {"runs": f"{runs:,}", "hours": f"{seconds / 3600:.0f}", "search_runs": f"{len(searched):,}",
            "search_hours": f"{np.nansum(searched) / 3600:.0f}"}  # fmt: skip


def main() -> None:
    """Build the PDF."""
    BUILD.mkdir(exist_ok=True)
    text = (HERE / "manuscript.typ").read_text(encoding="utf-8")
    table, rows = headlines()
    counts, sentence = verdict_counts()
    echo = fedecho_table()
    largest = max((row["tuned"].split()[0].replace("−", "-") for row in echo), key=lambda value: abs(float(value)))
    grids = read_grids().tuned
    numbers = asked_for(text) | costs() | {
        "claims": sum(map(len, CLAIMS.values())),
        "trained": int(next(row[1] for row in counts[1:] if row[0] == TRAINED)),
        "sentence": sentence,
        "counts": counts,
        "headlines": rows,
        "fedecho": echo,
        "exact": exact_table(),
        "own_size": own_size_table(),
        "settings": settings_table(),
        "choices": choices(),
        "fedecho_largest": f"{abs(float(largest)):.1f}",
        "tries": grids.tries + grids.tries // 3,
        "paper_cells": len(expand_grid(tier_file("paper"))),
    }  # fmt: skip
    (BUILD / "numbers.json").write_text(json.dumps(numbers, ensure_ascii=False, indent=1), encoding="utf-8")
    with rc_context():
        use_style()
        draw_forest(table).savefig(BUILD / "forest.svg")
        chosen = [cell for cell in recorded("laptop").cells.values() if cell.name.rpartition("/")[0] in TRIED]
        draw_tries(tries(chosen)).savefig(BUILD / "tries.svg")
    output = HERE / "asyncfl-reproduction.pdf"
    typst.compile(HERE / "manuscript.typ", output=output, root=HERE)
    print(f"paper: {output.name}, {len(numbers['differences'])} comparisons, {numbers['runs']} runs")


if __name__ == "__main__":
    main()

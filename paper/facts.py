"""Numbers that the manuscript shows by name: counts, extremes and facts about its comparisons."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from lookups import SEARCHED, TOLD, accuracy, compared, measured, number, printed, recorded, setting
from tables import ADT, BIASES, ECHO, EXACT, PARTS, SETS

from asyncfl_reproduction.claims import CLAIMS
from asyncfl_reproduction.claims.headlines import HEADLINES
from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.home import tier_file
from asyncfl_reproduction.measure.operations import operations
from asyncfl_reproduction.published import published
from asyncfl_reproduction.report.names import FOOTNOTE
from asyncfl_reproduction.report.together import RATES as FEDBUFFS
from asyncfl_reproduction.statistics import ERROR_LEVEL, LOOKS, benjamini_hochberg, contrast, holm, scaled
from asyncfl_reproduction.tuning.grids import read_grids
from asyncfl_reproduction.tuning.outcomes import METRIC, kept_in, of_cells
from asyncfl_reproduction.written import in_points

TIERS = ("laptop", "league", "real", "exact")
"""Tiers whose runs are counted."""


def spelt(count: int, zero: str = "no") -> str:
    """Return a small count in letters."""
    names = [zero, "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    return names[count] if count < len(names) else f"{count:,}"


def costs() -> dict[str, str]:
    """Return how many runs are recorded in all tiers and how many searches made, and their hours of one core."""
    runs, seconds = 0, 0.0
    for tier in TIERS:
        for results in recorded(tier).results.values():
            runs += len(results)
            seconds += sum(result.timing["cpu_seconds"] for result in results)
    tables = {of_cells(cell.tier, cell.name) for cell in recorded(SEARCHED).cells.values() if cell.search}
    searched = [row["cpu_seconds"] for table in tables for rows in kept_in(table).values() for row in rows]
    paper = expand_grid(tier_file("paper"))
    return {"runs": f"{runs:,}", "hours": f"{seconds / 3600:.0f}", "search_runs": f"{len(searched):,}",
            "search_hours": f"{np.nansum(searched) / 3600:.0f}", "paper_cells": number(len(paper)),
            "magnitude": str(round(math.log10(operations(paper).sum())))}  # fmt: skip


def of_papers() -> dict[str, str]:
    """Return facts about numbers that the papers print."""
    revive = published("FedRevive", "Table 1")
    revive = revive[revive["metric"] == "final test accuracy"].pivot(index="dataset", columns="method", values="value")
    adt = published("FedADT", "Table II").pivot(index=["dataset", "alpha"], columns="method", values="value")
    ahead = adt["FedADT"] - adt["FedBuff"]
    bias_1 = published("KUIPER", "Fig. 3(b) caption").set_index("baseline")["value"]
    rates = [float(printed("FedEcho", f"{method} local_lr", "")) for method in ("FedEcho", "FedBuff")]
    return {
        "revive_leads": spelt(int((revive["FedRevive"] > revive["FedBuff"]).sum())),
        "revive_sets": spelt(len(revive)),
        "adt_leads": spelt(int((ahead > 0).sum())),
        "adt_columns": spelt(len(ahead)),
        "adt_cifar": f"{ahead['CIFAR-10', '0.1']:.1f}",
        "kuiper_over_fedbuff": number(float(bias_1["FedBuff"])),
        "kuiper_over_oort": number(float(bias_1["Oort"])),
        "echo_rate_ratio": spelt(round(rates[0] / rates[1])),
        "echo_versions": number(int(published("FedEcho", "Table 2")["horizon"].iloc[0].split()[0])),
    }


def of_echo() -> dict[str, str]:
    """Return facts about FedEcho's tuned leads over FedBuff, and about its parts."""
    rows = [
        compared(f"{place}/fedecho-{unlabelled}", f"{place}/fedbuff") for place in ECHO.values() for unlabelled in SETS
    ]
    parts = [compared(*pair) for pair in PARTS.values()]
    return {
        "echo_rows": spelt(len(rows)),
        "echo_largest": f"{100 * max(abs(row.mean) for row in rows):.1f}",
        "echo_widest": f"{100 * max(max(abs(row.low), abs(row.high)) for row in rows):.1f}",
        "echo_positive": spelt(sum(row.low > 0 for row in rows)),
        "echo_negative": spelt(sum(row.high < 0 for row in rows), "none"),
        "part_largest": f"{100 * max(abs(part.mean) for part in parts):.1f}",
    }


def of_times() -> dict[str, str]:
    """Return facts about virtual time, staleness and the ends of runs."""
    found, exact, place = recorded(SEARCHED).results, recorded("exact").results, EXACT["MNIST"]

    def time(results: dict, cell: str) -> float:
        return np.mean([run.summary["virtual_time"] for run in results[cell]])

    full = {name: sum(time(exact, f"{at}/{name}") for at in EXACT.values()) for name in ("oort", "kuiper")}
    ratios = [time(found, f"{cells}/oort") / time(found, f"{cells}/kuiper") for cells in BIASES.values()]
    pair = [[run.curve.set_index("version")["accuracy"] for run in exact[f"{place}/{name}"]]
            for name in ("kuiper", "fedbuff-rate0.1")]  # fmt: skip
    part = int(0.75 * pair[0][0].index[-1])
    gaps = np.array([(left - right).loc[:part].tail(5).mean() for left, right in zip(*pair, strict=True)])
    stale = [run.summary for run in exact[f"{place}/kuiper"]]
    return {
        "oort_least": f"{min(ratios):.1f}",
        "oort_most": f"{max(ratios):.1f}",
        "oort_exact": f"{full['oort'] / full['kuiper']:.0f}",
        "exact_mean_staleness": f"{np.mean([row['mean_staleness'] for row in stale]):.0f}",
        "exact_most_staleness": f"{max(row['max_staleness'] for row in stale)}",
        "exact_part": number(part),
        "exact_part_lead": in_points(contrast(gaps, "")),
        "exact_seeds": spelt(len(stale)),
        "exact_rates": spelt(len(FEDBUFFS)),
        "exact_tests": number(len(pair[0][0])),
        "exact_instants": number(exact[f"{place}/kuiper"][0].curve["time"].nunique()),
    }


def of_revive() -> dict[str, str]:
    """Return how far FedRevive's and two baselines' accuracies fall with every rate as printed."""
    place = "fedrevive/table1/cifar10"
    lost = [float(accuracy(f"{place}/{name}", "", "tuned")) - float(accuracy(f"{place}/{name}", "", "all_printed"))
            for name in ("fedrevive", "fedbuff", "afl_dw")]  # fmt: skip
    return {"revive_least_lost": f"{min(lost):.0f}", "revive_most_lost": f"{max(lost):.0f}"}


def weighted_gain(cell: str) -> str:
    """Return what FedBuff's weights for stale updates gained on the first seed of a cell's search, in points."""
    rows = [row for row in kept_in(of_cells(SEARCHED, cell))[cell] if row["seed"] == read_grids().tuned.seeds[0]]
    best = {equal: max(row[METRIC] for row in rows if ('"none"' in row["point"]) == equal) for equal in (True, False)}
    return f"{100 * (best[False] - best[True]):.1f}"


def of_all() -> dict[str, str]:
    """Return facts about all differences that are told: sizes of models, and how many survive corrections."""
    told = {key: found for key, found in TOLD.items() if found is not None}
    weights = [measured(cell, column).by_seed(cell, "parameters").max() for *pair, column in told for cell in pair]
    tuned = [found for key, found in told.items() if key[2].startswith("tuned")]
    p = [scaled(found.p, found.seeds) for found in tuned]
    return {
        "fewest_weights": f"{int(min(weights)):,}",
        "most_weights": f"{int(max(weights)):,}",
        "compared": str(len(tuned)),
        "certain": str(sum(found.low > 0 or found.high < 0 for found in tuned)),
        **{how.__name__: str(sum(how(p) <= ERROR_LEVEL)) for how in (benjamini_hochberg, holm)},
    }


def facts() -> dict[str, Any]:
    """Return the numbers that the text shows by name, except those that depend on what it looks up."""
    grids = read_grids().tuned
    *levels, last = (f"{100 * level:g}" for level in LOOKS.values())
    first, *later = map(str, LOOKS)
    kept, more = zip(*((spelt(stage.keep), spelt(len(stage.seeds))) for stage in grids.stages), strict=True)
    return {
        **costs(), **of_papers(), **of_echo(), **of_times(), **of_revive(),
        "claims": sum(map(len, CLAIMS.values())), "headlines": spelt(len(HEADLINES)),
        "tries": str(grids.tries + grids.tries // 3), "kept_first": kept[0], "seeds_first": more[0],
        "kept_last": kept[-1], "seeds_last": more[-1],
        "level": f"{100 * ERROR_LEVEL:g}", "levels": f"{', '.join(levels)} and {last}", "first_look": spelt(int(first)),
        "rate_1": setting("fedecho/table2/large-dir0.1/fedbuff", "server_lr", "printed"),
        "later_looks": " or ".join(later), "footnote": FOOTNOTE,
        "weighted": {name: weighted_gain(f"{ADT['overlaid digits']}/{name}") for name in ("fedbuff", "ca2fl")},
    }  # fmt: skip

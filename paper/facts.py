"""Numbers that the manuscript shows by name: counts, extremes and facts about its comparisons."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
from lookups import SEARCHED, TOLD, accuracy, compared, measured, number, printed, recorded, setting
from tables import ADT, BIASES, ECHO, EXACT, MAIN, PARTS, SETS

from asyncfl_reproduction.claims import CLAIMS, fedadt, kuiper, sooner
from asyncfl_reproduction.claims.headlines import HEADLINES
from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.home import tier_file
from asyncfl_reproduction.measure.fedecho import LAWS, versions_held
from asyncfl_reproduction.measure.operations import operations
from asyncfl_reproduction.number_texts import interval_text
from asyncfl_reproduction.published import hyperparameters, published
from asyncfl_reproduction.report.leads import RATES as FEDBUFFS
from asyncfl_reproduction.report.names import FOOTNOTE
from asyncfl_reproduction.statistics import ERROR_LEVEL, LOOKS, benjamini_hochberg, contrast, holm, scaled
from asyncfl_reproduction.tuning.grids import read_grids
from asyncfl_reproduction.tuning.outcomes import METRIC, kept_in, of_cells

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
    gains = {panel: published("KUIPER", f"Fig. 3({panel}) caption").set_index("baseline")["value"] for panel in "abc"}
    overall, sooner = (
        published("KUIPER", of).set_index("baseline")["value"] for of in ("Section 6 text", "Fig. 6(b) caption")
    )
    times = published("FedRevive", "Table 1").query("metric == 'virtual time to target' and dataset == 'CIFAR-10'")
    large = published("FedEcho", "Table 2").query("delay == 'large' and alpha == '0.1'")
    cross = large[large["method"].str.startswith("FedEcho") & large["distill_set"].str.contains("CIFAR-100")]["value"]
    held = published("FedEcho", "Section 5.1 text").query("unit == 'models'")["value"]
    rates = [float(printed("FedEcho", f"{method} local_lr", "")) for method in ("FedEcho", "FedBuff")]
    return {
        "revive_leads": spelt(int((revive["FedRevive"] > revive["FedBuff"]).sum())),
        "revive_sets": spelt(len(revive)),
        "adt_leads": spelt(int((ahead > 0).sum())),
        "adt_columns": spelt(len(ahead)),
        "adt_cifar": f"{ahead['CIFAR-10', '0.1']:.1f}",
        "kuiper_over_fedbuff": {panel: number(float(gain["FedBuff"])) for panel, gain in gains.items()},
        "kuiper_over_oort": number(float(gains["b"]["Oort"])),
        "kuiper_over_fedasync": number(float(overall["FedAsync"])),
        "kuiper_sooner_printed": {name: number(float(sooner[name])) for name in ("Oort", "FedBuff")},
        "revive_time": f"{float(times.set_index('method')['value']['FedRevive']):g}",
        "echo_held_printed": number(float(held.item())),
        "echo_cross_printed": f"{cross.item() - large.set_index('method')['value']['FedBuff']:+.1f}",
        "echo_rate_ratio": spelt(round(rates[0] / rates[1])),
        "echo_versions": number(int(published("FedEcho", "Table 2")["horizon"].iloc[0].split()[0])),
    }


def of_echo() -> dict[str, str]:
    """Return facts about FedEcho's tuned leads over FedBuff, and about its parts."""
    rows = [
        compared(f"{place}/fedecho-{unlabelled}", f"{place}/fedbuff") for place in ECHO.values() for unlabelled in SETS
    ]
    parts = [compared(*pair) for pair in PARTS.values()]
    above = {rival: [compared(f"{place}/fedecho-natural", f"{place}/{rival}") for place in ECHO.values()]
             for rival in ("ca2fl", "fadas", "fedac")}  # fmt: skip
    return {
        "echo_columns": spelt(len(ECHO)),
        "echo_above": {rival: spelt(sum(row.low > 0 for row in rows)) for rival, rows in above.items()},
        "echo_held": number(max(held for law in LAWS for held in versions_held(law))),
        "echo_rows": spelt(len(rows)),
        "echo_largest": f"{100 * max(abs(row.mean) for row in rows):.1f}",
        "echo_widest": f"{100 * max(max(abs(row.low), abs(row.high)) for row in rows):.1f}",
        "echo_positive": spelt(sum(row.low > 0 for row in rows)),
        "echo_negative": spelt(sum(row.high < 0 for row in rows), "none"),
        "part_largest": f"{100 * max(abs(part.mean) for part in parts):.1f}",
    }


def mean_of(number: str, cell: str, tier: str = SEARCHED) -> float:
    """Return the mean of one number of a cell's summaries over seeds."""
    return float(np.mean([run.summary[number] for run in recorded(tier).results[cell]]))


def of_times() -> dict[str, str]:
    """Return facts about virtual time, staleness and the ends of runs."""
    exact, place = recorded("exact").results, EXACT["MNIST"]
    full = [
        sum(mean_of("virtual_time", f"{at}/{name}", "exact") for at in EXACT.values()) for name in ("oort", "kuiper")
    ]
    ratios = [mean_of("virtual_time", f"{at}/oort") / mean_of("virtual_time", f"{at}/kuiper") for at in BIASES.values()]
    stale = [run.summary for run in exact[f"{place}/kuiper"]]
    return {
        "oort_least": f"{min(ratios):.1f}",
        "oort_most": f"{max(ratios):.1f}",
        "oort_exact": f"{full[0] / full[1]:.0f}",
        "exact_mean_staleness": f"{np.mean([row['mean_staleness'] for row in stale]):.0f}",
        "exact_most_staleness": f"{max(row['max_staleness'] for row in stale)}",
        "exact_seeds": spelt(len(stale)),
        "exact_rates": spelt(len(FEDBUFFS)),
        "exact_tests": number(len(exact[f"{place}/kuiper"][0].curve)),
        "exact_instants": number(exact[f"{place}/kuiper"][0].curve["time"].nunique()),
    }


def of_kuiper() -> dict[str, Any]:
    """Return in how many settings KUIPER is above and below FedBuff, and the others' times to a target over its own."""
    ran = [cell for cell in recorded(SEARCHED).results if re.fullmatch("kuiper/fig.*/kuiper", cell)]
    pairs = [(cell, cell.removesuffix("kuiper") + "fedbuff") for cell in ran]
    found = [contrast(gap.to_numpy(), "") for pair in pairs if (gap := measured(pair[0]).gap(*pair)) is not None]
    tuned, ours = measured(MAIN["kuiper"]), kuiper.of_burst("4", "kuiper")
    times = {other: sooner(tuned, ours, kuiper.of_burst(size, other)).contrasts[0]
             for size, other in (("6", "oort"), ("7", "fedbuff"))}  # fmt: skip
    told = {name: interval_text(one).removeprefix("× ").rpartition(", ")[0] for name, one in times.items()}
    return {
        "kuiper_settings": number(len(found)),
        "kuiper_above": spelt(sum(one.low > 0 for one in found)),
        "kuiper_below": number(sum(one.high < 0 for one in found)),
        "kuiper_sooner": told,
    }


def of_adt() -> dict[str, str]:
    """Return facts about the virtual time of FedADT's runs, and about its target."""
    place = ADT["overlaid digits"]
    updates = [mean_of("client_updates", f"{place}/{name}") for name in ("fedavg", "fedadt")]
    missed = fedadt.targets(measured(f"{place}/fedbuff"), place) != fedadt.TARGETS["mnist"]
    table = hyperparameters("FedADT").query("dataset == 'all'").set_index("name")["value"]
    horizon = recorded(SEARCHED).cells[f"{place}/fedadt"].config.horizon
    return {
        "adt_share": f"{100 * fedadt.SHARE:g}",
        "adt_missed": f"{spelt(int(missed.sum()))} of {spelt(len(missed))}",
        "adt_updates": f"{100 * updates[0] / updates[1]:.0f}",
        "adt_time": f"{100 * horizon / float(table['horizon']):.0f}",
    }


def of_revive() -> dict[str, str]:
    """Return how long FedRevive's runs are, and how far three methods fall with every rate as printed."""
    place = "fedrevive/table1/cifar10"
    updates = round(int(mean_of("client_updates", f"{place}/fedrevive")), -2)
    ends = [recorded(SEARCHED).cells[f"{place}/{name}"].config.horizon for name in ("fedavg", "fedrevive")]
    lost = [float(accuracy(f"{place}/{name}", "", "tuned")) - float(accuracy(f"{place}/{name}", "", "all_printed"))
            for name in ("fedrevive", "fedbuff", "afl_dw")]  # fmt: skip
    return {"revive_least_lost": f"{min(lost):.0f}", "revive_most_lost": f"{max(lost):.0f}",
            "revive_updates": number(updates), "revive_avg_time": f"{ends[0] / ends[1]:.1f}"}  # fmt: skip


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
        **costs(), **of_papers(), **of_echo(), **of_times(), **of_kuiper(), **of_adt(), **of_revive(),
        "claims": sum(map(len, CLAIMS.values())), "headlines": spelt(len(HEADLINES)),
        "tries": str(grids.tries + grids.tries // 3), "kept_first": kept[0], "seeds_first": more[0],
        "kept_last": kept[-1], "seeds_last": more[-1],
        "level": f"{100 * ERROR_LEVEL:g}", "levels": f"{', '.join(levels)} and {last}", "first_look": spelt(int(first)),
        "rate_1": setting("fedecho/table2/large-dir0.1/fedbuff", "server_lr", "printed"),
        "later_looks": " or ".join(later), "footnote": FOOTNOTE,
        "weighted": {name: weighted_gain(f"{ADT['overlaid digits']}/{name}") for name in ("fedbuff", "ca2fl")},
    }  # fmt: skip

"""The rows of the manuscript's tables, all read from the records."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pandas as pd
from lookups import (
    COLUMNS,
    DASH,
    EQUAL_TIME,
    HERE,
    ON_REAL_DATA,
    SEARCHED,
    compared,
    measured,
    number,
    recorded,
    shown,
)

from asyncfl_lite import plots
from asyncfl_lite.algorithms.base import ALGORITHMS
from asyncfl_reproduction.claims.checking import TRAINED
from asyncfl_reproduction.claims.measured import AT_FIXED_RATE, TUNED
from asyncfl_reproduction.grid.columns import FIXED
from asyncfl_reproduction.report.leads import RATES as FEDBUFFS
from asyncfl_reproduction.report.names import SECONDARY, marked
from asyncfl_reproduction.statistics import EQUAL_POINTS, contrast
from asyncfl_reproduction.verdict_words import EQUIVALENT, HOLDS, OPEN, REVERSED, VERDICTS, counted

MAIN = {"fedecho": "fedecho/table2/large-dir0.1/fedecho-natural", "fedrevive": "fedrevive/table1/cifar10/fedrevive",
        "kuiper": "kuiper/fig3b/bias1/kuiper", "fedadt": "fedadt/table1/mnist-dir0.1/fedadt"}  # fmt: skip
"""The paper's own method in its main comparison."""
DATA = {"overlaid_mnist": "overlaid digits", "glyphs50": "drawn shapes"}
ECHO = {f"{delay} delay, α = {alpha}": f"fedecho/table2/{delay}-dir{alpha}" for delay in ("large", "mild")
        for alpha in ("0.1", "0.3")}  # fmt: skip
"""FedEcho's Table 2: column -> its cells."""
SETS = ("natural", "cross", "synthetic")
ECHO_RIVALS = ("fedbuff", "fedbuff-decayed", "fedbuff-adaptive", "ca2fl", "fedac", "fadas")
PARTS = {
    "natural images above no distillation": (MAIN["fedecho"], "fedecho/control/large-dir0.1/no-distillation"),
    "natural images above noise": (MAIN["fedecho"], "fedecho/control/large-dir0.1/noise"),
    "noise above FedBuff": ("fedecho/control/large-dir0.1/noise", "fedecho/table2/large-dir0.1/fedbuff"),
    "ten times as many samples, as many passes": ("fedecho/table6/samples-1000", "fedecho/table6/samples-100"),
    "ten times as many samples, as many steps": ("fedecho/table6/equal-steps-1000", "fedecho/table6/equal-steps-100"),
    **{f"{ours} above {other}": ("fedecho/table2/large-dir0.1/fedecho-cross", cell) for ours, other, cell in (
        ("dynamic weight", "cross-entropy alone", "fedecho/table7/ce-only"),
        ("dynamic weight", "divergence alone", "fedecho/table7/kl-only"),
        ("dynamic weight", "a fixed half", "fedecho/table7/fixed-0.5"),
        ("the paper's clipping", "stronger clipping", "fedecho/table11/clip-1"),
        ("the paper's clipping", "no clipping", "fedecho/table11/no-clip"))},
}  # fmt: skip
"""FedEcho's ablations: what is compared -> its two cells."""
BIASES = {bias: f"kuiper/fig3b/bias{bias}" for bias in ("0", "0.5", "0.8", "1")}
ADT = {title: f"fedadt/table1/{data}-dir0.1" for title, data in
       (("overlaid digits", "mnist"), ("plain shapes", "fmnist"), ("drawn shapes", "cifar10"))}  # fmt: skip
ADT_RIVALS = ("fedbuff", "ca2fl", "fedasync", "fedfa", "fedavg", "fedavgm")
REAL = [("FedEcho, natural images, Fashion-MNIST", "fedecho/table2/large-dir0.1", "fedecho-natural"),
        ("FedEcho, natural images, CIFAR-10", "fedecho/photographs/large-dir0.1", "fedecho-natural"),
        ("KUIPER, 20 Newsgroups", "kuiper/fig5/topics-clients50", "kuiper"),
        ("FedADT, MNIST", "fedadt/table1/mnist-dir0.1", "fedadt"),
        ("FedADT, MNIST, CNN", "fedadt/cnn/mnist-dir0.1", "fedadt"),
        ("FedRevive, 20 Newsgroups", "fedrevive/table1/newsgroups", "fedrevive")]  # fmt: skip
OWN_SIZE = [(f"{data}, {clients:,}", f"{task}-clients{clients}")
            for task, data in (("mnist", "MNIST"), ("fmnist", "Fashion-MNIST"), ("shakespeare", "Shakespeare"))
            for clients in (1000, 500)]  # fmt: skip
"""Settings of KUIPER's Figure 5, with the number of clients, and their names in cells."""
EXACT = {"MNIST": "kuiper/fig5/mnist-clients1000", "Fashion-MNIST": "kuiper/fig5/fmnist-clients1000"}
"""Those with three seeds, of which the text tells curves."""


def leads(ours: str, rivals: tuple[str, ...], places: dict[str, str], column: str = "tuned") -> list[list[str]]:
    """Return a row for each rival with the method's lead over it in each place."""
    pairs = {rival: [(f"{place}/{ours}", f"{place}/{rival}") for place in places.values()] for rival in rivals}
    return [[marked(rival), *(shown(compared(*pair, column)) for pair in pairs[rival])] for rival in rivals]


def echo_rows() -> list[list[str]]:
    """Return FedEcho's lead over FedBuff: a row for each column of its Table 2 and unlabelled set."""
    pairs = {f"{name}, {unlabelled}": (f"{place}/fedecho-{unlabelled}", f"{place}/fedbuff")
             for name, place in ECHO.items() for unlabelled in SETS}  # fmt: skip
    return [[name, *(shown(compared(*pair, column)) for column in COLUMNS)] for name, pair in pairs.items()]


def echo_margins() -> list[list[str]]:
    """Return how many of the twelve tuned rows have each verdict if two methods count as equivalent within a margin."""
    rows = []
    for margin in (EQUAL_POINTS / 2, EQUAL_POINTS, 2 * EQUAL_POINTS):
        gaps = [measured(pair[0]).gap(*pair) for place in ECHO.values() for unlabelled in SETS
                if (pair := (f"{place}/fedecho-{unlabelled}", f"{place}/fedbuff"))]  # fmt: skip
        counts = Counter(contrast(gap.to_numpy(), "", equal=margin).verdict for gap in gaps)
        rows.append([f"{100 * margin:g}", *(str(counts[name]) for name in (HOLDS, EQUIVALENT, OPEN, REVERSED))])
    return rows


def times() -> list[list[str]]:
    """Return differences on KUIPER's devices when the first of two runs ends."""
    pairs = (("kuiper", "oort"), ("fedbuff", "oort"), ("kuiper", "fedbuff"))
    return [[bias, *(shown(compared(f"{place}/{left}", f"{place}/{right}", EQUAL_TIME)) for left, right in pairs)]
            for bias, place in BIASES.items()]  # fmt: skip


def curve(cell: str) -> pd.DataFrame:
    """Return a cell's accuracy and number of updates at each test, averaged over seeds."""
    curves = [run.curve[["updates", "accuracy"]] for run in recorded("exact").results[cell]]
    return sum(curves) / len(curves)


def exact_rows() -> list[list[str]]:
    """Return each method's highest and last accuracies in two cells of the paper's own size."""
    names = {"kuiper": "KUIPER"} | {name: f"FedBuff at {name.partition('-rate')[2] or '1'}" for name in FEDBUFFS}
    rows = []
    for name, shown_as in (names | {"fedasync": "FedAsync", "oort": "Oort"}).items():
        row = [shown_as]
        for place in EXACT.values():
            found = curve(f"{place}/{name}")
            best = found.loc[found["accuracy"].idxmax()]
            end = recorded("exact").measured.by_seed(f"{place}/{name}").mean()
            row += [f"{100 * best['accuracy']:.1f}", f"{round(best['updates'], -1):,.0f}", f"{100 * end:.1f}"]
        rows.append(row)
    return rows


def own_size_rows() -> list[list[str]]:
    """Return accuracies at the end of runs of the paper's own size: setting, seeds, and methods or biases."""

    def best(names: list[str]) -> str:  # a dash for a single one of several
        found = [recorded("exact").measured.by_seed(f"kuiper/{name}") for name in names]
        means = [100 * values.mean() for values in found if values is not None]
        return f"{max(means):.1f}" if len(means) >= min(2, len(names)) else DASH

    rows = []
    for name, place in OWN_SIZE:
        seeds = recorded("exact").measured.by_seed(f"kuiper/fig5/{place}/kuiper")
        if seeds is not None:
            cells = [[f"fig5/{place}/{name}" for name in names] for names in (["kuiper"], FEDBUFFS)]
            cells += [[f"fig5/{place}/fedasync"], [f"fig5/{place}/oort"]]
            cells += [[f"fig10/{place}/bias{bias}"] for bias in ("0", "0.8", "1")]
            rows.append([name, str(len(seeds)), *map(best, cells)])
    return rows


def settings_rows() -> list[list[str]]:
    """Return the settings of the main comparison of each paper, from the configuration of its own method's cell."""
    rows = []
    for name in MAIN.values():
        config = recorded(SEARCHED).cells[name].config
        weights = recorded(SEARCHED).results[name][0].summary["parameters"]
        ends = (f"{config.rounds}" if config.rounds else DASH, f"{config.horizon:,.0f}" if config.horizon else DASH)
        rows.append([ALGORITHMS.get(config.algorithm).about.title, DATA[config.task], f"{int(weights):,}",
                     number(config.clients), number(config.concurrency), *ends])  # fmt: skip
    return rows


def real_rows() -> list[list[str]]:
    """Return leads over FedBuff on real data, in all columns."""
    pairs = {name: (f"{place}/{ours}", f"{place}/fedbuff") for name, place, ours in REAL}
    return [
        [name, *(shown(compared(*pair, column + ON_REAL_DATA)) for column in COLUMNS)] for name, pair in pairs.items()
    ]


def choices() -> list[list[str]]:
    """Return the choices that docs/fair.md lists."""
    text = (HERE.parent / "docs/fair.md").read_text(encoding="utf-8").partition("## What we chose, and when")[2]
    rows = [[part.strip() for part in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return [[choice, ours, made.partition("; ")[0].replace("`", "")] for choice, ours, _, made in rows[2:]]


def headlines() -> tuple[pd.DataFrame, list[list[str]], list[list[str]]]:
    """Return the twelve headlines as the report has them, and as rows of two tables, in points and as ratios."""
    table = recorded("laptop").headlines
    rows: dict[str, list[list[str]]] = {"points": [], "log ratio": []}
    for name, of in table.groupby("id", sort=False):
        first, cells = of.iloc[0], []
        for column in (AT_FIXED_RATE, TUNED):
            row = next((row for _, row in of.iterrows() if row["column"] == column), None)
            cells += [DASH, DASH] if row is None else in_two_cells(row)
        paper = first["paper"].removesuffix(" points").removeprefix("× ").replace("-", "−")
        rows[first["unit"]].append([name, with_marks(first["sentence"]), DASH if "not" in paper else paper, *cells])
    return table, rows["points"], rows["log ratio"]


def with_marks(text: str) -> str:
    """Mark the names of methods from secondary sources in a sentence of a table."""
    for name in SECONDARY:
        text = text.replace(plots.title(name), marked(name))
    return text


def in_two_cells(row: pd.Series) -> list[str]:
    """Return a headline's number with its interval, and its verdict."""
    if np.isnan(row["mean"]):
        return [DASH, row["verdict"]]
    points = row["unit"] == "points"
    numbers = [100 * row[end] if points else math.exp(row[end]) for end in ("mean", "low", "high")]
    mean, low, high = (f"{value:+.1f}" if points else f"{value:.2f}" for value in numbers)
    told = f"{mean} [{low.lstrip('+')}, {high.lstrip('+')}]".replace("-", "−")
    return [told, row["verdict"]]


def contradicted() -> str:
    """Return how many reversed claims the paper's own numbers contradict, too."""
    claims = pd.concat([recorded(SEARCHED).claims(paper) for paper in recorded(SEARCHED).checked])
    return str(sum((claims["ours"] == REVERSED) & claims["paper"].str.startswith("fails")))


def verdict_counts() -> tuple[list[list[str]], str]:
    """Return a table of verdicts by kind of claim, every method tuned, and the sentence on trained claims."""
    table = recorded("laptop").verdicts_by_kind()
    table = table[table["column"] != FIXED]
    used = [name for name in VERDICTS if table[name].sum()]
    rows = [["", "claims", *used]]
    rows += [[row["kind"], *(str(row[name]) for name in ("claims", *used))] for _, row in table.iterrows()]
    (trained,) = table[table["kind"] == TRAINED].to_dict("records")
    return rows, counted({name: trained[name] for name in VERDICTS})


def rows() -> dict[str, list]:
    """Return the rows of all tables but those of headlines and claims."""
    rivals = ("fedbuff", "oort", "fedasync")
    return {
        "echo": echo_rows(),
        "margins": echo_margins(),
        "echo_columns": list(ECHO),
        "rivals": leads("fedecho-natural", ECHO_RIVALS, ECHO),
        "parts": [[name, shown(compared(*pair))] for name, pair in PARTS.items()],
        "kuiper": [[bias, *(row[1] for row in leads("kuiper", rivals, {bias: at}))] for bias, at in BIASES.items()],
        "times": times(),
        "adt": leads("fedadt", ADT_RIVALS, ADT),
        "real": real_rows(),
        "exact": exact_rows(),
        "own_size": own_size_rows(),
        "settings": settings_rows(),
        "choices": choices(),
    }

"""Every number of docs/findings.md and docs/differences.md is what was recorded: differences paired by seed."""

from __future__ import annotations

import itertools
import re
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from asyncfl_course import lessons
from asyncfl_reproduction import home
from asyncfl_reproduction.claims import KINDS, VERDICTS
from asyncfl_reproduction.grid.cells import SERVER_RATE
from asyncfl_reproduction.grid.columns import FIXED, PLAIN, TUNED, untuned
from asyncfl_reproduction.grid.tidy import RUNS
from asyncfl_reproduction.parquet import read_table
from asyncfl_reproduction.published import published
from asyncfl_reproduction.report import Recorded
from asyncfl_reproduction.statistics import contrast
from asyncfl_reproduction.verdicts import counted

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/differences.md").read_text()
FINDINGS = (ROOT / "docs/findings.md").read_text()
SAID = " ".join(FINDINGS.split())
README = (ROOT / "README.md").read_text()
TIERS = {"league": "league", "questions": "league", "real": "real"}
"""First part of a cell's name -> where it is recorded, if not in the laptop tier."""
SETS = {"natural": "STL10", "synthetic": "synthetic-DDPM", "cross": "CIFAR-100"}
DATA = {
    "mnist": "MNIST",
    "fmnist": "FMNIST",
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "newsgroups": "20NewsGroups",
    "femnist": "FEMNIST",
}


@cache
def recorded(tier: str, paper: str) -> pd.DataFrame:
    """A paper's recorded runs of a tier, by cell."""
    return read_table(home.RESULTS / tier / paper / RUNS).set_index("cell")


def tier_of(cell: str) -> str:
    """The tier in which a cell is recorded."""
    paper = cell.split("/")[0]
    own = TIERS.get(paper, "laptop")
    exact = (home.RESULTS / "paper" / paper).exists() and cell in recorded("paper", paper).index
    return "paper" if exact and cell not in recorded(own, paper).index else own


def difference(left: str, right: str, column: str = TUNED, tier: str | None = None) -> str:
    tier = tier or tier_of(left)
    gap = lessons.evidence(left.split("/")[0], tier).column(column).gap(left, right)
    if gap is None:
        return "not run"
    found = contrast(gap.to_numpy(), "")
    assert found.seeds >= (5 if left.startswith("real/") else {"paper": 3}.get(tier, 10))
    return in_points(100 * found.mean, 100 * found.low, 100 * found.high)


def fixed(cell: str) -> str:
    """The column beside the tuned one of a table with this cell."""
    return "printed" if TIERS.get(cell.split("/")[0]) == "league" else "server_rate"


def in_points(mean: float, low: float, high: float) -> str:
    return f"{mean:+.1f} [{low:.1f}, {high:.1f}]".replace("-", "−")


def tables(text: str) -> list[list[list[str]]]:
    """The rows of each table, without its head."""
    groups = itertools.groupby(text.splitlines(), key=lambda line: line.startswith("|"))
    return [
        [[part.strip() for part in line.strip("|").split("|")] for line in lines][2:] for is_table, lines in groups
        if is_table
    ]  # fmt: skip


(LEADS,) = tables(FINDINGS)
OF_FEDECHO, OF_TUNING, ABLATIONS, OF_PAIRS, OF_KUIPER, OF_FEDADT, OF_FEDREVIVE, OF_COURSE, OF_LEAGUE = tables(PAGE)
PRINTED = {
    "samples-1000": ("Table 6", "distill_samples", "5000"),
    "samples-100": ("Table 6", "distill_samples", "500"),
    "fedecho-cross": ("Table 7", "mix", "dynamic 0.2-0.8"),
    "ce-only": ("Table 7", "mix", "0 (CE only)"),
    "kl-only": ("Table 7", "mix", "1 (KL only)"),
    "fixed-0.5": ("Table 7", "mix", "0.5 fixed"),
}
"""Cell -> table, column and value of its printed row."""


def fedechos(cell: str) -> float | None:
    """What Tables 2 and 3 print."""
    number, delay, alpha, name = re.fullmatch(r"fedecho/table([23])/(\w+)-dir([\d.]+)/(.+)", cell).groups()
    table = published("FedEcho", f"Table {number}").query("delay == @delay and alpha == @alpha")
    method, _, chosen = name.partition("-")
    rows = table[table["distill_set"] == SETS[chosen]] if chosen else table[table["method"].str.lower() == method]
    return float(rows["value"].item()) if len(rows) == 1 else None


def fedadts(cell: str) -> float | None:
    """What Table II prints."""
    data, alpha, method = re.fullmatch(r"fedadt/table1/(\w+)-dir([\d.]+)/(\w+)", cell).groups()
    table = published("FedADT", "Table II").query("dataset == @DATA[@data] and alpha == @alpha")
    values = dict(zip(table["method"].str.lower(), table["value"].astype(float), strict=True))
    return values.get(method)


def fedrevives(cell: str) -> float | None:
    """What Table 1 prints."""
    found = re.fullmatch(r"fedrevive/table1/(\w+)/(\w+)", cell)
    if found is None:
        return None
    data, method = found.groups()
    table = published("FedRevive", "Table 1").query("dataset == @DATA[@data] and metric == 'final test accuracy'")
    values = dict(zip(table["method"].str.lower().str.replace("-", "_"), table["value"].astype(float), strict=True))
    return values.get(method)


OF_PAPER = {"fedecho": fedechos, "fedadt": fedadts, "fedrevive": fedrevives}


def printed_gain(ours: str, other: str) -> float | None:
    """By how much a paper's numbers say that one is above another; KUIPER's are in the caption of Fig. 3(b)."""
    if ours.startswith("kuiper/"):
        if ours != "kuiper/fig3b/bias1/kuiper" or not other.startswith("kuiper/fig3b/bias1/"):
            return None
        table = published("KUIPER", "Fig. 3(b) caption")
        return float(table[table["baseline"].str.lower() == other.split("/")[-1]]["value"].item())
    if "/control/" in ours + other or ours.startswith("league/"):
        return None
    left, right = map(OF_PAPER[ours.split("/")[0]], (ours, other))
    return None if left is None or right is None else left - right


@pytest.mark.parametrize(
    "row", [*LEADS, *OF_FEDECHO, *OF_PAIRS, *OF_KUIPER, *OF_FEDADT, *OF_FEDREVIVE, *OF_LEAGUE], ids=lambda row: row[-1]
)
def test_a_difference_is_what_was_recorded(row):
    _, paper, *plain, at_rate, tuned, cells = row
    left, right = re.findall("`([^`]+)`", cells)
    assert tuned == difference(left, right)
    assert at_rate == difference(left, right, fixed(left))
    assert plain == [difference(left, right, "printed")] * len(plain)
    gain = printed_gain(left, right)
    assert paper == ("" if gain is None else f"{gain:+.1f}".replace("-", "−"))


def printed(cell: str) -> float | None:
    artefact, column, value = PRINTED.get(cell.split("/")[-1], ("", "", ""))
    if not artefact:
        return None
    table = published("FedEcho", artefact)
    (name,) = [name for name in table.columns if name.startswith(column)]
    return float(table[table[name].astype(str) == value]["value"].item())


@pytest.mark.parametrize("row", ABLATIONS, ids=lambda row: row[0])
def test_an_ablation_is_what_was_recorded(row):
    _, paper, at_rate, tuned, cells = row
    left, right = re.findall("`([^`]+)`", cells)
    assert tuned == difference(left, right)
    assert at_rate == difference(left, right, "server_rate")
    values = printed(left), printed(right)
    assert paper == ("" if None in values else f"{values[0] - values[1]:+.1f}")


@pytest.mark.parametrize("row", OF_TUNING, ids=lambda row: row[0])
def test_what_tuning_is_worth_is_what_was_recorded(row):
    _, worth, cell = row
    name = cell.strip("`")
    assert worth == worth_of_tuning(name)


def worth_of_tuning(cell: str) -> str:
    """By how much a tuned cell is above the one with a fixed server rate."""
    measured = lessons.evidence(cell.split("/")[0], tier_of(cell))
    gap = measured.gap(cell, cell + SERVER_RATE)
    if gap is None:
        return "not run"
    found = contrast(gap.to_numpy(), "")
    return in_points(100 * found.mean, 100 * found.low, 100 * found.high)


COURSES = [
    ("fedecho/table2/large-dir0.1/fedecho-natural", "fedecho/table2/large-dir0.1/fedbuff", "version"),
    ("fedecho/table2/large-dir0.1/fedecho-natural", "fedecho/table2/large-dir0.1/ca2fl", "version"),
    ("fedrevive/table1/cifar10/fedrevive", "fedrevive/table1/cifar10/fedbuff", "time"),
    ("fedrevive/table1/cifar10/fedrevive", "fedrevive/table1/cifar10/afl_dw", "time"),
]
"""What the columns of the table on parts of a run compare, over versions or virtual time."""


def course() -> list[list[str]]:
    """The rows of the table on parts of a run."""
    found = [lessons.leads(*cells, over=over, tier=tier_of(cells[0])) for *cells, over in COURSES]
    told = [[in_points(row.mean, row.low, row.high) for row in one.itertuples()] for one in found]
    return [[f"{part} of 8", *leads] for part, leads in enumerate(zip(*told, strict=True), 1)]


def test_the_course_of_leads_is_what_was_recorded():
    assert course() == OF_COURSE


AS_PRINTED = {"0.1", "0.3", "0.7", "0.6", "1.0", "98.5", "97.5"}
"""α, rates and mixing as papers print them, and the levels of looks."""
DIFFERENCE = re.compile(r"([+−]?\d+\.\d+)(?: points?)? (\[[^\]]*\])")


@pytest.mark.parametrize("section", PAGE.split("\n## "), ids=lambda section: section.splitlines()[0])
def test_numbers_in_the_text_stand_in_the_tables_of_their_section(section):
    """Or in the first table of the findings. A difference stands there with its interval."""
    cells = " | ".join(cell for table in [LEADS, *tables(section)] for row in table for cell in row)
    prose = " ".join(re.sub(r"^\|.*|§[\d.]+", "", section, flags=re.M).split())
    shown = {(mean.lstrip("+"), interval) for mean, interval in DIFFERENCE.findall(cells)}
    assert {(mean.lstrip("+"), interval) for mean, interval in DIFFERENCE.findall(prose)} <= shown
    assert set(re.findall(r"\b\d+\.\d\b", DIFFERENCE.sub("", prose))) <= {*re.findall(r"\d+\.\d", cells), *AS_PRINTED}


ON_REAL_DATA = " on real data"
"""Ends the column of a note whose cells of the same names are those of the tier ``real``."""


def sources(text: str) -> dict[str, tuple[str, str, str]]:
    """Number of each note of findings -> column and the two cells whose difference stands before its mark."""
    found = re.findall(r"^\[\^(\d+)\]: ([\w ]+), `([^`]+)` − `([^`]+)`$", text, re.M)
    return {number: of for number, *of in found}


def noted(column: str, left: str, right: str) -> str:
    """What a note's column has for two cells: of *first eighth* the tuned lead in that part of the run.

    *Equal time* is the tuned lead when the shorter run ends.
    """
    tier = "real" if column.endswith(ON_REAL_DATA) else None
    column = column.removesuffix(ON_REAL_DATA)
    if column == "first eighth":
        lead = lessons.leads(left, right, tier=tier or tier_of(left)).iloc[0]
        return in_points(lead["mean"], lead["low"], lead["high"])
    if column == "equal time":
        measured = lessons.evidence(left.split("/")[0], tier or tier_of(left))
        found = contrast(measured.gap_in_time(left, right).to_numpy(), "")
        return in_points(100 * found.mean, 100 * found.low, 100 * found.high)
    rate = untuned(left.split("/")[0])
    columns = {TUNED: TUNED, rate: fixed(left), PLAIN.get(rate, ""): "printed", "own cell": TUNED, "fixed rates": TUNED}
    columns |= {"every rate of Table 8": "all_printed", "every rate of Table 4": "all_printed"}
    assert column in columns, f"{left} has no column {column!r}"
    return difference(left, right, columns[column], tier)


@pytest.mark.parametrize("number", sources(FINDINGS))
def test_a_number_in_the_findings_is_what_was_recorded(number):
    (said,) = re.findall(rf"([+−]\d+\.\d \[[^\]]*\])\[\^{number}\](?!:)", FINDINGS)
    assert said == noted(*sources(FINDINGS)[number])


def test_accuracies_and_times_at_a_papers_own_size_are_what_was_recorded():
    runs = recorded("paper", "kuiper")
    text, images = "kuiper/fig5/shakespeare-clients1000", ("mnist", "fmnist")
    ends = {
        name: 100 * runs.loc[f"{text}/{name}", "last5_accuracy"] for name in ("kuiper", "fedasync", "oort", "fedbuff")
    }
    assert (
        f"KUIPER and FedAsync end at {ends['kuiper']:.1f} %" in SAID and abs(ends["fedasync"] - ends["kuiper"]) < 0.05
    )
    assert f"Oort ends at {ends['oort']:.1f} %" in SAID and ends["fedbuff"] < ends["kuiper"] - 1
    for data, rate in (("mnist", 0.03), ("fmnist", 0.1)):
        names = ("kuiper", f"fedbuff-rate{rate}")
        ends = [100 * runs.loc[f"kuiper/fig5/{data}-clients500/{name}", "last5_accuracy"] for name in names]
        assert f"(rate {rate})" in SAID and all(f"{end:.1f} %" in SAID for end in ends)
    times = [
        [runs.loc[f"kuiper/fig5/{data}-clients1000/{name}", "virtual_time"].mean() for data in images]
        for name in ("oort", "kuiper")
    ]
    assert {round(oort / kuiper, -1) for oort, kuiper in zip(*times, strict=True)} <= {160, 170}
    assert "165 times as long" in SAID and round(sum(times[0]) / sum(times[1])) == 165
    curves = lessons.evidence("kuiper", "paper").curves
    longer = {
        name: pd.concat(curves[f"kuiper/jitter/fig5-mnist-clients1000/{name}"]).groupby("version")["accuracy"].mean()
        for name in ("kuiper", "fedbuff-rate0.1", "fedbuff-rate0.03")
    }
    assert "KUIPER ends at 91 %" in SAID and f"{longer['kuiper'][400]:.0%}" == "91%"
    assert "At 0.03 it ends at 94 %" in SAID and f"{longer['fedbuff-rate0.03'][400]:.0%}" == "94%"
    assert "reaches 90 % by version 120, and diverges by version 200" in SAID
    assert f"{longer['fedbuff-rate0.1'][120]:.0%}" == "90%" and longer["fedbuff-rate0.1"][200] < 0.2


@pytest.mark.parametrize("page", ["findings", "fair", "differences"])
def test_what_is_called_equivalent_or_open_does_not_exclude_zero(page):
    text = " ".join(re.sub(r"\[\^\d+\]", "", (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")).split())
    words = r"(?:equivalent|cannot distinguish|is open)((?:(?!above|below|leads)[^.;|])*?)[+−]\d+\.\d \[(\S+), (\S+)\]"
    told = [(float(low.replace("−", "-")), float(high.replace("−", "-"))) for _, low, high in re.findall(words, text)]
    assert all(low <= 0 <= high for low, high in told)


def test_no_number_of_the_findings_is_without_its_cells():
    lines = [line for line in FINDINGS.splitlines() if not line.startswith(("|", "[^"))]
    bare = re.findall(r"[+−]\d+\.\d \[[^\]]*\](?!\[\^\d+\])", "\n".join(lines))
    assert not bare and len(sources(FINDINGS)) > 10
    said, _, replies = FINDINGS.partition("## Replies to the authors")
    assert len(said.splitlines()) <= 110, "two pages"
    assert all(len(part.splitlines()) <= 12 for part in replies.split("\n\n") if not part.startswith("[^")), (
        "half a page"
    )


def left_over(results: str) -> str:
    """How many claims of the laptop tier are open or not run, by docs/results.md."""
    rows = [row for table in tables(results) for row in table if row[1] == "laptop"]
    claims, left, not_run = (sum(int(row[column]) for row in rows) for column in (2, 6, 8))
    return f"Of {claims} claims {left} are open and {not_run} were not run"


def of_kinds(results: str) -> dict[str, list[str]]:
    """Kind -> its row of the table of claims by kind in docs/results.md, laptop tier: claims, then verdicts."""
    (found,) = [rows for rows in tables(results) if rows[0][0] == KINDS[0]]
    return {kind: counts for kind, *counts in found}


def counts_by_kind(found: Recorded) -> dict[str, list[str]]:
    """The same rows from what is recorded, every method tuned."""
    table = found.verdicts_by_kind()
    table = table[table["column"] != FIXED].set_index("kind")
    return {kind: [str(row["claims"]), *(str(row[name]) for name in VERDICTS)] for kind, row in table.iterrows()}


def first_sentence(results: str) -> str:
    """What docs/results.md says of its claims: how many trained ones have each verdict."""
    claims, *counts = of_kinds(results)["trained"]
    return counted(dict(zip(VERDICTS, map(int, counts), strict=True)))


def test_the_results_count_the_trained_claims_first():
    results = (ROOT / "docs/results.md").read_text()
    assert first_sentence(results) in " ".join(results.split())


def test_how_many_claims_are_left_is_what_the_results_count():
    assert left_over((ROOT / "docs/results.md").read_text()) in SAID


def test_what_the_readme_says_stands_in_the_findings():
    said = " ".join(README.partition("## What we found")[2].partition("\n## ")[0].split())
    plain, tuned = ([float(row[column].split(" ")[0].replace("−", "-")) for row in LEADS] for column in (2, 4))
    assert f"by up to {max(plain):.0f} points on our stand-ins, and by at most {max(tuned):.0f} once all" in said
    behind = {row[0]: number for row, number in zip(LEADS, tuned, strict=True) if number < -2}
    assert behind.keys() == {"KUIPER, bias 1", "FedADT"} and behind["KUIPER, bias 1"] < behind["FedADT"]
    assert f"tuned FedADT is {-behind['FedADT']:.0f} points below it, and so is KUIPER, by more" in said
    cells = "fedecho/table2/large-dir0.1/fedecho-natural", "fedecho/table2/large-dir0.1/fedbuff"
    late = noted(f"{TUNED} on real data", *cells).split(" ")[0]
    assert f"it leads tuned FedBuff by {late} points at the end" in said

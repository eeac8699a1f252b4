"""Write the numbers of docs/findings.md, fair.md, differences.md and results.md anew from what is recorded.

``make docs`` after a record has changed; then read what the sentences around the tables say. The tests hold the pages,
the kept verdicts and ``docs/pictures/together.svg`` to what this file makes of the records.
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from asked import PAPERS, cells_of, matching
from matplotlib import rc_context, rcParams

from asyncfl_course import lessons
from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.base.style import use_style
from asyncfl_reproduction import home
from asyncfl_reproduction.claims import VERDICTS, sooner
from asyncfl_reproduction.digests import keep
from asyncfl_reproduction.grid.cells import SERVER_RATE
from asyncfl_reproduction.grid.columns import FIXED, PLAIN, TUNED, untuned
from asyncfl_reproduction.grid.record import RUNS
from asyncfl_reproduction.number_texts import in_points, interval_text, with_ends, with_signs
from asyncfl_reproduction.parquet import read_table
from asyncfl_reproduction.published import published
from asyncfl_reproduction.report import Recorded
from asyncfl_reproduction.report.laptop_verdicts import FILE, decided
from asyncfl_reproduction.report.leads import draw_together, together
from asyncfl_reproduction.statistics import ERROR_LEVEL, Contrast, benjamini_hochberg, contrast, holm, scaled
from asyncfl_reproduction.verdict_words import EQUIVALENT, HOLDS, OPEN, REVERSED, counted

ROOT = Path(__file__).parents[2]
TIERS = {"league": "league", "questions": "league", "real": "real"}
"""First part of a cell's name -> where it is recorded, if not in the laptop tier."""


def rows_of(text: str) -> list[list[str]]:
    """Return the parts of every line that begins with a bar."""
    return [[part.strip() for part in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]


def tables(text: str) -> list[list[list[str]]]:
    """Return the rows of each table, without its head."""
    groups = itertools.groupby(text.splitlines(), key=lambda line: line.startswith("|"))
    return [rows_of("\n".join(lines))[2:] for is_table, lines in groups if is_table]


def rows_below(heading: str, text: str) -> list[list[str]]:
    """Return the rows of the first table below a line that contains ``heading``, without its head."""
    return tables(text[text.index(heading) :])[0]


def cells_in(line: str) -> list[str]:
    """Return the cells that a row of a table names in its last column."""
    return re.findall(r"`([a-z]+/[^`]+)`", line.strip("|").rpartition("|")[2]) if line.startswith("|") else []


def row(parts: list[str]) -> str:
    """Return a line of a table."""
    return "| " + " | ".join(parts) + " |"


@cache
def runs(tier: str) -> pd.DataFrame:
    """Return all recorded runs of a tier, by cell."""
    return pd.concat(map(read_table, (home.RESULTS / tier).glob(f"*/{RUNS}"))).set_index("cell")


def tier_of(cell: str) -> str:
    """Return the tier in which a cell is recorded."""
    own = TIERS.get(cell.split("/")[0], "laptop")
    return "paper" if cell not in runs(own).index and cell in runs("paper").index else own


# --- differences ---------------------------------------------------------------------------------


@cache
def compared(left: str, right: str, column: str = TUNED, tier: str = "laptop", equal: float = 0.01) -> Contrast | None:
    """Return the difference of two cells' accuracies, paired by seed; none if one was not run in the column."""
    gap = lessons.evidence(left.split("/")[0], tier).column(column).gap(left, right)
    return None if gap is None else contrast(gap.to_numpy(), "", equal=equal)


def difference(left: str, right: str, column: str = TUNED, tier: str | None = None) -> str:
    """Return the difference as a page writes it."""
    tier = tier or tier_of(left)
    found = compared(left, right, column, tier)
    assert not found or found.seeds >= (5 if left.startswith("real/") else {"paper": 3}.get(tier, 10)), left
    return in_points(found) if found else "not run"


def fixed(cell: str) -> str:
    """Return the column beside the tuned one of a table with this cell."""
    return "printed" if TIERS.get(cell.split("/")[0]) == "league" else "server_rate"


def printed(cell: str) -> float | None:
    """Return the accuracy that a paper prints for a cell."""
    paper = cell.split("/")[0]
    known = cells_of(paper, "laptop") | cells_of(paper, "paper") if paper in PAPERS else {}
    rows = pd.concat([pd.DataFrame(), *(matching(paper, of) for of in known[cell].published)]) if cell in known else []
    values = rows[rows["metric"].str.contains("accuracy")]["value"] if len(rows) else []
    return float(values.iloc[0]) if len(values) else None


def printed_gain(ours: str, other: str) -> float | None:
    """Return by how much a paper says that one is above another; KUIPER's numbers are in the caption of Fig. 3(b)."""
    if {ours.rpartition("/")[0], other.rpartition("/")[0]} == {"kuiper/fig3b/bias1"} and ours.endswith("kuiper"):
        table = published("KUIPER", "Fig. 3(b) caption")
        return float(table[table["baseline"].str.lower() == other.split("/")[-1]]["value"].item())
    left, right = printed(ours), printed(other)
    return None if left is None or right is None else left - right


def worth_of_tuning(cell: str) -> str:
    """Return by how much a tuned cell is above the one with a fixed server rate."""
    gap = lessons.evidence(cell.split("/")[0], tier_of(cell)).gap(cell, cell + SERVER_RATE)
    return "not run" if gap is None else in_points(contrast(gap.to_numpy(), ""))


def row_of(line: str) -> str:
    """Return a row whose last column names one or two cells with today's numbers, any other line as it is."""
    cells, parts = cells_in(line), (rows_of(line) or [[]])[0]
    if not cells:
        return line
    if len(cells) == 1:
        parts[-2] = worth_of_tuning(cells[0])
    else:
        gain, plain = printed_gain(*cells), ["printed"] * (len(parts) > 5)
        parts[1] = "" if gain is None else with_signs(f"{gain:+.1f}")
        parts[2:-1] = [difference(*cells, one) for one in (*plain, fixed(cells[0]), TUNED)]
    return row(parts)


# --- docs/fair.md --------------------------------------------------------------------------------

WORDS = {HOLDS: "above", OPEN: "open", EQUIVALENT: "equivalent", REVERSED: "below"}


def refreshed_fair(text: str) -> str:
    """Return docs/fair.md with today's differences and the sentences that count them."""
    not_compared = text.partition("## What cannot be compared")[2].partition("\n## ")[0]
    lines, pairs = [], {}
    for line in text.splitlines():
        if cells := cells_in(line):
            (parts,) = rows_of(line)
            columns = ("all_printed",) if parts[0] in not_compared else (TUNED,)
            columns = (TUNED, "server_rate", "printed") if len(parts) == 5 else columns
            parts[1:-1] = [difference(*cells, column, "laptop") for column in columns]
            pairs |= {tuple(cells): None} if not cells[0].endswith("@all-printed") else {}
            line = row(parts)
        lines.append(line)
    text = "\n".join(lines) + "\n"
    tuned = [one for pair in pairs if (one := compared(*pair)) is not None]
    p = [scaled(one.p, one.seeds) for one in tuned]
    clear, kept, held = (int((np.asarray(of) <= ERROR_LEVEL).sum()) for of in (p, benjamini_hochberg(p), holm(p)))
    many = f"Among all tuned differences, {clear} of {len(p)} exclude 0. If the false ones are to be 5 % at most "
    many += f"(Benjamini and Hochberg), {kept} stay; if there is to be none (Holm), {held}."
    leads = [pair for pair in pairs if re.search(r"/table2/.*/fedecho-.* .*/fedbuff$", " ".join(pair))]
    told = []
    for margin in (0.5, 1.0, 2.0):
        words = Counter(WORDS[compared(*pair, equal=margin / 100).verdict] for pair in leads)
        told.append(f"{margin:g}: " + ", ".join(f"{words[word]} {word}" for word in WORDS.values() if words[word]))
    margins = (
        f"By the margin of equivalence in points, the {len(leads)} tuned differences are, at {'; at '.join(told)}."
    )
    return re.sub(r"By the margin of.*?\.\n", margins + "\n", re.sub(r"Among all tuned.*?\.\n", many + "\n", text))


# --- docs/findings.md and docs/differences.md ----------------------------------------------------

ON_REAL_DATA = " on real data"
"""Ends the column of a note whose cells of the same names are those of the tier ``real``."""
LESSON_16 = ROOT / "asyncfl_course/results/16_kuiper.csv"
NUMBER = r"(?:[+−]|× )\d+\.\d+ \[[^\]]*\]"
"""A difference or a ratio of times with its interval."""


def sources(text: str) -> dict[str, tuple[str, str, str]]:
    """Number of each note of findings -> column and the two cells whose difference stands before its mark."""
    found = re.findall(r"^\[\^(\d+)\]: ([\w ]+), `([^`]+)` − `([^`]+)`$", text, re.M)
    return {number: of for number, *of in found}


def noted(column: str, left: str, right: str) -> str:
    """Return what a note's column has for two cells.

    Of *first eighth* it is the tuned lead in that part of the run, and of *equal time* the one when the shorter run ends.
    Of *time to target* it is the second one's time in units of the first one's, by the rule of the paper's claims.
    """
    tier = "real" if column.endswith(ON_REAL_DATA) else tier_of(left)
    column = column.removesuffix(ON_REAL_DATA)
    if column == "first eighth":
        return lead(next(lessons.leads(left, right, tier=tier).itertuples()))
    if column == "equal time":
        gap = lessons.evidence(left.split("/")[0], tier).gap_in_time(left, right)
        return in_points(contrast(gap.to_numpy(), ""))
    if column == "time to target":
        measured = lessons.evidence(left.split("/")[0], tier).column(TUNED)
        (found,) = sooner(measured, left, right).contrasts
        return interval_text(found).rpartition(", ")[0]
    if column == "runs of lesson 16":
        ends = pd.read_csv(LESSON_16, index_col=["run", "seed"])["last5_accuracy"]
        one, other = (ends[name.removeprefix("kuiper/")] for name in (left, right))
        return in_points(contrast((one - other).to_numpy(), ""))
    rate = untuned(left.split("/")[0])
    columns = {TUNED: TUNED, rate: fixed(left), PLAIN.get(rate, ""): "printed", "own cell": TUNED, "fixed rates": TUNED}
    columns |= {"every rate of Table 8": "all_printed", "every rate of Table 4": "all_printed"}
    return difference(left, right, columns[column], tier)


def lead(found: Any) -> str:
    """Return one of :func:`lessons.leads`, which are in points."""
    return with_signs(with_ends(found.mean, found.low, found.high))


COURSES = [
    ("fedecho/table2/large-dir0.1/fedecho-natural", "fedecho/table2/large-dir0.1/fedbuff", "version"),
    ("fedecho/table2/large-dir0.1/fedecho-natural", "fedecho/table2/large-dir0.1/ca2fl", "version"),
    ("fedrevive/table1/cifar10/fedrevive", "fedrevive/table1/cifar10/fedbuff", "time"),
    ("fedrevive/table1/cifar10/fedrevive", "fedrevive/table1/cifar10/afl_dw", "time"),
]
"""What the columns of the table on parts of a run compare, over versions or virtual time."""


def refreshed_findings(text: str) -> str:
    """Return docs/findings.md with today's differences, those of its first table and those that notes explain."""
    text = "\n".join(map(row_of, text.splitlines())) + "\n"
    for number, source in sources(text).items():
        text = re.sub(rf"({NUMBER}|not run)(?=\[\^{number}\](?!:))", noted(*source), text)
    rows = [of for of in rows_of((ROOT / "docs/results.md").read_text()) if of[1] == "laptop"]
    claims, left, not_run = (sum(int(of[column]) for of in rows) for column in (2, 6, 8))
    return re.sub(
        r"Of \d+ claims \d+ are open and \d+ were not run",
        f"Of {claims} claims {left} are open and {not_run} were not run",
        text,
    )


def refreshed_differences(text: str) -> str:
    """Return docs/differences.md with today's differences."""
    text = "\n".join(map(row_of, text.splitlines())) + "\n"
    found = [lessons.leads(*cells, over=over, tier=tier_of(cells[0])) for *cells, over in COURSES]
    told = zip(*(map(lead, one.itertuples()) for one in found), strict=True)
    return changed(text, "| part of the run |", lambda part, *_: [part, *next(told)])


# --- docs/results.md -----------------------------------------------------------------------------

TITLES = {"FedAvg with Oort": "fedavg-oort", "FedEcho (cross)": "fedecho", "KUIPER, Eq. 2 as printed": "kuiper-literal"}
"""Cells that the table of methods calls by another name than their method's title."""
SETS = {"another data set": "cross", "natural images": "natural", "synthetic": "synthetic", "noise": "noise"}
REAL = {"Fashion-MNIST": "fashion_mnist", "MNIST": "mnist", "20 Newsgroups": "newsgroups20", "MRPC": "mrpc", "GSM8K": "gsm8k"}  # fmt: skip
"""How rows on real data begin, with the cells' data."""


def accuracies(tier: str, prefix: str, number: str = "final_accuracy") -> dict[str, str]:
    """Return, by the last part of cells' names, accuracies in percent as mean ± deviation, or a single run's alone."""
    values = runs(tier)[number].loc[lambda found: found.index.str.startswith(prefix)].mul(100).groupby(level=0)
    spreads = {cell: f" ± {std:.2f}" if std == std else "" for cell, std in values.std().items()}
    return {cell.split("/")[-1]: f"{mean:.2f}{spreads[cell]}" for cell, mean in values.mean().items()}


def cell_of(title: str) -> str:
    """Return the last part of the name of the cell of which a row tells."""
    method, _, chosen = title.partition(" (")[0].partition(", ")
    return f"fedecho-{SETS[chosen]}" if chosen else {"CA²FL": "ca2fl"}.get(method, method.lower())


def refreshed_results(text: str) -> str:
    """Return docs/results.md with today's accuracies, and the sentence that counts trained claims as the table does."""
    place, number = "fedecho/table2/large-dir0.1/", "last5_accuracy"
    smoke, laptop, images = (
        accuracies(*of, number)
        for of in (("smoke", place), ("laptop", place), ("real", "fedecho/photographs/large-dir0.1/"))
    )
    methods = accuracies("smoke", "methods/large-dir0.1/")
    titles = {ALGORITHMS.get(name).about.title: name for name in ALGORITHMS} | TITLES

    def of_fedecho(title: str, paper: str, *_: str) -> list[str]:
        cell = cell_of(title)
        return [title, paper, smoke[cell], laptop[f"{cell}@server-rate"], laptop[cell]]

    def of_methods(*parts: str) -> list[str]:
        return [part for title in parts[::2] for part in (title, methods[titles[title]] if title else "")]

    def of_data(title: str, seeds: str, _: str, __: str, about: str) -> list[str]:
        ours = accuracies("real", f"real/{REAL[re.split(r',| [(]', title)[0]]}/")
        return [title, seeds, ours["fedbuff"], ours.get("fedecho", "not run"), about]

    def of_images(title: str, *_: str) -> list[str]:
        return [title, images.get(f"{cell_of(title)}@printed", ""), images[cell_of(title)]]

    text = changed(text, "## FedEcho against FedBuff", of_fedecho)
    text = changed(text, "## Every method, one setting", of_methods)
    text = changed(changed(text, "## Real data", of_data), "CIFAR-10's images have", of_images)
    (_, _, *trained), *_ = rows_below("| kind |", text)
    said = textwrap.fill(counted(dict(zip(VERDICTS, map(int, trained), strict=True))), 120)
    return re.sub(r"Of \d+ claims that training could have refuted[^.]*\.", said, text)


def refreshed_verdicts(text: str, found: dict[str, Recorded]) -> str:
    """Return docs/results.md with the verdicts of two tiers' claims counted."""
    kinds = found["laptop"].verdicts_by_kind().query(f"column != {FIXED!r}").set_index("kind")

    def of_papers(paper: str, tier: str, *_: str) -> list[str]:
        counts = found[tier].verdicts(paper.lower())
        return [paper, tier, *map(str, (counts.sum(), *counts))]

    def of_kinds(kind: str, *_: str) -> list[str]:
        return [kind, *(str(kinds.loc[kind, name]) for name in ("claims", *VERDICTS))]

    return changed(changed(text, "## Claims, paper by paper", of_papers), "| kind |", of_kinds)


def changed(text: str, heading: str, change: Callable[..., list[str]]) -> str:
    """Return a page with the rows of the first table below a heading changed."""
    table = re.compile(r"(?:^\|.*\n)+", re.M).search(text, text.index(heading))
    head, line, *_ = table[0].splitlines()
    rows = [row(change(*parts)) for parts in rows_of(table[0])[2:]]
    return text[: table.start()] + "\n".join([head, line, *rows]) + "\n" + text[table.end() :]


# -------------------------------------------------------------------------------------------------


def picture(path: Path) -> None:
    """Draw the papers' leads beside ours, the same bytes for the same records."""
    with rc_context():
        use_style()
        rcParams.update({"svg.hashsalt": "together", "svg.fonttype": "path"})
        draw_together(together()).savefig(
            path, metadata={"Date": None, "Title": "The papers' leads over FedBuff, and ours"}
        )


def recorded(tier: str) -> Recorded:
    """Return what the project has recorded of a tier."""
    return Recorded(home.CELLS / f"{tier}.yaml", ROOT / "nothing", home.RESULTS)


PAGES = {
    "results": refreshed_results, "differences": refreshed_differences, "findings": refreshed_findings,
    "fair": refreshed_fair,
}  # fmt: skip


def main() -> None:
    """Write the four pages, the kept verdicts, and the picture that two pages show."""
    found = {tier: recorded(tier) for tier in ("smoke", "laptop")}
    keep(decided(found["laptop"]), home.RESULTS / FILE, index=False)
    results = ROOT / "docs/results.md"
    results.write_text(refreshed_verdicts(results.read_text(), found))
    for page, refreshed in PAGES.items():
        path = ROOT / f"docs/{page}.md"
        path.write_text(refreshed(path.read_text()))
    picture(ROOT / "docs/pictures/together.svg")


if __name__ == "__main__":
    main()

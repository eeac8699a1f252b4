"""Every number of the pages on results is what was recorded, and ``make docs`` would change nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
import refresh
from refresh import cells_in, noted, rows_of, runs, sources, tables

from asyncfl_course import lessons
from asyncfl_reproduction.claims import CLAIMS
from asyncfl_reproduction.grid.columns import TUNED
from asyncfl_reproduction.published import published

ROOT = Path(__file__).parents[2]
DOCS = {page: (ROOT / f"docs/{page}.md").read_text(encoding="utf-8") for page in refresh.PAGES}
FINDINGS = DOCS["findings"]
SAID = " ".join(FINDINGS.split())
README = (ROOT / "README.md").read_text()
(LEADS,) = tables(FINDINGS)
DIFFERENCE = re.compile(r"([+−]?\d+\.\d+)(?: points?)? (\[[^\]]*\])")


@pytest.mark.parametrize("page", DOCS)
def test_numbers_are_those_that_make_docs_would_write(page):
    assert refresh.PAGES[page](DOCS[page]).splitlines() == DOCS[page].splitlines(), "make docs"


@pytest.mark.long
def test_verdicts_are_those_that_make_docs_would_write():
    found = {tier: refresh.recorded(tier) for tier in ("smoke", "laptop")}
    assert refresh.refreshed_verdicts(DOCS["results"], found) == DOCS["results"], "make docs"
    rows = refresh.rows_below("## Claims, paper by paper", DOCS["results"])
    assert {(paper.lower(), tier) for paper, tier, *_ in rows} == {(paper, tier) for paper in CLAIMS for tier in found}


@pytest.mark.parametrize("page", ["findings", "fair", "differences"])
def test_a_difference_in_a_table_names_its_cells(page):
    """So that it is written anew; but for the table of leads by part of a run."""
    lines = [line for line in DOCS[page].splitlines() if line.startswith("|") and DIFFERENCE.search(line)]
    assert len(lines) > 5
    assert {row[0][1:] for row in rows_of("\n".join(one for one in lines if not cells_in(one)))} <= {" of 8"}


def test_what_the_papers_tables_print_of_fedecho_is_said():
    printed = published("FedEcho", "Table 2").query("dataset == 'CIFAR-10' and delay == 'large' and alpha == '0.1'")
    known = {f"{value:.2f} ± {std:.2f}" for value, std in zip(printed["value"], printed["std"], strict=True)}
    rows = refresh.rows_below("## FedEcho against FedBuff", DOCS["results"])
    assert len(rows) == 4 and {row[1] for row in rows} <= known


AS_PRINTED = {"0.1", "0.3", "0.7", "0.6", "1.0", "98.5", "97.5"}
"""α, rates and mixing as papers print them, and the levels of looks."""


@pytest.mark.parametrize("section", DOCS["differences"].split("\n## "), ids=lambda section: section.splitlines()[0])
def test_numbers_in_the_text_stand_in_the_tables_of_their_section(section):
    """Or in the first table of the findings. A difference stands there with its interval."""
    cells = " | ".join(cell for table in [LEADS, *tables(section)] for row in table for cell in row)
    prose = " ".join(re.sub(r"^\|.*|§[\d.]+", "", section, flags=re.M).split())
    shown = {(mean.lstrip("+"), interval) for mean, interval in DIFFERENCE.findall(cells)}
    assert {(mean.lstrip("+"), interval) for mean, interval in DIFFERENCE.findall(prose)} <= shown
    assert set(re.findall(r"\b\d+\.\d\b", DIFFERENCE.sub("", prose))) <= {*re.findall(r"\d+\.\d", cells), *AS_PRINTED}


def test_accuracies_and_times_at_a_papers_own_size_are_what_was_recorded():
    ran = runs("paper")
    text, images = "kuiper/fig5/shakespeare-clients1000", ("mnist", "fmnist")
    ends = {
        name: 100 * ran.loc[f"{text}/{name}", "last5_accuracy"] for name in ("kuiper", "fedasync", "oort", "fedbuff")
    }
    assert f"KUIPER and FedAsync end at {ends['kuiper']:.1f} %" in SAID
    assert abs(ends["fedasync"] - ends["kuiper"]) < 0.05
    assert f"Oort ends at {ends['oort']:.1f} %" in SAID and ends["fedbuff"] < ends["kuiper"] - 1
    for data, rate in (("mnist", 0.03), ("fmnist", 0.1)):
        names = ("kuiper", f"fedbuff-rate{rate}")
        ends = [100 * ran.loc[f"kuiper/fig5/{data}-clients500/{name}", "last5_accuracy"] for name in names]
        assert f"(rate {rate})" in SAID and all(f"{end:.1f} %" in SAID for end in ends)
    times = [
        [ran.loc[f"kuiper/fig5/{data}-clients1000/{name}", "virtual_time"].mean() for data in images]
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
    text = " ".join(re.sub(r"\[\^\d+\]", "", DOCS[page]).split())
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

"""What the project's texts say that a paper prints of its learning rates, held to ``asyncfl_reproduction/printed/hyperparameters.csv``.

A sentence can be checked if it is written in one of these ways::

    FedEcho's Table 8 prints the server rate 1.0 for FedBuff [and CA²FL] [on CIFAR-10]
    KUIPER and FedADT print no server rate for FedBuff
    The paper's Table 8 prints FedBuff's rates, 0.01 for clients and 1.0 for the server
    FedBuff's printed server rate, 0.05       (of FedRevive's Table 4)
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import nbformat
import pandas as pd

ROOT = Path(__file__).parent.parent
PAPER = r"(?:FedEcho|FedRevive|KUIPER|FedADT)"
METHOD = r"(?:FedBuff|CA²FL|CA2FL|FedAC|FADAS|FedEcho|FedAvgM|FedAvg|FedAsync|FedFa|AFL-DW|DD-FedRevive|FedRevive|KUIPER|FedADT|Oort)"
DATA = r"(?:CIFAR-100|CIFAR-10|FEMNIST|20NewsGroups|MRPC|MathInstruct)"


def listed(one: str) -> str:
    """Pattern of one or more of something: ``A``, ``A and B``, ``A, B and C``."""
    return rf"{one}(?:(?:, | and ){one})*"


SAYS = re.compile(
    rf"(?P<papers>{PAPER})(?:'s Tables? (?P<table>\d+)(?: to (?P<last>\d+))?)? prints? the (?:client rate (?P<first>\d[\d.]*(?:e-\d+)?) and the )?"
    rf"(?P<side>server|client) rate (?P<value>\d[\d.]*(?:e-\d+)?) for (?P<methods>{listed(METHOD)}|all methods)(?: on (?P<data>{DATA}))?"
)
SAYS_NONE = re.compile(
    rf"(?P<papers>{listed(PAPER)}) prints? no (?P<side>server|client) rate for (?P<methods>{listed(METHOD)})"
)
SAYS_BOTH = re.compile(
    rf"Table (?P<table>\d+) prints (?P<methods>{METHOD})'s rates, (?P<first>\d[\d.]*) for clients and (?P<value>\d[\d.]*) for the server"
)
OF_REVIVE = re.compile(rf"(?P<methods>{METHOD})'s\W* printed (?P<side>server) rate, (?P<value>\d[\d.]*)")
PACKAGES = ("asyncfl_lite", "asyncfl_reproduction", "asyncfl_course")
NAMES = {"server": ("global_lr", "server_lr"), "client": ("local_lr", "client_lr", "lr")}


class Sentence(NamedTuple):
    """A sentence, and the file that it stands in."""

    where: str
    text: str


@cache
def table() -> pd.DataFrame:
    """Rows of ``asyncfl_reproduction/printed/hyperparameters.csv`` that print something."""
    rows = pd.read_csv(ROOT / "asyncfl_reproduction/printed/hyperparameters.csv", dtype=str).fillna("")
    return rows[rows["artefact"] != "missing"]


def printed(paper: str, method: str, side: str, tables: range | None = None, data: str | None = None) -> set[float]:
    """The rates that a paper prints for a method, in some of its tables, on some data."""
    rows = table()
    rows = rows[(rows["paper"] == paper) & rows["name"].isin(NAMES[side])]
    rows = rows[rows["method"].isin([method.replace("²", "2"), "all"])]
    if tables is not None:
        rows = rows[rows["artefact"].isin([f"Table {number}" for number in tables])]
    if data is not None:
        rows = rows[rows["dataset"].str.contains(rf"{data}(?!\d)", regex=True)]
    return {float(value) for value in rows["value"]}


def false(sentence: str) -> list[str]:
    """The statements of a sentence that the table contradicts. A rate that differs by data must name them."""
    wrong = []
    for found in SAYS.finditer(sentence):
        tables = range(int(found["table"]), int(found["last"] or found["table"]) + 1) if found["table"] else None
        methods = ["all"] if found["methods"] == "all methods" else re.findall(METHOD, found["methods"])
        sets = [printed(found["papers"], one, found["side"], tables, found["data"]) for one in methods]
        beside = [printed(found["papers"], one, "client", tables, found["data"]) for one in methods]
        true = all(one == {float(found["value"])} for one in sets)
        true &= found["first"] is None or all(one == {float(found["first"])} for one in beside)
        wrong += [found[0]] * (not true)
    for found in SAYS_NONE.finditer(sentence):
        pairs = [(p, m) for p in re.findall(PAPER, found["papers"]) for m in re.findall(METHOD, found["methods"])]
        wrong += [found[0]] * any(printed(paper, method, found["side"]) for paper, method in pairs)
    for found in SAYS_BOTH.finditer(sentence):  # by the paper that has a table of that number
        (paper,) = set(table()["paper"][table()["artefact"] == f"Table {found['table']}"])
        tables = range(int(found["table"]), int(found["table"]) + 1)
        of = [printed(paper, found["methods"], side, tables) for side in ("client", "server")]
        wrong += [found[0]] * (of != [{float(found["first"])}, {float(found["value"])}])
    for found in OF_REVIVE.finditer(sentence):
        wrong += [found[0]] * (float(found["value"]) not in printed("FedRevive", found["methods"], found["side"]))
    return wrong


def sentences(text: str) -> list[str]:
    """A text's sentences; list items, rows of tables and headings are sentences of their own."""
    text = re.sub(r"``[^`]*``|`[^`]*`|\"printed\"|'printed'", "…", text)  # names of columns and cells
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.) )", text)
    whole = [re.sub(r"\s+", " ", part).strip() for part in parts]
    return [one for part in whole for one in re.split(r"(?<=[.!?:])[\"*)]* (?=[\"*(]*[A-Z0-9†])|; ", part) if one]


def everything() -> Iterator[Sentence]:
    """Every sentence of README, docs, lessons, sealed sheets, experiments' files and the package's docstrings."""
    for where, text in texts():
        yield from (Sentence(where, one) for one in sentences(text))


def texts() -> Iterator[tuple[str, str]]:
    """Every text with the name of its file."""
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        yield path.name, re.sub(r"^```.*?^```", "", path.read_text(), flags=re.S | re.M)
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "markdown":
                yield path.stem, re.sub(r"^```.*?^```", "", cell.source, flags=re.S | re.M)
    for path in sorted((ROOT / "asyncfl_course").rglob("sealed/*.json")):
        yield path.name, json.loads(path.read_text())["says"]
    for path in sorted((ROOT / "asyncfl_reproduction/cells").glob("*.yaml")):
        for block in re.findall(r"(?:^\s*#.*\n)+", path.read_text(), re.M):
            yield path.name, re.sub(r"^\s*# ?", "", block, flags=re.M)
        yield path.name, "\n\n".join(re.findall(r"^\s+[\w ().,]+: (?![{&])(.*print.*)$", path.read_text(), re.M))
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                yield str(path.relative_to(ROOT)), re.sub(r"^\s*>>>.*\n.*$", "", node.value.value, flags=re.M)

"""What a lesson's prose quotes: numbers and verdicts, and where they come from.

A number with a decimal point or a percent sign stands in a section's prose only if an output of the same section shows
it, rounded as it is quoted and with the sign that is quoted. An end of a shown interval counts only where an end is
quoted: in brackets, or as "at least", "at most", "x to y". A number that is no lead ("0.7 points", "+0.7", "0.7 [0.1,
1.3]") may be what code of this section or of one before sets. The opening and the closing sections may quote any output.
Or the markdown cell's metadata say whose a number is::

    "cites": {"FedEcho Table 2": [52.85, 42.57], "Adam, Section 2": [0.999]}

Numbers of a paper's table or figure that the project has as ``asyncfl_reproduction/printed/results.csv`` are looked up there.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from typing import Any

from asyncfl_reproduction.published import hyperparameters, published
from asyncfl_reproduction.verdict_words import EQUIVALENT, FAILS, HOLDS, NOT_RUN, OPEN, REVERSED

NUMBER = re.compile(r"(?<![\w.])[-+−]?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?")
NOT_PROSE = re.compile(
    r"^```.*?^```|\$\$.*?\$\$|(?<!\\)\$[^$\n]*?\$|`[^`]*`|\]\([^)]*\)|<!--.*?-->|<[^>]+>|^#.*?$"
    r"|(?:Section|Appendix|Equation|Eq\.|Table|Tables|Figure|Figures|Fig\.|Figs\.|Theorem|Lemma|Assumption|Algorithm|Chapter|Corollary"
    r"|Proposition|Remark|Exercise|§)\s?[A-Z]?\d+(?:\.\d+)*",
    re.S | re.M,
)
PAPER = re.compile(r"^(FedEcho|FedRevive|KUIPER|FedADT)\b ?(.*)$")
VERDICTS = {
    **{one: rf"\b(?:is|are) {one}\b" for one in (EQUIVALENT, OPEN, NOT_RUN)},
    REVERSED: rf"\b{REVERSED}\b",
    **{one: rf"\b[Tt]he claims? {one[:-1]}s?\b" for one in (HOLDS, FAILS)},
}
"""Verdict, as an output has it -> the pattern of the words that say so in prose; words in quotation marks say nothing."""
AHEAD = re.compile(r"\b(?:ahead of|behind|beats|outperforms)\b")
INTERVAL = re.compile(r"\[\s*([-+−]?\d+(?:\.\d+)?), ?([-+−]?\d+(?:\.\d+)?)\s*\]")


def number(text: str) -> float:
    """Read a number as prose writes it: with a minus sign, thousands."""
    return float(text.replace("−", "-").replace(",", ""))


def quoted(source: str) -> Iterator[tuple[str, bool, bool]]:
    """Yield the numbers of a markdown cell that need a source, with a decimal point or before a percent sign.

    Each comes with whether it is quoted as a lead, and whether as an end of an interval.
    """
    prose = NOT_PROSE.sub(" ", source)
    intervals = [found.span() for found in INTERVAL.finditer(prose)]
    for match in NUMBER.finditer(prose):
        before, after = prose[: match.start()], prose[match.end() :]
        percent = re.match(r"\s?%", after)
        if "." in match.group() or percent:
            lead = match.group()[0] in "+-−" or re.match(r"\s+(?:points?\b|\[)", after)
            end = any(low <= match.start() < high for low, high in intervals)
            end = end or re.search(r"\b(?:at least|at most|to)\s$", before)
            end = end or re.match(r"(?: points?)? (?:to|at most)\b", after)
            yield match.group() + ("%" if percent else ""), bool(lead), bool(end)


def outputs(cell: Any) -> str:
    """Return the text of a code cell's outputs."""
    texts = []
    for out in cell.get("outputs", []):
        data = out.get("data", {})
        texts.append(out.get("text", "") or data.get("text/plain", ""))
        texts.append(re.sub(r"<[^>]+>", " ", data.get("text/html", "")))
    return "\n".join("".join(one) for one in texts)


def numbers_in(text: str) -> set[float]:
    """Return all numbers of a text."""
    return {number(one) for one in NUMBER.findall(text)}


def cited(cites: dict[str, Iterable[float]]) -> tuple[set[float], list[str]]:
    """Return the numbers that a cell says are another's, and what is wrong with that."""
    given, wrong = set(), []
    for source, values in cites.items():
        given |= {abs(float(value)) for value in values}
        named = PAPER.match(source)
        if named is None or not re.match(r"Table|Fig", named.group(2)):
            continue
        paper, artefact = named.groups()
        table = published(paper, re.sub(r"^Fig\.? ?", "Figure ", artefact))
        if table.empty:
            continue  # not among the printed numbers that the project holds
        printed = {abs(float(value)) for name in ("value", "std") for value in table[name].dropna()}
        settings = " ".join(
            [*table["setting"].fillna("").astype(str), *hyperparameters(paper)["value"].fillna("").astype(str)]
        )
        printed |= {abs(value) for value in numbers_in(settings)}
        wrong += [f"{value:g} is not in {source}" for value in values if abs(float(value)) not in printed]
    return given, wrong


def supported(quote: str, known: Iterable[float]) -> bool:
    """Whether a quoted number is one of the known ones, rounded; a percentage may be known as a fraction."""
    bare = quote.rstrip("%")
    size = float if bare[0] in "+-−" else abs
    digits = len(bare.partition(".")[2]) if "e" not in bare.lower() else 12
    value, half = number(bare), 0.5 * 10**-digits * (1 + 1e-9) + 1e-12
    scales = (1, 100) if quote.endswith("%") else (1, 100) if digits else (1,)
    return any(abs(scale * size(one) - value) <= half for one in known for scale in scales)


def unsupported(cells: list[Any], elsewhere: Container[str] = ()) -> list[str]:
    """Return the numbers in a notebook's prose that nothing shows, each with its section, but for those ``elsewhere``."""
    missing, code = [], set()
    everything = "\n".join(map(outputs, cells))
    for head, part in sections(cells):
        shown = everything if not head or re.match(CLOSING, head) else "\n".join(map(outputs, part))
        ends, middles = numbers_in(shown), numbers_in(INTERVAL.sub(" ", shown))
        code |= {one for cell in part if cell.cell_type == "code" for one in numbers_in(cell.source)}
        for cell in part:
            if cell.cell_type == "markdown":
                given, wrong = cited(cell.metadata.get("cites", {}))
                missing += [f"{head}: {one}" for one in wrong]
                for text, lead, end in quoted(cell.source):
                    known = (ends if end else middles) | (set() if lead else code)
                    if not (supported(text.lstrip("+-−"), given) or supported(text, known) or text in elsewhere):
                        missing.append(f"{head}: {text}")
    return missing


def sections(cells: list[Any]) -> list[tuple[str, list[Any]]]:
    """Return a notebook's cells by section, each from a heading of the second level to the next."""
    parts: list[tuple[str, list[Any]]] = [("", [])]
    for cell in cells:
        head = re.match(r"## (.*)", cell.source) if cell.cell_type == "markdown" else None
        if head:
            parts.append((head.group(1), []))
        parts[-1][1].append(cell)
    return parts


def unfounded(cells: list[Any]) -> list[str]:
    """Return verdict words in a notebook's prose without an output that says so.

    A verdict must stand in an output of the notebook's section, and who is "ahead of", "behind", "beats" or
    "outperforms" needs an interval there without zero. In the closing sections, any output of the notebook counts.
    """
    everything = "\n".join(outputs(cell) for cell in cells if cell.cell_type == "code")
    found = []
    for head, part in sections(cells):
        shown = "\n".join(outputs(cell) for cell in part if cell.cell_type == "code")
        shown = everything if re.match(CLOSING, head) else shown
        prose = NOT_PROSE.sub(" ", "\n".join(cell.source for cell in part if cell.cell_type == "markdown"))
        prose = re.sub(r"\s+", " ", prose)
        said = re.sub(r'"[^"]*"', " ", prose)
        found += [f"{head}: {one}" for one, words in VERDICTS.items() if re.search(words, said) and one not in shown]
        apart = any(number(low) > 0 or number(high) < 0 for low, high in INTERVAL.findall(shown))
        found += [f"{head}: {word}" for word in AHEAD.findall(prose) if not apart]
    return found


CLOSING = r"What you now know|What to distrust|Reading"

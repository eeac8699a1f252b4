"""The reproducibility study: it tells only what is recorded, types no number, and is as long as a referee expects."""

from __future__ import annotations

import importlib
import re
import sys

import numpy as np
import pytest

from asyncfl_reproduction.statistics import contrast
from conftest import ROOT

TEXT = (ROOT / "paper/manuscript.typ").read_text(encoding="utf-8")
NAMES = r"CIFAR-100?|STL-10|HMDB51|UCF101|ResNet-18|20 Newsgroups"
PLACES = r"(?:Tables?|Figures?|Fig\.|Eq\.|§) ?[\d.]+(?:(?:,| to| and) [\d.]+)*"
ALLOWED = re.compile(rf"{NAMES}|{PLACES}|\b(?:19|20)\d\d\b")
"""Numbers that belong to a name, a place in a paper, or a year."""
IN_LETTERS = r"\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b"
MEASURED = re.compile(rf"\d[\d.,^]*|{IN_LETTERS} (?:points|per cent|times as|months|hours|minutes|versions|weights)")


@pytest.fixture(scope="module")
def lookups():
    with pytest.MonkeyPatch.context() as path:
        path.syspath_prepend(str(ROOT / "paper"))
        yield importlib.import_module("lookups")


def prose(text: str) -> str:
    """The words that a Typst source sets: without comments, code, raw text, labels and formulas of letters."""
    words, stack, here = [], ["content"], 0
    patterns = {
        "content": r"(?P<skip>//[^\n]*|`[^`]*`|[@<][\w-]+>?|\$[^$]*[a-zA-Z][^$]*\$|#(?:set|show) [^\n]*)"
        r"|#(?:let [^=\n]*= )?[\w.-]*\w(?P<open>[(\[])?|(?P<close>\])",
        "code": r'(?P<skip>"(?:\\.|[^"\\])*")|(?P<open>[(\[{])|(?P<close>[)}])(?P<then>\[)?',
    }
    patterns = {mode: re.compile(pattern) for mode, pattern in patterns.items()}
    while here < len(text):
        found = patterns[stack[-1]].match(text, here)
        if found is None:
            words += [text[here]] * (stack[-1] == "content" or text[here] == "\n")
            here += 1
            continue
        groups = found.groupdict()
        if groups.get("close") and len(stack) > 1:
            stack.pop()
        for opened in (groups.get("open"), groups.get("then")):
            stack += ["content" if opened == "[" else "code"] if opened else []
        words.append(" ")
        here = found.end()
    return "".join(words)


def typed(text: str) -> list[str]:
    """Numbers typed into a text, each with the words around it."""
    told = re.sub(r"\s+", " ", ALLOWED.sub("", prose(text)))
    return [told[max(found.start() - 40, 0) : found.end() + 20] for found in MEASURED.finditer(told)]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("It ends 12 points below.", 1),
        ("It takes five times as long, and $10^21$ operations.", 2),
        ("#figure(table(columns: 2, [a], [at 0.3]), caption: [With 50 clients.])", 2),
        ('Table 8 prints #printed("FedEcho", "FedBuff 1") in 2021, §5.1; $x_(t+1)$ @reddi2021 <tab-2> `k2`.', 0),
        ('#let a = 2\n#text(size: 16pt)[Tables 8 to 10, #d("a/1", "b/2", column: "x 1"), CIFAR-10.] // 3', 0),
    ],
)
def test_a_typed_number_is_found(text, count):
    assert len(typed(text)) == count


def test_no_number_is_typed():
    assert typed(TEXT) == []


def test_columns_are_named_in_one_place(lookups):
    told = prose(TEXT)
    assert not [name for name in lookups.COLUMNS.values() if re.search(rf"_{name}_|rate 1\b", told)]


def test_every_look_up_in_the_text_is_found(lookups):
    kinds = "|".join(lookups.LOOKUPS)
    found = [kind for kind, *_ in lookups.LOOKUP.findall(TEXT) if kind in lookups.LOOKUPS]
    assert len(found) == len(re.findall(rf"#(?:{kinds})\(", TEXT)) > 60
    assert set(found) == set(lookups.LOOKUPS)


def test_what_was_not_run_stops_it(lookups, monkeypatch):
    monkeypatch.setattr(lookups, "compared", lambda left, right, column: None)
    with pytest.raises(SystemExit, match="kuiper/fig3b/bias0/fedbuff is not recorded in column 'printed'"):
        lookups.asked_for('#d("kuiper/fig3b/bias0/kuiper", "kuiper/fig3b/bias0/fedbuff", column: "printed")')


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(1.5, 2.5, "above"), (-2.5, -1.5, "below"), (-1.5, 2.5, "not distinguishable from"), (-0.2, 0.3, "equivalent to"),
     (0.1, 0.5, "less than a point above"), (-0.5, -0.1, "less than a point below")],
)  # fmt: skip
def test_a_verdict_hides_no_sign(lookups, monkeypatch, low, high, said):
    gaps = np.linspace(low, high, 5) / 100
    monkeypatch.setattr(lookups, "compared", lambda left, right, column: contrast(gaps, ""))
    assert lookups.said("kuiper/a", "kuiper/b", "tuned") == said


def test_every_reference_is_cited():
    keys = re.findall(r"^@\w+\{([\w-]+),", (ROOT / "paper/references.bib").read_text(encoding="utf-8"), re.M)
    assert len(set(keys)) == len(keys) and not [key for key in keys if not re.search(rf"@{key}\b", TEXT)]


@pytest.mark.long
def test_it_is_eight_to_twelve_pages_of_recorded_numbers(lookups, capsys, monkeypatch):
    monkeypatch.delitem(sys.modules, "build", raising=False)  # the site's, of other tests
    importlib.import_module("build").main()
    assert "look-ups" in capsys.readouterr().out
    pages = re.findall(rb"/Type\s*/Page\b", (ROOT / "paper/asyncfl-reproduction.pdf").read_bytes())
    assert 8 <= len(pages) <= 12

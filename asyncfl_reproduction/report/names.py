"""Readable names of cells, made from their paths.

``fedecho/table2/large-dir0.1/fedecho-natural`` is "FedEcho, natural set · large delay, α = 0.1".

A name is unique within a paper's table or figure, which :func:`place` names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import partial

from asyncfl_lite import plots
from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_reproduction.claims.findings import short
from asyncfl_reproduction.grid.cells import Cell
from asyncfl_reproduction.grid.columns import column_of
from asyncfl_reproduction.league.across import WORKLOADS

SECONDARY = tuple(name for name in ALGORITHMS if ALGORITHMS.get(name).about.secondary)
"""Methods that were implemented from secondary sources."""
MARK = "†"
"""Follows the names of these methods in tables."""
FOOTNOTE = f"{MARK} Implemented from secondary sources, because we could not read the paper."


def marked(method: str) -> str:
    """Return a method's name for a table, with :data:`MARK` if it was implemented from secondary sources."""
    return plots.title(method) + MARK * (method.partition("-")[0] in SECONDARY)


WORDS = {
    **{plots.title(name): marked(name) for name in SECONDARY},
    "cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "mnist": "MNIST", "fmnist": "Fashion-MNIST", "femnist": "FEMNIST",
    "newsgroups": "20 Newsgroups", "hmdb51": "HMDB51", "ucf101": "UCF101", "CA2FL": "CA²FL", "STL10": "STL-10",
    "synthetic-DDPM": "DDPM samples", "FMNIST": "Fashion-MNIST", "20NewsGroups": "20 Newsgroups",
    "ce-only": "cross-entropy alone", "kl-only": "divergence alone", "no-clip": "no clipping",
    "last_epoch": "reward by the last epoch", "post_eval": "reward by the trained model",
    "accuracy": "the accuracy in its reward", "control": "controls", "beside": "other methods",
    "sync-no-delay": "synchronous, without delay",
    "overlaid_mnist": "overlaid digits", "glyphs": "drawn shapes",
    "natural": "natural set", "cross": "cross-dataset set", "synthetic": "synthetic set",
    "alpha": "α", "distill_set": "distillation set", "distill_samples": "distillation samples",
    "mix_alpha": "mixing weight α", "clip_nu": "clipping threshold ν", "kd_weight": "distillation weight",
    "N": "clients", "K": "burst",
    "noniid_bias": "bias", "K_baseline": "burst of the baseline", "teaching_assistants": "teaching assistants",
}  # fmt: skip
"""Spelling in tables and paths of cells -> words for readers."""

PATTERNS = {
    r"(large|mild|uniform)": r"\1 delay",
    r"shifted": "shifted delays",
    r"(?:dir|alpha)-?([\d.]+)": r"α = \1",
    r"beta-?([\d.]+)": r"β = \1",
    r"(bias|clip)-?([\d.]+)": r"\1 \2",
    r"k(\d+)": r"burst of \1",
    r"(frame|assistant)s-?1": r"1 \1",
    r"(clients|frames|assistants|samples)-?(\d+)": r"\2 \1",
    r"equal-steps-(\d+)": r"\1 samples, equal steps",
    r"concurrency-(\d+)": r"\1 % in flight",
    r"in-flight-(\d+)": r"\1 in flight",
    r"fixed-([\d.]+)": r"fixed weight \1",
    r"(\d+)x": r"slowed \1 times",
    r"no-(.+)": r"without \1",
}
"""Pattern of a part of a path -> its words."""


def words(part: str) -> str:
    """Return a part of a path or a table header in words; an unknown part only loses its hyphens."""
    if part in WORDS:
        return WORDS[part]
    for pattern, text in PATTERNS.items():
        if found := re.fullmatch(pattern, part):
            return found.expand(text).replace("-", " ")
    return re.sub("[-_]", " ", part)


def place(path: str) -> str:
    """Return the name of the paper's table or figure that a path begins with, such as ``FedEcho, Table 2``."""
    paper, _, rest = path.partition("/")
    artefact = rest.partition("/")[0]
    title = plots.title(paper) if paper in ALGORITHMS else words(paper)
    if found := re.fullmatch(r"(table|fig)(?:ure)?(\d+)([a-z]?)", artefact):
        kind, number, panel = found.groups()
        number = ("I", "II", "III", "IV")[int(number) - 1] if (paper, kind) == ("fedadt", "table") else number
        return f"{title}, {'Table' if kind == 'table' else 'Fig.'} {number}" + f"({panel})" * bool(panel)
    return f"{title}, {words(artefact)}" if artefact else title


def name_of(cell: Cell) -> str:
    """Return a cell's name, which is its method followed by the details in its path."""
    *parts, last = cell.name.partition("@")[0].split("/")
    workload = [part for part in parts[1:2] if part in WORKLOADS]
    details = [words(one) for part in workload + parts[2:] for one in re.split("-(?=dir|bias|clients|shifted)", part)]
    method, _, variant = last.partition("-")
    if method in ALGORITHMS or method in plots.NO_METHODS:
        method = marked(method) + f", {words(variant)}" * bool(variant)
    else:
        config = cell.config
        method = marked(config.selection if config.selection in plots.NO_METHODS else config.algorithm)
        method = "centralised training" if config.clients == 1 else method
        details.append(words(last))
    return f"{method} · {', '.join(details)}" * bool(details) or method


def names(cells: Mapping[str, Cell]) -> dict[str, str]:
    """Map each cell's path to a name that is unique within its table or figure.

    If two cells there would have the same name, the end of the path is added.
    """
    found = {path: name_of(cell) + f", {column_of(path)}" * ("@" in path) for path, cell in cells.items()}
    often = Counter((place(path), name) for path, name in found.items())
    return {
        path: f"{name} ({path.split('/', 2)[-1]})" if often[place(path), name] > 1 else name
        for path, name in found.items()
    }


def in_names(text: str, names: Mapping[str, str]) -> str:
    """Replace cells' paths in a text with their names.

    Details that both sides of a comparison share are written only once.
    """
    known = {spelt: name for path, name in names.items() for spelt in (path, short(path))}
    named = re.sub(r"[\w.+=@-]+(?:/[\w.+=@-]+)*[\w+=@]", partial(_name, known=known), text)
    return re.sub(r"([^·;]+) · ([^·;]+?)( against | - )([^·;]+) · \2(?=[:;,]|$)", r"\1\3\4 · \2", named)


def with_titles(text: str) -> str:
    """Replace the names of methods and workloads in a text, but not in paths, with titles such as ``FedEcho``."""
    return re.sub(r"(?<![\w/@.-])[a-z_0-9]+(?![\w/@-])", lambda found: _title(found[0]), text)


def _title(word: str) -> str:
    if word in WORKLOADS:
        return WORDS[word]
    return plots.title(word) if word in ALGORITHMS or word in plots.NO_METHODS else word


def _name(found: re.Match[str], known: Mapping[str, str]) -> str:
    return known.get(found[0], found[0]) if "/" in found[0] else found[0]

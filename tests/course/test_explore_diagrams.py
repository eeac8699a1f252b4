"""Every method has a drawn diagram: well-formed, readable, in its colour, and what docs/pictures draws."""

from __future__ import annotations

import inspect
import itertools
import sys
import xml.etree.ElementTree as ET

import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

from asyncfl_course.explore import method_diagram
from asyncfl_course.explore.diagrams import METHODS
from asyncfl_lite.algorithms import ALGORITHMS, make_algorithm
from asyncfl_lite.algorithms.fedac import FLOOR
from asyncfl_lite.plots import title
from conftest import ROOT

GENERATOR = ROOT / "docs" / "pictures"
sys.path.insert(0, str(GENERATOR))
from board import Label  # noqa: E402
from method_drawings import DRAWINGS  # noqa: E402
from methods import drawn  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def extent(label: Label) -> tuple[float, float, float, float]:
    """Return left, upper, right and lower end of a text in DejaVu Sans, which is wider than most sans-serif faces."""
    weight = "bold" if label.bold else "normal"
    sizes = [
        TextToPath().get_text_width_height_descent(
            part, FontProperties(family="DejaVu Sans", size=size, weight=weight), ismath=False
        )
        for part, size in label.parts
    ]
    width, tallest = sum(size[0] for size in sizes), max(size for _, size in label.parts)
    left = label.x - {"start": 0, "middle": width / 2, "end": width}[label.anchor]
    return left, label.y - 0.72 * tallest, left + width, label.y + 0.2 * tallest


def said(label: Label) -> str:
    return "".join(part for part, _ in label.parts)


def overlapping(labels: tuple[Label, ...]) -> list[tuple[str, str]]:
    """Return the pairs of texts that overlap."""
    placed = [(said(label), extent(label)) for label in labels]
    return [
        (one, other)
        for (one, a), (other, b) in itertools.combinations(placed, 2)
        if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
    ]


def outside(labels: tuple[Label, ...]) -> list[str]:
    """Return the texts that leave the box that they belong to."""
    found = []
    for label in labels:
        (left, upper, right, lower), box = extent(label), label.inside
        if left < box.x or right > box.x + box.width or upper < box.y or lower > box.y + box.height:
            found.append(said(label))
    return found


def test_every_method_has_one():
    ours = {name for name in ALGORITHMS if inspect.getmodule(ALGORITHMS.get(name)).__name__.startswith("asyncfl_lite.")}
    assert set(METHODS) == ours | {"oort"}  # "oort" chooses clients for FedAvg's rounds and is no server of its own


@pytest.mark.parametrize("name", METHODS)
def test_the_file_is_what_the_code_draws(name):
    assert method_diagram(name).svg == drawn(name)[0], "python docs/pictures/methods.py"


@pytest.mark.parametrize("name", METHODS)
def test_the_drawing_is_whole(name):
    diagram = method_diagram(name)
    root = ET.fromstring(diagram.svg)
    assert (root.tag, root.get("role"), root.get("aria-label")) == (f"{SVG}svg", "img", diagram.alt)
    assert root.find(f"{SVG}desc").text == diagram.alt and root.find(f"{SVG}title").text == f"{title(name)}, drawn"
    paper = root.find(f"{SVG}rect")  # GitHub's dark theme shows through where nothing is painted
    assert paper.get("fill") == "#ffffff" and float(paper.get("width")) >= 759 and float(root.get("width")) == 760
    sizes = [
        float(text.get("font-size"))
        for text in root.iter()
        if text.tag in (f"{SVG}text", f"{SVG}tspan") and text.get("font-size")
    ]
    assert len(sizes) > 20 and min(sizes) >= 12
    assert "id=" not in diagram.svg and "<style" not in diagram.svg and diagram.svg.count("http") == 1


@pytest.mark.parametrize("name", METHODS)
def test_its_texts_are_readable(name):
    _, labels = drawn(name)
    assert len(labels) > 20 and overlapping(tuple(labels)) == [] and outside(labels) == []


@pytest.mark.parametrize("name", METHODS)
def test_its_steps_are_in_the_picture_and_in_words(name):
    drawing, diagram = DRAWINGS[name], method_diagram(name)
    texts = [said(label) for label in drawn(name)[1]]
    numbers = [text for text in texts if text.isdigit()]
    assert 3 <= len(drawing.steps) <= 5
    for number in range(1, len(drawing.steps) + 1):  # once in the picture, once before its words
        assert numbers.count(str(number)) >= 2, number
        assert f" {number}. " in diagram.alt
    assert diagram.alt.startswith(f"{title(name)}: ") and "_" not in diagram.alt and "{" not in diagram.alt


def test_numbers_in_the_drawings_are_the_methods_own():
    assert (
        make_algorithm("fedrevive").settings.num_teachers == 8 == make_algorithm("dd_fedrevive").settings.num_teachers
    )
    assert make_algorithm("dd_fedrevive").beta(0) == 0.5 and make_algorithm("fedadt").settings.tau_kd == 1
    assert FLOOR == 0.1 and make_algorithm("fedasmu").midway == 0.5
    assert make_algorithm("fedasync").mixing_weight(3) == 0.6 / 2  # (1 + τ)^-½
    for name, words in {"fedrevive": "latest 8 client", "fedadt": "τ > 1", "fedasync": "(1 + τ)−½"}.items():
        assert words in method_diagram(name).alt

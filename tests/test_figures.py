"""Figures have a text alternative, their labels are whole.

A lesson keeps the text alternative of a cell's figure in the cell's metadata, under ``alt``, from where nbconvert's
classic template takes it into HTML.
"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbconvert import HTMLExporter

from asyncfl_lite.explore import distillation_figure, staleness_figure

ROOT = Path(__file__).parent.parent
EXPORTER = HTMLExporter(template_name="classic")
LESSONS = sorted(path.stem for path in (ROOT / "notebooks").glob("[0-9]*.ipynb"))


@pytest.mark.parametrize("name", LESSONS)
def test_every_figure_of_a_lesson_has_a_text_alternative_in_html(name):
    book = nbformat.read(ROOT / f"notebooks/{name}.ipynb", as_version=4)
    pictured = [
        cell for cell in book.cells if any("image/png" in out.get("data", {}) for out in cell.get("outputs", []))
    ]
    texts = [cell.metadata.get("alt", "") for cell in pictured]
    assert len(texts) >= 3 and all(len(text.split()) >= 8 for text in texts) and len(set(texts)) == len(texts)
    book.cells = pictured  # the rest takes seconds
    page, _ = EXPORTER.from_notebook_node(book)
    page = re.sub(r"(?s)<script type=\"application/vnd.*?</script>", "", page)  # what widgets will show, as JSON
    found = re.findall(r"<img[^>]*?\salt=\"([^\"]*)\"", page)
    assert len(found) == len(re.findall("<img", page)) == len(texts)


@pytest.mark.parametrize("make", [distillation_figure, staleness_figure], ids=lambda make: make.__name__)
def test_no_label_is_cut_off(make):
    figure = make()
    figure.draw_without_rendering()
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        box = axis.label.get_window_extent()
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1, axis.label.get_text()
        assert figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1, axis.label.get_text()

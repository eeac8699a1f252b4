"""Figures have a text alternative, in the notebook and in what nbconvert makes of it."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbconvert import HTMLExporter

from asyncfl_lite import plots

ROOT = Path(__file__).parent.parent
DESCRIBED = ["00_start_here", "01_virtual_time", "03_baselines", "05_fedadt", "11_theory"]
"""Lessons whose figures all have one."""


def test_a_figure_is_shown_once_with_its_text(capsys):
    figure, _ = plt.subplots(figsize=(2, 1))
    data, metadata = InteractiveShell.instance().display_formatter.format(plots._Described(figure, "A rising line."))
    assert metadata["image/png"]["alt"] == data["text/plain"] == "A rising line."
    assert data["image/png"][:4] == b"\x89PNG"
    plots.show("A rising line.", figure)
    assert capsys.readouterr().out == "A rising line.\n"  # outside a notebook
    assert not plt.fignum_exists(figure.number)  # else a notebook would show it again, without


@pytest.mark.parametrize("name", DESCRIBED)
def test_every_figure_of_a_lesson_has_a_text_alternative_in_html(name):
    book = nbformat.read(ROOT / f"notebooks/{name}.ipynb", as_version=4)
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    texts = [output.metadata.get("image/png", {}).get("alt", "") for output in pictures]
    assert len(pictures) > 5 and all(len(text.split()) >= 8 for text in texts) and len(set(texts)) == len(texts)
    page, _ = HTMLExporter(template_name="classic").from_notebook_node(book)
    found = re.findall(r"<img[^>]*?\salt=\"([^\"]*)\"", page)
    assert len(found) == len(re.findall("<img", page)) == len(texts)

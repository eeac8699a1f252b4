"""Controls stand left of their picture; where no kernel runs, a notebook keeps the picture itself, with words."""

from __future__ import annotations

import base64
import io
import re

import ipywidgets as widgets
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from IPython.core.formatters import DisplayFormatter
from nbconvert import HTMLExporter
from nbconvert.preprocessors import ExecutePreprocessor
from PIL import Image

from asyncfl_course.explore import Explorer
from asyncfl_course.explore.controls import pictured, played
from asyncfl_lite.base.errors import ConfigError

VIEW, PNG, TEXT = "application/vnd.jupyter.widget-view+json", "image/png", "text/plain"


def line_to(height: int, title: str = "as high as asked"):
    figure, axes = plt.subplots(figsize=(4, 3), layout="constrained")
    axes.plot([0, 1], [0, height])
    axes.set(title=title, ylim=(0, 10))
    plt.close(figure)
    return figure


def pixels(png: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(png))))


def explorer():
    height = widgets.IntSlider(3, min=-9, max=9, description="height")

    def draw():
        if height.value < 0:
            raise ConfigError(f"height: must be at least 0, got {height.value}")
        return line_to(height.value, f"height {height.value}")

    return height, Explorer([height], draw)


def test_a_notebook_gets_the_controls_and_the_picture_that_they_show():
    height, box = explorer()
    for value in (3, 7):
        height.value = value
        bundle, metadata = DisplayFormatter().format(box)
        assert set(bundle) == {VIEW, PNG, TEXT} and bundle[VIEW]["model_id"] == box.model_id
        assert np.array_equal(pixels(bundle[PNG]), pixels(pictured(line_to(value, f"height {value}")).png))
        assert metadata[PNG]["alt"] == f"height {value}"
        assert bundle[TEXT] == f"A picture under controls, which need a running kernel: height.\nheight {value}"


def test_what_cannot_be_drawn_is_said_and_leaves_no_picture():
    height, box = explorer()
    height.value = -1
    bundle, _ = DisplayFormatter().format(box)
    assert set(bundle) == {VIEW, TEXT} and bundle[TEXT].endswith("\nheight: must be at least 0, got -1")
    _, message, picture = box.children
    assert message.layout.display is None and picture.layout.display == "none"
    height.value = 2
    assert set(DisplayFormatter().format(box)[0]) == {VIEW, PNG, TEXT} and message.layout.display == "none"


@pytest.fixture(scope="module")
def executed() -> nbformat.NotebookNode:
    """Two cells, executed; the states of widgets are not saved, or a page would look for a kernel in vain."""
    code = [
        "import matplotlib.pyplot as plt, ipywidgets\nfrom asyncfl_course.explore import Explorer",
        "figure, axes = plt.subplots()\naxes.set_title('a bent line')\nplt.close(figure)\n"
        "Explorer([ipywidgets.IntSlider(description='bend')], lambda: figure)",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in code])
    ExecutePreprocessor(store_widget_state=False).preprocess(book)
    return book


@pytest.mark.parametrize("template", ["lab", "classic"])
def test_an_exported_page_shows_the_picture(executed, template):
    (out,) = executed.cells[1].outputs
    assert set(out.data) == {VIEW, PNG, TEXT} and "VBox" not in out.data[TEXT]
    page, _ = HTMLExporter(template_name=template).from_notebook_node(executed)
    images = re.findall(r"<img[^>]*data:image/png;base64,([^\"]*)\"[^>]*>", page)
    assert [image.replace("\n", "") for image in images] == [out.data[PNG].replace("\n", "")]
    if template == "classic":  # the lab template asks for no text alternative
        assert re.findall(r"<img[^>]*?\salt=\"([^\"]*)\"", page) == ["a bent line"]


def test_a_picture_that_plays_is_drawn_once_and_does_not_jump():
    drawn = []

    def draw(place):
        drawn.append(place)
        return line_to(place, "a wide\ntitle" if place == 3 else "one line")

    play, step, _, picture = played("place", range(4), 0, draw).children
    for place in (1, 2, 1, 0, 2):
        step.value = place
    assert drawn == [0, 1, 2]
    assert picture.value == pictured(line_to(2, "one line")).tag()
    step.value = 3  # a title of two lines is laid out anew, and stays whole
    assert picture.value == pictured(line_to(3, "a wide\ntitle")).tag()

"""Figures have a text alternative, their labels are whole, and they show what they are given."""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
import nbformat
import pandas as pd
import pictures
import pytest
import torch
from matplotlib.colors import to_hex

from asyncfl_course import lessons
from asyncfl_course.explore import (
    Snapshot,
    distillation_figure,
    gallery_figure,
    moment_figure,
    run_clock,
    schedule_figure,
    staleness_figure,
)
from asyncfl_lite import Config, plots, run
from asyncfl_lite.base.errors import ResultError
from asyncfl_lite.base.style import VERDICT_COLOURS
from asyncfl_reproduction.verdict_words import HOLDS, NOT_RUN, REVERSED
from conftest import ROOT


def test_every_saved_figure_and_drawing_has_words_of_its_own():
    """Where nbconvert, JupyterLab (by ``labextensions/``) and the site take them from; a drawing's words are its own."""
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        said = list(pictures.words(nbformat.read(path, as_version=4)))
        assert len(set(said)) == len(said) and (said or not path.name[0].isdigit()), path.name
        assert all(len(text.split()) >= 8 and not text.startswith("<") for text in said), path.name


def schedules():
    updates = run_clock("fedrevive", clients=100, concurrency=20, buffer_size=1, versions=200).updates
    return schedule_figure(updates, {name: {} for name in ("fedrevive", "afl_dw", "fedasync", "kuiper", "fedadt")})


def gallery():
    named = torch.arange(64) % 10
    kept = [Snapshot(v, torch.rand(64, 1, 8, 8), named, named, named, 0.5, 16_000) for v in (100, 200)]
    return gallery_figure(kept, 200)


def time_machine():
    """All of ten clients report at once, and all are named."""
    equal = {"delay": "constant", "clients": 10, "concurrency": 10, "buffer_size": 5, "rounds": 6}
    result = run(Config(task="digits", **equal))
    return moment_figure(result, result.updates["arrived_at"].max())


@pytest.mark.parametrize("make", [distillation_figure, staleness_figure, schedules, gallery, time_machine])
def test_no_label_and_no_title_is_cut_off(make):
    figure = make()
    figure.draw_without_rendering()
    texts = [axis.label for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    titles = [text for axes in figure.axes for text in axes.get_children() if text in (axes.title, axes._left_title)]
    texts, titles = ([text for text in found if text.get_text()] for found in (texts, titles))
    assert titles and len(texts) >= 3
    for text in [*texts, *titles]:
        box = text.get_window_extent()
        assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1, text.get_text()
        assert figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1, text.get_text()
    boxes = [(text.get_text(), text.get_window_extent()) for text in titles]
    for index, (one, box) in enumerate(boxes):
        assert not [other for other, another in boxes[index + 1 :] if box.overlaps(another)], one


def test_squares_have_the_difference_and_the_colour_of_its_verdict():
    found = pd.DataFrame(
        [("here", "fedbuff", 1.26, HOLDS), ("here", "ca2fl", -2.0, REVERSED), ("there", "fedbuff", math.nan, NOT_RUN)],
        columns=["place", "other", "mean", "verdict"],
    )
    axes = plots.plot_differences(found)
    assert [text.get_text() for text in axes.texts] == ["+1.3", "−2.0", "–"]
    assert [text.get_position() for text in axes.texts] == [(0, 0), (0, 1), (1, 0)]
    shades = [to_hex(square.get_facecolor()) for square in axes.patches]
    assert shades == [VERDICT_COLOURS[verdict] for verdict in (HOLDS, REVERSED, NOT_RUN)]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["FedBuff", "CA²FL"]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [HOLDS, REVERSED, NOT_RUN]
    bare = plots.plot_differences(found.drop(columns="verdict"))
    assert bare.get_legend() is None and {to_hex(square.get_facecolor()) for square in bare.patches} == {"#ffffff"}
    plt.close("all")


def test_differences_are_what_comparisons_say():
    place, other = "fedecho/table2/large-dir0.1", "fedbuff"
    row = lessons.differences("fedecho-natural", [other], {"digits": place}, column="server rate 1").iloc[0]
    said = lessons.compare(f"{place}/fedecho-natural", f"{place}/{other}", column="server rate 1")
    assert f"{row['mean']:+.1f} [{row['low']:.1f}, {row['high']:.1f}], {row['seeds']} seeds: {row['verdict']}" in said
    with pytest.raises(ResultError, match="nothing"):
        lessons.differences("nothing", [other], {"digits": place})


BIAS = "kuiper/fig3b/bias1"


def test_a_pair_is_above_below_equivalent_or_open_and_a_margin_asks_for_a_verdict():
    pair = f"{BIAS}/kuiper", f"{BIAS}/fedbuff"
    assert lessons.compare(*pair).endswith(": below") and lessons.compare(*pair[::-1]).endswith(": above")
    assert lessons.compare(*pair, margin=0.12).endswith(" (asked: above 12): reversed")
    found = lessons.differences("kuiper", ["fedbuff"], {"bias 1": BIAS})
    assert found["verdict"].tolist() == ["below"]


def test_leads_have_a_row_for_each_window_even_if_no_test_is_in_it():
    found = lessons.leads(f"{BIAS}/kuiper", f"{BIAS}/fedbuff", windows=80)
    assert len(found) == 80 and found["seeds"].min() == 0


def test_a_cell_that_was_not_run_in_a_column_is_no_comparison():
    with pytest.raises(ResultError, match="cell"):
        lessons.compare(
            "kuiper/fig4/bias0-clients50/oort", "kuiper/fig4/bias0-clients50/fedbuff", column="server rate 1"
        )

"""Explorers: their figures show what a run holds, and their controls move them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from asyncfl_course.explore import explore_partitions, partition_figure
from asyncfl_course.explore.controls import pictured
from asyncfl_lite import Config, Task
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.runs.assembly import deal_out
from asyncfl_lite.tasks.partitions import PARTITIONS, label_counts, total_variation

LABELS = torch.arange(600) % 5


def a_task(**more) -> Task:
    inputs = torch.zeros(len(LABELS), 2)
    return Task.from_tensors(inputs, LABELS, inputs, LABELS, owners=np.arange(len(LABELS)) // 40, **more)


@pytest.mark.parametrize("law", [law for law in PARTITIONS if law != "given"])
def test_the_label_map_is_what_a_run_holds(law):
    settings = {"bias": 0.7} if "bias" in PARTITIONS.get(law).model_fields else {}
    alpha = {"alpha": 0.3} if "alpha" in PARTITIONS.get(law).model_fields else {}
    config = Config(partition=law, partition_settings=settings, clients=12, concurrency=12, seed=3, **alpha)
    counts = label_counts(LABELS.numpy(), deal_out(config, a_task()), 5)
    figure = partition_figure(a_task(), law, clients=12, seed=3, **settings, **alpha)
    bars, chart = figure.axes[:2]
    assert chart.images[0].get_array().filled(0).T.tolist() == counts.tolist()
    assert [bar.get_height() for bar in bars.patches] == counts.sum(1).tolist()
    assert f"total variation {total_variation(counts):.2f}" in bars.get_title("left")
    assert all(f"{name} {value}" in bars.get_title("left") for name, value in {**settings, **alpha}.items())


def test_a_task_of_sequences_is_dealt_out_by_kinds():
    tokens = torch.zeros(600, 3, dtype=torch.long)
    task = Task("spoken", tokens, tokens, tokens, tokens, 9, kinds=np.arange(600) % 4)
    assert partition_figure(task, "iid", clients=3).axes[1].images[0].get_array().shape == (4, 3)


def test_impossible_settings_are_one_line():
    with pytest.raises(ConfigError, match="bias"):
        partition_figure(a_task(), "dirichlet_class", bias=0.5)
    with pytest.raises(ConfigError, match="did you mean 'dirichlet_class'"):
        partition_figure(a_task(), "dirichlet_clas")


@pytest.fixture
def explorer():
    box = explore_partitions(a_task())
    return {**{control.description: control for control in box.children[:5]}, "message": box.children[5]}, box.children[
        6
    ]


def test_controls_draw_the_figure_anew(explorer):
    controls, picture = explorer
    assert picture.value == pictured(partition_figure(a_task(), "dirichlet_class", alpha=0.1)).tag()
    controls["law"].value, controls["bias"].value, controls["clients"].value = "noniid_bias", 0.15, 9
    controls["seed"].value = 2
    assert picture.value == pictured(partition_figure(a_task(), "noniid_bias", bias=0.15, clients=9, seed=2)).tag()


def test_controls_that_a_law_does_not_use_are_greyed_out(explorer):
    controls, _ = explorer
    for law, alpha, bias in (("iid", True, True), ("dirichlet_wrap", False, True), ("noniid_bias_fang", True, False)):
        controls["law"].value = law
        assert (controls["α"].disabled, controls["bias"].disabled) == (alpha, bias)


def test_what_cannot_be_split_is_said_in_place_of_the_figure(explorer):
    controls, picture = explorer
    controls["clients"].value = 61  # of 600 samples none can have 10 each
    assert "min_size: must be at most 9" in controls["message"].value and picture.layout.display == "none"
    controls["clients"].value = 60
    assert controls["message"].value == "" and picture.layout.display is None

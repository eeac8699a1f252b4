"""Explorers: their figures show what a run, a method, a table or a loss says, and their controls move them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from asyncfl_course.explore import (
    distillation_figure,
    distillation_terms,
    explore_partitions,
    explore_server_step,
    partition_figure,
    schedule_figure,
    schedules,
    server_step_figure,
    staleness_weight,
    step_summary,
    swing,
)
from asyncfl_course.explore.controls import pictured
from asyncfl_lite import Config, Task
from asyncfl_lite.algorithms import make_algorithm
from asyncfl_lite.algorithms.afl_dw import AFLDW
from asyncfl_lite.algorithms.losses import labelled_distillation_loss, uncertainty_aware_loss
from asyncfl_lite.algorithms.mixing import poly
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


UPDATES = pd.DataFrame({"staleness": [0, 1, 1, 2, 4, 4, 4, 8, 30, 150], "version": range(1, 11)})


@pytest.mark.parametrize(
    ("method", "settings", "tau", "expected"),
    [
        ("fedrevive", {}, 50, 0.25), ("fedrevive", {}, 150, 1.0), ("dd_fedrevive", {}, 50, 0.5),
        ("fedrevive-linear", {"beta_family": "linear"}, 100, 0.5),
        ("afl_dw", {}, 50, 0.75), ("afl_dw", {}, 150, 0.0),
        ("fedasync", {}, 3, 0.3), ("fedasync-hinge", {"staleness_function": "hinge"}, 5, 0.6 / 11),
        ("fedasync-constant", {"staleness_function": "constant"}, 5, 0.6),
        ("fedbuff", {}, 8, 1.0), ("fedbuff-poly", {"staleness_weight": "poly"}, 8, 1 / 3),
        ("kuiper", {}, 3, 0.35), ("fedadt", {}, 3, 0.5), ("fedadt", {}, 0, 1.0),
    ],
)  # fmt: skip
def test_worked_weights(method, settings, tau, expected):
    assert staleness_weight(method, **settings)(tau) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(st.integers(0, 400), st.floats(0, 2), st.floats(1, 200))
def test_what_is_measured_is_what_the_methods_say(tau, power, half):
    mixing = make_algorithm("fedasync", poly_a=power, mixing=0.7)
    assert staleness_weight("fedasync", poly_a=power, mixing=0.7)(tau) == pytest.approx(mixing.mixing_weight(tau))
    assert staleness_weight("kuiper", poly_a=power)(tau) == pytest.approx(mixing.mixing_weight(tau))
    assert staleness_weight("afl_dw", s_max=half)(tau) == pytest.approx(1 - AFLDW(s_max=half).beta(tau), abs=1e-12)
    assert staleness_weight("fedadt")(tau) == pytest.approx(poly(tau))


def test_the_figure_draws_the_weights_of_these_updates():
    lines = {"fedrevive": {"s_max": 4.0}, "fedasync": {}, "fedasync-hinge": {"staleness_function": "hinge"}}
    weights, used, histogram, version = schedule_figure(UPDATES, lines).axes
    thin, thick = weights.lines[0::2], weights.lines[1::2]
    for (method, settings), line, part in zip(lines.items(), thin, thick, strict=True):
        expected = [staleness_weight(method, **settings)(tau) for tau in range(151)]
        assert line.get_ydata() == pytest.approx(expected)
        assert part.get_xdata()[0] == 0 and part.get_xdata()[-1] == 150
    dots = [line.get_xdata()[0] for line in used.lines[1::2]]
    tau = UPDATES["staleness"]
    means = [np.mean([staleness_weight(m, **s)(t) for t in tau]) for m, s in lines.items()]
    assert dots == pytest.approx(means)
    assert [text.get_text() for text in used.texts] == [f"{mean:.2f}" for mean in means]
    assert sum(bar.get_height() for bar in histogram.patches) == 10
    assert not version.axison  # FedADT is not among the methods
    assert len({line.get_color() for line in thin}) == 3


def test_what_is_drawn_has_the_mean_staleness_of_a_long_run():
    """One below the number in flight, as lesson 10 says above the explorer; the first jobs alone would lower it."""
    assert schedules._updates("fedrevive", 100)["staleness"].mean() == pytest.approx(99, abs=2)


def curves() -> pd.DataFrame:
    """Two workloads, two rates each way, two seeds: the larger the server rate, the wider the zigzag."""
    rows = []
    for index, workload in enumerate(("digits", "shapes")):
        for client_lr in (0.1, 0.3):
            for server_lr in (0.1, 1.0):
                for seed in (0, 1):
                    level = 0.5 + 0.1 * index + client_lr * (1 if server_lr < 1 else -1)
                    tests = level + 0.05 * server_lr * np.array([1, -1] * 4)
                    rows += [(workload, client_lr, server_lr, seed, 5 * at, one) for at, one in enumerate(tests)]
    return pd.DataFrame(rows, columns=["workload", "client_lr", "server_lr", "seed", "version", "accuracy"])


@pytest.mark.parametrize(
    ("tests", "last", "expected"), [((50, 60, 50), 3, 10), ((0, 90, 80, 82), 3, 6), ((1, 1), 20, 0)]
)
def test_swing_is_the_mean_jump_of_the_last_tests(tests, last, expected):
    assert swing(tests, last) == expected


def test_scores_and_swings_of_runs():
    summary = step_summary(curves()).set_index(["workload", "client_lr", "server_lr", "seed"])
    assert len(summary) == 16
    assert summary.loc[("digits", 0.3, 1.0, 0), "score"] == pytest.approx(20 - 1)  # three of five tests are the lower
    assert summary.loc[("digits", 0.3, 1.0, 0), "swing"] == pytest.approx(10)
    assert summary.loc[("shapes", 0.1, 0.1, 1), "swing"] == pytest.approx(1)


def test_the_figure_takes_the_best_clients_rate_and_says_its_numbers():
    left, right = server_step_figure(curves(), 0.1).axes
    assert left.get_title("left") == "server rate 0.1, client rate 0.3: 79.9%, swing 1.0 points"
    assert right.get_title("left") == "digits, one line per client rate"
    drawn = curves().query("workload == 'digits' and server_lr == 0.1 and client_lr == 0.3 and seed == 0")
    assert left.lines[0].get_ydata() == pytest.approx(100 * drawn["accuracy"].to_numpy())
    assert len(left.lines) == 2
    assert (
        server_step_figure(curves(), 1.0).axes[0].get_title("left").startswith("server rate 1, client rate 0.1: 39.0%")
    )


def test_controls_move_the_figure():
    table = curves()
    table = table[(table["workload"] == "digits") | (table["client_lr"] == 0.1)]
    box = explore_server_step(table, {"shapes": {"kuiper": 0.7}})
    controls = {one.description: one for one in _all(box) if hasattr(one, "description")}
    picture = next(one for one in _all(box) if type(one).__name__ == "HTML")
    assert controls["server rate"].value == 1.0 and "client rate 0.1: 39.0%" in picture.value
    controls["server rate"].value = 0.1
    assert "client rate 0.3: 79.9%" in picture.value
    controls["client rate"].value = 0.1
    assert "client rate 0.1: 59.9%" in picture.value
    controls["workload"].value = "shapes"  # which has one client rate only
    assert [label for label, _ in controls["client rate"].options] == ["best", "0.1"]
    assert "shapes, one line" in picture.value and "69.9%" in picture.value


def _all(widget) -> list:
    """A widget and all within it."""
    return [widget, *(inner for child in getattr(widget, "children", ()) for inner in _all(child))]


TEACHER, STUDENT = (2.0, 0.0, -1.0), (0.0, 1.0, 0.0)  # a worked example of FedADT's Eq. 7
FOUR = {"teacher": (3.0, 0.0, -1.0, 1.0), "student": (0.0, 2.0, 0.5, -1.0), "label": 3}


def test_the_worked_example():
    terms = distillation_terms(TEACHER, STUDENT, 0, rule="fedadt", version=250)
    assert terms.weight == pytest.approx(0.3, rel=1e-9)
    assert (terms.kl, terms.ce) == pytest.approx((0.1220712424, 1.5514447139), rel=1e-8)
    assert terms.loss == pytest.approx(1.1226326725, rel=1e-9)
    assert (terms.pull + terms.push).tolist() == pytest.approx([-0.5753459717, 0.4170916822, 0.1582542895], rel=1e-8)


@pytest.mark.parametrize(
    "options", [{}, {"temperature": 1.0}, {"direction": "reverse"}, {"times_t2": True, "weight": 0.6}, {"weight": 0.0}]
)
def test_the_parts_add_up_to_the_gradient_of_fedadts_loss(options):
    terms = distillation_terms(**FOUR, **options)
    free = torch.tensor([FOUR["student"]], dtype=torch.float64, requires_grad=True)
    teacher, given = torch.tensor([FOUR["teacher"]], dtype=torch.float64), {"weight": 0.3, "temperature": 3.0}
    if options.keys() <= given.keys():
        loss = labelled_distillation_loss(free, teacher, torch.tensor([3]), **{**given, **options})
        loss.backward()
        assert terms.loss == pytest.approx(loss.item(), rel=1e-12)
        torch.testing.assert_close(terms.pull + terms.push, free.grad[0])
    forward = distillation_terms(**FOUR, **{**options, "direction": "forward", "times_t2": False})
    expected = 9.0 * forward.kl if options.get("times_t2") else forward.kl
    assert (terms.kl == pytest.approx(expected)) == ("direction" not in options)
    assert float(terms.push.norm()) > 0 and (float(terms.pull.norm()) > 0) == (terms.weight > 0)


def test_fedechos_weight_goes_by_entropy_and_its_label_is_the_teachers():
    teacher, student = (1.0, 0.5, -0.5), (0.0, 0.0, 1.0)  # a worked example of FedEcho's Eqs. 3 and 4
    terms = distillation_terms(teacher, student, 2, rule="fedecho", temperature=7.0, weight=0.9)
    assert (terms.weight, terms.loss) == pytest.approx((0.7203696921, 0.7772207482), rel=1e-9)
    assert terms.label == 0 and torch.equal(terms.student, terms.plain)
    free = torch.tensor([student], dtype=torch.float64, requires_grad=True)
    p = torch.tensor([teacher], dtype=torch.float64).softmax(-1)
    uncertainty_aware_loss(free, p, terms.weight).backward()
    torch.testing.assert_close(terms.pull + terms.push, free.grad[0])
    certain, clueless = (distillation_terms(z, student, rule="fedecho") for z in ((60.0, 0, 0), (0.0, 0, 0)))
    assert (certain.weight, clueless.weight) == pytest.approx((0.2, 0.8))
    figure = distillation_figure(teacher, student, rule="fedecho")
    assert len(figure.axes[0].containers) == 2 and "T = 1\n" in figure.get_suptitle()

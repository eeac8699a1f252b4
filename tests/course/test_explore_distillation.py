"""The distillation-loss explorer: what it draws is what the package's losses say."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from asyncfl_course.explore import distillation_figure, distillation_terms
from asyncfl_lite.algorithms import make_algorithm
from asyncfl_lite.algorithms.losses import labelled_distillation_loss, uncertainty_aware_loss

TEACHER, STUDENT = (2.0, 0.0, -1.0), (0.0, 1.0, 0.0)  # a worked example of FedADT's Eq. 7
FOUR = {"teacher": (3.0, 0.0, -1.0, 1.0), "student": (0.0, 2.0, 0.5, -1.0), "label": 3}


def heights(axes) -> np.ndarray:
    """``(groups, C)`` heights of the bars."""
    return np.array([[bar.get_height() for bar in group] for group in axes.containers])


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


def test_fedadts_weight_goes_by_version():
    method = make_algorithm("fedadt")
    for version in (0, 250, 1000, 5000):
        terms = distillation_terms(TEACHER, STUDENT, rule="fedadt", version=version, weight=0.9)
        assert terms.weight == method.kl_weight(version)

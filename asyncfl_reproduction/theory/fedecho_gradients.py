"""Checks T1 and T2, which compare Appendix B's distillation gradient with FedEcho's own server step."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from asyncfl_lite.algorithms.losses import kl_divergence, mean_teacher
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_reproduction.theory.beds import context, feed, started
from asyncfl_reproduction.theory.results import AS_PRINTED, ASIDE, CONDITIONED, Case, Check

INPUT = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
LABEL = torch.tensor([0])
STUDENT = torch.tensor([[0.1, 0.2], [0.0, -0.1], [-0.2, 0.3]], dtype=torch.float64)
TEACHERS = torch.tensor(
    [[[1.0, 0.0], [0.0, 0.5], [-0.5, 0.0]], [[-1.0, 0.5], [0.5, 0.0], [0.5, 0.5]]], dtype=torch.float64
)
"""T1's linear softmax models, one row of weights per class."""


def distillation_gradient(
    model: VectorModel, student: Tensor, teachers: Tensor, inputs: Tensor, how: str, alpha: tuple[float, float] = (1, 1)
) -> Tensor:
    """Return the ``(d,)`` gradient along which FedEcho's server distils.

    The server gets one update from each teacher and has a server rate of 0, so the model is moved only by one unclipped
    SGD step of rate 1 over all inputs (Eqs. 2 to 4). The student is ``(d,)``, and the teachers are ``(N, d)``. ``how``
    says whether the teachers' ``logits`` (Alg. 1) or ``probs`` (App. B) are averaged. ``alpha`` is α_min and α_max; (1,
    1) is pure KL, as in App. B.
    """
    settings = {"distill_opt": "sgd", "distill_lr": 1.0, "distill_unit": "steps", "distill_q": 1, "clip": None}
    server = started(
        "fedecho",
        student,
        context(len(teachers), model=model, inputs=inputs),
        buffer_size=len(teachers),
        server_lr=0.0,
        teacher_avg=how,
        alpha_min=alpha[0],
        alpha_max=alpha[1],
        **settings,
    )
    return student - feed(server, teachers - student)


def loss_gradient(model: VectorModel, x: Tensor, inputs: Tensor, labels: Tensor) -> Tensor:
    """Return the ``(d,)`` gradient of cross-entropy on true labels, ∇f."""
    return model.gradient(x, inputs, lambda outputs: cross_entropy(outputs, labels))[1]


def linear_gradients() -> dict[str, Tensor]:
    """Return T1's ``(3, 2)`` gradients: by Eq. 8, at the teachers' mean parameters, and by readings of FedEcho."""
    model = VectorModel(nn.Linear(2, 3, bias=False, dtype=torch.float64))
    student, teachers = STUDENT.reshape(-1), TEACHERS.reshape(2, -1)

    def of_loss(x: Tensor) -> Tensor:
        return loss_gradient(model, x, INPUT, LABEL)

    found = {
        "Eq. 8": of_loss(student) - sum(map(of_loss, teachers)) / len(teachers),
        "at the mean of parameters": of_loss(student) - of_loss(teachers.mean(0)),
        "probs": distillation_gradient(model, student, teachers, INPUT, "probs"),
        "logits": distillation_gradient(model, student, teachers, INPUT, "logits"),
        "mixed": distillation_gradient(model, student, teachers, INPUT, "probs", (0.2, 0.8)),
    }
    return {name: gradient.view(3, 2) for name, gradient in found.items()}


def _gap(one: Tensor, other: Tensor) -> float:
    return float((one - other).abs().max())


def check_t1() -> Check:
    """Check T1, FedEcho's Eq. 8 for linear softmax: ∇f_d = ∇f(x) - (1/N) Σ ∇f(x_i)."""
    g = linear_gradients()
    right = g["Eq. 8"]
    return Check(
        "T1",
        "FedEcho",
        "Appendix B, Eq. 8",
        "For a linear softmax model FedEcho's distillation gradient is the gradient of the student's loss less the "
        "mean of the gradients that each teacher has at its own parameters.",
        (
            Case(AS_PRINTED, "mean of logits, as in Algorithm 1", _gap(g["logits"], right), "=", 0, 1e-12),
            Case(AS_PRINTED, "α from 0.2 to 0.8, as in Eq. 3", _gap(g["mixed"], right), "=", 0, 1e-12),
            Case(CONDITIONED, "mean of probabilities, α = 1", _gap(g["probs"], right), "=", 0, 1e-12),
            Case(
                ASIDE,
                "mean of logits against the gradient at the averaged parameters",
                _gap(g["logits"], g["at the mean of parameters"]),
                "=",
                0,
                1e-12,
            ),
        ),
        condition="the server averages probabilities, as Appendix B does, and the loss is pure KL (α = 1)",
        counterexample="two teachers, one input: Algorithm 1's mean of logits is off by 0.12. For a linear model it is "
        "exactly distillation from the averaged parameters, what the appendix wants to be different from",
        repair="teacher_avg='probs', alpha_min=1; or say of Algorithm 1 that for linear models it averages parameters",
    )


def network_gradients(seed: int = 0) -> dict[str, Tensor]:
    """Return T2's ``(d,)`` gradients for a 3-4-3 tanh network and three random teachers.

    Eq. 13 is computed directly, as the student's Jacobian times the difference of the loss's derivatives in the logits.
    The finite differences are taken of the loss itself.
    """
    generator = torch.Generator().manual_seed(seed)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3)).double()
    model = VectorModel(net)
    points = torch.randn(4, model.num_parameters, dtype=torch.float64, generator=generator)
    inputs = torch.randn(1, 3, dtype=torch.float64, generator=generator)
    student, teachers = points[0], points[1:]
    label = nn.functional.one_hot(LABEL, 3)

    def in_logits(x: Tensor) -> Tensor:
        return (model.outputs(x, inputs).softmax(-1) - label)[0]

    jacobian = torch.autograd.functional.jacobian(lambda x: model(x, inputs)[0], student)
    target = mean_teacher(torch.stack([model.outputs(x, inputs) for x in teachers]), "probs")

    def loss(x: Tensor) -> Tensor:
        return kl_divergence(target, model.outputs(x, inputs)).mean()

    h = 1e-5 * torch.eye(len(student), dtype=torch.float64)
    mean_of_own = sum(loss_gradient(model, x, inputs, LABEL) for x in teachers) / len(teachers)
    return {
        "Eq. 13": (in_logits(student) - sum(map(in_logits, teachers)) / len(teachers)) @ jacobian,
        "Eq. 8": loss_gradient(model, student, inputs, LABEL) - mean_of_own,
        "finite differences": torch.stack([(loss(student + e) - loss(student - e)) / 2e-5 for e in h]),
        "probs": distillation_gradient(model, student, teachers, inputs, "probs"),
        "logits": distillation_gradient(model, student, teachers, inputs, "logits"),
    }


def check_t2() -> Check:
    """Check T2, FedEcho's Eq. 13, which is Eq. 8 for any network, with the student's Jacobian for every teacher."""
    g = network_gradients()
    right = g["Eq. 13"]
    return Check(
        "T2",
        "FedEcho",
        "Appendix B, Eq. 13",
        "For any network FedEcho's distillation gradient is the student's Jacobian times the difference between the "
        "loss's derivative in the student's logits and the mean of those in the teachers' logits; it is not the "
        "difference of the models' own gradients.",
        (
            Case(AS_PRINTED, "mean of logits, as in Algorithm 1", _gap(g["logits"], right), "=", 0, 1e-12),
            Case(CONDITIONED, "mean of probabilities, α = 1", _gap(g["probs"], right), "=", 0, 1e-12),
            Case(CONDITIONED, "finite differences of that loss", _gap(g["finite differences"], right), "=", 0, 1e-8),
            Case(CONDITIONED, "not Eq. 8, the models' own gradients", _gap(g["Eq. 8"], right), ">=", 0.1),
        ),
        condition="the server averages probabilities, as Appendix B does, and the loss is pure KL (α = 1)",
        counterexample="the same network with Algorithm 1's mean of logits",
        repair="teacher_avg='probs', alpha_min=1",
    )

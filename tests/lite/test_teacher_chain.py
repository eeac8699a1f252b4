"""KUIPER's chain of teachers: the loss by hand, the ResNets' depths, and what a run starts from."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from asyncfl_lite import Config, run
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.models import CNN, MLP, ModelSpec, ResNet
from asyncfl_lite.runs.assembly import load_task, servers_own
from asyncfl_lite.runs.run import Run
from asyncfl_lite.runs.teacher_chain import TeacherChain, logit_error
from asyncfl_lite.tasks import TASKS, Task
from conftest import vector

SMALL = {"task": "digits", "clients": 8, "concurrency": 4, "buffer_size": 2, "rounds": 4, "eval_every": 2}
DIGITS = TASKS.get("digits")()
exactly = {"rtol": 1e-7, "atol": 0}


def one_zero():
    """One float64 zero of class 0, and one of class 1 to test on."""
    task = Task.from_tensors(torch.zeros(1, 1), torch.tensor([0]), torch.zeros(1, 1), torch.tensor([1]))
    return dataclasses.replace(task, inputs=task.inputs.double())


def built(chain, spec, task=None, labelled=None, seed=1, stream=0):
    task = task or load_task(DIGITS)
    labelled = labelled or (task.inputs[:150], task.labels[:150])
    return chain.build(spec, task, labelled, seed, np.random.default_rng(stream))


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))


def test_worked_logit_error():
    teacher, student = vector(2, 0, -1, 1, 1, 1).view(2, 3), vector(0, 0, 1, 1, 4, 0).view(2, 3)
    assert logit_error(student, teacher, "sum").item() == pytest.approx((8 + 10) / 2, rel=1e-7)
    assert logit_error(student, teacher).item() == pytest.approx(18 / 6, rel=1e-7)


class Constant(ModelSpec):
    """The same two float64 logits whatever the input; they start at 0."""

    def build(self, input_shape, num_classes):
        layer = nn.Linear(1, num_classes, dtype=torch.float64)
        nn.init.zeros_(layer.weight)
        nn.init.zeros_(layer.bias)
        return layer

    def larger(self, scale):
        return self


@pytest.fixture
def plain(monkeypatch):
    """A chain of one step of plain gradient descent at rate 1."""
    for name, value in {"lr": 1.0, "momentum": 0.0, "weight_decay": 0.0, "clip": math.inf}.items():
        monkeypatch.setattr(TeacherChain, name, value)
    return {"epochs": 1, "teaching_assistants": 0}


def test_worked_chain(plain):
    """Two steps each on a sample of class 0 with input 0: only the bias moves, from (0, 0) to (b, -b).

    A step of the teacher is minus the gradient of its cross-entropy, 1 - σ(2b). One of the student, with α = .25, is
    .25 (1 - σ(2b)) + .75 (the teacher's b - b).
    """

    def slope(b: float) -> float:
        return 1 / (1 + math.exp(2 * b))

    task, teacher, b = one_zero(), slope(0.0) + slope(slope(0.0)), 0.0
    chain = TeacherChain(**plain | {"epochs": 2}, class_weight=0.25)
    student = built(chain, Constant(), task, (task.inputs, task.labels))
    for _ in range(2):
        b += 0.25 * slope(b) + 0.75 * (teacher - b)
    torch.testing.assert_close(student.bias.detach(), vector(b, -b), **exactly)


@pytest.mark.parametrize(("clip", "length"), [(math.inf, math.sqrt(0.5)), (0.1, 0.1), (5.0, math.sqrt(0.5))])
def test_gradients_are_clipped(clip, length, plain, monkeypatch):
    monkeypatch.setattr(TeacherChain, "clip", clip)
    task = one_zero()
    student = built(TeacherChain(**plain, class_weight=1.0), Constant(), task, (task.inputs, task.labels))
    assert student.bias.norm().item() == pytest.approx(length, rel=1e-5)


def layers(module):
    """Convolutions and linear layers but for those on shortcuts, as a ResNet's depth is counted."""
    return sum(
        isinstance(layer, (nn.Conv2d, nn.Linear)) and "downsample" not in name for name, layer in module.named_modules()
    )


@pytest.mark.parametrize("depth", [18, 26, 34])
def test_depths_of_the_named_resnets(depth):
    spec = ResNet(width=2, blocks=f"resnet{depth}")
    assert layers(spec.build((3, 32, 32), 10)) == depth
    assert ResNet(**spec.model_dump()) == spec and isinstance(spec.blocks, tuple)


@pytest.mark.parametrize(
    ("assistants", "depths"), [(0, [34, 18]), (1, [34, 26, 18]), (2, [34, 28, 24, 18]), (3, [34, 30, 26, 22, 18])]
)
def test_chains_of_the_papers_table_3(assistants, depths):
    chain = TeacherChain(teaching_assistants=assistants).chain(ResNet(width=4, blocks=(2, 2, 2, 2), norm="batch"))
    assert [layers(spec.build((1, 14, 14), 10)) for spec in chain] == depths
    assert chain[0].blocks == (3, 4, 6, 3)
    assert {(spec.width, spec.norm) for spec in chain} == {(4, "batch")}


@settings(deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.floats(1, 3))
def test_relatives_have_as_many_parts_and_even_widths(sizes, scale):
    spec = ResNet(blocks=tuple(sizes)).larger(scale)
    assert len(spec.blocks) == len(sizes) and sum(spec.blocks) == round(scale * sum(sizes)) and min(spec.blocks) >= 1
    channels = CNN(channels=tuple(sizes)).larger(scale).channels
    assert len(channels) == len(sizes) and not any(width % 2 for width in channels)
    assert all(abs(width - scale * size) <= 1 + 1e-9 for width, size in zip(channels, sizes, strict=True))


class Dropping(ModelSpec):
    """A model that draws random numbers of torch's whenever it trains."""

    def build(self, input_shape, num_classes):
        return nn.Sequential(nn.Flatten(), nn.Dropout(), nn.Linear(math.prod(input_shape), num_classes))

    def larger(self, scale):
        return self


def test_a_teacher_answers_as_it_is_evaluated(monkeypatch):
    taught, train = [], TeacherChain._train

    def spied(chain, module, task, labelled, teacher, rng):
        taught.append((module, teacher))
        train(chain, module, task, labelled, teacher, rng)

    monkeypatch.setattr(TeacherChain, "_train", spied)
    task = load_task(DIGITS)
    built(TeacherChain(epochs=1, teaching_assistants=0), Dropping())
    (teacher, nobody), (_, answers) = taught
    assert nobody is None and torch.equal(answers, teacher.eval()(task.inputs[:150]))


def test_the_same_streams_give_the_same_model_and_others_another():
    chain = TeacherChain(epochs=3)
    one = built(chain, Dropping())
    torch.rand(3)
    before = torch.random.get_rng_state()
    assert same(one, built(chain, Dropping()))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert not same(one, built(chain, Dropping(), stream=1))
    assert not same(one, built(chain, Dropping(), seed=2))


@pytest.mark.parametrize(
    "switch",
    [{"fraction": 0.2}, {"teachers": [{"hidden": [80]}, {"hidden": [70]}]}, {"teaching_assistants": 0}, {"epochs": 3},
     {"teaching_assistants": 2}, {"batch_size": 50}, {"class_weight": 0.1}, {"reinitialise_last": True}],
)  # fmt: skip
def test_every_switch_switches(switch):
    def start(**settings):
        return Run(Config(**SMALL, initial="teacher_chain", initial_settings={"epochs": 2, **settings})).algorithm.x

    assert not torch.equal(start(), start(**switch))


def test_a_run_starts_ahead_and_no_client_has_the_servers_samples():
    config = Config(**SMALL, initial="teacher_chain", initial_settings={"epochs": 60})
    taught, random = Run(config), run(Config(**SMALL))
    theirs = np.concatenate(taught.parts)
    held = taught.task.inputs[servers_own(config, taught.task)]
    assert len(held) == 144 and len(theirs) == len(set(theirs)) == 1437 - 144
    everything = torch.cat([taught.task.inputs[theirs], held]).flatten(1)
    assert torch.equal(everything.sort(0).values, taught.task.inputs.flatten(1).sort(0).values)
    result = taught.finish()
    assert result.curve["accuracy"].iloc[0] > 0.7 > 0.4 > random.curve["accuracy"].iloc[0]
    assert torch.equal(result.x, run(config).x)


def from_digits(**more):
    settings = {"task": "digits", "epochs": 3, **more}
    return Run(Config(**SMALL, initial="teacher_chain", initial_settings=settings))


def test_a_task_of_its_own_leaves_clients_theirs_and_draws_the_last_layer_anew():
    started = from_digits()
    assert started.config.held_out == 0 and sum(map(len, started.parts)) == 1437
    assert started.config.initial_settings.reinitialise_last
    assert Config(**started.config.as_dict()) == started.config
    slots = started.model.parameter_slots
    (taught, random) = (run.algorithm.x for run in (started, Run(Config(**SMALL))))
    same = [torch.equal(taught[slot.start : slot.stop], random[slot.start : slot.stop]) for slot in slots]
    assert same == [False, False, True, True]
    assert not torch.equal(from_digits(epochs=4).algorithm.x, taught)


def test_a_last_layer_for_other_classes_cannot_stay():
    chain = TeacherChain(task="pairdigits100", epochs=1, reinitialise_last=False)
    task = load_task(TASKS.get("pairdigits100")())
    few = Task.from_tensors(task.inputs[:50], task.labels[:50] % 7, task.test_inputs, task.test_labels % 7)
    said = "^task: 'pairdigits100' teaches a model that does not fit the clients': size"
    with pytest.raises(ConfigError, match=said):
        chain.build(MLP(), few, None, 1, np.random.default_rng(0))


CHEAP = {"clients": 6, "concurrency": 3, "buffer_size": 2, "rounds": 1, "local_steps": 1, "partition": "iid"}
CHAIN = {"initial": "teacher_chain", "initial_settings": {"epochs": 1, "teaching_assistants": 0}}


def start(**settings):
    return Run(Config(**{**CHEAP, **CHAIN, **settings})).model.flatten()[0]


@pytest.fixture
def trainings(monkeypatch, tmp_path):
    """How often a chain was trained; the cache begins empty."""
    monkeypatch.setenv("ASYNCFL_CACHE", str(tmp_path))
    trained, build = [], TeacherChain.build
    monkeypatch.setattr(TeacherChain, "build", lambda *given: trained.append(1) or build(*given))
    return trained


def test_a_second_run_starts_from_the_same_bits_without_training(trainings):
    first, second = start(), start(algorithm="fedasync", buffer_size=1, client_lr=0.7)
    assert torch.equal(first, second) and len(trainings) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 1},
        {"model_settings": {"hidden": (32,)}},
        {"initial_settings": {"epochs": 2, "teaching_assistants": 0}},
        {"threads": 2},  # which may round differently
        {"algorithm": "fedadt", "buffer_size": 1, "settings": {"kd_fraction": 0.3}},  # a larger labelled set
        (torch.backends.cpu, "get_cpu_capability", lambda: "other"),  # on another machine that shares the cache
        (torch, "__version__", "other"),
    ],
)
def test_what_it_depends_on_makes_another(trainings, other, monkeypatch):
    first = start()
    if isinstance(other, tuple):
        monkeypatch.setattr(*other)
        other = {"threads": 1}
    second = start(**other)
    assert len(trainings) == 2
    assert "threads" in other or first.shape != second.shape or not torch.equal(first, second)


def test_a_damaged_file_is_made_anew(trainings, tmp_path):
    """Cut off, empty, without its digest, or with another bit somewhere."""
    first = start()
    (place,) = (tmp_path / "initial").iterdir()
    content = place.read_bytes()
    damaged = [content[:100], b"", content[:-32]]
    for at in (len(content) * part // 9 for part in range(1, 9)):
        damaged.append(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    for number, one in enumerate(damaged):
        place.write_bytes(one)
        assert torch.equal(first, start()) and len(trainings) == number + 2
        assert place.read_bytes() == content
    assert torch.equal(first, start()) and len(trainings) == len(damaged) + 1

"""``check_algorithm``: every method passes, and each check finds the one thing that is wrong."""

from __future__ import annotations

import random
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
import torch

from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.algorithms.fedbuff import FedBuff
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.base.registry import Settings
from asyncfl_lite.models.probe import check_conduct
from asyncfl_lite.runs import assembly
from asyncfl_lite.testing import CHECKS, AlgorithmCheckError, RuleBroken, check_algorithm, registered, simulate

NAMES = list(CHECKS)


@pytest.fixture(scope="module", autouse=True)
def models_tried_once():
    """The checks train few models in thousands of runs: how a model conducts itself is tried in the first of them."""
    tried: dict[tuple, bool] = {}

    def once(name, model, inputs, output_shape, *more):
        kind = (name, str(model.module), inputs.shape, output_shape)
        if kind not in tried:
            tried[kind] = check_conduct(name, model, inputs, output_shape, *more)
        return tried[kind]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assembly, "check_conduct", once)
        yield


def failures(algorithm) -> dict[str, str]:
    with pytest.raises(AlgorithmCheckError) as caught:
        check_algorithm(algorithm)
    assert str(caught.value).split("\n") == [f"{name}: {why}" for name, why in caught.value.failures.items()]
    return caught.value.failures


def rule_broken(name: str, algorithm) -> str:
    """What one check alone finds."""
    with registered(algorithm) as make, pytest.raises(RuleBroken) as caught:
        CHECKS[name](make)
    return str(caught.value)


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_every_method_keeps_the_rules(name):
    assert check_algorithm(ALGORITHMS.get(name)) == NAMES


def mine(kind: type[FedBuff] = FedBuff, **members) -> type[FedBuff]:
    """FedBuff with some of its members replaced."""
    return type("Mine", (kind,), {"__doc__": "Mine.", **members})


def receiving(on_receive) -> type[FedBuff]:
    """FedBuff that does something else with an update."""
    return mine(on_receive=on_receive)


LatestCounts = mine(entry=lambda self, update: (1 + self.filled) * update.delta)
Trusting = mine(_fault=lambda self, update: None)
Decays = mine(after_step=lambda self, x: 0.99 * x)
Draws = mine(entry=lambda self, update: (update.delta, torch.rand(1))[0])
InPlace = mine(step=lambda self, mean: self.x.add_(mean))
SaysYes = receiving(lambda self, update: FedBuff.on_receive(self, update) or True)


class Remembers(FedBuff):
    """Keeps its momentum from one run to the next."""

    state_names = (*FedBuff.state_names, "momentum")
    momentum = 0.0

    def step(self, mean):
        self.momentum = 0.9 * self.momentum + mean
        return self.x + self.momentum


class Forgets(FedBuff):
    """Has momentum and does not save it."""

    def start(self, x0, context=None, **options):
        super().start(x0, context, **options)
        self.velocity = torch.zeros_like(self.x)

    def step(self, mean):
        self.velocity = 0.9 * self.velocity + mean
        return self.x + self.velocity


BROKEN = {
    "versions": (SaysYes, "on_receive must return True exactly when it made one version"),
    "order": (LatestCounts, "the order inside a buffer must not matter"),
    "refusals": (Trusting, "an update with a NaN must be refused, since one is enough to ruin the model"),
    "starting_again": (Remembers, "start() must begin anew"),
    "in_place": (InPlace, "models and updates must not be changed in place"),
    "standing_still": (Decays, "updates of zero must leave the model unchanged, since nothing asks it to move"),
    "save_and_restore": (Forgets, "; changed, and not in state_names: velocity"),
    "randomness": (
        Draws,
        "random numbers must come from context.rng, or a run does not follow from its seed; drawn from: torch's",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_method_fails_exactly_the_check_of_its_rule(name):
    method, words = BROKEN[name]
    found = failures(method)
    assert list(found) == [name]
    assert words in found[name]


def test_no_check_is_without_a_method_that_fails_it():
    assert list(BROKEN) == NAMES


class Sized(FedBuff):
    """Is broken with one of its settings, and notes what it was started with."""

    seen: set = set()

    class Settings(FedBuff.Settings):
        """One switch."""

        drift: float = 0.0

    def start(self, x0, context=None, **options):
        super().start(x0, context, **options)
        self.seen.add((self.buffer_size, self.server_lr, self.bn_mode, self.settings.drift))

    def after_step(self, x):
        return x + self.settings.drift


def test_an_instance_is_checked_with_its_settings_and_left_alone():
    Sized.seen.clear()
    method = Sized(buffer_size=5, server_lr=0.5, bn_mode="delta", drift=0.01)
    before = dict(vars(method))
    assert list(failures(method)) == ["standing_still"]
    assert vars(method) == before
    assert {(server_lr, drift) for _, server_lr, _, drift in Sized.seen} == {(0.5, 0.01)}
    assert {(size, mode) for size, _, mode, _ in Sized.seen} == {(5, "delta")}
    assert check_algorithm(Sized) == NAMES


def test_all_checks_are_made_though_earlier_ones_fail():
    assert list(failures(mine(Draws, after_step=Decays.after_step))) == ["standing_still", "randomness"]


@pytest.mark.parametrize(
    "declared",
    [mine(Decays, moves_by_itself=True), mine(LatestCounts, about=replace(FedBuff.about, order_matters=True))],
)
def test_what_is_declared_is_allowed(declared):
    assert check_algorithm(declared) == NAMES


@pytest.mark.parametrize(
    ("on_receive", "words"),
    [(lambda self, update: bool(self.accumulate(update)), "it never calls self.new_version(x)"),
     (lambda self, update: setattr(self, "x", self.x + update.delta), "it sets self.x itself, which clients never receive"),
     (lambda self, update: FedBuff.on_receive(self, update) and None, "it returned None when the version went from 0 to 1"),
     (SaysYes.on_receive, "it returned True when the version went from 0 to 0")],
)  # fmt: skip
def test_a_method_that_makes_no_version_ends_with_a_line_that_says_why(on_receive, words):
    found = failures(receiving(on_receive))
    assert found["versions"].startswith("Mine") and words in found["versions"]
    assert list(found.values()).count(found["versions"]) == 1


TAKEN = {  # the one kind of unsound update that a method takes
    "an infinite value": lambda method, update: update.delta.isinf().any(),
    "a wrong shape": lambda method, update: update.delta.shape != method.x.shape,
    "a start version of the future": lambda method, update: update.start_version > method.version,
    "a negative start version": lambda method, update: update.start_version < 0,
}


def taking(taken) -> type[FedBuff]:
    def receive(self, update):
        return self.on_receive(update) if taken(self, update) else FedBuff.receive(self, update)

    return mine(receive=receive)


@pytest.mark.parametrize(
    ("name", "method", "words"),
    [*(("randomness", mine(after_step=lambda self, x, draw=draw: x + 1e-3 * draw()), f"drawn from: {module}")
       for module, draw in (("numpy.random", np.random.rand), ("random", random.random))),
     *(("refusals", taking(taken), f"an update with {kind} must be refused") for kind, taken in TAKEN.items()),
     ("refusals", mine(receive=lambda self, update: self.context.rng.random() and FedBuff.receive(self, update)),
      "before and after, state['rng']"),
     ("versions", receiving(lambda self, update: torch.tensor(FedBuff.on_receive(self, update))),
      "Mine.on_receive must return True or False; it returned tensor(False)")],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_check_finds(name, method, words):
    assert words in rule_broken(name, method)


def test_a_method_may_take_long_for_its_first_version():
    slow = receiving(lambda self, update: self.accumulate(update) or (self.filled == 99 and self.flush()))
    with registered(slow) as make:
        assert simulate(make.run(rounds=3)).algorithm.version == 3


def test_a_state_that_cannot_be_loaded_is_named():
    found = failures(mine(state_names=(*FedBuff.state_names, "rate"), rate=Decimal(1)))
    assert list(found) == ["save_and_restore"]
    assert "checkpoint not used" in found["save_and_restore"]


def test_an_exception_is_told_with_the_line_of_the_method():
    class Raises(FedBuff):
        """Raises in its second version."""

        def step(self, mean):
            return super().step(mean) if self.version == 0 else self.nothing  # here

    found = failures(Raises)
    line = Raises.step.__code__.co_firstlineno + 1
    assert f"AttributeError in line {line} of {__file__}, in step (" in found["versions"]
    assert "# here): 'Raises' object has no attribute 'nothing'" in found["versions"]


@pytest.mark.parametrize("check", [lambda: check_algorithm(FedBuff), lambda: failures(Draws)], ids=["sound", "broken"])
def test_nothing_is_left_behind(check):
    names, drawn = list(ALGORITHMS), []
    for between in (lambda: None, check):
        torch.manual_seed(3), np.random.seed(3), random.seed(3)
        between()
        drawn.append((torch.rand(1), np.random.rand(), random.random()))
    assert drawn[0] == drawn[1] and list(ALGORITHMS) == names


@pytest.mark.parametrize("nothing", [Settings, "fedbuff", None])
def test_what_is_no_method_is_one_line(nothing):
    with pytest.raises(ConfigError, match="^algorithm: must be a subclass of Algorithm or an instance of one, got"):
        check_algorithm(nothing)

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
from asyncfl_lite.testing import (
    CHECKS,
    AlgorithmCheckError,
    RuleBroken,
    check_algorithm,
    registered,
    simulate,
)

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


class LatestCounts(FedBuff):
    """Weighs later entries more."""

    def entry(self, update):
        return (1 + self.filled) * update.delta


class Trusting(FedBuff):
    """Refuses nothing."""

    def _fault(self, update):
        return None


class Remembers(FedBuff):
    """Keeps its momentum from one run to the next."""

    state_names = (*FedBuff.state_names, "momentum")
    momentum = 0.0

    def step(self, mean):
        self.momentum = 0.9 * self.momentum + mean
        return self.x + self.momentum


class SaysYes(FedBuff):
    """Says that every update made a version."""

    def on_receive(self, update):
        super().on_receive(update)
        return True


class InPlace(FedBuff):
    """Steps in place."""

    def step(self, mean):
        self.x += mean
        return self.x


class Decays(FedBuff):
    """Decays its weights."""

    def after_step(self, x):
        return 0.99 * x


class Forgets(FedBuff):
    """Has momentum and does not save it."""

    def start(self, x0, context=None, **options):
        super().start(x0, context, **options)
        self.velocity = torch.zeros_like(self.x)

    def step(self, mean):
        self.velocity = 0.9 * self.velocity + mean
        return self.x + self.velocity


class Draws(FedBuff):
    """Draws from torch's global generator and makes no use of it."""

    def entry(self, update):
        torch.rand(1)
        return update.delta


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


@pytest.mark.parametrize(("module", "draw"), [("numpy.random", np.random.rand), ("random", random.random)])
def test_noise_of_a_global_generator(module, draw):
    class Noisy(FedBuff):
        """Adds global noise."""

        def after_step(self, x):
            return x + 1e-3 * draw()

    assert rule_broken("randomness", Noisy).endswith(f"drawn from: {module}")


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
    class Twice(Draws, Decays):
        """Is wrong in two ways."""

    assert list(failures(Twice)) == ["standing_still", "randomness"]


def test_what_is_declared_is_allowed():
    declared = [
        type("Declared", (Decays,), {"__doc__": "Decays.", "moves_by_itself": True}),
        type(
            "Declared",
            (LatestCounts,),
            {"__doc__": "In order.", "about": replace(LatestCounts.about, order_matters=True)},
        ),
    ]
    for method in declared:
        assert check_algorithm(method) == NAMES


class NoVersion(FedBuff):
    """Adds up and never makes a version."""

    def on_receive(self, update):
        self.accumulate(update)
        return False


class SetsX(FedBuff):
    """Replaces the model without a version, and says nothing."""

    def on_receive(self, update):
        self.x = self.x + update.delta


class NoReturn(FedBuff):
    """Makes versions and forgets to say so."""

    def on_receive(self, update):
        self.accumulate(update)
        if self.filled >= self.buffer_size:
            self.flush()


ENDLESS = [
    (NoVersion, "NoVersion made no version of the last 100 updates that it accepted (version 0, buffer_size 3): it never "
        "calls self.new_version(x); on_receive must `return self.new_version(x)` when the buffer is full"),
    (SetsX, "SetsX made no version of the last 100 updates that it accepted (version 0, buffer_size 3): it sets self.x "
        "itself, which clients never receive; on_receive must `return self.new_version(x)` when the buffer is full"),
    (NoReturn, "NoReturn.on_receive must return True exactly when it made one version, since scheduling and the clock go "
        "by it; it returned None when the version went from 0 to 1: put `return` before self.new_version(x), or "
        "self.flush()"),
    (SaysYes, "SaysYes.on_receive must return True exactly when it made one version, since scheduling and the clock go "
        "by it; it returned True when the version went from 0 to 0: return self.new_version(x)"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "line"), ENDLESS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_method_that_makes_no_version_ends_with_a_line_that_says_why(method, line):
    found = failures(method)
    assert found["versions"] == line
    assert list(found.values()).count(line) == 1


def test_an_answer_is_true_or_false():
    class Tens(FedBuff):
        """Answers with a tensor."""

        def on_receive(self, update):
            return torch.tensor(super().on_receive(update))

    assert rule_broken("versions", Tens) == "Tens.on_receive must return True or False; it returned tensor(False)"


def test_a_method_may_take_long_for_its_first_version():
    class Slow(FedBuff):
        """Makes a version of every 99 updates, whatever its buffer."""

        def on_receive(self, update):
            self.accumulate(update)
            return self.filled == 99 and self.flush()

    with registered(Slow) as make:
        assert simulate(make.run(rounds=3)).algorithm.version == 3


@pytest.mark.parametrize(
    ("kind", "taken"),
    [
        ("an infinite value", lambda update, method: update.delta.isinf().any()),
        ("a wrong shape", lambda update, method: update.delta.shape != method.x.shape),
        ("a start version of the future", lambda update, method: update.start_version > method.version),
        ("a negative start version", lambda update, method: update.start_version < 0),
    ],
)
def test_each_kind_of_unsound_update_is_tried(kind, taken):
    class Trusts(FedBuff):
        """Refuses all but one kind."""

        def receive(self, update):
            return self.on_receive(update) if taken(update, self) else super().receive(update)

    assert f"an update with {kind} must be refused" in rule_broken("refusals", Trusts)


def test_refusals_must_leave_the_random_stream_alone():
    class Nervous(FedBuff):
        """Draws a number for every update, sound or not."""

        def receive(self, update):
            self.context.rng.random()
            return super().receive(update)

    assert "before and after, state['rng']" in rule_broken("refusals", Nervous)


def test_a_state_that_cannot_be_loaded_is_named():
    class Exact(FedBuff):
        """Keeps an object in its state."""

        state_names = (*FedBuff.state_names, "rate")

        def start(self, x0, context=None, **options):
            super().start(x0, context, **options)
            self.rate = Decimal(1)

    found = failures(Exact)
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


def test_nothing_is_left_behind():
    names = list(ALGORITHMS)
    torch.manual_seed(3)
    np.random.seed(3)
    random.seed(3)
    expected = torch.rand(1), np.random.rand(), random.random()
    for method in (FedBuff, Draws):
        torch.manual_seed(3)
        np.random.seed(3)
        random.seed(3)
        if method is FedBuff:
            check_algorithm(method)
        else:
            failures(method)
        assert (torch.rand(1), np.random.rand(), random.random()) == expected
    assert list(ALGORITHMS) == names


@pytest.mark.parametrize("nothing", [Settings, "fedbuff", None])
def test_what_is_no_method_is_one_line(nothing):
    with pytest.raises(ConfigError, match="^algorithm: must be a subclass of Algorithm or an instance of one, got"):
        check_algorithm(nothing)

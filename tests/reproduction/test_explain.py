"""Where a configuration's values come from, and that no result changes them."""

from __future__ import annotations

import pytest

from asyncfl_lite import Config
from asyncfl_lite.runs.config import explained
from asyncfl_reproduction import home


def origins(config: Config) -> dict[str, tuple[object, str]]:
    return {name: (value, origin) for name, value, origin in explained(config)}


def test_each_value_says_where_it_comes_from():
    found = origins(Config(task="overlaid_mnist", algorithm="fedecho", rounds=50, model_settings={"hidden": [64]}))
    assert found["task"] == ("overlaid_mnist", "given")
    assert found["rounds"] == (50, "given")
    assert found["model_settings.hidden"] == ([64], "given")
    assert found["settings.distill_lr"] == (1e-4, "searched: fedecho-overlaid_mnist")
    assert found["settings.distill_samples"] == (500, "the method fedecho on overlaid_mnist")
    assert found["client_optimizer"] == ("sgd", "the task overlaid_mnist")
    assert found["clients"] == (50, "common to all")
    assert found["scheduling"] == ("before_agg", "the method fedecho")
    assert found["seed"] == (0, "its own default")
    assert origins(Config(task="mrpc", algorithm="fedecho"))["model"] == ("bert", "the paper of fedecho")


def test_every_value_of_a_run_is_named_once():
    config = Config(task="glyphs", algorithm="kuiper")
    names = [name for name, *_ in explained(config)]
    assert len(names) == len(set(names))
    flat = sum(len(value) if isinstance(value, dict) else 1 for value in config.as_dict().values())
    assert len(names) == flat


@pytest.mark.parametrize("algorithm", ["fedbuff", "fedecho", "fedasync"])
def test_defaults_do_not_depend_on_what_is_recorded(algorithm, monkeypatch, tmp_path):
    before = Config(task="overlaid_mnist", algorithm=algorithm).hash
    monkeypatch.setattr(home, "RESULTS", tmp_path)
    assert Config(task="overlaid_mnist", algorithm=algorithm).hash == before

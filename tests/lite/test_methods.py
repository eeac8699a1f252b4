"""What holds for all methods: storage as claimed, the table, clients' streams left alone, fixed points."""

from __future__ import annotations

import functools
import importlib
from pathlib import Path

import pytest
import torch
from test_fedrevive import BUSY
from test_fedrevive import SMALL as REVIVED

from asyncfl_lite import Config, run
from asyncfl_lite.algorithms import ALGORITHMS, Algorithm
from asyncfl_lite.algorithms.fedbuff import FedBuff
from asyncfl_lite.algorithms.table import Stored, claimed, method_table
from asyncfl_lite.cli import main
from asyncfl_lite.runs.run import Run
from asyncfl_lite.simulator.simulation import Simulation
from conftest import line

FEW = {
    "fedecho": {"distill_samples": 40, "distill_q": 1}, "fedfa": {"queue_length": 4}, "fedrevive": {"num_teachers": 4}
}  # fmt: skip
"""Settings with which a few versions show the most that a method stores, quickly."""


def small(name: str, **more) -> Config:
    buffer = {"buffer_size": 3} if ALGORITHMS.get(name).buffered else {}
    base = {"task": "digits", "clients": 8, "concurrency": 4, "local_steps": 2, "horizon": 40.0, "rounds": None}
    return Config(algorithm=name, settings=FEW.get(name, {}), **{**base, **buffer, "eval_every": 1000, **more})


def vectors(value, d: int, seen: set[tuple[int, int]]) -> int:
    """How many ``(d,)`` vectors a saved state holds; two names of one tensor count once."""
    if isinstance(value, torch.Tensor):
        where = value.data_ptr(), value.numel()
        counts = where not in seen and value.shape[-1:] == (d,)
        seen.add(where)
        return value.numel() // d if counts else 0
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return sum(vectors(part, d, seen) for part in parts)


def measured(method: Algorithm) -> Stored:
    """What a server stores now, without the state that clients would hold."""
    state = {key: value for key, value in method.state().items() if key not in method.about.on_clients}
    logits = sum(len(rows) for rows in state.pop("logits", {}).values())
    return Stored(vectors(state, len(method.x), set()), logits)


@pytest.mark.parametrize("name", list(ALGORITHMS))
def test_storage_is_what_the_table_claims(name):
    run = Run(small(name))
    most = {"models": 0, "logits": 0}

    def watch(simulation: Simulation, arrival) -> None:
        now = measured(run.algorithm)
        most.update(models=max(most["models"], now.models), logits=max(most["logits"], now.logits))

    run.simulation.observers.append(watch)
    summary = run.finish().summary
    claim = claimed(run.algorithm, clients=8, unlabelled=40)
    assert (most["models"], most["logits"]) == (claim.models, claim.logits)
    assert summary["most_versions_in_flight"] <= run.config.concurrency


def test_the_table_has_every_method_and_every_switch(capsys, monkeypatch):
    table = method_table().set_index("name")
    assert list(table.index) == list(ALGORITHMS)
    for name, row in table.iterrows():
        assert all(f"{field}=" in row["options"] for field in ALGORITHMS.get(name).Settings.model_fields)
        assert row["paper"] and row["server stores"] and row["extra client work"]
    monkeypatch.setenv("COLUMNS", "150")
    assert main(["list", "--methods"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 150
    assert all(f"{name}\n  paper: " in shown for name in ALGORITHMS)


@pytest.mark.parametrize("name", ["fedecho", "fedadt", "fedrevive"])
def test_the_plain_scripts_that_benchmarks_measure_against_run(name, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    scripts = importlib.import_module("plain").SCRIPTS
    scripts[name](Config(task="digits", algorithm=name, clients=6, concurrency=3, rounds=2, eval_every=2))()


SHORT = {"clients": 8, "concurrency": 4, "local_steps": 4, "eval_every": 50, "client_lr": 0.1}
SWITCHES = {  # a run, and changes of its method's options each of which changes its end
    "fedecho": (SHORT | {"buffer_size": 2, "rounds": 3, "seed": 3, "client_lr": 0.05, "settings": {"distill_samples": 60}}, [
        {"teacher_avg": "probs"}, {"distill_opt": "sgd", "distill_lr": 0.05}, {"distill_unit": "steps"}, {"clip": 1e-3},
        {"distill_set": "natural"}, {"distill_set": "synthetic"}, {"distill_samples": 100}, {"distill_batch_size": 7},
        {"alpha_min": 1.0, "alpha_max": 1.0}]),
    "fedprox": (SHORT | {"rounds": 3}, [{"mu": 0.0}]),
    "fedadt": (SHORT | {"horizon": 8.0}, [
        {"tau_kd": 4}, {"alpha_versions": 5}, {"kd_lr": 0.01}, {"kd_fraction": 0.02}, {"kd_batch_size": 2}]),
    "kuiper": (SHORT | {"concurrency": 8, "buffer_size": 4, "rounds": 6}, [
        {"acc": "post_eval"}, {"acc": "last_epoch"}, {"kuiper_norm": "literal"}, {"kuiper_norm": "delta"}, {"t0": 2}]),
    "fedrevive": (REVIVED | {"settings": BUSY}, [
        {"beta_family": "cosine", "s_max": 4.0}, *({"beta_family": name} for name in ("exponential", "linear", "stepwise", "constant")),
        {"num_teachers": 2}, {"k_kd": 2}, {"kd_batch_size": 9}, {"proxy": "true"}, {"t_probe": 2.0}, {"k_synth": 4},
        {"generator_lr": 0.1}, {"latent_lr": 0.5}, {"nz": 9}, {"ngf": 3}, {"alpha_feat": 0.0},
        {"freeze_rounds": 4}, {"synthesis_only_rounds": 5}, {"adversarial_from": 4}, {"adversarial_from": 1}]),
}  # fmt: skip


BASE, NEVER = SHORT | {"buffer_size": 2, "rounds": 6, "seed": 3}, {"beta_family": "constant", "beta_constant": 0.0}
VANILLA = REVIVED | {"algorithm": "fedbuff", "buffer_size": 1, "scheduling": "after_agg"}
MODELS = ({}, {"model": "cnn", "model_settings": {"norm": "batch"}})
SAME = [  # two runs that end alike
    *((BASE | model | {"algorithm": "fedecho", "settings": off}, BASE | model | {"algorithm": "fedbuff"})
      for off in ({"distill_lr": 0.0}, {"distill_q": 0}) for model in MODELS),
    *((REVIVED | model | {"algorithm": "fedrevive", "settings": BUSY | NEVER}, REVIVED | model | {"algorithm": "afl_dw", "settings": NEVER})
      for model in MODELS),
    *((REVIVED | {"algorithm": "fedrevive", "settings": BUSY | off},
       REVIVED | {"algorithm": "afl_dw", "settings": {"s_max": BUSY["s_max"]}})
      for off in ({"k_kd": 0}, {"kd_lr": 0.0}, {"synthesis_only_rounds": 99})),
    *((REVIVED | model | {"algorithm": "afl_dw", "settings": NEVER}, VANILLA | model) for model in MODELS),
]  # fmt: skip


@pytest.mark.usefixtures("quick_syntheses")
@pytest.mark.parametrize("pair", SAME)
def test_with_a_part_off_one_method_is_another_bit_for_bit(pair):
    """Running statistics too, but that AFL-DW mixes them as parameters."""
    one, other = (Run(Config(**given)) for given in pair)
    results = one.finish(), other.finish()
    assert torch.equal(*(result.x for result in results)) and results[0].updates.equals(results[1].updates)
    if one.model.num_buffers and one.config.algorithm != "afl_dw":
        assert torch.equal(one.algorithm.buffers, other.algorithm.buffers)


@functools.cache
def unswitched(name: str) -> str:
    return run(Config(algorithm=name, **SWITCHES[name][0])).summary["weights_sha256"]


@pytest.mark.usefixtures("quick_syntheses")
@pytest.mark.parametrize(
    ("name", "switch"), [(name, one) for name, (_, ones) in SWITCHES.items() for one in ones], ids=str
)
def test_every_switch_switches(name, switch):
    base = SWITCHES[name][0]
    config = Config(algorithm=name, **base | {"settings": base.get("settings", {}) | switch})
    assert run(config).summary["weights_sha256"] != unswitched(name)


def test_a_method_with_the_earlier_name_of_its_scheduling_is_told_todays():
    """Else it would run with the default, and nobody would know."""
    mixin = type("Mixin", (), {"redispatch": "rounds"})
    assert line(lambda: type("Mine", (mixin, FedBuff), {})) == "Mine.redispatch: is called scheduling now"


def test_global_switches_and_redispatch():
    config = Config()
    assert (config.bn_mode, config.server_time) == ("avg", 0.0)
    assert config.delay_settings.gamma == 1.0 and config.partition_settings.min_size == 10
    wanted = {"fedbuff": "before_agg", "fedecho": "before_agg", "fedasync": "after_agg", "fedadt": "after_agg",
              "fedrevive": "after_agg", "afl_dw": "after_agg", "kuiper": "burst", "fedavg": "rounds"}  # fmt: skip
    assert {name: ALGORITHMS.get(name).scheduling for name in wanted} == wanted

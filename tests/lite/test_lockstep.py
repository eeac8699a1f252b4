"""Several runs at once, also from a shell; that every number is as alone is in ``test_ways.py``."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest
import torch
from test_ways import ECHO, REVIVED
from torch import nn

from asyncfl_lite import Config, Run, load_result, run, run_many
from asyncfl_lite.algorithms import ALGORITHMS, FedBuff
from asyncfl_lite.algorithms.losses import cross_entropy
from asyncfl_lite.base.errors import DivergedError
from asyncfl_lite.cli import main
from asyncfl_lite.models.compute import Answers, Descent, Minibatches, Optimiser
from asyncfl_lite.models.stacked import Chain, keeps_bits
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.runs import lockstep
from asyncfl_lite.runs.lockstep import finish_together

SMALL = {
    "task": "digits", "clients": 10, "concurrency": 5, "rounds": 6, "local_steps": 4, "eval_every": 2, "client_lr": 0.1
}  # fmt: skip


def test_jobs_share_cohorts_only_where_clients_compute_the_same(cohorts):
    assert run_many([]) == []
    others = ({"algorithm": "fedac", "server_lr": 0.01}, {"algorithm": "fedprox"}, {"model": "cnn"})
    run_many([Config(**{**SMALL, **more}) for more in ({}, {"seed": 1}, {"algorithm": "fedasync"}, ECHO, *others)])
    assert (
        max(len(works) for *_, works in cohorts) > 15
    )  # FedBuff twice, FedAsync, FedEcho: five jobs each at the start
    kinds = {(model.num_parameters, way.proximal, works[0].job.correction is None) for model, way, works in cohorts}
    assert len(kinds) == 4  # those, FedAC with corrections, FedProx, the CNN


def test_servers_share_what_they_ask_for(monkeypatch):
    """Distillations of FedEcho and FedADT, predictions of both; each with those alone that compute the same."""
    sizes: dict[str, list[int]] = {}
    for kind in (Answers, Descent):

        def watched(requests, kind=kind, together=kind.together):
            sizes.setdefault(kind.__name__, []).append(len(requests))
            return together(requests)

        monkeypatch.setattr(kind, "together", watched)
    results = run_many(
        [Config(**{**SMALL, **more, "seed": seed}) for more in (ECHO, {"algorithm": "fedadt"}) for seed in range(3)]
    )
    assert set(sizes) == {"Answers", "Descent"}
    distillations = sum(result.summary["versions"] for result in results[:3])
    assert sum(sizes["Descent"]) >= distillations and max(sizes["Descent"]) == 3 == max(sizes["Answers"])
    assert sum(sizes["Descent"]) > 1.5 * len(sizes["Descent"])


def test_a_run_can_be_looked_at_from_outside_while_it_waits():
    """Other runs' callbacks read a server's stored predictions."""
    seen = []

    def look(run):
        for other in begun:
            seen.append(len(other.algorithm.logits) if other.config.algorithm == "fedecho" else 0)

    begun = [Run(Config(**{**SMALL, **ECHO, "seed": seed}), on_version=look) for seed in range(2)]
    watched = finish_together(begun)
    assert max(seen) > 1
    alone = [run(result.config) for result in watched]
    assert [result.summary for result in watched] == [result.summary for result in alone]


def test_torchs_mode_of_one_run_is_not_the_others():
    """A method that asks inside ``no_grad`` leaves other runs' gradients alone."""
    quiet, other = (Run(Config(**{**SMALL, **more})) for more in (ECHO, REVIVED))
    compute = quiet.algorithm.context.compute

    @torch.no_grad()
    def quietly(request):
        found = compute(request)
        assert not torch.is_grad_enabled()
        return found

    quiet.algorithm.context.compute = quietly
    results = finish_together([quiet, other])
    assert [result.summary for result in results] == [run(result.config).summary for result in results]


class Silent(FedBuff):
    """FedBuff that notes the means of gradients that it is sent."""

    def entry(self, update):
        self.means = [*getattr(self, "means", ()), update.mean_gradient]
        return super().entry(update)


Asks = type("Asks", (Silent,), {"client_reports": frozenset({"mean_gradient"}), "__doc__": "Asks for them."})


@pytest.mark.parametrize("names", [("asks", "silent"), ("silent", "asks")])
def test_a_method_gets_the_reports_that_it_asks_for_whoever_trains_beside_it(names, monkeypatch, cohorts):
    """Their clients compute the same but for that report, so they are trained in the same cohorts."""
    monkeypatch.setitem(ALGORITHMS._entries, "asks", Asks)
    monkeypatch.setitem(ALGORITHMS._entries, "silent", Silent)
    common = {**SMALL, "client_optimizer": "adam", "client_lr": 0.01, "rounds": 2, "buffer_size": 5}
    begun = {name: Run(Config(**common, algorithm=name)) for name in names}
    alone = Run(begun["asks"].config)
    alone.finish()
    cohorts.clear()
    finish_together(list(begun.values()))
    means = {name: started.algorithm.means for name, started in begun.items()}
    assert max(len(works) for *_, works in cohorts) == 10 and means["silent"] == [None] * 10
    assert len(means["asks"]) == 10 and all(map(torch.equal, means["asks"], alone.algorithm.means))


ACTIVATIONS = ("ReLU", "LeakyReLU", "Tanh", "GELU", "Sigmoid", "SiLU", "ELU")


def side_by_side(activation: str, batch: int, widths: tuple[int, int, int], count: int) -> bool:
    """Whether ``count`` models that take three steps of Adam side by side end with the bits of each by itself."""
    torch.manual_seed(0)
    first, middle, last = widths
    layers = nn.Linear(first, middle), getattr(nn, activation)(), nn.Linear(middle, last)
    model = VectorModel(nn.Sequential(nn.Flatten(), *layers))
    x = torch.stack([model.flatten()[0] * (1 + 0.1 * row) for row in range(count)])
    inputs, labels = torch.randn(count, batch, first), torch.randint(last, (count, batch))

    def mean_loss(logits, labels):
        return cross_entropy(logits, labels).mean(-1)

    def descents(rows: range) -> list[Descent]:
        indices, sizes = torch.arange(batch).repeat(3), [batch] * 3
        adam = Optimiser("adam", 0.01)
        return [
            Descent(model, x[row], Minibatches(inputs[row], indices, sizes), mean_loss, adam, tables=(labels[row],))
            for row in rows
        ]

    together = Descent.together(descents(range(count)))
    alone = [Descent.together(descents(range(row, row + 1)))[0] for row in range(count)]
    return all(torch.equal(one, other) for one, other in zip(together, alone, strict=True))


def test_what_is_shared_has_the_same_bits_in_any_company():
    """Of random sizes, about half of which are shared; of the others many differ, so the rule is needed."""
    draw, kept, differ = random.Random(0), 0, 0
    for _ in range(120):
        activation, batch = draw.choice(ACTIVATIONS), draw.choice([1, 2, 3, 4, 5, 8, 10, 16, 20, 32, 50])
        widths = tuple(draw.choice([2, 3, 4, 5, 7, 8, 10, 16, 20, 31, 32, 64, 100]) for _ in range(3))
        layers = nn.Linear(*widths[:2]), getattr(nn, activation)(), nn.Linear(*widths[1:])
        same = side_by_side(activation, batch, widths, draw.choice([2, 3, 5, 12]))
        if keeps_bits(Chain([], list(layers)), batch):
            kept += 1
            assert same, (activation, batch, widths)
        differ += not same
    assert kept > 30 and differ > 10


AS_SETTINGS = {"clients": 6, "concurrency": 3, "buffer_size": 2, "local_steps": 2, "rounds": 3}
OPTIONS = [f"--{name.replace('_', '-')}={value}" for name, value in AS_SETTINGS.items()]


def test_several_seeds_run_in_lockstep_and_are_summed_up(tmp_path, capsys, monkeypatch):
    together, finish = [], lockstep.finish_together
    monkeypatch.setattr(
        lockstep, "finish_together", lambda runs, *a, **b: together.append(len(runs)) or finish(runs, *a, **b)
    )
    assert (
        main(["run", *OPTIONS, "--eval-every", "1", "--seed", "3", "--seed", "0,1", "--out", str(tmp_path / "x")]) == 0
    )
    told = capsys.readouterr()
    runs = [load_result(tmp_path / f"x/seed-{seed}") for seed in (3, 0, 1)]
    assert [one.config.seed for one in runs] == [3, 0, 1] and together == [3]
    accuracies = [one.summary["final_accuracy"] for one in runs]
    assert f"{np.mean(accuracies):.4f} ± {np.std(accuracies, ddof=1):.4f}" in told.out
    assert re.search(r"^versions +3$", told.out, re.M)
    assert re.search(r"^3 runs, 9 of 9 versions; seed [013]: version 3 of 3, time .*: accuracy 0", told.err, re.M)
    assert main(["run", *OPTIONS, "--eval-every", "1", "--seed", "3,0-2,4", "--out", str(tmp_path / "x")]) == 0
    assert together == [3, 2]  # the others are there
    assert main(["run", *OPTIONS, "--seed", "0-1"]) == 0 and together == [3, 2, 2]
    assert main(["run", *OPTIONS, "--seed", "0,1", "--vectorize", "off"]) == 0 and together == [3, 2, 2, 1, 1]


def test_a_configuration_that_is_there_twice_is_said(recwarn):
    config = Config(**AS_SETTINGS)
    run_many([config, config.with_seed(1)])
    assert not recwarn
    with pytest.warns(UserWarning, match="^configs: the same configuration is there twice, and its run counts twice$"):
        run_many([config, Config(**AS_SETTINGS, checkpoint_seconds=5)])


def test_a_seed_that_fails_leaves_the_others_saved(tmp_path, capsys, monkeypatch):
    def diverges(run, record=Run._record):
        if (run.config.seed, run.algorithm.version) == (1, 1):
            raise DivergedError("its rates are too large")
        record(run)

    command = ["run", *OPTIONS, "--eval-every", "1", "--seed", "0-2", "--out", str(tmp_path / "x")]
    with monkeypatch.context() as patch:
        patch.setattr(Run, "_record", diverges)
        assert main(command) == 2
    *_, told = capsys.readouterr().err.splitlines()
    assert told.startswith(
        "asyncfl-lite: its rates are too large; of 3 runs, number 1 from 0 failed, seed 1; 2 other runs are saved"
    )
    for seed in (0, 2):
        config = Config(**AS_SETTINGS, eval_every=1, seed=seed)
        assert Run(config, checkpoint=tmp_path / f"x/seed-{seed}/checkpoint.pt").resume()
    assert main(command) == 0

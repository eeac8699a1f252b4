"""Servers without data: numbers worked out by hand, methods that are others, refusals, statistics, what clients report."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from asyncfl_lite import Config, run
from asyncfl_lite.algorithms import FADAS, FedAC, FedASMU, ServerContext, make_algorithm
from asyncfl_lite.algorithms.mixing import hinge, poly
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.runs.run import Run
from conftest import update, vector


def served(name, x0=(1.0, 0.0), version=0, **chosen):
    """A server of a method, or of a class, in the middle of a run."""
    context = ServerContext(None, 3, np.random.default_rng(0), lambda name, count: None, client_lr=lambda version: 0.5)
    method = make_algorithm(name, **chosen) if isinstance(name, str) else name(**chosen)
    method.start(vector(*x0), context)
    method.version = version
    return method


def sent(delta, stale=0, start=None, **more):
    """An update so many versions old; its client started from the present model unless it is said."""
    return delta, stale, start, more


def report(method, one) -> bool:
    delta, stale, start, more = one
    start = method.x if start is None else vector(*start)
    return method.on_receive(dataclasses.replace(update(delta, start=start, **more), staleness=stale))


WEIGHED = [sent((0.4, 0)), sent((0, 0.8), 3)], [sent((-0.2, 0.2), 1), sent((0.2, 0.2), 8)]
AGED = ([sent((0.4, 0)), sent((0, 0.8))], [sent((-0.2, 0.2), 1), sent((0, 0.2))], [sent((0.1, 0.2), 4), sent((0.1, 0))],
        [sent((0.2, 0)), sent((0, 0))])  # fmt: skip
"""Buffers of mean (.2, .4), (-.1, .2), (.1, .1) and (.1, 0), whose stalest updates are 0, 1, 4 and 0 versions old."""
SIZED = [[sent((1, 2), num_samples=10), sent((3, -2), num_samples=30)]]
BURST = [[sent((2, 2), start=(0, 0), num_samples=100, received_accuracy=0.6),
          sent((4, -2), 2, (0, 0), num_samples=300, received_accuracy=0.2, client=1)]]  # fmt: skip
SAME_MODEL = [[sent((1, 2), start=(0, 0), num_samples=100, received_accuracy=0.6),
               sent((1, 2), 2, (0, 0), num_samples=300, received_accuracy=0.2)]]  # fmt: skip
CACHED = ([sent((0.4, 0)), sent((0, 0.8), client=1)], [sent((0.2, 0.2)), sent((0.6, -0.4), client=2)],
          [sent((0.2, 0.4), client=1), sent((0, 0), client=2)])  # fmt: skip
PERFECT = [sent((2, 2), start=(0, 0), num_samples=100, received_accuracy=0.5),
           sent((-9, 7), start=(0, 0), num_samples=500, received_accuracy=1.0)]  # fmt: skip
AT = {"buffer_size": 2, "server_lr": 0.5}
AFTER = {"delay_adaptive": True, "tau_c": 3}
WORKED = {  # method and its settings, where it starts, what it is sent, the model after each version, and other vectors then
    "weights none": ("fedbuff", AT | {"staleness_weight": "none"}, (1, 0), WEIGHED, [(1.1, 0.2), (1.1, 0.3)]),
    "weights poly": ("fedbuff", AT | {"staleness_weight": "poly"}, (1, 0), WEIGHED,
                     [(1.1, 0.1), (1.0813113276, 0.1520220057)]),
    "weights poly_norm": ("fedbuff", AT | {"staleness_weight": "poly_norm"}, (1, 0), WEIGHED,
                          [(1.13333333335, 0.13333333335), (1.09740878155, 0.23333333335)]),
    "rate decays": ("fedbuff", AT | {"server_lr_decay": 0.9}, (1, 0), AGED,
                    [(1.1, 0.2), (1.055, 0.29), (1.0955, 0.3305), (1.13195, 0.3305)]),
    "rate by age": ("fedbuff", AT | AFTER, (1, 0), AGED, [(1.1, 0.2), (1.05, 0.3), (1.0875, 0.3375), (1.1375, 0.3375)]),
    "rate by greater age": ("fedbuff", AT | AFTER | {"tau_c": 4}, (1, 0), AGED,
                            [(1.1, 0.2), (1.05, 0.3), (1.1, 0.35), (1.15, 0.35)]),
    "rate divided": ("fedbuff", AT | AFTER | {"da_rule": "divide"}, (1, 0), AGED,
                     [(1.1, 0.2), (1.05, 0.3), (1.0625, 0.3125), (1.1125, 0.3125)]),
    "rate min_inv": ("fedbuff", AT | AFTER | {"da_rule": "min_inv"}, (1, 0), AGED,
                     [(1.1, 0.2), (1.05, 0.3), (1.075, 0.325), (1.125, 0.325)]),
    "rate by both": ("fedbuff", AT | AFTER | {"server_lr_decay": 0.9}, (1, 0), AGED,
                     [(1.1, 0.2), (1.055, 0.29), (1.085375, 0.320375), (1.121825, 0.320375)]),
    "sizes": ("fedbuff", {"buffer_size": 2, "buffer_weight": "samples"}, (0, 0), SIZED, [(2.5, -1)]),
    "a client twice": ("fedbuff", {"buffer_size": 3}, (0, 0), [[sent((3, 0)), sent((3, 0)), sent((0, 3), client=1)]], [(2, 1)]),
    "fedavg": ("fedavg", {"buffer_size": 2}, (0, 0), SIZED, [(2.5, -1)]),
    "fedavgm": ("fedavgm", {}, (1, 0), [[sent((-0.5, 0.5))], [sent((-0.5, 0.5))]], [(0.5, 0.5), (-0.45, 1.45)],
                {"velocity": (-0.95, 0.95)}),
    "fedadam": ("fedadam", {"server_lr": 0.1}, (1, 0), [[sent((-0.5, 0.5))], [sent((-0.2, 0.1))]],
                [(0.9019607843, 0.0980392157), (0.7829546354, 0.2043307922)]),
    "ca2fl": ("ca2fl", {"buffer_size": 2}, (1, 0), CACHED, [(1.2, 0.4), (1.5333333333, 0.5666666667), (1.6, 0.7666666667)],
              {"cached_mean": (0.1333333333, 0.2)}),
    # both corrections use the round's old entry; the last write stays
    "ca2fl, a client twice": ("ca2fl", {"buffer_size": 2}, (0, 0), [[sent((3, 0)), sent((1, 0))]], [(2, 0)],
                              {"cached_mean": (0.3333333333, 0)}),
    "fadas": ("fadas", {"server_lr": 0.1, "delay_adaptive": True}, (1, 0),
              [[sent((0.2, 0.4))], [sent((-0.1, 0.2), 1)], [sent((0.1, 0.1), 4)]],
              [(1.09999995, 0.099999975), (1.1359209943, 0.2257236582), (1.206669917, 0.3586665631)],
              {"largest_square": (0.00059104, 0.00206416)}),
    # from (1, 0) to (1.5, .5) the model moved with the first update and across the second, whose weight is the floor
    "fedac": ("fedac", {"buffer_size": 2, "server_lr": 0.1, "correction": "off"}, (1.5, 0.5),
              [[sent((0.5, 0.5), 1, (1, 0)), sent((-1, 0), 1, (1, 0), client=1)]], [(1.7023857527, 0.7023857562)],
              {"mean": (0.1454545455, 0.1818181818), "square": (0.0132231405, 0.020661157)}),
    "fedasync": ("fedasync", {"mixing": 0.6}, (1, 0), [[sent((1, 2))], [sent((-1, 4), 3, (1, 0))]], [(1.6, 1.2), (1.12, 2.04)]),
    "fedadt, not distilled": ("fedadt", {"tau_kd": 3}, (1, 0),
                              [[sent((2, 2), start=(0, 0))], [sent((0, 4), 1, (0, 0))], [sent((2, 0), 3, (0, 0))]],
                              [(2, 2), (0.5857864376, 3.4142135624), (1.2928932188, 1.7071067812)]),
    "fedfa": ("fedfa", {"queue_length": 2}, (0, 0), [[sent(delta, start=(0, 0))] for delta in ((2, 2), (0, 4), (4, 0))],
              [(2, 2), (1, 3), (2, 2)]),
    "fedasmu": ("fedasmu", {}, (0, 0), [[sent((1, 0))]], [(0.6, 0)]),
    "fedasmu, later": ("fedasmu", {"version": 3}, (0, 0), [[sent((1, 0), 1)]], [(0.4604957132, 0)]),
    **{f"kuiper {name}": ("kuiper", {"version": 10, "buffer_size": 2, **chosen}, (1, 0), BURST, [x]) for name, chosen, x in [
        ("literal", {"kuiper_norm": "literal"}, (1.7919595949, -0.4949747468)),
        ("renorm", {"kuiper_norm": "renorm"}, (2.3435028843, -0.7071067812)),
        ("without accuracies", {"t0": 0}, (2.2374368671, -0.4949747468)),
        ("delta", {"kuiper_norm": "delta"}, (1.940452019, -0.4949747468))]},
    "kuiper shrinks": ("kuiper", {"version": 10, "buffer_size": 2, "kuiper_norm": "literal"}, (1, 2), SAME_MODEL,
                       [(0.8515075758, 1.7030151516)]),
    # a perfect client has no weight, and a perfect burst changes nothing
    "kuiper, one perfect": ("kuiper", {"buffer_size": 2}, (1, 0), [PERFECT], [(1.7, 1.4)]),
    "kuiper, all perfect": ("kuiper", {"buffer_size": 2}, (1, 0), [[PERFECT[1]] * 2], [(1, 0)]),
    "afl_dw": ("afl_dw", {"server_lr": 0.1}, (1, 0), [[sent((0.4, 0))], [sent((0, 0.8), 50)], [sent((1, 1), 150)]],
               [(1.04, 0), (1.04, 0.06), (1.04, 0.06)]),
}  # fmt: skip


@pytest.mark.parametrize("row", WORKED)
def test_worked(row):
    name, chosen, x0, versions, models, *others = WORKED[row]
    method = served(name, x0, **chosen)
    for entries, x in zip(versions, models, strict=True):
        assert [report(method, one) for one in entries] == [False] * (len(entries) - 1) + [True]
        torch.testing.assert_close(method.x, vector(*x), rtol=1e-7, atol=1e-9)
    for attribute, expected in (others[0] if others else {}).items():
        found = getattr(method, attribute)
        torch.testing.assert_close(found() if callable(found) else found, vector(*expected), rtol=1e-7, atol=1e-9)


def pinned(kind):
    """The method with a denominator that stays at 2."""

    def average(self, direction):
        kind.average(self, direction)
        self.square = self.largest_square = torch.full_like(self.x, 4.0)

    return type("Pinned", (kind,), {"average": average, "__doc__": "Pinned."})


PLAIN = {"server_lr": 0.5, "buffer_size": 2, "beta1": 0.0, "eps": 0.0}
BUFF = ("fedbuff", {"server_lr": 0.25, "buffer_size": 2})
IS = {  # two methods that move alike, and whether only where every client starts from the present model
    "a pinned FADAS is FedBuff": ((pinned(FADAS), PLAIN), BUFF, True),
    "a pinned FedAC is FedBuff": ((pinned(FedAC), PLAIN | {"correction": "off"}), BUFF, True),
    "everyone once a round cancels the cache": (("ca2fl", {"buffer_size": 3}), ("fedbuff", {"buffer_size": 3}), True),
    "of equal sizes FedAvg is FedBuff": (
        ("fedavg", {"buffer_size": 3, "buffer_weight": "uniform"}), ("fedbuff", {"buffer_size": 3}), True),
    "without momentum FedAvgM is FedAvg": (
        ("fedavgm", {"fedavgm_beta": 0.0, "server_lr": 1.4, "buffer_size": 2}), ("fedavg", {"server_lr": 1.4, "buffer_size": 2}), True),
    "FedAsync of full weight is FedBuff where all is fresh": (
        ("fedasync", {"mixing": 1.0, "staleness_function": "constant"}), ("fedbuff", {}), True),
    "FedFa of one is FedAsync of full weight": (
        ("fedfa", {"queue_length": 1}), ("fedasync", {"mixing": 1.0, "staleness_function": "constant"}), False),
    "KUIPER of one without accuracies is FedAsync": (
        ("kuiper", {"t0": 0, "mixing": 0.7, "poly_a": 0.5}), ("fedasync", {"mixing": 0.7, "poly_a": 0.5}), False),
    "KUIPER with all off is FedAvg": (
        ("kuiper", {"buffer_size": 3, "poly_a": 0.0, "mixing": 1.0, "t0": 0}), ("fedavg", {"buffer_size": 3}), True),
    "equal accuracies are none": (("kuiper", {"buffer_size": 3}), ("kuiper", {"buffer_size": 3, "t0": 0}), False),
}  # fmt: skip


@pytest.mark.parametrize("pair", IS)
@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.floats(-5, 5), st.floats(-5, 5), st.integers(1, 50), st.integers(0, 9)), min_size=3, max_size=7
    )
)
def test_one_method_is_another(pair, updates):
    *methods, fresh = IS[pair]
    ours, theirs = (served(name, **chosen) for name, chosen in methods)
    for number, (*delta, size, stale) in enumerate(updates):
        given = sent(delta, 0 if fresh else stale, None if fresh else (1, 0), client=number % 3, num_samples=size,
                     received_accuracy=0.25)  # fmt: skip
        assert report(ours, given) == report(theirs, given)
        torch.testing.assert_close(ours.x, theirs.x, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["fedbuff", "fedavg", "fedprox", "fedavgm", "fedadam", "ca2fl", "fadas", "fedac"])
@pytest.mark.parametrize("options", [{"server_lr_decay": 0.5}, {"delay_adaptive": True, "da_rule": "divide"}])
def test_a_changing_rate_reaches_every_method_with_a_buffer(name, options):
    """The second step is half as long: by the decay, or because its update is two versions old."""
    moved = []
    for method in (served(name), served(name, **options)):
        report(method, sent((0.3, -0.2)))
        before = method.x
        report(method, sent((0.1, 0.4), 2))
        moved.append(method.x - before)
    torch.testing.assert_close(moved[1], 0.5 * moved[0], rtol=1e-12, atol=0)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=6))
def test_fadas_denominator_never_falls(deltas):
    method, largest = served("fadas", x0=(0,)), 0.0
    for delta in deltas:
        method.receive(update((delta,)))
        assert method.largest_square.item() >= largest
        largest = method.largest_square.item()


def test_worked_staleness_functions():
    assert [hinge(t) for t in (0, 4, 5, 6, 10)] == pytest.approx([1, 1, 1 / 11, 1 / 21, 1 / 61], rel=1e-7)
    assert [poly(t) for t in (0, 1, 3, 8)] == pytest.approx([1, 0.7071067812, 0.5, 0.3333333333], rel=1e-7)
    assert poly(17, a=0) == 1


def test_fedasmu_merges_only_what_is_newer():
    method = served("fedasmu", x0=(5, 5))
    assert method.midway_model(0) is None
    method.new_version(vector(1, 1))
    merged, phi = method.midway_model(0), 1 - 1 / 2**0.5
    assert merged.weight == pytest.approx(phi / (1 + phi)) and torch.equal(merged.model, method.x)


def test_fedasmus_clients_merge_half_way_in_a_real_run(monkeypatch):
    ends = {}
    for merge_at in (None, 0.0, FedASMU.midway):
        monkeypatch.setattr(FedASMU, "midway", merge_at)
        ends[merge_at] = run(Config(algorithm="fedasmu", clients=6, concurrency=4, rounds=8, local_steps=4)).x.tolist()
    assert ends[None] == ends[0.0] != ends[0.5]  # merging at once merges what was just sent: nothing


@pytest.mark.parametrize(
    ("delta", "version", "reason"),
    [((float("nan"), 0), 0, "not finite"), ((0, float("inf")), 0, "not finite"), ((-float("inf"), 0), 0, "not finite"),
     ((1, 2, 3), 0, "wrong shape (3,), expected (2,)"), ((1, 2), 1, "start version 1 is not one of 0 to 0")],
)  # fmt: skip
def test_unsound_updates_are_refused_and_counted(delta, version, reason):
    method = served("fedbuff", buffer_size=2)
    assert not method.receive(update(delta, version, client=3))
    assert not method.receive(update((1, 1))) and method.receive(update((1, 1)))
    assert torch.equal(method.x, vector(2, 1)) and method.version == 1
    assert [(one.client, one.reason.startswith(reason)) for one in method.rejections] == [(3, True)]


def test_running_statistics_take_the_mean_or_the_mean_change():
    def after(mode):
        method = make_algorithm("fedbuff", buffer_size=2, bn_mode=mode)
        method.start(vector(0, 0), buffers=vector(1, 2), variance_mask=torch.tensor([False, True]))
        for after in ((3, 4), (5, -9)):
            method.receive(update((0, 0), buffers=vector(*after), start_buffers=vector(2, 2)))
        full = method.buffers
        method.receive(update((0, 0), buffers=vector(7, 8), start_buffers=vector(2, 2)))
        method.flush()  # the buffer has room for one more
        return torch.stack([full, method.buffers])

    torch.testing.assert_close(after("avg"), torch.stack([vector(4, 1e-12), vector(7, 8)]))
    torch.testing.assert_close(after("delta"), torch.stack([vector(3, 1e-12), vector(8, 6)]))  # 2 + mean(2, -11) < 0


@pytest.mark.parametrize(
    ("name", "chosen", "expected"),
    [("fedasync", {"mixing": 0.5, "staleness_function": "constant"}, 2.0), ("kuiper", {"mixing": 0.5}, 2.0),
     ("kuiper", {"mixing": 0.5, "kuiper_norm": "literal"}, 1.25),
     ("afl_dw", {"server_lr": 0.5, "beta_family": "constant", "beta_constant": 0.2}, 1.8)],
)  # fmt: skip
def test_running_statistics_are_mixed_as_parameters(name, chosen, expected):
    method = make_algorithm(name, **chosen)
    method.start(vector(0), buffers=vector(1))
    method.receive(update((0,), buffers=vector(3), received_accuracy=0.5))
    assert method.buffers.item() == pytest.approx(expected)


def fedfa(*pairs, **chosen):
    """FedFa of a queue of two, and its statistics after updates that started from some and came to others, or none."""
    method, seen = make_algorithm("fedfa", queue_length=2, **chosen), []
    method.start(vector(0, 0), buffers=vector(0, 1), variance_mask=torch.tensor([False, True]))
    for before, after in pairs:
        known = {} if after is None else {"start_buffers": vector(*before), "buffers": vector(*after)}
        method.receive(update((0, 0), start=vector(0, 0), **known))
        seen.append(tuple(method.buffers.tolist()))
    return method, seen


@pytest.mark.parametrize("mode", ["avg", "delta", "freeze"])
def test_fedfas_running_statistics_are_the_queues_mean(mode):
    """As its parameters in the worked window."""
    _, seen = fedfa(((0, 1), (2, 2)), ((0, 1), (0, 4)), ((2, 2), (4, 0)), bn_mode=mode)
    assert seen == ([(0, 1)] * 3 if mode == "freeze" else [(2, 2), (1, 3), (2, 2)])


def test_fedfas_variances_stay_positive_and_an_update_may_bring_none():
    assert fedfa(((0, 1), (0, -2)))[1] == [(0, 1e-12)]
    method, seen = fedfa(((0, 1), (2, 2)), (None, None), ((0, 1), (0, 4)))
    assert seen == [(2, 2), (2, 2), (0, 4)]  # the first one has left
    assert len(method.buffer_entries) == len(method.entries) == 2


def test_which_accuracy():
    method = served("kuiper", acc="post_eval")
    assert method.client_reports == {"trained_accuracy"}
    method.receive(update((1, 0), 0, start=vector(0, 0), received_accuracy=0.9, trained_accuracy=0.0))
    torch.testing.assert_close(method.x, vector(1, 0))
    with pytest.raises(ConfigError, match="^trained_accuracy: KUIPER weighs updates by it; client 0 sent none$"):
        method.receive(update((1, 0), 0))


@pytest.mark.parametrize(
    ("settings", "version", "report", "factor"),
    [({}, 0, "received_accuracy", 0.75), ({"acc": "last_epoch"}, 0, None, 0.5), ({"t0": 0}, 0, None, 1.0),
     ({"acc": "post_eval"}, 0, "trained_accuracy", 0.0),
     *[({"t0": 3}, version, "received_accuracy", factor) for version, factor in enumerate((0.75, 0.75, 1.0, 1.0))]],
)  # fmt: skip
def test_the_readings_of_training_accuracy_and_of_t0(settings, version, report, factor):
    """By default that of the model that was received; only what counts is asked of clients."""
    method = served("kuiper", version=version, **settings)  # making aggregation t = version + 1
    sent = update((0, 0), received_accuracy=0.25, train_accuracy=0.5, trained_accuracy=1.0)
    assert method.accuracy_factor(sent) == factor
    assert method.client_reports == (frozenset({report}) if report else frozenset())


def test_worked_control_variate():
    """From (1, 0) to (1.6, .4) in two steps of .5, no controls before: Ĉ = (-.6, -.4)."""
    method = served("fedac")
    method.receive(update((0.6, 0.4), client=3, num_steps=2, correction=vector(0, 0)))
    torch.testing.assert_close(method.controls[3], vector(-0.6, -0.4), rtol=1e-7, atol=0)
    torch.testing.assert_close(method.control, vector(-0.6, -0.4), rtol=1e-7, atol=0)
    torch.testing.assert_close(method.correction_for(3, method.control_sent()), vector(0, 0))
    torch.testing.assert_close(method.correction_for(0, method.control_sent()), vector(-0.6, -0.4))


def test_a_reported_mean_gradient_is_what_plain_sgd_says_by_its_delta():
    told, reckoned = served("fedac"), served("fedac")
    correction, mean_gradient = vector(0.2, -0.1), vector(1.0, -2.0)
    sent = update((-0.5 * 3 * mean_gradient).tolist(), client=1, num_steps=3, correction=correction)
    reckoned.receive(sent)
    told.receive(dataclasses.replace(sent, delta=vector(9, 9), mean_gradient=mean_gradient))
    torch.testing.assert_close(told.controls[1], reckoned.controls[1], rtol=1e-12, atol=0)
    torch.testing.assert_close(told.controls[1], mean_gradient - correction, rtol=1e-12, atol=0)


SMALL = {"task": "digits", "clients": 6, "concurrency": 3, "buffer_size": 2, "rounds": 5, "local_steps": 3, "eval_every": 5, "client_lr": 0.1, "server_lr": 0.01}  # fmt: skip


def test_the_servers_control_is_the_sum_of_the_clients():
    """C grows by Σ w_i dC_i; with one entry a version that is the sum of all C_i."""
    run = Run(Config(algorithm="fedac", **{**SMALL, "buffer_size": 1, "rounds": 12}))
    run.finish()
    method = run.algorithm
    assert len(method.controls) >= 4 and method.control.abs().max() > 0
    torch.testing.assert_close(method.control, sum(method.controls.values()), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("how", ["before_agg", "after_agg"])
def test_a_client_that_is_dispatched_on_its_own_report_goes_by_its_new_control(how, monkeypatch):
    run = Run(Config(algorithm="fedac", scheduling=how, selection="same_client", **SMALL))
    method, simulation, checked = run.algorithm, run.simulation, []
    jobs_to_train = simulation._next_jobs

    def look():
        jobs = jobs_to_train()
        for job in jobs:
            own = method.controls.get(job.client, torch.zeros_like(method.x))
            assert torch.equal(job.correction, job.control - own)
            checked.append(bool(own.any()))
        return jobs

    monkeypatch.setattr(simulation, "_next_jobs", look)
    run.finish()
    assert sum(checked) >= 5  # clients came back, each with what its last report had left it

"""Numbers of a run: finite in the type that is computed with, in the right shape, and as they were when copied."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from own import SMALL, X, Y, points
from test_own_code import Net
from test_same_bits import METHODS, QUICK
from torch import nn

from asyncfl_lite import Algorithm, Config, Run, Task, Update, load_result, run
from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.algorithms.fedbuff import FedBuff
from asyncfl_lite.base.devices import check_device
from asyncfl_lite.base.errors import ConfigError, DataError
from asyncfl_lite.models import MODELS, ModelSpec
from asyncfl_lite.runs.assembly import load_task
from asyncfl_lite.runs.store import checksum
from asyncfl_lite.simulator.jobs import Midway
from asyncfl_lite.simulator.server import ServerError

TINY = Config(**{**SMALL, "task": "digits", "model_settings": {"hidden": (4,)}, "local_steps": 1, "local_epochs": None})


@pytest.mark.parametrize("device", ["meta", "mkldnn", "xla", "privateuseone", "mtia", "cuda:99"])
def test_a_device_that_cannot_compute_is_refused_in_a_line(device):
    with pytest.raises(ConfigError, match=f"^device: this machine has no '{device}' that torch can use") as raised:
        Run(Config(**SMALL, device=device))
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 300
    check_device("cpu")


# --- finite numbers ---------------------------------------------------------------------------------------------------


class Masked(nn.Module):
    """Attention with constants as buffers: a mask of minus infinity, one of the lowest number, positions, a NaN."""

    def __init__(self, norm: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.query, self.last = nn.Linear(1, 4), nn.Linear(4, 4), nn.Linear(4, 3)
        self.norm = nn.BatchNorm1d(4) if norm else nn.Identity()
        self.register_buffer("mask", torch.triu(torch.full((8, 8), -torch.inf), 1))
        self.register_buffer("lowest", torch.full((3,), torch.finfo(torch.float32).min))
        self.register_buffer("places", torch.randn(8, 4) / 3)
        self.register_buffer("unused", torch.full((2,), torch.nan))

    def forward(self, inputs):
        h = self.embed(inputs[..., None]) + self.places
        return self.last(self.norm((((self.query(h) @ h.mT) + self.mask).softmax(-1) @ h)[:, -1]))


CONSTANTS = ("mask", "lowest", "places", "unused")


@pytest.mark.parametrize(
    ("method", "mode"),
    [
        *((method, "avg") for method in METHODS),
        *((method, "delta") for method in ("fedbuff", "fedasync", "fedfa", "kuiper")),
    ],
)
def test_constant_buffers_are_no_part_of_an_update(own, method, mode, tmp_path):
    kind = ALGORITHMS.get(method)
    settings = {"distill_set": "own", "distill_samples": 20} if method == "fedecho" else {}
    sizes = {"buffer_size": 4 if kind.scheduling == "rounds" else 2} if kind.buffered else {"buffer_size": 1}
    more = {**QUICK.get(method, {}), **({"settings": settings} if settings else {})}
    config = own(lambda: Masked(norm=mode == "avg"), algorithm=method, bn_mode=mode, **sizes, **more)
    begun = Run(config, points())
    first = {name: value.clone() for name, value in begun.model.module.named_buffers()}
    result = begun.finish()
    assert result.summary["rejected_updates"] == result.summary["refused_updates"] == 0
    saved = load_result(result.save(tmp_path)).model()
    for model in (result.model(), saved):
        assert all(torch.equal(getattr(model, n).view(torch.int32), first[n].view(torch.int32)) for n in CONSTANTS)
    if mode == "avg":
        assert not torch.equal(saved.norm.running_mean, first["norm.running_mean"])


def test_statistics_that_move_must_be_finite_and_a_resumed_run_knows_which_moved(own, tmp_path):
    config = own(lambda: Masked(norm=True), checkpoint_every=1, rounds=3)
    begun = Run(config, points(), tmp_path / "run.pt", on_version=lambda run: run.algorithm.version == 2 and 1 / 0)
    with pytest.raises(ZeroDivisionError):
        begun.finish()
    whole, resumed = (
        run(config, task=points(), checkpoint=tmp_path / "other.pt"),
        Run(config, points(), tmp_path / "run.pt"),
    )
    assert resumed.finish().summary == whole.summary
    method, buffers = FedBuff(), torch.tensor([0.0, -torch.inf, 1.0])
    method.start(torch.zeros(2), buffers=buffers)
    for found, why in (
        ([1.0, -torch.inf, 1.0], ""),
        ([1.0, -torch.inf, torch.nan], "statistics"),
        ([1.0, 1.0], "shape"),
    ):
        given = Update(0, torch.zeros(2), 0, buffers=torch.tensor(found), start_buffers=buffers)
        assert why in method.receive(given).refused and bool(method.rejections) == bool(why)
    assert method.buffers.tolist() == [1.0, -torch.inf, 1.0]


@pytest.mark.parametrize("value", [1e300, -1.7e308, 3.5e38, np.nan, np.inf])
def test_numbers_are_checked_as_the_model_sees_them(value, own):
    told = f"as float32, got {value:g}; scale them first" if np.isfinite(value) else "numbers, got NaN or infinity"
    many, labels = np.zeros((12, 2)), np.arange(12) % 2
    many[7, 1] = value
    for at, name in ((0, "inputs"), (2, "test_inputs")):
        given = [np.zeros((12, 2)), labels, np.zeros((12, 2)), labels]
        given[at] = many
        with pytest.raises(DataError, match=f"^{name}: must be finite {told}".replace("+", r"\+")):
            Task.from_tensors(*given)
    with pytest.raises(DataError, match="^unlabelled: must be finite"):
        Task.from_tensors(np.zeros((12, 2)), labels, np.zeros((12, 2)), labels, unlabelled=many)
    float32 = torch.from_numpy(many).float(), torch.from_numpy(labels)
    for task in (Task("mine", *float32, X[:12, :2], float32[1], 2), Task("mine", X[:12, :2], float32[1], *float32, 2)):
        with pytest.raises(DataError, match="inputs: must be finite numbers, got NaN or infinity$"):
            Run(Config(**SMALL), task)
    weights = {name: tensor.double() for name, tensor in Net(lambda x, _: x).state_dict().items()}
    weights["rest.1.bias"][0] = value
    with pytest.raises(ConfigError, match=r"^weights: .*; NaN or infinity in rest\.1\.bias$"):
        run(own(lambda: Net(lambda x, _: x)), task=points(), weights=weights)
    method = FedBuff()
    method.start(torch.zeros(2))
    assert method.receive(Update(0, torch.tensor([value, 0.0], dtype=torch.float64), 0)).refused.startswith(
        "not finite"
    )
    assert (
        method.receive(Update(0, torch.tensor([1.0, 0.0], dtype=torch.float64), 0)) and method.x.dtype == torch.float32
    )


# --- what a user's method returns -------------------------------------------------------------------------------------


def ran(kind: type[Algorithm], **settings) -> object:
    name = kind.__name__
    ALGORITHMS.register(name)(kind)
    try:
        return run(Config(algorithm=name, **{**SMALL, "model": "mlp", **settings}), task=points())
    finally:
        ALGORITHMS.remove(name)


class Sends(FedBuff):
    """Sends control variates and newer models."""

    midway = 0.5
    control = model = correction = staticmethod(lambda x: x)
    weight = 0.5

    def control_sent(self):
        return self.control(self.x)

    def correction_for(self, client, control):
        return self.correction(control)

    def midway_model(self, start_version):
        return Midway(self.model(self.x), self.weight)


ODD = {"double": lambda x: x.double(), "short": lambda x: x[:-1], "matrix": lambda x: x[None], "numpy": lambda x: x.numpy(),
       "a list": lambda x: x.tolist(), "none": lambda x: None}  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("hook", ["new_version", "set_buffers", "control", "correction", "model"])
def test_a_hook_that_gives_another_type_or_shape_is_a_line_where_it_happens(hook, odd):
    if hook == "new_version":
        kind = type("Mine", (FedBuff,), {"after_step": lambda self, x: ODD[odd](x)})
        more = {}
    elif hook == "set_buffers":
        kind = type(
            "Mine", (FedBuff,), {"set_buffers": lambda self, buffers: super(kind, self).set_buffers(ODD[odd](buffers))}
        )
        more = {"model": "own"}
    else:
        kind, more = type("Mine", (Sends,), {hook: staticmethod(ODD[odd])}), {}
    name = {"control": "control_sent", "correction": "correction_for", "model": "midway_model"}.get(hook, hook)
    with pytest.MonkeyPatch.context() as patch:
        make = lambda *_: nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))  # noqa: E731
        patch.setitem(MODELS._entries, "own", type("Own", (ModelSpec,), {"build": make}))
        if (hook, odd) == ("control", "none"):
            assert ran(kind, **more).summary["versions"] == 2  # which is allowed
            return
        with pytest.raises(ServerError, match=rf"^Mine\.{name} must give a tensor \(\d+,\) of torch.float32") as raised:
            ran(kind, **more)
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 250


class Spoils(Sends):
    """Writes into everything that it is given, and into its own tensors, whenever it can."""

    def start(self, x0, context=None, **options):
        super().start(x0, context, **options)
        self.mine = self.x.clone()
        self.own_control = torch.zeros_like(self.x)

    def control_sent(self):
        return self.own_control

    def midway_model(self, start_version):
        return Midway(self.mine, 0.5)

    def on_receive(self, update):
        self.accumulate(update)
        self.own_control += 0.01 * update.delta
        for given in (update.delta, update.start, update.correction):
            given.numpy().fill(9.0)
        if self.filled < self.buffer_size:
            return False
        self.mine += self._sum / self.filled
        self._empty()
        return self.new_version(self.mine)


class Careful(Spoils):
    """Does the same with new tensors."""

    def midway_model(self, start_version):
        return Midway(self.mine.clone(), 0.5)

    def control_sent(self):
        return self.own_control.clone()

    def on_receive(self, update):
        self.accumulate(update)
        self.own_control = self.own_control + 0.01 * update.delta
        if self.filled < self.buffer_size:
            return False
        self.mine = self.mine + self._sum / self.filled
        self._empty()
        return self.new_version(self.mine)


@pytest.mark.parametrize("cohort", ["on", "off"])
def test_a_method_that_writes_into_its_tensors_changes_nothing_that_clients_hold(cohort):
    settings = {"rounds": 8, "vectorize": cohort, "scheduling": "before_agg"}
    one, other = (ran(kind, **settings) for kind in (Spoils, Careful))
    assert torch.equal(one.x, other.x) and one.curve.equals(other.curve)


def test_a_flush_that_says_wrongly_whether_it_made_a_version_is_a_line():
    kind = type("Mine", (ALGORITHMS.get("fedavg"),), {"flush": lambda self: True})
    with pytest.raises(ServerError, match=r"^Mine.flush must return True exactly when it made one version"):
        ran(kind, buffer_size=4, faults={"dropout": 0.9, "time_out": 5.0})


def test_what_callbacks_are_given_can_only_be_read():
    def writes(run, row):
        row["accuracy"] = 2.0
        for change in (
            lambda: run.curve_rows.clear(),
            lambda: run.curve_rows[0].update(accuracy=1.0),
            lambda: run.simulation.arrivals.sort(),
            lambda: run.simulation.arrivals.append(None),
        ):
            with pytest.raises(AttributeError):
                change()
        with pytest.raises(TypeError):
            run.curve_rows[0]["accuracy"] = 1.0

    assert run(TINY, on_evaluate=writes).summary == run(TINY).summary


# --- one sample left over ---------------------------------------------------------------------------------------------


class Squeezes(Net):
    def forward(self, inputs):
        return super().forward(inputs).squeeze()


ALONE = {
    "BatchNorm": lambda: nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6, track_running_stats=False), nn.Linear(6, 3)),
    "squeeze": lambda: Squeezes(lambda x, _: x),
}


@pytest.mark.parametrize("name", ALONE)
def test_a_test_sample_that_is_left_over_is_tested_with_others(own, name):
    """501 test samples in batches of 500; a client's own, too."""
    many = X[torch.arange(501) % 72], Y[torch.arange(501) % 72]
    task = Task.from_clients({str(c): (X[c::6][:10], Y[c::6][:10], *many) for c in range(6)}, unlabelled=X[:21])
    config = own(ALONE[name], partition="given", batch_size=5, vectorize="off")
    result = run(config, task=task)
    assert result.summary["versions"] == 2 and result.clients["accuracy"].notna().all()
    alone = Task.from_tensors(X[:60], Y[:60], X[:1], Y[:1])
    with pytest.raises(ConfigError, match=r"^model: \w+ cannot take one sample alone; .* leave no single sample over$"):
        run(own(ALONE[name], batch_size=5), task=alone)
    echo = {"algorithm": "fedecho", "settings": {"distill_set": "own", "distill_samples": 21, "distill_batch_size": 20}}
    with pytest.raises(ConfigError, match="cannot take one sample alone"):
        run(own(ALONE[name], batch_size=5, **echo), task=Task.from_tensors(X, Y, X, Y, unlabelled=X[:21]))


# --- pickles, copies --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", ["digits", "glyphs", "modmath"])
def test_a_task_is_pickled_with_its_functions(task):
    whole = load_task(Config(task=task).task_settings)
    for made in (pickle.loads(pickle.dumps(whole)), copy.deepcopy(whole), copy.copy(whole)):
        assert type(made) is type(whole) and checksum(made) == checksum(whole)
        drawn = [one.unlabelled_set("synthetic", 3, np.random.default_rng(0)) for one in (made, whole)]
        assert torch.equal(*drawn)


def test_what_cannot_be_pickled_is_a_line():
    lines = (line for line in "abc")
    task = points(augment=lambda inputs, generator: inputs if lines else inputs)
    with pytest.raises(DataError, match=r"^task: 'custom' cannot be pickled \(TypeError: cannot pickle 'generator'"):
        pickle.dumps(task)
    assert torch.equal(pickle.loads(pickle.dumps(points())).inputs, X[:60])
    with pytest.raises(ConfigError, match="^run: cannot be pickled or copied; "):
        pickle.dumps(Run(TINY))


@pytest.mark.parametrize(
    ("update", "words"),
    [
        ({"clients": -5}, "clients: must be greater than or equal to 1, got -5"),
        ({"clients": 2}, "concurrency: must be at most clients"),
        ({"client_lr": float("nan")}, "client_lr: must be a finite number"),
        ({"no_such": 1}, "setting: 'no_such' is not known"),
        ({"algorithm": "fedasync"}, "settings: must be a mapping of mixing"),
        ({"model_settings": {"hidden": (-1,)}}, "model_settings.hidden.0: must be greater"),
    ],
)
def test_copies_of_a_configuration_are_checked(update, words):
    with pytest.raises(ConfigError, match=f"^{words}"):
        TINY.model_copy(update=update)
    whole = TINY.on_own_task("mine").model_copy(update={"rounds": 7})
    assert whole.own_task == "mine" and whole == Config(**{**TINY.as_dict(), "rounds": 7})

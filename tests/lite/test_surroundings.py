"""Numbers of a run: finite in the type that is computed with, in the right shape, as they were when copied, and the same
bits whatever the program around it has done to torch.
"""

from __future__ import annotations

import copy
import pickle
import threading
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from own import SMALL, X, Y, points
from test_own_code import Net
from test_same_bits import METHODS, QUICK
from torch import nn

from asyncfl_lite import Algorithm, Config, Run, Task, Update, load_result, run, run_many, schedule
from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.algorithms.fedbuff import FedBuff
from asyncfl_lite.base.devices import SETTINGS, check_device, usual_torch
from asyncfl_lite.base.errors import ConfigError, DataError
from asyncfl_lite.models import MODELS, ModelSpec
from asyncfl_lite.runs.assembly import _loaded, load_task, task_of
from asyncfl_lite.runs.store import checksum
from asyncfl_lite.simulator.jobs import Midway
from asyncfl_lite.simulator.server import ServerError
from conftest import line

TINY = Config(**{**SMALL, "task": "digits", "model_settings": {"hidden": (4,)}, "local_steps": 1, "local_epochs": None})


LITTLE = {"clients": 4, "concurrency": 2, "buffer_size": 1, "rounds": 1, "local_steps": 1, "batch_size": 16}
RUNS = [Config(model="cnn", **LITTLE), Config(model_settings={"hidden": (128,)}, **LITTLE)]
PROGRAMS = {
    "less precise products": (lambda: torch.set_float32_matmul_precision("medium"), nullcontext),
    "less precise products, said otherwise": (lambda: setattr(torch.backends, "fp32_precision", "bf16"), nullcontext),
    "no oneDNN": (lambda: setattr(torch.backends.mkldnn, "enabled", False), nullcontext),
    "another type": (lambda: torch.set_default_dtype(torch.float64), nullcontext),
    "another device": (lambda: torch.set_default_device("meta"), nullcontext),
    "two threads": (lambda: torch.set_num_threads(2), nullcontext),
    "small numbers are 0": (lambda: torch.set_flush_denormal(True), nullcontext),
    "autocast": (lambda: None, lambda: torch.autocast("cpu", torch.bfloat16)),
    "no gradients": (lambda: None, torch.no_grad),
    "inference": (lambda: None, torch.inference_mode),
    "another device around": (lambda: None, lambda: torch.device("meta")),
    "cached parametrisations": (lambda: None, torch.nn.utils.parametrize.cached),
    "numpy's errors": (lambda: None, lambda: np.errstate(all="raise")),
}


@pytest.fixture
def torch_afterwards():
    """Torch as it was, after the test."""
    options = [(owner, name, getattr(owner, name)) for owner, name, _ in SETTINGS]
    yield
    torch.backends.fp32_precision = "none"
    for owner, name, value in options:
        setattr(owner, name, value)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_num_threads(1)
    torch.set_flush_denormal(False)


def seen():
    """What this thread finds of torch's state."""
    options = [getattr(owner, name) for owner, name, _ in SETTINGS]
    modes = torch.is_autocast_enabled("cpu"), torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    return options, modes, torch.get_num_threads(), torch.get_default_dtype(), torch.get_default_device()


def computed() -> list:
    """Load the data anew; return the results of runs alone and in lockstep, and of a schedule."""
    _loaded.cache_clear()
    alone, together = [run(config) for config in RUNS], run_many(RUNS)
    task = task_of(RUNS[1])
    assert task.inputs.device.type == "cpu" and not task.inputs.is_inference()
    others = schedule(RUNS[1]).digest, alone[1].model()[1].weight.dtype, checksum(task)
    return [*(one.summary for one in (*alone, *together)), *others]


@pytest.fixture(scope="module")
def usual():
    return computed()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_program_around_a_run_does_not_change_its_bits(program, usual, torch_afterwards):
    change, around = PROGRAMS[program]
    change()
    with around():
        before = seen()
        assert computed() == usual and seen() == before


def test_small_numbers_are_kept_inside_and_flushed_again_afterwards(torch_afterwards):
    torch.set_flush_denormal(True)
    with pytest.raises(ZeroDivisionError), usual_torch():
        assert torch.tensor(1e-39).mul(0.5) > 0
        1 / 0  # noqa: B018 - an error inside
    assert torch.tensor(1e-39).mul(0.5) == 0


def test_a_block_in_another_thread_keeps_its_options_when_the_first_ends(torch_afterwards):
    torch.set_float32_matmul_precision("medium")
    first_ended, found, entered = threading.Event(), [], threading.Event()

    def second():
        with usual_torch():
            entered.set()
            first_ended.wait(10)
            found.append(torch.backends.mkldnn.matmul.fp32_precision)

    thread = threading.Thread(target=second)
    with usual_torch():
        thread.start()
        entered.wait(10)
    first_ended.set()
    thread.join()
    assert found == ["ieee"] and torch.get_float32_matmul_precision() == "medium"


def test_the_run_has_the_threads_of_its_configuration_from_the_first_tensor_on(monkeypatch, torch_afterwards):
    found = []
    monkeypatch.setattr("asyncfl_lite.runs.run.fit_model", lambda *_: found.append(torch.get_num_threads()) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(Config(threads=2, **LITTLE))
    assert found == [2] and torch.get_num_threads() == 1


def test_runs_with_other_numbers_of_threads_are_not_run_together():
    with pytest.raises(ConfigError, match="^threads: must be the same for runs that train together, got 1, 2$"):
        run_many([RUNS[0], Config(**{**RUNS[0].as_dict(), "threads": 2})])


@pytest.mark.parametrize("device", ["meta", "mkldnn", "xla", "privateuseone", "mtia", "cuda:99"])
def test_a_device_that_cannot_compute_is_refused_in_a_line(device):
    with pytest.raises(ConfigError, match=f"^device: this machine has no '{device}' that torch can use") as raised:
        Run(Config(**SMALL, device=device))
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 300
    check_device("cpu")


# --- finite numbers ---------------------------------------------------------------------------------------------------


class Masked(nn.Module):
    """Attention with constants as buffers: a mask of minus infinity, the lowest number, positions, a NaN; a layer stays."""

    def __init__(self, norm: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed, self.query, self.last = nn.Linear(1, 4).requires_grad_(False), nn.Linear(4, 4), nn.Linear(4, 3)
        self.norm = nn.BatchNorm1d(4) if norm else nn.Identity()
        self.register_buffer("mask", torch.triu(torch.full((8, 8), -torch.inf), 1))
        self.register_buffer("lowest", torch.full((3,), torch.finfo(torch.float32).min))
        self.register_buffer("places", torch.randn(8, 4) / 3)
        self.register_buffer("unused", torch.full((2,), torch.nan))

    def forward(self, inputs):
        h = self.embed(inputs[..., None]) + self.places
        return self.last(self.norm((((self.query(h) @ h.mT) + self.mask).softmax(-1) @ h)[:, -1]))


CONSTANTS = ("mask", "lowest", "places", "unused", "embed.weight", "embed.bias")


@pytest.mark.parametrize(
    ("method", "mode"),
    [
        *((method, "avg") for method in METHODS),
        *((method, "delta") for method in ("fedbuff", "fedasync", "fedfa", "kuiper")),
    ],
)
def test_neither_constant_buffers_nor_frozen_parameters_are_part_of_an_update(own, method, mode, tmp_path):
    kind = ALGORITHMS.get(method)
    more = {**QUICK.get(method, {}), "client_optimizer": "adamw", "weight_decay": 0.1}
    if method == "fedecho":
        more["settings"] = {"distill_set": "own", "distill_samples": 20}
    more["buffer_size"] = 1 if not kind.buffered else 4 if kind.scheduling == "rounds" else 2
    begun = Run(own(lambda: Masked(norm=mode == "avg"), algorithm=method, bn_mode=mode, **more), points())
    first = {name: value.clone() for name, value in begun.model.module.state_dict().items()}
    x0 = begun.algorithm.x.clone()
    result = begun.finish()
    assert result.summary["rejected_updates"] == result.summary["refused_updates"] == 0
    assert result.summary["parameters"] == len(result.x) and not torch.equal(result.x, x0)
    saved = load_result(result.save(tmp_path)).model()
    for model in (result.model(), saved):
        state = model.state_dict()
        assert all(torch.equal(state[name].view(torch.int32), first[name].view(torch.int32)) for name in CONSTANTS)
    if mode == "avg":
        assert not torch.equal(saved.norm.running_mean, first["norm.running_mean"])


def test_statistics_that_move_must_be_finite_and_a_resumed_run_knows_which_moved(own, tmp_path):
    config = own(lambda: Masked(norm=True), checkpoint_every=1, rounds=3)
    begun = Run(config, points(), tmp_path / "run.pt", on_version=lambda run: run.algorithm.version == 2 and 1 / 0)
    with pytest.raises(ZeroDivisionError):
        begun.finish()
    whole = run(config, task=points(), checkpoint=tmp_path / "other.pt")
    assert Run(config, points(), tmp_path / "run.pt").finish().summary == whole.summary
    method, buffers = FedBuff(), torch.tensor([0.0, -torch.inf, 1.0])
    method.start(torch.zeros(2), buffers=buffers)
    for found, why in {
        (1.0, -torch.inf, 1.0): "",
        (1.0, -torch.inf, torch.nan): "statistics",
        (1.0, 1.0): "shape",
    }.items():
        given = Update(0, torch.zeros(2), 0, buffers=torch.tensor(found), start_buffers=buffers)
        assert why in method.receive(given).refused and bool(method.rejections) == bool(why)
    assert method.buffers.tolist() == [1.0, -torch.inf, 1.0]


@pytest.mark.parametrize("value", [1e300, 3.5e38, np.nan, np.inf])
def test_numbers_are_checked_as_the_model_sees_them(value, own):
    told = f"as float32, got {value:g}; scale them first" if np.isfinite(value) else "numbers, got NaN or infinity"
    zeros, labels = np.zeros((12, 2)), np.arange(12) % 2
    many = zeros.copy()
    many[7, 1] = value
    for name, call in {
        "inputs": lambda: Task.from_tensors(many, labels, zeros, labels),
        "test_inputs": lambda: Task.from_tensors(zeros, labels, many, labels),
        "unlabelled": lambda: Task.from_tensors(zeros, labels, zeros, labels, unlabelled=many),
    }.items():
        assert line(call, DataError).startswith(f"{name}: must be finite {told}")
    spoilt, sound, labels = torch.from_numpy(many).float(), X[:12, :2], torch.from_numpy(labels)
    for inputs, tested in ((spoilt, sound), (sound, spoilt)):
        with pytest.raises(DataError, match="inputs: must be finite numbers, got NaN or infinity$"):
            Run(Config(**SMALL), Task("mine", inputs, labels, tested, labels, 2))
    weights = {name: tensor.double() for name, tensor in Net(lambda x, _: x).state_dict().items()}
    weights["rest.1.bias"][0] = value
    with pytest.raises(ConfigError, match=r"^weights: .*; NaN or infinity in rest\.1\.bias$"):
        run(own(lambda: Net(lambda x, _: x)), task=points(), weights=weights)
    method = FedBuff()
    method.start(torch.zeros(2))
    for number, refused in ((value, "not finite"), (1.0, "")):
        receipt = method.receive(Update(0, torch.tensor([number, 0.0], dtype=torch.float64), 0))
        assert receipt.refused.startswith(refused) and bool(receipt.refused) == bool(refused)
    assert method.version == 1 and method.x.dtype == torch.float32


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
def test_a_hook_that_gives_another_type_or_shape_is_a_line_where_it_happens(hook, odd, monkeypatch):
    members = {
        "new_version": {"after_step": lambda self, x: ODD[odd](x)},
        "set_buffers": {"set_buffers": lambda self, buffers: FedBuff.set_buffers(self, ODD[odd](buffers))},
    }.get(hook, {hook: staticmethod(ODD[odd])})
    kind = type("Mine", (FedBuff if hook in ("new_version", "set_buffers") else Sends,), members)
    name = {"control": "control_sent", "correction": "correction_for", "model": "midway_model"}.get(hook, hook)
    make = lambda *_: nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))  # noqa: E731
    monkeypatch.setitem(MODELS._entries, "own", type("Own", (ModelSpec,), {"build": make}))
    more = {"model": "own"} if hook == "set_buffers" else {}
    if (hook, odd) == ("control", "none"):
        assert ran(kind, **more).summary["versions"] == 2  # which is allowed
        return
    told = line(lambda: ran(kind, **more), ServerError)
    assert told.startswith(f"Mine.{name} must give a tensor (") and "of torch.float32" in told and len(told) < 250


class Careful(Sends):
    """Holds what clients hold in tensors of its own, and makes a new one of each change."""

    kept, changed = staticmethod(torch.clone), staticmethod(torch.add)

    def start(self, x0, context=None, **options):
        super().start(x0, context, **options)
        self.mine, self.own_control = self.x.clone(), torch.zeros_like(self.x)

    def control_sent(self):
        return self.kept(self.own_control)

    def midway_model(self, start_version):
        return Midway(self.kept(self.mine), 0.5)

    def on_receive(self, update):
        self.accumulate(update)
        self.own_control = self.changed(self.own_control, 0.01 * update.delta)
        if self.filled < self.buffer_size:
            return False
        self.mine = self.changed(self.mine, self._sum / self.filled)
        self._empty()
        return self.new_version(self.mine)


class Spoils(Careful):
    """Hands its own tensors out, and writes into these and into everything that it is given."""

    kept, changed = staticmethod(lambda x: x), staticmethod(torch.Tensor.add_)

    def on_receive(self, update):
        made = super().on_receive(update)
        for given in (update.delta, update.start, update.correction):
            given.numpy().fill(9.0)
        return made


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
    if "no_such" not in update:
        with pytest.raises(ConfigError, match=f"^{words}"):
            run(Config.model_construct(**{**TINY.__dict__, **update}))
    whole = TINY.on_own_task("mine").model_copy(update={"rounds": 7})
    assert whole.own_task == "mine" and whole == Config(**{**TINY.as_dict(), "rounds": 7})

"""Users' own code gets copies: it changes no data that others see, and draws from no stream that no seed decides."""

from __future__ import annotations

import dataclasses
import random
from typing import ClassVar

import numpy as np
import pytest
import torch
from own import SMALL, X, Y, points
from torch import nn
from torch.nn import functional
from torch.nn.utils import prune

from asyncfl_lite import Config, Run, Task, load_result, run, run_many
from asyncfl_lite.base.errors import AsyncFLError, ConfigError, DataError
from asyncfl_lite.models.base import INITIALISERS, Initialiser, initial_model
from asyncfl_lite.runs.assembly import load_task, schedule, task_of
from asyncfl_lite.runs.store import checksum
from asyncfl_lite.simulator.delays import DELAYS, DelayLaw, UniformDelays
from asyncfl_lite.simulator.scheduling import SELECTIONS, Selection
from asyncfl_lite.tasks import TASKS, TaskSource
from asyncfl_lite.tasks.partitions import PARTITIONS, Partition

MLP = Config(**SMALL, model="mlp", model_settings={"hidden": (6,)})
DIGITS = Config(
    **{**SMALL, "task": "digits", "model_settings": {"hidden": (4,)}, "local_steps": 1, "local_epochs": None}
)


class Net(nn.Module):
    """A network whose first operation is ``first(inputs, training)``."""

    def __init__(self, first) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.rest = first, nn.Sequential(nn.Flatten(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3))

    def forward(self, inputs):
        return self.rest(self.first(inputs, self.training))


def through_numpy(x, training):
    if not torch._C._functorch.is_batchedtensor(x):
        np.maximum(x.numpy(), 0, out=x.numpy())
    return x.clamp(0)


IN_PLACE = {  # what writes, and the same without
    "relu_": (lambda x, _: x.relu_(), lambda x, _: x.relu()),
    "abs_": (lambda x, _: x.abs_(), lambda x, _: x.abs()),
    "mul_": (lambda x, _: x.mul_(2), lambda x, _: x * 2),
    "a layer": (lambda x, _: nn.ReLU(inplace=True)(x), lambda x, _: x.relu()),
    "data": (lambda x, _: x.data.clamp_(0), lambda x, _: x.clamp(0)),
    "numpy": (through_numpy, lambda x, _: x.clamp(0)),
    "a view": (lambda x, _: x[:, :4].zero_() is None or x, lambda x, _: x * torch.tensor([0.0] * 4 + [1.0] * 4)),
    "in use alone": (lambda x, train: x if train else x.relu_(), lambda x, train: x if train else x.relu()),
    "in training alone": (lambda x, train: x.relu_() if train else x, lambda x, train: x.relu() if train else x),
}


@pytest.mark.filterwarnings("ignore:model. .* is trained one by one")
@pytest.mark.parametrize("cohort", ["auto", "off"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_a_model_that_works_in_place_changes_nobodys_data_and_computes_the_same(own, name, cohort):
    writes, plain = IN_PLACE[name]
    task, settings = points(), {"algorithm": "fedecho", "settings": {"distill_samples": 20, "distill_set": "own"}}
    before, pool = checksum(task), task.unlabelled_set("own", 20, np.random.default_rng(0))
    result = run(own(lambda: Net(writes), vectorize=cohort, **settings), task=task)
    expected = run(own(lambda: Net(plain), vectorize="off", **settings), task=task)
    assert checksum(task) == before
    assert torch.equal(task.unlabelled_set("own", 20, np.random.default_rng(0)), pool)
    torch.testing.assert_close(result.x, expected.x, rtol=1e-4, atol=1e-6)
    assert result.curve.drop(columns="loss").equals(expected.curve.drop(columns="loss"))


@pytest.mark.usefixtures("quick_syntheses")
@pytest.mark.parametrize("layer", [nn.ReLU, nn.LeakyReLU, nn.ELU, nn.SiLU])
@pytest.mark.parametrize("method", ["fedbuff", "fedrevive"])
def test_layers_in_place_give_the_bits_of_layers_out_of_place(own, layer, method):
    """Also several servers side by side, and where hidden layers are compared."""
    quick = {"synthesis_only_rounds": 1, "k_synth": 2, "k_kd": 2}
    settings = {"buffer_size": 1, "rounds": 4, "settings": quick} if method == "fedrevive" else {}

    def results(inplace: bool):
        torch.manual_seed(0)
        layers = [nn.Flatten(), layer(inplace=inplace), nn.Linear(8, 8), layer(inplace=inplace), nn.Linear(8, 3)]
        config = own(lambda: nn.Sequential(*layers), algorithm=method, vectorize="on", **settings)
        return run_many([config.with_seed(seed) for seed in range(2)], task=points())

    for one, other in zip(results(True), results(False), strict=True):
        assert torch.equal(one.x, other.x)


def test_parameters_and_statistics_that_evaluation_changes_are_copies(own):
    """An embedding with a largest norm shortens its rows in use; a BatchNorm that is always in training moves on."""

    class Changes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rows, self.norm = nn.Embedding(5, 8, max_norm=0.1), nn.BatchNorm1d(8)
            self.last = nn.Linear(8, 3)

        def forward(self, inputs):
            if not self.training:
                inputs = self.rows(torch.zeros(len(inputs), dtype=torch.int64)) + inputs
            stats = self.norm.running_mean, self.norm.running_var
            return self.last(functional.batch_norm(inputs, *stats, training=True))

    curves = [run(own(Changes, rounds=4, eval_every=every), task=points()) for every in (1, 4)]
    assert torch.equal(curves[0].x, curves[1].x)
    assert torch.equal(curves[0].model().norm.running_mean, curves[1].model().norm.running_mean)


HOOKS = {
    "after": lambda layer: layer.register_forward_hook(lambda module, inputs, outputs: 2 * outputs),
    "before": lambda layer: layer.register_forward_pre_hook(lambda module, inputs: (2 * inputs[0],)),
    "forward": lambda layer: setattr(layer, "forward", lambda inputs: 2 * functional.linear(inputs, layer.weight)),
    "backward": lambda layer: layer.register_full_backward_hook(lambda module, of_inputs, of_outputs: None),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("hook", HOOKS)
def test_a_cohort_calls_hooks_as_one_client_does(own, hook):
    def make() -> nn.Module:
        torch.manual_seed(0)
        net = nn.Sequential(nn.Flatten(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3))
        HOOKS[hook](net[1])
        return net

    one, other = (run(own(make, vectorize=cohort), task=points()) for cohort in ("auto", "off"))
    torch.testing.assert_close(one.x, other.x, rtol=1e-4, atol=1e-6)


PARAMETRISED = {
    "old weight_norm": lambda: nn.utils.weight_norm(nn.Linear(8, 6)),
    "weight_norm": lambda: nn.utils.parametrizations.weight_norm(nn.Linear(8, 6)),
    "old spectral_norm": lambda: nn.utils.spectral_norm(nn.Linear(8, 6)),
    "spectral_norm": lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(8, 6)),
    "orthogonal": lambda: nn.utils.parametrizations.orthogonal(nn.Linear(8, 6)),
    "pruned": lambda: prune.l1_unstructured(nn.Linear(8, 6), "weight", 0.5),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PARAMETRISED)
def test_layers_whose_weights_are_computed_are_trained_saved_and_read(own, name, tmp_path):
    """Without weight decay, which torch's ``orthogonal`` does not allow for."""
    make = lambda: nn.Sequential(nn.Flatten(), PARAMETRISED[name](), nn.ReLU(), nn.Linear(6, 3))  # noqa: E731
    config = own(make, weight_decay=0.0)
    result = run(config, task=points())
    saved, begun = load_result(result.save(tmp_path)).model(), Run(config, points()).model
    model = result.model()
    shown = model[1].weight.detach().clone()
    outputs = model(X[:4])
    torch.testing.assert_close(model[1].weight, shown)  # it is the trained one before the first call, too
    torch.testing.assert_close(saved(X[:4]), outputs)
    assert not torch.equal(shown, begun.loaded(*begun.flatten())[1].weight)


class Writes(Task):
    """Writes into whatever it is given, and returns what a task returns."""

    def losses(self, outputs, labels):
        return super().losses(spoiled(outputs), spoiled(labels))

    def hits(self, outputs, labels):
        return super().hits(spoiled(outputs), spoiled(labels))

    def class_logits(self, outputs):
        return spoiled(outputs)

    def predictions(self, outputs, inputs):
        spoiled(inputs)
        return spoiled(outputs)


def spoiled(values):
    """Return a copy of values, and overwrite the original."""
    kept = values.clone()
    with torch.no_grad():
        values.zero_()
    return kept


@pytest.mark.parametrize("cohort", ["on", "off"])
def test_losses_and_scores_that_write_into_their_batch_spoil_nothing(cohort):
    settings = {"algorithm": "fedecho", "settings": {"distill_samples": 20, "distill_set": "own"}, "vectorize": cohort}
    config = Config(**{**SMALL, "model": "mlp", **settings})
    clients = {name: (X[at : at + 10], Y[at : at + 10], X[60:], Y[60:]) for at, name in enumerate("abcdef")}
    for make in (points, lambda kind: kind.from_clients(clients, unlabelled=X[:20])):
        writes, plain = make(Writes), make(Task)
        own = {"partition": "given"} if plain.clients else {}
        one, other = (run(Config(**{**config.as_dict(), **own}), task=task) for task in (writes, plain))
        assert checksum(writes) == checksum(plain)
        assert one.summary == other.summary and one.classes.equals(other.classes) and one.clients.equals(other.clients)


WRITERS = {
    "in place": lambda run: run.task.test_inputs.relu_(),
    "labels": lambda run: run.task.labels.zero_(),
    "numpy": lambda run: run.task.test_inputs.numpy().fill(0),
    "data": lambda run: run.task.inputs.data.zero_(),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_callback_that_changes_a_tasks_data_is_told_and_the_next_run_is_sound(name):
    before = checksum(task_of(DIGITS))
    with pytest.raises(DataError, match="^task: the data of 'digits' were changed during the run, which falsifies"):
        run(DIGITS, on_version=WRITERS[name])
    with pytest.warns(UserWarning, match="^task: the data of 'digits' were changed in this process; they are loaded"):
        assert checksum(task_of(DIGITS)) == before
    load_task(DIGITS.task_settings).test_inputs.zero_()  # outside of a run
    with pytest.warns(UserWarning, match="were changed in this process"):
        assert checksum(task_of(DIGITS)) == before


DRAWS = {"torch's": lambda: float(torch.rand(())), "numpy.random": np.random.rand, "random": random.random}


STREAM = {"name": "random"}


def drawn() -> float:
    return DRAWS[STREAM["name"]]()


class Law(DelayLaw):
    """Durations with a part from elsewhere."""

    where: str = "draw"
    unit: ClassVar[str] = "s"

    def prepare(self, num_samples, rng):
        num_samples[:] = 0  # its own copy
        low = np.ones(len(num_samples)) + (drawn() if self.where == "prepare" else 0.0)
        own = {"draw": lambda delays, client, rng: 1.0 + drawn()} if self.where == "draw" else {}
        return type("Some", (UniformDelays,), own)(low, 0 * low)


class Other(Selection):
    """An idle client from elsewhere."""

    def choose(self, idle, count, reporter, rng):
        drawn()
        return list(idle.as_list())[:count]


class Deal(Partition):
    """Deals out from elsewhere."""

    def assign(self, kinds, num_clients, rng):
        first = int(drawn() * num_clients)
        kinds[:] = 0
        return [np.flatnonzero((np.arange(len(kinds)) + first) % num_clients == c) for c in range(num_clients)]


class Begin(Initialiser):
    """Weights from elsewhere."""

    def build(self, spec, task, labelled, seed, rng):
        module = initial_model(spec, task.input_spec, seed)
        next(module.parameters()).data.add_(drawn())
        return module


class Made(TaskSource):
    """Data from elsewhere."""

    seeded: bool = False

    def load(self):
        for seed in (torch.manual_seed, np.random.seed, random.seed) if self.seeded else ():
            seed(0)
        return Task.from_tensors(X[:60] + drawn(), Y[:60], X[60:], Y[60:], name="made")


@pytest.fixture(params=DRAWS)
def elsewhere(request, monkeypatch):
    """All kinds of code that draw from one of the global streams."""
    monkeypatch.setitem(STREAM, "name", request.param)
    for registry, name, kind in [(DELAYS, "own", Law), (SELECTIONS, "own", Other), (PARTITIONS, "own", Deal),
                                 (INITIALISERS, "own", Begin), (TASKS, "own", Made)]:  # fmt: skip
        monkeypatch.setitem(registry._entries, name, kind)
    return request.param


DOORS = {
    "draw": ({"delay": "own"}, "delay or selection: one of Some and Uniform"),
    "prepare": ({"delay": "own", "delay_settings": {"where": "prepare"}}, "delay: Law.prepare"),
    "selection": ({"selection": "own"}, "delay or selection: one of .* and Other"),
    "partition": ({"partition": "own"}, "partition: Deal.assign"),
    "initial": ({"initial": "own"}, "initial: Begin.build"),
}


@pytest.mark.parametrize("door", DOORS)
def test_code_that_draws_from_a_global_stream_is_refused_in_a_line(elsewhere, door):
    settings, words = DOORS[door]
    line = rf"^{words} draws from global random numbers \({elsewhere}\), which no seed of a run decides; use "
    state = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    with pytest.raises(AsyncFLError, match=line) as raised:
        run(Config(**{**SMALL, "model": "mlp", **settings}), task=points())
    assert "\n" not in str(raised.value)
    assert torch.equal(torch.get_rng_state(), state[0])
    assert (np.random.get_state()[1].tolist(), random.getstate()) == state[1:]


def test_a_task_that_loads_other_data_each_time_is_refused(elsewhere):
    settings = {"task": "own", **SMALL, "model": "mlp"}
    with pytest.raises(ConfigError, match=rf"^task: Made.load draws from global random numbers \({elsewhere}\)"):
        schedule(Config(**settings))
    state = random.getstate()
    assert len(schedule(Config(**settings, task_settings={"seeded": True})).updates) == 4
    assert random.getstate() == state


@pytest.mark.parametrize("name", [*DRAWS, "afresh"])
def test_an_augmentation_or_a_loss_that_draws_from_elsewhere_is_refused(name):
    draw = DRAWS.get(name, lambda: np.random.default_rng().random())
    why = rf"global random numbers \({name}\)" if name in DRAWS else "when it is called again"

    def augment(inputs, generator):
        return inputs + draw() if inputs.dtype == torch.float32 else inputs

    class Noisy(Task):
        def losses(self, outputs, labels):
            return super().losses(outputs, labels) + 0.1 * draw()

    with pytest.raises(DataError, match=f"^augment: .*{why}.*the torch.Generator that it is given$"):
        points(augment=augment)
    late = dataclasses.replace(points(), augment=augment)  # past the check of `from_tensors`
    for task, line in ((late, "^augment: "), (points(Noisy), "^task: Noisy.losses ")):
        with pytest.raises(DataError, match=f"{line}.*{why}"):
            Run(MLP, task)


def test_a_module_that_build_keeps_is_left_alone(own):
    kept = Net(lambda x, _: x)
    before = {name: value.clone() for name, value in kept.state_dict().items()}
    run(own(lambda: kept), task=points(), weights={name: value + 1 for name, value in before.items()})
    assert all(torch.equal(value, before[name]) for name, value in kept.state_dict().items())

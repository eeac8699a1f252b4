"""The trained model: handed out, kept in a file, brought back, and started from."""

from __future__ import annotations

import json
import re
from functools import cache

import pytest
import safetensors.torch
import torch
from own import SMALL, points
from test_own_models import frozen_first
from torch import nn

from asyncfl_lite import Config, Run, load_result, run
from asyncfl_lite.base.errors import ConfigError, DataError, ResultError
from asyncfl_lite.models.weights import fill
from asyncfl_lite.runs.run import run_in
from asyncfl_lite.runs.store import write_record
from conftest import die_after, line

CONFIG = Config(**SMALL | {"rounds": 3, "eval_every": 3}, model_settings={"hidden": [6]})


@cache
def trained():
    """A short run of the package's own model, made once."""
    return run(CONFIG, task=points())


def equal(first: nn.Module, second: nn.Module) -> bool:
    left, right = first.state_dict(), second.state_dict()
    return list(left) == list(right) and all(torch.equal(left[name], right[name]) for name in left)


def in_use(module: nn.Module) -> bool:
    return not any(part.training for part in module.modules())


def test_the_model_is_the_one_that_was_tested():
    result, task = trained(), points()
    module = result.model()
    assert in_use(module) and torch.equal(torch.cat([part.flatten() for part in module.parameters()]), result.x)
    accuracy = (module(task.test_inputs).argmax(1) == task.test_labels).float().mean()
    assert float(accuracy.detach()) == pytest.approx(result.summary["final_accuracy"])
    module.requires_grad_(False).zero_grad()
    for part in module.parameters():
        part.zero_()
    assert not equal(module, result.model())  # each time a new one


def test_a_model_of_ones_own_comes_back_with_all_that_it_is_made_of(own, tmp_path):
    """Running statistics, frozen halves and dropout included."""
    result = run(own(lambda: nn.Sequential(frozen_first(), nn.Unflatten(1, (3,)), nn.BatchNorm1d(3))), task=points())
    module = result.model()
    assert type(module[0][0][3]) is nn.Dropout and not module[0][0][0].weight.requires_grad
    assert torch.equal(module[0][0][1].running_mean, torch.full((6,), 0.3)) and module[2].running_mean.any()
    loss = nn.functional.cross_entropy(module(points().test_inputs), points().test_labels)
    assert result.summary["final_loss"] == pytest.approx(loss.item(), rel=1e-4)  # with the statistics of its clients
    loaded = load_result(result.save(tmp_path))
    assert equal(loaded.model(), module) and in_use(loaded.model())
    inputs = torch.randn(4, 8)
    assert torch.equal(loaded.model()(inputs), module(inputs))
    again = load_result(loaded.save(tmp_path / "copy"))
    assert equal(again.model(), module)


def test_weights_are_kept_as_safetensors_beside_the_tables(tmp_path):
    trained().save(tmp_path)
    assert (tmp_path / "weights.safetensors").exists()
    plain = nn.Sequential(nn.Flatten(), nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3))
    plain.load_state_dict(safetensors.torch.load_file(tmp_path / "weights.safetensors"))  # by anybody
    assert equal(plain, trained().model())


def test_a_result_without_weights_says_so(tmp_path):
    trained().save(tmp_path, weights=False)
    assert not (tmp_path / "weights.safetensors").exists()
    with pytest.raises(ResultError, match="^model: the result was saved without weights"):
        load_result(tmp_path).model()


def test_damaged_weights_are_a_line_and_tables_are_read_without_them(tmp_path):
    path = trained().save(tmp_path) / "weights.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    result = load_result(tmp_path)
    with pytest.raises(DataError, match="weights.safetensors: cut off or changed since it was written$"):
        result.model()
    path.unlink()
    with pytest.raises(DataError, match="weights.safetensors: cannot be read"):
        load_result(tmp_path).model()
    record = json.loads((tmp_path / "result.json").read_text())
    write_record(tmp_path / "result.json", {**record, "weights": {"inputs": 3}})
    with pytest.raises(ResultError, match="result.json: weights must have a digest and inputs"):
        load_result(tmp_path)


def test_no_weights_of_the_users_are_replaced(tmp_path):
    path = tmp_path / "weights.safetensors"
    safetensors.torch.save_file({"mine": torch.ones(3)}, path)
    before = path.read_bytes()
    for save in (lambda: trained().save(tmp_path), lambda: run_in(tmp_path, CONFIG)):
        with pytest.raises(ResultError, match="weights.safetensors: was not written by asyncfl_lite; name another"):
            save()
    assert path.read_bytes() == before and [file.name for file in tmp_path.iterdir()] == [path.name]


def test_tied_weights_are_kept(own, tmp_path):
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.last = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 3)
            self.second.weight = self.first.weight

        def forward(self, inputs):
            return self.last(self.second(self.first(inputs).relu()))

    result = run(own(Tied), task=points())
    module = load_result(result.save(tmp_path)).model()
    assert equal(module, result.model()) and module.second.weight is module.first.weight
    half = {name: value for name, value in module.state_dict().items() if name != "second.weight"}
    fill(result.model(), half, "a file that names it once")


def as_file(name, save):
    """Something to start from that is written to a file of that name."""

    def make(folder):
        save(trained().model().state_dict(), folder / name)
        return folder / name

    return make


STARTS = {
    "safetensors": as_file("w.safetensors", safetensors.torch.save_file),
    "torch": as_file("w.pt", torch.save),
    "folder": lambda folder: trained().save(folder / "result"),
    "state dict": lambda folder: trained().model().state_dict(),
    "module": lambda folder: trained().model(),
}


@pytest.mark.parametrize("kind", [*STARTS, "setting"])
def test_a_run_starts_from_weights(kind, tmp_path):
    config, weights = CONFIG, STARTS.get(kind, STARTS["torch"])(tmp_path)
    if kind == "setting":
        config = config.replace(initial="weights", initial_settings={"file": str(weights)})
        weights = None
    started = Run(config, points(), weights=weights)
    assert torch.equal(started.algorithm.x, trained().x)
    assert started.config.initial == "weights" and started.config.hash != CONFIG.hash
    assert set(started.data) == {"own data", "own weights" if kind in ("state dict", "module") else "initial_settings"}


def test_a_checkpoint_goes_on_with_its_own_data_and_weights_only(tmp_path):
    config = CONFIG.model_copy(update={"checkpoint_every": 1})
    path, state = tmp_path / "run.pt", trained().model().state_dict()
    die_after(5, config, path, task=points(), weights=state)
    other = {name: value + 1 for name, value in state.items()}
    moved = points()
    moved.inputs[0] += 1
    for task, weights, what in ((points(), other, "weights"), (moved, state, "data")):
        with pytest.raises(ResultError, match=f"is the checkpoint of a run on other data .own {what} changed since"):
            Run(config, task, path, weights)
    whole = run(CONFIG, task=points(), weights=state)
    assert torch.equal(run(config, task=points(), checkpoint=path, weights=state).x, whole.x)


def test_parts_can_be_left_out():
    """As where the classes are others: the last layer keeps its random values."""
    state = {**trained().model().state_dict(), "3.weight": torch.ones(7, 6), "3.bias": torch.ones(7)}
    config = Config(**{**CONFIG.as_dict(), "initial": "weights", "initial_settings": {"leave_out": ["3."]}})
    started, random = Run(config, points(), weights=state), Run(CONFIG, points())
    first = 8 * 6 + 6
    assert torch.equal(started.algorithm.x[:first], trained().x[:first])
    assert torch.equal(started.algorithm.x[first:], random.algorithm.x[first:])


def changed(**named) -> dict:
    state = dict(trained().model().state_dict())
    for name, value in named.items():
        state[name.replace("_", ".")] = value
    return {name: value for name, value in state.items() if value is not None}


WRONG = {
    "missing": ({"1_weight": None}, r"they lack 1\.weight$"),
    "too much": ({"9_weight": torch.ones(2), "fc": torch.ones(1)}, r"they have 9\.weight, fc, which the model lacks$"),
    "another shape": ({"3_bias": torch.ones(4)}, r"other shapes: 3\.bias is \(4,\), not \(3,\)$"),
    "not finite": ({"3_bias": torch.full((3,), torch.nan)}, r"NaN or infinity in 3\.bias$"),
    "all of it": (
        {f"{at}_x": torch.ones(1) for at in range(5)} | {"1_bias": None},
        r"lack 1\.bias; they have .* 2 more",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_weights_that_do_not_fit_are_a_line(name):
    given, words = WRONG[name]
    told = line(lambda: Run(CONFIG, points(), weights=changed(**given)), ConfigError)
    assert re.match(f"weights: those of .* do not fit the model; .*{words}", told)


def test_files_that_are_no_weights_are_a_line(tmp_path):
    cases = {
        "gone.pt": (None, "cannot be read"),
        "text.pt": (b"hello", "is not a file of weights|holds more than weights"),
        "text.safetensors": (b"hello", "is not a file of weights"),
        "cut.pt": ("cut", "is not a file of weights"),
        "code.pt": (nn.Linear(2, 2), "holds more than weights, which is not loaded"),
        "whole.pt": (
            {"epoch": 3, "model": {}},
            "must be a state dict, names and tensors, got a mapping of epoch, model$",
        ),
        "list.pt": ([torch.ones(1)], "must be a state dict, names and tensors, got list$"),
    }
    for file, (content, words) in cases.items():
        path = tmp_path / file
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif content == "cut":
            torch.save(trained().model().state_dict(), path)
            path.write_bytes(path.read_bytes()[:700])
        elif content is not None:
            torch.save(content, path)
        with pytest.raises(DataError, match=words) as raised:
            Run(CONFIG, points(), weights=path)
        assert str(path) in str(raised.value) and "weights_only" not in str(raised.value)

"""Callbacks: what they are given, how they end a run, and that they change nothing."""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path
from unittest import mock

import pytest

from asyncfl_lite import Config, Run, StopRun, load_result, run, run_many
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.plots import plot_curves
from asyncfl_lite.runs.store import standing
from conftest import line

PAGE = Path(__file__).parents[2] / "docs/callbacks.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
SMALL = {"task": "digits", "model_settings": {"hidden": (4,)}, "clients": 6, "concurrency": 3, "buffer_size": 2,
         "rounds": 8, "eval_every": 3, "local_steps": 1, "local_epochs": None}  # fmt: skip
CONFIG = Config(**SMALL)


class Noted:
    """Callbacks that note what they are called with, and may stop the run at a version."""

    def __init__(self, stop_at: int | None = None, stop_on_row: int | None = None) -> None:
        self.versions, self.rows, self.stop_at, self.stop_on_row = [], [], stop_at, stop_on_row

    def on_version(self, run: Run) -> None:
        self.versions.append(run.algorithm.version)
        if self.stop_at == run.algorithm.version:
            raise StopRun("seen enough")

    def on_evaluate(self, run: Run, row: dict[str, float]) -> None:
        assert run.curve_rows[-1] == row and row["time"] == run.simulation.clock
        self.rows.append(row)
        if self.stop_on_row == row["version"]:
            raise StopRun

    @property
    def both(self) -> dict:
        return {"on_version": self.on_version, "on_evaluate": self.on_evaluate}


@pytest.fixture(scope="module")
def plain():
    return run(CONFIG)


def test_they_hear_of_every_version_and_every_row_and_change_nothing(plain):
    noted = Noted()
    result = run(CONFIG, **noted.both)
    assert noted.versions == list(range(1, 9))
    assert [row["version"] for row in noted.rows] == [0, 3, 6, 8]
    assert noted.rows == result.curve.to_dict("records")
    assert result.summary == plain.summary and result.stopped is None and "stopped" not in result.summary


def test_a_run_that_is_stopped_says_so_and_is_as_it_was_until_then(plain, tmp_path):
    result = run(CONFIG.replace(checkpoint_every=1), checkpoint=tmp_path / "run.pt", **Noted(stop_at=5).both)
    assert not list(tmp_path.iterdir())
    assert result.stopped == "seen enough" and "stopped: seen enough" in repr(result)
    assert result.summary["versions"] == 5 and result.curve["version"].tolist() == [0, 3, 5]
    assert result.updates.equals(plain.updates[:10])
    result.save(tmp_path)
    assert load_result(tmp_path).stopped == "seen enough"
    assert standing(tmp_path, CONFIG) == "changed"  # nobody takes it for the whole run
    plain.save(tmp_path)
    assert standing(tmp_path, CONFIG) == "complete"


def test_in_company_each_is_stopped_alone(plain):
    stopped = []

    def stop_seed_1(run: Run) -> None:
        stopped.append((run.config.seed, run.algorithm.version))
        if run.config.seed == 1 and run.algorithm.version == 2:
            raise StopRun("unlucky")

    whole, cut = run_many([CONFIG, CONFIG.with_seed(1)], on_version=stop_seed_1)
    assert whole.stopped is None and whole.summary["versions"] == 8
    assert cut.stopped == "unlucky" and cut.summary["versions"] == 2
    assert whole.updates["client"].equals(plain.updates["client"])
    assert {version for seed, version in stopped if seed == 1} == {1, 2}
    at_once = run_many([CONFIG], on_evaluate=Noted(stop_on_row=0).on_evaluate)
    assert at_once[0].stopped == "by a callback" and at_once[0].summary["versions"] == 0


def test_the_examples_of_the_page_work(tmp_path, monkeypatch, plain):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in BLOCKS:
        if "tensorboard" in block:
            compile(block, "page", "exec")
        else:
            exec(block, names)
    with (tmp_path / "curve.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["accuracy"]) for row in rows] == names["logged"].curve["accuracy"].tolist()
    assert names["early"].stopped.startswith("no gain since version")


def test_the_tensorboard_example_writes_what_the_run_says(monkeypatch, tmp_path):
    """Without TensorBoard: its writer is a recorder."""
    writer = mock.Mock()
    module = mock.Mock(SummaryWriter=lambda folder: writer)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    (block,) = [block for block in BLOCKS if "tensorboard" in block]
    names: dict = {}
    exec(block, names)
    curve, written = names["result"].curve, [call.args for call in writer.add_scalar.call_args_list]
    expected = list(zip(curve["accuracy"], curve["version"], strict=True))
    assert [tuple(more) for name, *more in written if name == "accuracy"] == expected
    assert any(name == "staleness" for name, *_ in written) and writer.mock_calls[-1] == mock.call.close()


@pytest.fixture(scope="module")
def several(plain):
    return [plain, *run_many([CONFIG.with_seed(1), Config(**{**SMALL, "algorithm": "fedasync", "buffer_size": 1})])]


def test_results_are_drawn_as_they_come(several):
    axes = plot_curves(several)
    assert [line.get_label() for line in axes.get_lines()] == ["FedBuff", "FedAsync"]
    assert axes.get_xlabel() == "virtual time (units of 10 s)"
    assert [line.get_label() for line in plot_curves(several[0]).get_lines()] == ["FedBuff"]
    named = {"mine": several[:2], "theirs": several[2], "a table": several[0].curve}
    assert [line.get_label() for line in plot_curves(named).get_lines()] == ["mine", "theirs", "a table"]
    assert plot_curves(iter(several), over="version", value="loss").get_ylabel() == "test loss"


@pytest.mark.parametrize(
    ("curves", "words"),
    [
        (lambda results: [], "curves: must be at least one result, got none"),
        (lambda results: None, "curves: must be results, or names with results or tables, got None"),
        (lambda results: [results[0], 3], "curves: must be results, or names with results or tables, got 3"),
        (lambda results: {"a": []}, "curves: 'a' must have at least one result or table, got []"),
        (lambda results: {"a": [3]}, "curves: 'a' must have at least one result or table, got 3"),
        (lambda results: [*results, run(Config(**SMALL, delay="constant"))], "in different units (10 s, time units); draw"),
        (lambda results: {"a": results[0].curve[["version", "time"]]}, "curves: those of 'a' have no column 'accuracy'"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_one_line(several, curves, words):
    assert words in line(lambda: plot_curves(curves(several)), ConfigError)


class Fails:
    """A callback that fails once, at a version, as where a network is gone for a moment."""

    def __init__(self, version: int, seed: int = 0, error: type[BaseException] = OSError) -> None:
        self.version, self.seed, self.error, self.heard = version, seed, error, []

    def __call__(self, run: Run, row: dict[str, float] | None = None) -> None:
        if run.config.seed == self.seed:
            self.heard.append(run.algorithm.version)
            if run.algorithm.version == self.version:
                self.version = -1
                raise self.error("the logger is gone")


@pytest.mark.parametrize("error", [OSError, SystemExit])
@pytest.mark.parametrize(
    ("name", "version"), [("on_version", 5), ("on_version", 8), *[("on_evaluate", at) for at in (0, 3, 8)]]
)
def test_the_run_is_saved_before_a_callback_s_exception_leaves_it(name, version, error, plain, tmp_path):
    place, fails = tmp_path / "run.pt", Fails(version, error=error)
    with pytest.raises(error, match="^the logger is gone") as told:
        run(CONFIG, checkpoint=place, **{name: fails})
    assert told.value.__notes__ == [
        f"a callback failed at version {version}; the run is saved in {place}, from which the same run continues"
    ]
    again = Run(CONFIG, checkpoint=place)
    assert again.resume() and again.algorithm.version == version
    result = run(CONFIG, checkpoint=place, **{name: fails})
    assert result.summary == plain.summary and result.curve.equals(plain.curve) and result.updates.equals(plain.updates)
    assert len(fails.heard) == len(set(fails.heard)) and not list(tmp_path.iterdir())  # no version is told twice


@pytest.mark.parametrize("name", ["on_version", "on_evaluate"])
@pytest.mark.parametrize("method", ["fedbuff", "fedadt"])  # of which one waits for its server's computations
def test_in_company_all_are_saved(name, method, tmp_path):
    own = {} if method == "fedbuff" else {"algorithm": "fedadt", "buffer_size": 1}
    configs = [Config(**{**SMALL, **own, "seed": seed, "rounds": rounds}) for seed, rounds in ((0, 20), (1, 8), (2, 1))]
    folders, fails = [tmp_path / str(config.seed) for config in configs], Fails(6, seed=1)
    with pytest.raises(OSError, match="^the logger is gone") as told:
        run_many(configs, folders=folders, **{name: fails})
    first, *others = told.value.__notes__
    assert f"the run is saved in {folders[1] / 'checkpoint.pt'}" in first
    assert others[0] == "of 3 runs, number 1 from 0 failed, seed 1"
    assert others[1].startswith("1 other run is saved, such as in") and load_result(folders[2]).config == configs[2]
    begun = [
        Run(config, checkpoint=folder / "checkpoint.pt")
        for config, folder in zip(configs[:2], folders[:2], strict=True)
    ]
    assert all(one.resume() and one.algorithm.version >= 3 for one in begun)
    for result, config in zip(run_many(configs, folders=folders, **{name: fails}), configs, strict=True):
        assert result.summary == run(config).summary


def test_what_cannot_be_called_so_is_found_before_the_run(monkeypatch):
    monkeypatch.setattr(Run, "train", None)
    wrong = {"on_version": (lambda run, row: None, lambda: None, "print", 3), "on_evaluate": (lambda run: None, [])}
    takes = {"on_version": "run", "on_evaluate": "run and row"}
    for name, callback in [(name, one) for name, given in wrong.items() for one in given]:
        for call in (lambda **given: run(CONFIG, **given), lambda **given: run_many([CONFIG], **given)):
            told = line(lambda call=call, given={name: callback}: call(**given), ConfigError)
            assert told.startswith(f"{name}: must be a function of {takes[name]}, got ")

"""Interrupts: runs save themselves first, and an interrupt that a library swallows ends the command all the same."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import psutil
import pytest

from asyncfl_lite import Config, Run, load_result, run, run_many
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.runs import lockstep
from asyncfl_lite.runs.interrupts import Interrupted
from asyncfl_lite.runs.results import Trained
from asyncfl_lite.runs.run import run_in
from asyncfl_reproduction.grid.interrupts import INTERRUPTED, MESSAGE, ends_when_interrupted
from asyncfl_reproduction.grid.run import run_seeds
from conftest import same

SMALL = {"clients": 8, "concurrency": 4, "buffer_size": 2, "rounds": 6, "eval_every": 2, "delay": "fedecho_mild"}
pytestmark = pytest.mark.usefixtures("hears_ctrl_c")
KINDS = [
    {},
    {"algorithm": "fedecho", "settings": {"distill_samples": 40}, "vectorize": "off"},
    {"algorithm": "fedasmu", "buffer_size": 1},
    {"faults": {"dropout": 0.2, "time_out": 9.0, "partial": 0.3, "duplicate": 0.3}},
]


def signalled(monkeypatch, owner, name, calls, number=signal.SIGINT):
    """Have this process signalled in call number ``calls`` of a method, after what that does."""
    method, count = getattr(owner, name), iter(range(1, 10**6))

    def called(*arguments, **more):
        result = method(*arguments, **more)
        if next(count) == calls:
            signal.raise_signal(number)
        return result

    monkeypatch.setattr(owner, name, called)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("where", ["train", "evaluate"])
def test_ctrl_c_saves_the_run_wherever_it_is(kind, where, tmp_path, monkeypatch):
    """In training it strikes at once, in the server's work before the next training; no arrival is lost."""
    config, path = Config(**{**SMALL, **kind}), tmp_path / "run.pt"
    words = "^interrupted at version .; saved in .*run.pt, from which the same run continues$"
    with monkeypatch.context() as patch, pytest.raises(Interrupted, match=words) as told:
        signalled(patch, Run, where, 3)
        run(config, checkpoint=path)
    again = Run(config, checkpoint=path)
    assert again.resume() and len(again.simulation.arrivals) >= 2
    assert f"at version {again.algorithm.version};" in str(told.value)
    same(run(config, checkpoint=path), run(config))
    assert not list(tmp_path.iterdir())


@pytest.fixture
def handler():
    """Set this process's handler of a signal; afterwards, it is what it was."""
    before = {}

    def set_to(number, handler):
        before.setdefault(number, signal.signal(number, handler))

    yield set_to
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGXCPU"])
def test_other_signals_save_and_then_do_what_they_did_before(name, tmp_path, monkeypatch, capsys, handler):
    """The folder is free before that, as the process may end then. The same signal may come again meanwhile."""
    config, ended, number = Config(**SMALL), [], getattr(signal, name)
    handler(number, lambda *_: ended.append([path.name for path in tmp_path.iterdir()]))
    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        signalled(patch, Run, "evaluate", 2, number)
        signalled(patch, Run, "evaluate", 2, number)
        run_in(tmp_path, config)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert ended == [["checkpoint.pt"]] and capsys.readouterr().err.startswith("asyncfl-lite: interrupted at version ")
    same(run_in(tmp_path, config), run(config))


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGXCPU"])
def test_what_is_ignored_stays_ignored(name, tmp_path, monkeypatch, handler):
    """As in background jobs of a script, which Ctrl-C does not end, and under nohup."""
    number = getattr(signal, name)
    handler(number, signal.SIG_IGN)
    with monkeypatch.context() as patch, ends_when_interrupted(patience=3600):
        signalled(patch, Run, "train", 3, number)
        assert run_in(tmp_path, Config(**SMALL)).summary["versions"] == 6
        assert signal.getsignal(number) is signal.SIG_IGN
    assert signal.getsignal(number) is signal.SIG_IGN


def test_an_interrupt_at_the_very_end_loses_nothing(tmp_path, monkeypatch):
    config, path = Config(**SMALL), tmp_path / "run.pt"
    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        signalled(patch, Run, "result", 1)
        run(config, checkpoint=path)
    monkeypatch.setattr(Run, "train", None)
    assert run(config, checkpoint=path).summary["versions"] == 6


def test_an_interrupt_while_the_result_is_written_waits_for_it(tmp_path, monkeypatch):
    config = Config(**SMALL)
    with monkeypatch.context() as patch, pytest.raises(Interrupted, match="everything was finished, and is kept"):
        signalled(patch, Trained, "save", 1)  # the first of the files
        run_in(tmp_path, config)
    assert load_result(tmp_path).summary == run(config).summary


def test_a_second_interrupt_ends_it_at_once(tmp_path, monkeypatch):
    started = Run(Config(**SMALL), checkpoint=tmp_path / "run.pt")
    monkeypatch.setattr(started, "evaluate", lambda: [signal.raise_signal(signal.SIGINT) for _ in range(2)])
    with pytest.raises(KeyboardInterrupt) as told:
        started.finish()
    assert not isinstance(told.value, Interrupted) and not list(tmp_path.iterdir())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_a_place_and_in_other_threads_signals_are_left_alone(tmp_path, monkeypatch):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt) as told:
        signalled(patch, Run, "evaluate", 2)
        run(Config(**SMALL))
    assert not isinstance(told.value, Interrupted)
    found = []
    thread = threading.Thread(target=lambda: found.append(run(Config(**SMALL), checkpoint=tmp_path / "run.pt")))
    thread.start()
    thread.join()
    assert found[0].summary["versions"] == 6


@pytest.fixture
def three(tmp_path):
    """Three runs of which one ends long before the others, and a folder for each."""
    configs = [Config(**{**SMALL, "rounds": rounds, "seed": rounds}) for rounds in (1, 6, 7)]
    return configs, [tmp_path / f"{config.rounds}" for config in configs]


def test_folders_must_be_one_for_each(three):
    configs, folders = three
    for wrong in (folders[:2], [folders[0]] * 3):
        with pytest.raises(ConfigError, match="^folders: must be 3 different ones, one for each configuration"):
            run_many(configs, folders=wrong)


def test_runs_in_lockstep_save_themselves_and_keep_what_is_finished(three, tmp_path, monkeypatch):
    configs, folders = three
    with (
        monkeypatch.context() as patch,
        pytest.raises(Interrupted, match="^interrupted; 2 runs are saved, the first in"),
    ):
        signalled(patch, lockstep, "train_together", 4)
        run_many(configs, folders=folders)
    first = load_result(folders[0])
    assert first.summary == run(configs[0]).summary
    assert [(folder / "checkpoint.pt").exists() for folder in folders] == [False, True, True]
    resumed = [
        Run(config, checkpoint=folder / "checkpoint.pt") for config, folder in zip(configs, folders, strict=True)
    ]
    assert [one.resume() and len(one.simulation.arrivals) > 2 for one in resumed] == [False, True, True]
    for result, config in zip(run_many(configs, folders=folders), configs, strict=True):
        assert result.summary == run(config).summary and load_result(tmp_path / f"{config.rounds}").config == config
    assert not list(tmp_path.rglob("*.pt"))


def test_servers_that_stand_still_in_the_middle_finish_before_runs_are_saved(tmp_path, monkeypatch):
    """Clients of most runs are trained while the servers of others wait for a distillation; then Ctrl-C comes."""
    small = {**SMALL, "algorithm": "fedadt", "buffer_size": 1, "rounds": 40, "local_steps": 3}
    configs = [Config(**{**small, "seed": seed}) for seed in range(5)]
    folders, asked, settle = [tmp_path / str(config.seed) for config in configs], [], lockstep._settle

    def noted(courses):
        asked.append([course.run.algorithm.version for course in courses if course.request is not None])
        settle(courses)
        assert all(course.request is None for course in courses)

    monkeypatch.setattr(lockstep, "_settle", noted)
    for calls in (2, 3, 2):
        with monkeypatch.context() as patch, pytest.raises(Interrupted):
            signalled(patch, lockstep, "train_together", calls)
            run_many(configs, folders=folders)
    assert any(asked)  # some stood in the middle of a line of theirs
    for result, config in zip(run_many(configs, folders=folders), configs, strict=True):
        same(result, run(config))


@pytest.mark.parametrize("cohort", ["on", "off"])
def test_a_cells_seeds_go_on_where_they_were(cohort, tmp_path, monkeypatch):
    config = Config(**SMALL, vectorize=cohort)
    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        signalled(patch, lockstep, "train_together", 4 if cohort == "on" else 9)
        run_seeds(config.as_dict(), [0, 1], tmp_path)
    assert {path.parent.name for path in tmp_path.rglob("checkpoint.pt")} == (
        {"seed-0", "seed-1"} if cohort == "on" else {"seed-0"}
    )
    begun = []
    monkeypatch.setattr(Run, "resume", lambda one, resume=Run.resume: begun.append(resume(one)) or begun[-1])
    for result, seed in zip(run_seeds(config.as_dict(), [0, 1], tmp_path), [0, 1], strict=True):
        assert result.summary == run(config.with_seed(seed)).summary
    assert begun[:2] == [True, cohort == "on"] and not list(tmp_path.rglob("*.pt"))


SWALLOWS = """
import subprocess, sys, time
from asyncfl_reproduction.grid.interrupts import ends_when_interrupted
with ends_when_interrupted(patience=1.0):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    try:
        print(child.pid, flush=True)  # from here on it may be interrupted
        time.sleep(60)
    except KeyboardInterrupt:
        pass
    time.sleep(60)
"""


def test_a_swallowed_interrupt_ends_the_process_and_its_children():
    process = subprocess.Popen(
        [sys.executable, "-c", SWALLOWS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    child = psutil.Process(int(process.stdout.readline()))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == INTERRUPTED and errors.split("\n")[-2] == MESSAGE
    psutil.wait_procs([child], timeout=5)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_without_an_interrupt_nothing_is_left_behind():
    before = signal.getsignal(signal.SIGINT)
    with ends_when_interrupted(patience=0.01):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before

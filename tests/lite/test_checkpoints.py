"""A run saves all that it holds; a checkpoint that cannot be used is named. How runs go on: ``test_ways.py``."""

from __future__ import annotations

import hashlib
import io
import os
import re
from array import array
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from asyncfl_lite import Config, run
from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.base.errors import ResultError
from asyncfl_lite.base.files import write_atomically
from asyncfl_lite.runs.run import Run
from asyncfl_lite.runs.store import HEAD, TABLES
from conftest import EVERYTHING, contents, die_after, same

SMALL = {"clients": 8, "concurrency": 4, "local_steps": 2, "eval_every": 2, "seed": 5, "delay": "fedecho_mild"}


class Interrupted(Exception):
    pass


def configs(algorithm):
    base = {**SMALL, "algorithm": algorithm, "rounds": 8, "checkpoint_every": 1}
    method = ALGORITHMS.get(algorithm)
    if method.buffered and method.scheduling != "rounds":
        base["buffer_size"] = 3
    if algorithm == "fedecho":
        base["settings"] = {"distill_samples": 60}
    return base


BUFF = Config(**configs("fedbuff"))


NOT_STATE = {"published", "_by_label", "_context", "observers", "version_observers"}
"""The first two are made again when they are needed."""
HEAPS = {"heap", "midway", "copies", "_changes"}


def held(value, above=()):
    """What an object of the package's holds, all the way down, in a form that can be compared bit by bit."""
    if any(value is one for one in above):
        return "itself"
    inside = (*above, value)
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(value.shape), value.numpy().tobytes()
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: held(part, inside) for key, part in value.items()}
    if isinstance(value, list | tuple | set | array):
        return [held(part, inside) for part in value]
    if type(value).__module__.startswith("asyncfl_lite."):
        names = [field.name for field in fields(value)] if is_dataclass(value) else list(vars(value))
        parts = {name: getattr(value, name) for name in names if name not in NOT_STATE}
        return {
            name: held(sorted(v) if name in HEAPS and isinstance(v, list) else v, inside) for name, v in parts.items()
        }
    return repr(value) if isinstance(value, int | float | str | None) else type(value).__name__


IN_TROUBLE = [{"scheduling": policy, "faults": EVERYTHING} for policy in ("before_agg", "burst", "refill", "rounds")]
CHANGES = [
    *({"algorithm": algorithm} for algorithm in ALGORITHMS),
    *IN_TROUBLE,
    {"scheduling": "rounds", "selection": "oort"},
    {"model": "cnn", "model_settings": {"norm": "batch"}},
    {"client_lr": 1e30},  # every update is refused
]


@pytest.mark.parametrize("changes", CHANGES, ids=lambda changes: "-".join(map(str, changes.values()))[:30])
def test_a_restored_run_holds_what_the_saved_one_held(changes):
    """Every stream, counter, buffer and average of server and clock, after each of twelve arrivals."""
    config = Config(**{**configs(changes.get("algorithm", "fedbuff")), **changes, "checkpoint_every": None})
    one, other = Run(config), Run(config)

    def compare(simulation, arrival):
        torch.save(one.state(), file := io.BytesIO())
        file.seek(0)
        other.restore(torch.load(file, weights_only=True))
        for part in ("algorithm", "server_rng", "simulation", "curve_rows"):
            mine, theirs = (held(getattr(run, part)) for run in (one, other))
            assert mine == theirs, [name for name in mine if mine[name] != theirs[name]] or part
        if len(simulation.arrivals) >= 12:
            raise Interrupted

    one.simulation.observers.append(compare)
    with suppress(Interrupted):
        one.finish()
    assert len(one.simulation.arrivals) >= 8


DAMAGE = {
    "empty": lambda content: b"",
    "three bytes": lambda content: content[:3],
    "cut in the head": lambda content: content[:60],
    "a list as a head": lambda content: HEAD + b"[1]\n",
    "one bit of the head": lambda content: content.replace(b'"format"', b'"forma\x00"', 1),
    "cut": lambda content: content[:4000],
    "zeros": lambda content: content[:4000] + bytes(5000),
    "one bit": lambda content: content[:5000] + bytes([content[5000] ^ 1]) + content[5001:],
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(how, tmp_path, monkeypatch):
    path, config = tmp_path / "run.pt", BUFF
    die_after(10, config, path)
    path.write_bytes(DAMAGE[how](path.read_bytes()))
    versions = []
    monkeypatch.setattr(
        Run, "train", lambda run, jobs, train=Run.train: versions.append(run.algorithm.version) or train(run, jobs)
    )
    with pytest.warns(
        UserWarning,
        match=r"run\.pt: checkpoint not used \(cut off or damaged\); the run continues from the previous one",
    ) as told:
        again = run(config, checkpoint=path)
    assert len(told) == 1 and versions[0] == 2  # of the three versions that were saved
    same(again, run(config, checkpoint=tmp_path / "new.pt"))
    assert list(tmp_path.iterdir()) == []


def a_folder(path):
    path.mkdir()
    (path / "thesis.tex").write_text("all of it")


OTHERS = {
    "words": (lambda path: path.write_text("not a checkpoint"), "is not a checkpoint"),
    "zeros": (lambda path: path.write_bytes(bytes(5000)), "is not a checkpoint"),
    "a mapping": (lambda path: torch.save({"format": 1, "config_hash": "x"}, path), "is not a checkpoint"),
    "a list": (lambda path: torch.save([1, 2], path), "is not a checkpoint"),
    "weights": (lambda path: torch.save(torch.nn.Linear(3, 2).state_dict(), path), "is not a checkpoint"),
    "a letter like a head": (lambda path: path.write_bytes(HEAD[:8] + b"?"), "is not a checkpoint"),
    "a pipe": (os.mkfifo, "is not a checkpoint"),
    "a folder": (a_folder, "is a folder; a checkpoint is a file, such as "),
}


@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("place", ["run.pt", "run.previous.pt"])
def test_what_is_no_checkpoint_stops_the_run_and_stays(what, place, tmp_path, monkeypatch):
    make, words = OTHERS[what]
    monkeypatch.setattr(Run, "train", None)
    make(tmp_path / place)
    before = contents(tmp_path)
    with pytest.raises(ResultError, match=f"^{re.escape(str(tmp_path / place))}: {words}"):
        run(BUFF, checkpoint=tmp_path / "run.pt")
    assert contents(tmp_path) == before


WHOSE = {
    "configuration": r"another configuration \(seed is 99, not 5\)",
    "revision": r"this configuration by code of another revision \(algorithm\)",
    "format": r"a run of another format \(3, not \d+\)",
    "data": r"a run on other data \(faults changed since\)",
}


@pytest.mark.parametrize("other", WHOSE)
def test_another_runs_checkpoint_stops_the_run_and_stays(other, tmp_path, monkeypatch):
    path, config = tmp_path / "run.pt", BUFF
    with monkeypatch.context() as before:
        if other == "format":
            before.setattr("asyncfl_lite.runs.store.CHECKPOINT_FORMAT", 3)
        elif other == "revision":
            before.setattr(type(config.make_algorithm()), "revision", 0)
        elif other == "data":
            before.setattr("asyncfl_lite.runs.store.data_of", lambda *_: {"faults": "1234"})
        die_after(10, config.with_seed(99) if other == "configuration" else config, path)
    if other == "data":
        monkeypatch.setattr("asyncfl_lite.runs.store.data_of", lambda *_: {"faults": "5678"})
    held = contents(tmp_path)
    monkeypatch.setattr(Run, "train", None)
    with pytest.raises(ResultError, match=f"run.pt: is the checkpoint of {WHOSE[other]}; name another file"):
        run(config, checkpoint=path)
    assert contents(tmp_path) == held and len(held) == 2


def test_what_comes_to_lie_there_on_the_way_stays(tmp_path):
    path, config = tmp_path / "run.pt", BUFF
    started = Run(config, checkpoint=path)
    started.simulation.observers.append(lambda *_: path.write_text("mine"))
    with pytest.raises(ResultError, match="run.pt: is not a checkpoint"):
        started.finish()
    started.remove_checkpoints()
    assert contents(tmp_path) == {path: b"mine"}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_method_writes_into_what_jobs_share(algorithm, monkeypatch):
    """The package's own methods only read it, so only users' methods are given copies."""
    config = Config(**{**configs(algorithm), "checkpoint_every": None})
    shared = run(config)
    monkeypatch.setattr("asyncfl_lite.simulator.simulation.is_ours", lambda thing: False)
    same(shared, run(config))


def test_a_link_stays_a_link(tmp_path):
    path, config = tmp_path / "run.pt", BUFF
    (tmp_path / "elsewhere").mkdir()
    path.symlink_to(tmp_path / "elsewhere/real.pt")
    die_after(10, config, path)
    assert path.is_symlink() and (tmp_path / "elsewhere/real.pt").is_file()
    run(config, checkpoint=path)
    assert path.is_symlink() and not list((tmp_path / "elsewhere").iterdir())


def test_a_file_that_is_being_written_is_nobodys_link(tmp_path, monkeypatch):
    """A temporary file's name cannot be foreseen, and where it could, nothing is written through it."""
    secret = tmp_path / "secret"
    secret.write_text("keep me")
    monkeypatch.setattr("asyncfl_lite.base.files.secrets.token_hex", lambda size: "0" * 2 * size)
    (tmp_path / f".run.pt.{'0' * 16}.part").symlink_to(secret)
    with pytest.raises(ResultError, match="run.pt: cannot be written .File exists"):
        write_atomically(tmp_path / "run.pt", "overwritten")
    assert secret.read_text() == "keep me"


def test_killed_between_two_names_the_one_before_is_used(tmp_path):
    path, config = tmp_path / "run.pt", BUFF
    die_after(10, config, path)
    path.unlink()
    (tmp_path / ".run.pt.0123456789abcdef.part").write_bytes(b"half of it")
    (tmp_path / ".run.pt.notes.part").write_bytes(b"somebody else's")
    same(run(config, checkpoint=path), run(config, checkpoint=tmp_path / "new.pt"))
    assert list(tmp_path.iterdir()) == [tmp_path / ".run.pt.notes.part"]


def test_what_killed_writes_left_goes_with_the_next_one(tmp_path):
    """A run's folder has one process, so all of it goes; elsewhere a part may belong to a process that still writes."""
    files = ("result.json", "weights.safetensors", *(f"{name}.csv" for name in TABLES))
    for name in files:
        (tmp_path / f".{name}.0123456789abcdef.part").write_bytes(b"half of it")
    (tmp_path / ".curve.csv.notes.part").write_bytes(b"somebody else's")
    run(Config(rounds=2)).save(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*files, ".curve.csv.notes.part"}
    fresh, old = (tmp_path / f".x.txt.{digit * 16}.part" for digit in "01")
    for part in (fresh, old):
        part.write_text("half of it")
    os.utime(old, (0, 0))
    write_atomically(tmp_path / "x.txt", "whole")
    assert fresh.exists() and not old.exists()


def test_loading_executes_nothing(tmp_path):
    """A pickle that would make a file, with the first line and the digest that belong to it."""
    path, config = tmp_path / "run.pt", BUFF

    class Bomb:
        def __reduce__(self):
            return Path.touch, (tmp_path / "executed",)

    buffer = io.BytesIO()
    torch.save({"format": Bomb()}, buffer)
    die_after(4, config, path)
    content = path.read_bytes().partition(b"\n")[0] + b"\n" + buffer.getvalue()
    path.write_bytes(content + hashlib.sha256(content).digest())
    with pytest.warns(UserWarning, match="run.pt: checkpoint not used .*the run starts over") as told:
        run(config, checkpoint=path)
    assert not (tmp_path / "executed").exists()
    (line,) = [str(warning.message) for warning in told if "checkpoint not used" in str(warning.message)]
    assert "neither a tensor nor a plain value" in line  # and not how to read it all the same
    assert not re.search("weights.only|still be loaded|options", line, re.I)
    torch.load(io.BytesIO(buffer.getvalue()), weights_only=False)
    assert (tmp_path / "executed").exists()  # that it would have


def test_saved_by_the_clock_at_any_arrival(tmp_path, monkeypatch):
    seconds, saved = iter(range(10**6)), []
    monkeypatch.setattr("asyncfl_lite.runs.run.time.monotonic", lambda: float(next(seconds)))
    monkeypatch.setattr(
        "asyncfl_lite.runs.store.save_checkpoint",
        lambda path, config, state: saved.append(state["simulation"]["received"]),
    )
    config = Config(**{**configs("fedbuff"), "checkpoint_every": None, "checkpoint_seconds": 5.0})
    run(config, checkpoint=tmp_path / "run.pt")
    assert len(saved) >= 3 and any(count % config.buffer_size for count in saved)
    assert config.hash == Config(**{**configs("fedbuff"), "checkpoint_every": 7}).hash


def test_a_write_that_is_killed_leaves_the_old_file(tmp_path, monkeypatch):
    def killed(self, target):
        raise Interrupted

    write_atomically(tmp_path / "x.txt", "old")
    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(Interrupted):
        write_atomically(tmp_path / "x.txt", "new")
    assert (tmp_path / "x.txt").read_text() == "old"

"""Initial models that were expensive are made once, and never handed to a run that would have made another."""

from __future__ import annotations

import pytest
import torch

from asyncfl_lite import Config
from asyncfl_lite.runs.run import Run
from asyncfl_lite.runs.teacher_chain import TeacherChain

SMALL = {"clients": 6, "concurrency": 3, "buffer_size": 2, "rounds": 1, "local_steps": 1, "partition": "iid"}
CHAIN = {"initial": "teacher_chain", "initial_settings": {"epochs": 1, "teaching_assistants": 0}}


def start(**settings):
    return Run(Config(**{**SMALL, **CHAIN, **settings})).model.flatten()[0]


@pytest.fixture
def trainings(monkeypatch, tmp_path):
    """How often a chain was trained; the cache begins empty."""
    monkeypatch.setenv("ASYNCFL_CACHE", str(tmp_path))
    trained, build = [], TeacherChain.build
    monkeypatch.setattr(TeacherChain, "build", lambda *given: trained.append(1) or build(*given))
    return trained


def test_a_second_run_starts_from_the_same_bits_without_training(trainings):
    first, second = start(), start(algorithm="fedasync", buffer_size=1, client_lr=0.7)
    assert torch.equal(first, second) and len(trainings) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 1},
        {"model_settings": {"hidden": (32,)}},
        {"initial_settings": {"epochs": 2, "teaching_assistants": 0}},
        {"threads": 2},  # which may round differently
        {"algorithm": "fedadt", "buffer_size": 1, "settings": {"kd_fraction": 0.3}},  # a larger labelled set
    ],
)
def test_what_it_depends_on_makes_another(trainings, other):
    first, second = start(), start(**other)
    assert len(trainings) == 2
    assert "threads" in other or first.shape != second.shape or not torch.equal(first, second)


@pytest.mark.parametrize(
    ("place", "name", "other"),
    [(torch.backends.cpu, "get_cpu_capability", lambda: "other"), (torch, "__version__", "other")],
    ids=["instructions", "build"],
)
def test_another_machine_that_shares_the_cache_makes_another(trainings, monkeypatch, place, name, other):
    start()
    monkeypatch.setattr(place, name, other)
    start()
    assert len(trainings) == 2


def flipped(content, place):
    """One bit is another one."""
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def test_a_damaged_file_is_made_anew(trainings, tmp_path):
    first = start()
    (place,) = (tmp_path / "initial").iterdir()
    content = place.read_bytes()
    damaged = [content[:100], b"", content[:-32], *(flipped(content, len(content) * part // 9) for part in range(1, 9))]
    for number, one in enumerate(damaged):
        place.write_bytes(one)
        assert torch.equal(first, start()) and len(trainings) == number + 2
        assert place.read_bytes() == content
    assert torch.equal(first, start()) and len(trainings) == len(damaged) + 1

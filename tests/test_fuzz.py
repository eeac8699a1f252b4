"""Anything at all as a grid, a configuration, a result or a checkpoint: it is read, or refused in one line.

Examples are the same in every run, so that a failure here is one everywhere.
"""

from __future__ import annotations

import copy
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from asyncfl_lite import Config, load_result, run
from asyncfl_lite.base.errors import ConfigError, ResultError
from asyncfl_lite.runs.results import load_complete
from asyncfl_lite.runs.run import Run
from asyncfl_reproduction.grid.cells import expand_grid

BOUNDED = {
    "derandomize": True, "deadline": None, "database": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
}  # fmt: skip
SMALL = {"clients": 4, "concurrency": 2, "buffer_size": 2, "rounds": 2, "local_steps": 1, "checkpoint_every": 1}
TIER = {"tier": "smoke", "papers": ["p.yaml"], "only": ["*"]}
PAPER = {
    "paper": "p",
    "tiers": {"smoke": {"about": "tiny", "seeds": [0, 1], "settings": {"rounds": 5}, "ours": {"clip": "none"}}},
    "cells": {
        "p/{delay}/{method}": {
            "over": {
                "delay": {"large": {"settings": {"delay": "fedecho_large"}}, "mild": {"tiers": {"smoke": {"rounds": 7}}}},
                "method": {"a": {"settings": {"algorithm": "fedbuff"}}, "b": {"published": {"set": "x"}}},
            },
            "without": [{"delay": "mild", "method": ["b"]}],
            "published": [{"artefact": "Table 2", "delay": "{delay}"}],
            "seeds": {"smoke": [4]},
            "settings": {"settings": {}, "delay_settings": {"gamma": 2.0}},
        }
    },
    "definitions": {"a": 1},
}  # fmt: skip
WORDS = ["paper", "tiers", "cells", "smoke", "settings", "seeds", "over", "{delay}", "{", "../x", "self", "digits", "none",
         "fedecho", "iid", "\n", "\x00", "\ud7ff", "1e400", "task", "alpha", "clients", "rounds", "hidden", ""]  # fmt: skip
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.just(10**4000), st.floats(), st.dates(), st.datetimes(),
    st.text(max_size=12), st.binary(max_size=6), st.sampled_from(WORDS), st.sets(st.integers(0, 3), max_size=2),
)  # fmt: skip
KEYS = st.one_of(st.sampled_from(WORDS), st.text(max_size=8), st.integers(), st.none(), st.booleans(), st.dates())
ANYTHING = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)


def places(content: Any, so_far: tuple = ()) -> list[tuple]:
    """Paths to every value in nested mappings and lists."""
    inner = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    return [so_far] + [path for key, value in inner for path in places(value, (*so_far, key))]


@st.composite
def mutated(draw: st.DrawFn, sound: dict) -> Any:
    """``sound`` with up to three values replaced, taken out, or put beside another key."""
    content = copy.deepcopy(sound)
    for _ in range(draw(st.integers(1, 3))):
        *above, last = draw(st.sampled_from(places(content)[1:] or [("paper",)]))
        holder = content
        for key in above:
            holder = holder[key]
        how = draw(st.sampled_from(["replace", "remove", "add"]))
        if how == "remove":
            holder.pop(last, None) if isinstance(holder, dict) else holder.pop(last)
        elif how == "add" and isinstance(holder, dict):
            holder[draw(KEYS)] = draw(ANYTHING)
        else:
            holder[last] = draw(ANYTHING)
    return content


def one_line(error: Exception) -> None:
    assert len(str(error).splitlines()) == 1 and len(str(error)) < 3000


def read_grid(folder: Path, tier: str, paper: str) -> None:
    """Read a grid of these two files, which succeeds or is refused in one line."""
    for name, text in (("smoke", tier), ("p", paper)):
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8", errors="replace")
    try:
        cells = expand_grid(folder / "smoke.yaml")
    except ConfigError as error:
        one_line(error)
    else:
        runs = (folder / "runs").resolve()
        assert cells and all(runs in cell.folder(runs).resolve().parents for cell in cells)


@settings(max_examples=40, **BOUNDED)
@given(content=ANYTHING | mutated(PAPER), as_tier=st.booleans())
def test_any_structure_as_a_grid(content, as_tier, tmp_path):
    text = yaml.dump(content, allow_unicode=True)
    read_grid(tmp_path, text if as_tier else yaml.dump(TIER), yaml.dump(PAPER) if as_tier else text)


CONFIG = Config(algorithm="fedecho").as_dict()


@settings(max_examples=200, **BOUNDED)
@given(content=mutated(CONFIG) | st.dictionaries(st.sampled_from(sorted(CONFIG)), ANYTHING, max_size=3) | ANYTHING)
def test_any_configuration(content):
    try:
        config = Config.from_mapping(content)
    except ConfigError as error:
        one_line(error)
    else:
        assert Config.from_mapping(config.as_dict()).hash == config.hash


@st.composite
def damaged(draw: st.DrawFn, sound: bytes) -> bytes:
    """Some bytes replaced, taken out, put in, or all cut off behind a place; always other than ``sound``."""
    place, size = draw(st.integers(0, len(sound) - 1)), draw(st.integers(1, 64))
    how = draw(st.sampled_from(["bit", "replace", "remove", "insert", "cut"]))
    if how == "bit":
        return sound[:place] + bytes([sound[place] ^ (1 << draw(st.integers(0, 7)))]) + sound[place + 1 :]
    new = b"" if how in ("remove", "cut") else draw(st.binary(min_size=1, max_size=64))
    return sound[:place] + new + (b"" if how == "cut" else sound[place + (0 if how == "insert" else size) :])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run's configuration, the folder of its result, and its last checkpoint."""
    folder, config = tmp_path_factory.mktemp("finished"), Config(**SMALL)
    run(config.model_copy(update={"checkpoint_every": None})).save(folder / "result")
    Run(config, checkpoint=folder / "run.pt").finish()
    return config, folder / "result", folder / "run.pt"


def says(text):
    """What the text of a record says, its digest apart."""
    return [value for name, value in json.loads(text).items() if name in ("config", "summary", "timing", "meaning")]


@pytest.mark.parametrize("name", ["result.json", "curve.csv", "updates.csv", "clients.csv"])
@settings(max_examples=40, **BOUNDED)
@given(data=st.data())
def test_a_damaged_result(name, data, finished):
    config, folder, _ = finished
    sound = (folder / name).read_bytes()
    try:
        (folder / name).write_bytes(data.draw(damaged(sound)))
        found = load_complete(folder, config)
        if found is not None and name == "result.json":  # blanks and the digest's own name may differ
            assert says((folder / name).read_text()) == says(sound)
        else:
            assert found is None or (folder / name).read_bytes() == sound
        load_result(folder)
    except ResultError as error:
        one_line(error)
    finally:
        (folder / name).write_bytes(sound)
    assert load_complete(folder, config) is not None


@settings(max_examples=60, phases=[Phase.generate], **BOUNDED)
@given(data=st.data())
def test_a_damaged_checkpoint(data, finished, tmp_path):
    """It is not used, which a warning says; or its first line is no longer the run's, and the run does not begin."""
    config, _, sound = finished
    path = tmp_path / "run.pt"
    path.write_bytes(content := data.draw(damaged(sound.read_bytes())))
    try:
        fresh = Run(config, checkpoint=path)
    except ResultError as error:
        one_line(error)
        assert path.read_bytes() == content and content.split(b"\n")[0] != sound.read_bytes().split(b"\n")[0]
        return
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        loaded = fresh.resume()
    assert not loaded and any("starts over" in str(warning.message) for warning in told)

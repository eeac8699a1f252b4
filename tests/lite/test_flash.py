"""Phones and networks in FLASH's format: durations by hand, draws, files that cannot be."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from asyncfl_lite import Config, schedule
from asyncfl_lite.base.errors import ConfigError, DataError
from asyncfl_lite.base.streams import stream
from asyncfl_lite.simulator.delays import DELAYS
from asyncfl_lite.simulator.delays.flash import NETWORKS, PHONES, SCORES, FlashLaw

SHARED = Path(os.environ.get("ASYNCFL_DATA") or Path(__file__).parents[2] / "../shared/data").resolve()
STEADY = {"down_u": 100.0, "down_sigma": 0.0, "up_u": 50.0, "up_sigma": 0.0}


def profile(folder: Path, networks=None, scores=None, phones=None) -> Path:
    """Write a tiny profile: phones of score 100, 200 and 400, the first under two names, and a steady network."""
    contents = {
        NETWORKS: {"home": STEADY} if networks is None else networks,
        SCORES: {"Slow": 100, "Middle": 200, "Fast": 400} if scores is None else scores,
        PHONES: {"A1": "Slow", "A2": "Slow", "B": "Middle", "C": "Fast", "D": "unknown"} if phones is None else phones,
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def prepared(folder: Path, count: int = 400, seed: int = 0, **settings):
    return FlashLaw(folder=str(folder), **settings).prepare(np.ones(count), stream(seed, "delays setup"))


def test_worked_durations(tmp_path):
    """Scores 100, 100, 200, 400 have the median 150; 1,000 KiB take 10 s down and 20 s up."""
    delays = prepared(profile(tmp_path), base=60.0, model_bytes=1000 * 1024)
    rng = np.random.default_rng(0)
    durations = np.array([delays.draw(client, rng) for client in range(400)])
    slow, middle, fast = 60 * 150 / 100 + 30, 60 * 150 / 200 + 30, 60 * 150 / 400 + 30
    assert set(durations.round(9)) == {slow, middle, fast}
    shares = [np.isclose(durations, one).mean() for one in (slow, middle, fast)]
    np.testing.assert_allclose(shares, [0.5, 0.25, 0.25], atol=0.1)


def test_a_clients_phone_stays_and_its_rates_are_drawn_anew(tmp_path):
    """A rate of N(100, 80) drawn until above 0 has mean 100 + 80 φ(1.25) / Φ(1.25), and 0.5 / Φ(1.25) above 100."""
    spread = {"wild": {"down_u": 100.0, "down_sigma": 80.0, "up_u": 50.0, "up_sigma": 0.0}}
    delays = prepared(profile(tmp_path, networks=spread), base=7.0, model_bytes=1024 * 100)
    rng = np.random.default_rng(0)
    drawn = np.array([delays.draw(0, rng) for _ in range(20_000)])
    rates = 100 / (drawn - delays.compute[0] - 100 / 50)
    assert len(np.unique(rates)) == 20_000 and rates.min() > 0
    assert rates.mean() == pytest.approx(116.34, abs=2.0)
    assert (rates > 100).mean() == pytest.approx(0.559, abs=0.015)


def test_without_a_model_there_is_only_the_phone(tmp_path):
    delays = prepared(profile(tmp_path), base=8.0, model_bytes=0)
    assert {delays.draw(client, np.random.default_rng(1)) for client in range(400)} == {12.0, 6.0, 3.0}


def test_the_seed_decides_and_networks_are_dealt_alike(tmp_path):
    networks = {name: {**STEADY, "up_u": rate} for name, rate in (("a", 10.0), ("b", 20.0), ("c", 30.0))}
    place = profile(tmp_path, networks=networks)
    one, again, other = (prepared(place, count=900, seed=seed) for seed in (0, 0, 1))
    assert (one.network == again.network).all() and (one.compute == again.compute).all()
    assert not (one.network == other.network).all()
    counts = np.unique(one.links[one.network, 2], return_counts=True)
    assert counts[0].tolist() == [10.0, 20.0, 30.0] and counts[1].min() > 250


def test_it_is_found_and_runs(tmp_path, monkeypatch):
    profile(tmp_path / "data" / "flash-devices")
    monkeypatch.setenv("ASYNCFL_DATA", str(tmp_path / "data"))
    assert DELAYS.get("flash") is FlashLaw
    config = Config(delay="flash", clients=6, concurrency=3, buffer_size=2, rounds=4)
    updates = schedule(config).updates
    assert len(updates) == 8 and (updates["arrived_at"] > updates["dispatched_at"]).all()
    monkeypatch.setenv("ASYNCFL_DATA", str(tmp_path / "data" / "flash-devices"))
    assert schedule(config).updates.equals(updates)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"networks": {"a": {**STEADY, "up_u": 0}}}, f"{NETWORKS}: a.up_u must be a number above 0, got 0$"),
        (
            {"networks": {"a": {**STEADY, "up_sigma": -1}}},
            f"{NETWORKS}: a.up_sigma must be a number of at least 0, got -1$",
        ),
    ],
)
def test_a_bad_file_is_one_line_that_names_it(tmp_path, files, message):
    with pytest.raises(DataError, match=message) as error:
        prepared(profile(tmp_path, **files))
    assert "\n" not in str(error.value)


def test_a_base_below_zero_is_one_line():
    with pytest.raises(ConfigError, match="^base: .*got -1"):
        FlashLaw(base=-1)


@pytest.mark.skipif(not (SHARED / "flash-devices").is_dir(), reason="needs FLASH's files beside the repository")
def test_the_published_profiles():
    delays = prepared(SHARED, count=3000, model_bytes=0)
    assert delays.links.shape == (19, 4) and len(np.unique(delays.network)) == 19
    assert delays.links[:, 0].min() == pytest.approx(2370.2, abs=0.1) and delays.links[:, 0].max() < 17_334
    assert 60 < len(np.unique(delays.compute)) <= 115
    assert np.median(delays.compute) == pytest.approx(60, rel=0.15)
    assert delays.compute.max() / delays.compute.min() > 20

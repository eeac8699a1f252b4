from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from asyncfl_lite import Config
from asyncfl_lite.base.errors import DataError
from asyncfl_lite.base.streams import stream
from asyncfl_lite.cli import main
from asyncfl_lite.runs.assembly import schedule
from asyncfl_lite.runs.results import load_complete
from asyncfl_lite.runs.run import run_in
from asyncfl_lite.simulator.delays import DELAYS, ClientDelays, DelayLaw, size_rank
from conftest import line

REQUIRED = {"uniform": {"low": 0.5, "high": 2}, "per_client": {"durations": (1, 2, 5)}, "bandwidth": {"megabytes": 1}}
FEDECHO = ["fedecho_large", "fedecho_mild"]


def prepared(name: str, num_samples, seed: int = 0, **parameters) -> ClientDelays:
    return DELAYS.get(name)(**parameters).prepare(np.asarray(num_samples), stream(seed, "delays setup"))


def draws(delays: ClientDelays, client: int, count: int, seed: int = 0) -> np.ndarray:
    rng = stream(seed, "delays")
    return np.array([delays.draw(client, rng) for _ in range(count)])


def parameters_of(name: str, folder: Path) -> dict:
    if name == "trace":
        return {"path": write(folder, "client,seconds\n" + "".join(f"{i},{i + 1}\n" for i in range(30)))}
    return REQUIRED.get(name, {})


def write(folder: Path, text: str) -> Path:
    path = folder / "trace.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", list(DELAYS))
def test_every_law_gives_finite_durations_that_only_the_seeds_decide(name, tmp_path):
    sizes = np.arange(30) + 10
    parameters = parameters_of(name, tmp_path)
    delays, again = (prepared(name, sizes, seed=3, **parameters) for _ in range(2))
    for client in range(30):
        durations = draws(delays, client, 20, seed=client)
        assert np.isfinite(durations).all() and (durations >= 0).all()
        assert (durations == draws(again, client, 20, seed=client)).all()
    assert type(delays.draw(0, stream(0, "delays"))) is float
    assert delays.categories == again.categories
    assert delays.categories is None or len(delays.categories) == 30


@pytest.mark.parametrize("name", sorted(set(DELAYS) - {"trace"}))
def test_a_million_clients_take_no_more_than_a_few_numbers_each(name):
    delays = prepared(name, np.ones(1_000_000, dtype=int), **REQUIRED.get(name, {}))
    arrays = [value for value in vars(delays).values() if isinstance(value, np.ndarray)]
    assert sum(array.nbytes for array in arrays) <= 24 * 1_000_000
    assert delays.draw(999_999, stream(0, "delays")) >= 0


@pytest.mark.parametrize("name", FEDECHO)
@pytest.mark.parametrize("gamma", [0, 0.1, 1, 10])
def test_fifty_clients_are_5_long_15_medium_30_short(name, gamma):
    categories = prepared(name, np.arange(50), gamma=gamma).categories
    assert [categories.count(kind) for kind in ("long", "medium", "short")] == [5, 15, 30]


@settings(max_examples=150, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 5), min_size=1, max_size=120),
    gamma=st.sampled_from([0, 1e-3, 0.1, 1, 10, 1e9]),
    seed=st.integers(0, 2**32),
)
def test_at_most_a_tenth_of_the_clients_is_long(sizes, gamma, seed):
    delays = prepared("fedecho_large", sizes, seed=seed, gamma=gamma)
    assert delays.categories.count("long") <= len(sizes) / 10


@pytest.mark.parametrize("gamma", [0, 1e-7])
def test_without_gamma_the_category_is_the_size_rank(gamma):
    sizes = np.random.default_rng(1).permutation(50)
    categories = prepared("fedecho_large", sizes, gamma=gamma).categories
    assert [categories[client] for client in np.argsort(sizes)] == ["short"] * 30 + ["medium"] * 15 + ["long"] * 5


def test_with_a_large_gamma_category_and_size_are_independent():
    sizes = np.arange(4000)
    index = prepared("fedecho_large", sizes, gamma=1e6).category_index
    table = [np.bincount(index[half], minlength=3) for half in (sizes < 2000, sizes >= 2000)]
    assert stats.chi2_contingency(table).pvalue > 0.01


def test_size_rank_runs_from_0_to_1_and_is_shared_by_equals():
    assert size_rank(np.array([30, 10, 20])).tolist() == [1.0, 0.0, 0.5]
    assert size_rank(np.array([5, 5, 9, 1, 5])).tolist() == [0.5, 0.5, 1.0, 0.0, 0.5]
    assert size_rank(np.array([5])).tolist() == [0.0]


DISTRIBUTED = [  # a law and its settings, a category, and how durations are distributed
    *((name, {}, kind, stats.uniform(low, high - low))
      for name, longest in {"fedecho_large": (50, 80), "fedecho_mild": (10, 20)}.items()
      for kind, (low, high) in {"short": (1, 2), "medium": (3, 5), "long": longest}.items()),
    ("fedadt", {}, None, stats.uniform(0, 5000)),
    ("exponential", {"mean": 4}, None, stats.expon(scale=4)),
    ("uniform", {"low": 2, "high": 3}, None, stats.uniform(2, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "parameters", "kind", "expected"), DISTRIBUTED)
def test_durations_are_distributed_as_printed(name, parameters, kind, expected):
    """Claim FE-T1-a, among others: empirical low and high match."""
    delays = prepared(name, np.arange(50), **parameters)
    durations = draws(delays, delays.categories.index(kind) if kind else 1, 3000)
    assert stats.kstest(durations, expected.cdf).pvalue > 0.01
    low, high = expected.support()
    assert low <= durations.min() < expected.ppf(0.01) and expected.ppf(0.99) < durations.max() <= high


def test_fedrevive_means_have_the_printed_shares():
    delays = prepared("fedrevive", np.ones(100_000))
    values, counts = np.unique(delays.mean, return_counts=True)
    assert values.tolist() == [1.0, 1.3, 1.6]
    assert counts / 100_000 == pytest.approx([0.25, 0.5, 0.25], abs=0.006)
    values, counts = np.unique(delays.low.round(9), return_counts=True)
    assert values.tolist() == [0.23, 0.33]
    assert counts / 100_000 == pytest.approx([0.5, 0.5], abs=0.006)
    assert delays.width == pytest.approx(0.04)
    assert abs(np.corrcoef(delays.mean, delays.low)[0, 1]) < 0.01


@pytest.mark.parametrize(("name", "mean", "least"), [("fedrevive", 1.60, 0.23), ("fedrevive_shift", 0.195, 0.06)])
def test_fedrevive_round_trip(name, mean, least):
    delays, rng = prepared(name, np.ones(40_000)), stream(0, "delays")
    durations = np.array([delays.draw(client, rng) for client in range(40_000)])
    assert durations.mean() == pytest.approx(mean, rel=0.02)
    assert least <= durations.min() < least * 1.05


def test_kuiper_seconds_are_three_epochs_and_a_test_pass():
    seconds = {
        "kuiper_hmdb51": [3 * 391.1 + 181.4, 3 * 293.1 + 116.3, 3 * 121.3 + 89.4, 3 * 84.5 + 68.3],
        "kuiper_ucf101": [3 * 2691.6 + 621.3, 3 * 2001.4 + 381.2, 3 * 821.9 + 322.5, 3 * 572.1 + 217.7],
    }
    for name, expected in seconds.items():
        delays = prepared(name, np.ones(12))
        assert [delays.draw(client, stream(0, "delays")) for client in range(12)] == expected * 3
        assert delays.categories == ["Nano", "TX2", "NX", "AGX"] * 3


@pytest.mark.parametrize(("num_clients", "each"), [(12, 4), (6, 2), (24, 8), (1, 1)])
def test_kuiper_stragglers_are_thirds(num_clients, each):
    delays = prepared("kuiper_straggler", np.ones(num_clients))
    durations = [delays.draw(client, stream(0, "delays")) for client in range(num_clients)]
    fastest = 3 * 84.5 + 68.3  # seconds of the AGX board on HMDB51
    assert durations == [kind * fastest for kind in (1, 3, 5) for _ in range(each)][:num_clients]
    assert set(delays.categories) <= {"1x", "3x", "5x"}


def test_simple_laws():
    assert set(draws(prepared("constant", np.ones(2), duration=1.7), 1, 5)) == {1.7}
    repeated = prepared("per_client", np.ones(5), durations=(1, 2, 5))
    assert [repeated.draw(client, stream(0, "delays")) for client in range(5)] == [1, 2, 5, 1, 2]


class Doubling(DelayLaw):
    """Slower with each client: i takes between i + 1 and 2 (i + 1)."""

    def prepare(self, num_samples, rng):
        return SimpleNamespace(draw=lambda client, rng: (client + 1) * (1 + rng.random()))  # all that is asked for


@pytest.mark.parametrize("faults", [{}, {"duplicate": 0.3, "crash": 0.2}])
def test_a_law_that_can_only_draw_runs_to_the_end(monkeypatch, tmp_path, capsys, faults):
    monkeypatch.setitem(DELAYS._entries, "doubling", Doubling)
    config = Config(delay="doubling", clients=6, concurrency=3, buffer_size=2, rounds=6, faults=faults)
    result = run_in(tmp_path, config)
    if not faults:
        drawn = result.updates["arrived_at"] - result.updates["dispatched_at"]
        assert (drawn / (result.updates["client"] + 1)).between(1, 2).all()
        assert schedule(config).updates["arrived_at"].equals(result.updates["arrived_at"])
    again = load_complete(tmp_path, config)
    assert again.summary == result.summary and set(again.clients["category"]) == {""} == set(result.clients["category"])
    assert result.plot().axes[0].get_xlabel() == "virtual time"
    assert main(["run", "--delay", "doubling", "--clients", "6", "--concurrency", "3", "--rounds", "2"]) == 0
    assert main(["list"]) == 0 and "Slower with each client: i takes" in capsys.readouterr().out


def test_a_trace_draws_each_row_of_its_client_equally(tmp_path):
    path = write(tmp_path, "\ufeffclient,note,seconds\n1,a,4\n0,b,1.5\n1,c,6\n\n9,d,99\n1,e,0\n")
    delays = prepared("trace", np.ones(2), path=path)
    assert set(draws(delays, 0, 20)) == {1.5}
    values, counts = np.unique(draws(delays, 1, 3000), return_counts=True)
    assert values.tolist() == [0, 4, 6]
    assert stats.chisquare(counts).pvalue > 0.01


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("0,1\n1,x\n", "line 3: seconds must be a number of at least 0, got 'x'"),
        ("0,-1\n1,1\n", "line 2: seconds must be a number of at least 0, got '-1'"),
        ("0,1\n1,nan\n", "line 3: seconds must be a number of at least 0, got 'nan'"),
        ("0,1\n1,inf\n", "line 3: seconds must be a number of at least 0, got 'inf'"),
        ("0,1\n1\n", "line 3: seconds must be a number of at least 0, got None"),
        ("0,1\none,1\n", "line 3: client must be a whole number of at least 0, got 'one'"),
        ("0,1\n-1,1\n", "line 3: client must be a whole number of at least 0, got '-1'"),
        ("0,1\n2,1\n", "no row for client 1 of 2"),
        ("", "no row for client 0 of 2"),
    ],
)
def test_a_bad_trace_is_one_line_that_names_the_file_and_the_place(tmp_path, rows, message):
    path = write(tmp_path, "client,seconds\n" + rows)
    told = line(lambda: prepared("trace", np.ones(2), path=path), DataError)
    assert told.startswith(str(path)) and told.endswith(message)


def test_streams_are_separate():
    """What a law drew for its clients does not move the draws for their jobs."""
    first = prepared("fedecho_large", np.arange(50), gamma=0.1)
    second = prepared("fedecho_large", np.arange(50), gamma=10)
    for kind in first.category_names:
        clients = first.categories.index(kind), second.categories.index(kind)
        assert (draws(first, clients[0], 5) == draws(second, clients[1], 5)).all()

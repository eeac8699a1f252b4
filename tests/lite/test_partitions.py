import cProfile
import pstats

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from asyncfl_lite import Config, Task
from asyncfl_lite.base.errors import ConfigError, DataError
from asyncfl_lite.base.streams import stream
from asyncfl_lite.runs.assembly import deal_out, make_simulation
from asyncfl_lite.simulator.clock_only import VersionCounter
from asyncfl_lite.tasks.partitions import PARTITIONS, deal, donations, label_counts, total_variation

LABEL_PARTITIONS = sorted(set(PARTITIONS) - {"natural", "given"})
ONCE = sorted(set(LABEL_PARTITIONS) - {"dirichlet_wrap", "pathological"})
DIRICHLET = [name for name in PARTITIONS if name.startswith("dirichlet")]
BIAS = ["noniid_bias", "noniid_bias_fang", "noniid_bias_part"]


def split(name: str, labels, num_clients: int, seed: int = 0, owners=None, **parameters) -> list[np.ndarray]:
    return PARTITIONS.get(name)(**parameters).split(labels, num_clients, stream(seed, "partition"), owners=owners)


def balanced(num_samples: int, num_classes: int) -> np.ndarray:
    return np.arange(num_samples) % num_classes


@settings(max_examples=120, deadline=None)
@given(
    name=st.sampled_from(ONCE),
    labels=st.lists(st.integers(-2, 12), min_size=1, max_size=200),
    num_clients=st.integers(1, 30),
    strength=st.sampled_from([1e-3, 0.03, 0.1, 0.5, 1]),
    seed=st.integers(0, 2**32),
)
def test_every_index_is_used_exactly_once(name, labels, num_clients, strength, seed):
    num_clients = min(num_clients, len(labels))
    parameters = {} if name in ("iid", "shard") else {"bias": strength} if name in BIAS else {"alpha": strength}
    if name == "dirichlet_class":
        parameters["min_size"] = len(labels) // num_clients if seed % 2 else 0
    parts = split(name, np.array(labels), num_clients, seed=seed, **parameters)
    assert len(parts) == num_clients
    assert np.sort(np.concatenate(parts)).tolist() == list(range(len(labels)))
    assert all(part.dtype == np.int64 and (np.diff(part) > 0).all() for part in parts)
    if "min_size" in parameters:
        assert min(len(part) for part in parts) >= parameters["min_size"]


@pytest.mark.parametrize("name", sorted(set(PARTITIONS) - {"given"}))
def test_the_seed_decides_the_split(name):
    labels, owners = balanced(2000, 10), np.arange(2000) // 50
    first, again, other = (split(name, labels, 20, seed=seed, owners=owners) for seed in (1, 1, 2))
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert any(a.tolist() != b.tolist() for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("name", LABEL_PARTITIONS)
def test_labels_may_be_words_or_leave_numbers_out(name):
    words = np.array(["cat", "dog", "elk"])[balanced(300, 3)]
    gaps = np.array([-5, 7, 1000])[balanced(300, 3)]
    for a, b in zip(split(name, words, 5), split(name, gaps, 5), strict=True):
        assert a.tolist() == b.tolist()


def test_iid_sizes_differ_by_at_most_one():
    assert sorted(len(part) for part in split("iid", balanced(103, 10), 10)) == [10] * 7 + [11] * 3


def test_natural_gives_each_client_one_owner_whole():
    owners = np.array(["ann", "bob", "cy", "dee"])[np.random.default_rng(0).integers(4, size=80)]
    parts = split("natural", balanced(80, 10), 3, owners=owners)
    chosen = [set(owners[part]) for part in parts]
    assert all(len(names) == 1 for names in chosen) and len(set.union(*chosen)) == 3
    assert all(len(part) == (owners == owners[part[0]]).sum() for part in parts)


@pytest.mark.parametrize("name", DIRICHLET)
def test_a_large_alpha_is_iid_and_a_small_one_is_not(name):
    labels = balanced(20_000, 10)
    parts = [split(name, labels, 20, alpha=alpha) for alpha in (0.1, 1, 100, 1e8)]
    distances = [total_variation(label_counts(labels, one, 10)) for one in parts]
    assert distances == sorted(distances, reverse=True)
    assert distances[0] > 0.4 and distances[-1] < 0.05


@pytest.mark.parametrize(
    ("name", "alpha", "total"),
    [("dirichlet_client", 2, 20), ("dirichlet_wrap", 2, 20), ("dirichlet_flgo", 20, 20), ("dirichlet_flgo", 2, 2)],
)
def test_class_mixes_of_clients_are_dirichlet(name, alpha, total):
    """The share of one of C equal classes is Beta(total / C, ...), of mean 1 / C and known variance."""
    labels = balanced(100_000, 10)
    counts = label_counts(labels, split(name, labels, 200, alpha=alpha), 10)
    shares = counts / counts.sum(axis=1, keepdims=True)
    assert shares.mean() == pytest.approx(0.1)
    assert shares.var() == pytest.approx(0.1 * 0.9 / (total + 1), rel=0.15)


def test_deal_keeps_the_counts_and_shuffles_within_a_class():
    kinds, counts = balanced(300, 3), np.array([[50, 0, 50], [10, 20, 70], [0, 0, 100]])
    first, second = (deal(kinds, counts, stream(seed, "partition")) for seed in (0, 1))
    for clients in (first, second):
        assert [np.bincount(clients[kinds == kind], minlength=3).tolist() for kind in range(3)] == counts.tolist()
    assert (first != second).any() and (np.diff(first[kinds == 0]) < 0).any()


def test_class_shares_over_clients_are_dirichlet():
    """A client's share of a class is Beta(alpha, (N - 1) alpha): mean 1 / N and a known variance."""
    labels = balanced(100_000, 100)
    shares = label_counts(labels, split("dirichlet_class", labels, 20, alpha=0.5, min_size=0), 100) / 1000
    assert shares.var() == pytest.approx((1 / 20) * (19 / 20) / (20 * 0.5 + 1), rel=0.1)


@settings(max_examples=100, deadline=None)
@given(sizes=st.lists(st.integers(0, 30), min_size=1, max_size=12), share=st.floats(0, 1))
def test_donations_come_from_the_largest(sizes, share):
    sizes = np.array(sizes)
    total = int(share * sizes.sum())
    given_away = donations(sizes, total)
    assert given_away.sum() == total and (given_away >= 0).all()
    one_by_one = sizes.copy()
    for _ in range(total):
        one_by_one[one_by_one.argmax()] -= 1
    assert sorted(sizes - given_away) == sorted(one_by_one)


def test_flgo_mixes_are_matched_to_the_class_frequencies():
    prior = np.array([0.5, 0.3, 0.15, 0.05])
    law = PARTITIONS.get("dirichlet_flgo")(alpha=0.5)
    mixes = law.matched_mixes(prior, 100, stream(0, "partition"))
    assert mixes.sum(axis=1) == pytest.approx(1)
    assert ((mixes.mean(axis=0) - prior) ** 2).sum() <= 1e-6
    sizes = [len(part) for part in split("dirichlet_flgo", balanced(50_000, 10), 100)]
    assert np.abs(np.array(sizes) - 500).max() < 50


def client_by_client(kinds, num_clients, size, alpha, rng) -> list[list[int]]:
    """What ``dirichlet_wrap`` says, one client after another, as FedRevive's authors deal samples out."""
    num_classes = kinds.max() + 1
    counts = []
    for mix in rng.dirichlet(np.full(num_classes, alpha), size=num_clients):
        row = np.rint(mix * size).astype(int)
        if (missing := size - row.sum()) > 0:
            row[rng.integers(num_classes)] += missing
        for _ in range(-missing):
            row[row.argmax()] -= 1
        counts.append(row)
    parts = [[] for _ in range(num_clients)]
    for kind in range(num_classes):
        everything = unused = rng.permutation(np.flatnonzero(kinds == kind))
        for part, count in zip(parts, np.array(counts)[:, kind], strict=True):
            if count > len(unused):
                unused = rng.permutation(everything)
            part += unused[:count].tolist()
            unused = unused[count:]
    return [sorted(part) for part in parts]


@settings(max_examples=60, deadline=None)
@given(
    labels=st.lists(st.integers(0, 5), min_size=1, max_size=120),
    num_clients=st.integers(1, 60),
    size=st.sampled_from([1, 2, 7, 40, 350]),
    alpha=st.sampled_from([1e-3, 0.5, 1e4]),
    seed=st.integers(0, 2**32),
)
def test_wrapped_parts_are_those_that_are_dealt_client_by_client(labels, num_clients, size, alpha, seed):
    kinds = np.unique(labels, return_inverse=True)[1]
    streams = stream(seed, "partition"), stream(seed, "partition")
    parts = PARTITIONS.get("dirichlet_wrap")(alpha=alpha, samples_per_client=size).split(
        labels, num_clients, streams[0]
    )
    assert [part.tolist() for part in parts] == client_by_client(kinds, num_clients, size, alpha, streams[1])
    assert streams[0].bit_generator.state == streams[1].bit_generator.state


@pytest.mark.parametrize(
    "settings",
    [
        {"partition": "dirichlet_wrap", "alpha": 0.5, "partition_settings": {"samples_per_client": 10}},
        {"partition": "iid"},
    ],
)
def test_setting_up_calls_next_to_nothing_for_each_client(settings):
    points = torch.zeros(20_000, 1)
    task = Task.from_tensors(points, points[:, 0].long(), points[:1], points[:1, 0].long())

    def calls(clients: int) -> int:
        config = Config(clients=clients, concurrency=5, **settings)
        with cProfile.Profile() as profile:
            make_simulation(config, deal_out(config, task), VersionCounter(1))
        return pstats.Stats(profile).total_calls

    calls(100)  # what is made once
    assert (calls(20_000) - calls(10_000)) / 10_000 < 6


@pytest.mark.parametrize(
    ("name", "bias", "own", "other"),
    [
        ("noniid_bias", 0, 0.25, 0.25),
        ("noniid_bias", 0.5, 0.625, 0.125),
        ("noniid_bias", 0.8, 0.85, 0.05),
        ("noniid_bias", 1, 1, 0),
        ("noniid_bias_fang", 0, 0.25, 0.25),
        ("noniid_bias_fang", 0.25, 0.25, 0.25),
        ("noniid_bias_fang", 0.8, 0.8, 0.2 / 3),
        ("noniid_bias_fang", 1, 1, 0),
    ],
)
def test_group_probabilities_of_four_groups(name, bias, own, other):
    matrix = PARTITIONS.get(name)(bias=bias).group_probabilities(np.array([3, 3, 3, 3]))
    assert matrix == pytest.approx(np.full((4, 4), other) + (own - other) * np.eye(4))
    labels = balanced(40_000, 4)
    counts = label_counts(labels, split(name, labels, 4, bias=bias), 4)
    assert np.sort(counts / 10_000, axis=1) == pytest.approx(np.sort(matrix, axis=1), abs=0.02)


@pytest.mark.parametrize("name", BIAS)
@pytest.mark.parametrize(("num_clients", "num_classes"), [(4, 4), (12, 51), (7, 10), (25, 10)])
def test_without_bias_label_histograms_are_iid(name, num_clients, num_classes):
    labels = balanced(20_000, num_classes)
    counts = label_counts(labels, split(name, labels, num_clients, bias=0), num_classes)
    assert stats.chi2_contingency(counts).pvalue > 0.01
    assert stats.chisquare(counts.sum(axis=1)).pvalue > 0.01


@pytest.mark.parametrize("name", BIAS)
@pytest.mark.parametrize(("num_clients", "num_classes"), [(1, 10), (4, 4), (12, 51), (7, 10)])
def test_full_bias_gives_disjoint_labels(name, num_clients, num_classes):
    labels = balanced(5000, num_classes)
    held = label_counts(labels, split(name, labels, num_clients, bias=1), num_classes) > 0
    assert (held.sum(axis=0) == 1).all()
    assert held.sum(axis=1).max() - held.sum(axis=1).min() <= 1


def test_groups_share_their_labels_among_their_clients():
    labels = balanced(5000, 6)
    held = label_counts(labels, split("noniid_bias", labels, 10, bias=1, groups=2), 6) > 0
    assert (held[:5] == held[0]).all() and (held[5:] == ~held[0]).all() and held[0].sum() == 3


def part_of(clients: int, seed: int = 0, **settings) -> list[list[int]]:
    name = "noniid_bias_part" if settings else "noniid_bias"
    return [part.tolist() for part in split(name, balanced(1200, 40), clients, seed, bias=0.8, **settings)]


def test_who_is_left_of_a_federation_has_what_it_has_in_the_whole():
    assert part_of(8, of=12) == part_of(12)[:8]
    assert part_of(12, of=None) == part_of(12)  # nobody is left out unless asked for
    chosen = [part_of(12, seed).index(part_of(1, seed, of=12, chosen="random")[0]) for seed in range(8)]
    assert len(set(chosen)) > 3
    three = part_of(3, of=12, chosen="random")
    assert len(np.unique(np.concatenate(three))) == sum(map(len, three))
    with pytest.raises(ConfigError, match=r"of: must be at least the run's 5 clients, got 4"):
        part_of(5, of=4)


def test_label_counts_and_total_variation():
    labels = np.array([0, 0, 1, 1])
    counts = label_counts(labels, [np.array([0, 1]), np.array([2, 3]), np.array([], dtype=np.int64)], 3)
    assert counts.tolist() == [[2, 0, 0], [0, 2, 0], [0, 0, 0]]
    assert total_variation(counts) == 0.5
    assert total_variation(np.array([[1, 3], [2, 6]])) == 0
    with pytest.raises(DataError, match="^labels: must be 0 to 0, got 0 to 1$"):
        label_counts(labels, [np.array([0])], 1)
    with pytest.raises(DataError, match="^counts: no client holds a sample$"):
        total_variation(np.zeros((2, 2)))

"""The league: who may enter, equal budgets, nothing run twice, standings of known answers, a page that stands alone."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml
from test_plugins import LAW, forget

from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.base.errors import SimulationError
from asyncfl_lite.cli import main
from asyncfl_lite.runs.store import read_record
from asyncfl_reproduction import home
from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.grid.record import CURVES, RUNS
from asyncfl_reproduction.grid.run import Report, run_seeds, summarise_cell
from asyncfl_reproduction.league import enter as entering
from asyncfl_reproduction.league import recording
from asyncfl_reproduction.league import run as running
from asyncfl_reproduction.league.costs import costs
from asyncfl_reproduction.league.entry import Entry, code_digest, read_entry
from asyncfl_reproduction.league.field import Place, read_places
from asyncfl_reproduction.league.run import Newcomer
from asyncfl_reproduction.league.standings import BETTER, EQUIVALENT, TARGET_SHARE, WORSE, ranked, standings
from asyncfl_reproduction.parquet import read_table, write_table
from asyncfl_reproduction.statistics import ERROR_LEVEL, contrast
from asyncfl_reproduction.tuning import search as carried_out
from asyncfl_reproduction.tuning.grids import points_of
from asyncfl_reproduction.verdict_words import OPEN

ROOT = Path(__file__).parents[2]
LEAGUE = ROOT / "asyncfl_reproduction/cells/league.yaml"
SMALL = {"task": "digits", "clients": 6, "concurrency": 4, "rounds": 4, "buffer_size": 2, "eval_every": 1,
         "local_epochs": 1, "model_settings": {"hidden": [8]}}  # fmt: skip
OWN = {
    "fedbuff": {},
    "ca2fl": {},
    "fedasync": {"rounds": 8, "buffer_size": 1, "eval_every": 2},
    "fedavg": {"rounds": 2, "buffer_size": 4},
}
TRIED = {"client_lr": [0.1, 0.3], "server_lr": [0.5, 1.0]}
STUDIES = {
    "seeds": [100],
    "studies": {
        "league-digits-large": {
            "about": "tiny",
            "settings": {**SMALL, "delay": "fedecho_large"},
            "methods": {
                method: {"settings": own, "tuned": TRIED, "printed": {"client_lr": [0.1, 0.3], "server_lr": [1.0]}}
                if method != "fedasync"
                else {"settings": own, "tuned": {"client_lr": [0.1, 0.3], "settings.mixing": [0.3, 0.6]}}
                for method, own in OWN.items()
            },
        }
    },
}
CELLS = {
    "paper": "league",
    "tiers": {"league": {"seeds": [0, 1, 2, 3, 4, 5], "settings": SMALL}},
    "cells": {
        "league/digits/large/{method}": {
            "over": {"method": {method: {"settings": {"algorithm": method, **own}} for method, own in OWN.items()}},
            "settings": {"delay": "fedecho_large", "tuned": "league-digits-large"},
        }
    },
}
METHOD = '''
from asyncfl_lite.algorithms import ALGORITHMS, About, FedBuff

@ALGORITHMS.register("mine")
class Mine(FedBuff):
    """FedBuff by another name."""
    about = About("Mine", paper="an example", models_stored="2")
    GRID = {"server_lr": [0.5, 1.0]}
'''
TWO = METHOD + METHOD.replace("mine", "yours").replace("Mine", "Yours")
RULE_BREAKER = (
    METHOD
    + """
    def new_version(self, x):
        return super().new_version(self.x.copy_(x))
"""
)
EVERY_OTHER = (
    METHOD.replace('    GRID = {"server_lr": [0.5, 1.0]}\n', "")
    + """
    def __init__(self, **options):
        super().__init__(**options)
        self.buffer_size = 3
"""
)


def in_this_process(cells, runs, *, workers=1, finished=None):
    """What a grid leaves, without a kernel for each cell."""
    report = Report()
    for cell in cells:
        if cell.waits_for is not None or cell.is_complete(Path(runs)):
            report.skipped.append(cell.name)
            continue
        run_seeds(cell.config.as_dict(), cell.seeds, cell.folder(Path(runs)))
        summarise_cell(cell, Path(runs))
        report.done.append(cell.name)
        if finished is not None:
            finished(cell)
    return report


@pytest.fixture(scope="module")
def field(tmp_path_factory):
    """A tier of tiny cells, recorded, with what their methods tried."""
    folder = tmp_path_factory.mktemp("field")
    (folder / "league.yaml").write_text("tier: league\npapers: [cells.yaml]\ncolumns: [tuned, printed]\n")
    (folder / "tuning.yaml").write_text(yaml.safe_dump(STUDIES, sort_keys=False))
    (folder / "cells.yaml").write_text(yaml.safe_dump(CELLS, sort_keys=False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(home, "RESULTS", folder / "results")
        patch.setattr(recording, "run_grid", in_this_process)
        patch.setattr(carried_out, "EXTENSIONS", 0)
        costs_said = []
        recording.record_field(folder / "league.yaml", folder / "runs", folder / "results",
                               allowed=costs_said.append, say=lambda line: None)  # fmt: skip
        assert len(costs_said) == 1 and costs_said[0].hours > 0
        assert recording.searches_left(folder / "league.yaml") == []
    return folder


@pytest.fixture
def stranger(field, tmp_path, monkeypatch):
    """A folder with nothing in it, and the command as somebody types it there; every run that it makes is noted."""
    monkeypatch.setattr(home, "RESULTS", field / "results")
    monkeypatch.setattr(running, "run_grid", in_this_process)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    ran: list[int] = []
    real = carried_out.results_of
    monkeypatch.setattr(carried_out, "results_of", lambda configs: ran.append(len(configs)) or real(configs))

    def command(*more: str, source: str | None = METHOD, results: Path = field / "results") -> int:
        if source is not None:
            forget(tmp_path)
            (tmp_path / "my_method.py").write_text(source)
        return main(["league", "my_method.py", "--tier", str(field / "league.yaml"), "--results", str(results),
                     "--workers", "1", *more])  # fmt: skip

    yield SimpleNamespace(command=command, ran=ran, runs=tmp_path / "runs/league")
    forget(tmp_path)


@pytest.fixture
def trusted(monkeypatch):
    """The rules are not checked, which takes seconds and is shown elsewhere."""
    monkeypatch.setattr(entering, "check_rules", lambda entry: None)


# --- who may enter -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (LAW, "my_method.py: holds no method"),
        ("x = 1", "registers nothing"),
        ("x =", "cannot be imported (SyntaxError"),
        (TWO, "my_method.py: holds 2 methods, mine and yours; must be one"),
        (METHOD.replace('"mine"', '"fedbuff"'), "algorithm: 'fedbuff' is registered twice"),
        (METHOD.replace('"mine"', '"my-own"'), "letters, digits and _, got 'my-own'"),
        (METHOD.replace("[0.5, 1.0]", "[0.1, 0.2, 0.5, 1.0]"),
         "GRID: must be at most 4 combinations, as many as others try; got 2 of client_lr × 4 of server_lr"),
        (METHOD.replace("server_lr", "sever_lr"), "GRID: 'sever_lr' is not known; did you mean 'server_lr'?"),
        (METHOD.replace("[0.5, 1.0]", "[0.5, 0.5]"), "GRID: server_lr must be a list of different values"),
        (METHOD.replace("[0.5, 1.0]", "[-1.0]"), "server_lr: must be"),
        (METHOD.replace("{\"server_lr\": [0.5, 1.0]}", "3"), "GRID must be a mapping of options to their values, got 3"),
    ],
)  # fmt: skip
def test_what_is_no_entry_is_one_line_and_runs_nothing(stranger, source, said, capsys):
    assert stranger.command(source=source) == 2
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1 and said in printed.err, printed.err
    assert "combinations" not in printed.out and not stranger.runs.exists()


def test_a_broken_rule_is_said_before_anything_is_run(stranger, capsys):
    assert stranger.command(source=RULE_BREAKER) == 2
    line = capsys.readouterr().err
    assert line.count("\n") == 1 and "Mine breaks the rule 'in_place'" in line
    assert not stranger.ran and not stranger.runs.exists()


@pytest.mark.parametrize("comment", ["", "  # weight 0"])
def test_code_has_the_digest_of_python_3_11_in_every_version(comment):
    code = f"""class Late(FedBuff):{comment}
    def weight(self, update, *, late=None, **more):
        return f"{{update:{{late}}}}", lambda: []
"""
    assert code_digest(code) == "8088e3f2"


SHOWN = re.findall(r"```py\n(.*?)```", (ROOT / "docs/league.md").read_text(), re.S)


@pytest.mark.parametrize("source", SHOWN, ids=lambda source: re.search(r"class (\w+)", source).group(1))
def test_the_entry_that_the_page_shows_keeps_the_rules_and_tries_as_many_combinations_as_others(
    source, tmp_path, monkeypatch
):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "shown_entry.py").write_text(source)
    try:
        entry = read_entry(tmp_path / "shown_entry.py")
        entering.check_rules(entry)
        newcomer = Newcomer(entry, read_places(LEAGUE, quick=True), tmp_path)
        assert [len(points_of(newcomer.search(place).grid)) for place in newcomer.places] == [9, 9]
    finally:
        forget(tmp_path)


def test_versions_that_take_other_than_their_buffer_are_refused(stranger, field):
    forget(stranger.runs.parent.parent)
    file = Path("every_other.py")
    file.write_text(EVERY_OTHER.replace("mine", "every_other"))
    newcomer = Newcomer(read_entry(file), read_places(field / "league.yaml"), Path("runs/x"))
    with pytest.raises(SimulationError, match="4 versions of every_other took 12 client updates, .* gets 8: each 2 "):
        newcomer.trial()


DROPS = """    def on_receive(self, update):
        if update.staleness > 0:
            return False
        return super().on_receive(update)
"""


def test_a_method_that_drops_updates_is_told_how_to_count_them_and_enters_if_it_does(stranger, field):
    forget(stranger.runs.parent.parent)
    places = read_places(field / "league.yaml")
    file = Path("drops.py")
    file.write_text(METHOD.replace("mine", "drops") + DROPS)
    with pytest.raises(SimulationError, match="an update that the method drops must count as received, with weight 0"):
        Newcomer(read_entry(file), places, Path("runs/drops")).trial()
    (cut,) = (source for source in SHOWN if "cut_off" in source)
    file = Path("counts.py")
    file.write_text(
        cut.replace('"fedcut"', '"counts"')
        .replace("cut_off: int = 10", "cut_off: int = 0")
        .replace("[5, 10, 20]", "[0]")
    )
    assert Newcomer(read_entry(file), places, Path("runs/counts")).trial().updates == 8


# --- equal budgets -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def places() -> list[Place]:
    return read_places(LEAGUE)


def test_the_field_is_every_method_and_oort_in_four_places_and_two_columns(places):
    assert [place.name for place in places] == 2 * [
        f"{workload}, {law}" for workload in ("overlaid_mnist", "glyphs") for law in ("large", "uniform")
    ]
    own = {name for name in ALGORITHMS if ALGORITHMS.get(name).__module__.startswith("asyncfl_lite.")}
    assert all(set(place.searches) == own | {"oort"} for place in places if place.column == "tuned")
    assert {cell.name for cell in expand_grid(LEAGUE, paper="league") if cell.column == "tuned"} == {
        place.cell(method) for place in places if place.column == "tuned" for method in place.searches
    }


def test_every_run_of_the_field_gets_as_many_updates_and_each_method_as_many_tries(places):
    """That each cell makes 500 client updates and is tested 20 times is in test_questions.py."""
    for place in places:
        assert place.updates == 500 and place.seeds == tuple(range(10))
        assert place.tries == (9 if place.column == "tuned" else 5)
        for search in place.searches.values():
            assert len(points_of(search.grid)) == place.tries and search.seeds == (100, 101)


@pytest.mark.parametrize("model", ["fedbuff", "fedasync", "fedavg", "kuiper"])
def test_a_newcomer_gets_what_a_method_of_its_kind_gets(places, model):
    """The same settings, seeds and number of tries; with a class of the field in a newcomer's place."""
    method = ALGORITHMS.get(model)
    for place in places:
        own = Newcomer(Entry("x.py", model, method, None, "0" * 8), [place], Path()).search(place)
        assert own.seeds == place.searches[model].seeds and len(points_of(own.grid)) <= place.tries
        config, theirs = own.config(points_of(own.grid)[0], 100), place.config_of(model)
        differing = {key for key in config.as_dict() if config.as_dict()[key] != theirs.as_dict()[key]}
        assert differing <= {"client_lr", "server_lr", "settings"}
        assert config.rounds * config.buffer_size == place.updates


# --- a whole entry -------------------------------------------------------------------------------


def test_an_entry_is_tuned_run_and_judged_once_and_again_where_its_code_changes(stranger, capsys):
    assert stranger.command() == 0
    printed, first = capsys.readouterr().out, list(stranger.ran)
    assert "mine: checking" in printed and "6 seeds" not in printed
    assert "digits, large, tuned: of 4 methods" in printed
    assert re.search(r"page: runs/league/mine-[0-9a-f]{8}\.html", printed)
    folder = next(path for path in stranger.runs.iterdir() if path.is_dir())
    assert sum(first) >= 4 + 2  # tuned 2 × 2 and printed 2, each with one seed
    assert len(list(folder.rglob("seed-*/result.json"))) == 2 * 6

    stranger.ran.clear()
    results = {path: path.stat().st_mtime_ns for path in folder.rglob("result.json")}
    assert stranger.command(source=METHOD + "# a remark\n") == 0
    assert not stranger.ran and "checking" not in capsys.readouterr().out
    assert results == {path: path.stat().st_mtime_ns for path in folder.rglob("result.json")}

    assert stranger.command(source=METHOD + "    stands = 1\n") == 0
    assert stranger.ran == first
    assert len([path for path in stranger.runs.iterdir() if path.is_dir()]) == 2
    one, two = sorted(stranger.runs.glob("mine-*.html"), key=lambda path: path.stat().st_mtime_ns)
    assert "Look 2" not in one.read_text()
    looked = f"Look 2: other code of this name has been entered 1 time before and seen the same seeds ({one.name})"
    assert looked in " ".join(two.read_text().split())


def test_a_stopped_entry_goes_on_and_runs_nothing_twice(stranger, trusted, monkeypatch):
    before = []

    def stops(cells, runs, **options):
        before.append(len(cells))
        in_this_process(cells[:1], runs)
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "run_grid", stops)
    assert stranger.command() == 130
    first = list(stranger.ran)
    results = {path: path.stat().st_mtime_ns for path in stranger.runs.rglob("seed-*/result.json")}
    assert before == [2] and len(results) == 6 and not list(stranger.runs.glob("*.html"))
    monkeypatch.setattr(running, "run_grid", in_this_process)
    assert stranger.command() == 0
    after = {path: path.stat().st_mtime_ns for path in stranger.runs.rglob("seed-*/result.json")}
    assert stranger.ran == first and len(after) == 12 and results.items() <= after.items()
    assert len(list(stranger.runs.glob("mine-*.html"))) == 1


def test_the_page_stands_alone_and_names_what_is_missing(stranger, trusted, field, tmp_path):
    partial = tmp_path / "partial"
    for name in (RUNS, CURVES):
        table = read_table(field / "results/league/league" / name)
        write_table(partial / "league/league" / name, table[~table["cell"].str.contains("ca2fl")])
    assert stranger.command(results=partial) == 0
    (page,) = stranger.runs.glob("*.html")
    written = page.read_text()
    assert not re.search(
        r"https?:|//|<script|<link|@import|url\(", re.sub(r'"data:image/png;base64,[^"]*"', "", written)
    )
    assert all(source.startswith("data:image/png;base64,") for source in re.findall(r'src="([^"]*)"', written))
    assert all(alt for alt in re.findall(r'<img [^>]*alt="([^"]*)"', written)) and "default-src 'none'" in written
    assert "Not recorded, so not ranked there: CA²FL in digits, large (tuned), digits, large (printed)." in written
    assert written.count('<tr class="newcomer">') == 2 + 2 + 1  # standings, tries, costs


# --- standings of known answers ------------------------------------------------------------------


def runs_of(values, *, times=None, share=0.3, end=100.0, **more):
    """Results of seeds 0, 1, … with such accuracies; their curves rise to them at ``times`` and end at ``end``."""
    times = [10.0] * len(values) if times is None else times
    return [
        SimpleNamespace(
            config=SimpleNamespace(seed=seed),
            summary={"last5_accuracy": value, "largest_prediction_share": share, "worst_class_accuracy": 0.0,
                     "most_versions_in_flight": 7, "parameters": 1000, **more},
            curve=pd.DataFrame({"time": [0.0, 1.0, time, end], "updates": [0, 1, 2, 3],
                                "accuracy": [0.1, 0.1, value, value], "loss": 1.0}),
        )
        for seed, (value, time) in enumerate(zip(values, times, strict=True))
    ]  # fmt: skip


def tiny_place(*methods: str, seeds: int = 10) -> Place:
    return Place("digits", "large", "tuned", dict.fromkeys(methods), tuple(range(seeds)))


WOBBLE = 0.001 * np.array([1, -1, 2, -2, 3, -3, 1, -1, 2, -2])
BASE = 0.7 + 0.02 * np.sin(np.arange(10))


def test_verdicts_are_those_of_differences_that_were_made_up():
    results = {
        "mine": runs_of(BASE),
        "fedbuff": runs_of(BASE - 0.05 + WOBBLE),
        "fedasync": runs_of(BASE + 0.04 + WOBBLE),
        "ca2fl": runs_of(BASE + WOBBLE),
        "fedavg": runs_of(BASE + 40 * WOBBLE),
        "kuiper": runs_of(BASE * 0 + 0.1, share=1.0),
    }
    found = standings(tiny_place(*results, "fedfa"), "mine", results)
    rows = {row.method: row for row in found.rows}
    assert {name: row.verdict for name, row in rows.items()} == {
        "mine": "", "fedbuff": BETTER, "fedasync": WORSE, "ca2fl": EQUIVALENT, "fedavg": OPEN, "kuiper": OPEN
    }  # fmt: skip
    assert rows["fedbuff"].difference.mean == pytest.approx(0.05) and rows["fedbuff"].difference.level == 0.95
    assert [row.method for row in found.rows][0] == "fedasync" and found.missing == ["fedfa"]
    assert found.counts() == {BETTER: 1, WORSE: 1, EQUIVALENT: 1, OPEN: 2}


def test_a_method_that_takes_longer_is_compared_in_equal_time_too():
    """It ends above, and has learnt nothing when the newcomer is through; it is not held against who ends sooner."""
    results = {
        "mine": runs_of(BASE),
        "fedavg": runs_of(BASE + 0.04 + WOBBLE, times=[500.0] * 10, end=2000.0),
        "fedbuff": runs_of(BASE - 0.05 + WOBBLE, times=[10.0] * 10, end=50.0),
        "kuiper": runs_of(BASE * 0 + 0.1, share=1.0),
    }
    rows = {row.method: row for row in standings(tiny_place(*results), "mine", results).rows}
    assert (rows["fedavg"].verdict, rows["fedavg"].verdict_in_time) == (WORSE, BETTER)
    assert rows["fedavg"].in_time.mean == pytest.approx((BASE - 0.1).mean())
    assert rows["fedbuff"].in_time.mean == pytest.approx(rows["fedbuff"].difference.mean)
    assert (rows["mine"].in_time, rows["mine"].verdict_in_time) == (None, "")
    assert rows["kuiper"].verdict_in_time == OPEN


def test_a_verdict_is_corrected_for_the_number_of_methods_and_never_stronger_than_its_interval():
    """One difference just clear of 0 at 5% is a verdict by itself, and none among twenty."""
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.02, 10)
    shift = contrast(noise, "", alpha=ERROR_LEVEL).high - noise.mean()  # half of the interval
    clear = BASE - (noise - noise.mean()) - 1.1 * shift
    alone = standings(tiny_place("a"), "mine", {"mine": runs_of(BASE), "a": runs_of(clear)})
    others = {f"m{i}": runs_of(BASE + rng.normal(0, 0.05, 10)) for i in range(20)}
    among = standings(tiny_place("a", *others), "mine", {"mine": runs_of(BASE), "a": runs_of(clear), **others})
    assert {row.verdict for row in alone.rows if row.method == "a"} == {BETTER}
    assert {row.verdict for row in among.rows if row.method == "a"} == {OPEN}
    for row in among.rows:
        if row.verdict in (BETTER, WORSE):
            assert row.difference.low > 0 or row.difference.high < 0


def test_times_are_to_fedbuffs_target_and_what_never_gets_there_is_censored():
    target = TARGET_SHARE * BASE
    results = {
        "mine": runs_of(BASE, times=[10.0] * 10),
        "fedbuff": runs_of(BASE, times=20.0 + np.arange(10)),
        "fedasync": runs_of([*(target - 0.1)[:3], *BASE[3:]], times=[30.0] * 10),
    }
    rows = {row.method: row.times for row in standings(tiny_place("fedbuff", "fedasync"), "mine", results).rows}
    assert rows["mine"].median == 10 and rows["mine"].ratio is None and rows["mine"].never == 0
    assert rows["fedbuff"].ratio.mean == pytest.approx(np.log((20.0 + np.arange(10)) / 10).mean())
    assert rows["fedasync"].never == 3 and rows["fedasync"].median == 30
    assert math.isfinite(rows["fedasync"].ratio.low) and rows["fedasync"].ratio.high == math.inf


def test_ranks_are_over_the_methods_that_all_places_have():
    results = {"mine": runs_of(BASE), "fedbuff": runs_of(BASE - 0.05), "fedasync": runs_of(BASE + 0.05)}
    fewer = {method: results[method] for method in ("mine", "fedbuff")}
    elsewhere = Place("digits", "uniform", "tuned", dict.fromkeys(fewer), tuple(range(10)))
    both = [standings(tiny_place(*results), "mine", results), standings(elsewhere, "mine", fewer)]
    found, left_out = ranked(both)
    assert found.ranks.to_dict() == {"mine": 1, "fedbuff": 2} and found.blocks == 20 and left_out == ["fedasync"]
    assert found.near("mine") == ["mine"]  # the critical difference of two methods over 20 blocks is 0.44


# --- what methods look at ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "looks", "labels"), [("fedecho", True, 0), ("fedbuff", False, 0), ("fedadt", False, 0.2)]
)
def test_what_a_server_looks_at_is_seen_and_is_what_the_table_says_of_the_field(field, monkeypatch, tmp_path, model, looks, labels):  # fmt: skip
    (place,) = [one for one in read_places(field / "league.yaml") if one.column == "tuned"]
    switches = {"fedecho": {"distill_samples": 20}, "fedadt": {"kd_fraction": 0.2}}.get(model, {})
    method = ALGORITHMS.get(model)
    kind = place.searches["fedbuff" if method.buffered and model != "fedadt" else "fedasync"]
    settings = {**{key: value for key, value in kind.settings.items() if key != "algorithm"}, "settings": switches}
    search = type(kind)(f"{place.study}/{model}-tuned", {"algorithm": model, **settings}, {"client_lr": [0.1]}, (100,))
    monkeypatch.setattr(Newcomer, "search", lambda self, place: search)
    newcomer = Newcomer(Entry("x.py", model, method, {}, "0" * 8), [place], tmp_path)
    trial = newcomer.trial()
    assert (trial.unlabelled, trial.labelled, trial.updates) == (looks, labels, 8)
    assert read_record(tmp_path / "trial.json")["trial"]["unlabelled"] == looks and newcomer.trial() == trial
    kept = (tmp_path / "trial.json").read_text()
    (tmp_path / "trial.json").write_text(kept.replace('"updates": 8', '"updates": 9'))
    assert newcomer.trial().updates == 8  # made again
    found = standings(tiny_place(model), model, {model: runs_of(BASE)})
    row = costs(model, search.config({"client_lr": 0.1}, 0), found.measured, classes=10)
    assert ("unlabelled" in row.data) == looks and ("20.00%" in row.data) == bool(labels)

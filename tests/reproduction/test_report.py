"""The report: every artefact has a place, like stands beside like, nothing recorded works, tables are files."""

from __future__ import annotations

import json
import re
from functools import cache, lru_cache
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
from IPython.core.formatters import DisplayFormatter
from matplotlib.figure import Figure

from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.runs.results import Result
from asyncfl_reproduction.claims import CLAIMS, Measured
from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.grid.record import read_tidy, write_tidy
from asyncfl_reproduction.home import PAPERS, RESULTS
from asyncfl_reproduction.measure import fedrevive
from asyncfl_reproduction.published import artefacts, layout, published
from asyncfl_reproduction.report import Recorded, export, head_to_head, our_numbers, page, printed_tables, summary
from asyncfl_reproduction.report import recorded as reading
from asyncfl_reproduction.report.notebook import as_pages, make_report
from asyncfl_reproduction.report.recorded import Ours
from asyncfl_reproduction.verdict_words import EQUIVALENT, HOLDS, OPEN, REVERSED

ROOT = Path(__file__).parents[2]
SMOKE, LEAGUE = (ROOT / f"asyncfl_reproduction/cells/{tier}.yaml" for tier in ("smoke", "league"))
PLACE = "league/glyphs/large"
CODE = [c.source for c in nbformat.read(ROOT / "notebooks/report.ipynb", as_version=4).cells if c.cell_type == "code"]
PRINTED = pd.read_csv(PAPERS / "results.csv")
GRID = lru_cache(expand_grid)
DRAWN = {
    "FedRevive": [f"Fig. {n}" for n in range(1, 12)],
    "KUIPER": [f"Fig. {n}" for n in range(1, 17)],
    "FedADT": ["Fig. 1", "Fig. 2", "Fig. 3"],
}
"""Figures of the papers; FedEcho has none."""


@cache
def packages_league():
    """What the package has recorded of the league, which takes seconds to read."""
    return read_tidy(GRID(LEAGUE), RESULTS / "league")


def read_once(cells, folder):
    return packages_league() if Path(folder) == RESULTS / "league" else read_tidy(cells, folder)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Leave out what trains: claims that run probes, and the probes; read the grid and the package's league once."""
    monkeypatch.setattr("asyncfl_reproduction.report.recorded.expand_grid", GRID)
    monkeypatch.setattr("asyncfl_reproduction.report.recorded.read_tidy", read_once)
    claims = {paper: [claim for claim in CLAIMS[paper] if paper != "fedrevive"] for paper in CLAIMS}
    claims["fedrevive"] = [claim for claim in CLAIMS["fedrevive"] if claim.id.startswith("FR-T1")]
    monkeypatch.setattr("asyncfl_reproduction.report.recorded.CLAIMS", claims)
    probed = pd.DataFrame({"proxy": [0.2, 0.3, 0.4], "uniform": [0.6, 0.6, 0.7]})
    monkeypatch.setattr(fedrevive, "short_run_divergences", lambda dataset: probed)
    monkeypatch.setattr(fedrevive, "resnet18_gflop", lambda: 1.0)  # a ResNet-18 takes seconds to build
    parts = pd.DataFrame({"stale": [0.1, 0.2], "distilled": [0.1, 0.1], "both": [0.2, 0.3]})
    monkeypatch.setattr("asyncfl_reproduction.report.figures_fedrevive.short_run_parts", lambda: parts)


def record(runs, name, accuracies=(0.5, 0.52, 0.54), *, tier=SMOKE, reached_at=7.0, apart=0.0, version=500, **more):
    """Record one made-up run per seed, at 95% from ``reached_at`` on until it ends at its final accuracy.

    Each seed gets there ``apart`` later than the one before. Seeds beyond the accuracies are not run.
    """
    cell = next(cell for cell in reading.expand_grid(tier) if cell.name == name)  # as the fixture has it
    for index, (config, accuracy) in enumerate(zip(cell.configs, accuracies, strict=False)):
        reached = reached_at + apart * index
        times = [0.0, reached - 1, reached, reached + 1, 20.0]
        curve = pd.DataFrame({"version": [0, 1, 2, 3, version], "time": times, "updates": range(0, 25, 5), "loss": 1.0})
        curve["accuracy"] = [0.1, 0.2, 0.95, 0.95, accuracy]
        numbers = {
            "final_accuracy": accuracy, "last5_accuracy": accuracy - 0.1, "best_accuracy": 0.95, "virtual_time": 20.0,
            "versions": version, "client_updates": 20, "mean_staleness": 1.0, "max_staleness": 3,
            "most_versions_in_flight": 4, "parameters": 100, **more,
        }  # fmt: skip
        updates = pd.DataFrame({"client": [0], "dispatched_at": [0.0], "arrived_at": [1.0], "staleness": [0]})
        flight = pd.DataFrame(columns=["client", "dispatched_at", "start_version", "called_off_at"])
        clients = pd.DataFrame({"client": [0], "num_samples": [9], "category": [""]})
        result = Result(config, numbers, curve, updates, flight, clients, timing={"seconds": 3.0, "cpu_seconds": 2.0})
        result.save(cell.folder(runs) / f"seed-{config.seed}")
    return cell


def calls(method):
    """Paper and names of each call of a method of the page in the notebook."""
    found = [
        re.findall(r'"([^"]*)"', call) for code in CODE for call in re.findall(rf"page\.{method}\(([^\n]*)\)", code)
    ]
    return {(paper, name) for paper, *names in found for name in names}


def test_every_printed_artefact_has_its_place_in_the_notebook():
    printed = set(PRINTED[["paper", "artefact"]].itertuples(index=False, name=None))
    shown = calls("table")
    texts = {re.search(r'page\.texts\("(\w+)"', code).group(1) for code in CODE if "page.texts" in code}
    assert shown <= printed
    assert {one for one in printed if one[1].startswith("Table")} == shown
    assert {paper for paper, name in printed - shown} == texts
    assert {paper: set(artefacts(paper)) for paper in DRAWN} == {
        paper: {name for one, name in printed if one == paper} for paper in DRAWN
    }


def test_every_figure_is_drawn_or_named_in_the_notebook():
    shown = calls("figure")
    assert shown == set(page.FIGURES) | {one for one in shown if layout(*one).sketch}
    for paper, names in DRAWN.items():
        for name in names:
            assert any(one == paper and re.fullmatch(rf"{re.escape(name)}(\(.*\))?", other) for one, other in shown), (
                name
            )


def test_every_metric_is_measured_in_its_own_unit():
    for row in PRINTED.itertuples():
        kind = our_numbers.MEASURES[row.paper, row.metric].kind
        assert row.unit in our_numbers.UNITS[kind]
        if "reduction" not in row.metric and "increase" not in row.metric and "gain" not in row.metric:
            assert (kind == "time") == (("time" in row.metric) or ("wall-clock" in row.metric)), row.metric
        assert (kind == "accuracy") == (("accuracy" in row.metric) and row.unit in ("%", "fraction")), row.metric


def test_a_measure_of_another_kind_is_refused(monkeypatch, tmp_path):
    recorded = Recorded(SMOKE, tmp_path)
    accuracy = our_numbers.MEASURES["FedADT", "final accuracy"]
    monkeypatch.setitem(our_numbers.MEASURES, ("FedADT", "virtual time to target"), accuracy)
    with pytest.raises(ValueError, match="accuracy cannot stand beside s"):
        printed_tables.beside(recorded, "FedADT", "Table I")


def test_times_stand_beside_times_and_accuracies_beside_accuracies(tmp_path):
    cell = record(tmp_path, "fedadt/table1/mnist-dir0.1/fedadt")
    record(tmp_path, "fedadt/table1/mnist-dir0.1/fedasync", reached_at=9.0, apart=0.1)
    recorded = Recorded(SMOKE, tmp_path)
    times = printed_tables.beside(recorded, "FedADT", "Table I").set_index("cell")
    assert times.loc[cell.name, "ours"] == "7 ± 0" and times.loc[cell.name, "paper"] == "44,136"
    ends = printed_tables.beside(recorded, "FedADT", "Table II").set_index("cell")
    assert ends.loc[cell.name, "ours"] == "42.00 ± 2.00" and ends.loc[cell.name, "paper"] == "98.49"
    other = "fedadt/table1/mnist-dir0.1/fedasync"
    assert (times.loc[other, "verdict"], ends.loc[other, "verdict"]) == (HOLDS, OPEN)
    failed = printed_tables.beside(recorded, "FedADT", "Table I")
    assert list(failed.loc[failed["paper"] == "Fail", "ours"].unique()) == ["not run"]


def test_a_target_that_is_not_reached_is_said_so():
    row = published("FedADT", "Table I").iloc[0]
    assert printed_tables.ours_text(row, Ours(np.array([np.inf, np.inf]), "x")) == "not reached"
    assert printed_tables.ours_text(row, Ours(np.array([4.0, np.inf]), "x")) == "not reached with 1 of 2 seeds"
    assert printed_tables.ours_text(row, Ours(np.array([20000.0, 20520.0]), "x")) == "20,260 ± 368"
    assert printed_tables.ours_text(row, Ours(np.array([200.0, 210.0]), "x")) == "205 ± 7.1"
    assert printed_tables.ours_text(row, Ours(None, "x")) == "not run"
    assert printed_tables.ours_text(row, Ours(None, f"{our_numbers.NOT_MEASURED}: why")) == "not measured"


def test_the_adaptive_weight_is_read_where_the_fixed_ones_end(tmp_path):
    name = "fedadt/table1/mnist-dir0.1/fedadt"
    record(tmp_path, name, version=500)
    table = printed_tables.beside(Recorded(SMOKE, tmp_path), "FedADT", "Table III").set_index("cell")
    assert table.loc[f"{name}, version 500", "ours"] == "52.00 ± 2.00"
    record(tmp_path, name, version=480)  # it ends before
    table = printed_tables.beside(Recorded(SMOKE, tmp_path), "FedADT", "Table III").set_index("cell")
    assert table.loc[f"{name}, version 500", "ours"] == "not run"


def test_one_recorded_cell_shows_up_at_its_place_and_nowhere_else(tmp_path):
    record(tmp_path, "fedecho/table2/large-dir0.1/fedecho-cross")
    recorded = Recorded(SMOKE, tmp_path)
    wide = printed_tables.laid_out(printed_tables.beside(recorded, "FedEcho", "Table 2"), "FedEcho", "Table 2")
    assert wide.loc[("FedEcho", "CIFAR-100", "ours"), ("large", "0.1")] == "42.00 ± 2.00"
    assert wide.loc[("FedEcho", "CIFAR-100", "paper"), ("large", "0.1")] == "75.39 ± 2.93"
    assert (wide == "42.00 ± 2.00").to_numpy().sum() == 1
    assert wide.shape == (14, 4)
    for artefact, which in (("Table 6", 2), ("Table 7", 3), ("Table 11", 1)):
        assert (printed_tables.beside(recorded, "FedEcho", artefact)["ours"] != "not run").to_numpy().nonzero()[0] == [
            which
        ]
    assert page.FIGURES["FedEcho", "Table 2"].draw(recorded) is not None
    assert page.FIGURES["FedEcho", "Table 3"].draw(recorded) is None


@pytest.mark.parametrize(
    ("printed", "ours", "reference", "verdict"),
    [
        (60.0, [50.0, 51.0, 52.0], [70.5, 71.0, 71.5], HOLDS),
        (80.0, [50.0, 51.0, 52.0], [70.5, 71.0, 71.5], REVERSED),
        (60.0, [70.0, 71.0, 72.0], [72.5, 70.5, 71.5], OPEN),
        (60.0, [70.9, 71.0, 71.2], [71.2, 71.1, 71.5], EQUIVALENT),
        (60.0, [50.0, 51.0], [70.0, 71.5], OPEN),
        (60.0, [50.0, 51.0, 52.0], [70.5, 71.0, 71.5, 0.0], HOLDS),  # one seed more
        (np.nan, [np.inf] * 3, [70.0, 71.0, 72.0], HOLDS),
        (60.0, [np.inf] * 3, [70.0, 71.0, 72.0], REVERSED),
        (60.0, [np.inf] * 3, [np.inf] * 3, OPEN),
        (60.0, [np.inf, 50.0, 51.0], [70.0, 71.0, 72.0], OPEN),
        (70.0, [50.0, 51.0, 52.0], [70.0, 71.0, 72.0], ""),
    ],
)
def test_colours_say_on_which_side_of_the_reference_ours_is(printed, ours, reference, verdict):
    """The printed reference is 70; a printed NaN is a target never reached."""
    found = printed_tables._same_side(printed, Ours(np.array(ours)), 70.0, Ours(np.array(reference)), 1.0)
    assert found == verdict
    assert bool(printed_tables.background(found)) == bool(verdict)


def of(kind, shown):
    """What is displayed of a kind."""
    return [one.data for one in shown if type(one).__name__ == kind]


def test_the_notebook_works_with_nothing_recorded(shown, tmp_path):
    names: dict = {}
    for code in CODE:
        exec(code, names)
        names |= {"tier_file": str(SMOKE), "runs": str(tmp_path / "none"), "tables": str(tmp_path / "tables")}
    said, html = of("Markdown", shown), of("HTML", shown)
    folds = [int(count) for text in html for count in re.findall(r"<summary>(\d+) figures? not run", text)]
    assert sum(folds) >= 35
    assert sum("numbers not run" in text for text in html) >= 18  # tables and texts
    assert len(re.findall(r"<summary>\d+ claims not run", "".join(html))) == 4  # of each paper
    assert any("settings (a workload under a delay law) are recorded" in text for text in said)  # the package's league
    assert any(re.match(r"\*\*0 of \d+ cells recorded", text) for text in said)
    drawn = sum(type(one).__name__ == "Image" for one in shown)
    assert (
        drawn == 8
    )  # two of the league; delays, parts of an update (made up here), two histograms, schedules, a timeline
    assert len(list((tmp_path / "tables").iterdir())) % 3 == 0


def test_tables_are_files_in_three_formats_that_read_back(tmp_path):
    record(tmp_path, "fedecho/table2/large-dir0.1/fedbuff")
    recorded = Recorded(SMOKE, tmp_path)
    files = export.write_tables(recorded, tmp_path / "tables")
    names = {path.stem for path in files}
    for paper, artefact in PRINTED[["paper", "artefact"]].drop_duplicates().to_numpy():
        assert export.slug(paper, artefact) in names
    assert {"summary", "questions", "head-to-head", "compute", "ours", "fedecho-claims", "kuiper-claims"} <= names
    assert len(names) * 3 == len(files) == len(set(files))

    kept = pd.read_csv(tmp_path / "tables/fedecho-table-2.csv", dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(
        kept, printed_tables.beside(recorded, "FedEcho", "Table 2").astype(str), check_dtype=False
    )

    rows = (tmp_path / "tables/fedecho-table-2.md").read_text().splitlines()
    read = [[part.strip() for part in row.strip("|").split("|")] for row in rows]
    assert read[0] == ["method", "distill_set", "of", "large, 0.1", "large, 0.3", "mild, 0.1", "mild, 0.3"]
    assert read[3] == ["FedBuff", "", "ours", "42.00 ± 2.00", "not run", "not run", "not run"]
    assert len(read) == 2 + 14

    lines = (tmp_path / "tables/fedecho-table-2.tex").read_text().splitlines()
    body = [re.split(r" & ", line.removesuffix(r" \\")) for line in lines if line.endswith(r" \\")]
    assert [part.replace(r"$\pm$", "±").replace(r"\_", "_") for part in body[2]] == read[3]
    assert len(body) == 1 + 14


CONSTANT = {"largest_prediction_share": 1.0, "worst_class_accuracy": 0.0}


def test_constant_answers_are_marked_wherever_they_stand(tmp_path, shown):
    for method in ("fedbuff", "fedecho"):
        record(tmp_path, f"fedecho/table4/{method}", (0.53, 0.53, 0.53), **CONSTANT)
    record(tmp_path, "fedadt/table1/mnist-dir0.1/fedadt", worst_class_accuracy=0.0, largest_prediction_share=0.4)
    recorded = Recorded(SMOKE, tmp_path)
    cells = recorded.table.set_index("cell")["accuracy %"]
    assert cells["fedecho/table4/fedbuff"] == "43.00 ± 0.00 (constant answer)"
    assert cells["fedadt/table1/mnist-dir0.1/fedadt"] == "42.00 ± 2.00"
    beside = printed_tables.beside(recorded, "FedEcho", "Table 4").set_index("method")
    assert beside.loc["FedBuff", ["ours", "verdict"]].tolist() == ["43.00 ± 0.00 (constant answer)", OPEN]
    claims = recorded.claims("fedecho").set_index("id")
    assert claims.loc["FE-T4-a", "ours"] == OPEN and "did not train" in claims.loc["FE-T4-a", "detail"]
    counts = summary.verdicts(recorded).set_index("paper")[OPEN]
    assert counts.to_dict() == {"FedEcho": 1, "FedRevive": 0, "KUIPER": 0, "FedADT": 0, "all": 1}
    page.Page(SMOKE, tmp_path).summary()
    (told,) = of("HTML", shown)
    assert "2 of 3 cells predict one class for everything" in told
    assert "FedEcho, Table 4: FedEcho (constant answer)" in told


def test_runs_of_another_meaning_are_flagged_and_left_out(monkeypatch, tmp_path):
    cell = record(tmp_path, "fedecho/table2/large-dir0.1/fedbuff")
    monkeypatch.setattr("asyncfl_lite.runs.store.MEANING", 99)
    recorded = Recorded(SMOKE, tmp_path)
    assert recorded.results == {} and recorded.outdated == {cell.name: "stale"}
    table = recorded.table.set_index("cell")["accuracy %"]
    assert table[cell.name] == "not run (stale)" and set(table.drop(cell.name)) == {"not run"}
    assert re.search(r"1 cell run with code whose meaning has changed .*fedbuff</li>", summary.outdated(recorded))


def test_a_cell_with_a_seed_missing_says_so(tmp_path):
    cell = record(tmp_path, "fedecho/table2/large-dir0.1/fedbuff")
    (cell.folder(tmp_path) / "seed-1/result.json").unlink()
    recorded = Recorded(SMOKE, tmp_path)
    assert recorded.table.set_index("cell").loc[cell.name, "seeds"] == "2 of 3"
    assert (
        printed_tables.beside(recorded, "FedEcho", "Table 2").set_index("cell").loc[cell.name, "ours"] == "42.00 ± 2.83"
    )


def test_ranks_and_nemenyis_difference_are_demsars():
    rng = np.random.default_rng(0)
    there = {
        f"place {index}": {m: 50 + 10 * i + rng.random(3) for i, m in enumerate(head_to_head.FIVE)}
        for index in range(4)
    }
    found = head_to_head.ranking(there, head_to_head.FIVE)
    assert list(found.ranks) == [1, 2, 3, 4, 5] and list(found.ranks.index) == list(head_to_head.FIVE[::-1])
    assert found.blocks == 12 and found.p < 1e-6
    assert found.critical == pytest.approx(2.728 * np.sqrt(5 * 6 / (6 * 12)), abs=2e-3)  # q of Demšar's Table 5
    assert head_to_head.groups(found) == [(0, 1), (1, 2), (2, 3), (3, 4)]


def test_the_column_with_fixed_servers_has_a_place_of_its_own():
    runs = {f"{PLACE}/{name}": pd.DataFrame({"last5_accuracy": [0.1 * n, 0.1 * n + 0.01], "seed": [0, 1]})
            for n, name in enumerate(("fedbuff", "fedadam", "fedbuff@printed", "fedecho@printed"), 1)}  # fmt: skip
    measured = Measured(runs)
    assert set(head_to_head.places(measured)["glyphs, large"]) == {"fedbuff", "fedadam"}
    printed = head_to_head.places(measured, "fixed server rate")["glyphs, large"]
    assert {method: list(values) for method, values in printed.items()} == {
        "fedbuff": pytest.approx([0.3, 0.31]),
        "fedecho": pytest.approx([0.4, 0.41]),
    }
    assert len(head_to_head.heat_map(measured).axes[0].get_xticklabels()) == 2


def test_what_is_not_in_runs_is_read_from_the_kept_tables(tmp_path):
    here, kept = "fedadt/table1/mnist-dir0.1/fedadt", "fedadt/table1/mnist-dir0.1/fedasync"
    record(tmp_path / "runs", here, (0.6, 0.6, 0.6))
    cell = record(tmp_path / "elsewhere", kept)
    record(tmp_path / "elsewhere", here)
    write_tidy(GRID(SMOKE), tmp_path / "elsewhere", tmp_path / "results/smoke")
    alone = Recorded(SMOKE, tmp_path / "runs")
    assert kept not in alone.results and alone.from_kept == set()
    both = Recorded(SMOKE, tmp_path / "runs", tmp_path / "results")
    assert both.from_kept == {kept} and len(both.results[kept]) == len(cell.seeds)
    assert [result.summary["final_accuracy"] for result in both.results[here]] == [0.6] * 3  # one's own runs go before
    ends = printed_tables.beside(both, "FedADT", "Table II").set_index("cell")
    assert ends.loc[kept, "ours"] == "42.00 ± 2.00"


def test_the_report_gives_the_notebook_its_parameters_and_exports_what_comes_out(monkeypatch, tmp_path):
    import papermill

    book = nbformat.read(ROOT / "notebooks/report.ipynb", as_version=4)
    (parameters,) = [cell for cell in book.cells if "parameters" in cell.metadata.get("tags", [])]
    given = {}

    def execute(source, executed, values, **options):
        given.update(values)
        nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Made")]), executed)

    monkeypatch.setattr(papermill, "execute_notebook", execute)
    made = make_report("smoke", tmp_path)
    assert made == tmp_path / "smoke/report.html" and "Made" in made.read_text()
    assert set(given) == set(re.findall(r"^(\w+) = ", parameters.source, re.M))
    assert given["tables"] == str(tmp_path / "smoke/tables") and Path(given["kept"]).name == "results"
    with pytest.raises(
        ConfigError, match="tier: 'medium' is not known. Allowed: exact, headline, laptop, league, paper"
    ):
        make_report("medium", tmp_path)


def test_a_report_has_a_page_per_paper_and_links_that_lead_somewhere(tmp_path):
    texts = [c for c in nbformat.read(ROOT / "notebooks/report.ipynb", as_version=4).cells if c.cell_type == "markdown"]
    nbformat.write(nbformat.v4.new_notebook(cells=texts), tmp_path / "report.ipynb")
    pages = as_pages(tmp_path / "report.ipynb")
    names = ["report.html", *(f"report-{paper}.html" for paper in ("fedecho", "fedrevive", "kuiper", "fedadt"))]
    assert list(pages)[:5] == names and len(pages) == 7
    for file, html in pages.items():
        elements = Elements(html).found
        links = [a["href"] for tag, a in elements if tag == "a" and "anchor-link" not in a.get("class", "")]
        (here,) = [a["href"] for _, a in elements if "aria-current" in a]
        assert here == file and set(pages) <= set(links)
        anchors = {a["id"] for _, a in elements if "id" in a}
        within = [link[1:] for link in links if link.startswith("#")]
        assert set(within) <= anchors and (within or "## " not in texts[0].source)
    assert "Table 3" in pages["report-fedecho.html"] and "Table 3" not in pages["report-fedadt.html"]


def test_a_picture_keeps_its_text_alternative(tmp_path):
    figure = Figure()
    figure.subplots().plot([0, 1])
    data, metadata = page.picture(figure, 'Curves of "α < 1"')._repr_mimebundle_()
    cell = nbformat.v4.new_code_cell(outputs=[nbformat.v4.new_output("display_data", data, metadata=metadata)])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "report.ipynb")
    (html,) = as_pages(tmp_path / "report.ipynb").values()
    ((_, image),) = [found for found in Elements(html).found if found[0] == "img"]
    assert image["alt"] == 'Curves of "α < 1"' and image["src"] == f"data:image/png;base64,{data['image/png']}"


HOSTILE = '<script src="https://example.org/x.js"></script><img src="https://example.org/x.png" onerror="alert(1)">'


class Elements(HTMLParser):
    """The elements of a page with their attributes, its text, and its styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.text, self.styles, self.inside = "", "", ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.inside = tag
        self.found.append((tag, dict(attributes)))

    def handle_data(self, data):
        if self.inside == "style":
            self.styles += data
        else:
            self.text += data


@pytest.fixture
def hostile(tmp_path, shown):
    """What a report shows of an experiment's file with HTML wherever it may say what it likes."""
    tier = {"about": f"about {HOSTILE}", "seeds": [0], "settings": {}, "ours": {f"rate {HOSTILE}": f"why {HOSTILE}"}}
    (tmp_path / "p.yaml").write_text(json.dumps({"paper": "p", "tiers": {"t": tier}, "cells": {"fedecho/a": {}}}))
    (tmp_path / "t.yaml").write_text("{tier: t, papers: [p.yaml]}")
    one = page.Page(tmp_path / "t.yaml", tmp_path)
    for part in (one.stand_ins, one.ours, one.cells, one.summary, lambda: one.table("FedEcho", "Table 2")):
        part()
    return one.recorded, shown


def test_a_report_runs_and_loads_nothing_whatever_an_experiment_s_file_says(hostile, tmp_path):
    formatter = DisplayFormatter().format
    outputs = [nbformat.v4.new_output("display_data", formatter(one)[0]) for one in hostile[1]]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("", outputs=outputs)])
    nbformat.write(book, tmp_path / "report.ipynb")
    (html,) = as_pages(tmp_path / "report.ipynb").values()
    elements = Elements(html)
    assert elements.text.count(HOSTILE) == 3  # said, as it was written
    assert {"table", "style"} <= {tag for tag, _ in elements.found}
    for tag, attributes in elements.found:
        assert tag not in ("script", "iframe", "object", "embed", "link", "base", "form"), attributes
        assert not [name for name in attributes if name.startswith("on")], attributes
        loaded = [attributes.get(name) or "" for name in ("src", "srcset", "poster", "data", "background")]
        assert all(place.startswith(("data:", "#")) for place in loaded if place), loaded
    assert "@import" not in elements.styles
    assert set(re.findall(r"url\(['\"]?(\w+:)", elements.styles)) <= {"data:"}
    (policy,) = [a["content"] for _, a in elements.found if a.get("http-equiv") == "Content-Security-Policy"]
    assert "default-src 'none'" in policy and "script" not in policy


def test_tables_of_a_report_are_text_in_markdown_too(hostile, tmp_path):
    export.write_tables(hostile[0], tmp_path / "tables")
    for name in ("ours", "stand-ins"):
        text = (tmp_path / "tables" / f"{name}.md").read_text()
        assert "&lt;script" in text and "<" not in text
    assert export.markdown(pd.DataFrame({"a": ["[x](javascript:y)\n| & b"]})).splitlines()[2] == (
        r"| \[x](javascript:y) \| &amp; b |"
    )

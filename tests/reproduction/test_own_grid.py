"""A grid of one's own, as docs/running.md shows it, and its report, which has nothing of the papers."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from asyncfl_lite.cli import main
from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.grid.run import run_seeds, summarise_cell
from asyncfl_reproduction.home import tier_file
from asyncfl_reproduction.report import page
from asyncfl_reproduction.report.notebook import is_own

ROOT = Path(__file__).parents[2]
SHOWN = re.findall(r"```yaml\n# (\w+\.yaml)\n(.*?)```", (ROOT / "docs/running.md").read_text(), re.S)


@pytest.fixture(scope="module")
def mine(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("own_grid")
    for name, text in SHOWN:
        (folder / name).write_text(text.replace("[0, 1, 2]", "[0, 1]"))
    return folder


def test_the_files_that_the_page_shows_are_a_grid(mine):
    cells = expand_grid(mine / "mine.yaml")
    assert [cell.name for cell in cells] == [
        f"mine/{rate}/{method}" for rate in ("slow", "fast") for method in ("fedbuff", "ca2fl")
    ]
    assert {cell.tier for cell in cells} == {"first_look"} and {cell.config.client_lr for cell in cells} == {0.02, 0.1}


def test_only_cells_of_the_package_have_the_papers_report(mine):
    assert is_own(expand_grid(mine / "mine.yaml"))
    for tier in ("smoke", "headline", "league", "real"):
        assert not is_own(expand_grid(tier_file(tier)))


def test_the_report_lies_beside_its_cells_and_has_no_others(mine, monkeypatch, capsys):
    monkeypatch.chdir(mine)
    for cell in expand_grid("mine.yaml"):
        run_seeds(cell.config.as_dict(), cell.seeds, cell.folder(Path("runs")))
        summarise_cell(cell, Path("runs"))
    assert main(["report", "--tier", "mine.yaml"]) == 0
    assert capsys.readouterr().out.endswith("report: runs/first_look/report.html\n")
    assert [path.name for path in Path("runs").iterdir()] == ["first_look"]
    assert [path.name for path in Path("runs/first_look").glob("*.html")] == ["report.html"]
    html = Path("runs/first_look/report.html").read_text()
    assert "mine/slow/ca2fl" in html and "data:image/png" in html
    assert not re.search("FedRevive|KUIPER|fedadt|claim", html)
    tables = sorted(path.stem for path in Path("runs/first_look/tables").glob("*.csv"))
    assert tables == ["cells", "compute"]
    assert pd.read_csv("runs/first_look/tables/cells.csv")["seeds"].tolist() == [2] * 4


@pytest.mark.parametrize(
    ("panels", "lines", "drawn", "left"),
    [(2, 3, [2], 0), (13, 1, [12, 1], 0), (190, 1, [12] * 4, 142), (1, 190, [12, 4], 0), (60, 19, [12] * 4, 72)],
)
def test_pictures_of_many_cells_stay_small_and_few(monkeypatch, panels, lines, drawn, left):
    """One picture of 190 panels is 13,000 pixels high and takes two minutes."""
    shown, said = [], []
    monkeypatch.setattr(page, "draw_curves", lambda recorded, own: shown.append(own))
    monkeypatch.setattr(page, "display", lambda text: said.append(text.data))
    own = page.Page.__new__(page.Page)
    names = [f"mine/{panel}/{line}" for panel in range(panels) for line in range(lines)]
    own.recorded = SimpleNamespace(cells=dict.fromkeys(names))
    own.own_curves()
    assert [len(one) for one in shown] == drawn
    assert max(len(cells) for one in shown for cells in one.values()) <= 12
    told = [cell for one in shown for cells in one.values() for cell in cells.values()]
    assert told == names[: len(told)] and (len(told) == len(names)) == (not left)
    assert said == (
        [f"{left} more panels of curves, from `{page_of(names[len(told)], lines)}` on, are not drawn."] if left else []
    )


def page_of(name: str, lines: int) -> str:
    """The title of the panel that begins with a cell."""
    return name.rpartition("/")[0] + (" (1 to 12)" if lines > 12 else "")

"""The README and docs/: short, linked, true to the files that they name; what their pages add works as written."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from asyncfl_lite.models import MODELS

ROOT = Path(__file__).parent.parent
PACKAGE, REPRODUCTION = ROOT / "asyncfl_lite", ROOT / "asyncfl_reproduction"
PACKAGES = ("asyncfl_lite", "asyncfl_reproduction", "asyncfl_course")
PAGES = sorted((ROOT / "docs").glob("*.md"))
OTHERS = ("README.md", "notebooks/README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
TEXTS = [*(ROOT / name for name in OTHERS), *PAGES]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
ADDING = sorted((ROOT / "docs").glob("adding_*.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)
MADE_BY_RUNS = re.compile(r"runs/|run\.pt|report\.html|student/|slides/|solutions/|progress\.json")
CELL = re.compile(r"(fedecho|fedrevive|kuiper|fedadt|league|questions|methods|real)/")
"""Paths that do not exist before something was run."""
USERS_OWN = re.compile(r"^my[_/]|^mine\.|ASYNCFL|\*|<|~|://|/path/|^\.venv/")
"""Marks of a path that is not in the repository: the reader's own place, a pattern, an address."""
FILES_OF_DATA = "| task | what its folder holds |"
"""Head of the table whose paths are files of data sets."""


def written(path: Path) -> str:
    """A page, or a lesson's text."""
    if path.suffix != ".ipynb":
        return path.read_text()
    cells = nbformat.read(path, as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def prose(path: Path) -> str:
    """A page without its code blocks and without the table of data sets' files."""
    text = FENCE.sub("", written(path))
    before, _, table = text.partition(FILES_OF_DATA)
    return before + table.partition("\n\n")[2]


def test_every_page_is_reached_from_the_readme():
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        reached.add(page)
        links = [
            (page.parent / link.partition("#")[0]).resolve() for link in re.findall(r"\]\(([^):]+)\)", page.read_text())
        ]
        waiting += {link for link in links if link.suffix == ".md"} - reached - set(waiting)
    assert [page.name for page in PAGES if page not in reached] == []


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", written(path)), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", [*TEXTS, *LESSONS], ids=lambda path: path.name)
def test_links_lead_to_files_and_headings(path):
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if "://" not in link:
            name, _, anchor = link.partition("#")
            page = path.parent / name if name else path
            assert page.exists(), link
            assert not anchor or page.suffix not in (".md", ".ipynb") or anchor.lower() in anchors(page), link


PATH = re.compile(r"[\w.-]+(/[\w.-]*)+|\w+\.(py|md|ipynb|ya?ml|csv|json)")


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_files_modules_and_targets_that_are_named_exist(path):
    """A word in code with a slash or a file's ending is a path in the repository, or in the package."""
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make ([a-z-]+)", "\n".join(re.findall(r"`[^`]*`|```.*?```", path.read_text(), re.S))):
        assert re.search(rf"^{target}:", makefile, re.M), target
    for word in (word for code in re.findall(r"`([^`]+)`", prose(path)) for word in code.split()):
        if re.fullmatch(r"asyncfl_lite(\.\w+)+", word):
            module, _, name = word.rpartition(".")
            try:
                importlib.import_module(word)
            except ImportError:
                assert hasattr(importlib.import_module(module), name), word
        elif PATH.fullmatch(word) and not (MADE_BY_RUNS.match(word) or CELL.match(word) or USERS_OWN.search(word)):
            assert any((place / word).exists() for place in (ROOT, PACKAGE, REPRODUCTION)), word


def test_help_and_running_list_the_tiers_that_there_are():
    """Each tier is a file of cells that names itself; other files of cells are parts of these."""
    help_ = re.search(r"TIER=([\w|]+)", (ROOT / "Makefile").read_text())[1].split("|")
    page = (ROOT / "docs/running.md").read_text()
    table = re.findall(r"^\| `(\w+)` \|", page.partition("| tier |")[2].partition("\n\n")[0], re.M)
    row = re.findall(
        r"`(\w+)`", re.search(r"^\| `TIER=smoke` \|(.*?)Each tier", page, re.M)[1].replace("(if you give none)", "")
    )
    files = {
        p.stem
        for p in (ROOT / "asyncfl_reproduction/cells").glob("*.yaml")
        if re.search(r"^tier:", p.read_text(), re.M)
    }
    assert help_ == table == row and set(help_) == files


def test_the_reading_order_is_short_and_goes_through_all_rooms():
    """It names each file once, from the clock to a run."""
    order = (ROOT / "docs/design.md").read_text().partition("## Reading order")[2].partition("\n## ")[0]
    names = re.findall(r"`([a-z_/]+\.py)`", order)
    files = [next(path for path in (PACKAGE / name, ROOT / name) if path.is_file()) for name in names]
    assert len(files) == len(set(files)) and sum(len(file.read_text().splitlines()) for file in files) <= 4850
    rooms = {file.relative_to(PACKAGE).parts[0] for file in files if file.is_relative_to(PACKAGE)}
    assert rooms == {"base", "simulator", "algorithms", "models", "clients", "tasks", "runs"}


# --- the pages on adding something ---------------------------------------------------------------


def steps(page: Path) -> list[tuple[bool, str, str]]:
    """The files that a page says to write, in order: whether to add to it, its path, and what."""
    found = []
    for language, code in FENCE.findall(page.read_text()):
        first, _, rest = code.partition("\n")
        to = re.fullmatch(r"# (added to )?([\w/]+\.py)", first)
        if language == "python" and to:
            found.append((bool(to[1]), to[2], rest))
    return found


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A copy of the package in which all pages' examples were added, as they are written."""
    folder = tmp_path_factory.mktemp("copy")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "results"))
    (folder / "asyncfl_reproduction/results").symlink_to(ROOT / "asyncfl_reproduction/results")
    (folder / "tests").mkdir()
    for page in ADDING:
        for adds, path, code in steps(page):
            target = folder / path
            assert target.exists() == adds, f"{page.name}: {path}"
            before = target.read_text() + "\n" if adds else ""
            target.write_text(before + code)
    return folder


def run_there(copy: Path, *arguments: str, importing: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(importing or copy)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=copy, env=environment, capture_output=True, text=True, timeout=300
    )


@pytest.mark.long
def test_what_the_pages_add_passes_the_tests_that_they_add(copy):
    done = run_there(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    counted = sum(code.count("\ndef test_") for page in ADDING for _, _, code in steps(page))
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= counted > 0


# --- other code that pages show ------------------------------------------------------------------


ELSEWHERE = ("callbacks", "strangers_hour")


@pytest.mark.parametrize(
    "page",
    [page for page in TEXTS if "```python" in page.read_text() and page not in ADDING and page.stem not in ELSEWHERE],
    ids=lambda page: page.stem,
)  # what needs TensorBoard, tests/lite/test_callbacks.py runs without it
def test_python_on_other_pages_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        MODELS, "_entries", {name: MODELS.get(name) for name in MODELS}
    )  # no page's model in other tests
    names: dict = {}
    for language, code in FENCE.findall(page.read_text()):
        if language == "python":
            exec(code, names)
    if page.name == "README.md" and names:
        assert names["result"].config.rounds == 100 and (tmp_path / "runs/mine/result.json").exists()
        parts = [part for part in vars(names["result"]).values() if hasattr(part, "keys")]
        for columns in re.findall(r"result\.(?:summary|curve|updates)  # (.*)", (ROOT / "docs/running.md").read_text()):
            assert all(any(name in part for part in parts) for name in columns.removesuffix(", ...").split(", "))
    if page.stem == "running":
        assert [round(value, 6) for value in names["method"].x.tolist()] == [1.1, 0.2]
        assert len(names["results"]) == 3
        assert len(names["jobs"].updates) == names["results"][0].summary["client_updates"]
    if page.stem == "data":
        assert names["result"].summary["final_accuracy"] > 0.9 and names["result_of_wine"].summary["parameters"] == 139
        assert names["said"].keys() == names["mistakes"].keys()
        assert not any("\n" in one for one in names["said"].values())
        assert names["said"]["a label short"] in page.read_text()
    if page.stem == "cluster":
        assert names["result"].summary["versions"] == 20


@pytest.mark.long
def test_a_stranger_s_hour_goes_as_it_is_told(tmp_path, hears_ctrl_c):
    """Its files are written and its commands run in order; what they print but for accuracies is on the page."""
    page, ran = (ROOT / "docs/strangers_hour.md").read_text(), ""
    for language, code in FENCE.findall(page):
        if language == "python":
            first, _, code = code.partition("\n")
            (tmp_path / first.removeprefix("# file: ")).write_text(code)
        elif language == "shell":
            done = run_there(tmp_path, *code.split()[1:], importing=ROOT)
            assert done.returncode == 0, done.stderr
            ran += done.stdout.replace(f"{tmp_path}/", "")
    assert ran.count("8 checks passed") == 2 and "1 2 3 4 5 6 7 interrupted at version 7; saved in run.pt, from" in ran
    assert "same weights: True" in ran and "same updates: True" in ran and not (tmp_path / "run.pt").exists()
    mistakes = [line for line in page.splitlines() if line.startswith("- ")]
    assert len(mistakes) == 5 and ran.endswith("\n".join(mistakes) + "\n")

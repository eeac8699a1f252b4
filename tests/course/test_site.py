"""The site: its configuration builds, answers are folded, figures have words, and nothing is asked for from elsewhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

pytest.importorskip("myst_nb", reason="the site's packages are not installed: pip install -e '.[site]'")

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "docs/site"
if str(SOURCES) not in sys.path:
    sys.path.append(str(SOURCES))

import lessons  # noqa: E402  (docs/site)
from breaks import with_breaks  # noqa: E402
from rooms import room_pages  # noqa: E402
from settings import GROUPS, meaning, settings_page  # noqa: E402

from asyncfl_lite import Config  # noqa: E402
from asyncfl_lite.algorithms import ALGORITHMS  # noqa: E402
from asyncfl_lite.runs.config import class_of_group  # noqa: E402
from asyncfl_lite.simulator.faults import Faults  # noqa: E402

LESSONS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
BUILD = """
import sys
sys.path.insert(0, {sources!r})
from pathlib import Path
from sphinx.cmd.build import build_main
sys.exit(build_main(["-q", "-W", "-c", {sources!r}, "-D", "repository={address}", {source!r}, {site!r}]))
"""


def prepared(path: Path):
    return nbformat.reads(lessons.prepared(path), as_version=4)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_every_picture_of_a_lesson_has_words_where_the_site_reads_them(path):
    pictured = [
        cell
        for cell in prepared(path).cells
        if any({"image/png", "image/svg+xml"} & set(out.get("data", {})) for out in cell.get("outputs", []))
    ]
    assert pictured
    for cell in pictured:
        assert len(cell.metadata["mystnb"]["image"]["alt"].split()) >= 8, cell.source[:60]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_what_answers_a_guess_is_folded(path):
    cells = prepared(path).cells
    guess = False
    for cell in cells:
        if cell.cell_type == "markdown" and re.search(r"^## ", cell.source, re.M):
            guess = False
        if guess and cell.get("outputs") and "exercise" not in cell.metadata.tags:
            assert {"hide-output", "hide-cell"} & set(cell.metadata.tags), cell.source[:60]
        guess = guess or "guess" in cell.metadata.get("tags", [])


def test_nothing_of_a_lesson_needs_a_kernel():
    assert not [path.stem for path in LESSONS if lessons.WIDGET in lessons.prepared(path)]


def test_every_setting_of_every_method_is_in_the_table():
    page = settings_page()
    for name in ALGORITHMS:
        part = page.partition(f"\n### {name} (")[2].partition("\n### ")[0]
        fields = ALGORITHMS.get(name).Settings.model_fields
        assert all(f"| `{field}` |" in part for field in fields), name
    assert all(
        f"| `{name}` |" in page for name in ("clients", "concurrency", "server_lr") if name in Config.model_fields
    )
    assert "largest global L2 norm of a distillation gradient" in page  # a docstring below a setting
    assert "| `channels` | several: whole number |" in page and "Annotated" not in page


def test_every_setting_has_a_meaning():
    chosen = [class_of_group(group, name) for _, registry, group in GROUPS.values() for name in registry]
    settings = [
        (cls, name, field)
        for cls in [Config, Faults, *chosen]
        if cls.__module__.startswith(
            ("asyncfl_lite.", "asyncfl_reproduction.")
        )  # other tests register classes of their own
        for name, field in cls.model_fields.items()
    ]
    assert len(settings) > 200
    silent = {f"{cls.__name__}.{name}" for cls, name, field in settings if len(meaning(cls, name, field).split()) < 2}
    assert not silent


def test_each_room_has_a_page_with_all_its_modules():
    pages = room_pages()
    for path in (ROOT / "asyncfl_lite").glob("*/*.py"):
        if not path.stem.startswith("_"):
            assert (
                f"automodule:: asyncfl_lite.{path.parent.name}.{path.stem}\n"
                in pages[f"reference/{path.parent.name}.rst"]
            )


def test_long_names_break_at_their_marks_and_intervals_and_formulas_stay_whole():
    name = '<code><span class="pre">{}</span></code>'.format
    assert with_breaks(name("synthesis_only_rounds")) == name("synthesis_<wbr>only_<wbr>rounds")
    assert with_breaks(name("asyncfl_lite/runs/x_y.py")) == name("asyncfl_lite/<wbr>runs/<wbr>x_y.py")
    assert with_breaks(name("M_c")) == name("M_c") and with_breaks(name("server.settings")) == name("server.settings")
    assert with_breaks("by +1.1 [−0.3, 1.9]") == "by +1.1 [−0.3,\u00a01.9]"
    formula = r'<span class="math notranslate nohighlight">\(K = 3\)</span>'
    assert with_breaks(f"is ({formula} b), {formula}.") == (
        f'is <span class="whole">({formula}</span> b), <span class="whole">{formula}.</span>'
    )
    assert with_breaks(f"a {formula} b") == f"a {formula} b"


TINY = """# Tiny

A stale update and its staleness; staleness again. $x^2$. See {repository}`` cells <cells/x.yaml> `` and {repository}`` `code` <x.py> ``.
At most M_c clients start from x_{t_i}, `M_c` in code.

$$M_c = x_{t_i}$$

## Reading

On a horizon.
"""


@pytest.mark.parametrize("address", ["", "https://github.com/someone/asyncfl"])
def test_the_configuration_builds_a_tiny_site(tmp_path, address):
    source, site = tmp_path / "source", tmp_path / "site"
    for folder in ("notebooks", "docs"):
        (source / folder).mkdir(parents=True)
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(TINY)])
    table = nbformat.v4.new_output(
        "display_data", {"text/markdown": "| | n |\n|---|--:|\n| a | 1 |", "text/plain": "?"}
    )
    book.cells.append(nbformat.v4.new_code_cell("table()", outputs=[table]))
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    book.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}
    nbformat.write(book, source / "notebooks/tiny.ipynb")
    (source / "docs/glossary.md").write_text(
        "# Glossary\n\n{.glossary}\nstaleness\n: How old an update is.\n\nhorizon\n: An end.\n"
    )
    (source / "index.md").write_text("# Home\n\n```{toctree}\nnotebooks/tiny\ndocs/glossary\n```\n")
    code = BUILD.format(sources=str(SOURCES), address=address, source=str(source), site=str(site))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    page = (site / "notebooks/tiny.html").read_text()
    assert page.count('class="term reference internal"') == 1 and 'title="How old an update is."' in page
    assert 'href="../docs/glossary.html#term-staleness"' in page
    assert "<em>M</em><sub>c</sub> clients start from <em>x</em><sub><em>t</em><sub>i</sub></sub>" in page
    assert '<span class="pre">code</span>' in page and "{repository}" not in page
    assert '<span class="pre">M_c</span>' in page and "M_c = x_{t_i}" in page  # neither code nor a formula
    assert page.count("<table") == 1 and "| a |" not in page
    assert (f"{address}/blob/main/cells/x.yaml" in page) == bool(address)
    assert not re.search("colab|binder", page), "a lesson runs on neither: they lack the package"
    loaded = re.findall(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"([^\"]+)\"", page)
    assert loaded and not [one for one in loaded if "//" in one]
    assert (site / "_static/mathjax.js").stat().st_size > 1_000_000
    assert (
        "staleness" in json.dumps((site / "searchindex.js").read_text())
        or "stale" in (site / "searchindex.js").read_text()
    )

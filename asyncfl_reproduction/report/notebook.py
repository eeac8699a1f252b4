"""The report, made by executing its notebook and exporting it as pages that link to each other.

Each first-level heading of the notebook begins a page: there is a first page, one page per paper, and one for
everything else. The content of the pages comes from :mod:`asyncfl_reproduction.report`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from asyncfl_lite.base.errors import needs
from asyncfl_lite.base.files import write_atomically
from asyncfl_reproduction.grid.cells import Cell, expand_grid
from asyncfl_reproduction.grid.kernels import quiet_kernels
from asyncfl_reproduction.home import CELLS, NOTEBOOKS, kept_in, tier_file

if TYPE_CHECKING:
    from nbconvert import HTMLExporter
    from nbformat import NotebookNode

TEMPLATE = """
{%- extends "lab/index.html.j2" -%}
{%- block html_head_js -%}
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; font-src data:; style-src 'unsafe-inline'; base-uri 'none';
 form-action 'none'">
{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
{%- block html_head_js_mermaidjs -%}{%- endblock -%}
{%- block jupyter_widgets -%}{%- endblock -%}
{%- block html_head_css -%}{{ super() }}<style>{{ resources.style }}</style>{%- endblock -%}
{%- block body_header -%}{{ super() }}{{ resources.links }}{%- endblock -%}
{%- block data_png scoped -%}
<div class="jp-RenderedImage jp-OutputArea-output">
<img src="data:image/png;base64,{{ output.data["image/png"] | escape_html }}"
 alt="{{ (output | get_metadata("alt", "image/png") or "") | escape_html }}"></div>
{%- endblock -%}
"""
"""nbconvert's page without the scripts that it loads, which the report does not need; browsers may not load any.

Of a picture it keeps the text alternative, which nbconvert's own drops."""

STYLE = """
body { max-width: 76rem; margin: 0 auto; }
nav.report { position: sticky; top: 0; z-index: 9; background: white; border-bottom: 1px solid #ccc; padding: .6em 1em;
  font: 15px/1.5 system-ui, sans-serif; }
nav.report a { color: #0b5394; margin-right: 1.1em; text-decoration: none; }
nav.report a:hover { text-decoration: underline; }
nav.report a[aria-current] { color: black; font-weight: 600; }
nav.report details { display: inline; }
nav.report summary { cursor: pointer; display: inline; color: #555; }
nav.report ol { margin: .4em 0 0; padding-left: 1.6em; columns: 2; }
nav.report ol a { margin: 0; }
h1, h2, h3 { scroll-margin-top: 4rem; }
.jp-RenderedHTMLCommon { overflow-x: auto; }
details.folded > summary { cursor: pointer; }
"""


OWN_PARAMETERS = 'tier_file = "mine.yaml"\nruns = "runs"\nkept = "results"\ntables = None'
OWN_BEGIN = "from asyncfl_reproduction.report import Page\n\npage = Page(tier_file, runs, kept)"
OWN_PARTS = (
    ("Every number is read from the files that `asyncfl-lite grid` wrote. Accuracies are those of the final models, in "
     "percent: the mean over seeds ± the standard deviation.\n\n## Cells", "page.own_cells()"),
    ("## Curves\n\nLines are means over seeds, bands go from the lowest to the highest seed.", "page.own_curves()"),
    ("## Processor time", "page.compute()\npage.write_tables(tables, own=True)"),
)  # fmt: skip


class PageOf(NamedTuple):
    """A page of the report, with its file name, its title and its cells."""

    file: str
    title: str
    cells: list[NotebookNode]


def make_report(tier: str | Path, runs: str | Path = "runs", *, kept: str | Path | None = None) -> Path:
    """Execute the report notebook, export it to HTML, and return the path of the first page.

    The notebook also writes every table of the report as CSV, Markdown and LaTeX into ``tables/``, next to the pages.
    Cells that are not in ``runs`` are read from the tables in ``kept``. Users' own cells have the notebook of
    :func:`own_notebook`.

    Args:
        tier: a grid's file, or the name of a tier; the report is written into the tier's folder in ``runs``.
        runs: folder of results.
        kept: folder of the tables of recorded runs; if None, see :func:`.kept_in`.

    Raises:
        ConfigError: if the tier has no file.
    """
    with needs("grid", "the report"):
        import papermill

    file = tier_file(tier)
    cells = expand_grid(file)
    folder = Path(runs) / cells[0].shelf
    folder.mkdir(parents=True, exist_ok=True)
    executed = folder / "report.ipynb"
    quiet_kernels()
    parameters = {
        "tier_file": str(file.resolve()),
        "runs": str(Path(runs).resolve()),
        "kept": str((kept_in() if kept is None else Path(kept)).resolve()),
        "tables": str((folder / "tables").resolve()),
    }
    notebook = own_notebook(cells[0].shelf, file) if is_own(cells) else NOTEBOOKS / "report.ipynb"
    papermill.execute_notebook(notebook, executed, parameters, kernel_name="python3", progress_bar=False)
    pages = as_pages(executed)
    for name, html in pages.items():
        write_atomically(folder / name, html)
    return folder / next(iter(pages))


def as_pages(executed: str | Path) -> dict[str, str]:
    """Return an executed notebook as HTML pages by file name, the first page first.

    The pages fetch nothing from elsewhere, and a browser runs no script in them, whoever wrote it.
    """
    with needs("grid", "the report"):
        import nbformat
        from jinja2 import DictLoader
        from nbconvert import HTMLExporter

    notebook = nbformat.read(executed, as_version=4)
    pages = _pages(notebook.cells)
    exporter = HTMLExporter(
        exclude_input=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        extra_loaders=[DictLoader({"page.html.j2": TEMPLATE})],
        template_file="page.html.j2",
    )
    return {page.file: _as_html(exporter, notebook, page, pages) for page in pages}


def _pages(cells: Sequence[NotebookNode]) -> list[PageOf]:
    """Split a notebook into pages at its first-level headings; cells before the first heading go on the first page."""
    pages: list[PageOf] = []
    before: list[NotebookNode] = []
    for cell in cells:
        if title := _headings(cell, "#"):
            name = re.sub("[^a-z0-9]+", "-", title[0].lower()).strip("-")
            pages.append(PageOf(f"report-{name}.html" if pages else "report.html", title[0], []))
            pages[-1].cells.extend(before)
            before = []
        (pages[-1].cells if pages else before).append(cell)
    return pages or [PageOf("report.html", "Report", before)]


def _headings(cell: NotebookNode, level: str) -> list[str]:
    return re.findall(rf"^{level} (.+)$", cell.source, re.M) if cell.cell_type == "markdown" else []


def _as_html(exporter: HTMLExporter, notebook: NotebookNode, page: PageOf, pages: Sequence[PageOf]) -> str:
    own = notebook.copy()
    own.cells = page.cells
    resources = {"metadata": {"name": page.title}, "style": STYLE, "links": _links(page, pages)}
    return exporter.from_notebook_node(own, resources)[0]


def _links(page: PageOf, pages: Sequence[PageOf]) -> str:
    """Return the header of a page, with links to all pages and to the sections of this page."""
    others = " ".join(
        f'<a href="{one.file}"{" aria-current=page" * (one is page)}>{escape(one.title.split(":")[0])}</a>'
        for one in pages
    )
    own = [title for cell in page.cells for title in _headings(cell, "##")]
    items = "".join(f'<li><a href="#{escape(_anchor(title))}">{escape(title)}</a></li>' for title in own)
    contents = f"<details><summary>on this page</summary><ol>{items}</ol></details>" if own else ""
    return f'<nav class="report">{others}{contents}</nav>'


def _anchor(title: str) -> str:
    """Return the anchor that nbconvert gives a heading."""
    return quote(title.replace(" ", "-"), safe="?/:@!$&'()*+,;=")


def is_own(cells: Iterable[Cell]) -> bool:
    """Return whether all of these cells are the user's own, that is, none belongs to the package's experiments."""
    named = {match for file in CELLS.glob("*.yaml")
             for match in re.findall(r"^paper: *['\"]?([\w-]+)", file.read_text("utf-8"), re.M)}  # fmt: skip
    return named.isdisjoint(cell.name.split("/")[0] for cell in cells)


def own_notebook(tier: str, file: Path) -> NotebookNode:
    """Return the report notebook for a user's own grid, before execution."""
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

    cells = [
        new_markdown_cell(f"# Report: {tier}\n\nThe cells of `{file.name}`."),
        new_code_cell(OWN_PARAMETERS, metadata={"tags": ["parameters"]}),
        new_code_cell(OWN_BEGIN),
    ]
    for text, code in OWN_PARTS:
        cells += [new_markdown_cell(text), new_code_cell(code)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})

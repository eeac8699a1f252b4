"""Making the report: its notebook executed and exported. Its parts are in :mod:`asyncfl_lite.reproduction.report`."""

from __future__ import annotations

from pathlib import Path

from asyncfl_lite.base.files import write_atomically
from asyncfl_lite.base.home import home_of
from asyncfl_lite.base.libraries import needs
from asyncfl_lite.reproduction.grid.kernels import quiet_kernels
from asyncfl_lite.reproduction.places import tier_file

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
"""
"""nbconvert's page without the scripts that it fetches, which the report does not need; browsers are told so too."""


def make_report(
    tier: str | Path, runs: str | Path = "runs", *, notebook: str | Path | None = None, kept: str | Path = "results"
) -> Path:
    """Execute the report notebook and export it to HTML; return the HTML file's path.

    Beside it, ``tables/`` gets every table of the report as CSV, Markdown and LaTeX, which the notebook writes.
    Cells that are not in ``runs`` are read from the tables in ``kept``.

    Args:
        tier: a grid's file, or the name of one; the report lies in the folder of ``runs`` that has its name.
        runs: folder of results.
        notebook: the papermill template; the package's own if None.
        kept: folder of the tables of recorded runs.

    Raises:
        ConfigError: when the tier has no file.
    """
    with needs("grid", "the report"):
        import papermill

    file = tier_file(tier)
    folder = Path(runs) / file.stem
    folder.mkdir(parents=True, exist_ok=True)
    executed, page = folder / "report.ipynb", folder / "report.html"
    quiet_kernels()
    parameters = {
        "tier_file": str(file.resolve()),
        "runs": str(Path(runs).resolve()),
        "kept": str(Path(kept).resolve()),
        "tables": str((folder / "tables").resolve()),
    }
    notebook = home_of("notebooks") / "report.ipynb" if notebook is None else notebook
    papermill.execute_notebook(notebook, executed, parameters, kernel_name="python3", progress_bar=False)
    write_atomically(page, as_page(executed))
    return page


def as_page(executed: str | Path) -> str:
    """Return an executed notebook as one HTML page of texts, tables and pictures.

    Nothing in it is fetched from elsewhere, and a browser runs no script that came into it, whoever wrote it.
    """
    with needs("grid", "the report"):
        from jinja2 import DictLoader
        from nbconvert import HTMLExporter

    exporter = HTMLExporter(
        exclude_input=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        extra_loaders=[DictLoader({"page.html.j2": TEMPLATE})],
        template_file="page.html.j2",
    )
    return exporter.from_filename(str(executed))[0]

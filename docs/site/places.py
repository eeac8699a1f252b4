"""Additions to Sphinx's pages: the explorables, MathJax, and links into the repository."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.nodes import Node
from docutils.utils import unescape
from sphinx.application import Sphinx
from sphinx.config import Config

ROOT = Path(__file__).parents[2]


def launch(app: Sphinx, config: Config) -> None:
    """Show a button that leads to the repository, and one that downloads a lesson, if the repository has an address.

    No button opens a lesson on another site: the lessons need this package, which such a site does not have.
    """
    options = config.html_theme_options
    if config.repository:
        options["repository_url"] = config.repository
        options["use_repository_button"] = True
    options["use_download_button"] = bool(config.repository)


def in_repository(name: str, rawtext: str, text: str, lineno: int, inliner: Any, **_: Any) -> tuple[list[Node], list]:
    """Return a link to a file (role ``repository``), or only its text if the repository has no address."""
    said, _, path = unescape(text).strip().rpartition(" <")
    address = inliner.document.settings.env.config.repository
    words = nodes.literal if said.startswith("`") else nodes.inline
    shown = words(rawtext, said.strip("`"))
    if not address:
        return [shown], []
    return [nodes.reference(rawtext, "", shown, refuri=f"{address}/blob/main/{path.rstrip('>')}")], []


def put_beside(app: Sphinx, error: Exception | None) -> None:
    """Copy the explorables, their share picture and MathJax, which Sphinx does not make, into the site."""
    if error is None and app.builder.format == "html":
        site = Path(app.outdir)
        (site / "docs/pictures").mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "docs/pictures/explore.png", site / "docs/pictures")
        for page in (ROOT / "docs").glob("*.html"):
            text = re.sub(r"(href=\"[\w/.]+)\.(md|ipynb)\b", r"\1.html", page.read_text())
            if base := app.config.html_baseurl:  # those who show a link's picture want its whole address
                text = text.replace('content="pictures/', f'content="{base}docs/pictures/')
            (site / "docs" / page.name).write_text(text)
        shutil.copy(app.config._raw_config["MATHJAX"], site / "_static" / "mathjax.js")
        tools = site / "_static/searchtools.js"  # Sphinx adds what it finds, and fails where a page has no such section
        tools.write_text(tools.read_text().replace('"") return null;', '"") return document.createElement("p");'))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the buttons, the copies and the role with Sphinx."""
    app.connect("config-inited", launch)
    app.connect("build-finished", put_beside)
    app.add_role("repository", in_repository)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

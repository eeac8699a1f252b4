"""Line breaks, allowed in long names of code, but not inside an interval or between a formula and its full stop."""

from __future__ import annotations

import re
from typing import Any

from docutils.nodes import document
from sphinx.application import Sphinx

NAME = re.compile(r"(?<=<span class=\"pre\">)[^<\s]{12,}(?=</span>)")
IN_PATH, IN_NAME = (re.compile(rf"(?<=\w)([{marks}]+)(?=\w)") for marks in ("/=", "_="))
INTERVAL = re.compile(r"\[([+−-]?[\d.]+), ([+−-]?[\d.]+)\]")
FORMULA = re.compile(r"(\()?(<span class=\"math notranslate nohighlight\">[^<]*</span>)([.,;:?!)’]+)?")


def with_breaks(page: str) -> str:
    """Return a page's HTML with breaks in long names, and none that would split an interval or a formula."""
    page = NAME.sub(lambda name: (IN_PATH if "/" in name[0] else IN_NAME).sub(r"\1<wbr>", name[0]), page)
    return FORMULA.sub(_whole, INTERVAL.sub("[\\1,\u00a0\\2]", page))


def _whole(found: re.Match[str]) -> str:
    before, formula, after = found[1] or "", found[2], found[3] or ""
    return f'<span class="whole">{before}{formula}{after}</span>' if before or after else formula


def change_body(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: document | None) -> None:
    """Apply :func:`with_breaks` to the body of a page."""
    if "body" in context:
        context["body"] = with_breaks(context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register :func:`change_body` with Sphinx."""
    app.connect("html-page-context", change_body)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

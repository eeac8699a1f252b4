"""Findings about a method for the pages: its row in the table of leads of docs/findings.md, and its bullets."""

from __future__ import annotations

import html
import re
from pathlib import Path

FINDINGS = Path(__file__).parents[1] / "findings.md"
SECTIONS = ("What holds", "What is equivalent", "What is reversed")


def leads(text: str) -> dict[str, dict[str, str]]:
    """Return each method's first lead over FedBuff, such as ``{"FedEcho": {"rate1": "+6.7", "tuned": "+0.0"}}``.

    Raises:
        ValueError: if the page has no table of leads.
    """
    rows = [
        [cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines() if line.count("|") == 7
    ]
    found: dict[str, dict[str, str]] = {}
    for name, _, rate1, _, tuned, _ in rows:
        if re.match(r"[+−]\d", rate1):
            method = re.split(r"[ ,]", name)[0]
            found.setdefault(method, {"rate1": rate1.split(" ")[0], "tuned": tuned.split(" ")[0]})
    if not found:
        raise ValueError(f"{FINDINGS.name}: no table of leads over FedBuff was found")
    return found


def bullets(text: str, method: str) -> dict[str, list[str]]:
    """Return, as HTML by section, the bullets whose bold words name a method; sections without one are left out.

    Raises:
        ValueError: if the page lacks one of the sections, or no bullet names the method.
    """
    found: dict[str, list[str]] = {}
    bodies = dict(section.split("\n", 1) for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:])
    for title in SECTIONS:
        if title not in bodies:
            raise ValueError(f"{FINDINGS.name}: no section {title!r}")
        own = [
            bullet
            for bullet in re.findall(r"^- (.+(?:\n  .+)*)", bodies[title], flags=re.MULTILINE)
            if method in _bold(bullet)
        ]
        if own:
            found[title] = [_as_html(bullet) for bullet in own]
    if not found:
        raise ValueError(f"{FINDINGS.name}: no finding about {method}")
    return found


def _bold(bullet: str) -> str:
    return " ".join(re.findall(r"\*\*(.+?)\*\*", bullet, flags=re.DOTALL))


def _as_html(bullet: str) -> str:
    plain = html.escape(re.sub(r"\[\^\d+\]", "", " ".join(bullet.split())), quote=False)
    bold = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", plain)
    return re.sub(r"`(.+?)`", r"<code>\1</code>", re.sub(r"\*(.+?)\*", r"<em>\1</em>", bold))

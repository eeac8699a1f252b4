"""Findings about a method for the pages: its rows in the table of leads of docs/findings.md."""

from __future__ import annotations

import re
from pathlib import Path

FINDINGS = Path(__file__).parents[1] / "findings.md"
LEAD = re.compile(r"([+−]\d+\.\d) \[(−?\d+\.\d), (−?\d+\.\d)\]$")
COLUMNS = ("plain", "rate1", "tuned")


def leads(text: str) -> dict[str, list[dict[str, object]]]:
    """Return each method's leads over FedBuff in points, a row for each setting.

    A row is ``{"setting": "bias 1", "paper": "+12.0", "plain": [-6.5, -8.9, -4.1], "rate1": ..., "tuned": ...}``. Its
    last three are a lead with the ends of its interval. ``paper`` is empty where the paper prints none.

    Raises:
        ValueError: if the page has no table of leads.
    """
    found: dict[str, list[dict[str, object]]] = {}
    for line in text.splitlines():
        name, *cells = [cell.strip() for cell in line.strip("| ").split("|")]
        read = [match for cell in cells[1:4] if (match := LEAD.match(cell))]
        if len(read) == len(COLUMNS):
            method, _, setting = name.replace(" †", "").partition(", ")
            values = ([float(part.replace("−", "-")) for part in match.groups()] for match in read)
            row = {"setting": setting, "paper": cells[0], **dict(zip(COLUMNS, values, strict=True))}
            found.setdefault(method, []).append(row)
    if not found:
        raise ValueError(f"{FINDINGS.name}: no table of leads over FedBuff was found")
    return found

"""Which code cells of a lesson only show what is recorded: nbval compares their outputs on any machine.

A cell shows records if it uses ``lessons.compare`` and its like, or what an earlier cell made with them. A cell that
uses torch or a run, or what an earlier cell made with those, computes: other processors round it otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from solutions import names_of

TAG = "nbval-check-output"
READ = re.compile(r"\blessons\.(?:compare|differences|evidence|leads|scores)\b")
"""Functions of ``lessons`` that read records."""
COMPUTE = {"torch", "Run", "run", "run_many", "make_algorithm", "make_model", "make_task", "time", "timeit"}


def showing_records(cells: Iterable[Any]) -> Iterator[Any]:
    """Yield code cells that print what they only read of records, in order."""
    recorded, computed, imported = set(), set(), set()
    for cell in cells:
        if cell.cell_type != "code" or "exercise" in cell.metadata.get("tags", []):
            continue
        names = names_of(cell.source)
        imported |= names.imports
        made, used = (names.binds | names.changes) - imported, names.reads | names.later
        reads = bool(used & recorded) or bool(READ.search(cell.source))
        computes = not names.imports and bool(used & (computed | COMPUTE))
        recorded = recorded | made if reads else recorded - made
        computed = computed | made if computes else computed - made
        if reads and not computes and any(out.get("name") == "stdout" for out in cell.outputs):
            yield cell

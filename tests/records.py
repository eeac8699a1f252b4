"""Which code cells of a lesson only show what is recorded: nbval compares their outputs on any machine.

A cell shows records if it uses ``lessons.compare`` and its like, or what an earlier cell made with them. A cell that
uses torch or a run, or what an earlier cell made with those, computes: other processors round it otherwise.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

TAG = "nbval-check-output"
READERS = {"compare", "differences", "evidence", "leads", "scores"}
"""Functions of ``lessons`` that read records."""
COMPUTE = {"torch", "Run", "run", "run_many", "make_algorithm", "make_model", "make_task", "time", "timeit"}


def showing_records(cells: Iterable[Any]) -> Iterator[Any]:
    """Yield code cells that print what they only read of records, in order."""
    recorded, computed = set(), set()
    for cell in cells:
        if cell.cell_type != "code" or "exercise" in cell.metadata.get("tags", []):
            continue
        tree = ast.parse(cell.source)
        made = {name for line in tree.body for name in _made(line)}
        used = _used(tree)
        imports = any(isinstance(node, ast.Import | ast.ImportFrom) for node in tree.body)
        reads = bool(used & recorded) or _reads(tree)
        computes = not imports and bool(used & (computed | COMPUTE))
        recorded = recorded | made if reads else recorded - made
        computed = computed | made if computes else computed - made
        if reads and not computes and any(out.get("name") == "stdout" for out in cell.outputs):
            yield cell


def _reads(tree: ast.AST) -> bool:
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name))
    return any(node.value.id == "lessons" and node.attr in READERS for node in calls)


def _used(tree: ast.AST) -> set[str]:
    """Names that come from cells above: loaded, and bound nowhere in the cell."""
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return {node.id for node in names} - bound


def _made(line: ast.AST) -> Iterator[str]:
    """Names that a line defines or changes for cells below, not those of functions' and comprehensions' own."""
    if isinstance(line, ast.FunctionDef | ast.ClassDef):
        yield line.name
        return
    if isinstance(line, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.Lambda):
        return
    if isinstance(line, ast.Name | ast.Subscript) and isinstance(line.ctx, ast.Store):
        yield from (node.id for node in ast.walk(line) if isinstance(node, ast.Name))
    for part in ast.iter_child_nodes(line):
        yield from _made(part)

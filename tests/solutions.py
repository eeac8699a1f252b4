"""Exercises and folded solutions as lessons hold them, and which of a lesson's statements each of them needs.

A cell of an exercise has the tag ``exercise``: a stub, and as its last statement ``lessons.check("07.1", answer)``. The
next cells of markdown have, folded, a hint, and a solution whose code takes the stub's place.

A lesson takes minutes, and a solution needs little of it: imports, functions, some settings. :func:`needed` finds that
by name, from the solution backwards. It sees which statements bind a name, and which change what a name holds
(``x[0] = ...``, ``x.a = ...``, ``x.append(...)``), not what a function does to its arguments.
"""

from __future__ import annotations

import ast
import dis
import re
from collections.abc import Iterator, Sequence
from functools import cache
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType
from typing import NamedTuple

import nbformat

FOLDED = re.compile(r"<details>\s*<summary>([^<]*)</summary>(.*?)</details>", re.S)
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)
IMMEDIATE = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
"""Scopes whose code runs where it stands; a function's and a lambda's runs when they are called."""


class Solution(NamedTuple):
    """One fenced block under a summary that says "Solution"."""

    name: str  # of the lesson, with the block's number in it, from 1: ``03_baselines-2``
    place: int  # how many of the lesson's statements stand before it
    language: str  # ``python`` for what can be run
    code: str


class Lesson(NamedTuple):
    """The statements of a notebook's code cells, functions and loops being one each, and its solutions."""

    statements: list[str]
    solutions: list[Solution]


@cache
def cells_of(path: Path) -> list[nbformat.NotebookNode]:
    """Read a notebook's cells; they are kept, so they must not be changed."""
    return nbformat.read(path, as_version=4).cells


@cache
def statements_of(code: str) -> list[str]:
    """Return the statements of a cell's code."""
    return [ast.unparse(statement) for statement in ast.parse(code).body]


@cache
def lesson(path: Path, until: int | None = None) -> Lesson:
    """Read a notebook, or its cells before one, without the cells of exercises, which nothing else may need."""
    statements: list[str] = []
    found: list[Solution] = []
    for cell in cells_of(path)[:until]:
        if cell.cell_type == "code":
            if "exercise" not in cell.metadata.get("tags", []):
                statements += statements_of(cell.source)
            continue
        for summary, text in FOLDED.findall(cell.source):
            for language, code in FENCED.findall(text) if "Solution" in summary else ():
                found.append(Solution(f"{path.stem}-{len(found) + 1}", len(statements), language, code))
    return Lesson(statements, found)


class Names:
    """What a piece of code has to do with the names of a notebook."""

    def __init__(self) -> None:
        self.binds: set[str] = set()  # names that it gives a value
        self.changes: set[str] = set()  # what it changes in place, or may by calling a method or a function of it
        self.imports: set[str] = set()
        self.reads: set[str] = set()  # names that must have a value before it
        self.later: set[str] = set()  # names that its functions need when they are called
        self.registers: set[str] = set()  # texts under which it registers classes; configurations name them
        self.texts: set[str] = set()


@cache
def names_of(code: str) -> Names:
    """Analyse a piece of code; what is returned is kept, so it must not be changed."""
    tree, found = ast.parse(code), Names()
    _read(compile(tree, "cell", "exec"), found, found.binds)
    found.later -= found.binds
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.texts.add(node.value)
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.imports.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "register":
            found.registers.update(one.value for one in node.args if isinstance(one, ast.Constant))
    for node in _outside_functions(tree):
        called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
        stored = isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del)
        if stored or isinstance(called, ast.Attribute):
            found.changes.update(_root(node if stored else called))
    return found


def _outside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree that are in no function's body, where names are mostly the function's own."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            yield node
            yield from _outside_functions(node)


def _root(node: ast.expr) -> set[str]:
    """Return the name at the beginning of ``name.a[0].b``."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return {node.id} if isinstance(node, ast.Name) else set()


def _read(code: CodeType, found: Names, bound: set[str], now: bool = True) -> None:
    """Take up the names that bytecode loads and stores, in order; a function's are needed when it is called."""
    for step in dis.get_instructions(code):
        if step.opname in ("STORE_NAME", "STORE_GLOBAL"):
            bound.add(step.argval)
        elif step.opname in ("LOAD_NAME", "LOAD_GLOBAL"):
            (found.reads if now else found.later).update({step.argval} - bound)
        elif isinstance(step.argval, CodeType):  # a comprehension and a class's body run where they stand
            runs = now and (step.argval.co_name in IMMEDIATE or not step.argval.co_flags & CO_OPTIMIZED)
            _read(step.argval, found, set(bound) if runs else set(), runs)


def needed(pieces: Sequence[str], code: str) -> list[int]:
    """Return the places of the pieces of code that must run, in order, before ``code`` can.

    Of a name's bindings the last one before its use counts, and all changes between the two; for a name that a function
    uses, also the last of all. A piece that registers a class counts as soon as one that is needed says its name.
    """
    known, end = [names_of(piece) for piece in (*pieces, code)], len(pieces)
    imported = {name for one in known for name in one.imports}  # called everywhere, and no more than read
    chosen: set[int] = set()
    todo = list(_wanted(known[end], imported, end, end))
    seen = set(todo)
    while todo:
        name, before = todo.pop()
        for place in _providers(known, imported, name, before):
            chosen.add(place)
            fresh = set(_wanted(known[place], imported, place, end)) - seen
            seen |= fresh
            todo += fresh
    return sorted(chosen)


def _wanted(names: Names, imported: set[str], index: int, end: int) -> Iterator[tuple[str, int]]:
    """Yield what a piece needs, and before which place it must stand."""
    for name in names.reads | (names.changes - imported) | {f"'{text}'" for text in names.texts}:
        yield name, index
    for name in names.later:
        yield name, end
        yield name, index


def _providers(known: Sequence[Names], imported: set[str], name: str, before: int) -> Iterator[int]:
    """Yield the piece that binds a name last before a place, and those that change it until there."""
    for index in reversed(range(before)):
        binds = name in known[index].binds or name in {f"'{text}'" for text in known[index].registers}
        if binds or (name in known[index].changes and name not in imported):
            yield index
        if binds:
            return


class Stub(NamedTuple):
    """An exercise as a lesson shows it."""

    id: str  # such as ``07.1``
    lesson: str  # the notebook's name
    cell: int  # the place of its cell among all cells
    asked: str  # the markdown above it
    code: str  # the stub
    checked: str  # the statement that checks
    folds: list[str]  # the summaries of what is folded below it, until the next code
    solution: str  # the code that takes the stub's place


def exercises_of(path: Path) -> list[Stub]:
    """Read a lesson's exercises; a solution that is not there is empty."""
    cells = cells_of(path)
    found = []
    for index, cell in enumerate(cells):
        if cell.cell_type != "code" or "exercise" not in cell.metadata.get("tags", []):
            continue
        *before, last = ast.parse(cell.source).body
        checked = ast.get_source_segment(cell.source, last)
        code = "\n".join(cell.source.splitlines()[: last.lineno - 1])
        below = ""
        for other in cells[index + 1 :]:
            if other.cell_type != "markdown":
                break
            below += other.source + "\n"
        folds = FOLDED.findall(below)
        solution = next((code for summary, text in folds if "Solution" in summary
                         for language, code in FENCED.findall(text) if language == "python"), "")  # fmt: skip
        id = last.value.args[0].value
        asked = cells[index - 1].source if cells[index - 1].cell_type == "markdown" else ""
        found.append(Stub(id, path.stem, index, asked, code, checked, [one for one, _ in folds], solution))
    return found


def filled(stub: Stub) -> str:
    """Return the cell's code with the solution in the stub's place, which stops unless it is right and hears why."""
    return f"{stub.solution}\n_checked = {stub.checked}\nassert _checked and _checked.message, repr(_checked)\n_checked"

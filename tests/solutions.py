"""The solutions that lessons fold away, and which of a lesson's statements each of them needs.

A lesson takes minutes, and a solution needs little of it: imports, functions, some settings. :func:`needed` finds that
by name, from the solution backwards. It sees which statements bind a name, and which change what a name holds
(``x[0] = ...``, ``x.a = ...``, ``x.append(...)``), not what a function does to its arguments.
"""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import nbformat

FOLDED = re.compile(r"<details>\s*<summary>([^<]*)</summary>(.*?)</details>", re.S)
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)
IMMEDIATE = ("listcomp", "setcomp", "dictcomp", "genexpr")
"""Scopes whose code runs where it stands; a function's and a lambda's runs when they are called."""


class Solution(NamedTuple):
    """One fenced block under a summary that says "Solution".

    Attributes:
        name: the lesson and the block's number in it, from 1: ``03_baselines-2``.
        place: how many of the lesson's statements stand before it.
        language: after the fence, ``python`` for what can be run.
    """

    name: str
    place: int
    language: str
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


@dataclass
class Names:
    """What a piece of code has to do with the names of a notebook.

    Attributes:
        binds: names that it gives a value.
        changes: names of what it changes in place; a module's functions that it calls are among them.
        imports: names that it imports.
        reads: names that must have a value before it.
        later: names that its functions need when they are called.
        registers: texts under which it registers classes; configurations name them.
        texts: all its texts.
    """

    binds: set[str] = field(default_factory=set)
    changes: set[str] = field(default_factory=set)
    imports: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    later: set[str] = field(default_factory=set)
    registers: set[str] = field(default_factory=set)
    texts: set[str] = field(default_factory=set)


@cache
def names_of(code: str) -> Names:
    """Analyse a piece of code; what is returned is kept, so it must not be changed."""
    tree, found = ast.parse(code), Names()
    _follow(tree.body, found, set())
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


def _follow(body: Iterable[ast.stmt], found: Names, bound: set[str]) -> None:
    """Go through statements in order; a name that one of them binds is not read from before by the next."""
    for statement in body:
        inner = [part for name in ("body", "orelse", "handlers", "finalbody") for part in getattr(statement, name, [])]
        if not inner or isinstance(statement, ast.FunctionDef | ast.ClassDef):
            _simple(statement, found, bound)
            continue
        for name in ("target", "iter", "test", "items", "subject"):  # the head of a compound statement
            parts = getattr(statement, name, [])
            for part in parts if isinstance(parts, list) else [parts]:
                if isinstance(part, ast.withitem):
                    _simple(ast.Expr(part.context_expr), found, bound)
                    part = part.optional_vars
                if part is not None:
                    stored = isinstance(getattr(part, "ctx", None), ast.Store)
                    value = ast.Constant(0)
                    _simple(ast.Assign([part], value, lineno=1) if stored else ast.Expr(part), found, bound)
        for part in inner:
            if isinstance(part, ast.ExceptHandler) and part.type is not None:
                _simple(ast.Expr(part.type), found, bound)
            _follow(part.body if isinstance(part, ast.ExceptHandler) else [part], found, bound)


def _simple(statement: ast.stmt, found: Names, bound: set[str]) -> None:
    """Take up the names of a statement without others inside, a function or a class."""
    table = symtable.symtable(ast.unparse(ast.fix_missing_locations(statement)), "cell", "exec")
    now, later = _used(table, inside=False)
    if isinstance(statement, ast.AugAssign):
        now |= _root(statement.target)
    new = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    own = new if isinstance(statement, ast.FunctionDef | ast.ClassDef) else set()
    found.reads |= now - bound - own
    found.later |= later - own
    found.binds |= new
    bound |= new


def _used(table: symtable.SymbolTable, inside: bool) -> tuple[set[str], set[str]]:
    """Return the notebook's names that a scope uses at once, and those that its functions use when called."""
    now = {s.get_name() for s in table.get_symbols() if s.is_referenced() and (s.is_global() or not inside)}
    later: set[str] = set()
    for child in table.get_children():
        at_once, when_called = _used(child, inside=True)
        runs_now = child.get_type() == "class" or child.get_name() in IMMEDIATE
        now |= at_once if runs_now else set()
        later |= when_called | (set() if runs_now else at_once)
    return now, later


def needed(pieces: Sequence[str], code: str) -> list[int]:
    """Return the places of the pieces of code that must run, in order, before ``code`` can.

    Of a name's bindings the last one before its use counts, and all changes between the two; for a name that a function
    uses, also the last of all. A piece that registers a class counts as soon as one that is needed says its name.
    """
    known, end = [names_of(piece) for piece in (*pieces, code)], len(pieces)
    imported = {name for one in known for name in one.imports}
    # Imported names are no more than read: figures' and arrays' libraries are called everywhere.
    known = [replace(one, changes=one.changes - imported) for one in known]
    chosen: set[int] = set()
    todo = list(_wanted(known[end], end, end))
    seen = set(todo)
    while todo:
        name, before = todo.pop()
        for place in _providers(known, name, before):
            chosen.add(place)
            fresh = set(_wanted(known[place], place, end)) - seen
            seen |= fresh
            todo += fresh
    return sorted(chosen)


def _wanted(names: Names, index: int, end: int) -> Iterator[tuple[str, int]]:
    """Yield what a piece needs, and before which place it must stand."""
    for name in names.reads | names.changes | {f"'{text}'" for text in names.texts}:
        yield name, index
    for name in names.later:
        yield name, end
        yield name, index


def _providers(known: Sequence[Names], name: str, before: int) -> Iterator[int]:
    """Yield the piece that binds a name last before a place, and those that change it until there."""
    for index in reversed(range(before)):
        binds = name in known[index].binds or name in {f"'{text}'" for text in known[index].registers}
        if binds or name in known[index].changes:
            yield index
        if binds:
            return

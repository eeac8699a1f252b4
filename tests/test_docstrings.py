"""The worked examples in docstrings print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import asyncfl_course
import asyncfl_lite
import asyncfl_reproduction
from asyncfl_lite.simulator.delays import DelayLaw
from asyncfl_lite.tasks import TASKS
from asyncfl_lite.tasks.partitions import Partition

OPENED_BY_IMPORT = {"asyncfl_lite.__main__", "asyncfl_course.explore.__main__"}
"""Modules that do their work when they are imported."""
SHOWN = [
    *(getattr(asyncfl_lite, name) for name in asyncfl_lite.__all__ if name != "__version__"),
    *(task for task in map(TASKS.get, TASKS) if "folder" not in task.model_fields),
    DelayLaw,
    Partition,
]
"""Public names and tasks without files: each has an example of its own; methods, delay laws and partitions have one."""


def examples() -> list[doctest.DocTest]:
    """Every docstring of the package that holds an example."""
    packages = [asyncfl_lite, asyncfl_reproduction, asyncfl_course]
    names = [one.name for of in packages for one in pkgutil.walk_packages(of.__path__, f"{of.__name__}.")]
    modules = [*packages, *(importlib.import_module(name) for name in names if name not in OPENED_BY_IMPORT)]
    finder = doctest.DocTestFinder(exclude_empty=True)
    return [found for module in modules for found in finder.find(module) if found.examples]


EXAMPLES = examples()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_examples_print_what_they_say(example, capsys):
    outcome = doctest.DocTestRunner(verbose=False).run(example, clear_globs=False)
    assert outcome.attempted and not outcome.failed, capsys.readouterr().out


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: shown.__qualname__)
def test_every_name_that_a_learner_calls_has_an_example(shown):
    if not shown.__module__.startswith(("asyncfl_lite.", "asyncfl_reproduction.")):
        pytest.skip("registered by another test")
    assert f"{shown.__module__}.{shown.__qualname__}" in {example.name for example in EXAMPLES}

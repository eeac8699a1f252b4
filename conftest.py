"""For notebooks under nbval as for tests: one torch thread a process, kernels that do not chatter and start warm."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from asyncfl_reproduction.grid.kernels import quiet_kernels, warm_kernels

IMPORTED_BY_LESSONS = (
    *("asyncfl_lite", "asyncfl_course.explore", "asyncfl_reproduction.report"),
    *("matplotlib.pyplot", "pandas", "scipy.stats", "seaborn", "torch", "torch._dynamo"),
    *("sklearn.datasets", "sklearn.model_selection"),
)

os.environ.setdefault("OMP_NUM_THREADS", "1")
quiet_kernels()
with (Path(os.environ["IPYTHONDIR"]) / "profile_default/ipython_kernel_config.py").open("a") as config:
    # Nobody looks at these pictures: they are drawn once, not a second time to cut off what is white around them.
    config.write("c.InlineBackend.print_figure_kwargs = {'bbox_inches': None}\n")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Start the kernel of a notebook, which its first cell needs, as a fork of a process that has imported much."""
    if type(item).__name__ != "IPyNbCell":
        return (yield)
    if item.cell.source.rstrip().endswith(";"):  # hides the last value in Jupyter, but not without a history, as here
        item.cell.source += "\nNone"
    with warm_kernels(IMPORTED_BY_LESSONS):
        return (yield)


@pytest.fixture
def as_for_lessons() -> Iterator[None]:
    """Start kernels as those of the lessons are, from the same process."""
    with warm_kernels(IMPORTED_BY_LESSONS):
        yield

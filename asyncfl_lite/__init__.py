"""Learn and reproduce asynchronous federated learning.

>>> from asyncfl_lite import Config, run
>>> result = run(Config(task="digits", algorithm="fedbuff", rounds=10))
>>> result.summary["client_updates"]
50
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from asyncfl_lite.base import __version__
from asyncfl_lite.base.errors import AsyncFLError

if TYPE_CHECKING:
    from asyncfl_lite.algorithms import Algorithm, ServerContext, Update, make_algorithm
    from asyncfl_lite.runs.assembly import schedule
    from asyncfl_lite.runs.callbacks import StopRun
    from asyncfl_lite.runs.config import Config
    from asyncfl_lite.runs.lockstep import run_many
    from asyncfl_lite.runs.results import Result, load_result
    from asyncfl_lite.runs.run import Run, run
    from asyncfl_lite.runs.tables import results_table
    from asyncfl_lite.simulator.simulation import Simulation
    from asyncfl_lite.tasks import Task

HOMES = {
    "algorithms": ("Algorithm", "ServerContext", "Update", "make_algorithm"),
    "runs.assembly": ("schedule",),
    "runs.callbacks": ("StopRun",),
    "runs.config": ("Config",),
    "runs.lockstep": ("run_many",),
    "runs.results": ("Result", "load_result"),
    "runs.run": ("Run", "run"),
    "runs.tables": ("results_table",),
    "simulator.simulation": ("Simulation",),
    "tasks": ("Task",),
}
"""Module -> the names imported from it on first use, because importing torch takes seconds and ``--help`` should not.
"""

__all__ = [
    "Algorithm",
    "AsyncFLError",
    "Config",
    "Result",
    "Run",
    "ServerContext",
    "Simulation",
    "StopRun",
    "Task",
    "Update",
    "__version__",
    "load_result",
    "make_algorithm",
    "results_table",
    "run",
    "run_many",
    "schedule",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    for module, names in HOMES.items():
        if name in names:
            globals()[name] = found = getattr(import_module(f"{__name__}.{module}"), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names that ``dir`` lists, including those not imported yet."""
    return sorted({*globals(), *__all__})

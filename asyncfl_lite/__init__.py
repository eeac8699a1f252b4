"""Learn and reproduce asynchronous federated learning.

>>> from asyncfl_lite import Config, run
>>> result = run(Config(task="digits", algorithm="fedbuff", rounds=10))
>>> result.summary["client_updates"]
50
"""

from asyncfl_lite.algorithms import Algorithm, ServerContext, Update, make_algorithm
from asyncfl_lite.base.errors import AsyncFLError
from asyncfl_lite.base.version import __version__
from asyncfl_lite.runs.assembly import schedule
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.lockstep import run_many
from asyncfl_lite.runs.results import Result, load_result
from asyncfl_lite.runs.run import Run, run
from asyncfl_lite.simulator.simulation import Simulation
from asyncfl_lite.tasks import Task

__all__ = [
    "Algorithm",
    "AsyncFLError",
    "Config",
    "Result",
    "Run",
    "ServerContext",
    "Simulation",
    "Task",
    "Update",
    "__version__",
    "load_result",
    "make_algorithm",
    "run",
    "run_many",
    "schedule",
]

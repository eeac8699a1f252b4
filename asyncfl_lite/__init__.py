"""Learn and reproduce asynchronous federated learning.

>>> from asyncfl_lite import Config, run
>>> result = run(Config(task="digits", algorithm="fedbuff", rounds=10))
>>> result.summary["client_updates"]
50
"""

__version__ = "0.1.0"

from asyncfl_lite.algorithms import Algorithm, ServerContext, Update, make_algorithm
from asyncfl_lite.assembly import schedule
from asyncfl_lite.config import Config
from asyncfl_lite.errors import AsyncFLError
from asyncfl_lite.lockstep import run_many
from asyncfl_lite.results import Result, load_result
from asyncfl_lite.runner import Run, run
from asyncfl_lite.simulator import Simulation
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
    "load_result",
    "make_algorithm",
    "run",
    "run_many",
    "schedule",
]

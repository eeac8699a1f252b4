"""Federated learning methods, one module each, which is imported when one of its methods is first named."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from asyncfl_lite.algorithms.base import ALGORITHMS, About, Algorithm, ServerContext, make_algorithm
from asyncfl_lite.simulator.jobs import Update

if TYPE_CHECKING:
    from asyncfl_lite.algorithms.afl_dw import AFLDW
    from asyncfl_lite.algorithms.ca2fl import CA2FL
    from asyncfl_lite.algorithms.fadas import FADAS
    from asyncfl_lite.algorithms.fedac import FedAC
    from asyncfl_lite.algorithms.fedadt import FedADT
    from asyncfl_lite.algorithms.fedasmu import FedASMU
    from asyncfl_lite.algorithms.fedasync import FedAsync
    from asyncfl_lite.algorithms.fedavg import FedAvg, FedProx
    from asyncfl_lite.algorithms.fedbuff import FedBuff
    from asyncfl_lite.algorithms.fedecho import FedEcho
    from asyncfl_lite.algorithms.fedfa import FedFa
    from asyncfl_lite.algorithms.fedopt import FedAdam, FedAvgM
    from asyncfl_lite.algorithms.fedrevive import DDFedRevive, FedRevive
    from asyncfl_lite.algorithms.kuiper import KUIPER

METHODS = {
    "afl_dw": {"afl_dw": "AFLDW"},
    "ca2fl": {"ca2fl": "CA2FL"},
    "fadas": {"fadas": "FADAS"},
    "fedac": {"fedac": "FedAC"},
    "fedadt": {"fedadt": "FedADT"},
    "fedasmu": {"fedasmu": "FedASMU"},
    "fedasync": {"fedasync": "FedAsync"},
    "fedavg": {"fedavg": "FedAvg", "fedprox": "FedProx"},
    "fedbuff": {"fedbuff": "FedBuff"},
    "fedecho": {"fedecho": "FedEcho"},
    "fedfa": {"fedfa": "FedFa"},
    "fedopt": {"fedavgm": "FedAvgM", "fedadam": "FedAdam"},
    "fedrevive": {"fedrevive": "FedRevive", "dd_fedrevive": "DDFedRevive"},
    "kuiper": {"kuiper": "KUIPER"},
}
"""Module -> the names that it registers, with their classes."""
ALGORITHMS.expect(__name__, METHODS)

__all__ = [
    "AFLDW",
    "ALGORITHMS",
    "CA2FL",
    "FADAS",
    "DDFedRevive",
    "KUIPER",
    "About",
    "Algorithm",
    "FedAC",
    "FedADT",
    "FedASMU",
    "FedAdam",
    "FedAsync",
    "FedAvg",
    "FedAvgM",
    "FedBuff",
    "FedEcho",
    "FedFa",
    "FedProx",
    "FedRevive",
    "ServerContext",
    "Update",
    "make_algorithm",
]


def __getattr__(name: str) -> Any:
    """Import a method's class on first use."""
    for module, classes in METHODS.items():
        if name in classes.values():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

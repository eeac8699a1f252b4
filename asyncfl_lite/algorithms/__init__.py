"""The methods, one file each; importing this package registers them all."""

from asyncfl_lite.algorithms.base import ALGORITHMS, Algorithm, ServerContext, Update, make_algorithm
from asyncfl_lite.algorithms.fedasync import FedAsync
from asyncfl_lite.algorithms.fedavg import FedAvg
from asyncfl_lite.algorithms.fedbuff import FedBuff
from asyncfl_lite.algorithms.fedecho import FedEcho

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "FedAsync",
    "FedAvg",
    "FedBuff",
    "FedEcho",
    "ServerContext",
    "Update",
    "make_algorithm",
]

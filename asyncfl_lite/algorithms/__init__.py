"""Federated learning methods, one module each; importing this package registers them all."""

from asyncfl_lite.algorithms.afl_dw import AFLDW
from asyncfl_lite.algorithms.base import ALGORITHMS, About, Algorithm, ServerContext, make_algorithm
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
from asyncfl_lite.simulator.jobs import Update

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

"""Trouble at clients: jobs that are lost, late, cut short, duplicated or damaged, and clients that come and go."""

from asyncfl_lite.simulator.trouble.settings import TROUBLE, Trouble
from asyncfl_lite.simulator.trouble.simulation import TroubledClock, TroubledSimulation, troubled

__all__ = ["TROUBLE", "Trouble", "TroubledClock", "TroubledSimulation", "troubled"]

"""Client selection policies; importing this package registers them all."""

from asyncfl_lite.simulator.selection.base import SELECTIONS, IdleClients, SameClient, Selection, Uniform
from asyncfl_lite.simulator.selection.oort import Oort

__all__ = ["SELECTIONS", "IdleClients", "Oort", "SameClient", "Selection", "Uniform"]

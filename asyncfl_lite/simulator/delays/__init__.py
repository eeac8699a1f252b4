"""The delay laws; importing this package registers them all by name."""

from asyncfl_lite.simulator.delays import fedecho, fedrevive, flash, kuiper, simple, trace  # noqa: F401 - they register
from asyncfl_lite.simulator.delays.base import DELAYS, ClientDelays, DelayLaw, prepared

__all__ = ["DELAYS", "ClientDelays", "DelayLaw", "prepared"]

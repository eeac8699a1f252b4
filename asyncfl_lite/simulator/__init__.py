"""The simulator: a virtual clock with jobs, scheduling, delays, selection and faults, but no models or data."""

from asyncfl_lite.simulator import delays, paper_delays  # noqa: F401 - they register what they define
from asyncfl_lite.simulator.selection import SELECTIONS

SELECTIONS.expect(__name__, {"oort": ("oort",)})

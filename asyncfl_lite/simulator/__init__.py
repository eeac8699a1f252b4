"""The simulator: a virtual clock with jobs, scheduling, delays, selection and faults, but no models or data."""

from asyncfl_lite.simulator import delays  # noqa: F401 - it registers what it defines
from asyncfl_lite.simulator.selection import SELECTIONS

SELECTIONS.expect(__name__, {"oort": ("oort",)})

"""The simulator: a virtual clock with jobs, scheduling, delays, selection and faults, but no models or data."""

from asyncfl_lite.simulator import delays, oort, paper_delays  # noqa: F401 - they register what they define

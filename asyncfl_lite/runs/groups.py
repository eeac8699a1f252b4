"""The groups of settings in a configuration; each belongs to a class that is chosen by name."""

from __future__ import annotations

from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.base.registry import Registry, Settings
from asyncfl_lite.models import MODELS
from asyncfl_lite.runs.initial import INITIALISERS
from asyncfl_lite.simulator.delays import DELAYS
from asyncfl_lite.simulator.faults import FAULTS
from asyncfl_lite.simulator.selection import SELECTIONS
from asyncfl_lite.tasks import TASKS
from asyncfl_lite.tasks.partitions import PARTITIONS

GROUPS: dict[str, tuple[str, Registry]] = {
    "task_settings": ("task", TASKS),
    "model_settings": ("model", MODELS),
    "settings": ("algorithm", ALGORITHMS),
    "delay_settings": ("delay", DELAYS),
    "partition_settings": ("partition", PARTITIONS),
    "selection_settings": ("selection", SELECTIONS),
    "initial_settings": ("initial", INITIALISERS),
    "trouble": ("trouble", FAULTS),
}
"""Group of settings -> the field that names its class, and the registry of names; trouble has no such choice."""


def class_of_group(group: str, name: str) -> type[Settings]:
    """Return the class of a group's settings for the chosen ``name``."""
    entry = GROUPS[group][1].get(name)
    return getattr(entry, "Settings", entry)  # some classes are settings themselves

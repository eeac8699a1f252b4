"""Initialisers: the sources of a run's initial weights; importing this package registers them all."""

from asyncfl_lite.runs.initial.base import INITIALISERS, Initialiser, RandomInitial
from asyncfl_lite.runs.initial.teacher_chain import TeacherChain
from asyncfl_lite.runs.initial.weights import WeightsInitial

__all__ = ["INITIALISERS", "Initialiser", "RandomInitial", "TeacherChain", "WeightsInitial"]

"""The bug zoo of lesson 17: twelve servers that learn, each with one bug, and a bench for experiments on them.

from asyncfl_course import zoo

zoo.exhibit("A").ask(drive)    # what an experiment finds on the healthy server and on the ill one
zoo.grade("A", invariant)      # whether an invariant holds for the one and fails for the other
"""

# ruff: noqa: F401 - others import these names from here

from asyncfl_course.zoo.bench import CLIENTS, fill, send, started
from asyncfl_course.zoo.cards import Cards, score
from asyncfl_course.zoo.exhibits import EXHIBITS, SHELVES, Exhibit, exhibit, grade
from asyncfl_course.zoo.training import caught, trained

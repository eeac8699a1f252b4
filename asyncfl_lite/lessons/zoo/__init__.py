"""The bug zoo of lesson 17: twelve servers that learn, each with one bug, and a bench to question them on.

from asyncfl_lite.lessons import zoo

zoo.exhibit("A").ask(drive)    # what an experiment finds on the healthy and on the ill server
"""

from asyncfl_lite.lessons.zoo.bench import CLIENTS, fill, send, started
from asyncfl_lite.lessons.zoo.exhibit import Exhibit
from asyncfl_lite.lessons.zoo.exhibits import EXHIBITS, SHELVES, exhibit

__all__ = ["CLIENTS", "EXHIBITS", "SHELVES", "Exhibit", "exhibit", "fill", "send", "started"]

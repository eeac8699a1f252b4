"""A diagram for each method and the map of the course, as SVG files in ``pictures/`` that lessons show.

Clients are on the left, and the slow one has a dashed outline and one long job. The server is on the right, and
cylinders show what it stores. Arrows show what is sent, numbers give the order, and what a method adds has the method's
colour. The files are drawn by ``python docs/pictures/methods.py`` and ``python docs/pictures/course_map.py``.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

from asyncfl_lite.base.errors import ConfigError, unknown_name

PICTURES = Path(__file__).with_name("pictures")
COURSE_MAP = "course_map"
METHODS = tuple(sorted({path.stem for path in PICTURES.glob("*.svg")} - {COURSE_MAP}))
"""Methods with a diagram: all registered ones, and ``oort``, a choice of clients for FedAvg's rounds."""


class Diagram(NamedTuple):
    """An SVG drawing for a notebook, with a description in words.

    Attributes:
        svg: a whole SVG document.
        alt: the same in words, step by step.
    """

    svg: str
    alt: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return self.alt


def method_diagram(name: str) -> Diagram:
    """Return a method's diagram: its messages, the server's memory, and the differences from FedBuff.

    Raises:
        ConfigError: if the name is not one of :data:`METHODS`.

    >>> method_diagram("fedbuff").alt[:75]
    'FedBuff: Every M updates make a version, no matter which clients sent them.'
    """
    if name not in METHODS:
        raise ConfigError(unknown_name("method", name, METHODS))
    return _read(name)


def course_map() -> Diagram:
    """Return the map of the course: all lessons with their minutes, grouped in parts, and the three paths."""
    return _read(COURSE_MAP)


def _read(name: str) -> Diagram:
    svg = (PICTURES / f"{name}.svg").read_text(encoding="utf-8")
    return Diagram(svg, ET.fromstring(svg).findtext("{http://www.w3.org/2000/svg}desc", ""))

"""Writes every method's diagram into a folder: ``python -m asyncfl_course.explore docs/pictures``."""

import sys
from pathlib import Path

from asyncfl_course.explore.diagrams import write_all

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m asyncfl_course.explore FOLDER")
    print(f"{len(write_all(Path(sys.argv[1])))} diagrams written to {sys.argv[1]}")

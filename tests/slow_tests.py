"""Which tests ``make test-fast`` leaves out: those of slow.txt, which took a fifth of a second when it was written.

``make test PYTEST_OPTIONS=--junitxml=times.xml && python tests/slow_tests.py times.xml`` writes it anew.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

LIST = Path(__file__).with_name("slow.txt")
LONGEST = 0.2
"""Seconds."""


def listed() -> set[str]:
    """Return the slow tests, ``test_file::test_name`` without parameters."""
    return set(LIST.read_text().split())


def measured(times: Path) -> set[str]:
    """Return the slow tests of a JUnit report of pytest's."""
    found = set()
    for case in ElementTree.parse(times).getroot().iter("testcase"):
        room, _, file = case.get("classname").rpartition(".")
        if room.partition(".")[0] == "tests" and float(case.get("time")) >= LONGEST:
            found.add(f"{file}::{case.get('name').partition('[')[0]}")
    return found


if __name__ == "__main__":
    LIST.write_text("\n".join(sorted(measured(Path(sys.argv[1])))) + "\n")

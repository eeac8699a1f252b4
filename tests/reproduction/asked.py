"""Which cells a claim or a question asks for."""

from __future__ import annotations


class Asked(dict):
    """Recorded numbers of which none is there; remembers what was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self.names.add(str(name))
        return False

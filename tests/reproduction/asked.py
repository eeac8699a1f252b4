"""Which cells a claim or a question asks for."""

from __future__ import annotations


class Asked(dict):
    """Recorded numbers, by default none; remembers which cells were asked for."""

    def __init__(self, *recorded: dict) -> None:
        super().__init__(*recorded)
        self.names: set[str] = set()

    def __contains__(self, name: object) -> bool:
        self.names.add(str(name))
        return super().__contains__(name)

    def __getitem__(self, name: str) -> object:
        self.names.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: object = None) -> object:
        self.names.add(name)
        return super().get(name, default)

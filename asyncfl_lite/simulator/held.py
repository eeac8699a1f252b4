"""A counter of the clients in flight, by the version from which they train."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


class HeldVersions:
    """The number of clients in flight that train from each version.

    Attributes:
        most: largest number of distinct versions that clients held at one time.
    """

    def __init__(self, versions: Iterable[int] = (), most: int = 0) -> None:
        self.counts = dict(Counter(versions))
        self.most = max(most, len(self.counts))

    def add(self, version: int) -> None:
        """Add one to the number of clients that train from ``version``."""
        counts = self.counts
        if version in counts:
            counts[version] += 1
            return
        counts[version] = 1
        if len(counts) > self.most:
            self.most = len(counts)

    def remove(self, version: int) -> None:
        """Subtract one from the number of clients that train from ``version``."""
        if self.counts[version] == 1:
            del self.counts[version]
        else:
            self.counts[version] -= 1

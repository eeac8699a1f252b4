"""Servers' requests for computations with models; requests of the same kind are computed together.

A method asks for a computation, as in ``context.distil(x, batches, …)``, and continues with the result. Whether the
computation is done at once or waits for other runs' requests does not concern the method, and makes no difference to
the result's bits.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol, Self


class Request(Protocol):
    """A computation that a server asks for."""

    @property
    def shared(self) -> Hashable:
        """Key that requests must share to be computed together; None if they are computed one by one."""

    def alone(self) -> Any:
        """Return the result of this request, computed by itself."""

    @classmethod
    def together(cls, requests: Sequence[Self]) -> list[Any]:
        """Return the results, in order, of requests that are computed together (one or more)."""


def fulfilled(requests: Sequence[Request]) -> list[Any]:
    """Return the results of ``requests``, in order; requests of the same kind are computed together."""
    results: list[Any] = [None] * len(requests)
    groups: dict[tuple[type[Request], Hashable], list[int]] = {}
    for index, request in enumerate(requests):
        if (shared := request.shared) is None:
            results[index] = request.alone()
        else:
            groups.setdefault((type(request), shared), []).append(index)
    for (kind, _), indices in groups.items():
        for index, result in zip(indices, kind.together([requests[index] for index in indices]), strict=True):
            results[index] = result
    return results


def fulfilled_now(request: Request) -> Any:
    """Return the result of one request, without waiting for others."""
    return fulfilled([request])[0]

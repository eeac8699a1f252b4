"""Names of methods, tasks, models, delay laws and partitions, and their typed settings.

Everything that a configuration chooses by name is a class held in a :class:`Registry`, with its own
frozen :class:`Settings`. Adding one means writing the class and decorating it; nothing else in the
package knows the names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from asyncfl_lite.errors import ConfigError, unknown_name

T = TypeVar("T")


class Settings(BaseModel):
    """A frozen group of typed settings; a misspelt or impossible one is a one-line error.

    Raises:
        ConfigError: naming the field, what was given and what is allowed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigError(one_line(error, type(self))) from None


def one_line(error: ValidationError, model: type[BaseModel]) -> str:
    """Turn pydantic's report into one line: the field, what is allowed, what was given."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return unknown_name("setting", where, model.model_fields)
    reason = first["msg"].removeprefix("Value error, ")
    if not where:
        return reason
    if isinstance(first.get("ctx", {}).get("error"), ConfigError):  # a message of this kind already
        return reason if reason.startswith(where.split(".")[0]) else nested(where, reason)
    reason = reason.replace("Input should be", "must be", 1)
    return f"{where}: {reason}, got {first['input']!r}"


def nested(where: str, message: str) -> str:
    """Return a one-line message about a group's setting as one that names the group, ``where``, too."""
    if message.startswith("setting:"):
        return where + message.removeprefix("setting")
    return f"{where}.{message}"


class Registry(Generic[T]):
    """Named classes of one kind, each with a line of description.

    Args:
        kind: what the names stand for, as errors call it (``"delay"``).
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, type[T]] = {}

    def register(self, name: str) -> Callable[[type[T]], type[T]]:
        """Class decorator that files a class under ``name``."""

        def file(cls: type[T]) -> type[T]:
            known = self._entries.get(name)
            # a notebook's cell that is run again defines its class anew
            if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
                raise ConfigError(f"{self.kind}: {name!r} is registered twice")
            self._entries[name] = cls
            return cls

        return file

    def remove(self, name: str) -> None:
        """Forget a name, such as that of a method which a test made up."""
        del self._entries[name]

    def get(self, name: str) -> type[T]:
        """Return the class filed under ``name``.

        Raises:
            ConfigError: if there is none, with the nearest name.
        """
        if name not in self._entries:
            raise ConfigError(unknown_name(self.kind, name, self._entries))
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._entries))

    def describe(self) -> dict[str, str]:
        """Return the first docstring line of every entry, by name."""
        return {name: (self._entries[name].__doc__ or "").strip().split("\n")[0] for name in self}

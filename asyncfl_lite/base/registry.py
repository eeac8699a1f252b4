"""Registries, which hold methods, tasks, models, delay laws and partitions by name, and their typed settings.

What a configuration chooses by name is a class in a :class:`Registry`, with its own frozen :class:`Settings`. Nothing
else in the package knows the names. The class may be in a user's own module, which ``--import`` or ``import:`` in a
grid's file names, or which an installed package names in the entry-point group :data:`GROUP`; the latter is imported
only when a name is unknown without it, or when all names are listed.
"""

from __future__ import annotations

import importlib
import re
import sys
import traceback
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from functools import cache
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from asyncfl_lite.base.errors import AsyncFLError, ConfigError, reason, shown, unknown_name

T = TypeVar("T")

SMALLER_THAN = 2**63
"""Whole numbers must be smaller than this, or they do not fit into tensors and tables."""


class Settings(BaseModel):
    """A frozen group of typed settings; a misspelt name or an impossible value raises a one-line error.

    Raises:
        ConfigError: for such a name or value; the message names the field, what was given and what is allowed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def __init__(self, /, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigError(one_line(error, type(self))) from None

    @classmethod
    def from_mapping(cls, content: Any) -> Self:
        """Make settings from a file's parsed content, which must be a mapping."""
        if not isinstance(content, dict):
            allowed = ", ".join(_written(cls)) or "nothing"
            raise ConfigError(f"must be a mapping of {allowed}, got {shown(content)}")
        cls._refuse_odd_names(content)
        return cls(**content)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy, perhaps with other values for some settings, which are checked like given ones."""
        copy = super().model_copy(deep=deep)
        if not update:
            return copy
        made = type(self)(**{**copy.__dict__, **update})
        made.__pydantic_private__ = copy.__pydantic_private__
        return made

    @classmethod
    def model_construct(cls, _fields_set: set[str] | None = None, **values: Any) -> Self:  # type: ignore[override]
        """Make settings from values, which are checked here, too."""
        return cls(**values)

    def with_checked(self, **values: Any) -> Self:
        """Return a copy with values that have been checked already."""
        return super().model_copy(update=values)

    @model_validator(mode="wrap")
    @classmethod
    def _inside_another(cls, content: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(content, dict):
            cls._refuse_odd_names(content)
        return handler(content)

    @classmethod
    def _refuse_odd_names(cls, content: dict[Any, Any]) -> None:
        if odd := [key for key in content if not isinstance(key, str)]:
            raise ConfigError(unknown_name("setting", odd[0], _written(cls)))

    def files(self) -> list[Path]:
        """Return the paths that these settings read from, existing or not: by default, those settings that are paths.

        The files' contents are part of a run's identity: with other contents, it is another run.
        """
        return [value for value in self.__dict__.values() if isinstance(value, Path)]

    @field_validator("*", mode="before")
    @classmethod
    def _as_meant(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse truth for numbers, which Python reads as 1 and 0, and turn ``hidden=64`` into ``hidden=(64,)``."""
        values = value if isinstance(value, list | tuple) else (value,)
        if any(isinstance(part, bool) for part in values) and _wants_number(cls, info.field_name):
            raise ValueError("must be a number, not true or false")
        *_, last = typing.get_args(cls.model_fields[str(info.field_name)].annotation) or (None,)
        if last is not Ellipsis or isinstance(value, bool) or not isinstance(value, int | float | str):
            return value
        word = isinstance(value, str) and not re.fullmatch(r"\s*[-+]?[\d.]+(e[-+]?\d+)?\s*", value, re.I)
        return value if word and _wants_number(cls, info.field_name) else (value,)

    @field_validator("*", mode="after")
    @classmethod
    def _bounded(cls, value: Any) -> Any:
        """Raise an error for whole numbers that are too large for a tensor, and for texts that cannot be paths."""
        for part in value if isinstance(value, list | tuple) else (value,):
            if isinstance(part, str | Path) and "\0" in str(part):
                raise ValueError("must not contain a zero byte")
            if isinstance(part, int) and abs(part) >= SMALLER_THAN:
                raise ValueError("must be less than 2**63")
        return value


def _written(cls: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in cls.model_fields.items()]


@cache
def _wants_number(cls: type[BaseModel], name: str) -> bool:
    kinds, left = set(), [cls.model_fields[name].annotation]
    while left:
        kind = left.pop()
        kinds.add(kind)
        left += typing.get_args(kind) if typing.get_origin(kind) is not typing.Literal else ()
    return bool(kinds & {int, float}) and not kinds & {bool, Any}


def one_line(error: ValidationError, model: type[BaseModel]) -> str:
    """Turn pydantic's report into one line that says which field is wrong, what is allowed, and what was given."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return unknown_name("setting", where, _written(model))
    why = first["msg"].removeprefix("Value error, ")
    if not where:
        return why
    if isinstance(first.get("ctx", {}).get("error"), ConfigError):  # this message is in our own words already
        return why if why.startswith(where.split(".")[0]) else nested(where, why)
    for theirs, ours in WORDS:
        why = re.sub(theirs, ours, why, count=1)
    given = first["input"]
    hint = "; a date in a file is a text if it is in quotes" if isinstance(given, date) else ""
    return f"{where}: {why}" + ("" if first["type"] == "missing" else f", got {shown(given)}{hint}")


WORDS = (
    (r"^Field required$", "must be given"),
    (r"^(Input|Tuple|List|Dictionary|String|Value) should (be|have)", r"must \2"),
    (r" after validation, not \d+$", ""),
    (r"^Input is not a valid path.*", "must be a path"),
    (r"^Unable to parse input string as an integer, exceeded maximum size$", "must be a whole number below 2**63"),
    (r"^Keys should be strings$", "must have names as keys"),
)
"""Pydantic's messages -> ours."""


def nested(where: str, message: str) -> str:
    """Prefix a one-line message about a setting with the name of its group, ``where``."""
    if message.startswith("setting:"):
        return where + message.removeprefix("setting")
    if message.startswith("must be"):
        return f"{where}: {message}"
    return f"{where}.{message}"


@contextmanager
def written_as(**groups: Settings) -> Iterator[None]:
    """Prefix setting names in error messages with their group, as in ``partition_settings.min_size``."""
    try:
        yield
    except AsyncFLError as error:
        first = re.split(r"[:,\s]", str(error), maxsplit=1)[0]
        for group, settings in groups.items():
            if first in type(settings).model_fields:
                raise type(error)(f"{group}.{error}") from error.__cause__
        raise


class Registry(Generic[T]):
    """The registered classes of one kind, such as ``"delay"``, by name, each with a one-line description."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, type[T]] = {}
        self._homes: dict[str, str] = {}

    def expect(self, package: str, homes: Mapping[str, Iterable[str]]) -> None:
        """Import a module only when a name that it registers is needed, or all are; ``homes`` are module -> names."""
        self._homes |= {name: f"{package}.{module}" for module, names in homes.items() for name in names}

    def register(self, name: str) -> Callable[[type[T]], type[T]]:
        """Register a class under ``name`` (class decorator)."""

        def file(cls: type[T]) -> type[T]:
            if name in self._homes:
                importlib.import_module(self._homes[name])
            known = self._entries.get(name)
            # a notebook's cell that is run again defines its class anew
            if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
                raise ConfigError(f"{self.kind}: {name!r} is registered twice; choose another name")
            self._entries[name] = cls
            if not is_ours(cls):
                _own.append(name)
            return cls

        return file

    def remove(self, name: str) -> None:
        """Remove a name from the registry, for example one that a test has registered."""
        del self._entries[name]

    def get(self, name: str) -> type[T]:
        """Return the class registered under ``name``; the error for an unknown name suggests the most similar one."""
        if name not in self:
            raise ConfigError(unknown_name(self.kind, name, list(self)))
        return self._entries[name]

    def name_of(self, cls: type) -> str:
        """Return the name under which a class is registered, or its own if it is not."""
        return next((name for name, known in self._entries.items() if known is cls), cls.__name__)

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str) and name in self._homes:
            importlib.import_module(self._homes[name])
        elif isinstance(name, str) and name not in self._entries:
            import_installed()
        return isinstance(name, str) and name in self._entries

    def __iter__(self) -> Iterator[str]:
        for module in self._homes.values():
            importlib.import_module(module)
        import_installed()
        return iter(sorted(self._entries))

    def describe(self) -> dict[str, str]:
        """Return the first docstring line of every registered class, by name."""
        return {name: (self._entries[name].__doc__ or "").strip().split("\n")[0] for name in self}


# Users' own modules, which register methods, models, tasks or delay laws without editing the package

DISTRIBUTION = "asyncfl-lite"
"""Name of the distribution that this package belongs to."""
GROUP = "asyncfl_lite"
"""Name of the entry-point group. In a package's ``pyproject.toml``: ``[project.entry-points.asyncfl_lite]``, then a
line such as ``mine = "my_package.methods"``."""

MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
"""Pattern for the names of modules."""

_own: list[str] = []
"""Names registered from outside the package, in order."""
_installed: list[str] = []
"""Entry points that have been imported."""


def is_ours(thing: object) -> bool:
    """Return whether a class, a function, or an object's class belongs to this package, and not to a user's code.

    A class of this package that holds a user's code says ``of_user = True``.
    """
    return (
        not getattr(thing, "of_user", False)
        and str(getattr(thing, "__module__", "")).partition(".")[0] == __name__.partition(".")[0]
    )


def all_ours() -> bool:
    """Return whether no class is registered from outside this distribution, by an import or by an entry point."""
    ours = [point for point in _entry_points() if point.dist and point.dist.name == DISTRIBUTION]
    return len(ours) == len(_entry_points()) and not _own


def on_copies(function: Callable[..., T]) -> Callable[..., T]:
    """Return a user's function such that it gets copies of its tensors, and cannot change data that others see.

    A function of this package is returned as it is.
    """
    if is_ours(function):
        return function
    return lambda *tensors: function(*(tensor.clone() for tensor in tensors))


def import_installed() -> None:
    """Import the modules that installed packages declare as entry points, each only once."""
    for point in _entry_points():
        if point.value not in _installed:
            _installed.append(point.value)  # before the import, since the module may ask for names itself
            where = f" of {point.dist.name}" if point.dist else ""
            _import(point.module, f"entry point {point.name!r}{where}")


@cache
def _entry_points() -> EntryPoints:
    return entry_points(group=GROUP)


def import_own(place: str) -> ModuleType:
    """Import a user's module or file, which must register at least one class.

    Args:
        place: a module such as ``my_package.methods``, or the path of a Python file, which may belong to a package.

    Raises:
        ConfigError: when it cannot be imported or registers nothing.
    """
    what, before = f"import: {place}", len(_own)
    if "\0" in place or not (place.endswith(".py") or MODULE.fullmatch(place)):
        raise ConfigError(
            f"import: must be a module, such as my_package.methods, or a Python file, such as methods.py, got {place!r}"
        )
    if not place.endswith(".py"):
        name, known = place, place in sys.modules
        module = _import(name, what)
    else:
        path = Path(place).resolve()
        if not path.is_file():
            raise ConfigError(f"{what}: there is no such file")
        folder, name = path.parent, path.stem
        while (folder / "__init__.py").exists():
            folder, name = folder.parent, f"{folder.name}.{name}"
        if str(folder) not in sys.path:
            sys.path.append(str(folder))  # last, so that a user's file hides no library
        name, known = name.removesuffix(".__init__"), name.removesuffix(".__init__") in sys.modules
        module = _import(name, what)
        if Path(module.__file__ or "").resolve() != path:
            raise ConfigError(f"{what}: a module {name!r} exists already; rename the file")
    if not known and len(_own) == before:
        raise ConfigError(f"{what}: registers nothing; a class needs a line such as @ALGORITHMS.register('name')")
    return module


def located(place: str, folder: Path) -> str:
    """Return the full path of a module's file, or its name if no file is found, so that other processes can import it.

    The file is looked for in ``folder``; the path of a Python file is relative to this folder.
    """
    if place.endswith(".py") and "\0" not in place:
        return str((folder / place).resolve())
    begin = folder / place.replace(".", "/")
    if not begin.name or "\0" in place:  # it is no module's name
        return place
    for path in (begin.with_name(f"{begin.name}.py"), begin / "__init__.py"):
        if path.is_file():
            return str(path.resolve())
    return place


def _import(name: str, what: str) -> ModuleType:
    importlib.invalidate_caches()  # its file may be new
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # a script that parses its own command line may exit
        frame = traceback.extract_tb(error.__traceback__)[-1]
        inside = "importlib" in frame.filename or isinstance(error, SyntaxError)  # a SyntaxError names its line itself
        where = "" if inside else f" in {Path(frame.filename).name}, line {frame.lineno}"
        raise ConfigError(f"{what}: cannot be imported ({type(error).__name__}: {reason(error)}{where})") from None

"""Checks of a method's class: its declarations, and its errors for wrong settings."""

from __future__ import annotations

import inspect
from typing import get_args

from asyncfl_lite.algorithms.base import Algorithm, Family
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.base.registry import Settings
from asyncfl_lite.simulator.scheduling import SCHEDULING
from asyncfl_lite.simulator.update import ON_REQUEST
from asyncfl_lite.testing.candidate import Candidate, expect

FAMILIES = get_args(Family)
LONGEST_SUMMARY = 105


def check_declarations(make: Candidate) -> None:
    """Check that a class declares title, paper, family, docstring, scheduling policy, settings and state."""
    cls, what = make.cls, make.cls.__name__
    expect(not inspect.isabstract(cls), f"{what} must define on_receive, or it cannot be made; it is abstract")
    for name in ("title", "paper"):
        expect(
            bool(getattr(cls.about, name)),
            f"{what} must have a {name} in about, which tables and pictures show; it is empty",
        )
    line = (cls.__doc__ or "").strip().split("\n")[0]
    expect(
        0 < len(line) <= LONGEST_SUMMARY,
        f"the docstring of {what} must begin with a line of 1 to {LONGEST_SUMMARY} characters, which "
        f"`asyncfl-lite list` shows; it has {len(line)}",
    )
    _expect_known("family", cls.about.family, FAMILIES, "tables sort by it")
    _expect_known("redispatch", cls.redispatch, tuple(SCHEDULING), "it names the scheduling policy")
    expect(
        isinstance(cls.Settings, type) and issubclass(cls.Settings, Settings),
        "Settings must derive from asyncfl_lite.base.registry.Settings, since that refuses misspelt settings; it is "
        f"{cls.Settings}",
    )
    _expect_sound_state(make.run().algorithm)


def _expect_sound_state(method: Algorithm) -> None:
    """Check that a started method has all attributes in ``state_names``, and that its other declarations are known."""
    names = set(method.state_names)
    left_out = sorted(set(Algorithm.state_names) - names)
    expect(not left_out, f"state_names must hold the base class's, or they are not saved; {left_out} are left out")
    missing = sorted(name for name in names if not hasattr(method, name))
    expect(not missing, f"every one of state_names must be there after start, since it is saved; {missing} are not")
    for name in method.about.on_clients:
        _expect_known("on_clients", name, method.state_names, "it says which part of the state is not the server's")
    for name in method.client_reports:
        _expect_known("client_reports", name, ON_REQUEST, "clients can report nothing else")


def _expect_known(field: str, value: str, allowed: tuple[str, ...], why: str) -> None:
    expect(value in allowed, f"{field}: must be one of {', '.join(allowed)}, since {why}; got {value!r}")


def check_errors(make: Candidate) -> None:
    """Check that a misspelt setting and a buffer size of 0 raise one-line errors that name the right setting."""
    switches = list(make.cls.Settings.model_fields)
    wrong = f"{switches[0]}_" if switches else "no_such_setting"
    words = f"did you mean {switches[0]!r}?" if switches else repr(wrong)
    _expect_config_error(make, wrong, 1, words, "or a misspelt setting changes nothing without notice")
    _expect_config_error(make, "buffer_size", 0, "buffer_size", "since a buffer of none never makes a version")


def _expect_config_error(make: Candidate, name: str, value: int, words: str, why: str) -> None:
    expected = f"{name}={value} must be a ConfigError of one line that says {words!r}, {why}"
    try:
        make(**{name: value})
    except ConfigError as error:
        expect(words in str(error) and "\n" not in str(error), f"{expected}; it says {str(error)!r}")
    else:
        expect(False, f"{expected}; it was accepted")

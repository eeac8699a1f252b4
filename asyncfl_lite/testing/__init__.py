"""Checks that a new method obeys the rules for all methods, and that a new model works.

They are modelled on scikit-learn's ``check_estimator``. A method's author calls :func:`check_algorithm` in a test::

    from asyncfl_lite.testing import check_algorithm

    def test_it_keeps_the_rules():
        check_algorithm(Mine)  # with its defaults and a buffer of three
        check_algorithm(Mine(buffer_size=5, my_option="other"))  # with these settings

Each rule is one small function, and :mod:`asyncfl_lite.testing.checks` lists them all in ``CHECKS``; add a new one
there. The tiny run on made-up data in which the checks try a method is set up in :mod:`asyncfl_lite.testing.candidate`.
:func:`check_model` says what a model can do on a task.
"""

from __future__ import annotations

import traceback
from collections.abc import Collection

from asyncfl_lite.algorithms.base import Algorithm
from asyncfl_lite.base.devices import torch_threads
from asyncfl_lite.base.streams import untouched_generators
from asyncfl_lite.simulator.server import ServerError
from asyncfl_lite.testing.candidate import Candidate, Check, RuleBroken, registered
from asyncfl_lite.testing.checks import CHECKS
from asyncfl_lite.testing.models import check_model

__all__ = ["CHECKS", "AlgorithmCheckError", "check_algorithm", "check_model"]


class AlgorithmCheckError(AssertionError):
    """Raised for a method that breaks rules; the message has one line for each broken rule.

    Attributes:
        failures: name of the check -> what was expected, why, and what was found.
    """

    def __init__(self, failures: dict[str, str]) -> None:
        super().__init__("\n".join(f"{name}: {sentence}" for name, sentence in failures.items()))
        self.failures = failures


def check_algorithm(algorithm: type[Algorithm] | Algorithm) -> list[str]:
    """Check that a method keeps the rules that every method must keep.

    Every check runs, even if earlier ones fail. The global random generators of torch, NumPy and Python are left as
    they were.

    Args:
        algorithm: a class, which is checked with its defaults (except for a buffer of three, if it has one, and
            fewer samples to distil on); or an instance, which is checked with its settings but not changed.

    Returns:
        The names of the checks, all of which passed.

    Raises:
        AlgorithmCheckError: with a line for every check that failed; a :class:`.ServerError` that ends several checks
            is reported only for the first. Any other exception in the method is a failure of the check in which it
            arose, and is reported with the line of the method's code.
        ConfigError: for anything that is not a method.

    Example: FedBuff keeps all rules. Changing the global model in place breaks one, because clients still train
    on the version that would change under them.

    >>> from asyncfl_lite.algorithms import FedBuff
    >>> from asyncfl_lite.testing import AlgorithmCheckError, check_algorithm
    >>> "in_place" in check_algorithm(FedBuff(buffer_size=4, server_lr=0.5))
    True
    >>> class InPlace(FedBuff):
    ...     "FedBuff that changes the global model in place."
    ...     def new_version(self, x):
    ...         return super().new_version(self.x.copy_(x))
    >>> try:
    ...     check_algorithm(InPlace)
    ... except AlgorithmCheckError as error:
    ...     print("in_place" in error.failures)
    True
    """
    failures: dict[str, str] = {}
    with registered(algorithm) as make, torch_threads(1):
        for check in CHECKS:
            if failure := _failure(check, make, failures.values()):
                failures[name_of(check)] = failure
    if failures:
        raise AlgorithmCheckError(failures)
    return [name_of(check) for check in CHECKS]


def name_of(check: Check) -> str:
    """Return a check's name, which is its function's name without ``check_``."""
    return check.__name__.removeprefix("check_")


def _failure(check: Check, make: Candidate, said: Collection[str]) -> str | None:
    """Return one line that describes a check's failure; None if it passed, or if ``said`` has this error already."""
    try:
        with untouched_generators():
            check(make)
    except ServerError as error:
        return None if str(error) in said else str(error)
    except RuleBroken as broken:
        return str(broken)
    except Exception as error:
        message = " ".join(str(error).split())
        return f"the method must get through this without an exception; {_place(error, make)} {message}"
    return None


def _place(error: Exception, make: Candidate) -> str:
    """Return the kind of an exception, and its line in the method's own code, if it arose there."""
    kind = type(error).__name__
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in make.source_files]
    if not own:
        return f"{kind}:"
    last = own[-1]
    code = f" ({last.line})" if last.line else ""
    return f"{kind} in line {last.lineno} of {last.filename}, in {last.name}{code}:"

"""What checkers say of a wrong answer: the input, what came back, and what was expected."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from asyncfl_course.exercises import Wrong

LONGEST = 90
"""Characters of a value that are shown."""


def shown(value: Any) -> str:
    """Return a value in short: tensors and arrays as nested lists with four digits."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray | np.generic):
        value = np.round(value, 4).tolist() if np.asarray(value).dtype.kind == "f" else value.tolist()
    if isinstance(value, float):
        value = float(f"{value:.6g}")
    text = getattr(value, "__name__", None) or repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def call(answer: Callable, *inputs: Any) -> Any:
    """Return what an answer gives on these inputs.

    Raises:
        Wrong: it is no function, or it gives nothing back.
        NotImplementedError: it is still the stub.
    """
    if not callable(answer):
        raise Wrong(f"A function is asked for, this is {shown(answer)}.")
    given = answer(*inputs)
    if given is None:
        raise Wrong(f"{_called(answer, inputs)} gives nothing back; is there a return?")
    return given


def expect(true: Any, message: str) -> None:
    """Raise :class:`Wrong` with a message unless something is true."""
    if not true:
        raise Wrong(message)


def expect_close(
    answer: Any,
    inputs: Sequence[Any] | None,
    wanted: Any,
    *,
    because: str = "",
    atol: float = 1e-4,
    rtol: float = 1e-4,
) -> None:
    """Raise :class:`Wrong` unless an answer is near to what is wanted.

    Args:
        answer: a function that is called with ``inputs``, or a value.
        inputs: arguments of the function; None where ``answer`` is a value.
        wanted: a number, or numbers of any shape.
        because: what to think of, for the reader.
        atol: absolute tolerance.
        rtol: relative tolerance.
    """
    given, what = _given(answer, inputs)
    hint = _hint(because)
    try:
        ours, theirs = _numbers(wanted), _numbers(given)
    except (TypeError, ValueError):
        raise Wrong(f"{what}, which is no number.{hint}") from None
    if ours.shape != theirs.shape:
        raise Wrong(f"{what}: shape {theirs.shape}, expected {ours.shape}.{hint}")
    if not np.allclose(theirs, ours, atol=atol, rtol=rtol, equal_nan=True):
        raise Wrong(f"{what}, expected {shown(wanted)}.{hint}")


def expect_equal(answer: Any, inputs: Sequence[Any] | None, wanted: Any, *, because: str = "") -> None:
    """Raise :class:`Wrong` unless an answer equals what is wanted: names, sets, integers; see :func:`expect_close`."""
    given, what = _given(answer, inputs)
    if given != wanted:
        raise Wrong(f"{what}, expected {shown(wanted)}.{_hint(because)}")


def _given(answer: Any, inputs: Sequence[Any] | None) -> tuple[Any, str]:
    """Return what an answer is, or gives on these inputs, and how to say so."""
    if inputs is None:
        return answer, f"Your answer {shown(answer)}"
    given = call(answer, *inputs)
    return given, f"{_called(answer, inputs)} gives {shown(given)}"


def _hint(because: str) -> str:
    return f" {because[0].upper()}{because[1:].rstrip('.')}." if because else ""


def _numbers(value: Any) -> np.ndarray:
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    return np.asarray(value, dtype=float)


def _called(answer: Callable, inputs: Sequence[Any]) -> str:
    name = getattr(answer, "__name__", "your function")
    return f"{name}({', '.join(map(shown, inputs))})"

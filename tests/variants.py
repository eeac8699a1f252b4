"""The other forms in which a reader may give a right answer: a list for a tuple, an array, a tensor, a series, capitals."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import torch


def forms(value: Any) -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Yield the forms of a value by name: functions that turn a value of its kind into another."""
    if isinstance(value, bool | np.bool_):
        yield from {"numpy's": np.bool_, "tensor": torch.tensor}.items()
    elif isinstance(value, str):
        yield from {"numpy's": np.str_, "capitals": lambda text: f" {text.upper()} "}.items()
    elif isinstance(value, int | float | np.number) or (torch.is_tensor(value) and value.ndim == 0):
        yield from NUMBER.items()
    elif isinstance(value, set | frozenset):
        yield from SET.items()
    elif torch.is_tensor(value):
        yield from {"array": lambda x: x.numpy(), "list": lambda x: x.tolist(), "double": lambda x: x.double()}.items()
        if value.is_floating_point():
            yield from {"single": lambda x: x.float(), "gradient": lambda x: x.clone().requires_grad_()}.items()
    elif isinstance(value, np.ndarray):
        yield from {"list": lambda x: x.tolist(), "tensor": torch.from_numpy}.items()
        if value.ndim == 1:
            yield "series", pd.Series
    elif isinstance(value, list | tuple):
        yield from {"list": list, "tuple": tuple}.items()
        if all(isinstance(one, str) for one in value):
            yield from {
                "array": np.array,
                "series": pd.Series,
                "capitals": lambda x: [one.upper() for one in x],
            }.items()
        elif all(isinstance(one, int | float | np.number) or (torch.is_tensor(one) and not one.ndim) for one in value):
            yield from NUMBERS.items()
        elif value and all(torch.is_tensor(one) for one in value):
            yield "arrays", lambda x: [one.numpy() for one in x]
        elif value and all(isinstance(one, list | tuple) for one in value):
            yield "lists", lambda x: [list(one) for one in x]


NUMBER: dict[str, Callable] = {
    "float": float,
    "int where whole": lambda x: int(x) if float(x) == int(x) else float(x),
    "numpy's": lambda x: np.float64(float(x)),
    "single": lambda x: np.float32(float(x)),
    "array": lambda x: np.array(float(x)),
    "array of one": lambda x: np.array([float(x)]),
    "tensor": lambda x: torch.tensor(float(x)),
}
NUMBERS: dict[str, Callable] = {
    "array": lambda x: np.array([float(one) for one in x]),
    "tensor": lambda x: torch.tensor([float(one) for one in x]),
    "series": lambda x: pd.Series([float(one) for one in x]),
    "floats": lambda x: [float(one) for one in x],
}
SET: dict[str, Callable] = {
    "list": sorted,
    "tuple": tuple,
    "array": lambda x: np.array(sorted(x)),
    "series": lambda x: pd.Series(sorted(x)),
    "text": lambda x: "".join(sorted(x)),
    "small letters": lambda x: {one.lower() for one in x},
}

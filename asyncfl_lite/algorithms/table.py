"""A table of all methods and their costs."""

from __future__ import annotations

import json
from math import prod
from typing import Any, NamedTuple

import pandas as pd

from asyncfl_lite.algorithms import ALGORITHMS, Algorithm
from asyncfl_lite.base.errors import ConfigError


class Stored(NamedTuple):
    """Storage of a method on the server.

    Attributes:
        models: number of ``(d,)`` vectors, including the global model.
        logits: number of samples whose logits are stored, over all clients.
    """

    models: int
    logits: int


def method_table() -> pd.DataFrame:
    """Return one row per method: name, paper, family, server storage, extra client work, options."""
    return pd.DataFrame([_row(name, ALGORITHMS.get(name)) for name in ALGORITHMS])


def _row(name: str, method: type[Algorithm]) -> dict[str, str]:
    fields = method.Settings.model_fields.items()
    return {
        "name": name,
        "paper": method.about.paper,
        "family": method.about.family,
        "server stores": storage_claim(method),
        "extra client work": method.about.client_work,
        "options": ", ".join(f"{key}={json.dumps(field.default)}" for key, field in fields).replace('"', ""),
    }


def storage_claim(method: type[Algorithm]) -> str:
    """Describe a method's declared storage on the server, such as ``N + M + 2 models``.

    N is the number of clients, M_c the number of clients in flight, M the buffer size, and U the number of unlabelled
    samples.
    """
    parts = [f"{method.about.models_stored} model" + ("" if method.about.models_stored == "1" else "s")]
    if method.about.keeps_versions:
        parts.append("versions in flight (≤ M_c)")
    if method.about.logits_stored != "0":
        parts.append(f"logits of {method.about.logits_stored} samples")
    if method.about.also_stored:
        parts.append(method.about.also_stored)
    return ", ".join(parts)


def claimed(method: Algorithm, *, clients: int, unlabelled: int = 0) -> Stored:
    """Return the largest storage that a method declares, for N clients and U unlabelled samples.

    Raises:
        ConfigError: when the class's declaration is not a sum of products.
    """
    known = {**method.settings.model_dump(), "N": clients, "M": method.buffer_size, "U": unlabelled}
    return Stored(*(_value(text, known) for text in (method.about.models_stored, method.about.logits_stored)))


def _value(expression: str, known: dict[str, Any]) -> int:
    """Evaluate a sum of products, such as ``N + M + 2``, from the numbers that its names stand for."""
    whole = {name: value for name, value in known.items() if type(value) is int}
    products = (term.split("*") for term in expression.split("+"))
    try:
        return sum(prod(int(whole.get(word.strip(), word)) for word in words) for words in products)
    except ValueError:
        raise ConfigError(
            "models_stored, logits_stored: must be sums of products of whole numbers, N, M, U and settings, got "
            f"{expression!r}"
        ) from None

"""Modules that users pass to a run themselves, as in ``run(config, model=module)``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar, Self

from pydantic import PrivateAttr
from torch import Tensor, nn

from asyncfl_lite.base.devices import seeded
from asyncfl_lite.base.errors import ConfigError, reason, shown
from asyncfl_lite.models.base import MODELS, InputSpec, ModelSpec, copy_of
from asyncfl_lite.models.vectors import copied
from asyncfl_lite.models.weights import digest_of

OwnModel = nn.Module | Callable[[], nn.Module]
"""A module, with the weights from which every seed starts, or a function or class that makes one for each seed."""


@MODELS.register("given")
class GivenModel(ModelSpec):
    """A module of your own, passed in Python as run(config, model=module)."""

    of_user: ClassVar[bool] = True
    takes = "anything"

    name: str = ""
    """Class of the module, as results name it."""
    digest: str = ""
    """Digest of the module's layers and shapes and, unless a function makes it, of its weights."""

    _given: OwnModel | None = PrivateAttr(None)

    @classmethod
    def of(cls, model: OwnModel) -> Self:
        """Return the settings that stand for a user's module, of which they hold a copy, or for a function.

        Raises:
            ConfigError: when ``model`` is neither a module nor a function without arguments that returns one.
        """
        if not callable(model):
            raise ConfigError(
                "model: must be a torch.nn.Module, or a function without arguments that returns one, got "
                f"{shown(model)}; a name belongs into the configuration"
            )
        module = model if isinstance(model, nn.Module) else _made(model)
        if not isinstance(module, nn.Module):
            what = type(module).__name__
            raise ConfigError(f"model: {_name_of(model)}() must return a torch.nn.Module, got {what}")
        name, values = type(module).__name__, module.state_dict()
        own = copy_of(name, module) if module is model else None
        trained = [place for place, parameter in module.named_parameters() if parameter.requires_grad]
        shapes = [(place, tuple(value.shape), value.dtype) for place, value in values.items()]
        layers = re.sub(r" at 0x[0-9a-f]+", "", repr(module))
        made = cls(name=name, digest=digest_of(values if own is not None else {}, f"{layers} {shapes} {trained}"))
        made._given = model if own is None else own
        return made

    def __eq__(self, other: object) -> bool:
        """Return whether two settings name the same module, which only one of them may hold."""
        return isinstance(other, GivenModel) and self.digest == other.digest

    __hash__ = ModelSpec.__hash__

    @property
    def title(self) -> str:
        """Name of the module's class."""
        return self.name or super().title

    def build_for(self, inputs: InputSpec) -> nn.Module:
        """Return the module, unless only its name is known, as after a result was loaded."""
        if self._given is None:
            name = f" ({self.name!r})" if self.name else ""
            raise ConfigError(
                f"model: the configuration does not contain your own module{name}; pass it too, as in "
                "run(config, model=module) or load_result(folder, model=module)"
            )
        module = self._given if isinstance(self._given, nn.Module) else self._given()
        if inputs.vocabulary is not None and hasattr(module, "get_input_embeddings"):
            module = copied(module)
            module.register_forward_pre_hook(read_as_transformers_do, with_kwargs=True)
        return module


def read_as_transformers_do(
    module: nn.Module, args: tuple[Tensor, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Tensor, ...], dict[str, Any]]:
    """Pass ``(n, L)`` token ids to a model of `transformers` with a mask of their padding, and embeddings as such.

    Its own callers, who name their arguments, are left alone.
    """
    if len(args) != 1 or kwargs:
        return args, kwargs
    (inputs,) = args
    if inputs.is_floating_point():
        return (), {"inputs_embeds": inputs}
    padding = getattr(getattr(module, "config", None), "pad_token_id", None)
    mask = {} if padding is None else {"attention_mask": (inputs != padding).long()}
    return (), {"input_ids": inputs, **mask}


def _made(model: Callable[[], Any]) -> Any:
    try:
        with seeded(0):
            return model()
    except Exception as error:
        name, found = _name_of(model), f"{type(error).__name__}: {reason(error)}"
        raise ConfigError(
            f"model: {name}() cannot be built without arguments ({found}); pass a module, or a function such as "
            f"lambda: {name}(…)"
        ) from error


def _name_of(model: object) -> str:
    return getattr(model, "__name__", type(model).__name__)

"""Frozen parts of a network: no client trains them and no update contains them.

A run's parameter vector holds the parameters that :meth:`torch.nn.Module.named_parameters` lists, and its running
statistics are the buffers that :meth:`~torch.nn.Module.named_buffers` lists. A frozen part is in neither vector: its
weights are not sent, its BatchNorm uses the running statistics that it came with, and nothing in it is averaged.

In your own module, ``requires_grad_(False)`` freezes a part, and :class:`~.vectors.VectorModel` leaves it out of its
vectors. The package's own large networks go further, for speed: :func:`hide_frozen` removes frozen parts from both
lists, so that no call has to go through hundreds of tensors that never change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn


class Frozen(nn.Module):
    """A module that hides its parameters and is always in evaluation mode.

    It still moves with the module around it (``to``, ``deepcopy``), lets gradients through to its inputs, and is
    saved and loaded by ``state_dict`` under the names that it would have if it were not frozen.

    Args:
        part: the module to freeze; its parameters no longer require gradients.
    """

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self._held = [part.eval().requires_grad_(False)]  # a list, so that torch does not register it

    @property
    def held(self) -> nn.Module:
        """The frozen module itself."""
        return self._held[0]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the output of the frozen part."""
        return self.held(*args, **kwargs)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Frozen:
        self.held._apply(fn, recurse)
        return super()._apply(fn, recurse)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        self.held.state_dict(destination=destination, prefix=prefix, keep_vars=keep_vars)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        mine = {name.removeprefix(prefix): value for name, value in state_dict.items() if name.startswith(prefix)}
        result = self.held.load_state_dict(mine, strict=False)
        missing_keys += [prefix + name for name in result.missing_keys]
        unexpected_keys += [prefix + name for name in result.unexpected_keys]


def frozen_parts(module: nn.Module) -> list[nn.Module]:
    """Return the outermost parts of ``module`` that have parameters, all of them frozen.

    The parts are used as they came, like :class:`Frozen` ones: in evaluation mode, with the running statistics that
    they came with, and without dropout.

    >>> network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> network[0].requires_grad_(False)
    Linear(in_features=4, out_features=8, bias=True)
    >>> frozen_parts(network)
    [Linear(in_features=4, out_features=8, bias=True)]
    """
    parameters = list(module.parameters())
    if parameters and not any(parameter.requires_grad for parameter in parameters):
        return [module]
    return [part for child in module.children() for part in frozen_parts(child)]


def hide_frozen(module: nn.Module) -> nn.Module:
    """Replace every part of ``module`` whose parameters are all frozen by a :class:`Frozen` wrapper, in place.

    Returns:
        ``module`` itself. The largest such parts are replaced as a whole; parts without parameters stay as they are.
    """
    for name, part in list(module.named_children()):
        parameters = list(part.parameters())
        if parameters and not any(parameter.requires_grad for parameter in parameters):
            setattr(module, name, Frozen(part))
        else:
            hide_frozen(part)
    return module

"""The base class of every method: the server's state, and ``receive``, which turns client updates into versions.

A method works on flat vectors alone and needs no simulator::

    method = make_algorithm("fedbuff", buffer_size=2, server_lr=0.5)
    method.start(x0)
    made_version, refused = method.receive(Update(client=0, delta=delta, start_version=0, num_samples=10))

To add a method, subclass :class:`Algorithm` in a file of its own, define ``on_receive`` and, if the method has options,
a ``Settings`` class, and import the class in ``algorithms/__init__.py``.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.base import registry
from asyncfl_lite.base.errors import ConfigError, shown
from asyncfl_lite.models.base import InputSpec
from asyncfl_lite.models.compute import (
    Answers,
    Descent,
    Minibatches,
    Optimiser,
    Request,
    SampleSet,
    fulfilled_now,
)
from asyncfl_lite.models.vectors import VectorModel, all_finite
from asyncfl_lite.simulator.jobs import NOT_FINITE, Receipt, Rejection, Update, in_dtype
from asyncfl_lite.simulator.server import Server, check_like

ALGORITHMS: registry.Registry[Algorithm] = registry.Registry("algorithm")

BN_MODES = ("avg", "delta", "freeze")

Family = Literal["synchronous", "asynchronous", "buffered", "distilling"]
"""Groups by which tables sort methods."""


@dataclass(frozen=True)
class About:
    """Name, source and costs of a method, for tables and figures; they change nothing in a run.

    Attributes:
        title, paper: the name as papers write it; citation, with the algorithm and equations that the class implements.
        family: the group by which tables sort it.
        models_stored: largest number of ``(d,)`` vectors in the state, including the global model, in terms of N, M and
            settings.
        keeps_versions: whether the server must also keep the versions in flight (at most M_c) to rebuild clients'
            models.
        on_clients: the ``state_names`` that clients, not the server, would hold in a real system.
        logits_stored: number of samples whose logits the server stores, in terms of N and U (unlabelled samples).
        also_stored, client_work: what else the server stores; what clients do beyond training and sending their update.
        order_matters: whether the new version depends on the order of updates inside one buffer.
        secondary: whether the class was implemented from secondary sources, because its paper could not be read.
        colour: the method's colour in every picture, chosen so that colour-blind readers can tell methods apart.
    """

    title: str = ""
    paper: str = ""
    family: Family = "buffered"
    models_stored: str = "1"
    keeps_versions: bool = False
    on_clients: tuple[str, ...] = ()
    logits_stored: str = "0"
    also_stored: str = ""
    client_work: str = "none"
    order_matters: bool = False
    colour: str = "#6b7280"
    secondary: bool = False


@dataclass
class ServerContext:
    """The server's model, data and random generator, for methods that need more than parameter vectors.

    Tests can replace any part.

    Attributes:
        model: the model, which computes logits and gradients from ``(d,)`` parameters and inputs.
        num_clients: N, the number of clients.
        rng: the server's own random stream, separate from the clients' streams.
        unlabelled: ``(name, count) -> (count, …)`` inputs of the server's unlabelled set.
        labelled: inputs and labels of the server's own labelled set, which no client has; None unless the method or the
            initialiser asks for one with ``held_out``.
        client_lr: ``version -> learning rate`` that clients dispatched at that version train with.
        inputs: shape and range of the task's inputs, and the number of classes.
        predictions: ``(outputs, inputs) -> (m, C)``, all predictions in a batch's outputs, sample by sample.
        prediction_counts: ``inputs -> (n,)`` int64 number of predictions of each sample.
        answers: ``labels -> (m,)`` correct class for each of the predictions.
        class_logits: ``outputs -> (n, C)``, one row of logits per sample.
        compute: a function that returns the result of a request; if several runs advance together, it first waits for
            requests of the others.

    >>> from asyncfl_lite import Config, Run
    >>> context = Run(Config(task="digits", algorithm="fedecho", clients=20)).algorithm.context
    >>> context.num_clients, context.unlabelled("natural", 5).shape
    (20, torch.Size([5, 1, 8, 8]))
    """

    model: VectorModel
    num_clients: int
    rng: np.random.Generator
    unlabelled: Callable[[str, int], Tensor]
    labelled: tuple[Tensor, Tensor] | None = None
    client_lr: Callable[[int], float] = lambda version: 0.01
    inputs: InputSpec | None = None
    predictions: Callable[[Tensor, Tensor], Tensor] = lambda outputs, inputs: outputs
    prediction_counts: Callable[[Tensor], Tensor] = lambda inputs: inputs.new_ones(len(inputs), dtype=torch.int64)
    answers: Callable[[Tensor], Tensor] = lambda labels: labels
    class_logits: Callable[[Tensor], Tensor] = lambda outputs: outputs
    compute: Callable[[Request], Any] = fulfilled_now

    def samples(self, inputs: Tensor) -> SampleSet:
        """Return ``(n, …)`` inputs as a set from which minibatches are drawn."""
        return SampleSet(inputs, self.prediction_counts(inputs))

    def outputs(self, models: Sequence[tuple[Tensor, Tensor | None]], inputs: Tensor, **how: Any) -> list[Tensor]:
        """Apply several models, each ``(parameters, running statistics)``, to ``(n, …)`` inputs.

        ``how`` is passed to :class:`.Answers`; with ``one_for_all=False``, every model has inputs of its own.
        """
        xs, buffers = zip(*models, strict=True)
        return self.compute(Answers(self.model, xs, inputs, buffers, **how))

    def distil(
        self,
        x: Tensor,
        batches: Minibatches,
        *,
        loss: Callable[..., Tensor],
        against: Sequence[Tensor],
        optimiser: Optimiser,
        weight: Tensor | float | None = None,
        predictions: Callable[[Tensor, Tensor], Tensor] | None = None,
        **how: Any,
    ) -> Tensor:
        """Return the ``(d,)`` parameters of a student after distillation: one gradient step per minibatch.

        Args:
            x: ``(d,)`` its initial parameters.
            batches: the minibatch of every step.
            loss: ``(predictions, *against, weight)`` of a minibatch's rows -> their mean loss.
            against: ``(m, …)`` tensors with a row for every prediction on the whole set: a teacher's predictions, or
                labels.
            optimiser: the optimiser's settings.
            weight: ``(r,)`` weights, one for every row of the minibatches, or one number for all; None for a loss
                without weights.
            predictions: ``(outputs, inputs) -> (b, C)``, all predictions in a minibatch's outputs; None for the task's
                function.
            how: further fields of :class:`.Descent`: ``buffers``, ``train``.
        """
        if isinstance(weight, int | float):
            weight = torch.full(batches.rows.shape, weight, dtype=torch.float64).to(batches.rows.device)
        descent = Descent(
            self.model,
            x,
            batches,
            loss,
            optimiser,
            tables=against,
            given=() if weight is None else (weight,),
            predictions=predictions or self.predictions,
            **how,
        )
        return self.compute(descent)


class Algorithm(Server):
    """The server of a federated learning method.

    Args:
        buffer_size: M, the number of updates that make one version.
        server_lr: the server's learning rate η.
        bn_mode: treatment of BatchNorm's running statistics: ``avg``, averaged or mixed like the parameters (FedBuff
            takes the plain mean); ``delta``, moved by the clients' changes; or ``freeze``, left as they were at the
            start.
        settings: the method's own options, by name.

    Attributes:
        x: ``(d,)`` the global model; it is never changed in place, so a reference to it may be kept.
        version: number of times that the global model has been replaced.
        buffers: ``(b,)`` running statistics of the global model, or None; PyTorch's name, not the M buffered updates.
        rejections: the updates that were refused.

    >>> import torch
    >>> from asyncfl_lite import Algorithm, Update
    >>> class Add(Algorithm):
    ...     def on_receive(self, update):
    ...         return self.new_version(self.x + self.server_lr * update.delta)
    >>> server = Add(server_lr=0.5)
    >>> server.start(torch.zeros(2))
    >>> bool(server.receive(Update(client=0, delta=torch.tensor([2.0, 4.0]), start_version=0)))
    True
    >>> server.version, server.x
    (1, tensor([1., 2.]))
    """

    def __init_subclass__(cls) -> None:
        if hasattr(cls, "redispatch"):
            raise ConfigError(f"{cls.__name__}.redispatch: is called scheduling now")

    revision: ClassVar[int] = 1
    """Revision of the method's numbers; increase it when their meaning changes, to mark older results as outdated."""

    scheduling: ClassVar[str] = "before_agg"
    """Default scheduling policy; a configuration can choose a different one."""
    buffered: ClassVar[bool] = True
    """Whether the method uses ``buffer_size``; if not, every update makes a version."""
    uses_server_lr: ClassVar[bool] = True
    """Whether the method uses ``server_lr``."""
    state_names: ClassVar[tuple[str, ...]] = ("x", "version", "buffers")
    """Names of the attributes that change from update to update; a subclass adds its own."""
    about: ClassVar[About] = About()
    """The method's labels in tables and figures, and its declared costs."""

    class Settings(registry.Settings):
        """The default settings class, with no options; a method that has options defines its own."""

    x: Tensor
    settings: Settings
    buffer_size: int
    server_lr: float
    bn_mode: str

    # A method's requests: a subclass sets a class attribute, or overrides the property if its settings decide.

    @property
    def proximal(self) -> float:
        """Weight μ of the proximal term μ/2 ‖w - x_{t_i}‖² in the clients' loss."""
        return 0.0

    @property
    def correction_once(self) -> bool:
        """Whether clients apply their correction once, after training, instead of at every step."""
        return False

    @property
    def client_reports(self) -> frozenset[str]:
        """Extra reports that clients must send: names from :data:`.ON_REQUEST`."""
        return frozenset()

    @property
    def held_out(self) -> float:
        """Fraction of the training samples that the server keeps as its labelled set, away from clients."""
        return 0.0

    @property
    def moves_by_itself(self) -> bool:
        """Whether the global model moves even if every update is zero, as with distillation."""
        return False

    def __init__(self, *, buffer_size: int = 1, server_lr: float = 1.0, bn_mode: str = "avg", **settings: Any) -> None:
        self.check_buffer(buffer_size)
        if isinstance(server_lr, bool) or not isinstance(server_lr, Real) or not 0 <= server_lr < math.inf:
            raise ConfigError(f"server_lr: must be a finite number of at least 0, got {shown(server_lr)}")
        if bn_mode not in BN_MODES:
            raise ConfigError(f"bn_mode: must be one of {', '.join(map(repr, BN_MODES))}, got {bn_mode!r}")
        self.buffer_size = buffer_size
        self.server_lr = server_lr
        self.bn_mode = bn_mode
        self.settings = self.Settings(**settings)

    @classmethod
    def check_buffer(cls, size: object) -> None:
        """Raise a ConfigError unless the method can have a buffer of this size."""
        if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
            raise ConfigError(f"buffer_size: must be a whole number of at least 1, got {shown(size)}")
        if not cls.buffered and size != 1:
            raise ConfigError(f"buffer_size: {cls.__name__} has no buffer; must be 1, got {size}")

    def start(
        self,
        x0: Tensor,
        context: ServerContext | None = None,
        *,
        buffers: Tensor | None = None,
        variance_mask: Tensor | None = None,
        keep_versions: bool = True,
    ) -> None:
        """Start at version 0 with the given initial model.

        Args:
            x0: ``(d,)`` initial parameters.
            context: the server's model, data and random stream, if the method needs them.
            buffers: ``(b,)`` initial running statistics.
            variance_mask: ``(b,)`` bool mask of the running statistics that are kept at 1e-12 or above.
            keep_versions: keep every version, for updates that come without ``start``; a simulation, whose updates
                contain it, turns this off.
        """
        self.x = x0.detach().clone()
        self.version = 0
        self.buffers = None if buffers is None or not buffers.numel() else buffers.detach().clone()
        self._moved = None if self.buffers is None else torch.zeros_like(self.buffers, dtype=torch.bool)
        self.rejections: list[Rejection] = []
        self._variance_mask = variance_mask
        self._context = context
        self._versions: dict[int, Tensor] | None = {0: self.x.clone()} if keep_versions else None

    def receive(self, update: Update) -> Receipt:
        """Process one client update; the returned receipt is true if the update made a new version.

        An update that is not finite in the model's type, of another shape, or from a version that does not exist yet is
        refused: it is noted in ``rejections`` and changes nothing.
        """
        update = in_dtype(update, self.x.dtype)
        if reason := self._fault(update):
            self.rejections.append(Rejection(update.client, self.version, reason))
            return Receipt(False, reason)
        if self._moved is not None and update.buffers is not None:
            self._moved = self._moved | ~self._unchanged(update, update.buffers)
        return Receipt(self.on_receive(replace(update, staleness=self.version - update.start_version)))

    @abstractmethod
    def on_receive(self, update: Update) -> bool:
        """Process an update that passed the checks; return whether it made a new version."""

    @property
    def context(self) -> ServerContext:
        """What the method was started with; a ConfigError if that was nothing."""
        if self._context is None:
            raise ConfigError(
                f"context: {type(self).__name__} needs the server's model or data; pass start(x0, context)"
            )
        return self._context

    @property
    def labelled(self) -> tuple[Tensor, Tensor]:
        """The inputs and labels of the server's labelled set; a ConfigError if the context has none."""
        if self.context.labelled is None:
            name = self.about.title or type(self).__name__
            raise ConfigError(f"labelled: {name} needs the server's labelled set; put it in the context")
        return self.context.labelled

    def start_of(self, update: Update) -> Tensor:
        """Return the ``(d,)`` parameters x_{t_i} from which the client's training for this update started."""
        if update.start is not None:
            return update.start
        if self._versions is None:
            raise ConfigError("start: an update must bring its starting point, or the method must keep_versions")
        return self._versions[update.start_version].clone()

    def new_version(self, x: Tensor) -> bool:
        """Make ``x``, a vector like the model before, the global model; count a new version, and return True."""
        check_like(self, "new_version", x, self.x)
        self.x = x.detach() if x.requires_grad else x
        self.version += 1
        if self._versions is not None:
            self._versions[self.version] = x.detach().clone()
        return True

    def state(self) -> dict[str, Any]:
        """Return the state that :meth:`restore` loads: tensors and plain values, by attribute name."""
        saved = {name: getattr(self, name) for name in self.state_names}
        return {**saved, "moved": self._moved, "rejections": [tuple(row) for row in self.rejections]}

    def restore(self, state: dict[str, Any]) -> None:
        """Load a saved state into a method that has been started."""
        for name in self.state_names:
            setattr(self, name, state[name])
        self._moved = state.get("moved", None if self.buffers is None else torch.ones_like(self.buffers).bool())
        self.rejections = [Rejection(*row) for row in state["rejections"]]

    def mix_buffers(self, update: Update, rate: float) -> None:
        """Mix the client's running statistics into the server's, with weight ``rate``.

        With ``bn_mode`` ``delta``, add the change of the statistics in training, multiplied by ``rate``, instead.
        """
        if self.buffers is not None and update.buffers is not None:
            change = update.buffers_change if self.bn_mode == "delta" else update.buffers - self.buffers
            self.set_buffers(self.buffers + rate * change)

    def set_buffers(self, buffers: Tensor) -> None:
        """Replace the running statistics, keeping variances positive; do nothing if ``bn_mode`` is ``freeze``.

        Numbers that no client has changed so far, such as those of a mask, stay as they are: a mean of infinite or very
        large numbers is none of them.
        """
        if self.bn_mode == "freeze":
            return
        check_like(self, "set_buffers", buffers, self.buffers)
        if self._moved is not None and self.buffers is not None:
            buffers = torch.where(self._moved, buffers, self.buffers)
        if self._variance_mask is not None:
            buffers = torch.where(self._variance_mask, buffers.clamp(min=1e-12), buffers)
        self.buffers = buffers

    def _fault(self, update: Update) -> str | None:
        if update.delta.shape != self.x.shape:
            return f"wrong shape {tuple(update.delta.shape)}, expected {tuple(self.x.shape)}"
        if not 0 <= update.start_version <= self.version:
            return f"start version {update.start_version} is not one of 0 to {self.version}"
        if not all_finite(update.delta):
            return NOT_FINITE
        if update.buffers is None or self.buffers is None:
            return None
        if update.buffers.shape != self.buffers.shape:
            return f"wrong shape {tuple(update.buffers.shape)} of statistics, expected {tuple(self.buffers.shape)}"
        sound = torch.isfinite(update.buffers) | self._unchanged(update, update.buffers)
        return None if sound.all() else f"running statistics {NOT_FINITE}"

    def _unchanged(self, update: Update, buffers: Tensor) -> Tensor:
        """Return the ``(b,)`` mask of the statistics that the client's training has left as they were."""
        before = self.buffers if update.start_buffers is None else update.start_buffers
        assert before is not None  # the caller has looked
        return (buffers == before) | (buffers.isnan() & before.isnan())


def make_algorithm(name: str, **settings: Any) -> Algorithm:
    """Make the method called ``name`` with the given settings.

    Args:
        name: one of the names that ``asyncfl-lite list`` prints.
        settings: ``buffer_size``, ``server_lr``, ``bn_mode``, and the method's own options.

    Raises:
        ConfigError: for an unknown name or setting; the message suggests the most similar one.

    >>> import torch
    >>> from asyncfl_lite import Update, make_algorithm
    >>> method = make_algorithm("fedbuff", buffer_size=2, server_lr=0.5)
    >>> method.start(torch.tensor([1.0, 0.0]))
    >>> bool(method.receive(Update(client=0, delta=torch.tensor([4.0, 0.0]), start_version=0)))  # the buffer waits
    False
    >>> bool(method.receive(Update(client=1, delta=torch.tensor([0.0, 8.0]), start_version=0)))
    True
    >>> method.version, method.x
    (1, tensor([2., 2.]))
    """
    return ALGORITHMS.get(name)(**settings)

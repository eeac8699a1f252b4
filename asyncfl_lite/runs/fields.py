"""Every setting of a run: its type, bounds and description.

Nothing here imports torch, so that the command line's help appears at once. The class
:class:`~asyncfl_lite.runs.config.Config` checks names, the settings in groups, and combinations of settings.

``default=...`` means that a setting may be left out, and that its default depends on the task and the method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, SerializeAsAny

from asyncfl_lite.base.registry import Settings

if TYPE_CHECKING:  # the types that a user may write: a dict for a group, the name of a setup
    Group = Any
    SetUpName = str | None
else:  # the types that are stored
    Group = SerializeAsAny[Settings]
    SetUpName = None


class Fields(Settings):
    """The settings of a configuration; most of them have a default that depends on the task and the method."""

    task: str = Field(default=..., description="data set to learn, with its loss and its metric")
    task_settings: Group = Field(default=..., description="the task's own settings")
    model: str = Field(default=..., description="model that clients train")
    model_settings: Group = Field(default=..., description="the model's own settings")
    algorithm: str = Field(default=..., description="federated learning method of the server")
    settings: Group = Field(
        default=..., description="the method's own options, listed by `asyncfl-lite list --methods`"
    )
    delay: str = Field(default=..., description="delay law, which decides how long each job takes")
    delay_settings: Group = Field(default=..., description="the delay law's own settings")
    partition: str = Field(default=..., description="rule that divides the training samples among the clients")
    alpha: float | None = Field(
        default=None, gt=0, le=1e9, description="Dirichlet concentration of the partition; smaller is more unequal"
    )
    partition_settings: Group = Field(default=..., description="the partition's own settings")
    clients: int = Field(default=..., ge=1, le=10_000_000, description="number of clients, N")
    concurrency: int = Field(default=..., ge=1, description="number of clients that train at the same time, M_c")
    buffer_size: int = Field(default=..., ge=1, description="number of updates in a server version, M")
    redispatch: str = Field(
        default=..., description="scheduling policy, which decides when new work is sent after a report"
    )
    selection: str = Field(default="uniform", description="selection policy, which decides which client gets new work")
    selection_settings: Group = Field(default=..., description="the selection policy's own settings")
    initial: str = Field(default="random", description="source of the initial weights")
    initial_settings: Group = Field(default=..., description="the initialiser's own settings")
    rounds: int | None = Field(default=None, ge=1, description="stop at this server version")
    horizon: float | None = Field(default=None, gt=0, description="stop at this virtual time, in the delay law's unit")
    local_epochs: int | None = Field(
        default=None, ge=1, description="number of passes of a job over its client's samples"
    )
    local_steps: int | None = Field(
        default=None, ge=1, description="number of minibatch steps of a job, instead of epochs"
    )
    batch_size: int = Field(default=..., ge=1, description="number of samples in a client's minibatch")
    client_optimizer: Literal["sgd", "adam", "adamw"] = Field(default=..., description="optimiser of local training")
    client_lr: float = Field(default=..., ge=0, description="learning rate of local training")
    client_lr_decay: float = Field(
        default=1.0, gt=0, le=1, description="factor on the clients' learning rate after every server version"
    )
    weight_decay: float = Field(default=..., ge=0, description="weight decay of local training")
    client_clip: float | None = Field(
        default=None, gt=0, description="largest L2 norm of a client's gradient; larger ones are clipped"
    )
    server_lr: float = Field(default=..., ge=0, description="the server's learning rate")
    server_time: float = Field(default=0.0, ge=0, description="virtual time that the server needs to make a version")
    bn_mode: Literal["avg", "delta", "freeze"] = Field(
        default="avg", description="treatment of BatchNorm's running statistics on the server"
    )
    cohort: Literal["auto", "on", "off"] = Field(
        default="auto", description="train the jobs in flight in one computation"
    )
    device: str = Field(default="cpu", description="torch device; auto means cuda if there is one, else cpu")
    threads: int = Field(
        default=1, ge=1, le=1024, description="number of CPU threads of torch; 1 is fastest for small models"
    )
    eval_every: int = Field(default=10, ge=1, description="number of versions between two tests of the global model")
    checkpoint_every: int | None = Field(
        default=None, ge=1, description="number of versions between two checkpoints of the run"
    )
    checkpoint_seconds: float | None = Field(
        default=600.0,
        gt=0,
        description="seconds between two checkpoints, if the run has a file to save to",
    )
    judged_on: Literal["test", "validation"] = Field(
        default="test", description="samples on which accuracy is measured; choose settings on validation samples"
    )
    trouble: Group = Field(default=..., description="trouble at clients, such as lost or late jobs; by default none")
    seed: int = Field(default=0, ge=0, description="seed of every random stream of the run")
    setup: SetUpName = Field(
        default=None,
        exclude=True,
        description="source of the defaults: the paper fedecho, fedrevive, kuiper or fedadt, or ours; results do "
        "not record this option",
    )

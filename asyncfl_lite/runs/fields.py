"""Every setting of a run: its type, bounds and description.

Nothing here needs torch, so that the command line's help is there at once. What a name may be, which settings a group
has and what goes together, :class:`~asyncfl_lite.runs.config.Config` knows.

``default=...`` says that a setting may be left out, and that what it is then goes by the task and the method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, SerializeAsAny

from asyncfl_lite.base.registry import Settings

if TYPE_CHECKING:  # what may be written: a group as a dict, the word of a setup
    Group = Any
    SetUpName = str | None
else:  # what is kept
    Group = SerializeAsAny[Settings]
    SetUpName = None


class Fields(Settings):
    """The settings of a configuration; those without a default take one by task and method."""

    task: str = Field(default=..., description="what is learned")
    task_settings: Group = Field(default=..., description="the task's own settings")
    model: str = Field(default=..., description="the model that clients train")
    model_settings: Group = Field(default=..., description="the model's own settings")
    algorithm: str = Field(default=..., description="the method")
    settings: Group = Field(default=..., description="the method's own switches, see `asyncfl-lite list --methods`")
    delay: str = Field(default=..., description="law of how long clients take")
    delay_settings: Group = Field(default=..., description="the delay law's own settings")
    partition: str = Field(default=..., description="how samples are dealt out to clients")
    alpha: float | None = Field(
        default=None, gt=0, le=1e9, description="Dirichlet concentration; smaller is more unequal"
    )
    partition_settings: Group = Field(default=..., description="the partition's own settings")
    clients: int = Field(default=..., ge=1, le=10_000_000, description="number of clients N")
    concurrency: int = Field(default=..., ge=1, description="clients that train at the same time M_c")
    buffer_size: int = Field(default=..., ge=1, description="updates that make a server version M")
    redispatch: str = Field(default=..., description="when a reporting client's slot gets new work")
    selection: str = Field(default="uniform", description="which client gets the new work")
    selection_settings: Group = Field(default=..., description="the selection's own settings")
    initial: str = Field(default="random", description="where the initial weights come from")
    initial_settings: Group = Field(default=..., description="the initialisation's own settings")
    rounds: int | None = Field(default=None, ge=1, description="stop at this server version")
    horizon: float | None = Field(default=None, gt=0, description="stop at this virtual time, in the delay law's unit")
    local_epochs: int | None = Field(
        default=None, ge=1, description="passes that a job makes over its client's samples"
    )
    local_steps: int | None = Field(default=None, ge=1, description="minibatch steps of a job, in place of epochs")
    batch_size: int = Field(default=..., ge=1, description="samples in a client's minibatch")
    client_optimizer: Literal["sgd", "adam", "adamw"] = Field(default=..., description="optimiser of local training")
    client_lr: float = Field(default=..., ge=0, description="learning rate of local training")
    client_lr_decay: float = Field(
        default=1.0, gt=0, le=1, description="multiply the clients' learning rate by this after every server version"
    )
    weight_decay: float = Field(default=..., ge=0, description="weight decay of local training")
    client_clip: float | None = Field(default=None, gt=0, description="largest L2 norm of a client's gradient")
    server_lr: float = Field(default=..., ge=0, description="the server's learning rate")
    server_time: float = Field(default=0.0, ge=0, description="virtual time that making a version takes")
    bn_mode: Literal["avg", "delta", "freeze"] = Field(
        default="avg", description="what the server does with BatchNorm's running statistics"
    )
    cohort: Literal["auto", "on", "off"] = Field(default="auto", description="train in-flight jobs as one computation")
    autocast: bool = Field(default=False, description="clients' forward passes in bfloat16 where that is safe")
    channels_last: bool = Field(
        default=False, description="keep images in the memory format channels_last when jobs train one by one"
    )
    device: str = Field(default="cpu", description="torch device; auto: cuda where there is one, else cpu")
    threads: int = Field(
        default=1, ge=1, le=1024, description="torch's processor threads; 1 is fastest for small models"
    )
    eval_every: int = Field(default=10, ge=1, description="test the global model every so many versions")
    checkpoint_every: int | None = Field(default=None, ge=1, description="save the run every so many versions")
    checkpoint_seconds: float | None = Field(
        default=600.0,
        gt=0,
        description="save the run whenever so many seconds have passed, if a file to save to is given",
    )
    judged_on: Literal["test", "validation"] = Field(
        default="test", description="samples that accuracy is measured on; validation samples are for choosing settings"
    )
    trouble: Group = Field(default=..., description="what goes wrong at clients; by default nothing")
    seed: int = Field(default=0, ge=0, description="names every random stream of the run")
    setup: SetUpName = Field(
        default=None,
        exclude=True,
        description="whose experiments fill in what is left out: fedecho, fedrevive, kuiper, fedadt, or ours; results "
        "do not keep the word",
    )

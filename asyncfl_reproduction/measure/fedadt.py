"""The operations of FedADT's distillation divided by those of its local training, computed without a run."""

from __future__ import annotations

from asyncfl_lite.runs.config import PAPERS
from asyncfl_reproduction.published import hyperparameters

STEP, FORWARD = 3, 1
"""Costs in forward passes of a training step on one sample (with its backward pass) and of a teacher's output."""
EPOCHS = PAPERS["fedadt"]["common"]["local_epochs"]
"""Epochs of a client's job in our cells, which are FLGo's default. The paper prints no number."""


def distilling_over_training(epochs: int) -> float:
    """Return the operations of distilling one client's model, divided by those of the client's local training.

    The server's set is a share of all samples, and the clients have the rest in equal parts. In a distillation pass,
    each sample of the server's costs a training step of the client's model and a forward pass of the global model. The
    size of the model and the number of samples cancel, so the result is the same on all data sets.
    """
    table = hyperparameters("FedADT")
    printed = table[table["dataset"] == "all"].set_index("name")["value"]
    share, rounds, clients = (float(printed[name]) for name in ("kd_data_share", "kd_rounds", "clients"))
    return share * rounds * (STEP + FORWARD) / ((1 - share) / clients * epochs * STEP)

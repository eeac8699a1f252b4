"""A check of a model on a task before any run."""

from __future__ import annotations

from asyncfl_lite.base.devices import usual_torch
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.models.base import InputSpec, ModelSpec, initial_model
from asyncfl_lite.models.embedded import check_takes_embeddings, table_of
from asyncfl_lite.models.probe import check_conduct, takes_one, why_alone
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.tasks import Task


@usual_torch()
def check_model(model: ModelSpec, task: Task) -> dict[str, str]:
    """Check that a model can be trained on a task; return the reasons why optional abilities are missing, by ability.

    It makes the checks that every run makes at its start, and also tests abilities that only some runs need.

    Args:
        model: the model's settings, such as ``MLP(hidden=(16,))``.
        task: the task on which it will be trained, such as ``Task.from_tensors(…)``.

    Returns:
        For each ability, the reason why the model lacks it, or an empty text if it has it:
        ``"minibatches of one sample"``; ``"several clients at once"`` (a cohort); and, for token ids,
        ``"made-up text"``, which FedRevive gives it as embeddings.

    Raises:
        ConfigError: when no run can train it on the task.

    Example: a perceptron has both abilities on images. Clients of a network with BatchNorm are trained one by one.

    >>> import torch
    >>> from asyncfl_lite import Task
    >>> from asyncfl_lite.models import CNN, MLP
    >>> from asyncfl_lite.testing import check_model
    >>> images, labels = torch.rand(20, 1, 8, 8), torch.arange(20) % 2
    >>> task = Task.from_tensors(images, labels, images, labels)
    >>> check_model(MLP(hidden=(16,)), task)
    {'minibatches of one sample': '', 'several clients at once': ''}
    >>> check_model(CNN(norm="batch"), task)["several clients at once"]
    'it keeps running statistics'
    """
    vectors, (inputs, _) = VectorModel(initial_model(model, task.input_spec, 0)), task.samples
    draws = check_conduct(type(model).__name__, vectors, inputs, (*task.labels.shape[1:], task.num_classes))
    found = {"minibatches of one sample": "" if takes_one(vectors, inputs) else "it fails on one"}
    if vectors.num_buffers:
        found["several clients at once"] = "it keeps running statistics"
    else:
        found["several clients at once"] = why_alone(vectors, inputs, draws) if model.vectorises else "it says so"
    if task.vocabulary is not None:
        found["made-up text"] = _no_embeddings(vectors, task.input_spec)
    return found


def _no_embeddings(model: VectorModel, spec: InputSpec) -> str:
    """Return the reason why a model does not accept embeddings in place of tokens; an empty text if it does."""
    x, _ = model.flatten()
    try:
        check_takes_embeddings(model, spec, x, table_of(model, spec, x))
    except ConfigError as error:
        return str(error).removeprefix("model: ")
    return ""

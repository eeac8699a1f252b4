"""The controls of notebook 08 control: taken out of the lesson's cells, and held to the difference that they must make.

The lesson once had two controls that had silently become plain FedEcho, when the code under them changed. Both are here
as well, in code as it was, and must be noticed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
import torch

from asyncfl_lite import Config, Run
from asyncfl_lite.algorithms.losses import mean_teacher, uncertainty_weight

LESSON = Path(__file__).parents[2] / "notebooks/08_fedecho_evidence.ipynb"
UNLABELLED = 60
SHORT = {
    "task": "digits", "algorithm": "fedecho", "delay": "fedecho_mild", "alpha": 0.1, "rounds": 40, "clients": 20,
    "concurrency": 15, "buffer_size": 4, "client_lr": 0.2, "local_epochs": 1, "eval_every": 40,
    # a single batch, so that the weight of the last batch is that of the whole teacher
    "settings": {"distill_samples": UNLABELLED, "distill_batch_size": UNLABELLED, "distill_q": 3, "distill_lr": 1e-3},
}  # fmt: skip

Control = Callable[[Run], None]


@pytest.fixture(scope="module")
def lesson() -> SimpleNamespace:
    """What the lesson's cells that are tagged as controls define."""
    code = [cell for cell in nbformat.read(LESSON, as_version=4).cells if cell.cell_type == "code"]
    names: dict[str, object] = {}
    for cell in [code[0], *(cell for cell in code if "control" in cell.metadata.get("tags", []))]:
        exec(cell.source, names)
    return SimpleNamespace(**names)


def stragglers_of(session: Run) -> set[int]:
    return set(np.flatnonzero(session.simulation.delays.category_index == 2).tolist())


def walk(control: Control | None = None) -> SimpleNamespace:
    """Run under a control; note at each aggregation what is stored, the weight that taught, and the model after it.

    ``said`` has for each version what the clients of each report up to then predicted, computed from the updates
    alone, and ``buffers`` the clients whose reports made it.
    """
    session = Run(Config(**SHORT))
    if control is not None:
        control(session)
    server, model = session.algorithm, session.model
    inputs = server.context.unlabelled(server.settings.distill_set, UNLABELLED)
    hear, distil = server.on_receive, server.after_step
    seen = SimpleNamespace(stragglers=stragglers_of(session), stored=[], taught=[], models=[], said=[], buffers=[])
    said, buffer = {}, []

    def on_receive(update):
        said[update.client] = model.outputs(server.start_of(update) + update.delta, inputs)
        buffer.append(update.client)
        return hear(update)

    def after_step(x):
        seen.stored.append(set(server.logits))
        seen.said.append(dict(said))
        seen.buffers.append(set(buffer))
        buffer.clear()
        distilled = distil(x)
        seen.taught.append(server.last_weight)
        seen.models.append(distilled)
        return distilled

    server.on_receive, server.after_step = on_receive, after_step
    session.finish()
    assert len(seen.models) == SHORT["rounds"]
    return seen


def assert_taught_by(seen: SimpleNamespace, clients: list[set[int]]) -> None:
    """Nobody but ``clients``, by version, is stored, and they alone set the weight that distillation had."""
    others = [version for version, pair in enumerate(zip(seen.stored, clients, strict=True)) if pair[0] != pair[1]]
    assert not others
    for said, those, taught in zip(seen.said, clients, seen.taught, strict=True):
        teacher = mean_teacher(torch.stack([said[client] for client in sorted(those)]))
        assert taught == pytest.approx(float(uncertainty_weight(teacher, 0.2, 0.8)), abs=1e-4)


def assert_deaf(control: Control, plain: SimpleNamespace) -> None:
    """Stragglers are never stored nor taught by; nothing else differs until the first of them would have been."""
    deaf = walk(control)
    first = next(v for v, stored in enumerate(plain.stored) if stored & plain.stragglers)
    assert 0 < first < SHORT["rounds"] - 5
    assert_taught_by(deaf, [set(said) - deaf.stragglers for said in deaf.said])
    same = [torch.equal(one, other) for one, other in zip(plain.models, deaf.models, strict=True)]
    assert all(same[:first])
    assert not any(same[first:])


def assert_forgetful(control: Control, plain: SimpleNamespace) -> None:
    """Each version is taught by its own buffer's clients alone, which differs from plain FedEcho at once."""
    forgetful = walk(control)
    assert_taught_by(forgetful, forgetful.buffers)
    assert torch.equal(plain.models[0], forgetful.models[0])
    assert not any(torch.equal(*pair) for pair in zip(plain.models[1:], forgetful.models[1:], strict=True))


@pytest.fixture(scope="module")
def plain() -> SimpleNamespace:
    """FedEcho without a control, which everybody who was heard teaches."""
    seen = walk()
    assert_taught_by(seen, [set(said) for said in seen.said])
    return seen


def test_deaf_to_stragglers_is_deaf_to_them_and_to_nobody_else(lesson, plain):
    assert_deaf(lesson.deaf_to_stragglers, plain)


def test_no_memory_leaves_the_current_buffers_teachers(lesson, plain):
    assert_forgetful(lesson.forget_each_version, plain)

"""One's own data and settings, as the tests of users' code share them."""

from __future__ import annotations

import numpy as np
import torch

from asyncfl_lite import Task

SMALL = {"clients": 6, "concurrency": 4, "buffer_size": 2, "rounds": 2, "eval_every": 2, "client_lr": 0.1,
         "partition": "iid", "batch_size": 4}  # fmt: skip
X = torch.randn(72, 8, generator=torch.Generator().manual_seed(0))
Y = X[:, :3].argmax(1)


def points(kind: type[Task] = Task, **more) -> Task:
    """Points in eight dimensions, three classes, also for the server without labels."""
    return kind.from_tensors(X[:60], Y[:60], X[60:], Y[60:], unlabelled=X[:20], **more)


def two_sides(shift: float = 0.0, name: str = "mine", **more) -> Task:
    """Points in four dimensions, moved by so much, of two classes."""
    points = np.random.default_rng(0).standard_normal((80, 4)).astype(np.float32)
    sides = (points.sum(1) > 0).astype(int)
    return Task.from_tensors(points[:60] + np.float32(shift), sides[:60], points[60:], sides[60:], name=name, **more)

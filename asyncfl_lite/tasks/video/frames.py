"""Moving digits in fewer frames, to test how much of a clip a model must see (KUIPER Appendix F, Fig. 11)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from pydantic import Field
from torch import Tensor

from asyncfl_lite.tasks.task import TASKS, Task
from asyncfl_lite.tasks.video.motion import MovingDigits

RECORDED_FRAMES = 8
"""Number of frames in a clip of :class:`MovingDigits`."""


@TASKS.register("movingdigits_frames")
class MovingDigitsFrames(MovingDigits):
    """`movingdigits` in fewer, evenly spaced frames; stand-in for HMDB51 (KUIPER Fig. 11).

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("movingdigits_frames")(frames=2).load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((1, 2, 16, 16), 40, 2000, 800)
    """

    title: ClassVar[str] = "movingdigits_frames"

    frames: int = Field(RECORDED_FRAMES, ge=1, le=RECORDED_FRAMES)
    """Number of frames, from the middles of equal parts of a clip, as in tasks with real videos. A single frame shows
    no direction."""

    def _task(self, *clips: Any, **more: Any) -> Task:
        """Return the task of these clips, each in some of its frames only."""
        whole = super()._task(*clips, **more)
        places = ((np.arange(self.frames) + 0.5) * RECORDED_FRAMES / self.frames).astype(int)

        def seen(clips: Tensor) -> Tensor:
            return clips[:, :, places].contiguous()

        def seen_of(draw: Callable[[int, np.random.Generator], Tensor]) -> Callable[[int, np.random.Generator], Tensor]:
            return lambda count, rng: seen(draw(count, rng))

        return replace(
            whole,
            name=self.title,
            inputs=seen(whole.inputs),
            test_inputs=seen(whole.test_inputs),
            validation=None if whole.validation is None else (seen(whole.validation[0]), whole.validation[1]),
            unlabelled={name: seen_of(draw) for name, draw in whole.unlabelled.items()},
        )

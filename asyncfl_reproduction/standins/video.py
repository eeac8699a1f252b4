"""Moving digits in fewer frames, to test how much of a clip a model must see (KUIPER Appendix F, Fig. 11)."""

from __future__ import annotations

from typing import ClassVar

from asyncfl_lite.tasks.task import TASKS
from asyncfl_lite.tasks.video.motion import MovingDigits


@TASKS.register("movingdigits_frames")
class MovingDigitsFrames(MovingDigits):
    """`movingdigits` under the name of KUIPER's Fig. 11; stand-in for HMDB51.

    >>> from asyncfl_lite.tasks import TASKS
    >>> task = TASKS.get("movingdigits_frames")(frames=2).load()
    >>> task.input_shape, task.num_classes, len(task.labels), len(task.test_labels)
    ((1, 2, 16, 16), 40, 2000, 800)
    """

    name: ClassVar[str] = "movingdigits_frames"
    title: ClassVar[str] = "movingdigits_frames"

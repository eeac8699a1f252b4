"""Video tasks: video files with their official splits, and moving digits."""

from asyncfl_lite.tasks.video import motion, videos  # noqa: F401 - they register

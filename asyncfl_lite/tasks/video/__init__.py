"""Clips: video files with their official splits, and digits in motion."""

from asyncfl_lite.tasks.video import frames, motion, videos  # noqa: F401 - they register

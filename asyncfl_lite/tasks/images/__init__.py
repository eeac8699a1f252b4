"""Image tasks: real data from Python packages, or from files in their official formats."""

from asyncfl_lite.tasks.images import base, files  # noqa: F401 - they register

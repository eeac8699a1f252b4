"""Text tasks that classify documents or predict characters."""

from asyncfl_lite.tasks.text import files, prose  # noqa: F401 - they register

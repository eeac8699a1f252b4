"""Text tasks that classify documents or predict characters."""

from asyncfl_lite.tasks.text import characters, documents, prose  # noqa: F401 - they register

"""Text tasks that classify documents or predict characters, from real files or as stand-ins."""

from asyncfl_lite.tasks.text import bags, characters, mrpc, newsgroups20, snippets, standins, vectors  # noqa: F401 - register

"""Text tasks that classify documents or predict characters, from real files or as stand-ins."""

from asyncfl_lite.tasks.text import bags, characters, mrpc, newsgroups20, newsgroups20_vectors, snippets, standins  # noqa: F401 - register

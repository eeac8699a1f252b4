"""Text tasks, of documents to classify and characters to predict: real files, stand-ins from prose in Python."""

from asyncfl_lite.tasks.text import bags, characters, mrpc, newsgroups20, snippets, standins  # noqa: F401 - they register

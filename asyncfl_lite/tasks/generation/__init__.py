"""Generation tasks: mathematical problems for causal language models."""

from asyncfl_lite.tasks.generation import gsm8k, modmath  # noqa: F401 - they register

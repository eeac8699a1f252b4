"""Generation tasks: mathematical problems for causal language models."""

from asyncfl_lite.tasks.generation import maths  # noqa: F401 - it registers

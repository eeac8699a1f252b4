"""Tokenisers of generation tasks: a small one trained on the task's problems, or a language model's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from asyncfl_lite.base.errors import needs
from asyncfl_lite.models.transformers import from_checkpoint
from asyncfl_lite.tasks.text.base import trained_tokeniser
from asyncfl_lite.tasks.text.sequences import IGNORED

Problem = tuple[str, str]
"""A question and its answer."""


@dataclass(frozen=True)
class LanguageTokens:
    """A tokeniser with the special tokens of a generation task.

    Attributes:
        encode: function from a text to its ids, without special tokens.
        decode: function from ids to their text.
        prompt: function from a question to its ids, which end with ``marker``.
        size: number of tokens V.
        marker: ids between question and answer, which no question contains.
        end: id after an answer.
        padding: id that fills up a sequence.
    """

    encode: Callable[[str], list[int]]
    decode: Callable[[list[int]], str]
    prompt: Callable[[str], list[int]]
    size: int
    marker: tuple[int, ...]
    end: int
    padding: int

    def rows(self, problems: Sequence[Problem], length: int) -> tuple[Tensor, Tensor, list[int]]:
        """Return inputs, labels, and the index of each row's problem.

        An answer that is too long loses its end; a problem whose question is too long is left out.

        Returns:
            ``(n, length)`` int64 tokens, ``(n, length)`` int64 labels (the next token or ``IGNORED``), and n indices.
        """
        inputs, labels, kept = [], [], []
        for place, (question, answer) in enumerate(problems):
            prompt = self.prompt(question)
            if len(prompt) > length:
                continue
            tokens = [*prompt, *self.encode(answer), self.end][: length + 1]
            filling = length - len(tokens)
            inputs.append((tokens + [self.padding] * filling)[:length])
            answers = tokens[len(prompt) :]
            labels.append([IGNORED] * (len(prompt) - 1) + answers + [IGNORED] * (filling + 1))
            kept.append(place)
        shape = (len(kept), length)
        return torch.tensor(inputs).view(shape), torch.tensor(labels).view(shape), kept


def own_tokens(name: str, problems: list[Problem], vocabulary: int) -> LanguageTokens:
    """Train a small tokeniser on ``problems``; its separator also ends answers."""
    tokeniser = trained_tokeniser(name, problems, vocabulary)
    separator = tokeniser.ids.separator

    def encode(text: str) -> list[int]:
        return tokeniser.model.encode(text, add_special_tokens=False).ids

    return LanguageTokens(
        encode=encode,
        decode=lambda row: tokeniser.model.decode(row, skip_special_tokens=True),
        prompt=lambda question: [*encode(question), separator],
        size=tokeniser.vocabulary,
        marker=(separator,),
        end=separator,
        padding=tokeniser.ids.padding,
    )


def checkpoint_tokens(checkpoint: str, download: bool, gguf_file: str | None = None) -> LanguageTokens:
    """Return a language model's own tokeniser; questions use its chat template, if it has one.

    Raises:
        DataError: when the checkpoint is not available.
    """
    with needs("text", "a checkpoint"):
        from transformers import AutoTokenizer

    where = {} if gguf_file is None else {"gguf_file": gguf_file}
    tokeniser = from_checkpoint(AutoTokenizer, checkpoint, download, **where)
    end = tokeniser.eos_token_id

    def encode(text: str) -> list[int]:
        return tokeniser.encode(text, add_special_tokens=False)

    def asked(question: str, ready: bool = True) -> list[int]:
        chat = [{"role": "user", "content": question}]
        return tokeniser.apply_chat_template(chat, add_generation_prompt=ready, return_dict=False)

    if tokeniser.chat_template is None:
        marker: tuple[int, ...] = (end if tokeniser.bos_token_id is None else tokeniser.bos_token_id,)
    else:
        marker = tuple(asked("?")[len(asked("?", ready=False)) :])
    return LanguageTokens(
        encode=encode,
        decode=lambda row: tokeniser.decode(row, skip_special_tokens=True),
        prompt=asked if tokeniser.chat_template else lambda question: [*encode(question), *marker],
        size=len(tokeniser),
        marker=marker,
        end=end,
        padding=end if tokeniser.pad_token_id is None else tokeniser.pad_token_id,
    )

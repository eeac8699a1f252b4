"""Generation tasks: a language model reads a question and writes an answer, which is scored by its final number.

FedEcho §5.3 fine-tunes on MathInstruct and scores on GSM8K. A sequence is ``question, marker, answer, end``. The loss
and FedEcho's distillation use only the answer's tokens, each predicted from the true tokens before it (teacher
forcing). For the score, the model writes the answer by itself, always choosing its most likely token.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.base.errors import DataError
from asyncfl_lite.models.transformers import checkpoint_tokens
from asyncfl_lite.tasks.images.unlabelled import sample
from asyncfl_lite.tasks.task import UnlabelledSet
from asyncfl_lite.tasks.text.base import IGNORED, SequenceTask, trained_tokeniser

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
        """Return ``(n, length)`` int64 tokens and labels (the next token or ``IGNORED``), and each row's problem.

        An answer that is too long loses its end; a problem whose question is too long is left out.
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


def tokens_of(checkpoint: str, download: bool) -> LanguageTokens:
    """Return a language model's own tokeniser; questions use its chat template, if it has one."""
    tokeniser, _ = checkpoint_tokens(checkpoint, download)
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


NUMBER = re.compile(r"-?(?:\d[\d,]*\.?\d*|\.\d+)")
LARGEST_OUTPUT = 2**27
"""Largest number of logits in memory at a time while testing: half a GB of float32."""


def final_number(text: str) -> Decimal | None:
    """Return the number after GSM8K's ``####`` if there is one, else the last number; None if there is no number.

    Thousands' commas are dropped, so that 1,000 and 1000.0 are equal.
    """
    numbers = NUMBER.findall(text.rpartition("####")[2]) or NUMBER.findall(text)
    return Decimal(numbers[-1].replace(",", "").rstrip(".")) if numbers else None


@dataclass(frozen=True)
class GenerationTask(SequenceTask):
    """A task in which models write an answer to a question.

    Attributes:
        marker: token ids between question and answer.
        end: token id after an answer.
        references: correct final numbers of the first test samples, for which models write an answer.
        first_answer: position at which an answer's first token is predicted; None if it differs between questions.
    """

    metric: str = "exact match"
    marker: tuple[int, ...] = (1,)
    end: int = 2
    references: tuple[Decimal | None, ...] = ()
    first_answer: int | None = None

    def counted(self, inputs: Tensor) -> Tensor:
        """Return an ``(n, L)`` bool mask of the positions at which a token of the answer, or its end, is predicted."""
        if inputs.is_floating_point():
            return super().counted(inputs)
        asked = self._marked(inputs).cumsum(-1) > 0
        answering = torch.zeros_like(asked)
        answering[:, 1:] = asked[:, :-1]
        return asked & (((inputs == self.end) & answering).cumsum(-1) == 0)

    def _marked(self, inputs: Tensor) -> Tensor:
        here = torch.ones_like(inputs, dtype=torch.bool)
        for back, token in enumerate(reversed(self.marker)):
            here[:, :back] = False
            here[:, back:] &= inputs[:, : inputs.shape[1] - back] == token
        return here

    def class_logits(self, outputs: Tensor) -> Tensor:
        """Return ``(n, V)`` logits: those of the answer's first token or, if its position varies, of the last token."""
        return outputs[:, -1 if self.first_answer is None else self.first_answer]

    def evaluate(self, predict: Callable[[Tensor], Tensor], batch_size: int = 500) -> dict[str, float]:
        """Return ``accuracy`` (the share of correct final numbers), ``loss``, and ``token_accuracy``.

        Loss and token accuracy are computed on the true answers of the whole test set, as a mean over each answer's
        tokens. The answers that the model writes by itself are scored on the first test samples, which have a
        reference. If there are no references, nothing is written, and ``accuracy`` is the token accuracy.
        """
        each = self.test_inputs.shape[1] * self.num_classes
        batch_size = max(1, min(batch_size, LARGEST_OUTPUT // each))
        forced = super().evaluate(predict, batch_size)
        right = []
        for first in range(0, len(self.references), batch_size):
            some = slice(first, min(first + batch_size, len(self.references)))
            written = self.written(predict, self.test_inputs[some])
            right += [
                reference is not None and final_number(text) == reference
                for text, reference in zip(written, self.references[some], strict=True)
            ]
        return {
            "accuracy": float(np.mean(right)) if right else forced["accuracy"],
            "loss": forced["loss"],
            "token_accuracy": forced["accuracy"],
        }

    def written(self, predict: Callable[[Tensor], Tensor], inputs: Tensor) -> list[str]:
        """Generate an answer to each question in ``(n, L)`` inputs, always taking the most likely token.

        An answer stops at the end token or when the sequence is full. All answers are continued together, with one
        forward pass per step, on as many tokens as the longest sequence has.

        Args:
            predict: function from ``(m, l)`` tokens to ``(m, l, V)`` logits.
            inputs: questions, with or without answers; the answers are not used.
        """
        if self.decode is None:
            raise DataError(f"decode: task {self.name!r} must say how tokens become text, got None")
        tokens, rows = inputs.clone(), torch.arange(len(inputs), device=inputs.device)
        last = self._marked(inputs).int().argmax(-1)
        begin, writing = last + 1, rows
        while len(writing := writing[last[writing] + 1 < tokens.shape[1]]):
            seen = tokens[writing, : int(last[writing].max()) + 1]
            chosen = predict(seen)[rows[: len(writing)], last[writing]].argmax(-1)
            last[writing] += 1
            tokens[writing, last[writing]] = chosen
            writing = writing[chosen != self.end]
        return [
            self.decode(row[start : stop + 1][row[start : stop + 1] != self.end])
            for row, start, stop in zip(tokens, begin.tolist(), last.tolist(), strict=True)
        ]


def generation_task(
    name: str,
    tokens: LanguageTokens,
    length: int,
    train: Sequence[Problem],
    test: Sequence[Problem],
    *,
    kinds: np.ndarray,
    natural: Sequence[Problem],
    cross: Callable[[], Sequence[Problem]],
    scored: int,
    source: str,
    **about: Any,
) -> GenerationTask:
    """Make a task from problems, each a question and its answer.

    Its unlabelled sets are sequences with answers, whose tokens are read but never scored: ``cross``, other
    problems; ``natural``, held-out problems of the same kind; ``synthetic``, clients' problems with each question's
    tokens in random order.

    Args:
        length: number L of tokens in a sequence.
        kinds: ``(len(train),)`` int64 kind of each training problem; partitions distribute the kinds unequally.
        scored: number of test problems for which models write an answer; if 0, the metric is the token accuracy.
        source: source of the problems; the number of problems that did not fit in ``length`` is added.
    """
    (inputs, labels, kept), (tests, test_labels, tested) = (tokens.rows(part, length) for part in (train, test))
    if not kept or not tested:
        raise DataError(f"length: no question fits in {length} tokens; must be larger")
    lost = len(train) - len(kept) + len(test) - len(tested)
    starts = (labels != IGNORED).int().argmax(-1).unique()
    return GenerationTask(
        name,
        inputs,
        labels,
        tests,
        test_labels,
        num_classes=tokens.size,
        source=source + (f"; {lost} problems of more than {length} tokens left out" if lost else ""),
        unlabelled={
            "cross": _of(tokens, cross, length),
            "natural": _of(tokens, lambda: natural, length),
            "synthetic": lambda count, rng: shuffled_questions(inputs, labels, count, rng, len(tokens.marker)),
        },
        kinds=kinds[kept],
        vocabulary=tokens.size,
        padding=tokens.padding,
        decode=lambda row: tokens.decode([token for token in row.tolist() if token != tokens.padding]),
        marker=tokens.marker,
        end=tokens.end,
        metric="exact match" if scored else "token accuracy",
        references=tuple(final_number(test[place][1]) for place in tested[:scored]),
        first_answer=int(starts[0]) if len(starts) == 1 else None,
        **about,
    )


def _of(tokens: LanguageTokens, problems: Callable[[], Sequence[Problem]], length: int) -> UnlabelledSet:
    return lambda count, rng: sample(tokens.rows(problems(), length)[0], count, rng)


def shuffled_questions(inputs: Tensor, labels: Tensor, count: int, rng: np.random.Generator, marker: int) -> Tensor:
    """Draw random sequences, with each question's tokens, but not the ``marker`` ones that end it, in random order."""
    places = sample(torch.arange(len(inputs)), count, rng)
    made, lengths = inputs[places], (labels[places] != IGNORED).int().argmax(-1) + 1 - marker
    for row, length in zip(made, lengths.tolist(), strict=True):
        row[:length] = row[torch.from_numpy(rng.permutation(length))]
    return made

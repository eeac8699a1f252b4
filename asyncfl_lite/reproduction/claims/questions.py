"""Questions that none of the four papers answers, X-1 to X-12, with the answers that recorded cells give."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pandas as pd

from asyncfl_lite.reproduction.claims.answers import (
    FIVE,
    LARGE,
    Answer,
    across_regimes,
    by_concurrency,
    compared,
    control,
    gain_without_staleness,
    orders,
    paired_tests,
    reversals,
    server_memory,
    slow_groups,
    with_server_time,
)
from asyncfl_lite.reproduction.claims.base import Measured


@dataclass(frozen=True)
class Question:
    """A question across the papers.

    Attributes:
        id: as in the list of experiments, ``X-1``.
        text: what is asked.
        answer: from recorded results to an answer.
    """

    id: str
    text: str
    answer: Callable[[Measured], Answer]


def answer_questions(measured: Measured, questions: Iterable[Question] | None = None) -> pd.DataFrame:
    """Return a row a question: id, question, state, answer."""
    asked = QUESTIONS if questions is None else questions
    rows = [[question.id, question.text, *question.answer(measured)] for question in asked]
    return pd.DataFrame(rows, columns=["id", "question", "state", "answer"])


QUESTIONS = [
    Question("X-1", "In what order are the four methods and FedBuff, on one workload and regime, equally tuned?",
             orders),
    Question("X-2", "Does the order survive another delay law?", reversals),
    Question("X-3", "What is the server's data worth?", compared(
        (f"{LARGE}/fedadt", control(3, "fedadt-labels-only")),
        (control(3, "fedadt-labels-only"), f"{LARGE}/fedbuff"),
        (f"{LARGE}/fedadt", control(3, "fedadt-teacher-only")),
        (f"{LARGE}/fedrevive", control(3, "fedrevive-noise")),
        (f"{LARGE}/fedecho", control(3, "fedecho-strokes")),
        (f"{LARGE}/fedecho", control(3, "fedecho-noise")),
        (control(3, "fedecho-noise"), f"{LARGE}/fedbuff"),
        besides="fine-tuning on the labels is of clients' models, as in FedADT, not of FedBuff's global one")),
    Question("X-4", "Does distillation help because of staleness?", gain_without_staleness),
    Question("X-5", "Is the part needed that goes by staleness, time or accuracy?", compared(
        (f"{LARGE}/fedecho", control(5, "fedecho-fixed-weight")),
        (f"{LARGE}/fedrevive", control(5, "fedrevive-mean-weight")),
        (f"{LARGE}/fedadt", control(5, "fedadt-ramp-reversed")),
        (f"{LARGE}/kuiper", control(5, "kuiper-equal-accuracy")))),
    Question("X-6", "Do times to target still favour distillation with the server's time on the clock?",
             with_server_time),
    Question("X-7", "Should the global model teach the clients', or they it?", compared(
        (control(3, "fedadt-teacher-only"), control(7, "global-from-clients")),
        besides="the same data and steps, but FedADT mixes and FedRevive adds updates, and weighs its teachers by "
                "label, so more than the direction differs")),
    Question("X-8", "What if slow clients hold classes of their own?", slow_groups(FIVE)),
    Question("X-9", "How do momentum, adaptive servers and Oort fare in foreign regimes?", across_regimes),
    Question("X-10", "How does accuracy change with the share of clients in flight?", by_concurrency),
    Question("X-11", "What must each server store?", server_memory),
    Question("X-12", "How large is the spread over seeds, and what survives a paired test?", paired_tests),
]  # fmt: skip

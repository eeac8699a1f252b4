"""Questions X-1 to X-12, which none of the four papers answers, and their answers from recorded cells.

The cells are the league's field on two workloads under two delay laws (``cells/league_cells.yaml``), and methods with
one thing changed (``cells/questions.yaml``). They are compared seed by seed as in :mod:`.statistics`. An answer's state
is ``answered`` if at least one of its comparisons is decided, even if the verdict is that nothing differs; ``open`` if
none is; and ``not run`` without cells. The answer's text gives the numbers, and says what the package cannot test.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from asyncfl_lite.base.errors import how_many
from asyncfl_lite.runs.config import Config
from asyncfl_reproduction.claims.findings import Finding, against, compare
from asyncfl_reproduction.claims.measured import ACCURACY, UNTRAINED, Measured
from asyncfl_reproduction.league.costs import storage
from asyncfl_reproduction.statistics import ERROR_LEVEL, FEWEST_SEEDS, benjamini_hochberg, contrast, scaled
from asyncfl_reproduction.verdict_words import EQUIVALENT, HOLDS, NOT_RUN, OPEN, REVERSED

ANSWERED = "answered"
SIGNS = {HOLDS: ">", EQUIVALENT: "≈"}
"""Signs between a better method and the next, by verdict."""
STATES = (ANSWERED, OPEN, NOT_RUN)

FIVE = ("fedbuff", "fedecho", "fedrevive", "kuiper", "fedadt")
OTHERS = (
    *("fedasync", "fedfa", "fedasmu", "afl_dw", "dd_fedrevive", "ca2fl", "fadas", "fedac"),
    *("fedavg", "fedavgm", "fedadam", "fedprox", "oort"),
)
WORKLOADS = ("overlaid_mnist", "glyphs")
LAWS = ("large", "uniform")
LARGE = "league/overlaid_mnist/large"
"""The setting of all controls."""
CLIENTS, CLASSES = 50, 10
"""Numbers of clients and classes in the league."""
IN_FLIGHT = 25
"""Number of clients in flight in the league; KUIPER keeps all clients in flight."""
TARGET_SHARE = 0.85
"""FedRevive's target, as a share of FedBuff's accuracy."""


class Answer(NamedTuple):
    """The answer to a question: one of :data:`STATES`, and a text with the numbers or the reason."""

    state: str
    text: str


def cell_of(workload: str, law: str, method: str) -> str:
    """Return the name of a method's cell in a setting of the league."""
    return f"league/{workload}/{law}/{method}"


def _places() -> Iterator[tuple[str, str]]:
    return itertools.product(WORKLOADS, LAWS)


def _answer(findings: Sequence[Finding], besides: str = "") -> Answer:
    ran = [finding for finding in findings if finding.verdict != NOT_RUN]
    if not ran:
        return Answer(NOT_RUN, "no cells of it were run" + (f"; {besides}" if besides else ""))
    text = "; ".join(f"{finding.detail} ({_verdict_in_words(finding.verdict)})" for finding in ran)
    return Answer(_state([finding.verdict for finding in ran]), f"{text}; {besides}" if besides else text)


def _state(verdicts: Sequence[str]) -> str:
    return ANSWERED if {HOLDS, REVERSED, EQUIVALENT}.intersection(verdicts) else OPEN


def _verdict_in_words(verdict: str) -> str:
    words = {HOLDS: "the first is better", REVERSED: "the second is better"}
    return words.get(verdict, verdict)


def orders(m: Measured) -> Answer:
    """Rank the five methods in every setting; "≈" joins equivalent methods, and "?" those whose order is open."""
    texts, verdicts = [], []
    for workload, law in _places():
        there = [method for method in FIVE if m.by_seed(cell_of(workload, law, method)) is not None]
        if len(there) < 2:
            continue
        mean = {method: m.by_seed(cell_of(workload, law, method)).mean() for method in there}
        ranked = sorted(there, key=mean.get, reverse=True)
        number = {method: f"{100 * mean[method]:.1f}{m.mark(cell_of(workload, law, method))}" for method in there}
        text = f"{ranked[0]} {number[ranked[0]]}"
        for one, two in itertools.pairwise(ranked):
            verdicts.append(m.above(cell_of(workload, law, one), cell_of(workload, law, two)).verdict)
            text += f" {SIGNS.get(verdicts[-1], '?')} {two} {number[two]}"
        texts.append(f"{workload}, {law}: {text}")
    if not texts:
        return Answer(NOT_RUN, "no two of the five methods have cells on one workload under one law")
    return Answer(_state(verdicts), "; ".join(texts))


def reversals(m: Measured) -> Answer:
    """Count the pairs of methods whose order clearly flips from one delay law to another."""
    kept, turned, unclear = 0, [], 0
    for workload in WORKLOADS:
        for one, two in itertools.combinations(FIVE, 2):
            verdicts = {law: m.above(cell_of(workload, law, one), cell_of(workload, law, two)).verdict for law in LAWS}
            ran = {law: verdict for law, verdict in verdicts.items() if verdict != NOT_RUN}
            if len(ran) < 2:
                continue
            first, second = ([r for r, v in ran.items() if v == wanted] for wanted in (HOLDS, REVERSED))
            if first and second:
                turned.append(f"{workload}: {one} above {two} in {', '.join(first)}, below in {', '.join(second)}")
            elif not {HOLDS, REVERSED}.issuperset(ran.values()):
                unclear += 1
            else:
                kept += 1
    if not kept + len(turned) + unclear:
        return Answer(NOT_RUN, "no workload has two methods under two laws")
    text = f"{kept} pairs of methods keep their order in all laws run, {len(turned)} reverse it, {unclear} are unclear"
    return Answer(ANSWERED if kept or turned else OPEN, "; ".join([text, *turned]))


def compared(*pairs: tuple[str, str], besides: str = "") -> Callable[[Measured], Answer]:
    """Return a function that answers a question by comparing the accuracies of two cells in each pair."""
    return lambda m: _answer([m.above(one, two) for one, two in pairs], besides)


def control(question: int, cell: str) -> str:
    """Return the name of a cell that was run as a control for a question."""
    return f"questions/x{question}/{cell}"


def gain_without_staleness(m: Measured) -> Answer:
    """Compare the gain from distillation under large delay with the gain when every update is fresh."""
    gains = {
        "fedecho above fedbuff": (
            (f"{LARGE}/fedecho", f"{LARGE}/fedbuff"),
            (control(4, "none/fedecho"), control(4, "none/fedbuff")),
        ),
        "fedrevive above afl_dw, β = 1/2": tuple(
            (control(4, f"{kind}/fedrevive-half"), control(4, f"{kind}/afl_dw-half")) for kind in ("large", "none")
        ),
    }  # fmt: skip
    findings = []
    for name, places in gains.items():
        large, none = (m.gap(*pair) for pair in places)
        if large is None or none is None:
            continue
        cells = [cell for pair in places for cell in pair]
        finding = compare(large, none, against(f"x4/{name}, large delay", f"x4/{name}, no staleness"))
        trained = not any(map(m.is_constant, cells))
        findings.append(finding if trained else Finding(OPEN, f"{finding.detail}{m.mark(*cells)}, {UNTRAINED}"))
    return _answer(findings, "FedADT as printed distils nothing and FedRevive replaces nothing of a fresh update")


def with_server_time(m: Measured) -> Answer:
    """Compare FedEcho's and FedRevive's times to target with FedBuff's, with the server's time free and charged."""
    reference = m.by_seed(f"{LARGE}/fedbuff")
    if reference is None:
        return Answer(NOT_RUN, "needs FedBuff's cell, whose accuracy sets the target")
    names = [(method, cell) for method in ("fedecho", "fedrevive") for cell in
             (f"{LARGE}/{method}", control(6, f"{method}-charged"))]  # fmt: skip
    findings = [m.sooner(cell, f"{LARGE}/fedbuff", TARGET_SHARE * reference) for _, cell in names]
    return _answer(findings, "FedADT's server time is printed nowhere, KUIPER's is none")


def among_the_old(m: Measured) -> Answer:
    """Compare momentum, adaptive servers and Oort with the methods that they extend, in settings that no paper ran."""
    findings = []
    for workload, law in _places():
        pairs = [
            ("fadas", "fedbuff"),
            ("fedac", "fedbuff"),
            ("fedavgm", "fedavg"),
            ("fedadam", "fedavg"),
            ("oort", "fedavg"),
        ]
        findings += [m.above(cell_of(workload, law, one), cell_of(workload, law, two)) for one, two in pairs]
    return _answer(findings)


def by_concurrency(m: Measured) -> Answer:
    """Compare each method's accuracy at each concurrency with its accuracy at the next larger one."""

    def cell(method: str, clients: int) -> str:
        return f"{LARGE}/{method}" if clients == IN_FLIGHT else control(10, f"in-flight-{clients}/{method}")

    findings = []
    for method in ("fedbuff", "fedecho", "fedrevive", "fedadt"):
        there = [clients for clients in (3, 10, IN_FLIGHT, 50) if m.by_seed(cell(method, clients)) is not None]
        findings += [m.above(cell(method, one), cell(method, two)) for one, two in itertools.pairwise(there)]
    return _answer(findings, "KUIPER always has all clients in flight")


def server_storage(m: Measured) -> pd.DataFrame:
    """Return each method's accuracy and its server's peak storage.

    Returns:
        One row per method that was run on overlaid MNIST at large delay: accuracy (mean over seeds), models (largest
        number held at one time), in_flight (how many of them are versions that clients hold), kilobytes (size of all
        these models), logits_kilobytes (size of the stored logits, for each unlabelled sample). Generators, pools and
        labelled sets are not counted.
    """
    rows = {}
    for method in (*FIVE, *OTHERS):
        values = m.by_seed(f"{LARGE}/{method}")
        if values is None:
            continue
        server = Config(algorithm="fedavg" if method == "oort" else method).make_algorithm()
        rows[method] = [values.mean(), *storage(m, f"{LARGE}/{method}", server, clients=CLIENTS, classes=CLASSES)]
    columns = ["accuracy", "models", "in_flight", "kilobytes", "logits_kilobytes"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).astype({"models": int, "in_flight": int})


def server_memory(m: Measured) -> Answer:
    """Describe each method's accuracy and its server's peak storage in words."""
    texts = []
    for row in server_storage(m).itertuples():
        more = f", {row.in_flight} of them versions in flight" * bool(row.in_flight)
        more += f", and {row.logits_kilobytes:.0f} kB of logits for each unlabelled sample" * bool(row.logits_kilobytes)
        accuracy = f"{100 * row.accuracy:.1f}%{m.mark(f'{LARGE}/{row.Index}')}"
        texts.append(f"{row.Index} {accuracy}, {how_many(row.models, 'model')}, {row.kilobytes:.0f} kB{more}")
    if not texts:
        return Answer(NOT_RUN, "no cell of overlaid MNIST at large delay was run")
    return Answer(ANSWERED, "; ".join(texts) + "; generators, pools and labelled sets are not counted")


def paired_tests(m: Measured) -> Answer:
    """Test every method against FedBuff by two-sided tests paired by seed, with Benjamini-Hochberg correction."""
    tests = []
    for workload, law in _places():
        base = cell_of(workload, law, "fedbuff")
        for method in (*FIVE[1:], *OTHERS):
            cell = cell_of(workload, law, method)
            gap = m.gap(cell, base)
            if gap is None or len(gap) < FEWEST_SEEDS:
                continue
            found = contrast(gap.to_numpy(), method)
            spread = f"{100 * found.mean:+.1f} ± {100 * gap.std():.1f}{m.mark(cell, base)}, p = {found.p:.3f}"
            tests.append((scaled(found.p, found.seeds), f"{workload}, {law}: {method} {spread}"))
    if not tests:
        return Answer(NOT_RUN, "no method has three seeds beside FedBuff's")
    p = np.array([one for one, _ in tests])
    clear, stand = int((p <= ERROR_LEVEL).sum()), int((benjamini_hochberg(p) <= ERROR_LEVEL).sum())
    text = (
        f"{clear} of {len(p)} differences from FedBuff are clear at 5%, where about {ERROR_LEVEL * len(p):.1f} would "
        f"be by chance; {stand} stand when corrected for their number"
    )
    return Answer(ANSWERED if stand else OPEN, "; ".join([text, *(said for _, said in tests)]))


def slow_groups(methods: Sequence[str]) -> Callable[[Measured], Answer]:
    """Return a function that compares runs with slow clients in every group to runs with slow clients in one group."""

    def answer(m: Measured) -> Answer:
        pairs = [(control(8, f"every-group/{method}"), control(8, f"one-group/{method}")) for method in methods]
        return _answer([m.above(*pair, number=number) for number in
                        (ACCURACY, "least_seen_accuracy") for pair in pairs],
                       "least seen is the fifth of the classes that clients trained on least")  # fmt: skip

    return answer


@dataclass(frozen=True)
class Question:
    """A question that compares methods of different papers, and the function from results to its answer."""

    id: str
    text: str
    answer: Callable[[Measured], Answer]


def answer_questions(measured: Measured) -> pd.DataFrame:
    """Answer the questions, and return one row per question: id, question, state, answer."""
    rows = [[question.id, question.text, *question.answer(measured)] for question in QUESTIONS]
    return pd.DataFrame(rows, columns=["id", "question", "state", "answer"])


QUESTIONS = [
    Question("X-1", "In what order are the four methods and FedBuff, on one workload and delay law, all tuned?",
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
        besides="as many samples, but FedADT mixes models and DD-FedRevive adds updates, with steps and teachers of "
                "its own, so more than the direction differs")),
    Question("X-8", "What if slow clients hold classes of their own?", slow_groups(FIVE)),
    Question("X-9", "How do momentum, adaptive servers and Oort fare where no paper had them?", among_the_old),
    Question("X-10", "How does accuracy change with the clients in flight?", by_concurrency),
    Question("X-11", "What must each server store?", server_memory),
    Question("X-12", "How large is the spread over seeds, and what survives a paired test?", paired_tests),
]  # fmt: skip

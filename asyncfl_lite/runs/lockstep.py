"""Several runs in lockstep: each pauses when it needs a computation, and computations of one kind are done together.

A small model leaves a processor idle between its many small operations. Twelve runs' jobs in one computation take
little longer than one run's, and so do twelve servers' distillations. Every run has its own clock, server and random
streams. On a CPU, its numbers are those of the run alone, too: runs share only computations whose bits do not depend on
what else is computed (:func:`asyncfl_lite.models.stacked.keeps_bits`). On a GPU, they may differ as they do between two
machines (:func:`asyncfl_lite.runs.run.run`).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from greenlet import getcurrent, greenlet

from asyncfl_lite.base.devices import torch_threads, usual_torch
from asyncfl_lite.base.errors import ConfigError, ResultError, shown
from asyncfl_lite.base.files import as_path
from asyncfl_lite.base.streams import told_of_draws
from asyncfl_lite.clients.trainer import train_together
from asyncfl_lite.models.compute import Request, fulfilled, fulfilled_now
from asyncfl_lite.runs.callbacks import OnEvaluate, OnVersion, StopRun
from asyncfl_lite.runs.config import Config, as_config
from asyncfl_lite.runs.interrupts import Stops, saved_when_interrupted
from asyncfl_lite.runs.progress import Progress, Shown
from asyncfl_lite.runs.results import Result, load_complete, mixed_versions
from asyncfl_lite.runs.run import Run, run_at
from asyncfl_lite.simulator.jobs import Job, Outcome
from asyncfl_lite.tasks import Task

if TYPE_CHECKING:
    from asyncfl_lite.models.own_models import OwnModel


class _Course:
    """One run in its own greenlet, which pauses whenever the run needs a computation.

    So a method is written as if it ran alone: it asks for a computation in the middle of a line, and continues there.
    ``jobs`` or ``request`` is what the run waits for, ``result`` its result, which ``kept`` is given first, and
    ``error`` what ended it early.
    """

    def __init__(self, run: Run, kept: Callable[[Run, Result], None] | None) -> None:
        self.run, self.kept = run, kept
        self.began, self.since = time.perf_counter(), time.process_time()
        self.result: Result | None = None
        self.error: BaseException | None = None
        self.jobs: Sequence[Job] | None = None
        self.request: Request | None = None
        self.server_seconds = 0.0
        run.compute = self._computed
        self._greenlet = greenlet(self._go)
        self._greenlet.gr_context = copy_context()  # otherwise it would begin with an empty context

    def advance(self, answer: Any = None) -> None:
        """Start or continue the run until it pauses again or ends."""
        self.since = time.process_time()
        self.jobs = self.request = None
        self._greenlet.switch(answer)
        self.server_seconds += time.process_time() - self.since

    def _go(self, _: None) -> None:
        run = self.run
        try:
            try:
                run.begin()
                run.simulation.run(self._trained)
            except StopRun as stop:
                run.stop(stop)
            processor = run.training_seconds + self.server_seconds + time.process_time() - self.since
            result = run.result(time.perf_counter() - self.began, processor)
            if self.kept is not None:
                self.kept(run, result)
            self.result = result
        except (Exception, SystemExit) as error:  # the other runs are saved before the error is raised
            self.error = error

    def _trained(self, jobs: Sequence[Job]) -> Sequence[Outcome]:
        self.jobs = jobs
        return self._wait()

    def _computed(self, request: Request) -> Any:
        if getcurrent() is not self._greenlet:  # the call comes from outside the run
            return fulfilled_now(request)
        self.request = request
        return self._wait()

    def _wait(self) -> Any:
        with torch.enable_grad():  # the mode belongs to the thread, in which other runs continue
            return self._greenlet.parent.switch()


def run_many(
    configs: Sequence[Config | Mapping[str, Any]],
    *,
    task: Task | None = None,
    model: OwnModel | None = None,
    folders: Sequence[str | Path] | None = None,
    force: bool = False,
    progress: Shown = False,
    on_version: OnVersion | None = None,
    on_evaluate: OnEvaluate | None = None,
) -> list[Result]:
    """Run several configurations, in lockstep if they train in cohorts, else one after another.

    Large models gain nothing from training together, and several of them may not fit into memory at once.

    Args:
        configs: the configurations, such as one with several seeds, or several methods on one task with one model.
        task: your own data for all of them, instead of the tasks that the configurations name.
        model: your own module for all of them, or a function that returns one, as for :func:`.run`.
        folders: one folder for each configuration, for its checkpoints and its result. A finished result there is
            read, and an interrupted run continues.
        force: replace other runs' results and checkpoints that are in the folders.
        progress: True shows a bar that counts all runs' versions; ``"lines"`` prints lines of accuracies to stderr.
        on_version, on_evaluate: as for :func:`.run`, called with the run that made the version; :class:`.StopRun` ends
            that run alone. If a callback raises any other exception, all runs that have folders are saved in them
            first.

    Returns:
        The results, in the order of ``configs``. A result's timing counts the run's own work, its share (by minibatch
        steps) of the training that it took part in, and equal shares of computations for several servers.

    Raises:
        ConfigError: when ``folders`` does not name a different folder for each configuration, or when the
            configurations differ in ``threads``.
        ResultError: for the same reasons as :func:`.run_in`.

    Example: three seeds of one run; each run has the same schedule as when it runs alone.

    >>> from asyncfl_lite import Config, run, run_many
    >>> config = Config(task="digits", algorithm="fedbuff", buffer_size=5, rounds=5)
    >>> results = run_many([config.with_seed(seed) for seed in range(3)])
    >>> [(result.config.seed, result.summary["client_updates"]) for result in results]
    [(0, 25), (1, 25), (2, 25)]
    >>> results[0].updates["client"].equals(run(config).updates["client"])
    True
    """
    if isinstance(configs, Config | Mapping | str) or not isinstance(configs, Iterable):
        raise ConfigError(f"configs: must be a list of configurations, got {shown(configs)}; run(config) takes one")
    made = [as_config(config) for config in configs]
    if model is not None and made:
        own = as_config(made[0], model).model_settings  # one copy for all
        made = [config.model_copy(update={"model": "given", "model_settings": own}) for config in made]
    if len({config.hash for config in made}) < len(made):
        warnings.warn("configs: the same configuration is there twice, and its run counts twice", stacklevel=2)
    callbacks: dict[str, Any] = {"on_version": on_version, "on_evaluate": on_evaluate}
    if folders is None:
        return finish_in_turn([partial(Run, config, task, **callbacks) for config in made], progress=progress)
    different = {as_path(folder, "folders").resolve() for folder in folders}
    if not len(different) == len(folders) == len(configs):
        raise ConfigError(f"folders: must be {len(configs)} different ones, one for each configuration")
    pairs = list(zip(folders, made, strict=True))
    found = [load_complete(folder, config, task) for folder, config in pairs]
    begin = [
        partial(run_at, *pair, task, force=force, **callbacks)
        for pair, result in zip(pairs, found, strict=True)
        if result is None
    ]
    new = iter(finish_in_turn(begin, lambda run, result: run.keep(result, force=force), progress=progress))
    results = [next(new) if result is None else result for result in found]
    if told := mixed_versions(results):
        warnings.warn(f"folders: the results were computed under different versions ({told})", stacklevel=2)
    return results


@usual_torch()
def finish_together(
    runs: Sequence[Run], ended: Callable[[Run, Result], None] | None = None, *, progress: Shown = False
) -> list[Result]:
    """Run all ``runs``, which have not been started yet, to their ends in lockstep; return their results, in order.

    ``ended`` is called with each run and its result as soon as the run ends.

    Raises:
        ConfigError: when the runs differ in ``threads``, since another number of threads gives other bits.
    """
    threads = {run.config.threads for run in runs} or {1}
    if len(threads) > 1:
        each = ", ".join(map(str, sorted(threads)))
        raise ConfigError(f"threads: must be the same for runs that train together, got {each}")
    with (
        ExitStack() as stack,
        saved_when_interrupted(runs) as stops,
        torch_threads(*threads),
        Progress(progress, runs),
        told_of_draws() if all(run.may_draw for run in runs) else nullcontext(),
    ):
        for run in runs:
            stack.enter_context(run)
        courses = [_Course(run, ended) for run in runs]
        for course in courses:
            course.advance()
        while True:
            if any(course.error is not None for course in courses):
                _fail(courses)
            results = [course.result for course in courses if course.result is not None]
            if len(results) == len(courses):
                return results
            waiting = _most_wanted([course for course in courses if course.result is None])
            if waiting[0].request is not None:
                _compute(waiting)
                continue
            try:
                _train(waiting, stops)
            except KeyboardInterrupt:
                _settle(courses)
                raise


def _fail(courses: Sequence[_Course]) -> NoReturn:
    """Save the other runs when one has failed, then raise its error with a note that says where they are saved."""
    _settle(courses)
    failed, why = next((course, course.error) for course in courses if course.error is not None)
    if len(courses) > 1:
        seeds = sorted({course.run.config.seed for course in courses})
        why.add_note(f"of {len(courses)} runs, number {courses.index(failed)} from 0 failed"
                              f"{f', seed {failed.run.config.seed}' * (len(seeds) > 1)}")  # fmt: skip
    others = [course.run for course in courses if course.error is None and course.run.checkpoint is not None]
    try:
        for run in others:
            run.save()
        if others:
            count = "1 other run is" if len(others) == 1 else f"{len(others)} other runs are"
            why.add_note(f"{count} saved, such as in {others[0].checkpoint}")
    except ResultError as error:
        why.add_note(f"others could not be saved ({error})")
    raise why


def finish_in_turn(
    begin: Sequence[Callable[[], Run]],
    ended: Callable[[Run, Result], None] | None = None,
    *,
    progress: Shown = False,
) -> list[Result]:
    """Make runs with the functions in ``begin``, and finish them as :func:`run_many` does."""
    results: list[Result] = []
    while len(results) < len(begin):
        with ExitStack() as stack:
            runs = [stack.enter_context(begin[len(results)]())]
            if runs[0].trainer.cohort:
                runs += [stack.enter_context(make()) for make in begin[len(results) + 1 :]]
            results += finish_together(runs, ended, progress=progress)
    return results


def _most_wanted(courses: Sequence[_Course]) -> list[_Course]:
    kinds: dict[type, list[_Course]] = {}
    for course in courses:
        kinds.setdefault(type(course.request), []).append(course)  # type(None) for runs that wait for clients
    return max(kinds.values(), key=len)


def _settle(courses: Sequence[_Course]) -> None:
    """Let servers finish their current work, because a run can be saved only while it waits for clients."""
    while asking := [course for course in courses if course.request is not None]:
        _compute(asking)


def _compute(asking: Sequence[_Course]) -> None:
    began = time.process_time()
    results = fulfilled([course.request for course in asking if course.request is not None])
    spent = time.process_time() - began
    for course, result in zip(asking, results, strict=True):
        course.server_seconds += spent / len(asking)
        course.advance(result)


def _train(waiting: Sequence[_Course], stops: Stops) -> None:
    began = time.process_time()
    with stops.allowed():
        outcomes = iter(train_together([(course.run.trainer, job) for course in waiting for job in course.jobs or ()]))
    spent = time.process_time() - began
    answers = [[next(outcomes) for _ in course.jobs or ()] for course in waiting]
    steps = [sum(outcome.num_steps for outcome in answer) for answer in answers]
    for course, answer, share in zip(waiting, answers, steps, strict=True):
        course.run.training_seconds += spent * share / sum(steps)
        course.advance(answer)

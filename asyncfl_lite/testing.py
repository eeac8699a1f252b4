"""Checks that a new method obeys the rules for all methods, and that a new model works.

They are modelled on scikit-learn's ``check_estimator``. A method's author calls :func:`check_algorithm` in a test::

    from asyncfl_lite.testing import check_algorithm

    def test_it_keeps_the_rules():
        check_algorithm(Mine)  # with its defaults and a buffer of three
        check_algorithm(Mine(buffer_size=5, my_option="other"))  # with these settings

Each rule is one function ``check_<name>``, and :data:`CHECKS` lists them. Its argument is a :class:`Candidate`:
``make.run()`` returns a small run on made-up data whose method has been started, and ``reports(make, 5)`` the updates
of five clients. The sentence passed to ``expect`` says what was expected, why it matters, and what was found.
:func:`check_model` says what a model can do on a task.
"""

from __future__ import annotations

import dataclasses
import tempfile
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from asyncfl_lite.algorithms.base import ALGORITHMS, Algorithm
from asyncfl_lite.base.devices import torch_threads, usual_torch
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.base.streams import GlobalStates, stream, untouched_generators
from asyncfl_lite.models.base import ModelSpec, initial_model
from asyncfl_lite.models.features import check_takes_embeddings, table_of
from asyncfl_lite.models.own_models import GivenModel, OwnModel
from asyncfl_lite.models.probe import check_conduct, takes_one, why_alone
from asyncfl_lite.models.vectors import VectorModel, all_finite
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.run import Run
from asyncfl_lite.runs.store import load_checkpoint, save_checkpoint
from asyncfl_lite.simulator.jobs import Job, Outcome, Receipt, Update, in_dtype, who_did_what
from asyncfl_lite.simulator.server import ServerError, check_answer
from asyncfl_lite.simulator.simulation import Train
from asyncfl_lite.tasks import Task
from asyncfl_lite.tasks.task import UnlabelledSet

__all__ = ["CHECKS", "AlgorithmCheckError", "check_algorithm", "check_model"]


class AlgorithmCheckError(AssertionError):
    """Raised for a method that breaks rules; ``failures`` are sentences by the name of the check."""

    def __init__(self, failures: dict[str, str]) -> None:
        super().__init__("\n".join(f"{name}: {sentence}" for name, sentence in failures.items()))
        self.failures = failures


def check_algorithm(algorithm: type[Algorithm] | Algorithm) -> list[str]:
    """Check that a method keeps the rules that every method must keep.

    Every check runs, even if earlier ones fail. The global random generators of torch, NumPy and Python are left as
    they were.

    Args:
        algorithm: a class, which is checked with its defaults (except for a buffer of three, if it has one, and
            fewer samples to distil on); or an instance, which is checked with its settings but not changed.

    Returns:
        The names of the checks, all of which passed.

    Raises:
        AlgorithmCheckError: with a line for every check that failed; a :class:`.ServerError` that ends several checks
            is reported only for the first. Any other exception in the method is a failure of the check in which it
            arose, and is reported with the line of the method's code.
        ConfigError: for anything that is not a method.

    Example: FedBuff keeps all rules. Changing the global model in place breaks one, because clients still train
    on the version that would change under them.

    >>> from asyncfl_lite.algorithms import FedBuff
    >>> from asyncfl_lite.testing import AlgorithmCheckError, check_algorithm
    >>> "in_place" in check_algorithm(FedBuff(buffer_size=4, server_lr=0.5))
    True
    >>> class InPlace(FedBuff):
    ...     "FedBuff that changes the global model in place."
    ...     def new_version(self, x):
    ...         return super().new_version(self.x.copy_(x))
    >>> try:
    ...     check_algorithm(InPlace)
    ... except AlgorithmCheckError as error:
    ...     print("in_place" in error.failures)
    True
    """
    failures: dict[str, str] = {}
    with registered(algorithm) as make, torch_threads(1):
        for name, check in CHECKS.items():
            if failure := _failure(check, make, failures.values()):
                failures[name] = failure
    if failures:
        raise AlgorithmCheckError(failures)
    return list(CHECKS)


class RuleBroken(AssertionError):
    """Raised for a broken rule; the message says what was expected, why it matters, and what was found."""


def expect(kept: bool, sentence: str) -> None:
    """Raise :class:`RuleBroken` with ``sentence`` unless the rule is kept."""
    if not kept:
        raise RuleBroken(sentence)


def expect_same(one: dict[str, Any], other: dict[str, Any], sentence: str) -> None:
    """Raise :class:`RuleBroken` with ``sentence`` and the first difference, unless two values' leaves are equal."""
    if found := difference(one, other):
        raise RuleBroken(f"{sentence}, {found}")


def _failure(check: Check, make: Candidate, said: Collection[str]) -> str | None:
    """Return one line that describes a check's failure; None if it passed, or if ``said`` has this error already."""
    try:
        with untouched_generators():
            check(make)
    except ServerError as error:
        return None if str(error) in said else str(error)
    except RuleBroken as broken:
        return str(broken)
    except Exception as error:
        message = " ".join(str(error).split())
        return f"the method must get through this without an exception; {_where(error, make)} {message}"
    return None


def _where(error: Exception, make: Candidate) -> str:
    kind = type(error).__name__
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in make.source_files]
    if not own:
        return f"{kind}:"
    code = f" ({own[-1].line})" if own[-1].line else ""
    return f"{kind} in line {own[-1].lineno} of {own[-1].filename}, in {own[-1].name}{code}:"


INPUT_SHAPE = (1, 8, 8)
NUM_CLASSES = 4
SMALL_RUN: dict[str, Any] = {
    **{"partition": "iid", "delay": "exponential", "model": "mlp", "model_settings": {"hidden": (16,)}},
    **{"vectorize": "on", "local_steps": 2, "batch_size": 8, "client_lr": 0.1, "eval_every": 1000, "seed": 1},
}
"""Settings of the run in which methods are checked; its buffer, concurrency and length depend on the method."""


@dataclass(frozen=True)
class Candidate:
    """The method under test: its class, its name meanwhile, and settings of :class:`Config`."""

    cls: type[Algorithm]
    name: str
    config: dict[str, Any]

    def run(self, **changes: Any) -> Run:
        """Make a small run with some settings changed: three versions, or six if each update makes one."""
        given = {**SMALL_RUN, "algorithm": self.name, **self.config, **changes}
        buffer_size = given["buffer_size"]
        concurrency = buffer_size if self.cls.scheduling == "rounds" else max(4, buffer_size)
        sizes = {"concurrency": concurrency, "clients": concurrency + 2, "rounds": 3 if buffer_size > 1 else 6}
        config = Config(**{**sizes, **given})
        return Run(config, small_task(max(240, 4 * config.clients)))

    @property
    def buffer_size(self) -> int:
        """Buffer size of at least two, or 1 for a method without a buffer."""
        return max(2, self.config["buffer_size"]) if self.cls.buffered else 1

    @property
    def source_files(self) -> set[str]:
        """Paths of the files with the method's own code, without the base class's."""
        classes = [part for part in self.cls.__mro__ if issubclass(part, Algorithm) and part is not Algorithm]
        members = [getattr(member, "fget", member) for part in classes for member in vars(part).values()]
        return {member.__code__.co_filename for member in members if hasattr(member, "__code__")}


Check = Callable[[Candidate], None]


@contextmanager
def registered(algorithm: type[Algorithm] | Algorithm) -> Iterator[Candidate]:
    """Register a method under a name inside the block, so that configurations find it."""
    cls = algorithm if isinstance(algorithm, type) else type(algorithm)
    if not issubclass(cls, Algorithm):
        raise ConfigError(f"algorithm: must be a subclass of Algorithm or an instance of one, got {algorithm!r}")
    if isinstance(algorithm, Algorithm):
        config = {name: getattr(algorithm, name) for name in ("buffer_size", "server_lr", "bn_mode")}
        config["settings"] = algorithm.settings.model_dump()
    else:
        lighter = {"distill_samples": 100} if "distill_samples" in cls.Settings.model_fields else {}  # takes less long
        config = {"buffer_size": 3 if cls.buffered else 1, "server_lr": 1.0, "bn_mode": "avg", "settings": lighter}
    name = f"{cls.__name__} (under check)"
    ALGORITHMS.register(name)(cls)
    try:
        yield Candidate(cls, name, config)
    finally:
        ALGORITHMS.remove(name)


class _EverySet(dict[str, UnlabelledSet]):
    """A mapping that has an unlabelled set under every name."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> UnlabelledSet:
        return lambda count, rng: torch.from_numpy(rng.random((count, *INPUT_SHAPE)))


@lru_cache(maxsize=2)
def small_task(num_samples: int) -> Task:
    """Make a task of images: one image per class plus noise, values in [0, 1], and an unlabelled set under any name."""
    rng = np.random.default_rng(0)
    classes = np.arange(num_samples) % NUM_CLASSES
    images = (rng.random((NUM_CLASSES, *INPUT_SHAPE))[classes] + rng.random((num_samples, *INPUT_SHAPE))) / 2
    inputs, labels = torch.from_numpy(images).float(), torch.from_numpy(classes)
    task = Task.from_tensors(inputs, labels, inputs[:40], labels[:40], name="small")
    return dataclasses.replace(task, unlabelled=_EverySet())


Receive = Callable[[Update], Receipt]
Watch = Callable[[Update, Receive], Receipt]


def simulate(run: Run, watch: Watch | None = None, train: Train | None = None) -> Run:
    """Carry a run to its end, and return it; every update passes through ``watch``, which calls ``receive``."""
    method, receive = run.algorithm, run.algorithm.receive
    if watch is not None:
        vars(method)["receive"] = lambda update: watch(update, receive)
    try:
        run.simulation.run(train or run.train)
    finally:
        vars(method).pop("receive", None)
    return run


def reports(make: Candidate, count: int) -> list[Update]:
    """Return the first updates of ``count`` different clients, trained from version 0 and not yet received."""
    many = max(count, make.config["buffer_size"])
    updates: list[Update] = []

    def keep(update: Update, receive: Receive) -> Receipt:
        updates.append(update)
        return Receipt(False)

    simulate(make.run(delay="constant", clients=many, concurrency=many, rounds=None, horizon=1.5), keep)
    return updates[:count]


def restart(run: Run, updates: Sequence[Update]) -> Algorithm:
    """Start the method of ``run`` anew in the dtype of the updates, and pass it all updates, one after another."""
    dtype, method = updates[0].delta.dtype, run.algorithm
    given = method.context
    context = dataclasses.replace(
        given,
        rng=stream(run.config.seed, "server"),
        unlabelled=lambda name, count: given.unlabelled(name, count).to(dtype),
        labelled=given.labelled and (given.labelled[0].to(dtype), given.labelled[1]),
    )
    method.start(run.model.flatten()[0].to(dtype), context, keep_versions=False)
    for update in updates:
        method.receive(update)
    return method


def leaves(value: Any, where: str) -> dict[str, Any]:
    """Return the parts of a value that have no parts themselves, by their paths; tensors are copies."""
    if isinstance(value, Update):
        parts = [(f"{where}.{part.name}", getattr(value, part.name)) for part in dataclasses.fields(value)]
    elif isinstance(value, dict):
        parts = [(f"{where}[{key!r}]", value[key]) for key in sorted(value, key=repr)]
    elif isinstance(value, list | tuple):
        parts = [(f"{where}[{index}]", part) for index, part in enumerate(value)]
    else:
        return {where: value.detach().clone() if isinstance(value, Tensor) else value}
    return {where: None} | {path: leaf for part in parts for path, leaf in leaves(part[1], part[0]).items()}


def difference(one: dict[str, Any], other: dict[str, Any]) -> str | None:
    """Describe the first difference between the :func:`leaves` of two values; None if all are equal to the last bit.

    NaN equals NaN, and a list equals a tuple with equal parts.
    """
    if extra := [path for path in (*one, *other) if path not in one or path not in other]:
        return f"{extra[0]} is there only once"
    odd = (path for path in one if not _equal(one[path], other[path]))
    return next((f"{path} is {_shown(one[path])} and {_shown(other[path])}" for path in odd), None)


def _equal(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, Tensor) and (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    same = (one == other) | ((one != one) & (other != other))
    return bool(same.all() if hasattr(same, "all") else same)


def _shown(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}, sum {float(value.detach().double().sum()):.9g},"
    return f"{value!r:.60}"


def check_versions(make: Candidate) -> None:
    """Check that ``on_receive`` returns True exactly for new versions, and ``x`` stays finite and keeps its shape."""
    run = make.run()
    answers: list[object] = []

    def watch(update: Update, receive: Receive) -> Receipt:
        before = run.algorithm.version
        receipt = receive(update)
        answer = receipt.made_version
        check_answer(run.algorithm, answer, before)
        answers.append(answer)
        return receipt

    _simulate_soundly(run, watch)
    for odd in (answer for answer in answers if not isinstance(answer, bool)):
        raise RuleBroken(f"{make.cls.__name__}.on_receive must return True or False; it returned {odd!r}")


def _simulate_soundly(run: Run, watch: Watch | None = None, train: Train | None = None) -> float:
    """Simulate, and check that clients can start from each model; return by how much the model moved at most."""
    method, first = run.algorithm, run.algorithm.x

    def look(update: Update, receive: Receive) -> Receipt:
        receipt = watch(update, receive) if watch else receive(update)
        for what in ("shape", "dtype", "device", "requires_grad"):
            is_now, was = getattr(method.x, what), getattr(first, what)
            expect(is_now == was, f"x must keep its {what}, since clients start from it; it was {was} and is {is_now}")
        expect(all_finite(method.x), "x must stay finite, since clients start from it; it did not")
        return receipt

    simulate(run, look, train)
    return float((method.x - first).abs().max()) / max(1.0, float(first.abs().max()))


def check_order(make: Candidate) -> None:
    """Check that the order of fresh updates of different clients in one buffer does not matter, up to rounding.

    The check computes in float64. If the order is meant to matter, a method declares
    ``about = About(order_matters=True)``.
    """
    if not make.cls.buffered or make.cls.about.order_matters:
        return
    size = max(3, make.buffer_size)
    updates = [in_dtype(update, torch.float64) for update in reports(make, size)]
    orders = (updates, updates[::-1], [*updates[1:], updates[0]])
    models = [restart(make.run(buffer_size=size), order).x for order in orders]
    apart = max(float((model - models[0]).abs().max()) for model in models)
    expect(
        apart <= 1e-9 * max(1.0, float(models[0].abs().max())),
        "the order inside a buffer must not matter, since only chance decides it (or the method declares "
        f"about.order_matters); another order moved the model by {apart:.2g}",
    )


def check_refusals(make: Candidate) -> None:
    """Check that an update that is not finite, of a wrong shape or from the future is recorded and changes nothing."""
    method = make.run().algorithm
    for good in reports(make, 2 * make.buffer_size):
        for kind, bad in _unsound(good, method.version).items():
            before, noted = _all_but_rejections(method), len(method.rejections)
            why = f"an update with {kind} must be refused, since one is enough to ruin the model"
            try:
                receipt = method.receive(bad)
            except Exception as error:
                raise RuleBroken(f"{why}; it raised {type(error).__name__}: {' '.join(str(error).split())}") from error
            expect(len(method.rejections) == noted + 1, f"{why}, and noted in rejections; it was not noted")
            expect(isinstance(receipt, Receipt) and bool(receipt.refused), f"{why}; receive returned {receipt!r}")
            why += ", and must change nothing; before and after"
            expect_same(before, _all_but_rejections(method), why)
        method.receive(good)


def _unsound(good: Update, version: int) -> dict[str, Update]:
    nan, infinite = good.delta.clone(), good.delta.clone()
    nan[0], infinite[-1] = float("nan"), float("inf")
    return {
        "a NaN": dataclasses.replace(good, delta=nan),
        "an infinite value": dataclasses.replace(good, delta=infinite),
        "a wrong shape": dataclasses.replace(good, delta=good.delta[:-1]),
        "a start version of the future": dataclasses.replace(good, start_version=version + 1),
        "a negative start version": dataclasses.replace(good, start_version=-1),
    }


def _all_but_rejections(method: Algorithm) -> dict[str, Any]:
    state = {name: value for name, value in method.state().items() if name != "rejections"}
    return leaves({**state, "rng": method.context.rng.bit_generator.state}, "state")


def check_starting_again(make: Candidate) -> None:
    """Check that a method that is started again keeps nothing from before."""
    run, updates = make.run(), reports(make, 2 * make.buffer_size)
    first = leaves(restart(run, updates).state(), "state")
    why = "start() must begin anew, since an instance may be used again; the first and second time"
    expect_same(first, leaves(restart(run, updates).state(), "state"), why)


def check_in_place(make: Candidate) -> None:
    """Check that neither an earlier global model nor anything in an update is changed in place."""
    run, kept = make.run(), list[tuple[str, Any, dict[str, Any]]]()
    method = run.algorithm

    def keep(where: str, value: Any) -> None:
        kept.append((where, value, leaves(value, where)))

    def watch(update: Update, receive: Receive) -> Receipt:
        keep("update", update)
        receipt = receive(update)
        keep(f"x of version {method.version}", method.x)
        return receipt

    keep("x of version 0", method.x)
    simulate(run, watch)
    why = (
        "models and updates must not be changed in place, since clients in flight, the record of versions and other "
        "methods hold the same tensors; before and after"
    )
    for where, value, before in kept:
        expect_same(before, leaves(value, where), why)


def check_standing_still(make: Candidate) -> None:
    """Check that updates of zero, fresh or stale, and clients at their optimum leave the model unchanged.

    A method that moves anyway declares ``moves_by_itself``; its model only has to stay finite.
    """
    resting, quadratic = make.run(client_lr=0.0), make.run(local_steps=3)
    centre, lr = quadratic.algorithm.x, quadratic.config.client_lr

    def pulled(jobs: Sequence[Job]) -> list[Outcome]:
        """Train on ½‖x - centre‖² instead, each job with its correction."""
        outcomes = quadratic.train(jobs)
        for index, job in enumerate(jobs):
            x = job.sent
            for _ in range(3):
                x = x - lr * (x - centre if job.correction is None else x - centre + job.correction)
            outcomes[index] = dataclasses.replace(outcomes[index], delta=x - job.sent)
        return outcomes

    for run, train, why in (
        (resting, None, "updates of zero must leave the model unchanged"),
        (quadratic, pulled, "clients whose common optimum is the model must leave it unchanged"),
    ):
        moved = _simulate_soundly(run, train=train)
        expect(
            run.algorithm.moves_by_itself or moved <= 1e-6,
            f"{why}, since nothing asks it to move (or the method declares moves_by_itself); it moved by {moved:.2g}",
        )


def check_save_and_restore(make: Candidate) -> None:
    """Check that a run resumed from a checkpoint after any arrival ends with the same bits as an uninterrupted one."""
    whole = make.run()
    with tempfile.TemporaryDirectory() as folder:
        paths: list[Path] = []

        def save(simulation: object, arrival: object) -> None:
            paths.append(Path(folder) / f"{len(paths)}.pt")
            save_checkpoint(paths[-1], whole.identity, whole.state())

        whole.simulation.observers.append(save)
        simulate(whole)
        for number, path in enumerate(paths, start=1):
            again = make.run()
            with warnings.catch_warnings():
                warnings.filterwarnings("error", message=".*checkpoint not used")
                saved = load_checkpoint(path, again.identity)
                assert saved is not None, "a checkpoint that was just written is there"
                again.restore(saved)
            if found := difference(_end(whole), _end(simulate(again))):
                raise RuleBroken(
                    "state() must contain everything that changes, so that an interrupted run continues bit for bit; "
                    f"uninterrupted and resumed after arrival {number}, {found}{_forgotten(make, whole.algorithm)}"
                )


def _end(run: Run) -> dict[str, Any]:
    updates = who_did_what(run.simulation, run.parts).updates.astype(float).to_numpy().tolist()
    state = {"state": run.algorithm.state(), "rng": run.server_rng.bit_generator.state, "updates": updates}
    return leaves(state, "run")


def _forgotten(make: Candidate, end: Algorithm) -> str:
    """Return a hint that names attributes that changed in a run and are not saved."""
    begun, saved = vars(make.run().algorithm), {*end.state_names, "rejections", "_context"}
    names = [name for name in sorted(vars(end)) if name not in saved]
    now = {name: leaves(vars(end)[name], "") for name in names}
    changed = [name for name in names if name not in begun or difference(leaves(begun[name], ""), now[name])]
    return f"; changed, and not in state_names: {', '.join(changed)}" if changed else ""


def check_randomness(make: Candidate) -> None:
    """Check that random numbers come only from ``context.rng``, and that the global generators stay as they are."""
    before = GlobalStates.now()
    simulate(make.run())
    touched = before.drawn()
    expect(
        not touched,
        f"random numbers must come from context.rng, or a run does not follow from its seed; drawn from: {touched}",
    )


CHECKS: dict[str, Check] = {
    check.__name__.removeprefix("check_"): check
    for check in (
        *(check_versions, check_order, check_refusals, check_starting_again),
        *(check_in_place, check_standing_still, check_save_and_restore, check_randomness),
    )
}
"""All checks by name, in the order in which they run."""


@usual_torch()
def check_model(model: ModelSpec | OwnModel, task: Task) -> dict[str, str]:
    """Check that a model can be trained on a task; return the reasons why optional abilities are missing, by ability.

    It makes the checks that every run makes at its start, and also tests abilities that only some runs need.

    Args:
        model: the model's settings, such as ``MLP(hidden=(16,))``, or a module, or a function that returns one.
        task: the task on which it will be trained, such as ``Task.from_tensors(…)``.

    Returns:
        For each ability, the reason why the model lacks it, or an empty text if it has it:
        ``"minibatches of one sample"``; ``"several clients at once"`` (a cohort); and, for token ids,
        ``"made-up text"``, which FedRevive gives it as embeddings.

    Raises:
        ConfigError: when no run can train it on the task.

    Example: a perceptron has both abilities on images. Clients of a network with BatchNorm are trained one by one.

    >>> import torch
    >>> from asyncfl_lite import Task
    >>> from asyncfl_lite.models import CNN, MLP
    >>> from asyncfl_lite.testing import check_model
    >>> images, labels = torch.rand(20, 1, 8, 8), torch.arange(20) % 2
    >>> task = Task.from_tensors(images, labels, images, labels)
    >>> check_model(MLP(hidden=(16,)), task)
    {'minibatches of one sample': '', 'several clients at once': ''}
    >>> check_model(CNN(norm="batch"), task)["several clients at once"]
    'it keeps running statistics'
    """
    spec = model if isinstance(model, ModelSpec) else GivenModel.of(model)
    vectors, (inputs, _) = VectorModel(initial_model(spec, task.input_spec, 0)), task.samples
    outputs = (*task.labels.shape[1:], task.num_classes)
    draws = check_conduct(spec.title, vectors, inputs, outputs, task.vocabulary)
    found = {"minibatches of one sample": "" if takes_one(vectors, inputs) else "it fails on one"}
    if vectors.num_buffers:
        found["several clients at once"] = "it keeps running statistics"
    elif draws:
        found["several clients at once"] = "it draws random numbers"
    else:
        found["several clients at once"] = why_alone(vectors, inputs) if spec.vectorises else "it says so"
    if task.vocabulary is not None:
        x, _ = vectors.flatten()
        found["made-up text"] = ""
        try:
            check_takes_embeddings(vectors, task.input_spec, x, table_of(vectors, task.input_spec, x))
        except ConfigError as error:
            found["made-up text"] = str(error).removeprefix("model: ")
    return found

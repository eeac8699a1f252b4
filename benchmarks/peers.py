"""Compare this package with FLGo 0.4.4: the server's step, whole runs, the clock, the cost of an update; and with JAX.

Both go into a folder of their own, so that nothing of this package depends on them::

    pip install --no-deps --target build/peers flgo==0.4.4 prettytable==3.18.0 wcwidth==0.9.4
    pip install --no-deps --target build/peers jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 opt_einsum==3.4.0
    PYTHONPATH=.:build/peers python benchmarks/peers.py

It prints the tables of ``docs/peers.md``. In the *aligned* runs three things are handed to FLGo: our durations, our
first weights, and our minibatches; and we choose clients as it does. In the *stock* runs it gets the first weights and
the law of durations, and each simulator draws clients, durations and minibatches by itself.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from bare import bare_loop, cpu_seconds, medians
from flgo_side import METHODS, UPDATES, M, Theirs, Trace, configuration, untied_seeds
from scipy import stats
from torch import Tensor
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from asyncfl_lite import Config, Task, Update, make_algorithm, run_many
from asyncfl_lite.runs.run import Run
from asyncfl_lite.simulator.jobs import Job


def servers_step(theirs: Theirs, _: Any) -> None:
    """Feed both servers the same client models, and compare the versions that the servers make."""
    print("\n| server's step, one version from the same client models | largest difference | largest change |")
    print("|---|---|---|")
    rng, round_ = torch.Generator().manual_seed(0), 20
    for method, rule, count in (
        ("fedbuff", "poly", M), ("fedasync", "constant", 1), ("fedasync", "poly", 1), ("fedasync", "hinge", 1),
        ("fedasync", "poly", 2),
    ):  # fmt: skip
        config = configuration(method, 0)
        server = theirs.runner(method, Run(config), aligned=True)
        own = config.settings.model_dump()
        if method == "fedasync":
            own |= {"staleness_function": rule, "hinge_b": 6.0}  # FLGo's default
            server.flag = rule
        apart, change = 0.0, 0.0
        for _ in range(20):
            x = torch.randn(server.model.count_parameters(False), generator=rng)
            late = torch.randint(0, 12, (count,), generator=rng).tolist()
            starts, deltas = x + torch.randn(count, len(x), generator=rng), torch.randn(count, len(x), generator=rng)
            algorithm = make_algorithm(method, buffer_size=config.buffer_size, **own)
            algorithm.start(x)
            algorithm.version = round_ - 1
            for client, tau in enumerate(late):
                algorithm.receive(Update(client, deltas[client], round_ - 1 - tau, starts[client]))
            server.model, server.current_round, server.received_clients = filled(server.model, x), round_, [0] * count
            sent = deltas if method == "fedbuff" else starts + deltas
            models = [filled(server.model, vector, round_ - tau) for vector, tau in zip(sent, late, strict=True)]
            if not server.package_handler({"__cid": list(range(count)), "model": models}):
                raise SystemExit("FLGo made no version")
            found = parameters_to_vector(server.model.parameters()).detach()
            apart = max(apart, float((found - algorithm.x).abs().max()))
            change = max(change, float((algorithm.x - x).abs().max()))
        together = ", two updates in one tick" if (method, count) == ("fedasync", 2) else ""
        print(f"| {algorithm.title}, {rule}{together} | {apart:.1e} | {change:.1f} |", flush=True)


def filled(model: Any, vector: Tensor, round_: int = 0) -> Any:
    """Return a new model of FLGo's type with these parameters, marked as sent in round ``round_``."""
    made = type(model)()
    vector_to_parameters(vector.clone(), made.parameters())
    made._round = round_
    return made


def ours(config: Any) -> Trace:
    """Run our side, and return its :class:`Trace`."""
    trace = Trace()
    result = Run(config, on_version=lambda run: trace.models.append(run.algorithm.x)).finish()
    used = result.updates["version"].shift(fill_value=0) + 1
    columns = result.updates[["client", "arrived_at", "start_version"]].assign(used=used)
    trace.arrivals = [tuple(row) for row in columns.astype(int).values.tolist()]
    trace.accuracies = result.curve["accuracy"].tolist()
    return trace


def aligned(theirs: Theirs, seeds: dict[str, list[int]]) -> None:
    """Compare whole runs whose clients, durations, minibatches and initial weights are the same."""
    print("\n| aligned runs | runs | updates | same schedule | weights, version 1 | weights, last | weights, most "
          "| test samples apart, most |\n|---|---|---|---|---|---|---|---|")  # fmt: skip
    for method, own in seeds.items():
        first, last, most, samples, same, updates = [], [], [], [], 0, 0
        for seed in own:
            config = configuration(method, seed)
            we, they = ours(config), theirs.trace(method, run := Run(config))
            same += we.arrivals == they.arrivals
            updates += len(they.arrivals)
            apart = [float((a - b).abs().max()) for a, b in zip(we.models, they.models, strict=True)]
            first.append(apart[0]), last.append(apart[-1]), most.append(max(apart))
            gaps = np.abs(np.subtract(we.accuracies, they.accuracies)) * len(run.task.test_labels)
            samples.append(round(float(gaps.max())))
        print(f"| {run.algorithm.title} | {len(own)} | {updates} | {same} of {len(own)} | {max(first):.1e} "
              f"| {max(last):.1e} | {max(most):.1e} | {max(samples)} |", flush=True)  # fmt: skip


def stock(theirs: Theirs, seeds: dict[str, list[int]], timed: int = 4) -> None:
    """Compare whole runs in which each simulator draws by itself, and the cost of an update in each."""
    accuracy, cost = [], []
    for method, own in seeds.items():
        ends, times = [], []
        for number, seed in enumerate(own):
            config = configuration(method, seed, aligned=False)
            server, run = theirs.runner(method, Run(config), aligned=False), Run(config)
            seconds = [cpu_seconds(server.run), cpu_seconds(run.finish)]
            ends.append((run.curve_rows[-1]["accuracy"], server.gv.logger.output["test_accuracy"][-1]))
            if number < timed:
                seconds.append(cpu_seconds(bare_loop(config, evaluate=True)))
                times.append([1e3 / UPDATES * value for value in seconds] + clock_costs(theirs, method, seed))
        title, means = run.algorithm.title, 100 * np.mean(ends, 0)
        accuracy.append(f"| {title} | {means[0]:.1f} | {means[1]:.1f} | {points(np.array(ends) @ [1, -1])} |")
        they, we, bare, idle, tick = np.median(times, 0)
        ratio = statistics.median(row[0] / row[1] for row in times)
        cost.append(f"| {title} | {they:.1f} | {we:.2f} | {bare:.2f} | {ratio:.1f} | {idle:.1f} | {tick:.0f} |")
    print("\n| stock runs, test accuracy at the end | ours | FLGo | ours − FLGo, points |\n|---|---|---|---|")
    print("\n".join(accuracy))
    print("\n| processor time of an update, ms | FLGo | ours | bare loop | FLGo / ours | FLGo, clients train nothing "
          "| an empty tick of FLGo, µs |\n|---|---|---|---|---|---|---|")  # fmt: skip
    print("\n".join(cost), flush=True)


def points(gaps: np.ndarray) -> str:
    """Return the mean of paired differences in points, with its 95 % interval."""
    mean, half = 100 * gaps.mean(), 100 * stats.sem(gaps) * stats.t.ppf(0.975, len(gaps) - 1)
    return f"{mean:+.1f} [{mean - half:+.1f}, {mean + half:+.1f}]"


def defaults(_: Any, seeds: dict[str, list[int]]) -> None:
    """Print how each of our defaults that differs from FLGo's changes the final accuracy of the aligned runs."""
    print("\n| method | our default in place of FLGo's | accuracy, points |\n|---|---|---|")
    anyone: dict[str, Any] = {"selection": "uniform", "selection_settings": {}}
    for method, what, changes in (
        ("fedbuff", "no weight for staleness", {"settings": {}}),
        ("fedbuff", "work is sent before the aggregation", {"scheduling": "before_agg"}),
        ("fedbuff", "any idle client may be chosen", anyone),
        ("fedbuff", "all three", {"settings": {}, "scheduling": "before_agg", **anyone}),
        ("fedasync", "no proximal term", {"settings": {}}),
    ):
        own = seeds[method]
        results = run_many([configuration(method, s, **more) for more in (changes, {}) for s in own])
        ends = np.array([result.summary["final_accuracy"] for result in results]).reshape(2, -1)
        print(f"| {method} | {what} | {points(ends[0] - ends[1])} |", flush=True)


def clock_costs(theirs: Theirs, method: str, seed: int) -> list[float]:
    """Return FLGo's milliseconds per update without training, and its microseconds per empty tick."""
    seconds, ticks = [], []
    for coarser in (1, 10):
        run = Run(configuration(method, seed, aligned=False, coarser=coarser))
        server = theirs.runner(method, run, aligned=False, trains=False)
        seconds.append(cpu_seconds(server.run))
        ticks.append(server.gv.clock.current_time)
    return [1e3 * seconds[0] / UPDATES, 1e6 * (seconds[0] - seconds[1]) / (ticks[0] - ticks[1])]


def ticks(theirs: Theirs, seeds: dict[str, list[int]], runs: int = 2) -> None:
    """Make FLGo's ticks coarser, and count the updates that it takes as one.

    Our heap takes one update after another.
    """
    print("\n| mean job | method | ticks | updates that share their tick | updates of a version: mean, most "
          "| ours |\n|---|---|---|---|---|---|")  # fmt: skip
    for coarser in (1, 10, 100, 500):
        for method, own in seeds.items():
            arrivals, last, versions = [], [], []
            for seed in own[:runs]:
                run, trace = Run(configuration(method, seed, coarser=coarser)), Trace()
                server = theirs.runner(method, run, trace, aligned=False, trains=False)
                server.run()
                last.append(server.gv.clock.current_time)
                arrivals += Counter((seed, tick) for _, tick, _, _ in trace.arrivals).values()
                versions += Counter((seed, version) for *_, version in trace.arrivals).values()
            shared = sum(count for count in arrivals if count > 1) / sum(arrivals)
            size = run.config.buffer_size
            row = [f"{550 / coarser:.1f} ticks", run.algorithm.title, f"{statistics.mean(last):,.0f}", f"{shared:.0%}"]
            print("|", " | ".join(row), f"| {statistics.mean(versions):.2f}, {max(versions)} | {size} |", flush=True)


def trained_in_jax(module: Any, inputs: Tensor, labels: Tensor, lr: float) -> Callable[[Any], list[Any]]:
    """Return a ``vmap`` of a ``scan`` over SGD steps: clients' ``(G, steps, B)`` minibatches -> their parameters."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    samples, targets = jnp.asarray(inputs.numpy()), jnp.asarray(labels.numpy())
    layers = [layer for layer in module.modules() if not list(layer.children())]
    first = [jnp.asarray(parameter.detach().numpy()) for parameter in module.parameters()]

    def loss(parameters: list[Any], indices: Any) -> Any:
        x, left = samples[indices], iter(parameters)
        for layer in layers:
            match type(layer).__name__:
                case "Conv2d":
                    x = lax.conv(x, next(left), (1, 1), "SAME") + next(left)[:, None, None]
                case "MaxPool2d":
                    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
                case "Flatten":
                    x = x.reshape(len(x), -1)
                case "Linear":
                    x = x @ next(left).T + next(left)
                case "ReLU":
                    x = jax.nn.relu(x)
        return -jnp.take_along_axis(jax.nn.log_softmax(x), targets[indices][:, None], 1).mean()

    def step(parameters: list[Any], indices: Any) -> Any:
        return [p - lr * g for p, g in zip(parameters, jax.grad(loss)(parameters, indices), strict=True)], None

    trained = jax.jit(jax.vmap(lambda plan: lax.scan(step, first, plan)[0]))
    return lambda plans: jax.block_until_ready(trained(plans))


def jax_jobs(_: Any, __: Any, steps: int = 20, lr: float = 0.1) -> None:
    """Train the same jobs as one computation in JAX and as one cohort here; compare weights and times.

    JAX has compiled, and is handed its minibatches; our time includes drawing them, and the clients' losses.
    """
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    import jax

    print(f"\n| {steps} steps of jobs, JAX {jax.__version__} | JAX, ms | ours, ms | JAX / ours | weights apart, most |")
    print("|---|---|---|---|---|")
    draws = torch.Generator().manual_seed(0)
    for what, jobs, model, shape, own in (
        ("perceptron 64-32-10", 100, "mlp", (64,), {"hidden": (32,)}),
        ("perceptron 64-200-10", 100, "mlp", (64,), {"hidden": (200,)}),
        ("CNN 8-16, 16×16 pixels", 25, "cnn", (1, 16, 16), {}),
    ):
        count = 50 * jobs
        samples = torch.randn(count, *shape, generator=draws), torch.randint(10, (count,), generator=draws)
        config = Config(
            model=model, model_settings=own, clients=jobs, concurrency=jobs, partition="iid", local_steps=steps,
            local_epochs=None, batch_size=10, client_lr=lr, weight_decay=0.0,
        )  # fmt: skip
        run = Run(config, task=Task.from_tensors(*samples, *(part[:10] for part in samples)))
        work = [Job(0.0, client, client, 0, 0, 0.0, run.algorithm.x) for client in range(jobs)]
        plans = jax.numpy.asarray(np.stack([run.trainer.plan(job).indices for job in work]))
        theirs = partial(trained_in_jax(run.model.module, *samples, lr), plans)
        ours = partial(run.trainer, work)
        found = np.concatenate([np.asarray(part).reshape(jobs, -1) for part in theirs()], 1)
        mine = torch.stack([outcome.delta for outcome in ours()]) + run.algorithm.x
        (they, we), (ratio,), _ = medians(theirs, ours)
        apart = np.abs(mine.numpy() - found).max()
        print(f"| {jobs} of a {what} | {1e3 * they:.1f} | {1e3 * we:.1f} | {ratio:.2f} | {apart:.1e} |", flush=True)


SECTIONS = {
    "step": servers_step,
    "aligned": aligned,
    "defaults": defaults,
    "stock": stock,
    "ticks": ticks,
    "jax": jax_jobs,
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10, help="runs of each method")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="a section; all by default")
    chosen = parser.parse_args()
    sys.argv = sys.argv[:1]  # FLGo reads options there
    torch.set_num_threads(1)
    began = time.process_time()
    print(f"FLGo {version('flgo')}, torch {torch.__version__}, numpy {np.__version__}, "
          f"Python {platform.python_version()}, {time.strftime('%d %B %Y')}")  # fmt: skip
    seeds = {method: untied_seeds(method, chosen.seeds) for method in METHODS}
    print(", ".join(f"{method}: seeds {own}" for method, own in seeds.items()), flush=True)
    with TemporaryDirectory() as folder:
        theirs = Theirs(Path(folder), Run(configuration("fedbuff", 0)).task)
        for section in chosen.only or SECTIONS:
            SECTIONS[section](theirs, seeds)
    print(f"\n{time.process_time() - began:.0f} s of processor time")


if __name__ == "__main__":
    main()

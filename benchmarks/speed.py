"""Speed on the processor, as ratios to a bare loop; ``make bench`` runs it and compares with the recorded figures.

    python benchmarks/speed.py [--record] [--only small] [--all]

Every figure is a ratio of processor times, measured side by side in one process, alternating, medians of as many pairs
as make them steady, or a rate. A goal is one of two, for processors with AVX2 and with AVX-512, and stands beside what
limits the figure. Figures without a goal, or far better, come with ``--all``. Nothing here is a test.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from bare import bare_loop, cpu_seconds, medians, ratio
from plain import SCRIPTS
from torch import nn

from asyncfl_lite import Config, run, run_many
from asyncfl_lite.models import MODELS, ModelSpec
from asyncfl_lite.runs.run import Run
from asyncfl_lite.runs.store import versions
from asyncfl_lite.simulator.clock_only import ClockOnly, VersionCounter
from asyncfl_lite.simulator.delays import DELAYS
from asyncfl_lite.simulator.scheduling import Continuous
from asyncfl_lite.tasks import TASKS, Task
from asyncfl_reproduction.digests import checked, seal

RESULTS = Path(__file__).parent / "results"
INSTRUCTIONS = torch.backends.cpu.get_cpu_capability()
"""The processor's vector instructions, such as AVX2 or AVX512; each kind has goals and recorded figures of its own."""
FEDECHO = {"task": "digits", "delay": "fedecho_large", "alpha": 0.1, "client_lr": 0.1, "eval_every": 10}
FEDREVIVE = {"task": "digits", "delay": "fedrevive", "partition": "dirichlet_wrap", "alpha": 0.5, "clients": 1000,
             "concurrency": 100, "client_lr": 0.1, "eval_every": 10}  # fmt: skip
Figure = dict[str, object]


def goal(avx2: float, avx512: float, limit: str) -> Figure:
    """Return a figure's goal on this processor, and what limits the figure."""
    return {"target": avx512 if INSTRUCTIONS == "AVX512" else avx2, "limit": limit}


@TASKS.register("mnist5k_28")
class MNIST5k28(TASKS.get("mnist5k")):
    """The task ``mnist5k`` with MNIST's own 28 pixels a side."""

    side = 28


@MODELS.register("lenet")
class LeNet(ModelSpec):
    """LeNet-5 with ReLU and max-pooling; 61,706 parameters on MNIST."""

    takes = "images"

    def build(self, input_shape: tuple[int, ...], num_classes: int) -> nn.Module:
        """Build the module for images of 28 pixels a side."""
        return nn.Sequential(
            *(nn.Conv2d(input_shape[0], 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
            *(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, num_classes)),
        )


def small() -> Iterator[Figure]:
    """A small model, with cohorts of all jobs in flight."""
    config = Config(algorithm="fedbuff", rounds=100, **FEDECHO)
    yield {
        "name": "MLP on digits, 25 in flight",
        **goal(0.23, 0.27, "small operations"),
        **ratio(partial(run, config), bare_loop(config)),
    }


def many() -> Iterator[Figure]:
    """Twelve runs in lockstep."""
    methods = ("fedbuff", "ca2fl", "fadas", "fedasync")
    configs = [
        Config(algorithm=method, rounds=500 if method == "fedasync" else 100, seed=seed, **FEDECHO)
        for method in methods
        for seed in range(3)
    ]
    loops = [bare_loop(config) for config in configs]
    found = ratio(lambda: run_many(configs), lambda: [loop() for loop in loops])
    yield {"name": "12 runs (4 methods × 3 seeds), 25 in flight", **goal(0.125, 0.19, "batched products"), **found}


def large() -> Iterator[Figure]:
    """Models that keep a core busy by themselves; the bare loop is tested as often as the run."""
    mnist = {"task": "mnist5k_28", "client_lr": 0.05, "eval_every": 10, "batch_size": 50}
    flgo = Config(algorithm="fedbuff", model="flgo_cnn", rounds=2, **mnist)
    resnet = Config(algorithm="fedbuff", model="resnet", rounds=6, **mnist)
    mlp = Config(algorithm="fedbuff", model_settings={"hidden": [3000, 3000]}, rounds=4, **{**mnist, "task": "digits"})
    for name, most, limit, config in (
        ("FLGo's 5×5 CNN on 28×28", 0.8, "convolutions", flgo),
        ("ResNet of width 8 on 28×28", 1.03, "convolutions", resnet),
        ("MLP with 9.2 million parameters on digits", 1.0, "memory", mlp),
    ):
        yield {
            "name": name,
            **goal(most, most, limit),
            **ratio(partial(run, config), bare_loop(config, evaluate=True)),
        }


def met() -> Iterator[Figure]:
    """Figures that met their goals long ago; where the model is tested, the bare loop is tested as often as the run."""
    mlp = Config(algorithm="fedbuff", rounds=60, **FEDREVIVE)
    yield {
        "name": "MLP on digits, 100 in flight",
        **goal(0.08, 0.15, "batched products"),
        **ratio(partial(run, mlp), bare_loop(mlp)),
    }
    cnn = Config(algorithm="fedbuff", task="mnist5k", rounds=20)
    lenet = Config(algorithm="fedbuff", task="mnist5k_28", model="lenet", rounds=20)
    for name, target, config in (("8-16 CNN on 14×14", 0.45, cnn), ("LeNet on 28×28", 0.6, lenet)):
        yield {
            "name": name,
            **goal(target, target, "convolutions"),
            **ratio(partial(run, config), bare_loop(config, evaluate=True)),
        }


def server() -> Iterator[Figure]:
    """The share of a run's processor time that the server's own work takes."""
    for method, settings in (
        ("fedbuff", {}),
        ("fedecho", {}),
        ("fedrevive", {"rounds": 500}),
        ("fedadt", {"rounds": 500}),
    ):
        config = Config(**{"algorithm": method, "rounds": 100, **FEDECHO, **settings})
        run(config)
        result = run(config)
        share = 1 - result.timing["training_cpu_seconds"] / result.timing["cpu_seconds"]
        yield {"name": f"server's share of a run of {method}", "share": share, "seconds": result.timing["cpu_seconds"]}


DISTILLING = {
    "fedecho": {"rounds": 30},
    "fedadt": {"rounds": 150},
    "fedrevive": {"rounds": 80, "settings": {"freeze_rounds": 0, "synthesis_only_rounds": 0, "adversarial_from": 1}},
}
"""Runs of the methods whose servers distil, FedRevive's with synthesis and distillation from its first update on."""
TEN_SEEDS = {
    "fedecho": goal(0.13, 0.15, "Adam and batched products"),
    "fedadt": goal(0.2, 0.23, "batched products"),
    "fedrevive": goal(0.25, 0.27, "small operations"),
}
"""FedRevive's goals are FedEcho's, plus 0.12 for its generator, which each seed computes for itself."""


def plain() -> Iterator[Figure]:
    """Methods that distil on the server, alone and ten seeds at once, relative to a plain script of one run."""
    scripts: dict[str, float] = {}
    for method, settings in DISTILLING.items():
        config = Config(algorithm=method, **{**FEDECHO, **settings})
        alone, found = _ten_seeds(config, SCRIPTS[method](config))
        scripts[method] = alone["bare_s"]
        yield {"name": f"{method}, alone, over its plain script", **alone}
        yield {"name": f"{method}, 10 seeds, over its plain script", **TEN_SEEDS[method], **found}
    kuiper = Config(algorithm="kuiper", rounds=60, **FEDECHO)
    scripts["kuiper"] = cpu_seconds(bare_loop(kuiper))  # its server does next to nothing
    others = [Config(algorithm=method, **{**FEDECHO, **settings}) for method, settings in DISTILLING.items()]
    four = [config.with_seed(seed) for config in (*others, kuiper) for seed in range(3)]
    ours, bare = cpu_seconds(partial(run_many, four)), 3 * sum(scripts.values())
    name = "4 proposed methods × 3 seeds, over their plain scripts"
    yield {
        "name": name,
        **goal(0.33, 0.36, "FedRevive's server"),
        "ours_s": ours,
        "bare_s": bare,
        "ratio": ours / bare,
    }


def seeds() -> Iterator[Figure]:
    """Ten seeds of small CNNs at once, relative to a bare loop whose model is tested as often."""
    common = {"algorithm": "fedbuff", "rounds": 10, "task": "mnist5k"}
    lenet = {"task": "mnist5k_28", "model": "lenet"}
    for name, target, settings in (
        ("8-16 CNN on 14×14, 10 seeds of FedBuff", 0.45, {}),
        ("LeNet on 28×28, 10 seeds of FedBuff", 0.6, lenet),
    ):
        config = Config(**{**common, **settings})
        yield {
            "name": name,
            **goal(target, target, "convolutions"),
            **_ten_seeds(config, bare_loop(config, evaluate=True))[1],
        }


def _ten_seeds(config: Config, script: Callable[[], object]) -> tuple[dict[str, float], dict[str, float]]:
    """Return the time of a run alone, and per run of ten seeds at once, both relative to a script of one run."""
    ten = [config.with_seed(seed) for seed in range(10)]
    (alone, all_ten, bare), (of_one, of_ten), rounds = medians(
        partial(run, config), partial(run_many, ten), script, most=5
    )
    return (
        {"ours_s": alone, "bare_s": bare, "ratio": of_one, "pairs": rounds},
        {"ours_s": all_ten, "bare_s": bare, "ratio": of_ten / 10, "pairs": rounds},
    )


def paper() -> Iterator[Figure]:
    """Seconds of one core per update in cells of the papers' size, on noise of MNIST's shape."""
    flgo = {"model": "flgo_cnn", "clients": 500, "concurrency": 100, "delay": "fedadt", "partition": "dirichlet_flgo",
            "alpha": 0.3, "local_epochs": 5, "batch_size": 32, "client_lr": 0.01}  # fmt: skip
    kuiper = {"model": "cnn", "clients": 100, "local_epochs": 3, "batch_size": 10, "concurrency": 12,
              "buffer_size": 4}  # fmt: skip
    noise = _noise()
    for name, most, settings in (
        ("FedBuff with FLGo's CNN, 120 samples, 5 epochs", 0.35, {"algorithm": "fedbuff", **flgo, "buffer_size": 2}),
        ("FedADT with FLGo's CNN, 120 samples, 5 epochs", 0.5, {"algorithm": "fedadt", **flgo}),
        ("KUIPER with the 8-16 CNN, 600 samples, 3 epochs", 0.2, {"algorithm": "kuiper", **kuiper, "rounds": 2}),
    ):
        config = Config(**{"task": "mnist", "rounds": 8, "eval_every": 1000, **settings})
        warm = Run(config.model_copy(update={"rounds": 1}), noise)
        warm.finish()
        begun = Run(config, noise)
        spent, clock = cpu_seconds(begun.finish), begun.simulation
        trained = clock.sequence_no - len(clock.untrained)  # some of them may be in flight at the end
        yield {"name": f"an update of {name}", **goal(most, most, "convolutions"), "seconds": spent / trained}


def _noise() -> Task:
    """Return a task of noise with MNIST's shape and its number of training samples."""
    rng = np.random.default_rng(0)
    train, test = (
        (rng.standard_normal((count, 1, 28, 28), dtype=np.float32), rng.integers(10, size=count))
        for count in (60_000, 100)
    )
    return Task.from_tensors(*train, *test, name="noise")


def setup() -> Iterator[Figure]:
    """Seconds of processor time until a run with a million clients begins."""
    least = Config(**{**FEDREVIVE, "algorithm": "fedbuff", "rounds": 1})
    Run(least)  # the first pays for what is made once
    for each in (10, 350):
        held = {"partition_settings": {"samples_per_client": each}}
        config = Config(**{**least.as_dict(), **held, "clients": 1_000_000})
        name = f"setting up 1,000,000 clients with {each} samples each"
        yield {"name": name, "seconds": cpu_seconds(partial(Run, config))}


def clock(sizes: Sequence[int] = (10_000,)) -> Iterator[Figure]:
    """Events per second without training; an event is an arrival and the dispatch that follows it."""
    for in_flight in sizes:
        clients, events = max(1_000_000, 2 * in_flight), 200_000
        rates, grown = zip(*(_clock(clients, in_flight, events) for _ in range(3)), strict=True)
        name = f"events a second, {clients:,} clients, {in_flight:,} in flight"
        yield {"name": name, "rate": statistics.median(rates), "MiB": grown[0]}


def clocks() -> Iterator[Figure]:
    """Events per second without training, with fewer and with more clients in flight."""
    yield from clock((100, 1_000, 100_000, 1_000_000))


def _clock(clients: int, in_flight: int, events: int) -> tuple[float, float]:
    """Return events per second, and the MiB that the clock holds at the end, with its delay law's arrays."""
    gc.collect()
    tracemalloc.start()
    delays = DELAYS.get("exponential")().prepare(np.ones(clients), np.random.default_rng(0))
    simulation = ClockOnly(
        VersionCounter(10), Continuous(in_flight, 10), delays, range(clients), rounds=2, keep_arrivals=False
    )
    simulation.run_alone()
    held = tracemalloc.get_traced_memory()[0] / 2**20
    tracemalloc.stop()
    simulation.rounds = 2 + events // 10
    began = time.process_time()
    simulation.run_alone()
    return events / (time.process_time() - began), held


def memory() -> Iterator[Figure]:
    """Peak memory of a process with one run or with ten, less the peak with a single version of FedBuff."""
    least = _peak_of({**FEDREVIVE, "algorithm": "fedbuff", "clients": 200, "rounds": 1})
    runs = {
        "1,000 clients of FedRevive on digits": {**FEDREVIVE, "algorithm": "fedrevive", "rounds": 200},
        "200 clients of FedRevive on digits": {**FEDREVIVE, "algorithm": "fedrevive", "clients": 200, "rounds": 200},
        "500 clients of FedADT on digits": {**FEDREVIVE, "algorithm": "fedadt", "clients": 500, "rounds": 200},
    }
    seeds = {f"10 seeds of {method} on digits at once": method for method in DISTILLING}
    for name, method in seeds.items():
        runs[name] = {**FEDECHO, "algorithm": method, **DISTILLING[method]}
    for name, settings in runs.items():
        peak = _peak_of(settings, 10 if name in seeds else 1)
        yield {"name": f"peak memory, {name}", "MiB": (peak - least) / 1024, "with the libraries, MiB": peak / 1024}


def _peak_of(settings: dict[str, object], seeds: int = 1) -> int:
    made = f"Config(**{settings!r}).with_seed(seed) for seed in range({seeds})"
    return _peak(f"from asyncfl_lite import Config, run_many; run_many([{made}])")


def _peak(code: str) -> int:
    """Return the largest resident size, in KiB, of a fresh process that runs ``code``; Linux only.

    Not ``getrusage``'s, which begins with that of the process that started it.
    """
    more = "; print([row for row in open('/proc/self/status') if row.startswith('VmHWM')][0].split()[1])"
    done = subprocess.run([sys.executable, "-c", code + more], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


WITH_GOALS = {
    "small": small,
    "many": many,
    "large": large,
    "plain": plain,
    "seeds": seeds,
    "paper": paper,
}
SECTIONS = {
    **WITH_GOALS,
    "met": met,
    "server": server,
    "setup": setup,
    "clock": clock,
    "clocks": clocks,
    "memory": memory,
}


def main() -> None:
    """Measure and print the figures, compare them with the recorded ones, and record them if asked."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--record", action="store_true", help="write what is measured into benchmarks/results/")
    parser.add_argument("--only", choices=SECTIONS, action="append", help="only this section; may be repeated")
    parser.add_argument("--all", action="store_true", help="figures without a goal too, some ten minutes")
    options = parser.parse_args()
    torch.set_num_threads(1)
    file = RESULTS / f"{INSTRUCTIONS}.json"
    recorded = json.loads(checked(file).read_text())["figures"] if file.exists() else []
    before = {figure["name"]: figure for figure in recorded}
    now = before.copy()
    machine = {"processor": _processor(), "system": platform.system(), "threads": 1}
    for name in options.only or (SECTIONS if options.all else WITH_GOALS):
        print(f"\n{name}: {SECTIONS[name].__doc__.strip()}")
        for figure in SECTIONS[name]():
            print(line(figure, before.get(figure["name"])), flush=True)
            now[figure["name"]] = figure
            if options.record:
                content = {"machine": machine, "versions": versions(), "figures": [*now.values()]}
                file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
                seal(file)


def line(figure: Figure, before: Figure | None) -> str:
    """Return a figure as a line of the table: today's value, its goal, and the recorded value."""
    told = ("ratio", "rate", "share", "MiB", "seconds")
    key = next(key for key in told if key in figure)
    value = figure[key]
    shown = f"  {figure['name']:58} {key} {value:,.3g}" if value < 1000 else f"  {figure['name']:58} {key} {value:,.0f}"
    if figure.get("target"):
        met = "met" if value <= figure["target"] else "MISSED"
        shown += f"   goal {figure['target']:,} {met} (limit: {figure['limit']})"
    if before:
        shown += f"   recorded {before[key]:,.3g}" if value < 1000 else f"   recorded {before[key]:,.0f}"
    return shown


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [row.split(":")[1].strip() for row in cpuinfo.read_text().splitlines() if row.startswith("model name")]
        if names:
            return f"{names[0]}, {len(names)} logical"
    return platform.processor()


if __name__ == "__main__":
    main()

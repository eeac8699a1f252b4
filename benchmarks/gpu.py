"""Speed on a GPU: one command, no downloads, made-up data of the right shapes.

    python benchmarks/gpu.py [--device cuda] [--tiny]

It needs this checkout and what the package itself needs (torch, numpy, pandas, pydantic, tqdm). It measures

1. the papers' ResNet-18 on CIFAR-shaped data under FedEcho: client updates a second, the share of the peak of a matrix
   product, and the time that one cell of its Table 2 would take, in float32;
2. FedADT's cell on MNIST-shaped data, 500 clients: the same, and the time of its 64,000 updates;
3. a small CNN with 100 clients in flight: how many times faster than a loop over the clients.

Targets on one H100: 5 minutes for a cell of Table 2, 2 minutes for FedADT's, 10 times for the small CNN.
NO FIGURES OF THIS SCRIPT HAVE BEEN RECORDED: every path of it was run on a processor, with ``--tiny``, and on no GPU.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

sys.path[:0] = [str(Path(__file__).parent.parent)]

from asyncfl_lite import Config  # noqa: E402
from asyncfl_lite.models.base import forward_flop  # noqa: E402
from asyncfl_lite.runs.results import Result  # noqa: E402
from asyncfl_lite.runs.run import Run  # noqa: E402
from asyncfl_lite.tasks import Task  # noqa: E402

TABLE_2 = {"updates": 2500, "minutes": 5}
FEDADT = {"updates": 64_000, "minutes": 2}


def made_up(samples: int, shape: tuple[int, ...]) -> Task:
    """Return a task of noise with 10 classes, and as many unlabelled inputs as FedEcho asks for."""
    rng = np.random.default_rng(0)
    draw = lambda count: rng.standard_normal((count, *shape), dtype=np.float32)  # noqa: E731
    classes = lambda count: rng.integers(10, size=count)  # noqa: E731
    train, test = (draw(samples), classes(samples)), (draw(samples // 5), classes(samples // 5))
    return Task.from_tensors(*train, *test, name="noise", unlabelled=draw(min(2000, samples)))


def synchronise(device: torch.device) -> None:
    """Wait until the device has finished all its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def peak_flops(device: torch.device, size: int) -> float:
    """Return the floating-point operations per second of a square matrix product."""
    a, b = (torch.randn(size, size, device=device) for _ in range(2))
    a @ b
    synchronise(device)
    began = time.perf_counter()
    for _ in range(10):
        a @ b
    synchronise(device)
    return 10 * 2 * size**3 / (time.perf_counter() - began)


def made(config: Config, task: Task, **changed: object) -> tuple[Run, Result, float]:
    """Run a configuration; return the run, its result, and the seconds that it took after the setup."""
    run = Run(Config(**{**config.as_dict(), **changed}), task)
    device = torch.device(config.device)
    synchronise(device)
    began = time.perf_counter()
    result = run.finish()
    synchronise(device)
    return run, result, time.perf_counter() - began


def cell(name: str, config: Config, task: Task, whole: dict[str, float], size: int) -> None:
    """Time a run, and print an estimate of the whole cell's time."""
    peak = peak_flops(torch.device(config.device), size)
    made(config, task, rounds=1)  # the first pays for kernels and memory
    run, result, seconds = made(config, task)
    samples = result.updates["num_samples"].sum() * config.local_epochs
    flop = 3 * forward_flop(run.model, run.task.input_spec) * samples
    rate = len(result.updates) / seconds
    minutes = whole["updates"] / rate / 60
    print(
        f"{name}: {rate:.3g} updates a second, {flop / seconds / peak:.1%} of a matrix product's peak "
        f"({peak / 1e12:.3g} TFLOP/s), {minutes:.3g} minutes for {whole['updates']:,} updates "
        f"(target {whole['minutes']})",
        flush=True,
    )


def against_bare(config: Config, task: Task) -> None:
    """Print how many times as fast cohorts of a small CNN are as a plain loop over the clients."""
    made(config, task, rounds=1)
    run, _, seconds = made(config, task)
    trained = Run(config, task)
    clients: list[int] = []
    trained.begin()
    trained.simulation.run(lambda jobs: clients.extend(job.client for job in jobs) or trained.trainer(jobs))
    bare(run, clients[:5], config)
    loop = bare(run, clients, config)
    print(f"small CNN, {config.concurrency} in flight: {loop / seconds:.3g} times a bare loop's speed (target 10)")


def bare(run: Run, clients: list[int], config: Config) -> float:
    """Return the seconds that a plain PyTorch loop takes for one job of each client in ``clients``, in order."""
    module, inputs, labels = run.model.module.train(), run.task.inputs, run.task.labels
    device, loss = inputs.device, torch.nn.CrossEntropyLoss()
    parts: list[Tensor] = [torch.from_numpy(part).to(device) for part in run.parts]
    synchronise(device)
    began = time.perf_counter()
    for client in clients:
        optimiser = torch.optim.SGD(module.parameters(), lr=config.client_lr)
        for _ in range(config.local_epochs):
            for places in parts[client][torch.randperm(len(parts[client]), device=device)].split(config.batch_size):
                optimiser.zero_grad()
                loss(module(inputs[places]), labels[places]).backward()
                optimiser.step()
    synchronise(device)
    return time.perf_counter() - began


def main() -> None:
    """Measure everything, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--tiny", action="store_true", help="small models and data, to see that every path works")
    options = parser.parse_args()
    tiny, common = options.tiny, {"device": options.device, "eval_every": 1000}
    size = 256 if tiny else 8192
    print("No figures of this script have been recorded; its targets are for one H100.")
    name = torch.cuda.get_device_name() if options.device.startswith("cuda") else "a processor"
    print(f"on {name}, Python {sys.version.split()[0]}, torch {torch.__version__}")

    resnet = {
        "model": "resnet",
        "model_settings": {"width": 4 if tiny else 64, "blocks": (1,) if tiny else (2, 2, 2, 2)},
    }
    fedecho = Config(**{
        **common, **resnet, "task": "cifar10", "algorithm": "fedecho", "rounds": 2 if tiny else 10,
        "settings": {"distill_set": "own", "distill_samples": 50 if tiny else 2000},
    })  # fmt: skip
    cell("FedEcho, ResNet-18", fedecho, made_up(*((500, (3, 8, 8)) if tiny else (50_000, (3, 32, 32)))), TABLE_2, size)

    mnist = made_up(*((7500, (1, 14, 14)) if tiny else (60_000, (1, 28, 28))))
    scale = {"scale": 0.1} if tiny else {}
    fedadt = Config(**{
        **common, "task": "mnist", "algorithm": "fedadt", "model": "flgo_cnn", "model_settings": scale, "clients": 500,
        "concurrency": 100, "delay": "fedadt", "partition": "dirichlet_flgo", "alpha": 0.3, "local_epochs": 5,
        "batch_size": 32, "client_lr": 0.01, "rounds": 20 if tiny else 1000,
    })  # fmt: skip
    cell("FedADT, CNN on MNIST's shape", fedadt, mnist, FEDADT, size)

    small = Config(**{
        **common, "task": "mnist", "algorithm": "fedbuff", "model": "cnn", "clients": 500, "concurrency": 100,
        "buffer_size": 10, "local_epochs": 1, "rounds": 5 if tiny else 100, "vectorize": "on",
    })  # fmt: skip
    against_bare(small, mnist)


if __name__ == "__main__":
    main()

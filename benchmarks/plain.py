"""Methods that distil on the server, written as scripts for one run, with modules and ``torch.optim`` alone.

Each follows the schedule of a run (who arrives when, from which version), and takes as many steps on as many samples.
Nothing is shared or batched that its paper does not batch. They are what ``speed.py`` measures against, no references:
that the package computes what the papers say is for ``tests/``.
"""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from asyncfl_lite import Config
from asyncfl_lite.algorithms.fedrevive import ALPHA_ADV, POOL_SIZE, PROBES, FedRevive
from asyncfl_lite.algorithms.synthesis import CLASS_WEIGHT, META_RATE, image_generator
from asyncfl_lite.base.streams import stream
from asyncfl_lite.runs.assembly import schedule
from asyncfl_lite.runs.run import Run


class Script:
    """The common part of the scripts: data, clients' training, and the order of arrivals."""

    def __init__(self, config: Config) -> None:
        run = Run(config)
        self.config, self.task, self.labelled = config, run.task, run.algorithm.context.labelled
        self.initial, self.module = run.model.module, copy.deepcopy(run.model.module)
        self.parts = [torch.from_numpy(part) for part in run.parts]
        self.arrivals = schedule(config).updates[["client", "start_version", "staleness"]].values.tolist()
        self.settings = run.algorithm.settings

    def train(self, start: Tensor, client: int) -> Tensor:
        """Return a client's parameters after its local training from ``start``."""
        config, inputs, labels, part = self.config, self.task.inputs, self.task.labels, self.parts[client]
        module = self.module.train()
        vector_to_parameters(start, module.parameters())
        optimiser = torch.optim.SGD(module.parameters(), lr=config.client_lr, weight_decay=config.weight_decay)
        for _ in range(config.local_epochs):
            for places in part[torch.randperm(len(part))].split(config.batch_size):
                optimiser.zero_grad()
                F.cross_entropy(module(inputs[places]), labels[places]).backward()
                optimiser.step()
        return parameters_to_vector(module.parameters()).detach()

    def loaded(self, x: Tensor) -> nn.Module:
        """Return a module with these parameters."""
        module = copy.deepcopy(self.initial)
        vector_to_parameters(x, module.parameters())
        return module

    def test(self, x: Tensor, version: int) -> None:
        """Test the model ``x`` if a run would test this version."""
        if version % self.config.eval_every == 0:
            with torch.no_grad():
                self.task.evaluate(self.loaded(x).eval())


def fedecho(config: Config) -> Callable[[], None]:
    """Return a plain script of FedEcho, Alg. 1."""
    script = Script(config)
    chosen = script.settings
    unlabelled = script.task.unlabelled_set(
        chosen.distill_set, chosen.distill_samples, stream(config.seed, "unlabelled")
    )

    def go() -> None:
        versions, buffer = [parameters_to_vector(script.initial.parameters()).detach()], []
        logits: dict[int, Tensor] = {}
        for client, start, _ in script.arrivals:
            trained = script.train(versions[start], client)
            buffer.append(trained - versions[start])
            with torch.no_grad():
                logits[client] = script.loaded(trained)(unlabelled)
            if len(buffer) < config.buffer_size:
                continue
            student = script.loaded(versions[-1] + config.server_lr * torch.stack(buffer).mean(0))
            teacher = torch.stack(list(logits.values())).mean(0).softmax(-1)
            optimiser = torch.optim.Adam(student.parameters(), lr=chosen.distill_lr)
            for _ in range(chosen.distill_q):
                for places in torch.randperm(len(unlabelled)).split(chosen.distill_batch_size):
                    p = teacher[places]
                    uncertainty = -torch.xlogy(p, p).sum(-1).mean() / math.log(p.shape[-1])
                    alpha = uncertainty * chosen.alpha_max + (1 - uncertainty) * chosen.alpha_min
                    outputs = student(unlabelled[places])
                    kl = F.kl_div(outputs.log_softmax(-1), p, reduction="batchmean")
                    loss = alpha * kl + (1 - alpha) * F.cross_entropy(outputs, p.argmax(-1))
                    optimiser.zero_grad()
                    loss.backward()
                    nn.utils.clip_grad_norm_(student.parameters(), chosen.clip)
                    optimiser.step()
            versions.append(parameters_to_vector(student.parameters()).detach())
            buffer = []
            script.test(versions[-1], len(versions) - 1)

    return go


def fedadt(config: Config) -> Callable[[], None]:
    """Return a plain script of FedADT, §IV, Eqs. 7 and 8."""
    script = Script(config)
    chosen = script.settings
    inputs, labels = script.labelled

    def go() -> None:
        versions = [parameters_to_vector(script.initial.parameters()).detach()]
        for client, start, staleness in script.arrivals:
            trained = script.train(versions[start], client)
            if staleness > chosen.tau_kd:
                student, version = script.loaded(trained), len(versions) - 1
                with torch.no_grad():
                    teacher = script.loaded(versions[-1])(inputs)
                span = chosen.alpha_max - chosen.alpha_min
                alpha = chosen.alpha_min + span * min(1.0, version / chosen.alpha_versions)
                optimiser = torch.optim.SGD(student.parameters(), lr=config.client_lr)
                for places in torch.randperm(len(inputs)).split(chosen.kd_batch_size):
                    outputs, t = student(inputs[places]), 3.0
                    p = (teacher[places] / t).softmax(-1)
                    kl = F.kl_div((outputs / t).log_softmax(-1), p, reduction="batchmean")
                    loss = alpha * kl + (1 - alpha) * F.cross_entropy(outputs, labels[places])
                    optimiser.zero_grad()
                    loss.backward()
                    optimiser.step()
                trained = parameters_to_vector(student.parameters()).detach()
            beta = (1 + staleness) ** -0.5
            versions.append((1 - beta) * versions[-1] + beta * trained)
            script.test(versions[-1], len(versions) - 1)

    return go


def fedrevive(config: Config) -> Callable[[], None]:
    """Return a plain script of FedRevive, §2, with a generator of images.

    Warm-up is left out, so a run should have none.
    """
    script = Script(config)
    chosen = script.settings
    spec = script.task.input_spec
    low, high = spec.low, spec.high

    def proportions(module: nn.Module) -> Tensor:
        with torch.no_grad():
            return (module(torch.randn(PROBES, *spec.shape)) / chosen.t_probe).softmax(-1).mean(0)

    def features(module: nn.Module, inputs: Tensor) -> tuple[Tensor, Tensor]:
        hidden = module[:-1](inputs)
        return module[-1](hidden), torch.stack([hidden.mean(0), hidden.var(0)])

    def synthesise(teachers: list, generator: nn.Module, student: nn.Module, weights: Tensor) -> tuple[Tensor, Tensor]:
        made = copy.deepcopy(generator)
        labels = torch.randint(spec.num_classes, (FedRevive.synth_batch_size,))
        noise = torch.randn(FedRevive.synth_batch_size, chosen.nz, requires_grad=True)
        embeddings = torch.randn(spec.num_classes, chosen.nz, requires_grad=True)
        groups = [{"params": made.parameters()}, {"params": [noise, embeddings], "lr": chosen.latent_lr}]
        optimiser, best, lowest = torch.optim.Adam(groups, lr=chosen.generator_lr, betas=(0.5, 0.999)), None, math.inf
        for _ in range(chosen.k_synth):
            inputs = low + (high - low) * made(noise + CLASS_WEIGHT * embeddings[labels])
            answers = [features(module, inputs) for _, module, _ in teachers]
            logits = torch.stack([rows for rows, _ in answers])
            mean = (weights[:, labels, None] * logits).sum(0)
            target = F.cross_entropy(mean, labels)
            feature = sum((own - wanted).norm() for (_, own), (*_, wanted) in zip(answers, teachers, strict=True))
            ours = student(inputs).log_softmax(-1)
            adversarial = -F.kl_div(ours, mean.softmax(-1), reduction="batchmean")
            loss = target + chosen.alpha_feat * feature + ALPHA_ADV * adversarial
            if loss.item() < lowest:
                best, lowest = inputs.detach(), loss.item()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        with torch.no_grad():
            for slow, fast in zip(generator.parameters(), made.parameters(), strict=True):
                slow.lerp_(fast, META_RATE)
        return best, labels

    def go() -> None:
        versions = [parameters_to_vector(script.initial.parameters()).detach()]
        generator, teachers = image_generator(spec.shape, chosen.nz, chosen.ngf), deque(maxlen=chosen.num_teachers)
        proxies: dict[int, Tensor] = {}
        pool, classes = torch.zeros(0, *spec.shape), torch.zeros(0, dtype=torch.int64)
        for number, (client, start, staleness) in enumerate(script.arrivals):
            trained = script.train(versions[start], client)
            module = script.loaded(trained)
            with torch.no_grad():
                _, found = features(module, script.task.inputs[script.parts[client]])
            proxies.setdefault(client, proportions(module))
            teachers.append((client, module, found))
            shares = torch.stack([proxies[one] for one, *_ in teachers])
            x = versions[-1]
            if number % FedRevive.t_gen == 0:
                made, labels = synthesise(list(teachers), generator, script.loaded(x), shares / shares.sum(0))
                pool, classes = (
                    torch.cat([pool, made])[-POOL_SIZE:],
                    torch.cat([classes, labels])[-POOL_SIZE:],
                )
            student, size = script.loaded(x), chosen.kd_batch_size
            beta = 0.5 * (1 - math.cos(math.pi * min(1.0, staleness / (2 * chosen.s_max))))
            if beta:
                optimiser = torch.optim.Adam(student.parameters(), lr=chosen.kd_lr, weight_decay=FedRevive.weight_decay)
                batches, answers = [], []
                for (_, teacher, _), share in zip(teachers, shares, strict=True):
                    own = pool[torch.multinomial(share[classes], chosen.k_kd * size, replacement=True)]
                    batches.append(own.unflatten(0, (chosen.k_kd, size)))
                    with torch.no_grad():
                        answers.append(teacher(own).unflatten(0, (chosen.k_kd, size)))
                for step in range(chosen.k_kd):
                    inputs = torch.cat([own[step] for own in batches])
                    wanted = torch.cat([own[step] for own in answers]).softmax(-1)
                    loss = F.kl_div(student(inputs).log_softmax(-1), wanted, reduction="batchmean")
                    optimiser.zero_grad()
                    loss.backward()
                    optimiser.step()
            distilled = parameters_to_vector(student.parameters()).detach() - x
            versions.append(x + config.server_lr * ((1 - beta) * (trained - versions[start]) + beta * distilled))
            script.test(versions[-1], len(versions) - 1)

    return go


SCRIPTS = {"fedecho": fedecho, "fedadt": fedadt, "fedrevive": fedrevive}

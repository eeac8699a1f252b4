"""Trackers: they change nothing that a network computes, record what BatchNorm would keep, and begin anew each time."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from asyncfl_lite import Config
from asyncfl_lite.models import CNN, ResNet
from asyncfl_lite.models.features import keeps_statistics, outputs_and_statistics, stored_statistics
from asyncfl_lite.models.images import FEMNISTCNN, Tracker, only_tracks
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.runs.assembly import method_for
from asyncfl_lite.runs.run import Run

IMAGES = torch.randn(6, 1, 12, 12, generator=torch.Generator().manual_seed(1))
LABELS = torch.arange(6) % 3
SPECS = [CNN(channels=(2, 4)), ResNet(width=2, blocks=(1, 1), norm="none"), FEMNISTCNN(scale=0.1)]


def built(spec, norm):
    torch.manual_seed(0)
    return VectorModel(spec.model_copy(update={"norm": norm}).build((1, 12, 12), 3))


def are_new(buffers: torch.Tensor, model: VectorModel) -> bool:
    return torch.equal(buffers, model.variance_mask.to(buffers))


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: type(spec).__name__)
def test_a_network_with_trackers_is_one_without_normalisation(spec):
    """Same outputs, gradients and number of parameters, bit by bit, in training and in use."""
    tracked, plain = built(spec, "tracker"), built(spec, "none")
    x, buffers = tracked.flatten()
    assert torch.equal(x, plain.flatten()[0]) and keeps_statistics(tracked) and not keeps_statistics(plain)

    def loss(outputs):
        return nn.functional.cross_entropy(outputs, LABELS)

    for train in (False, True):
        (value, gradient), (other, its) = (
            tracked.gradient(x, IMAGES, loss, buffers, train=train),
            plain.gradient(x, IMAGES, loss, train=train),
        )
        assert torch.equal(value, other) and torch.equal(gradient, its)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: type(spec).__name__)
def test_what_a_tracker_records(spec):
    """A tenth of each minibatch's mean and biased variance, of the convolutions' outputs, in training alone."""
    model = built(spec, "tracker")
    x, buffers = model.flatten()
    assert are_new(buffers, model)
    layers = outputs_and_statistics(model, x, IMAGES, buffers)[1]
    model(x, IMAGES, buffers)
    assert are_new(buffers, model)
    model(x, IMAGES, buffers, train=True)
    mean, variance = stored_statistics(model, buffers)
    wanted = torch.cat(layers, dim=-1)
    torch.testing.assert_close(mean, 0.1 * wanted[0])
    torch.testing.assert_close(variance, 0.9 + 0.1 * wanted[1])


pytestmark = pytest.mark.usefixtures("quick_syntheses")
CONFIG = {
    "task": "digits", "model": "cnn", "model_settings": {"channels": [2, 2], "norm": "tracker"}, "clients": 4,
    "concurrency": 3, "buffer_size": 1, "rounds": 5, "local_steps": 2, "batch_size": 4, "eval_every": 5,
}  # fmt: skip
OF_FEDREVIVE = {
    "settings": {"freeze_rounds": 0, "synthesis_only_rounds": 0, "k_kd": 1, "kd_batch_size": 2, "nz": 4,
                 "ngf": 2, "kd_lr": 0.01}
}  # fmt: skip


@pytest.fixture(params=["fedrevive", "dd_fedrevive", "fedbuff", "fedavg", "fedadt", "fedecho"])
def watched(request):
    """A finished run of a method, with the statistics with which jobs began, were reported, and versions were made."""
    more = OF_FEDREVIVE if request.param == "fedrevive" else {}
    more |= {"scheduling": "rounds"} if request.param == "fedavg" else {}
    run = Run(Config(**CONFIG, algorithm=request.param, **more))
    seen = SimpleNamespace(run=run, begun=[], reported=[], versions=[])
    train, receive = run.train, run.algorithm.receive

    def noted(update):
        seen.reported.append(update.buffers)
        receipt = receive(update)
        seen.versions.append(run.algorithm.buffers)
        return receipt

    run.algorithm.receive = noted
    run.train = lambda jobs: seen.begun.extend(job.start_buffers for job in jobs) or train(jobs)
    run.finish()
    return seen


def test_every_job_and_every_version_begins_anew(watched):
    """Whatever the method does with statistics: the authors' code resets them before training and after aggregation."""
    model = watched.run.model
    assert len(watched.begun) >= len(watched.versions) >= watched.run.algorithm.version == 5
    assert all(are_new(buffers, model) for buffers in [*watched.begun, *watched.versions])
    assert not any(are_new(buffers, model) for buffers in watched.reported)
    if watched.run.config.algorithm == "fedrevive":  # the feature term compares with what clients' trackers recorded
        last = watched.run.algorithm.teachers[-1]
        assert torch.equal(last.features, stored_statistics(model, last.buffers))
        assert last.buffers.equal(watched.reported[-1]) and len(watched.run.algorithm.pool)


@pytest.mark.parametrize("mode", ["avg", "delta", "freeze"])
def test_a_run_treats_only_trackers_so(mode):
    """Neither BatchNorm beside trackers, nor BatchNorm alone, nor a network without statistics."""
    for layers, wanted in [
        ([Tracker(1)], True), ([Tracker(1), nn.BatchNorm2d(1)], False), ([nn.BatchNorm2d(1)], False), ([], False),
    ]:  # fmt: skip
        model = VectorModel(nn.Sequential(*layers, nn.Conv2d(1, 1, 1)))
        config = Config(**CONFIG, algorithm="fedbuff", bn_mode=mode)
        assert only_tracks(model) is wanted and method_for(config, model).bn_mode == ("freeze" if wanted else mode)

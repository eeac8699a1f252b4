"""Feature statistics φ: which layers, which numbers, nothing is left behind. Trackers change nothing that is computed,
record what BatchNorm would keep, and begin anew each time.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from asyncfl_lite import Config
from asyncfl_lite.clients.cohorts import LocalTraining
from asyncfl_lite.models import CNN, MLP, ResNet
from asyncfl_lite.models.base import InputSpec
from asyncfl_lite.models.features import (
    feature_statistics,
    keeps_statistics,
    outputs_and_statistics,
    stacked_outputs_and_statistics,
    stored_statistics,
)
from asyncfl_lite.models.images import FEMNISTCNN, Tracker, only_tracks
from asyncfl_lite.models.text import TextTransformer
from asyncfl_lite.models.transformers import T5
from asyncfl_lite.models.vectors import VectorModel
from asyncfl_lite.runs.assembly import method_for
from asyncfl_lite.runs.run import Run
from asyncfl_lite.simulator.jobs import Job

IMAGES = torch.randn(7, 1, 8, 8, generator=torch.Generator().manual_seed(1))
TOKENS = torch.randint(0, 50, (7, 6), generator=torch.Generator().manual_seed(1))
TEXT = TextTransformer(width=8, layers=1)


def started(spec, inputs):
    torch.manual_seed(0)
    model = VectorModel(spec.build_for(InputSpec(tuple(inputs.shape[1:]), 10, vocabulary=50)))
    return model, *model.flatten()


def test_the_numbers_of_a_linear_layer():
    model = VectorModel(nn.Sequential(nn.Linear(1, 2, bias=False), nn.ReLU(), nn.Linear(2, 2)))
    x, _ = model.flatten()
    x[:2] = torch.tensor([2.0, -1.0])
    _, (layer,) = outputs_and_statistics(model, x, torch.tensor([[1.0], [3.0]]))
    torch.testing.assert_close(layer, torch.tensor([[4.0, -2.0], [4.0, 1.0]]))  # of (2, 6) and (-1, -3), before ReLU


def test_the_numbers_of_a_normalisations_inputs():
    model = VectorModel(nn.Sequential(nn.GroupNorm(1, 1), nn.Flatten(), nn.Linear(4, 2)))
    x, _ = model.flatten()
    _, (layer,) = outputs_and_statistics(model, x, torch.tensor([1.0, 2.0, 3.0, 4.0, 1, 2, 3, 8]).view(2, 1, 2, 2))
    torch.testing.assert_close(layer, torch.tensor([[3.0], [4.5]]))  # over samples and positions


def t5(trained_layers=None):
    """A T5, and its φ of the tokens."""
    torch.manual_seed(0)
    spec = T5(width=8, layers=3, trained_layers=trained_layers)
    module = spec.build_for(InputSpec((6,), 10, vocabulary=50)).eval()
    model = VectorModel(module)
    return module, outputs_and_statistics(model, model.flatten()[0], TOKENS)[1]


def test_t5_is_looked_at_where_its_head_reads():
    """Appendix I: hidden states at the position of the classification head, as `transformers` itself returns them."""
    module, seen = t5()
    _, partly_frozen = t5(trained_layers=1)
    torch.testing.assert_close(partly_frozen, seen)
    embedded = module.encoder.get_input_embeddings()(TOKENS)
    embedded = torch.cat([module.prediction_token["embedding"].expand(len(TOKENS), 1, -1), embedded], dim=1)
    mask = torch.nn.functional.pad(TOKENS != 0, (1, 0), value=True)
    with torch.no_grad():
        answers = module.encoder(inputs_embeds=embedded, attention_mask=mask, output_hidden_states=True)
    states = answers.hidden_states[1:-1]  # embeddings come first; the last layer's are normalised
    assert len(seen) == len(states) + 1
    for layer, hidden in zip(seen, states, strict=False):
        variance, mean = torch.var_mean(hidden[:, 0], dim=0, correction=0)
        torch.testing.assert_close(layer, torch.stack([mean, variance]), rtol=1e-4, atol=1e-5)
        assert not torch.allclose(layer[0], hidden.mean((0, 1)), atol=1e-3)  # other tokens' are something else


def test_text_features_reach_made_up_embeddings():
    model, x, _ = started(TEXT, TOKENS)
    embeddings = torch.randn(5, 6, 8, requires_grad=True)
    _, (layer,) = outputs_and_statistics(model, x, embeddings)
    layer.square().sum().backward()
    assert (embeddings.grad.abs().sum((0, 2)) > 0).all()  # every token acts on the first one


@pytest.mark.parametrize("spec", [CNN(norm="batch"), ResNet(width=2, norm="batch")], ids=["cnn", "resnet"])
def test_what_batchnorm_stores_is_in_the_same_order(spec):
    model, x, buffers = started(spec, IMAGES)
    assert keeps_statistics(model)
    with pytest.raises(ValueError, match="^buffers: "):
        feature_statistics(model, x, IMAGES)
    kept = buffers.clone()
    for _ in range(300):  # running statistics forget their start
        model(x, IMAGES, kept, train=True)
    _, layers = outputs_and_statistics(model, x, IMAGES, kept)
    wanted = stored_statistics(model, kept)
    mean, variance = torch.cat(layers, dim=-1)
    torch.testing.assert_close(feature_statistics(model, x, IMAGES[:0], kept), wanted)  # no sample is looked at
    if isinstance(spec, CNN):  # the first layer's input is the same in both modes
        first = layers[0].shape[-1]
        torch.testing.assert_close(wanted[0, :first], mean[:first], rtol=1e-4, atol=1e-5)
        positions = len(IMAGES) * 64
        unbiased = variance[:first] * positions / (positions - 1)
        torch.testing.assert_close(wanted[1, :first], unbiased, rtol=1e-4, atol=1e-5)
    assert wanted.shape == (2, len(mean))


def test_gradient_reaches_the_inputs_and_reports_have_none():
    model, x, _ = started(MLP(), IMAGES)
    inputs = IMAGES.clone().requires_grad_()
    _, (layer,) = outputs_and_statistics(model, x, inputs)
    layer.square().sum().backward()
    assert inputs.grad.abs().sum() > 0
    assert not feature_statistics(model, x.requires_grad_(), IMAGES).requires_grad


def test_clients_report_them():
    run = Run(Config(task="digits", clients=8, concurrency=4, seed=3))
    training = LocalTraining(local_steps=1, reports=frozenset({"features"}))
    run.trainer.training = training
    job = Job(0.0, 0, client=2, number=0, start_version=0, dispatched_at=0.0, start=run.algorithm.x)
    (outcome,) = run.trainer([job])
    inputs = run.task.inputs[torch.from_numpy(run.parts[2])]
    expected = feature_statistics(run.model, job.start + outcome.delta, inputs)
    torch.testing.assert_close(outcome.features, expected, rtol=0, atol=0)
    assert outcome.features.shape == (2, 64)


def test_several_models_side_by_side_have_the_features_of_each():
    layers = nn.Flatten(), nn.Linear(12, 7), nn.Tanh(), nn.Dropout(), nn.Linear(7, 6, bias=False), nn.Linear(6, 4)
    model = VectorModel(nn.Sequential(*layers).double())
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, model.num_parameters, generator=generator, dtype=torch.float64)
    inputs = torch.randn(3, 9, 3, 4, generator=generator, dtype=torch.float64)
    outputs, statistics = stacked_outputs_and_statistics(model, x, inputs)
    assert [tuple(layer.shape) for layer in statistics] == [(3, 2, 7), (3, 2, 6)]
    for row in range(3):
        alone, features = outputs_and_statistics(model, x[row], inputs[row])
        torch.testing.assert_close(outputs[row], alone)
        torch.testing.assert_close([layer[row] for layer in statistics], features)


PICTURES = torch.randn(6, 1, 12, 12, generator=torch.Generator().manual_seed(1))
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
            tracked.gradient(x, PICTURES, loss, buffers, train=train),
            plain.gradient(x, PICTURES, loss, train=train),
        )
        assert torch.equal(value, other) and torch.equal(gradient, its)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: type(spec).__name__)
def test_what_a_tracker_records(spec):
    """A tenth of each minibatch's mean and biased variance, of the convolutions' outputs, in training alone."""
    model = built(spec, "tracker")
    x, buffers = model.flatten()
    assert are_new(buffers, model)
    layers = outputs_and_statistics(model, x, PICTURES, buffers)[1]
    model(x, PICTURES, buffers)
    assert are_new(buffers, model)
    model(x, PICTURES, buffers, train=True)
    mean, variance = stored_statistics(model, buffers)
    wanted = torch.cat(layers, dim=-1)
    torch.testing.assert_close(mean, 0.1 * wanted[0])
    torch.testing.assert_close(variance, 0.9 + 0.1 * wanted[1])


CONFIG = {
    "task": "digits", "model": "cnn", "model_settings": {"channels": [2, 2], "norm": "tracker"}, "clients": 4,
    "concurrency": 3, "buffer_size": 1, "rounds": 5, "local_steps": 2, "batch_size": 4, "eval_every": 5,
}  # fmt: skip
OF_FEDREVIVE = {
    "settings": {"freeze_rounds": 0, "synthesis_only_rounds": 0, "k_kd": 1, "kd_batch_size": 2, "nz": 4,
                 "ngf": 2, "kd_lr": 0.01}
}  # fmt: skip


@pytest.fixture(params=["fedrevive", "dd_fedrevive", "fedbuff", "fedavg", "fedadt", "fedecho"])
def watched(request, quick_syntheses):
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

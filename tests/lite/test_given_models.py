"""Modules that users pass to a run: five methods on four kinds of module, what is recorded of them, and mistakes."""

from __future__ import annotations

import pickle

import pytest
import torch
from test_same_bits import QUICK
from torch import nn

from asyncfl_lite import Config, Run, Task, load_result, results_table, run, run_many, schedule
from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.models import MODELS, ModelSpec
from asyncfl_lite.models.own_models import GivenModel
from asyncfl_lite.testing import check_model
from conftest import die_after, line

SMALL = {"partition": "iid", "clients": 4, "concurrency": 2, "buffer_size": 2, "rounds": 1, "client_lr": 0.05,
         "local_steps": 1, "batch_size": 5, "initial": "random"}  # fmt: skip
DRAWN = torch.Generator().manual_seed(0)
IMAGES, IDS = torch.rand(32, 1, 8, 8, generator=DRAWN), torch.randint(1, 30, (32, 6), generator=DRAWN)
LABELS = torch.arange(32) % 3
IDS[::2, 4:] = 0  # padding


def task_of(inputs: torch.Tensor) -> Task:
    vocabulary = None if inputs.is_floating_point() else 30
    return Task.from_tensors(
        inputs[:24], LABELS[:24], inputs[24:], LABELS[24:], unlabelled=inputs[:8], vocabulary=vocabulary
    )


def cnn() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3))


def resnet() -> nn.Module:
    torchvision = pytest.importorskip("torchvision")
    whole = torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=3)
    whole.conv1 = nn.Conv2d(1, 64, 3, padding=1, bias=False)
    whole.layer2 = whole.layer3 = whole.layer4 = nn.Identity()
    whole.fc = nn.Linear(64, 3)
    return whole


def classifier() -> nn.Module:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    return transformers.BertForSequenceClassification(transformers.BertConfig(vocab_size=30, num_labels=3, **sizes))


def frozen() -> nn.Module:
    """Its first layer stays."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 6).requires_grad_(False), nn.ReLU(), nn.Linear(6, 3))


def peft() -> nn.Module:
    library = pytest.importorskip("peft")
    return library.get_peft_model(classifier(), library.LoraConfig(r=2, task_type="SEQ_CLS"))


QUICK = {"fedecho": {"settings": {"distill_samples": 8}}, "fedrevive": QUICK["fedrevive"]}
METHODS = ("fedbuff", "fedecho", "kuiper", "fedadt", "fedrevive")
KINDS = {"cnn": cnn, "resnet": resnet, "classifier": classifier, "frozen": frozen, "peft": peft}


@pytest.mark.filterwarnings("ignore:model. .* is trained one by one")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_a_method_trains_a_module(method, kind, tmp_path):
    module = KINDS[kind]()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    trained = {name for name, parameter in module.named_parameters() if parameter.requires_grad}
    options = {**SMALL, **QUICK.get(method, {}), "buffer_size": 2 if ALGORITHMS.get(method).buffered else 1}
    task = task_of(IDS if kind in ("classifier", "peft") else IMAGES)
    result = run(Config(algorithm=method, **options), task=task, model=module)
    assert result.summary["versions"] == 1 and result.summary["parameters"] == sum(
        parameter.numel() for parameter in module.parameters() if parameter.requires_grad
    )
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())  # the user's own
    after = result.model()
    assert type(after) is type(module)
    moved = {name for name, value in after.named_parameters() if not torch.equal(value, before[name])}
    assert moved and moved <= trained
    loaded = load_result(result.save(tmp_path), model=module).model()
    assert torch.equal(_outputs(loaded, task), _outputs(after, task))


def _outputs(module: nn.Module, task: Task) -> torch.Tensor:
    outputs = module(task.test_inputs)
    return getattr(outputs, "logits", outputs)


DIGITS = Config(**{**SMALL, "rounds": 2, "checkpoint_every": 1})


def net() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))


def test_a_module_gives_every_seed_its_weights_and_a_function_gives_each_its_own(tmp_path):
    module, seeds = net(), [DIGITS.with_seed(seed) for seed in (0, 1)]
    kept = [tmp_path / str(seed) for seed in (0, 1)]
    together = run_many(seeds, model=module, folders=kept)
    assert torch.equal(run(seeds[1].replace(checkpoint_every=None), model=module).x, together[1].x)
    assert together[0].config.model_settings._given is together[1].config.model_settings._given  # one copy
    assert "model_settings.digest" not in results_table(together)
    started = [Run(config, model=model).algorithm.x for model in (module, net) for config in seeds]
    assert torch.equal(started[0], started[1]) and not torch.equal(started[2], started[3])
    again = run_many(seeds, model=module, folders=kept)  # read, not run
    assert [one.timing for one in again] == [one.timing for one in together]


def test_a_run_is_another_one_with_another_module():
    module = net()
    hashes = [Run(DIGITS, model=model).config.hash for model in (module, module, net(), net, net, lambda: net())]
    assert hashes[0] == hashes[1] and hashes[3] == hashes[4] == hashes[5]
    assert len(set(hashes)) == 3


def test_a_module_s_name_is_recorded_and_the_module_is_asked_for(tmp_path):
    result = run(DIGITS.replace(checkpoint_every=None), model=net)
    assert result.config.as_dict()["model_settings"].keys() == {"name", "digest"}
    assert result.config.model_settings.title == "Sequential"
    assert run(result.config).summary == result.summary  # here it is still at hand
    assert pickle.loads(pickle.dumps(result.config)) == result.config
    assert len(schedule(result.config).updates) == 4
    loaded = load_result(result.save(tmp_path))
    assert loaded.config == result.config and loaded.plot()
    for call in (loaded.model, lambda: run(loaded.config), lambda: run(Config(model="given"))):
        assert line(call).startswith("model: the configuration does not contain your own module")
    assert "'Sequential'" in line(loaded.model) and "load_result(folder, model=module)" in line(loaded.model)
    assert "do not fit the model; they lack weight" in line(load_result(tmp_path, model=nn.Linear(64, 10)).model)
    run(DIGITS.replace(checkpoint_every=None)).save(tmp_path, force=True)
    assert (
        line(lambda: load_result(tmp_path, model=net))
        == f"model: the run in {tmp_path} has the model 'mlp', which needs no module"
    )


def test_an_interrupted_run_goes_on_only_with_its_module(tmp_path):
    module, path = net(), tmp_path / "run.pt"
    die_after(3, DIGITS, path, model=module)
    config = Config.from_mapping(Run(DIGITS, model=module).config.as_dict())  # as it is read from a file
    assert "'Sequential'" in line(lambda: run(config, checkpoint=path)) and path.exists()
    with pytest.raises(ValueError, match="is the checkpoint of another configuration .model_settings differ"):
        run(DIGITS, model=net(), checkpoint=path)
    again = run(DIGITS, model=module, checkpoint=path)
    assert torch.equal(again.x, run(DIGITS.replace(checkpoint_every=None), model=module).x)


MISTAKES = {
    "a name": ("mlp", "must be a torch.nn.Module, or a function without arguments that returns one, got 'mlp'"),
    "arguments": (nn.Linear, "Linear() cannot be built without arguments (TypeError: "),
    "no module": (dict, "dict() must return a torch.nn.Module, got dict"),
    "shape": (
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 9)),
        "'Sequential' must return logits (2, 10), got (2, 9)",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line(mistake):
    model, said = MISTAKES[mistake]
    assert line(lambda: Run(DIGITS, model=model)).startswith(f"model: {said}")


HALVES = {
    "ids": {},
    "with": {"build_for": lambda _, inputs: nn.Sequential(nn.EmbeddingBag(inputs.vocabulary, 4), nn.Linear(4, 3))},
    "few": {"build": lambda _, shape, classes: nn.Sequential(nn.EmbeddingBag(29, 4), nn.Linear(4, classes))},
}


@pytest.mark.filterwarnings("ignore:model. .* is trained one by one")
def test_a_token_model_may_define_either_half(monkeypatch):
    """Half of what the package's own define is enough; what is missing is said before the run."""
    for name, members in HALVES.items():
        monkeypatch.setitem(MODELS._entries, name, type(name, (ModelSpec,), {"takes": "tokens", **members}))
    task, options = task_of(IDS), {**SMALL, "rounds": 1}
    assert run(Config(**options, model="with"), task=task).summary["versions"] == 1
    both = "build(input_shape, num_classes) or build_for(inputs), which return a torch.nn.Module"
    assert line(lambda: Run(Config(**options, model="ids"), task)) == f"model: 'ids' must define {both}"
    told = line(lambda: Run(Config(**options, model="few"), task))
    assert told.endswith("; it must take all 30 tokens of the task, inputs.vocabulary in build_for(inputs)")


def test_padding_is_masked_for_transformers_and_their_own_callers_are_left_alone():
    module = classifier()
    spec = GivenModel.of(module)
    made = spec.build_for(task_of(IDS).input_spec).eval()
    mask = (IDS != 0).long()
    with torch.no_grad():
        theirs = module.eval()(input_ids=IDS, attention_mask=mask).logits
        assert torch.equal(made(IDS).logits, theirs)
        assert torch.equal(made(input_ids=IDS, attention_mask=mask).logits, theirs)
        assert not torch.equal(made(input_ids=IDS).logits, theirs)
    assert check_model(module, task_of(IDS))["made-up text"] == "" and check_model(cnn, task_of(IMAGES))


def test_a_changed_configuration_is_the_one_that_one_would_have_written():
    config = Config(task="digits", clients=30, partition="dirichlet_flgo", alpha=3.0, delay="uniform",
                    delay_settings={"low": 1, "high": 3})  # fmt: skip
    given = {"clients": 30, "partition": "dirichlet_flgo", "alpha": 3.0}
    delay = {"delay": "uniform", "delay_settings": {"low": 1, "high": 9}}
    assert config.replace() == config and config.replace(seed=4) == config.with_seed(4)
    assert config.replace(algorithm="fedasync", delay_settings={"high": 9}) == Config(
        algorithm="fedasync", **given, **delay
    )
    assert config.replace(delay="constant", versions=7) == Config(**given, delay="constant", rounds=7)
    assert config.replace(partition="iid").alpha is None and config.replace(partition="dirichlet_class").alpha == 3.0
    assert config.replace(local_steps=3).local_epochs is None and config.replace(horizon=5.0).rounds is None
    assert config.replace(clients=4).concurrency == 4
    assert config.on_own_task("mine").replace(seed=1).own_task == "mine"
    assert config.on_own_task("mine").replace(task="mnist5k").own_task is None
    assert line(lambda: config.replace(client=3)).startswith("setting: 'client' is not known; did you mean 'clients'?")

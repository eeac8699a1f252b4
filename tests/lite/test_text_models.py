"""Models for text: BERT and T5 with a prediction token, from sizes and from checkpoints, and the LSTM."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.func import grad, vmap
from torch.nn import functional

from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.models.base import InputSpec, initial_model
from asyncfl_lite.models.text import LSTM
from asyncfl_lite.models.transformers import T5, Bert
from asyncfl_lite.models.vectors import VectorModel

TEXTS = InputSpec((10,), 4, vocabulary=30)
SMALL = {"width": 16}
LETTERS = InputSpec((12,), 30, vocabulary=30)


def ids(count: int = 5, length: int = 10, low: int = 3, seed: int = 0) -> torch.Tensor:
    return torch.randint(low, 30, (count, length), generator=torch.Generator().manual_seed(seed))


@pytest.fixture(params=[Bert(**SMALL), T5(**SMALL)], ids=["bert", "t5"])
def model(request) -> VectorModel:
    return VectorModel(initial_model(request.param, TEXTS, 0))


def test_one_row_of_logits_a_text_without_dropout_whatever_it_is_padded_with(model):
    x, _ = model.flatten()
    outputs = model(x, ids())
    assert outputs.shape == (5, 4) and model.num_buffers == 0
    assert not torch.allclose(outputs, model(x, ids(seed=1)))
    assert torch.equal(model(x, ids(), train=True), outputs)
    padded = torch.cat([ids(length=6), torch.zeros(5, 4, dtype=torch.int64)], dim=1)
    torch.testing.assert_close(model(x, padded), model(x, ids(length=6)))
    assert not torch.allclose(model(x, padded), model(x, padded.masked_fill(padded == 0, 3)))


def test_embeddings_in_the_place_of_tokens(model):
    x, _ = model.flatten()
    layer = next(name for name, part in model.module.named_modules() if isinstance(part, nn.Embedding))
    table = model.unflatten(x)[f"{layer}.weight"]  # as FedRevive's soft prompts find it
    assert table.shape == (30, 16)
    embedded = table[ids()].detach().requires_grad_()
    torch.testing.assert_close(model(x, embedded), model(x, ids()))
    (gradient,) = torch.autograd.grad(model(x, embedded).square().sum(), embedded)
    assert (gradient.abs().sum(-1) > 0).all()


def test_a_cohort_has_the_gradients_of_its_clients(model):
    x, _ = model.flatten()
    inputs, labels = torch.stack([ids(seed=seed) for seed in range(3)]), torch.randint(0, 4, (3, 5))
    inputs[:, :2, 7:] = 0
    models = torch.stack([x, 0.9 * x, 1.1 * x])

    def loss(x, inputs, labels):
        return functional.cross_entropy(model(x, inputs, train=True), labels)

    together = vmap(grad(loss))(models, inputs, labels)
    for row in range(3):
        alone = grad(loss)(models[row], inputs[row], labels[row])
        assert alone.norm() > 1e-3
        torch.testing.assert_close(together[row], alone, rtol=1e-3, atol=1e-6)


def on_meta(spec, inputs: InputSpec) -> int:
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in spec.build_for(inputs).parameters())


def test_the_papers_sizes():
    base = on_meta(Bert(width=768, layers=12), InputSpec((511,), 2, vocabulary=30522))
    assert base == 109_482_240 + 2 * 768 + 2 + 768  # BertForSequenceClassification and the prediction token
    small = on_meta(T5(width=512, layers=6), InputSpec((127,), 20, vocabulary=32128))
    assert small / 1e6 == pytest.approx(35.6, abs=0.05)  # as FedRevive §3 prints it


def tokeniser(folder, kind: str):
    """Save a tokeniser of 26 letters and three special tokens, in BERT's, RoBERTa's or T5's manner."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = {
        "bert": {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]"},
        "roberta": {"cls_token": "<s>", "pad_token": "<pad>", "sep_token": "</s>", "unk_token": "<unk>"},
        "t5": {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"},
    }[kind]
    words = [*special.values(), *"abcdefghijklmnopqrstuvwxyz"]
    vocabulary = {word: number for number, word in enumerate(words)}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token=special["unk_token"]))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.enable_truncation(3)
    made.enable_padding()
    PreTrainedTokenizerFast(tokenizer_object=made, **special).save_pretrained(folder)
    return len(words)


def saved(folder, kind: str):
    """Save a tiny checkpoint with dropout in its configuration; return the reference for its classifier."""
    import transformers

    size = tokeniser(folder, kind)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    torch.manual_seed(1)
    if kind == "t5":
        config = transformers.T5Config(vocab_size=size, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2)
        whole = transformers.T5ForConditionalGeneration(config)
        whole.save_pretrained(folder)
        return whole.get_encoder().eval()
    if kind == "roberta":
        config = transformers.RobertaConfig(vocab_size=size, max_position_embeddings=24, pad_token_id=1, **sizes)
        whole = transformers.RobertaModel(config)
        whole.save_pretrained(folder)
        return whole.eval()
    config = transformers.BertConfig(vocab_size=size, max_position_embeddings=24, num_labels=3, **sizes)
    whole = transformers.BertForSequenceClassification(config)
    whole.save_pretrained(folder)
    return whole.eval()


def test_a_bert_checkpoint_is_the_usual_classifier(tmp_path):
    reference = saved(tmp_path, "bert")
    built = initial_model(Bert(checkpoint=str(tmp_path)), InputSpec((8,), 3, vocabulary=30), 0)
    built.head[2].load_state_dict(reference.classifier.state_dict())
    texts = torch.tensor([[5, 6, 7, 2, 8, 9, 2, 0], [4, 2, 5, 6, 7, 8, 2, 0]])
    whole = functional.pad(texts, (1, 0), value=1)  # [CLS] before it
    segments = torch.tensor([[0, 0, 0, 0, 0, 1, 1, 1, 0], [0, 0, 0, 1, 1, 1, 1, 1, 0]])
    with torch.no_grad():
        expected = reference(input_ids=whole, attention_mask=(whole != 0).long(), token_type_ids=segments).logits
        torch.testing.assert_close(built.eval()(texts), expected)
        torch.testing.assert_close(built.train()(texts), expected)  # the configuration's dropout is off


@pytest.mark.parametrize("kind", ["t5", "roberta"])
def test_other_checkpoints_keep_their_weights_and_padding(tmp_path, kind):
    reference = saved(tmp_path, kind)
    spec = {"t5": T5, "roberta": Bert}[kind](checkpoint=str(tmp_path))
    built = initial_model(spec, InputSpec((8,), 3, vocabulary=29 if kind == "t5" else 30), 0)
    weights = {key: value for key, value in reference.state_dict().items() if "pooler" not in key}
    held = {key.removeprefix("encoder."): value for key, value in built.encoder.state_dict().items()}
    for key, value in weights.items():
        torch.testing.assert_close(held[key.removeprefix("encoder.")], value)
    padding = {"t5": 0, "roberta": 1}[kind]
    texts = torch.randint(5, 29, (3, 5))
    padded = torch.cat([texts, torch.full((3, 3), padding)], dim=1)
    with torch.no_grad():
        torch.testing.assert_close(built(padded), built(texts))
        torch.testing.assert_close(built.train()(padded), built.eval()(padded))


def test_what_does_not_fit_a_checkpoint_is_one_line(tmp_path):
    saved(tmp_path, "bert")
    spec = Bert(checkpoint=str(tmp_path))
    with pytest.raises(ConfigError, match="^checkpoint: .* knows 30 tokens, but the task's texts use 4000"):
        spec.build_for(InputSpec((8,), 3, vocabulary=4000))
    with pytest.raises(ConfigError, match="takes at most 24 tokens, got 25"):
        spec.build_for(InputSpec((24,), 3, vocabulary=30))
    with pytest.raises(ConfigError, match="^width: must be a multiple of 4"):
        Bert(width=10)


def test_the_lstm_predicts_at_every_position():
    model = VectorModel(initial_model(LSTM(width=16), LETTERS, 0))
    x, _ = model.flatten()
    inputs = ids(length=12, low=0)
    outputs = model(x, inputs)
    assert outputs.shape == (5, 12, 30)
    later = inputs.clone()
    later[:, 7:] = 1
    assert torch.equal(outputs[:, :7], model(x, later)[:, :7])  # it does not look ahead
    assert not torch.allclose(outputs[:, 7:], model(x, later)[:, 7:])
    torch.testing.assert_close(model(x, model.unflatten(x)["embedding.weight"][inputs]), outputs)


def test_the_lstm_is_leafs():
    built = LSTM(width=256).build_for(InputSpec((80,), 80, vocabulary=80))
    layers = 4 * 256 * (8 + 256) + 4 * 256 * (256 + 256) + 2 * 2 * 4 * 256
    assert sum(parameter.numel() for parameter in built.parameters()) == 80 * 8 + layers + 256 * 80 + 80


def test_the_lstms_gradient_reaches_the_vector():
    """PyTorch's LSTM keeps a list of its weights; a vector's must take their place in it."""
    module = initial_model(LSTM(width=8), LETTERS, 0)
    model, inputs = VectorModel(module), ids(length=12, low=0)
    x, _ = model.flatten()
    _, gradient = model.gradient(1.5 * x, inputs, lambda outputs: outputs.square().mean())
    model.load(module, 1.5 * x)
    module(inputs).square().mean().backward()
    expected = torch.cat([parameter.grad.flatten() for parameter in module.parameters()])
    torch.testing.assert_close(gradient, expected)

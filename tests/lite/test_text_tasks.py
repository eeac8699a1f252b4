"""Text tasks: sequences, tokenisers, stand-ins, and the real data sets in tiny files and in the real ones."""

from __future__ import annotations

import json
import lzma
import math
import re
from pathlib import Path

import datasets
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import _twenty_newsgroups as scikit
from sklearn.utils import Bunch
from torch.nn import functional

from asyncfl_lite.algorithms.losses import labelled_distillation_loss
from asyncfl_lite.base.data_folders import VARIABLE
from asyncfl_lite.base.errors import ConfigError, DataError
from asyncfl_lite.tasks import TASKS
from asyncfl_lite.tasks.text import base, prose
from asyncfl_lite.tasks.text.base import IGNORED, SequenceTask, thinned, trained_tokeniser, written
from asyncfl_lite.tasks.text.files import (
    MRPC,
    Newsgroups20,
    Shakespeare,
    read_pairs,
    roles_of,
    without_header,
    without_quotes,
)
from asyncfl_lite.tasks.text.prose import SLOTS, PydocTopics, sentence_pairs
from asyncfl_reproduction.standins.text import Pairs, PydocChars, Topics20
from conftest import SHARED, needs

RNG = np.random.default_rng
SETS = ("cross", "natural", "synthetic")


def sequences(inputs: torch.Tensor, labels: torch.Tensor, **more) -> SequenceTask:
    return SequenceTask("mine", inputs, labels, inputs, labels, num_classes=7, padding=0, **more)


@st.composite
def padded(draw):
    """Token ids of 1 to 6, padded with 0, and a label for each; logits for all."""
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 1000)))
    inputs = torch.randint(1, 7, (len(lengths), 6), generator=generator)
    labels = torch.randint(0, 7, (len(lengths), 6), generator=generator)
    gone = torch.arange(6)[None] >= torch.tensor(lengths)[:, None]
    outputs = torch.randn(len(lengths), 6, 7, generator=generator, dtype=torch.float64)
    return inputs.masked_fill(gone, 0), labels.masked_fill(gone, IGNORED), outputs


@given(padded())
@settings(max_examples=40, deadline=None)
def test_a_sequence_counts_where_it_is_labelled(batch):
    inputs, labels, outputs = batch
    task = sequences(inputs, labels)
    for row, (loss, share) in enumerate(zip(task.losses(outputs, labels), task.hits(outputs, labels), strict=True)):
        expected = functional.cross_entropy(outputs[row], labels[row], ignore_index=IGNORED)
        torch.testing.assert_close(loss, expected)
        real = labels[row] != IGNORED
        assert share.item() == pytest.approx((outputs[row].argmax(-1) == labels[row])[real].double().mean().item())
    rows, answers = task.predictions(outputs, inputs), task.answers(labels)
    assert rows.shape == ((labels != IGNORED).sum(), 7) and len(answers) == len(rows)
    assert torch.equal(task.prediction_counts(inputs), (labels != IGNORED).sum(1))
    whole = functional.cross_entropy(outputs.flatten(0, 1), labels.flatten(), ignore_index=IGNORED)
    torch.testing.assert_close(functional.cross_entropy(rows, answers), whole)
    loss = labelled_distillation_loss(rows, rows, answers, 0.25)  # FedADT's, with itself as teacher
    torch.testing.assert_close(loss, 0.75 * whole)
    assert torch.equal(task.class_logits(outputs), outputs[:, -1])


def test_perplexity_is_that_of_the_metric():
    inputs, labels = torch.tensor([[1, 2]]), torch.tensor([[2, 3]])
    for metric, logits in (("accuracy", 0.0), ("perplexity", 0.0), ("perplexity", 1e4)):
        outputs = torch.zeros(1, 2, 7)
        outputs[..., 0] = logits
        scores = sequences(inputs, labels, metric=metric).evaluate(lambda _, outputs=outputs: outputs)
        assert ("perplexity" in scores) == (metric == "perplexity")
        if metric == "perplexity":
            assert scores["perplexity"] == pytest.approx(7.0 if logits == 0 else math.inf)


def test_thinned_texts_lose_tokens_and_keep_their_order():
    texts = torch.arange(3, 63).reshape(3, 20)
    texts[:, 19], texts[1, 15:] = 2, 0
    drawn = thinned(texts, 300, RNG(0), padding=0, keep=(0, 2))
    kept = [row[row != 0].tolist() for row in drawn]
    for row, tokens in zip(drawn, kept, strict=True):
        source = next(text for text in texts.tolist() if set(tokens) - {2} <= set(text))
        positions = [source.index(token) for token in tokens]
        assert positions == sorted(positions)
        assert row[len(tokens) :].eq(0).all()
    lengths = np.array([len(tokens) for tokens in kept])
    assert 0.65 < lengths.sum() / (100 * (20 + 15 + 20)) < 0.76
    assert sum(2 in tokens for tokens in kept) == 200  # the separators of both whole texts


@pytest.mark.parametrize("order", [1, 2, 3])
def test_written_texts_follow_the_chain(order):
    texts = torch.from_numpy(RNG(0).integers(0, 5, (40, 12)))
    made = written(texts, 50, RNG(1), order)
    grams = {tuple(row[k : k + order + 1]) for row in texts.tolist() for k in range(12 - order)}
    contexts = {gram[:-1] for gram in grams}
    for row in made.tolist():
        for k in range(12 - order):
            assert tuple(row[k : k + order + 1]) in grams or tuple(row[k : k + order]) not in contexts
    assert made.shape == (50, 12) and torch.equal(made, written(texts, 50, RNG(1), order))
    assert not torch.equal(made, written(texts, 50, RNG(2), order))
    assert len({tuple(row) for row in made.tolist()} - {tuple(row) for row in texts.tolist()}) > 40


WORDS = [("the cat sat on the mat",), ("the dog sat, and the cat ran!",), ("a dog ran",)] * 20


def test_a_tokeniser_cuts_pads_and_comes_back():
    tokeniser = trained_tokeniser("cats", WORDS, 100)
    rows = tokeniser([("the cat sat", "a dog ran"), ("the dog", "ran")], 8)
    assert rows.shape == (2, 8) and rows.dtype == torch.int64
    assert tokeniser.decode(rows[1]) == "the dog[SEP] ran[SEP]" and (rows[1, 5:] == 0).all()
    short = tokeniser([("the cat sat on the mat", "a dog ran")], 5)[0]
    assert short[-1] == 2 and tokeniser.decode(short) == "the cat sat on[SEP]"
    assert 1 in tokeniser([("Zürich",)], 8)[0]  # an unknown letter
    assert "the cat" in tokeniser.decode(tokeniser([("THE CAT",)], 8)[0])


def test_a_tokeniser_is_made_once_and_always_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("ASYNCFL_CACHE", str(tmp_path))
    made = trained_tokeniser("again", WORDS, 60)
    (kept,) = (tmp_path / "tokenizers").glob("again-60-*.json")
    assert trained_tokeniser("again", WORDS, 60).model.to_str() == made.model.to_str()
    content = kept.read_bytes()
    assert b'"cat"' in content
    kept.write_bytes(content.replace(b'"cat"', b'"cbt"'))  # as a flipped bit would make of it
    assert trained_tokeniser("again", WORDS, 60).model.to_str() == made.model.to_str() and kept.read_bytes() == content
    kept.unlink()
    monkeypatch.setenv("ASYNCFL_CACHE", "/proc/no/such/folder")
    assert trained_tokeniser("again", WORDS, 60).model.get_vocab() == made.model.get_vocab()
    assert trained_tokeniser("again", WORDS[:2], 60).model.get_vocab() != made.model.get_vocab()
    assert made.vocabulary <= 60


def meaning(sentence: str) -> list[int]:
    words = [word for word in sentence.split() if word not in ("the", "was", "by")]
    if "was" in sentence.split():
        words[0], words[2] = words[2], words[0]
    return [[word in group for group in slot].index(True) for word, slot in zip(words, SLOTS, strict=True)]


def test_pairs_are_labelled_by_what_they_mean():
    pairs, labels = sentence_pairs(900, RNG(0))
    for (first, second), label in zip(pairs, labels, strict=True):
        differing = sum(one != other for one, other in zip(meaning(first), meaning(second), strict=True))
        assert differing == 0 if label else differing >= 3
    assert 0.62 < np.mean(labels) < 0.71
    assert sum(first != second for (first, second), label in zip(pairs, labels, strict=True) if label) > 500
    words = [word for slot in SLOTS for group in slot for word in group]
    assert len(words) == len(set(words)) == 40


@pytest.mark.parametrize(
    ("source", "train", "test", "length", "classes"),
    [(PydocTopics(), None, None, 31, 12), (Pairs(), 4000, 1000, 19, 2), (Topics20(), 4000, 1000, 64, 20)],
    ids=["pydoc_topics", "pairs", "topics20"],
)
def test_stand_ins_for_classification(source, train, test, length, classes):
    task, again = source.load(), source.load()
    assert torch.equal(task.inputs, again.inputs) and torch.equal(task.labels, again.labels)
    if train:
        assert (len(task.labels), len(task.test_labels)) == (train, test)
    assert len(task.labels) > 1000 and 3.5 < len(task.labels) / len(task.test_labels) < 4.5
    assert task.input_shape == (length,) and task.num_classes == classes == len(task.class_names)
    assert task.labels.bincount(minlength=classes).min() > 40 and int(task.inputs.max()) < task.vocabulary
    assert task.stands_in_for and task.source and task.licence != "not stated" and task.metric == "accuracy"
    assert task.input_spec.vocabulary == task.vocabulary
    own, tested = ({tuple(row) for row in rows.tolist()} for rows in (task.inputs, task.test_inputs))
    assert len(tested & own) < 0.005 * len(tested)
    texts = {task.decode(row) for row in task.inputs[:200]}
    assert len(texts) > 190
    check_sets(task)


def check_sets(task) -> None:
    """Every unlabelled set is of the task's form, repeatable, and no test data, but for texts of nothing."""
    tested = {tuple(row) for row in task.test_inputs.tolist() if any(row[1:])}
    for name in SETS:
        drawn = task.unlabelled_set(name, 60, RNG(0))
        assert drawn.shape == (60, *task.input_shape) and drawn.dtype == torch.int64
        assert int(drawn.min()) >= 0 and int(drawn.max()) < task.vocabulary
        assert torch.equal(drawn, task.unlabelled_set(name, 60, RNG(0)))
        assert not torch.equal(drawn, task.unlabelled_set(name, 60, RNG(1)))
        rows = [tuple(row) for row in drawn.tolist()]
        assert not tested & set(rows) and len(set(rows)) > 40


def test_next_characters_stand_in():
    task = PydocChars().load()
    assert task.metric == "perplexity" and task.stands_in_for == "Shakespeare" and task.input_shape == (40,)
    assert torch.equal(task.inputs[:, 1:], task.labels[:, :-1])
    assert len(np.unique(task.owners)) == task.owners.max() + 1 >= 25
    assert task.num_classes == task.vocabulary == len(task.class_names)
    joined = "".join(task.decode(row) for row in task.inputs[task.owners == 0])
    assert joined in next(iter(prose.topics().values()))
    sizes = np.bincount(task.owners)
    assert len(task.test_inputs) / len(task.inputs) == pytest.approx(0.25, abs=0.02) and sizes.min() >= 38
    check_sets(task)


SAID = ['He said "no".', "She 'agreed\" to it", "Shares fell 3%.", "The café closed", "It rained", "They won", "Up 2"]


def write_mrpc(root: Path, train: int = 40, test: int = 12) -> Path:
    place = root / "MRPC"
    place.mkdir()
    for part, count in (("train", train), ("test", test)):
        rows = [
            (int(k % 3 > 0), 2 * k, 2 * k + 1, f"{SAID[k % 7]} {part} {k}", f"{SAID[(k + 1) % 7]} {part} {k}")
            for k in range(count)
        ]
        with (place / f"msr_paraphrase_{part}.txt").open("w", encoding="utf-8-sig", newline="") as file:
            file.write("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n")
            file.writelines("\t".join(map(str, row)) + "\r\n" for row in rows)
    return root


def test_mrpc_from_files(tmp_path, monkeypatch):
    write_mrpc(tmp_path)
    task = MRPC(folder=str(tmp_path / "MRPC"), length=33, vocabulary=200).load()
    assert task.inputs.shape == (36, 32) and len(task.test_labels) == 4
    assert task.labels.sum() + task.test_labels.sum() == 26
    texts = [task.decode(row) for row in torch.cat([task.inputs, task.test_inputs])]
    assert any('he said "no". train 0[SEP] she \'agreed" to it train 0[SEP]' in text for text in texts)
    assert len(set(texts)) == 40
    natural = {task.decode(row) for row in task.unlabelled_set("natural", 12, RNG(0))}
    assert len(natural) == 12 and all("test" in text for text in natural)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert torch.equal(MRPC(length=33, vocabulary=200).load().inputs, task.inputs)
    assert task.class_names == ("different", "same") and not task.stands_in_for


def test_words_of_pairs_are_words_even_if_they_name_nothing(tmp_path):
    path = write_mrpc(tmp_path) / "MRPC/msr_paraphrase_train.txt"
    with path.open("a", encoding="utf-8", newline="") as file:
        file.write("1\t1\t2\tnull\tNA\r\n")
    texts, labels = read_pairs(path)
    assert (texts[-1], labels[-1], len(labels)) == (("null", "NA"), 1, 41)


def test_mrpc_is_fetched_only_when_asked(tmp_path, monkeypatch):
    asked = []

    def load_dataset(*names, split):
        asked.append((*names, split))
        some = range({"train": 20, "validation": 6, "test": 8}[split])
        columns = {"sentence1": [f"{split} {k}" for k in some], "sentence2": [f"so {k}" for k in some]}
        return datasets.Dataset.from_dict({**columns, "label": [k % 2 for k in some]})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(DataError):
        MRPC(folder=str(tmp_path)).load()
    assert not asked
    task = MRPC(folder=str(tmp_path), download=True, length=20, vocabulary=200).load()
    assert {names[:2] for names in asked} == {("nyu-mll/glue", "mrpc")}
    assert (len(task.labels), len(task.test_labels)) == (20, 6)
    assert task.decode(task.inputs[3]) == "train 3[SEP] so 3[SEP]"
    write_mrpc(tmp_path)  # what is there already is not fetched
    assert len(MRPC(folder=str(tmp_path), download=True, vocabulary=200).load().labels) == 36
    assert len(asked) == 3


GROUPS = ("rec.autos", "sci.space")
POST = "From: someone\nSubject: {group}\n\nIn article <1>, a person writes:\n> quoted {group}\nOwn words {number} of {place}\n\n--\nsigned"


def posts(part: str, count: int) -> list[tuple[int, str]]:
    every = [(label, group, number) for label, group in enumerate(GROUPS) for number in range(count)]
    return [(label, POST.format(group=group, number=number, place=part)) for label, group, number in every]


def write_lines(root: Path, suffix: str) -> Path:
    place = root / "20newsgroups"
    place.mkdir(parents=True)
    (place / "target_names.json").write_text(json.dumps(GROUPS))
    opener = lzma.open if suffix == ".xz" else open
    for part, count in (("train", 12), ("test", 5)):
        with opener(place / f"20news-bydate-{part}.jsonl{suffix}", "wt") as file:
            for label, text in posts(part, count):
                file.write(json.dumps({"label": label, "text": text.replace("\n", "\t") + "ÿ\n"}) + "\n")
    return root


@pytest.mark.parametrize("suffix", [".xz", ""])
def test_newsgroups_from_files(tmp_path, suffix, monkeypatch):
    small = {"folder": str(write_lines(tmp_path, suffix)), "length": 33, "vocabulary": 200}
    task = Newsgroups20(**small).load()
    assert (len(task.labels), len(task.test_labels), task.class_names) == (24, 10, GROUPS)
    shown = {task.decode(row) for row in task.inputs}
    assert shown == {f"own words {number} of train -- signed[SEP]" for number in range(12)}
    assert Newsgroups20(**small, samples=20).load().labels.bincount().tolist() == [10, 10]
    assert task.labels.tolist() == [0] * 12 + [1] * 12
    monkeypatch.setattr(base, "thinned", lambda inputs, count, rng, **_: inputs[:count])
    assert torch.equal(task.unlabelled_set("natural", 5, RNG(0)), task.inputs[:5])  # of training posts


def test_newsgroups_are_fetched_only_when_asked_and_kept_as_lines(tmp_path, monkeypatch):
    def fetch(data_home, subset, shuffle):
        labels, texts = zip(*posts(subset, {"train": 12, "test": 5}[subset]), strict=True)
        return Bunch(data=list(texts), target=np.array(labels), target_names=list(GROUPS))

    monkeypatch.setattr("sklearn.datasets.fetch_20newsgroups", fetch)
    small = {"folder": str(tmp_path), "length": 33, "vocabulary": 200}
    with pytest.raises(DataError, match="set download to true"):
        Newsgroups20(**small).load()
    task = Newsgroups20(**small, download=True).load()
    assert (len(task.labels), len(task.test_labels), task.class_names) == (24, 10, GROUPS)
    monkeypatch.undo()
    assert torch.equal(Newsgroups20(**small).load().inputs, task.inputs)


@given(
    st.lists(
        st.sampled_from(["From: a", "", "> q", "words", "he writes: x", "--", " -- ", "In article", "|x"]), max_size=9
    )
)
@settings(max_examples=150, deadline=None)
def test_posts_are_cut_by_scikit_learns_rules(lines):
    post = "\n".join([*lines, "end"])
    assert without_header(post) == scikit.strip_newsgroup_header(post)
    assert without_quotes(post) == scikit.strip_newsgroup_quoting(post)


PLAY = "\n\n".join(
    [f"{who}:\n{line} {number}." for number in range(30) for who, line in (("HAM", "to be or"), ("OPH", "ay my lord"))]
    + ["YOR:", "FOOL:\nzounds! is it so, nuncle? I shall sit and fool a while longer"]
)


def test_shakespeare_from_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(Shakespeare, "least", 100)
    monkeypatch.setattr(Shakespeare, "length", 20)
    (tmp_path / "tinyshakespeare").mkdir()
    (tmp_path / "tinyshakespeare" / "input.txt").write_text(PLAY)
    task = Shakespeare(folder=str(tmp_path)).load()
    speeches, _ = roles_of(PLAY)
    for owner, role in enumerate(("HAM", "OPH")):
        windows = (len(speeches[role]) - 1) // 20
        own = task.inputs[task.owners == owner]
        assert len(own) == windows * 4 // 5
        assert "".join(task.decode(row) for row in own) == speeches[role][: 20 * len(own)]
        assert task.decode(task.labels[task.owners == owner][0]) == speeches[role][1:21]
    assert task.decode(task.test_inputs[-1]) in speeches["OPH"] and np.array_equal(task.kinds, task.owners)
    natural = task.decode(task.unlabelled_set("natural", 3, RNG(0))[0])
    assert "\N{REPLACEMENT CHARACTER}" in natural  # the fool's letters that nobody else has
    assert re.search("zo\N{REPLACEMENT CHARACTER}nds|fool|nun|\N{REPLACEMENT CHARACTER}", natural)
    monkeypatch.setattr(Shakespeare, "least", 10_000)
    with pytest.raises(ConfigError, match="^roles: must be some, each with 5 windows of 20"):
        Shakespeare(folder=str(tmp_path)).load()


@needs("MRPC")
def test_the_real_mrpc():
    task = MRPC(folder=str(SHARED)).load()
    assert (task.labels.bincount() + task.test_labels.bincount()).tolist() == [1323, 2753]
    assert (task.inputs[:, -1] != 0).float().mean() < 0.01  # next to no pair is cut
    paper = MRPC(folder=str(SHARED), length=40).load()
    assert (len(paper.labels), len(paper.test_labels)) == (3668, 408)
    check_sets(paper)


@needs("20newsgroups")
def test_the_real_newsgroups():
    task = Newsgroups20(folder=str(SHARED), length=16, vocabulary=1000).load()
    assert (len(task.labels), len(task.test_labels), task.num_classes) == (11_314, 7_532, 20)
    assert task.class_names[0] == "alt.atheism" and task.labels.bincount().tolist()[:2] == [480, 584]
    assert (task.inputs[:, 0] != 2).float().mean() > 0.95  # posts are not empty without header and quotes
    assert set(task.unlabelled) == set(SETS)


@needs("tinyshakespeare")
def test_the_real_shakespeare():
    task = Shakespeare(folder=str(SHARED)).load()
    assert len(np.unique(task.owners)) == 105 and task.vocabulary == 65 and task.input_shape == (80,)
    assert len(task.inputs) > 9000
    check_sets(task)


def test_a_seed_can_draw_the_pairs_and_keeps_some_for_validation():
    fixed = TASKS.get("pairs")(samples=60, test_samples=20).load()
    seeded = TASKS.get("pairs")(samples=60, test_samples=20, split="seeded").load()
    first, second = seeded.of_run(0), seeded.of_run(1)
    assert fixed.validation is None and fixed.of_run(1) is fixed
    assert torch.equal(first.samples[0], fixed.inputs) and torch.equal(first.test_inputs, fixed.test_inputs)
    assert not torch.equal(second.samples[0], fixed.inputs) and not torch.equal(second.test_inputs, fixed.test_inputs)
    assert first.vocabulary == second.vocabulary == fixed.vocabulary
    held_out = second.scored_on("validation")
    assert len(held_out.test_labels) == 20 and not torch.equal(held_out.test_inputs, second.test_inputs)

"""A result says which run it is of, its data included; nobody's files are lost where one is written."""

from __future__ import annotations

import gzip
import json
import math
import os
from dataclasses import replace

import numpy as np
import pytest
from own import two_sides

from asyncfl_lite import Config, Run, Task, load_result, results_table, run, run_many
from asyncfl_lite.base import files
from asyncfl_lite.base.errors import ResultError
from asyncfl_lite.base.files import fingerprint
from asyncfl_lite.base.registry import Settings
from asyncfl_lite.models.weights import WEIGHTS
from asyncfl_lite.runs.assembly import load_task
from asyncfl_lite.runs.results import load_complete
from asyncfl_lite.runs.run import run_in
from asyncfl_lite.runs.store import TABLES, check_free, data_of, identity_of, standing, write_record
from asyncfl_lite.simulator.delays import DELAYS
from asyncfl_lite.tasks import TASKS
from conftest import contents

SMALL = {"clients": 6, "concurrency": 3, "buffer_size": 2, "rounds": 2}
CONFIG, OTHER = Config(**SMALL), Config(**SMALL, seed=1, client_lr=0.05)


@pytest.fixture(scope="module")
def result():
    return run(CONFIG)


@pytest.fixture(scope="module")
def other():
    return run(OTHER)


def test_a_result_is_not_saved_over_that_of_another_configuration(result, other, tmp_path):
    result.save(tmp_path)
    before = contents(tmp_path)
    said = r"finished result of another configuration \(.*client_lr is .*, not 0.05.*\); name anot"
    with pytest.raises(ResultError, match=said):
        other.save(tmp_path)
    assert contents(tmp_path) == before
    result.save(tmp_path)  # its own it may
    other.save(tmp_path, force=True)
    assert load_result(tmp_path).config == OTHER


def test_nor_over_that_of_other_data_or_another_revision(result, tmp_path, monkeypatch):
    config = Config(**{**SMALL, "partition": "iid", "model": "mlp"})
    for _ in range(2):
        run(config, task=two_sides()).save(tmp_path)
    for data, words in ((None, "mine"), (two_sides(name="yours"), "mine"), (two_sides(0.01), "own data changed since")):
        with pytest.raises(ResultError, match=rf"finished result of a run on other data \({words}"):
            run(config, task=data).save(tmp_path)
    result.save(tmp_path / "named")
    monkeypatch.setattr(type(CONFIG.task_settings), "revision", 2, raising=False)
    with pytest.raises(ResultError, match=r"this configuration by code of another revision \(task\)"):
        check_free(tmp_path / "named", identity_of(CONFIG))
    load_result(tmp_path / "named").save(tmp_path / "named")  # which is of that revision itself


def test_no_run_begins_where_another_ended_or_was_interrupted_unless_it_is_forced(result, tmp_path, other, monkeypatch):
    result.save(tmp_path / "ended")
    Run(Config(**SMALL, checkpoint_every=1), checkpoint=tmp_path / "interrupted/checkpoint.pt").finish()
    before = contents(tmp_path)
    said = {"ended": "finished result of another", "interrupted": "checkpoint.pt: is the checkpoint of another"}
    with monkeypatch.context() as patch:
        patch.setattr(Run, "finish", None)
        for folder, words in said.items():
            with pytest.raises(ResultError, match=f"{words} configuration"):
                run_in(tmp_path / folder, OTHER)
    assert contents(tmp_path) == before
    for folder in said:
        assert run_in(tmp_path / folder, OTHER, force=True).summary == other.summary
    assert not list(tmp_path.rglob("*.pt"))


@pytest.mark.parametrize("length", [0, 3, 60], ids=["empty", "three bytes", "cut off"])
@pytest.mark.parametrize("name", ["result.json", *map("{}.csv".format, TABLES), WEIGHTS])
def test_the_rest_of_a_file_of_ours_is_replaced_and_need_not_be_removed_by_hand(result, tmp_path, name, length):
    result.save(tmp_path)
    content = (tmp_path / name).read_bytes()
    if name == WEIGHTS and length == 3:
        length = 9  # of fewer bytes, nothing says whose they are
    (tmp_path / name).write_bytes(content[:length])
    if name != WEIGHTS:
        assert load_complete(tmp_path, CONFIG) is None
    result.save(tmp_path)
    assert (tmp_path / name).read_bytes() == content or name == "result.json"
    assert load_result(tmp_path).model() is not None


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("name", ["result.json", "clients.csv", "curve.csv", "classes.csv"])
def test_files_of_other_origin_are_never_replaced(name, force, result, tmp_path, monkeypatch):
    monkeypatch.setattr(Run, "finish", None)  # nothing is run before
    (tmp_path / name).write_text("name,address\nall,mine\n")
    for write in (result.save, lambda folder, force: run_in(folder, CONFIG, force=force)):
        with pytest.raises(ResultError, match=f"{name}: was not written by asyncfl_lite"):
            write(tmp_path, force=force)
    assert contents(tmp_path) == {tmp_path / name: b"name,address\nall,mine\n"}


@pytest.mark.parametrize("files_there", range(6))
def test_a_save_that_was_killed_is_done_again(files_there, result, tmp_path):
    """Tables without a result.json, which is written last."""
    result.save(tmp_path)
    for name in ("result.json", *(f"{table}.csv" for table in reversed(TABLES)))[:files_there]:
        (tmp_path / name).unlink()
    result.save(tmp_path)
    assert load_complete(tmp_path, CONFIG) is not None


def rows(header: str, *of_client: str) -> str:
    return "\n".join([header, *(f"{client},{row}" for client in range(6) for row in of_client)]) + "\n"


NAMED = {
    "delay trace": (lambda path: {"delay": "trace", "delay_settings": {"path": path}}, "delay_settings",
                    rows("client,seconds", "1", "3"), rows("client,seconds", "1", "4")),
    "faults.trace": (lambda path: {"faults": {"trace": path, "time_out": 9.0}}, "faults",
                     rows("client,from,until", "0,inf"), rows("client,from,until", "0,500")),
}  # fmt: skip


@pytest.mark.parametrize("what", NAMED)
def test_an_edited_file_makes_another_run(what, tmp_path):
    settings, kind, text, edited = NAMED[what]
    path, folder = tmp_path / "trace.csv", tmp_path / "run"
    path.write_text(text)
    config = Config(**SMALL, **settings(str(path)))
    found = run_in(folder, config)
    assert list(found.data) == [kind] and load_complete(folder, config).data == found.data
    os.utime(path, (0, 0))  # another time is no other file
    assert standing(folder, config) == "complete"
    path.write_text(edited)
    assert standing(folder, config) == "changed"
    with pytest.raises(ResultError, match=rf"a run on other data \({kind} changed since\)"):
        run_in(folder, config)
    path.unlink()  # as on a machine that has only the results
    assert standing(folder, config) == "complete"


def test_a_data_set_is_known_by_its_files_wherever_they_lie(tmp_path):
    """In a session a task is loaded anew when they change."""
    play = "\n\n".join(f"{role}:\n{line * 200}" for role in ("ANNE", "BOB") for line in ("to be. ", "or not. "))
    tasks, digests = [], []
    for folder, text in (("a", play), ("b", play), ("a", play.replace("not", "yet"))):
        place = tmp_path / folder / "tinyshakespeare"
        place.mkdir(parents=True, exist_ok=True)
        (place / "input.txt").write_text(text)
        settings = {"folder": str(tmp_path / folder)}
        config = Config(task="shakespeare", task_settings=settings, partition="natural", **SMALL)
        tasks.append(load_task(config.task_settings))
        digests.append(data_of(config)["task_settings"])
    assert digests[0] == digests[1] != digests[2]
    assert tasks[0].inputs.equal(tasks[1].inputs) and not tasks[0].inputs.equal(tasks[2].inputs)


def test_one_s_own_data_are_known_by_every_tensor():
    tasks = [two_sides(), two_sides(), two_sides(0.001), replace(two_sides(), test_labels=1 - two_sides().test_labels)]
    tasks += [two_sides(owners=np.arange(60) % 6), two_sides(owners=np.array(["a", "b"] * 30))]
    digests = [data_of(CONFIG, task)["own data"] for task in tasks]
    assert digests[0] == digests[1] and len(set(digests)) == 5


def test_results_of_earlier_code_without_data_count_as_before(result, tmp_path):
    result.save(tmp_path)
    path = tmp_path / "result.json"
    record = json.loads(path.read_text())
    del record["data"]
    write_record(path, record)
    assert load_complete(tmp_path, CONFIG).summary == result.summary and load_result(tmp_path).data == {}


def test_numbers_that_are_not_finite_are_json_and_come_back(result, tmp_path):
    odd = {"final_loss": float("nan"), "a": float("inf"), "b": float("-inf")}
    result = replace(result, summary={**result.summary, **odd})
    text = (result.save(tmp_path) / "result.json").read_text()

    def refused(word):
        raise AssertionError(f"{word} is no JSON")

    json.loads(text, parse_constant=refused)
    found = load_result(tmp_path).summary
    assert math.isnan(found["final_loss"]) and (found["a"], found["b"]) == (odd["a"], odd["b"])
    assert found["final_accuracy"] == result.summary["final_accuracy"] and found["training"] == "cohort 2"


def test_a_fingerprint_is_of_what_is_in_the_files(tmp_path, monkeypatch):
    place, part = tmp_path / "data", tmp_path / "data/part"
    part.mkdir(parents=True)
    (part / "x").write_text("1,2,3")
    first = fingerprint([place])
    (place / ".hidden").write_text("")
    (part / "x.gz").write_bytes(gzip.compress(b"1,2,3"))
    assert fingerprint([place]) == first
    (part / "x").unlink()
    assert fingerprint([place]) == first
    for content in (gzip.compress(b"1,2,4"), b"no gzip"):
        (part / "x.gz").write_bytes(content)
        assert fingerprint([place]) not in (first, None)
    assert fingerprint([tmp_path / "nothing"]) is None
    (part / "x.gz").unlink()
    (part / "x").write_text("1,2,3")
    monkeypatch.setattr(files, "LARGE", 4)  # of a large file, its time
    found = []
    for time in (5, 6):
        files._fingerprint.cache_clear()
        os.utime(part / "x", (time, time))
        found.append(fingerprint([place]))
    files._fingerprint.cache_clear()
    assert len({first, *found}) == 3


def test_all_that_reads_a_folder_says_what_it_reads():
    """Or an edited data set's results would count as those of today's files."""
    found = [cls for registry in (TASKS, DELAYS) for cls in map(registry.get, registry) if "folder" in cls.model_fields]
    assert len(found) > 10 and [cls for cls in found if cls.files is Settings.files] == []


TABLED = {"clients": 6, "concurrency": 3, "buffer_size": 2, "rounds": 2, "partition": "iid"}


@pytest.fixture(scope="module")
def several():
    echo = [{"algorithm": "fedecho", "settings": {"distill_samples": 40, "clip": clip}} for clip in (1.0, None)]
    return run_many([Config(**TABLED, **more) for more in (*echo, {"seed": 3})])


def test_a_row_says_what_was_run_and_how_it_ended(several):
    table = results_table(several)
    assert len(table) == 3 and list(table.columns[:3]) == ["algorithm", "task", "seed"]
    assert table["algorithm"].tolist() == ["fedecho", "fedecho", "fedbuff"] and table["seed"].tolist() == [0, 0, 3]
    assert table["settings.clip"].iloc[0] == 1.0 and table["settings.clip"].isna().tolist() == [False, True, True]
    assert not {"clients", "delay", "weights_sha256"} & set(table.columns)  # the same in all; no number
    assert table["final_accuracy"].tolist() == [one.summary["final_accuracy"] for one in several]
    assert table.groupby("algorithm")["versions"].max().to_dict() == {"fedbuff": 2, "fedecho": 2}


def test_own_data_and_a_reason_to_stop_have_their_places(several):
    x, y = np.random.default_rng(0).standard_normal((40, 4)).astype(np.float32), np.arange(40) % 2
    own = run(Config(**TABLED, model="mlp"), task=Task.from_tensors(x, y, x, y, name="mine"))
    own.summary["stopped"] = "enough"
    table = results_table(iter([own, several[2]]))
    assert table["task"].tolist() == ["mine", "digits"] and table["stopped"].iloc[0] == "enough"
    assert len(results_table([])) == 0

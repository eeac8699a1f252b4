"""The command line, as a process of its own where that matters."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import typing
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
import torch

from asyncfl_lite import Config, Run, load_result, run
from asyncfl_lite.base import registry
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.base.settings_files import settings_in
from asyncfl_lite.cli import KINDS, REGISTRIES, main, parse, registered
from asyncfl_lite.runs.config import GROUPS, registries
from asyncfl_reproduction.grid.run import Report
from conftest import die_after, toy_grid

ROOT = Path(__file__).parent.parent
SMALL = ["--clients", "6", "--concurrency", "3", "--buffer-size", "2", "--local-steps", "2", "--rounds", "3"]


def test_run_prints_a_summary_and_writes_the_result(tmp_path, capsys):
    code = main(["run", "--algorithm", "fedecho", *SMALL, "--settings", "distill_samples=40", "--settings", "clip=none",
                 "--model-settings", "hidden=8,8", "--out", str(tmp_path / "x")])  # fmt: skip
    assert code == 0
    assert "final_accuracy" in capsys.readouterr().out
    config = load_result(tmp_path / "x").config
    assert (config.settings.distill_samples, config.settings.clip, config.model_settings.hidden) == (40, None, (8, 8))


def test_what_is_finished_is_not_run_again_and_what_was_interrupted_goes_on(tmp_path, capsys, monkeypatch):
    command = ["run", *SMALL, "--checkpoint-every", "1", "--out", str(tmp_path)]
    config = Config(clients=6, concurrency=3, buffer_size=2, local_steps=2, rounds=3, checkpoint_every=1)
    die_after(4, config, tmp_path / "checkpoint.pt")
    assert main(command) == 0
    first = load_result(tmp_path)
    assert first.summary == run(config.with_seed(0), checkpoint=tmp_path / "other.pt").summary
    assert not (tmp_path / "checkpoint.pt").exists()
    monkeypatch.setattr(Run, "finish", None)  # would fail if it were run again
    assert main(command) == 0
    assert capsys.readouterr().out.count("final_accuracy") == 2


def helped(capsys, *more: str) -> dict[str, str]:
    """What the help of ``run`` says of each option, in one line."""
    with pytest.raises(SystemExit) as ended:
        main(["run", *more, "--help"])
    assert ended.value.code == 0
    said = " ".join(capsys.readouterr().out.partition("options:")[2].split())
    return {part.split()[0]: part.partition(" ")[2] for part in re.split(r" --(?=[a-z-]+ [A-Z_=]+ )", said)[1:]}


def test_every_setting_is_an_option_with_its_default_beside_this_task_and_what_it_may_be(capsys):
    shown, config = helped(capsys), Config()
    for name, field in Config.model_fields.items():
        told = shown[name.replace("_", "-")]
        assert told.split(" ", 1)[1].startswith(field.description), name
        if name in GROUPS:
            continue
        value = "by the method" if name == "scheduling" else getattr(config, name)
        assert f"default: {'none' if value is None else value}" in told, name
        if typing.get_origin(field.annotation) is typing.Literal:
            assert f"one of {', '.join(typing.get_args(field.annotation))};" in told
    assert "at least 1 and at most 10,000,000; default: 50" in shown["clients"]

    for name, known in registries().items():
        assert name == "faults" or f"one of {', '.join(known)};" in shown[name], name
    shown = helped(capsys, "--task", "mrpc", "--algorithm=fedecho")
    assert "default: bert" in shown["model"] and "default: 10" in shown["clients"]
    assert "adamw" in shown["client-optimizer"]
    assert "checkpoint=google-bert/bert-base-uncased" in shown["model-settings"]


@pytest.mark.parametrize(
    "arguments", [[], ["run", "--help"], ["grid", "--help"], ["list"], ["list", "models", "--json"], ["run", "--alfa"]]
)
def test_help_lists_and_what_is_wrong_with_an_option_need_no_torch(arguments):
    code = (
        "import sys\nfrom asyncfl_lite.cli import main\n"
        f"try:\n    main({arguments})\nexcept SystemExit:\n    pass\n"
        "print({'torch', 'numpy', 'pandas', 'matplotlib'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.stdout.splitlines()[-1] == "set()", done.stdout + done.stderr


@pytest.mark.parametrize(
    ("command", "streams", "code"),
    [
        ("run --alfa", "2>&-", 2),
        ("run --alfa", "<&- >&- 2>&-", 2),
        ("--version", "2>&- <&-", 0),
        ("--version", ">&-", 0),
        ("--version", "> /dev/full", 2),
        ("--help", "> /dev/full", 2),
    ],
)
def test_streams_that_are_closed_or_full_change_no_exit_code(command, streams, code):
    line = f'"{sys.executable}" -m asyncfl_lite.cli {command} {streams}'
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, cwd=ROOT, timeout=60, env=env)
    full = "asyncfl-lite: files: No space left on device\n" if "full" in streams else ""
    assert (done.returncode, done.stderr) == (code, full)


def test_a_list_read_from_source_code_is_what_the_registries_hold(capsys):
    for kind, (setting, *_) in KINDS.items():
        described = registries()[setting].describe()
        assert registered()[REGISTRIES[setting]] == described
        assert list(registered()[REGISTRIES[setting]]) == list(described)
        assert main(["list", kind, "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == {kind: described}
    for others in ([SimpleNamespace(dist=None)], [SimpleNamespace(dist=SimpleNamespace(name="other"))]):
        with mock.patch.object(registry, "_entry_points", lambda others=others: others):
            assert not registry.all_ours()  # so other packages are imported, as they may register in other ways


@pytest.mark.parametrize(
    ("options", "printed", "progress"),
    [
        ([], "final_accuracy", True),
        (["--quiet"], "", False),
        (["--json"], "{", True),
        (["--quiet", "--json"], "{", False),
        (["--quiet", "--json", "--seed", "0-1", "--output-dir", "{out}"], "{", False),
    ],
)
def test_a_run_says_as_much_as_it_is_asked_to(options, printed, progress, tmp_path, capsys):
    (tmp_path / "mine.TOML").write_text(
        "clients = 6\nrounds = 2\neval_every = 1\nlocal_steps = 2\n[model_settings]\nhidden = [8]\n"
    )
    options = [text.replace("{out}", str(tmp_path / "out")) for text in options]
    assert main(["run", "--config", str(tmp_path / "mine.TOML"), "--concurrency=3", "--buffer-size=2", *options]) == 0
    out, err = capsys.readouterr()
    assert out.startswith(printed) and bool(out) == bool(printed) and ("version 2 of 2" in err) == progress
    if printed != "{":
        return
    for seed, line in enumerate(out.splitlines()):
        shown = json.loads(line, parse_constant=pytest.fail)
        config = Config.from_mapping(shown["config"])
        assert (config.seed, config.rounds, config.model_settings.hidden) == (seed, 2, (8,))
        assert shown["config_hash"] == config.hash and [row["version"] for row in shown["curve"]][-1] == 2
        assert shown["summary"]["final_accuracy"] == shown["curve"][-1]["accuracy"]
    saved = [load_result(folder).config.seed for folder in sorted(tmp_path.glob("out/seed-*"))]
    assert saved == ([0, 1] if "--seed" in options else [])


def test_progress_is_logged_where_somebody_listens(caplog):
    with caplog.at_level("INFO", "asyncfl_lite"):
        result = run(Config(clients=6, concurrency=3, buffer_size=2, local_steps=2, rounds=2, eval_every=1))
    assert caplog.messages[-1].startswith("version 2 of 2, time ")
    result.summary["stopped"] = "<b>enough</b>"  # words of the user's
    shown = result._repr_html_()
    assert "<th>final_accuracy</th>" in shown and "&lt;b&gt;enough" in shown and "<b>" not in shown
    assert "sha256" not in shown and shown.startswith("<table><caption>Result(fedbuff on digits, seed 0: accuracy ")


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "latin-1"])
def test_characters_that_an_encoding_lacks_are_written_out(encoding, monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    assert main(["list"]) == 0
    assert "\\u" in written.getvalue().decode(encoding)


def test_words_and_numbers_in_yaml_are_what_they_seem_to_be(tmp_path):
    (tmp_path / "a.yaml").write_text("vectorize: off\nrounds: 1e2\nclient_lr: 5e-2\nclients: 60\nalpha: ~")
    (tmp_path / "b.yaml").write_text("{vectorize: On, preset: Off, settings: {a: true}, delay_settings: {gamma: 1E1}}")
    a, b = settings_in(tmp_path / "a.yaml"), settings_in(tmp_path / "b.yaml")
    assert a == {"vectorize": "off", "rounds": 100.0, "client_lr": 0.05, "clients": 60, "alpha": None}
    assert b == {"vectorize": "On", "preset": "Off", "settings": {"a": True}, "delay_settings": {"gamma": 10.0}}
    config = Config(**{**a, "partition": "iid", "clients": 50})
    assert (config.vectorize, config.rounds, config.client_lr) == ("off", 100, 0.05)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("asyncfl-lite lea", {"league "}),
        ("asyncfl-lite run --algorithm fedec", {"fedecho "}),
        ("asyncfl-lite run --client-op", {"--client-optimizer "}),
        ("asyncfl-lite run --client-optimizer a", {"adam", "adamw"}),
        ("asyncfl-lite report --tier smo", {"smoke "}),
    ],
)
def test_a_shell_is_told_what_a_line_may_go_on_with(line, words, tmp_path):
    asked = {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line)),
             "_ARGCOMPLETE_STDOUT_FILENAME": str(tmp_path / "words"), "_ARGCOMPLETE_IFS": "|"}  # fmt: skip
    code = "import sys; from asyncfl_lite.cli import main; main()"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, **asked}, cwd=ROOT, timeout=60, check=True)
    assert set((tmp_path / "words").read_text().split("|")) == words


def test_where_no_bar_can_move_progress_is_lines_with_the_accuracy(capsys, monkeypatch):
    assert main(["run", *SMALL, "--eval-every", "1"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(",")[0] for line in lines] == ["version 1 of 3", "version 3 of 3"]  # seconds have not passed
    assert re.fullmatch(r"version 3 of 3, time [\d.]+: accuracy 0\.\d{4} \(\d+ s\)", lines[-1])
    monkeypatch.setattr("asyncfl_lite.runs.progress.SECONDS_BETWEEN_LINES", 0)
    assert main(["run", *SMALL, "--eval-every", "1"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and re.search(r" \(\d+ s, about \d+ s left\)$", lines[1])
    assert "left" not in lines[0] + lines[2]  # nothing is known yet, and nothing is left


def test_a_bar_counts_versions_and_says_the_accuracy(capsys):
    run(Config(clients=6, concurrency=3, buffer_size=2, rounds=3, eval_every=1), progress=True)
    told = capsys.readouterr().err
    assert "3/3" in told and "accuracy=0." in told
    run(Config(clients=6, concurrency=3, buffer_size=2, rounds=3))
    assert capsys.readouterr().err == ""


# --- settings from a file ------------------------------------------------------------------------


@pytest.fixture
def ran(monkeypatch):
    """The configurations that would be run."""
    found = []

    def note(config, **_):
        found.append(config)
        raise ConfigError("noted: enough")

    monkeypatch.setattr("asyncfl_lite.runs.run.run", note)
    return found


def test_a_result_s_settings_are_taken_up_again(tmp_path, ran):
    config = Config(
        clients=6, concurrency=3, rounds=3, algorithm="fedecho", settings={"clip": 2.0}, local_steps=4, seed=5
    )
    record = {"format": 1, "config": config.as_dict(), "config_hash": config.hash}
    (tmp_path / "result.json").write_text(json.dumps(record))
    for place in (tmp_path, tmp_path / "result.json"):
        main(["run", "--config", str(place)])
    assert ran == [config, config]
    other = ["--rounds", "9", "--local-epochs", "2", "--settings", "alpha_min=0.1", "--seed", "7"]
    main(["run", "--config", str(tmp_path), *other])
    assert (ran[2].rounds, ran[2].local_epochs, ran[2].local_steps, ran[2].seed) == (9, 2, None, 7)
    assert (ran[2].clients, ran[2].settings.clip, ran[2].settings.alpha_min) == (6, 2.0, 0.1)
    main(["run", "--config", str(tmp_path), "--algorithm", "fedbuff", "--partition", "iid"])
    assert (ran[3].algorithm, ran[3].alpha, ran[3].local_steps) == ("fedbuff", None, 4)


def test_what_is_endless_or_large_does_not_fill_the_memory(tmp_path, capsys):
    large = tmp_path / "large.yaml"
    with large.open("wb") as file:
        file.truncate(20 * 10**9)  # of which the disk holds nothing
    for place, why in (("/dev/zero", "is a pipe or a device"), (large, "must be a file of settings of at most 10 MB")):
        for command in (["run", "--config"], ["grid"]):
            assert main([*command, str(place)]) == 2
            told = capsys.readouterr().err
            assert f"{place}: " in told and why in told and told.count("\n") == 1


def test_alpha_of_the_command_line_comes_before_that_of_a_file(tmp_path, ran):
    for written in ({"alpha": 0.5}, Config(alpha=0.5).as_dict()):
        (tmp_path / "mine.json").write_text(json.dumps(written))
        main(["run", "--config", str(tmp_path / "mine.json"), "--alpha", "5"])
        assert ran[-1].alpha == ran[-1].partition_settings.alpha == 5.0
    main(["run", "--config", str(tmp_path / "mine.json"), "--partition", "iid"])
    assert ran[-1].alpha is None


def test_a_constant_answer_is_said(capsys, monkeypatch):
    assert main(["run", *SMALL]) == 0
    assert "constant answer" not in capsys.readouterr().out
    monkeypatch.setattr(Run, "predict", lambda run, inputs: torch.zeros(len(inputs), 10))
    assert main(["run", *SMALL]) == 0
    told = capsys.readouterr().out
    assert "constant answer: the final model predicts one class for every test sample" in told


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A grid of one cell, of which only what would be run is noted."""
    grid, started = toy_grid(tmp_path), []
    monkeypatch.setattr(
        "asyncfl_reproduction.grid.run.run_grid", lambda cells, *_, **__: started.extend(cells) or Report()
    )
    return ["grid", str(grid), "--runs", str(tmp_path / "runs")], started


def test_a_grid_says_what_it_costs_and_starts_if_that_is_little(toy, capsys):
    command, started = toy
    assert main(command) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "1 cell: 0 complete, 1 to run"
    assert told[1].startswith("estimated cost: 1 run, 6 client updates, ")
    assert len(started) == 1


def test_above_two_hours_it_wants_a_yes(toy, capsys, monkeypatch):
    command, started = toy
    monkeypatch.setattr("asyncfl_reproduction.grid.cost.STARTING", 7201)
    assert main(command) == 2
    told = capsys.readouterr()
    assert "2.0 hours" in told.out and told.err.startswith("asyncfl-lite: yes: needed above 2 hours")
    assert told.err.count("\n") == 1 and not started
    assert main([*command, "--workers", "2"]) == 0  # an hour each
    assert main([*command, "--yes"]) == 0
    assert len(started) == 2


@pytest.mark.parametrize(
    "command", [[sys.executable, "-m", "asyncfl_lite"], [str(Path(sys.executable).parent / "asyncfl-lite")]]
)
def test_the_module_is_the_command(command, tmp_path):
    """As processes: what they print, what they say of a mistake, and their exit codes."""
    wrong, usage = (
        subprocess.run([*command, *arguments], cwd=tmp_path, capture_output=True, text=True)
        for arguments in (["run", "--client", "0"], ["--help"])  # what needs no torch
    )
    assert wrong.returncode == 2 and wrong.stderr.startswith("asyncfl-lite: run: option: '--client' is not known")
    assert usage.returncode == 0
    assert " ".join(usage.stdout.split()).startswith(
        "usage: asyncfl-lite [-h] [--version] run|list|grid|tune|report|results|record|league"
    )


def options(*arguments: str) -> dict:
    return vars(parse(list(arguments)))


def test_options_are_taken_with_dashes_and_underscores():
    values = {name: "a_b=c_d" if name in GROUPS else "x_y" for name in Config.model_fields}
    dashed = {name: name.replace("_", "-") for name in values}
    for sign in (" ", "="):
        lines = ([f"--{form(name)}{sign}{value}" for name, value in values.items()] for form in (str, dashed.get))
        told, other = (options("run", *" ".join(line).split()) for line in lines)
        assert told == other
        for name, value in values.items():
            assert told[name] == ([value] if name in (*GROUPS, "seed") else value), name
    for command, option in (("grid", "--paper"), ("report", "--tier"), ("record", "--results")):
        file = ["x_y.yaml"] * (command == "grid")
        assert options(command, *file, option, "a_b")[option[2:]] == "a_b"

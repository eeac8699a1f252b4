"""Each extra is enough for what the docs say it is for, and no run is lost for want of another; what lacks one says so.

Every test runs in an environment that holds what its extra brings and nothing else (``environments.py``). Torch and its
like are imported once for all. ``.ci/wheel`` does the same with an installed wheel.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import environments
import pytest

from asyncfl_lite import load_result
from asyncfl_lite.runs import store

RUN = ["run", "--clients", "4", "--concurrency", "2", "--buffer-size", "1", "--rounds", "1", "--out", "mine"]
EXAMPLES = {
    "": [[*RUN, "--algorithm", "fedecho"]],
    "images": [[*RUN, "--model", "resnet", "--model-settings", "blocks=1,"]],
    "text": [[*RUN, "--task", "pydoc_topics"]],
    "video": [[*RUN, "--task", "movingdigits", "--model", "resnet3d", "--model-settings", "width=2"]],
    "grid": [RUN],
    "notebooks": [RUN],
    "dask": [RUN],
}
"""Extra -> command lines that its installation must be enough for."""
MANY = """
import sys
from asyncfl_lite import Config, run_many
from asyncfl_lite.cli import main

small = Config(clients=4, concurrency=2, buffer_size=1, rounds=1)
run_many([small, small.with_seed(1)], folders=["first", "second"])
for line in {lines!r}:
    print(main(line))
{more}
"""
MORE = {
    "": "from asyncfl_lite import run; run(small).plot()\nimport asyncfl_course.explore",
    "notebooks": "import asyncfl_course.explore, jupyterlab; from asyncfl_course.explore.staleness import *",
    "dask": "print(main(['grid', 'smoke', '--only', 'fedadt/*', '--yes', '--backend', 'dask', '--scheduler', 'tcp://127.0.0.1:9']))",
}
LACKING = [
    ["run", "--model", "resnet"], ["run", "--task", "fashion_mnist"], ["run", "--task", "pydoc_topics"],
    ["run", "--task", "movingdigits", "--model", "resnet3d"], ["grid", "smoke"], ["report"],
]  # fmt: skip


def there(folder, extra: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in an environment with one extra."""
    try:
        python = environments.make(folder / "environment", *filter(None, [extra]))
    except LookupError as error:
        pytest.skip(str(error))
    env = environments.variables()
    return subprocess.run([python, *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=300)


FORKS = """
import json, os, sys

import matplotlib.pyplot, scipy.stats, sklearn.datasets, torch._dynamo  # what every extra brings, and takes longest

own = [place for place in sys.path if place.endswith("site-packages")]
for line in sys.stdin:
    folder, site = json.loads(line)
    sys.stdout.flush()
    if (child := os.fork()) == 0:
        os.chdir(folder)
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), number)
        sys.path[:] = [folder, *(site if place in own else place for place in sys.path[1:])]
        sys.argv[:] = ["few.py"]
        code = 1
        try:
            exec(compile(open("few.py").read(), "few.py", "exec"), {"__name__": "__main__"})
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Runs ``few.py`` of a folder in a fork of itself, which finds the packages of another environment in place of its own."""


@pytest.fixture(scope="module")
def forks(tmp_path_factory):
    """A process in the environment without extras, which all environments have in common, to be forked."""
    folder = tmp_path_factory.mktemp("plain")
    python = environments.make(folder / "environment")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": folder}
    with subprocess.Popen([python, "-c", FORKS], env=environments.variables(), **pipes) as process:
        yield process
        process.stdin.close()


def forked(forks: subprocess.Popen, folder: Path, extra: str) -> subprocess.CompletedProcess[str]:
    """Run a folder's ``few.py`` in an environment with one extra."""
    try:
        python = environments.make(folder / "environment", *filter(None, [extra]))
    except LookupError as error:
        pytest.skip(str(error))
    (site,) = python.parent.parent.glob("lib/python*/site-packages")
    print(json.dumps([str(folder), str(site)]), file=forks.stdin, flush=True)
    code = int(forks.stdout.readline())
    return subprocess.CompletedProcess([], code, *((folder / name).read_text() for name in ("stdout", "stderr")))


@pytest.mark.parametrize(
    "extra", [pytest.param(extra, marks=[pytest.mark.long] * (extra not in ("", "grid", "dask"))) for extra in EXAMPLES]
)
def test_an_extra_is_enough_for_its_example_and_every_run_is_kept(extra, forks, tmp_path):
    lines = EXAMPLES[extra] + (LACKING if not extra else [])
    (tmp_path / "few.py").write_text(MANY.format(lines=lines, more=MORE.get(extra, "")))
    done = forked(forks, tmp_path, extra)
    codes = [line for line in done.stdout.splitlines() if line in ("0", "1", "2")]
    kept = EXAMPLES[extra]
    assert codes[: len(kept)] == ["0"] * len(kept), done.stdout + done.stderr
    brought = environments.brought_by(*filter(None, [extra]))
    for folder in ("first", "second", *(line[line.index("--out") + 1] for line in kept)):
        versions = load_result(tmp_path / folder).versions
        assert set(versions) - {"asyncfl_lite", "python", "instructions", "torch"} == brought & set(store.LIBRARIES)
    if not extra:
        assert codes[len(kept) :] == ["2"] * len(LACKING)
        lines = re.findall(r"needs \w+; pip install 'asyncfl-lite\[(\w+)\]'", done.stderr)
        assert lines == ["images", "images", "text", "video", "grid", "grid", "notebooks"], done.stderr
    elif extra == "dask":  # there is no cluster, but all that is needed to ask for one
        assert "nothing answers at 'tcp://127.0.0.1:9'" in done.stderr
    else:
        assert done.returncode == 0, done.stderr


def test_the_environments_hold_no_more_than_what_an_extra_brings():
    plain, images = environments.brought_by(), environments.brought_by("images")
    assert {"torch", "mlxtend", "filelock"} <= plain and "torchvision" not in plain
    assert images - plain == {"torchvision"}
    assert environments.brought_by("text") <= environments.brought_by("grid") <= environments.brought_by("notebooks")


@pytest.mark.long
def test_grid_is_enough_for_a_cell_of_each_kind_that_the_smoke_tier_has(tmp_path):
    cells = ["fedecho/table2/large-dir0.1/fedbuff", "fedecho/table5/fedbuff"]
    for cell in cells:
        done = there(tmp_path, "grid", "-m", "asyncfl_lite", "grid", "smoke", "--only", cell, "--yes")
        assert done.returncode == 0 and "Warning" not in done.stderr, done.stdout + done.stderr
        assert json.loads((tmp_path / "runs/smoke" / cell / "result.json").read_text())["status"] == "complete"


# What was installed is noted when the run begins ----------------------------------------------------------------------


def test_versions_are_those_at_the_run_s_beginning_and_stay_with_the_result(tmp_path, monkeypatch):
    from asyncfl_lite import Config, Run

    monkeypatch.setattr("asyncfl_lite.runs.run.versions", lambda: {"torch": "then"})
    begun = Run(Config(clients=4, concurrency=2, buffer_size=1, rounds=1))
    monkeypatch.setattr("asyncfl_lite.runs.run.versions", lambda: {"torch": "now"})
    result = begun.finish()
    result.save(tmp_path / "once")
    loaded = load_result(tmp_path / "once")
    assert result.versions == loaded.versions == {"torch": "then"}
    loaded.save(tmp_path / "twice")
    assert json.loads((tmp_path / "twice/result.json").read_text())["versions"] == {"torch": "then"}


def test_a_library_without_metadata_is_left_out(monkeypatch):
    def absent(name):
        raise store.metadata.PackageNotFoundError(name)

    store._libraries.cache_clear()
    monkeypatch.setattr(store.metadata, "version", absent)
    try:
        assert sorted(store.versions()) == ["asyncfl_lite", "instructions", "python", "torch"]
    finally:
        store._libraries.cache_clear()

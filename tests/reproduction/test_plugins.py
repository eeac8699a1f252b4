"""Methods, models and laws of one's own, in files and packages of one's own: in runs, grids, workers and kernels."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.base import plugins
from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.base.plugins import import_own, located
from asyncfl_lite.cli import main
from asyncfl_lite.simulator.delays import DELAYS
from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.grid.run import cell_parameters

ROOT = Path(__file__).parents[2]
METHOD = """
from asyncfl_lite.algorithms import ALGORITHMS
from asyncfl_lite.algorithms.fedbuff import FedBuff
from asyncfl_lite.base.registry import Settings

@ALGORITHMS.register("ownbuff")
class OwnBuff(FedBuff):
    \"\"\"FedBuff by another name.\"\"\"

    class Settings(FedBuff.Settings):
        switch: int = 3

    def __init__(self, *, switch=3, **options):
        super().__init__(**options)
        self.switch = switch
"""
LAW = """
from asyncfl_lite.simulator.delays import DELAYS
from asyncfl_lite.simulator.delays import FedAdtLaw

@DELAYS.register("own_law")
class OwnLaw(FedAdtLaw):
    \"\"\"A law by another name.\"\"\"
"""
SMALL = {"clients": 4, "concurrency": 2, "buffer_size": 2, "rounds": 2}


def forget(folder):
    """Leave nothing of what was imported from below a folder."""
    for registry in (ALGORITHMS, DELAYS):
        for name, entry in list(registry._entries.items()):
            module = sys.modules.get(entry.__module__)
            if module is None or Path(module.__file__ or "").is_relative_to(folder):
                registry.remove(name)
    for name, module in list(sys.modules.items()):
        if Path(getattr(module, "__file__", None) or "/").is_relative_to(folder):
            del sys.modules[name]
    plugins._installed.clear()
    plugins._entry_points.cache_clear()


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    """The folder with what is one's own, in which one stands."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "own_method.py").write_text(METHOD)
    (tmp_path / "own_law.py").write_text(LAW)
    yield tmp_path
    forget(tmp_path)


def grid_of(folder, tier="", paper="", **settings):
    """Write a tier's file with one cell."""
    common = {"seeds": [0], "settings": {**SMALL, **settings}}
    content = {"paper": "toy", "tiers": {"smoke": common}, "cells": {"toy/own": {}}}
    (folder / "toy.yaml").write_text(json.dumps(content)[:-1] + paper + "}")
    (folder / "smoke.yaml").write_text(f"tier: smoke\npapers: [toy.yaml]\n{tier}")
    return folder / "smoke.yaml"


def test_a_run_takes_a_method_from_a_file(capsys):
    options = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
    assert main(["run", "--algorithm", "ownbuff", *options]) == 2
    assert "algorithm: 'ownbuff' is not known. Allowed" in capsys.readouterr().err
    assert main(["run", "--import", "own_method", "--algorithm", "ownbuff", "--settings", "switch=4", *options]) == 0
    assert "final_accuracy" in capsys.readouterr().out


@pytest.mark.parametrize("place", ["own_law", "own_law.py", "./own_law.py"])
def test_a_file_is_named_as_a_module_or_by_its_path(place, capsys):
    assert main(["list", "--import", place, "--import", "own_method"]) == 0
    assert "FedBuff by another name." in (printed := capsys.readouterr().out) and "A law by another name." in printed


def test_a_module_of_a_package_imports_its_neighbours(own):
    package = own / "mylab/methods"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").write_text("")
    (package / "base.py").write_text(METHOD)
    (package / "tuned.py").write_text("from .base import OwnBuff")
    for place in ("mylab.methods.tuned", "mylab/methods/tuned.py"):
        module = import_own(located(place, own))
        assert module.__name__ == "mylab.methods.tuned" and ALGORITHMS.get("ownbuff") is module.OwnBuff
        forget(own)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("missing.py", None, "missing.py: there is no such file"),
        ("missing", None, "import: missing: cannot be imported (ModuleNotFoundError: No module named 'missing')"),
        ("odd.py", "x = (\n", r"odd.py: cannot be imported (SyntaxError: '(' was never closed (odd.py, line 1))"),
        (
            "odd.py",
            "\ny = 1 / 0\n",
            "odd.py: cannot be imported (ZeroDivisionError: division by zero in odd.py, line 2)",
        ),
        (
            "odd.py",
            "import sys\nsys.exit('usage: odd')",
            "odd.py: cannot be imported (SystemExit: usage: odd in odd.py, line 2)",
        ),
        ("odd.py", "import nolibrary\n", "(ModuleNotFoundError: No module named 'nolibrary' in odd.py, line 1)"),
        ("odd.py", "from asyncfl_lite.algorithms import ALGORITHMS", "odd.py: registers nothing; a class needs a line"),
        ("random.py", METHOD, "random.py: a module 'random' exists already; rename the file"),
        ("odd.py", METHOD.replace("ownbuff", "fedbuff"), "(ConfigError: algorithm: 'fedbuff' is registered twice"),
    ],
)
def test_what_is_wrong_with_ones_own_is_one_line(own, capsys, name, text, message):
    if text is not None:
        (own / name).write_text(text)
    assert main(["run", "--import", name]) == 2
    told = capsys.readouterr().err
    assert message in told and told.count("\n") == 1


@pytest.mark.parametrize("where", ["tier", "paper"])
def test_a_grids_file_names_what_it_needs(own, where, monkeypatch):
    written = {"tier": {"tier": "import: own_method"}, "paper": {"paper": ', "import": ["own_method.py"]'}}[where]
    file = grid_of(own, **written, algorithm="ownbuff")
    monkeypatch.chdir("/")  # the file is beside the YAML file, wherever one stands
    (cell,) = expand_grid(file)
    assert cell.imports == (str(own / "own_method.py"),) and cell.config.settings.switch == 3
    assert cell_parameters(cell, own)["imports"] == [str(own / "own_method.py")]


def test_what_a_grids_file_names_wrongly_is_one_line_with_the_file(own):
    for tier, message in (("import: nothing.py", "smoke.yaml: import: "), ("imports: x", "did you mean 'import'")):
        with pytest.raises(ConfigError, match=message):
            expand_grid(grid_of(own, tier))


def test_a_cell_is_whole_in_a_process_that_has_not_imported_it(own):
    (cell,) = expand_grid(grid_of(own, "import: [own_method, own_law]", algorithm="ownbuff", delay="own_law"))
    sent = pickle.dumps(cell)
    forget(own)
    with pytest.raises(ConfigError, match="'ownbuff' is not known"):
        ALGORITHMS.get("ownbuff")
    received = pickle.loads(sent)
    assert received.config.hash == cell.config.hash and received.imports == cell.imports
    assert type(received.config.settings) is ALGORITHMS.get("ownbuff").Settings


def installed(folder, value):
    """Make it look as if a package were installed in a folder."""
    info = folder / "site/mylab-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mylab\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[asyncfl_lite]\nmine = {value}\n")
    (folder / "site/mylab.py").write_text(METHOD)
    sys.path.append(str(folder / "site"))
    forget(folder)


def test_an_installed_package_brings_its_method(own):
    installed(own, "mylab")
    assert "ownbuff" not in ALGORITHMS._entries  # nothing is imported before it is asked for
    assert ALGORITHMS.get("ownbuff").__module__ == "mylab" and "ownbuff" in list(ALGORITHMS)


def test_an_installed_package_that_is_broken_is_named_and_stops_nothing_else(own):
    installed(own, "mylabs")
    assert ALGORITHMS.get("fedbuff")
    with pytest.raises(ConfigError, match="^entry point 'mine' of mylab: cannot be imported .ModuleNotFound"):
        ALGORITHMS.get("ownbuff")


@pytest.mark.long
def test_workers_and_kernels_know_what_is_ones_own(own):
    """Real processes: the command line, two workers, a kernel each; nothing but the options says where the file is."""
    file = grid_of(own, algorithm="ownbuff")
    content = json.loads((own / "toy.yaml").read_text())
    law = {"settings": {"algorithm": "fedbuff", "delay": "own_law"}}
    (own / "toy.yaml").write_text(json.dumps({**content, "cells": {"toy/own": {}, "toy/law": law}}))
    options = ["--import", "own_method", "--import", "own_law.py", "--workers", "2", "--runs", "runs", "--yes"]
    command = [sys.executable, "-P", "-m", "asyncfl_lite.cli", "grid", str(file), *options]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    told = subprocess.run(command, cwd=own, env=env, capture_output=True, text=True, timeout=300)
    assert told.returncode == 0, told.stderr
    assert "2 cells done, 0 complete before, 0 failed" in told.stdout

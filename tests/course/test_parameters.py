"""What papermill puts into notebooks/experiment.ipynb: a wrong name or type is one line, and nothing is run."""

from __future__ import annotations

import os
import subprocess
import sys

import nbformat
import pytest

from asyncfl_lite.base.errors import ConfigError
from conftest import ROOT

NOTEBOOK = ROOT / "notebooks/experiment.ipynb"


def run_with(**given):
    """Run the notebook's cells as far as parameters are checked, with what papermill would put in; return its names."""
    codes = [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    names = {}
    for cell in codes[: next(i for i, cell in enumerate(codes) if "check_parameters(" in cell.source) + 1]:
        exec(cell.source, names)
        if "parameters" in cell.metadata.get("tags", []):
            exec("\n".join(f"{name} = {value!r}" for name, value in given.items()), names)
    return names


def test_the_notebooks_own_parameters_and_new_ones_are_taken(capsys):
    assert run_with()["config"].rounds == 20
    own = {"seeds": [5, 6], "configuration": {"algorithm": "fedecho", "rounds": 3}, "folder": "somewhere"}
    config = run_with(**own)["config"]
    assert (config.algorithm, config.rounds, config.seed) == ("fedecho", 3, 5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sedes": [1]}, "parameter: 'sedes' is not known; did you mean 'seeds'? Allowed: about, cell, configuration,"),
        ({"seeds": 3}, "seeds: must be a valid list, got 3"),
        ({"seeds": [1, "two"]}, "seeds.1: "),
        ({"seeds": [1, 1]}, "seeds: must be different seeds, got [1, 1]"),
        ({"seeds": []}, "seeds: "),
        ({"configuration": "fedecho"}, "configuration: must be a valid dictionary, got 'fedecho'"),
        ({"configuration": {"algorithm": "fedecoh"}}, "configuration: algorithm: 'fedecoh' is not known; did you mean"),
        ({"configuration": {"rounds": "many"}}, "configuration: rounds: "),
        ({"folder": 5}, "folder: must be a path, got 5"),
        ({"cell": 5}, "cell: must be a valid string, got 5"),
        ({"imports": "x"}, "imports: must be a valid list, got 'x'"),
        ({"imports": ["no_such_module"]}, "import: no_such_module: cannot be imported"),
    ],
)
def test_what_is_wrong_with_a_parameter_is_one_line(given, message):
    with pytest.raises(ConfigError) as caught:
        run_with(**given)
    assert str(caught.value).startswith(message) and "\n" not in str(caught.value)


@pytest.mark.long
def test_papermill_fails_with_the_line(tmp_path):
    """As it is typed: exit code 1, nothing was run; with the line that the message gives, it runs."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}

    def papermill(*options):
        command = [sys.executable, "-m", "papermill", str(NOTEBOOK), str(tmp_path / "out.ipynb"), *options]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)

    failed = papermill("-p", "algorithm", "fedecho", "-p", "folder", "results")
    assert failed.returncode == 1 and not (tmp_path / "results").exists()
    assert "ConfigError: parameter: 'algorithm' is a setting of the run; write -y" in failed.stderr
    done = papermill("-p", "folder", "results", "-y", "{seeds: [3], configuration: {algorithm: fedbuff, rounds: 2}}")
    assert done.returncode == 0 and (tmp_path / "results/seed-3/result.json").exists()

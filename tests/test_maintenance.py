"""What the next maintainer relies on: one version, workflows that run what .ci/run runs, hooks that keep outputs."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from asyncfl_lite import __version__

ROOT = Path(__file__).parent.parent
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
STEPS = [
    step for path in WORKFLOWS for job in yaml.safe_load(path.read_text())["jobs"].values() for step in job["steps"]
]
HOOKS = {
    hook["id"]: hook
    for repo in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    for hook in repo["hooks"]
}


def released() -> list[tuple[str, str]]:
    """The changelog's versions with their dates, the newest first."""
    return re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})$", CHANGELOG, re.M)


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (version, date), *_ = released()
    assert __version__ == project["version"] == CITATION["version"] == version
    assert CITATION["date-released"] == date


def test_the_changelog_begins_with_what_is_not_released_and_goes_back():
    headings = re.findall(r"^## (.*)$", CHANGELOG, re.M)
    assert headings == ["[Unreleased]", *(f"[{version}] - {date}" for version, date in released())]
    assert [date for _, date in released()] == sorted((date for _, date in released()), reverse=True)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security", "Known limits"}
    assert set(re.findall(r"^### (.*)$", CHANGELOG, re.M)) <= kinds


def test_the_citation_names_the_software_and_the_four_papers():
    assert CITATION["cff-version"] == "1.2.0" and CITATION["type"] == "software" and CITATION["authors"]
    assert len(CITATION["references"]) == 4
    for paper in CITATION["references"]:
        assert paper["title"] and all("name" in one or one["family-names"] for one in paper["authors"])


def test_workflows_run_targets_and_scripts_that_exist():
    for step in STEPS:
        command = step.get("run", "").split()
        if command:
            assert command[1] in TARGETS if command[0] == "make" else os.access(ROOT / command[0], os.X_OK), command
        elif step["uses"].startswith("./"):
            assert (ROOT / step["uses"] / "action.yml").is_file()


def test_workflows_run_all_that_ci_runs():
    ci = re.findall(r"^(make \S+|\.ci/\S+)(.*?)(?: \|\| .*)?$", (ROOT / ".ci/run").read_text(), re.M)
    ran = [step["run"] for step in STEPS if "run" in step]
    assert len(ci) >= 5
    assert {"".join(command) for command in ci} | {"make notebooks", "make coverage"} == set(ran)
    assert len(ran) == len(set(ran)), "a command runs in one workflow"


def test_workflows_have_the_lowest_python_that_is_promised():
    promised = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    files = [*WORKFLOWS, *(ROOT / ".github/actions").glob("*/action.yml")]
    named = {version for file in files for version in re.findall(r'python-version: "(.*)"', file.read_text())}
    assert {f">={version}" for version in named} == {promised}


def test_hooks_have_the_ruff_of_the_environment_and_keep_what_notebooks_show():
    assert all(HOOKS[name]["entry"].startswith(".venv/bin/ruff ") for name in ("ruff-check", "ruff-format"))
    options = HOOKS["nbstripout"]["entry"].split()
    assert {"--keep-output", "--keep-count", "--keep-id", "cell.metadata.execution"} <= set(options)


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.name)
def test_no_notebook_holds_the_state_of_widgets(path):
    """A page would show controls that need a kernel where it can show a picture."""
    assert "widgets" not in json.loads(path.read_text())["metadata"]

"""What the next maintainer relies on: one version and workflows that run what .ci/run runs."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest
import yaml

from asyncfl_lite import __version__
from conftest import ROOT

CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
ACTIONS = sorted((ROOT / ".github/actions").glob("*/action.yml"))
PARSED = {path.stem: yaml.safe_load(path.read_text()) for path in WORKFLOWS}
RELEASE = PARSED.pop("release")  # runs for a tag, which only who may write can make
PAGES = PARSED.pop("pages")  # runs for what is on main
JOBS = [job for parsed in PARSED.values() for job in parsed["jobs"].values()]
STEPS = [step for job in JOBS for step in job["steps"]]


def released() -> list[tuple[str, str]]:
    """The changelog's versions with their dates, the newest first."""
    return re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})$", CHANGELOG, re.M)


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (version, date), *_ = released()
    assert __version__ == project["version"] == CITATION["version"] == version
    assert CITATION["date-released"] == date


BEYOND_CI = {
    "make notebooks", "make coverage", "make test-fast", "make test-optional", ".ci/lowest > lowest.txt", ".ci/same_bits",
}  # fmt: skip
"""What workflows run and .ci/run does not: it takes longer, or is about other versions, or about what was before."""


def test_workflows_run_all_that_ci_runs():
    ci = re.findall(r"^(make \S+|\.ci/\S+)(.*?)(?: \|\| .*)?$", (ROOT / ".ci/run").read_text(), re.M)
    ran = [step["run"] for step in STEPS if "run" in step]
    assert len(ci) >= 5
    assert {"".join(command) for command in ci} | BEYOND_CI == set(ran)
    assert len(ran) == len(set(ran)), "a command runs in one workflow"


@pytest.mark.parametrize(
    ("workflow", "when", "made", "rights"),
    [
        (RELEASE, {"tags": ["v*"]}, ".ci/wheel dist", {"id-token": "write"}),
        (PAGES, {"branches": ["main"]}, "make site", {"pages": "write", "id-token": "write"}),
    ],
)
def test_only_what_publishes_gets_a_token_and_it_takes_what_was_made(workflow, when, made, rights):
    assert workflow[True] == {"push": when} and workflow["permissions"] == {"contents": "read"}
    jobs = workflow["jobs"]
    assert {name: job.get("permissions") for name, job in jobs.items()} == {"build": None, "publish": rights}
    assert made in [step.get("run") for step in jobs["build"]["steps"]] and jobs["publish"]["needs"] == "build"
    assert [given["persist-credentials"] for given in of(jobs["build"], "actions/checkout")] == [False]


def of(job: dict, action: str) -> list[dict]:
    """A job's steps that use an action, as their inputs."""
    return [step.get("with", {}) for step in job["steps"] if step.get("uses", "").startswith(f"{action}@")]


NEED_HISTORY = ("make test", "make test-long", ".ci/same_bits")
STRANGERS = {
    "the token reads and nothing else": lambda: all(
        parsed["permissions"] == {"contents": "read"} for parsed in PARSED.values()
    ) and not any("permissions" in job for job in JOBS),
    "no workflow runs a stranger's code with our rights": lambda: {
        name for parsed in PARSED.values() for name in parsed[True]  # YAML's "on"
    } == {"push", "pull_request", "schedule", "workflow_dispatch"},
    "no checkout leaves the token in the clone": lambda: all(
        given["persist-credentials"] is False for job in JOBS for given in of(job, "actions/checkout")
    ),
    "what needs the history has it": lambda: all(
        given.get("fetch-depth") == (0 if any(step.get("run") in NEED_HISTORY for step in job["steps"]) else None)
        for job in JOBS for given in of(job, "actions/checkout")
    ),
    "actions are named by a commit's hash, with the version beside it": lambda: all(
        re.fullmatch(r"(\./\S+|[\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+)", used)
        for path in (*WORKFLOWS, *ACTIONS) for used in re.findall(r"uses: (.*)", path.read_text())
    ),
    "an action has one hash": lambda: len(
        {used.split("@")[0] for path in (*WORKFLOWS, *ACTIONS) for used in re.findall(r"uses: (.*@.*)", path.read_text())}
    ) == len({used for path in (*WORKFLOWS, *ACTIONS) for used in re.findall(r"uses: (.*@.*)", path.read_text())}),
    "nothing that a stranger writes is part of a command": lambda: not any("${{" in step.get("run", "") for step in STEPS),
    "the long tests run for a label": lambda: all(
        "labels.*.name, 'long'" in job["if"] for job in PARSED["long"]["jobs"].values()
    ) and "labeled" in PARSED["long"][True]["pull_request"]["types"],
    "bits are compared for every pull request": lambda: "pull_request" in PARSED["tests"]["jobs"]["same-bits"]["if"],
    "the lowest and the newest versions are tried": lambda: PARSED["nightly"]["jobs"]["versions"]["strategy"]["matrix"] == {
        "constraints": ["lowest.txt", "/dev/null"]
    },
    "every Python from the lowest that is promised is tried, and a newer one may fail": lambda: (
        PARSED["tests"]["jobs"]["test"]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13", "3.14"]
        and "!= '3.11'" in PARSED["tests"]["jobs"]["test"]["continue-on-error"]
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", STRANGERS)
def test_a_strangers_change_is_tested_as_ours_and_gets_no_rights(rule):
    assert STRANGERS[rule]()


def test_the_lowest_versions_are_those_of_the_project():
    done = subprocess.run([sys.executable, ROOT / ".ci/lowest"], capture_output=True, text=True, check=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {line for lines in (project["dependencies"], *project["optional-dependencies"].values()) for line in lines}
    assert [line.replace("==", ">=").removesuffix(".*") for line in done.stdout.splitlines()] == sorted(
        line for line in wanted if ">=" in line
    )

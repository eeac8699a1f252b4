"""`make lab` as a student starts it: in a container as root, the first lesson open, links to the docs not broken."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.request

import pytest

from conftest import ROOT, tracked

MAKE = ["make", "-o", ".venv/.ready", "lab"]
TOKEN = "fortests"
LINK = re.compile(r"\]\(((?!https?:|#|data:|attachment:)[^)#\s]+)")


def test_no_envelope_lies_among_the_notebooks():
    listed = [name for name in tracked() if name.startswith("notebooks/")]
    assert listed and all(re.fullmatch(r"notebooks/(\w+\.ipynb|README\.md)", name) for name in listed)


@pytest.fixture(scope="module")
def ask():
    """Ask a server that `make lab` started: path -> its answer."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"--no-browser --port={port} --IdentityProvider.token={TOKEN}"
    server = subprocess.Popen(
        [*MAKE, f"LAB_OPTIONS={options}"], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip

    def answer(path: str) -> str:
        asked = urllib.request.Request(f"http://127.0.0.1:{port}/{path}", headers={"Authorization": f"token {TOKEN}"})
        with urllib.request.urlopen(asked, timeout=60) as got:
            return got.read().decode()

    try:
        opened = next((line for line in server.stderr if f":{port}/" in line), None)
        assert opened is not None, "it did not start"
        answer.opened = opened.split(f":{port}/", 1)[1].partition("?")[0]
        for _ in range(60):
            try:
                answer("api")
                break
            except OSError:
                time.sleep(0.5)
        yield answer
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)
        server.stderr.close()


def contents(ask, path: str) -> dict:
    return json.loads(ask(f"api/contents/{path}"))


@pytest.mark.long
def test_it_opens_the_first_lesson_and_its_links_lead_to_files(ask):
    assert ask.opened == "lab/tree/student/00_start_here.ipynb" and "JupyterLab" in (page := ask(ask.opened))
    assert "@jupyterlab/apputils-extension:announcements" in page.partition("disabledExtensions")[2], "no pop-up"
    book = contents(ask, "notebooks/00_start_here.ipynb")["content"]
    prose = "\n".join(cell["source"] for cell in book["cells"] if cell["cell_type"] == "markdown")
    links = {os.path.normpath(f"notebooks/{link}") for link in LINK.findall(prose)}
    assert links
    for link in links | {"docs/running.md", "README.md"}:
        assert contents(ask, f"{link}?content=0")["path"] == link


@pytest.mark.long
def test_the_file_browser_shows_lessons_and_no_answers(ask):
    names = [entry["name"] for entry in contents(ask, "notebooks")["content"]]
    assert "18_referee.ipynb" in names
    assert not [name for name in names if not name.endswith(".ipynb") and name != "README.md"]
    assert "python3" in json.loads(ask("api/kernelspecs"))["kernelspecs"]


@pytest.mark.long
def test_drawings_show_before_a_lesson_is_run(ask):
    """JupyterLab shows SVG, and lesson 00's first page in a frame, only in trusted cells; `make lab` signs the lessons as they are."""
    for name in ("notebooks/00_start_here", "student/00_start_here", "notebooks/07_fedecho"):
        cells = contents(ask, f"{name}.ipynb")["content"]["cells"]
        kinds = ("image/svg+xml", "text/html")
        drawn = [
            cell for cell in cells if any(set(kinds) & set(one.get("data", {})) for one in cell.get("outputs", []))
        ]
        assert drawn and all(cell["metadata"]["trusted"] for cell in drawn)

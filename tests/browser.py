"""A notebook in JupyterLab, in a headless browser.

Playwright steers a browser that is there already. It is looked for in this order: what ASYNCFL_BROWSER names
("none": no browser), a Chromium or Chrome on the PATH, Chrome in macOS's applications, and what
``playwright install chromium`` has put in the home directory. Everything runs on 127.0.0.1, on copies, in a
configuration of its own: no setting of the user is read or changed, and the browser resolves no other address.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import nbformat
import psutil
from nbformat.sign import NotebookNotary
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
NAMES = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)  # fmt: skip
PATIENCE = 300.0
"""Seconds that a run of a notebook, or a start, may take on a busy machine; nothing waits longer than it must."""

STATE = """() => {
    const panel = window.jupyterapp?.shell.currentWidget;
    if (!panel?.content?.widgets || !panel.sessionContext?.isReady) return null;  // no notebook, or not yet
    const code = panel.content.widgets.map(cell => cell.model).filter(m => m.type === 'code' && m.sharedModel.source.trim());
    const outputs = code.map(m => Array.from({length: m.outputs.length}, (_, i) => m.outputs.get(i)));
    return {
        path: panel.context.path,
        kernel: panel.sessionContext.session?.kernel?.status ?? 'none',
        counts: code.map(m => m.executionCount),
        errors: outputs.flat().filter(o => o.type === 'error').map(o => o.toJSON().traceback.join('\\n')),
    };
}"""
"""The notebook in front, asked of JupyterLab itself: its kernel's status, execution counts, and tracebacks."""


def find_browser() -> str | None:
    """Return the path of a browser that Playwright can steer, or None."""
    asked = os.environ.get("ASYNCFL_BROWSER")
    if asked == "none":
        return None
    if asked:
        if found := shutil.which(asked):
            return found
        raise FileNotFoundError(f"ASYNCFL_BROWSER: must be a browser's path, its name, or 'none', got {asked!r}")
    for name in NAMES:
        if found := shutil.which(name):
            return found
    with sync_playwright() as playwright:
        return shutil.which(playwright.chromium.executable_path)


@contextlib.contextmanager
def lab(folder: Path, home: Path) -> Iterator[str]:
    """Serve a folder with JupyterLab; yield its address with room for a notebook's name: ``address.format(name)``.

    As in ``make lab``, the notebooks are trusted and ``labextensions/`` is loaded. Settings, ``lab.log`` and all else go
    into ``home``. At the end the server, its kernels and whatever they started are gone.
    """
    (home / "data").mkdir()
    notary = NotebookNotary(data_dir=str(home / "data"))
    for path in folder.glob("*.ipynb"):
        notary.sign(nbformat.read(path, as_version=4))
    token = secrets.token_hex(16)
    own = {f"JUPYTER_{kind}_DIR": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")}
    own |= {"JUPYTERLAB_SETTINGS_DIR": str(home / "settings"), "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces")}
    environment = {**os.environ, **own, "JUPYTER_TOKEN": token}
    environment.pop("JUPYTER_PATH", None)  # it would outrank this environment's kernel
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    options = ["--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}", f"--ServerApp.root_dir={folder}"]
    options += [f"--LabApp.extra_labextensions_path={ROOT / 'labextensions'}"]
    options += ["--LabApp.expose_app_in_browser=True", "--LabApp.extension_manager=readonly"]
    with (home / "lab.log").open("w") as log:
        command = [sys.executable, "-m", "jupyterlab", *options]
        server = psutil.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield f"{_wait_for_server(server, home, token)}lab/tree/{{}}?token={token}&reset"  # no layout of before
        finally:
            _end(server)


def _wait_for_server(server: psutil.Popen, home: Path, token: str) -> str:
    """Return the address of a server that answers; it tells the port, which may not be the one that was asked for."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        with contextlib.suppress(OSError, ValueError, StopIteration):
            url = json.loads(next((home / "runtime").glob("jpserver-*.json")).read_text())["url"]
            request = urllib.request.Request(f"{url}api/status", headers={"Authorization": f"token {token}"})
            with urllib.request.urlopen(request, timeout=10):
                return url
        time.sleep(0.2)  # between two questions
    raise AssertionError(f"JupyterLab did not start; its log ends:\n{(home / 'lab.log').read_text()[-3000:]}")


def _end(server: psutil.Popen) -> None:
    """Ask a server to stop with its kernels, and kill what is left: kernels have process groups of their own."""
    with contextlib.suppress(psutil.NoSuchProcess):  # it may have died by itself
        started = [server, *server.children(recursive=True)]
        server.terminate()
        _, left = psutil.wait_procs(started, timeout=20)
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=10)


@contextlib.contextmanager
def browser_page(executable: str, size: tuple[int, int] = (1400, 1000)) -> Iterator[Page]:
    """Yield an empty page of a new headless browser with a new profile."""
    offline = ["--disable-quic", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=offline, timeout=PATIENCE * 1000)
        try:
            page = browser.new_page(viewport={"width": size[0], "height": size[1]})
            page.set_default_timeout(60_000)
            yield page
        finally:
            browser.close()


def open_notebook(page: Page, address: str, name: str) -> None:
    """Open a notebook of a :func:`lab`, and wait until it is drawn and its kernel is idle."""
    page.goto(address.format(name))
    _wait_until(page, f"s.path === {json.dumps(name)} && s.kernel === 'idle'")
    page.locator(".jp-Cell:visible").first.wait_for()
    page.locator("#jupyterlab-splash").wait_for(state="detached")


def run_all(page: Page) -> list[str]:
    """Choose "Run All Cells" from the menu, wait until all have run or one has failed; return the tracebacks."""
    page.locator(".lm-MenuBar-item", has_text="Run").click()
    page.locator(".lm-Menu-item[data-command='runmenu:run-all']").click()
    _wait_until(page, "s.errors.length || (s.kernel === 'idle' && s.counts.every(count => count !== null))")
    return page.evaluate(STATE)["errors"]


def _wait_until(page: Page, condition: str) -> None:
    """Wait until a JavaScript condition on ``s``, the STATE, holds."""
    asked = f"(() => {{ const s = ({STATE})(); return s && ({condition}); }})()"
    page.wait_for_function(asked, polling=300, timeout=PATIENCE * 1000)


def serious(page: Page, rules: dict[str, dict] | None = None) -> dict[str, list[str]]:
    """Return what axe-core finds serious or critical on an open page, rule -> first nodes, with options for rules."""
    from axe_playwright_python.sync_playwright import Axe

    options = {"resultTypes": ["violations"], "iframes": False, "preload": False, "rules": rules or {}}
    return {
        one["id"]: [node["html"][:120] for node in one["nodes"][:3]]
        for one in Axe().run(page, options=options).response["violations"]
        if one["impact"] in ("serious", "critical")
    }


def copied(folder: Path, home: Path) -> Path:
    """Copy a folder's notebooks, so that nothing that is tracked changes; return where they are."""
    target = home / "notebooks"
    target.mkdir(parents=True)
    for path in folder.glob("*.ipynb"):
        shutil.copy(path, target)
    return target

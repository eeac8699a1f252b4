"""What could run somebody else's code is used nowhere, but for places that are listed with their reason."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
from pathlib import Path

from conftest import tracked

ROOT = Path(__file__).parent.parent
FOLDERS = ("asyncfl_lite", "asyncfl_reproduction", "asyncfl_course", "benchmarks", "docs", "examples")
CODE = sorted(
    path
    for path in [path for name in FOLDERS for path in (ROOT / name).rglob("*.py")]
    if "__pycache__" not in path.parts
)  # fmt: skip
ALLOWED = {
    ("asyncfl_course/zoo/exhibits.py", "compile"): "of the package's own source, one fragment of it replaced",
    ("asyncfl_course/zoo/exhibits.py", "exec"): "of the same",
    ("asyncfl_lite/tasks/task.py", "pickle.loads"): "of a part of what pickle itself is loading",
    ("asyncfl_lite/base/settings_files.py", "yaml.load"): "with a subclass of yaml.SafeLoader",
    ("asyncfl_lite/runs/config.py", "yaml.load"): "with yaml.CSafeLoader or yaml.SafeLoader",
}
BY_NAME = {"eval", "exec", "compile", "__import__"}
BY_ATTRIBUTE = {
    "pickle": {"load", "loads", "Unpickler"}, "dill": {"load", "loads"}, "cloudpickle": {"load", "loads"},
    "joblib": {"load"}, "shelve": {"open"}, "marshal": {"load", "loads"}, "pd": {"read_pickle", "eval"},
    "yaml": {"load", "load_all", "full_load", "full_load_all", "unsafe_load", "unsafe_load_all"},
    "os": {"system", "popen"}, "hub": {"load"}, "torch": {"load"}, "np": {"load"},
}  # fmt: skip


def dangers(code: str) -> list[str]:
    """Names of what a module calls, or derives from, that may run what it reads."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call):
            options = {option.arg: ast.unparse(option.value) for option in node.keywords}
            name = ast.unparse(node.func)
            found += [
                f"{name} with {option}" for option in ("shell", "trust_remote_code") if options.get(option) == "True"
            ]
            if name.endswith("torch.load") and options.get("weights_only") == "True":
                continue
            if name.endswith("np.load") and options.get("allow_pickle", "False") == "False":
                continue
            if name in BY_NAME or _is_attribute(node.func):
                found.append(name)
        elif isinstance(node, ast.ClassDef):
            found += [ast.unparse(base) for base in node.bases if _is_attribute(base)]
        elif isinstance(node, ast.ImportFrom) and node.module in BY_ATTRIBUTE:
            found += [f"{node.module}.{name.name}" for name in node.names if name.name in BY_ATTRIBUTE[node.module]]
    return found


def _is_attribute(node: ast.expr) -> bool:
    if not isinstance(node, ast.Attribute):
        return False
    holder = ast.unparse(node.value).split(".")[-1]
    return node.attr in BY_ATTRIBUTE.get(holder, ())


def test_nothing_runs_what_it_reads_but_what_is_listed():
    found = {(path.relative_to(ROOT).as_posix(), name) for path in CODE for name in dangers(path.read_text())}
    assert found == set(ALLOWED), "each needs a reason in ALLOWED, or another way"


def test_the_lab_binds_to_loopback_and_keeps_its_token():
    """Root is let in only where one is root."""
    told = ["make", "-o", ".venv/.ready", "-n", "lab"]
    recipe = subprocess.run(told, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (command,) = [line for line in recipe.splitlines() if "jupyter lab" in line]
    assert "--ip=127.0.0.1" in command.split() and '--ServerApp.root_dir="$PWD"' in command
    assert ("--allow-root" in recipe) == (os.getuid() == 0)
    assert not [word for word in command.split() if "token" in word.lower() or "password" in word.lower()]
    assert not [word for word in command.split() if "allow" in word.lower() or "disable" in word.lower()]


OPENS_PORTS = {
    r"^dask (scheduler|worker)\b": r"--host 127\.0\.0\.1 .*--dashboard-address 127\.0\.0\.1:0|\$TLS .*--dashboard-address 127\.0\.0\.1:0",
    r"SLURMCluster\(": r"security=Security\(.*interface=.*\"dashboard_address\": \"127\.0\.0\.1:0\".*\"--dashboard-address\", \"127\.0\.0\.1:0\"",
    r"-m\s+http\.server\b": r"--bind 127\.0\.0\.1",
    r"--ip=0\.0\.0\.0(?=[^\n]*`)": r"-p\s+127\.0\.0\.1:8888:8888",
    r"jupyter[- ](?:lab|notebook|server) --": r"--ip=127\.0\.0\.1|^(?!.*--ip=)",
    r"LocalCluster\(|create_server\(|HTTPServer\(": r"127\.0\.0\.1",
}
"""What opens a port, and what must follow it within a few lines."""


def test_what_pages_and_programs_open_is_on_loopback_or_behind_tls():
    """Dask's --no-dashboard closes no port, and a server of Python's listens on all addresses if it is not told."""
    texts = [ROOT / name for name in tracked() if Path(name).suffix in {"", ".md", ".py", ".yml", ".typ"}]
    seen = dict.fromkeys(OPENS_PORTS, 0)
    for path in texts:
        text = path.read_text(errors="replace") if path.is_file() and path != Path(__file__) else ""
        assert "--no-dashboard" not in text.replace("with `--no-dashboard`, too", ""), path
        for opens, told in OPENS_PORTS.items():
            for found in re.finditer(opens, text, re.M):
                seen[opens] += 1
                line = text[found.start() : found.start() + (700 if "Cluster" in opens else 250)]
                line = line.partition("\n")[0] if opens[0] == "^" else line
                assert re.search(told, line, re.S), f"{path}: {line!r}"
    assert all(seen.values()), seen


def test_no_notebook_holds_a_token_or_listens_to_all():
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        text = "".join("".join(cell["source"]) for cell in json.loads(path.read_text())["cells"])
        assert "0.0.0.0" not in text and "token=" not in text and "--allow-root" not in text, path.name


def test_the_servers_own_default_is_a_token():
    """`make lab` says nothing of a token because JupyterLab makes one each time; that must stay so."""
    from jupyter_server.auth.identity import IdentityProvider

    provider = IdentityProvider()
    assert len(provider.token) >= 32 and provider.token_generated and provider.auth_enabled

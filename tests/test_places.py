"""Without the clone: what an installed package carries, from any folder, and with few libraries."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from asyncfl_reproduction import home
from asyncfl_reproduction.home import tier_file

ROOT = Path(__file__).parent.parent
PACKAGES = ("asyncfl_lite", "asyncfl_reproduction", "asyncfl_course")


def test_a_tier_is_found_from_any_folder_and_one_s_own_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ours = ROOT / "asyncfl_reproduction/cells/smoke.yaml"
    assert tier_file("smoke") == tier_file("smoke.yaml") == tier_file("cells/smoke.yaml") == ours
    assert tier_file("elsewhere/smoke.yaml") == Path("elsewhere/smoke.yaml")  # not ours, whatever its name
    own = Path("cells/smoke.yaml")
    own.parent.mkdir()
    own.write_text("tier: smoke\n")
    assert tier_file("smoke") == tier_file("cells/smoke.yaml") == own
    Path("mine.yaml").write_text("tier: mine\n")
    assert tier_file("mine.yaml") == Path("mine.yaml")
    Path("smoke").mkdir()  # a folder of that name is no file of cells
    assert tier_file("smoke") == own


# --- the wheel -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The package as pip makes it, from a copy, as that leaves files beside it."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in (*PACKAGES, "notebooks"):
        shutil.copytree(ROOT / name, folder / "clone" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "clone" / name)
    build = "import setuptools.build_meta as build; print(build.build_wheel('..'))"
    made = subprocess.run([sys.executable, "-c", build], cwd=folder / "clone", capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    (found,) = folder.glob("*.whl")
    return found


def test_the_wheel_carries_the_package_and_what_grids_and_reports_read(wheel):
    carried = set(zipfile.ZipFile(wheel).namelist())
    own = [
        path
        for name in PACKAGES
        for kind in ("py", "json", "yaml", "svg", "jinja")
        for path in (ROOT / name).rglob(f"*.{kind}")
    ]
    own += [*home.PAPERS.glob("*.csv"), home.PAPERS / "SHA256SUMS", ROOT / "asyncfl_lite/py.typed"]
    own += {*home.RESULTS.rglob("searches.parquet"), *home.RESULTS.glob("league/*/*.parquet")}
    shipped = {str(path.relative_to(ROOT)) for path in own}
    shipped |= {f"asyncfl_reproduction/notebooks/{name}.ipynb" for name in ("experiment", "report")}
    assert {name for name in carried if ".dist-info/" not in name} == shipped


@pytest.fixture(scope="module")
def installed(wheel) -> dict[str, str]:
    """An environment in which the wheel is what Python finds, as if there were no clone."""
    place = wheel.parent / "installed"
    zipfile.ZipFile(wheel).extractall(place)
    return {**os.environ, "PYTHONPATH": str(place)}


def there(installed: dict[str, str], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=installed, capture_output=True, text=True, timeout=540
    )


@pytest.mark.long
def test_the_wheel_runs_a_cell_reports_and_records_it_outside_the_clone(installed, tmp_path):
    cell = "fedecho/table2/large-dir0.1/fedbuff"
    grid = there(installed, tmp_path, "-m", "asyncfl_lite", "grid", "smoke", "--only", cell)
    assert grid.returncode == 0 and "1 cell done" in grid.stdout, grid.stdout + grid.stderr
    assert json.loads((tmp_path / "runs/smoke" / cell / "result.json").read_text())["status"] == "complete"
    report = there(installed, tmp_path, "-m", "asyncfl_lite", "report", "--tier", "smoke")
    assert report.returncode == 0, report.stderr
    assert re.search(rf"{cell} .*3", report.stdout) and "75.39" in (tmp_path / "runs/smoke/report.html").read_text()
    record = there(installed, tmp_path, "-m", "asyncfl_lite", "record", "--tier", "smoke")
    assert record.returncode == 0 and "3 runs written" in record.stdout

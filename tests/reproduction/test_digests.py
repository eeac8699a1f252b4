"""Records that are damaged are told, whichever bit has flipped; and every number on a page is read from a checked record."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest

from asyncfl_course import lessons
from asyncfl_course.referee import records as referee
from asyncfl_lite.base.errors import ResultError
from asyncfl_reproduction import published
from asyncfl_reproduction.digests import SUMS, checked, keep, main
from asyncfl_reproduction.home import PAPERS, RESULTS
from asyncfl_reproduction.parquet import DIGEST, _digest, read_table, write_table
from asyncfl_reproduction.report import laptop_verdicts

ROOT = Path(__file__).parents[2]
RECORDS = (
    "asyncfl_reproduction/results",
    "asyncfl_reproduction/printed",
    "asyncfl_course/results",
    "benchmarks/results",
)
TABLE = pd.DataFrame({"cell": ["a", "b"] * 20, "seed": range(40), "accuracy": np.linspace(0, 1, 40)})


def damaged(content: bytes, seed: int, times: int = 120):
    """Yield a file's content with one flipped bit, and every fifth time cut off."""
    chance = random.Random(seed)
    for time in range(times):
        place = chance.randrange(8 * len(content))
        changed = bytearray(content[: place // 8 if time % 5 == 0 else None])
        if time % 5:
            changed[place // 8] ^= 1 << place % 8
        yield bytes(changed)


def parquet(folder: Path) -> Path:
    write_table(folder / "runs.parquet", TABLE)
    return folder / "runs.parquet"


def text(folder: Path) -> Path:
    keep(TABLE, folder / "table.csv", index=False)
    return folder / "table.csv"


@pytest.mark.parametrize(
    ("made", "changed", "read"),
    [(parquet, "runs.parquet", read_table), (text, "table.csv", checked), (text, SUMS, checked)],
    ids=["parquet", "csv", "digests"],
)
def test_every_damage_is_one_line(tmp_path, made, changed, read):
    path = made(tmp_path)
    read(path)
    for content in damaged((tmp_path / changed).read_bytes().rstrip(), seed=1):
        (tmp_path / changed).write_bytes(content)
        with pytest.raises(
            ResultError, match=rf"{path.name}: (damaged|is damaged|has no SHA-256|cannot be read)"
        ) as caught:
            read(path)
        assert "\n" not in str(caught.value)


def test_a_record_without_a_digest_is_refused_until_it_is_accepted(tmp_path, capsys):
    """As an earlier version wrote it."""
    old, csv, none = tmp_path / "runs.parquet", tmp_path / "table.csv", tmp_path / "none.parquet"
    TABLE.to_parquet(old)
    TABLE.to_csv(csv)
    for path, read in ((old, read_table), (csv, checked)):
        with pytest.raises(ResultError, match=rf"has no SHA-256.* python -m asyncfl_reproduction.digests {path}$"):
            read(path)
    assert main([str(old), str(csv)]) == 0 and capsys.readouterr().out == "2 files accepted\n"
    pd.testing.assert_frame_equal(read_table(old), TABLE.astype({"cell": "str"}))
    assert checked(csv) == csv
    write_table(tmp_path / "again.parquet", TABLE)
    assert old.read_bytes() == (tmp_path / "again.parquet").read_bytes()
    old.write_bytes(b"PAR1 and nothing else")
    for path, said in ((old, "cannot be read ("), (none, "cannot be read (No such file"), (tmp_path, "Is a directory")):
        assert main([str(path)]) == 2
        told = capsys.readouterr().err
        assert said in told and told.count("\n") == 1


@pytest.mark.parametrize("folder", RECORDS)
def test_what_is_recorded_here_has_its_digest(folder):
    files = [path for path in (ROOT / folder).rglob("*.*") if path.suffix in {".parquet", ".csv", ".json"}]
    assert files
    for path in files:
        if path.suffix == ".parquet":
            content = path.read_bytes()
            assert content.rpartition(DIGEST)[2].startswith(_digest(content)), path
        else:
            checked(path)
    for sums in (ROOT / folder).rglob(SUMS):
        names = [line.split("  ")[1] for line in sums.read_text().splitlines()]
        assert names == sorted(names) and all((sums.parent / name).is_file() for name in names)


@pytest.fixture
def changed(tmp_path, monkeypatch):
    """Copies of the records that are no tables in Parquet, with one bit of each flipped, read in place of the originals."""
    for place, name in (
        (PAPERS, "printed"),
        (RESULTS / "laptop", "results/laptop"),
        (ROOT / "asyncfl_course/results", "course"),
    ):
        shutil.copytree(place, tmp_path / name, ignore=shutil.ignore_patterns("*.parquet", "fed*", "kuiper"))
    for path in tmp_path.rglob("*.csv"):
        content = bytearray(path.read_bytes())
        content[-3] ^= 1  # of the last number
        path.write_bytes(content)
    monkeypatch.setattr(published, "PAPERS", tmp_path / "printed")
    monkeypatch.setattr(referee, "RECORDED", tmp_path / "course/18_referee.csv")
    for function in (published._read, published.layout):
        function.cache_clear()
    yield tmp_path
    for function in (published._read, published.layout):
        function.cache_clear()


@pytest.mark.parametrize(
    "read",
    [
        lambda folder: published.published("FedEcho", "Table 2"),
        lambda folder: published.artefacts("FedEcho"),
        lambda folder: published.hyperparameters("FedEcho"),
        lambda folder: published.layout("FedEcho", "Table 2"),
        lambda folder: laptop_verdicts.read_decided(folder / "results"),
        lambda folder: lessons.checked(folder / "course/14_theory.csv"),
        lambda folder: referee.runs_of.__wrapped__("deaf/deaf"),
    ],
    ids=["printed", "artefacts", "hyperparameters", "layout", "verdicts", "lesson", "referee"],
)
def test_no_reader_uses_a_changed_text_file(changed, read):
    with pytest.raises(ResultError, match="is damaged or changed"):
        read(changed)


def test_lessons_and_packages_read_records_through_the_check():
    books = {path: nbformat.read(path, 4).cells for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}
    cells = [(path.name, cell.source) for path, found in books.items() for cell in found if cell.cell_type == "code"]
    files = [
        path
        for name in ("asyncfl_reproduction", "asyncfl_course", "benchmarks")
        for path in (ROOT / name).rglob("*.py")
    ]
    sources = cells + [(path.name, path.read_text()) for path in files]
    reads = [(name, read) for name, source in sources for read in re.findall(r"pd\.read_csv\((.{20})", source, re.S)]
    made_now = ("cli.py", "kept, dtype=str, kee")  # the report's own table, which it has just written
    assert len(reads) >= 20
    assert [one for one in reads if "checked(" not in one[1] and one != made_now] == []
    assert [name for name, source in cells if ".to_csv(" in source] == []

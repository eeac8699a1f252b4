"""A report's first line says how many of its runs have the recorded accuracy; a table has them seed by seed."""

from __future__ import annotations

import json
import math
import shutil

import pandas as pd
import pytest
from test_laptop_verdicts import kept_with

from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.grid.record import write_tidy
from asyncfl_reproduction.grid.run import run_seeds
from asyncfl_reproduction.report import Page, Recorded
from asyncfl_reproduction.report.against_records import agreement, by_seed, in_words

WORDS = {
    "none": ([], [], ""),
    "one": ([0.5], [0.5], "The only run has the recorded accuracy to the bit."),
    "all": ([0.5, 0.7], [0.5, 0.7], "All 2 runs have the recorded accuracy to the bit."),
    "last-bit": ([0.5, 0.7], [0.5, math.nextafter(0.7, 1)], "1 of 2 runs have the recorded accuracy to the bit; the other is within 0.1 points."),
    "points": ([0.5, 0.7, 0.3], [0.504, 0.7, 0.31], "1 of 3 runs have the recorded accuracy to the bit; the other 2 are within 1.0 points."),
    "both-diverged": ([math.nan, 0.7], [math.nan, 0.7], "All 2 runs have the recorded accuracy to the bit."),
    "one-diverged": ([math.nan, 0.7], [0.5, 0.7], "1 of 2 runs have the recorded accuracy to the bit; the other diverged, here or in the record."),
    "some-diverged": ([math.nan, 0.7], [0.5, 0.8], "0 of 2 runs have the recorded accuracy to the bit; some of the other 2 diverged, here or in the record."),
}  # fmt: skip


@pytest.mark.parametrize(("here", "before", "said"), WORDS.values(), ids=WORDS)
def test_agreement_is_one_sentence(here, before, said):
    assert in_words(pd.DataFrame({"accuracy": here, "recorded": before}, dtype=float)) == said


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tier of two cells, both recorded, and a part of it whose runs are those of one cell."""
    folder = tmp_path_factory.mktemp("agreement")
    settings = {"task": "digits", "clients": 5, "concurrency": 3, "rounds": 2, "buffer_size": 2}
    tiers = {"whole": {"about": "small", "seeds": [0, 1], "settings": settings}}
    (folder / "p.yaml").write_text(json.dumps({"paper": "p", "tiers": tiers, "cells": {"p/a": {}, "p/b": {}}}))
    (folder / "whole.yaml").write_text("{tier: whole, papers: [p.yaml]}")
    (folder / "part.yaml").write_text("{tier: whole, part: again, seeds: [1, 0], papers: [p.yaml]}")
    whole, part = expand_grid(folder / "whole.yaml"), expand_grid(folder / "part.yaml")
    for cell in whole:
        run_seeds(cell.config.as_dict(), cell.seeds, cell.folder(folder / "runs"))
    assert write_tidy(whole, folder / "runs", folder / "kept/whole") == 4
    shutil.copytree(whole[0].folder(folder / "runs"), part[0].folder(folder / "runs"))
    return folder


def test_only_runs_of_this_report_are_compared_with_the_record(folder):
    recorded = Recorded(folder / "part.yaml", folder / "runs", folder / "kept")
    assert recorded.tier == "again" and list(recorded.results) == ["p/a"]  # p/b is recorded, but was not run
    found = agreement(recorded, folder / "kept")
    assert found[["cell", "seed"]].to_numpy().tolist() == [["p/a", 1], ["p/a", 0]]
    assert found["accuracy"].equals(found["recorded"])
    found["recorded"] += [0.0, 0.01]
    told = by_seed(found, {"p/a": "A"})
    assert f"{100 * found['accuracy'][0]:.2f}</td>" in told and f"(recorded: {100 * found['recorded'][1]:.2f})" in told
    assert agreement(recorded, None).empty and agreement(recorded, folder / "nowhere").empty
    read = Recorded(folder / "whole.yaml", folder / "nothing", folder / "kept")
    assert agreement(read, folder / "kept").empty  # it is the record


def test_the_first_line_of_the_report_is_the_answer(folder, shown):
    Page(folder / "part.yaml", folder / "runs", kept_with(folder / "kept", "reversed")).in_a_minute()
    assert shown[0].data.startswith(
        "**The papers' 12 central comparisons. Recorded, with up to 10 seeds: 1 reversed. This run: none was run. "
        "All 2 runs have the recorded accuracy to the bit.**"
    )
    assert "<table" in shown[1].data and "Accuracy of 2 runs by seed" in shown[2].data

"""KUIPER's claims about printed tables and schedules can hold and fail."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd

from asyncfl_lite.reproduction.claims import FAILS, HOLDS, Measured, kuiper
from asyncfl_lite.reproduction.measure import kuiper as measure
from asyncfl_lite.reproduction.published import published

CHECKS = {claim.id: claim.check for claim in kuiper.KUIPER}


def test_printed_tables_can_fail(monkeypatch):
    assert kuiper.ratio_between("Nano", 1.0, 2.0).verdict == FAILS
    seconds = {data: {"Nano": 1.0, "TX2": 2.0, "NX": 3.0, "AGX": 4.0} for data in measure.LAWS}
    monkeypatch.setattr(kuiper, "epoch_seconds", lambda: seconds)
    assert CHECKS["KU-T1-a"](Measured({})).verdict == FAILS

    def slower(paper: str, artefact: str) -> pd.DataFrame:
        table = published(paper, artefact)
        table.loc[table["metric"].str.contains("time") & (table.index == 0), "value"] *= 2
        return table

    monkeypatch.setattr(kuiper, "published", slower)
    assert CHECKS["KU-T3-b"](Measured({})).verdict == FAILS
    assert CHECKS["KU-T4-b"](Measured({})).verdict == FAILS


def test_asynchronous_time_is_taken_from_the_schedules(monkeypatch):
    def made_up(config):
        time = 60.0 if config.algorithm == "kuiper" else 100.0
        return SimpleNamespace(updates=pd.DataFrame({"arrived_at": [time]}))

    monkeypatch.setattr(measure, "schedule", made_up)
    measure.seconds_of_80_epochs.cache_clear()
    assert CHECKS["KU-T4-a"](Measured({})).verdict == HOLDS
    measure.seconds_of_80_epochs.cache_clear()

"""KUIPER's claims about printed tables and schedules can hold and fail."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from asyncfl_lite.models.video import ResNet3d
from asyncfl_reproduction.claims import FAILS, HOLDS, Measured, kuiper
from asyncfl_reproduction.grid.cells import expand_grid
from asyncfl_reproduction.measure import kuiper as measure
from asyncfl_reproduction.published import published

CHECKS = {claim.id: claim.check for claim in kuiper.KUIPER}


def test_printed_tables_can_fail(monkeypatch):
    assert kuiper.ratio_between("Nano", 1.0, 2.0).verdict == FAILS
    seconds = {data: {"Nano": 1.0, "TX2": 2.0, "NX": 3.0, "AGX": 4.0} for data in measure.LAWS}
    monkeypatch.setattr(kuiper, "printed_seconds", lambda table: seconds)
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


def test_the_printed_times_speak_for_every_layer(monkeypatch):
    found = CHECKS["KU-T1-d"](Measured({}))
    assert found.verdict == HOLDS
    assert "HMDB51 3.7, 4.3, 2.3, 2.1; UCF101 6.9, 8.3, 4.0, 4.2" in found.detail
    assert found.detail.endswith("with one clip for each test video HMDB51 has 1.6, 1.9, 1.0, 0.9")
    by_hand = 391.1 / (3570 / 4) / (181.4 / 1530)
    assert by_hand == pytest.approx(3.70, abs=0.005)
    tests = kuiper.printed_seconds("Table 2")
    epochs = {data: {board: seconds / 7 for board, seconds in of.items()} for data, of in tests.items()}
    monkeypatch.setattr(kuiper, "printed_seconds", {"Table 1": epochs, "Table 2": tests}.get)
    assert CHECKS["KU-T1-d"](Measured({})).verdict == FAILS, "an epoch of about one forward pass a clip: the last layer"


@pytest.mark.parametrize("trained", measure.PASSES)
def test_the_passes_are_those_of_the_papers_network(trained):
    network = ResNet3d(width=64, blocks="resnet18", norm="batch", trainable=trained).build((3, 8, 112, 112), 51)
    network, clips = network.to("meta"), torch.zeros(2, 3, 8, 112, 112, device="meta")
    with FlopCounterMode(display=False) as forward, torch.no_grad():
        network(clips)
    with FlopCounterMode(display=False) as step:
        network(clips).sum().backward()
    assert step.get_total_flops() / forward.get_total_flops() == pytest.approx(measure.PASSES[trained], abs=0.005)


def test_headline_cells_have_a_variant_in_which_the_last_layer_alone_is_trained():
    cells = {
        cell.name: cell for cell in expand_grid(Path(__file__).parents[2] / "asyncfl_reproduction/cells/paper.yaml")
    }
    last = [name for name in cells if name.startswith("kuiper/last/")]
    panels = [
        f"kuiper/last/{panel}/bias1/{method}" for panel in kuiper.PANELS for method in ("kuiper", "oort", "fedbuff")
    ]
    assert sorted(last) == sorted([*panels, "kuiper/last/fig3b/bias0.8/kuiper", "kuiper/last/fig9a/bias0.8/no-error"])
    for name in last:
        whole, part = (cells[one].config for one in (name.replace("/last", ""), name))
        changed = whole.model_settings.model_copy(update={"trainable": "last"})
        assert part == whole.model_copy(update={"model_settings": changed}), name
        assert "only the last layer" in cells[name].ours["model_settings"]
        assert "Appendix H" in cells[name.replace("/last", "")].ours["model_settings"]
        assert "8,062" in cells[name].ours["task_settings"]

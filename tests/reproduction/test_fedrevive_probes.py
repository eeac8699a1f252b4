"""What is measured on short runs of FedRevive: its proxies, and the parts of its updates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from asked import cells_of

from asyncfl_lite.base.errors import ConfigError
from asyncfl_lite.runs.config import Config
from asyncfl_lite.runs.run import Run
from asyncfl_reproduction.measure import fedrevive as probes

pytestmark = pytest.mark.usefixtures("quick_syntheses")


def test_probes_run_the_smoke_tiers_cell_on_digits():
    cell = cells_of("fedrevive", "smoke")["fedrevive/table1/cifar10/fedrevive"]
    theirs, ours = cell.config.as_dict(), Config(**probes.SMOKE, task="digits").as_dict()
    of_digits = {"task", "task_settings", "model", "model_settings", "horizon", "eval_every"}
    differ = {name for name in theirs if theirs[name] != ours[name]} - of_digits
    assert differ == {"settings"}  # whose rates of the generator are a task's
    assert {name: theirs["settings"][name] for name in probes.SMOKE["settings"]} == probes.SMOKE["settings"]


def test_worked_divergence():
    left, right = np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[0.25, 0.75], [0.5, 0.5]])
    expected = [0.5 * np.log(2) + 0.5 * np.log(2 / 3), np.log(2)]
    assert probes.divergence(left, right) == pytest.approx(expected)


def small(**settings) -> Config:
    """Thirty updates, twenty of them with distillation."""
    chosen = {**probes.SMOKE["settings"], "freeze_rounds": 2, "synthesis_only_rounds": 10, **settings}
    return Config(
        **{**probes.SMOKE, "clients": 20, "concurrency": 5, "horizon": None, "rounds": 30, "settings": chosen}
    )


def test_watching_changes_nothing():
    plain, watched = Run(small()), Run(small())
    parts = probes.UpdateParts(watched)
    assert torch.equal(plain.finish().x, watched.finish().x)
    rows = pd.DataFrame(parts.rows)
    assert rows["version"].min() >= 10
    assert len(rows) > 10
    assert (rows[["stale", "distilled", "both"]] != 0).any().all()


def test_with_all_weight_on_what_is_distilled_nothing_is_stale():
    run = Run(small(beta_family="constant", beta_constant=1.0))
    parts = probes.UpdateParts(run, every=3)
    run.finish()
    rows = pd.DataFrame(parts.rows)
    assert (rows["version"] % 3 == 0).all()
    assert rows["stale"].abs().max() < 0.01  # rounding may turn a borderline sample
    assert np.allclose(rows["both"], rows["distilled"], atol=0.01)
    assert rows["distilled"].abs().max() > 0


def test_probes_refuse_other_methods():
    run = Run(Config(task="digits", rounds=1))
    with pytest.raises(ConfigError, match="algorithm"):
        probes.UpdateParts(run)
    with pytest.raises(ConfigError, match="algorithm"):
        probes.proxy_divergences(run)
    with pytest.raises(ConfigError, match="estimated"):
        probes.proxy_divergences(Run(small(proxy="true")))

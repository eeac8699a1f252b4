"""The result of a run that has ended, made from its tables and its summary."""

from __future__ import annotations

import hashlib
from typing import Any

import pandas as pd

from asyncfl_lite.runs.results import Result
from asyncfl_lite.runs.saved import SavedRun
from asyncfl_lite.runs.summary import (
    class_summary,
    classes_of,
    client_summary,
    curve_summary,
    score_clients,
    trouble_summary,
    update_summary,
)
from asyncfl_lite.runs.trained import Trained
from asyncfl_lite.simulator.tables import Schedule, who_did_what


def result_of(run: SavedRun, seconds: float, cpu_seconds: float, stopped: str | None) -> Result:
    """Return the result of a run that has ended.

    Args:
        run: the run at its end; its curve already has the last row.
        seconds, cpu_seconds: wall-clock seconds and processor seconds that the run took.
        stopped: the reason why a callback stopped the run; None if none did.
    """
    curve = pd.DataFrame([dict(row) for row in run.curve_rows])
    who = who_did_what(run.simulation, run.parts)
    if run.task.clients:
        who = who._replace(clients=score_clients(who.clients, run.task, run.predict, run.parts))
    classes = classes_of(run.task, run.predict, run.parts, who.updates)
    return Result(
        run.config,
        _summary(run, curve, who, classes, stopped),
        curve,
        *who,
        {"seconds": seconds, "cpu_seconds": cpu_seconds, "training_cpu_seconds": run.training_seconds},
        run.algorithm.x,
        run.own_task,
        data=run.data,
        classes=classes,
        trained=Trained(
            run.config.model_settings,
            run.task.input_spec,
            run.model.loaded(run.algorithm.x, run.algorithm.buffers),
        ),
        versions=run.ran_under[0],
        continued_under=run.ran_under[1:],
    )


def _summary(
    run: SavedRun, curve: pd.DataFrame, who: Schedule, classes: pd.DataFrame, stopped: str | None
) -> dict[str, Any]:
    """Return the run's summary: final scores, counts, staleness and digests, by name."""
    weights = run.algorithm.x.detach().cpu().contiguous()
    return {
        **curve_summary(curve),
        "virtual_time": float(run.simulation.clock),
        "versions": int(run.algorithm.version),
        **update_summary(who.updates),
        "rejected_updates": len(run.algorithm.rejections),
        "most_versions_in_flight": run.simulation.most_versions_in_flight,
        "empty_clients": sum(not len(part) for part in run.parts),
        "parameters": run.model.num_parameters,
        "training": "cohort" if run.trainer.cohort else "one by one",
        "weights_sha256": hashlib.sha256(weights.numpy().tobytes()).hexdigest(),
        "schedule_sha256": who.digest,
        **class_summary(classes),
        **client_summary(who.clients),
        **({} if stopped is None else {"stopped": stopped}),
        **({} if run.config.trouble.none else trouble_summary(who)),
    }

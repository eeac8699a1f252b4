"""A table that compares several results."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from asyncfl_lite.base.errors import ConfigError, shown
from asyncfl_lite.runs.defaults import flat
from asyncfl_lite.runs.results import Result

ALWAYS = ("algorithm", "task", "seed")
"""Settings that get a column even if they are the same in all results."""


def results_table(results: Iterable[Result]) -> pd.DataFrame:
    """Return one row per result: its settings, then its summary.

    Args:
        results: any number of results, from :func:`run`, :func:`run_many` or :func:`load_result`.

    Returns:
        Columns: ``algorithm``, ``task`` (or the name of your own data), ``seed``, every other setting in which the
        results differ (a setting in a group is called, for example, ``settings.clip``), and ``result.summary`` without
        its digests. A value that a result does not have is empty.

    Raises:
        ConfigError: when anything other than results is given.

    Example: the number of updates that four versions take, for two buffer sizes with three seeds each.

    >>> from asyncfl_lite import Config, results_table, run_many
    >>> configs = [Config(task="digits", algorithm="fedbuff", buffer_size=size, rounds=4) for size in (2, 10)]
    >>> table = results_table(run_many([config.with_seed(seed) for config in configs for seed in range(3)]))
    >>> list(table.columns[:5])
    ['algorithm', 'task', 'seed', 'buffer_size', 'final_accuracy']
    >>> table.groupby("buffer_size")["client_updates"].mean().to_dict()
    {2: 8.0, 10: 40.0}
    """
    if isinstance(results, Result) or not isinstance(results, Iterable):
        raise ConfigError(f"results: must be a list of results, got {shown(results)}")
    results = list(results)
    if odd := [one for one in results if not isinstance(one, Result)]:
        raise ConfigError(f"results: must be a list of results, got {shown(odd[0])} in it")
    if not results:
        return pd.DataFrame(columns=list(ALWAYS))
    settings = pd.DataFrame([flat(one.config.as_dict()) for one in results], dtype=object)
    settings["task"] = [one.own_task or one.config.task for one in results]
    differ = [name for name in settings if name not in ALWAYS and settings[name].map(repr).nunique() > 1]
    summary = pd.DataFrame([one.summary for one in results]).filter(regex="^(?!.*_sha256$)")
    return pd.concat([settings[[*ALWAYS, *differ]].infer_objects(), summary], axis=1)

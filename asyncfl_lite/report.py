"""What the report shows: recorded results as tables, beside the published numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from asyncfl_lite.atomic import write_atomically
from asyncfl_lite.cells import Cell, expand_grid
from asyncfl_lite.claims import CLAIMS, VERDICTS, Measured, check_claims
from asyncfl_lite.claims.base import deviation
from asyncfl_lite.errors import ConfigError
from asyncfl_lite.kernels import quiet_kernels
from asyncfl_lite.published import published
from asyncfl_lite.results import Result

MISSING = "not run"


class Recorded:
    """A tier's cells with what was recorded of them.

    Args:
        tier_file: ``experiments/<tier>.yaml``.
        runs: folder of results.

    Attributes:
        cells: every cell of the tier, by name.
        results: cell -> its finished runs, by seed; cells without any are absent.
    """

    def __init__(self, tier_file: str | Path, runs: str | Path) -> None:
        self.cells: dict[str, Cell] = {cell.name: cell for cell in expand_grid(tier_file)}
        loaded = {name: cell.load(Path(runs)) for name, cell in self.cells.items()}
        self.results: dict[str, list[Result]] = {name: results for name, results in loaded.items() if results}

    @property
    def measured(self) -> Measured:
        """What claims are checked on."""
        summaries = {name: pd.DataFrame([r.summary for r in results]) for name, results in self.results.items()}
        return Measured(summaries, {name: [r.curve for r in results] for name, results in self.results.items()})

    def accuracies(self, cell: str) -> np.ndarray:
        """Return the ``(seeds,)`` final accuracies of a cell, in percent; empty when it was not run."""
        return np.array([100 * result.summary["final_accuracy"] for result in self.results.get(cell, [])])

    def table(self) -> pd.DataFrame:
        """Return a row a cell: accuracy over seeds, virtual time, updates, staleness, seconds."""
        rows = []
        for name in self.cells:
            results = self.results.get(name)
            if not results:
                rows.append({"cell": name, "accuracy %": MISSING})
                continue
            numbers = pd.DataFrame([result.summary for result in results])
            rows.append(
                {
                    "cell": name,
                    "accuracy %": mean_and_deviation(self.accuracies(name)),
                    "seeds": len(results),
                    "versions": int(numbers["versions"].mean()),
                    "virtual time": round(numbers["virtual_time"].mean(), 1),
                    "updates": int(numbers["client_updates"].mean()),
                    "mean staleness": round(numbers["mean_staleness"].mean(), 1),
                    "max staleness": int(numbers["max_staleness"].max()),
                    "CPU s a run": round(np.mean([result.timing["cpu_seconds"] for result in results]), 1),
                }
            )
        return pd.DataFrame(rows).fillna("")

    def beside(self, paper: str, artefact: str) -> pd.DataFrame:
        """Return every printed number of a table with ours beside it.

        Returns:
            The columns of the paper's setting that differ between its rows, ``paper``, ``ours`` and
            ``cell``; ``ours`` is "not run" where there is nothing.
        """
        printed = published(paper, artefact)
        varying = [
            name
            for name in ("dataset", "method", *printed.columns[list(printed.columns).index("notes") + 1 :])
            if printed[name].nunique(dropna=False) > 1
        ]
        rows = []
        for _, row in printed.iterrows():
            cell = self._cell_of(artefact, row)
            spread = "" if pd.isna(row["std"]) else f" ± {row['std']:.2f}"
            rows.append(
                {
                    **{name: "" if pd.isna(row[name]) else row[name] for name in varying},
                    "paper": f"{float(row['value']):.2f}{spread}",
                    "ours": MISSING if cell is None else mean_and_deviation(self.accuracies(cell)),
                    "cell": cell or "",
                }
            )
        return pd.DataFrame(rows)

    def _cell_of(self, artefact: str, row: pd.Series) -> str | None:
        """Return the cell that says that it stands beside a printed row."""
        for name, cell in self.cells.items():
            for wanted in cell.published:
                if wanted["artefact"] == artefact and all(
                    str(row.get(column)) == value for column, value in wanted.items()
                ):
                    return name
        return None

    @cached_property
    def _claims(self) -> dict[str, pd.DataFrame]:
        """Every paper's claims, checked once: some simulate."""
        return {paper: check_claims(self.measured, claims) for paper, claims in CLAIMS.items()}

    def claims(self, paper: str) -> pd.DataFrame:
        """Return a row a claim of the paper with its verdict."""
        return self._claims[paper]

    def verdicts(self, paper: str) -> pd.Series:
        """Return how many claims hold, are undecided, fail, were not run."""
        return self.claims(paper)["ours"].value_counts().reindex(VERDICTS, fill_value=0)


def mean_and_deviation(values: Sequence[float]) -> str:
    """Return ``93.10 ± 0.52``, or "not run" for nothing."""
    if not len(values):
        return MISSING
    values = np.asarray(values)
    return f"{values.mean():.2f} ± {deviation(values):.2f}" if len(values) > 1 else f"{values.mean():.2f}"


def make_report(
    tier: str,
    runs: str | Path = "runs",
    experiments: str | Path = "experiments",
    notebook: str | Path = "notebooks/report.ipynb",
) -> Path:
    """Execute the report notebook and export it to HTML; return the HTML file's path.

    Raises:
        ConfigError: when the tier has no file.
    """
    import papermill
    from nbconvert import HTMLExporter

    tier_file = Path(experiments) / f"{tier}.yaml"
    if not tier_file.exists():
        tiers = sorted(path.stem for path in Path(experiments).glob("*.yaml"))
        raise ConfigError(f"tier: {tier_file} does not exist; there are: {', '.join(tiers) or 'none'}")
    folder = Path(runs) / tier
    folder.mkdir(parents=True, exist_ok=True)
    executed, page = folder / "report.ipynb", folder / "report.html"
    quiet_kernels()
    parameters = {"tier_file": str(tier_file.resolve()), "runs": str(Path(runs).resolve())}
    papermill.execute_notebook(notebook, executed, parameters, kernel_name="python3", progress_bar=False)
    exporter = HTMLExporter(exclude_input=True, exclude_input_prompt=True, exclude_output_prompt=True)
    write_atomically(page, exporter.from_filename(str(executed))[0])
    return page

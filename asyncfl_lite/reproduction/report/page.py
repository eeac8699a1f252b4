"""What ``notebooks/report.ipynb`` calls: each method shows one part of the report."""

from __future__ import annotations

import io
from pathlib import Path

from IPython.display import Image, Markdown, display
from matplotlib.figure import Figure
from PIL import Image as Pixels

from asyncfl_lite import plots
from asyncfl_lite.reproduction.report import (
    figures_fedadt,
    figures_fedecho,
    figures_fedrevive,
    figures_kuiper,
    figures_kuiper_parts,
    head_to_head,
    summary,
)
from asyncfl_lite.reproduction.report.export import write_tables
from asyncfl_lite.reproduction.report.figures import PaperFigure, draw_curves
from asyncfl_lite.reproduction.report.forest import draw_forest
from asyncfl_lite.reproduction.report.recorded import MISSING, Recorded
from asyncfl_lite.reproduction.report.searches import searches
from asyncfl_lite.reproduction.report.tables import artefacts, background, beside, listed, styled

FIGURES: dict[tuple[str, str], PaperFigure] = {
    (figure.paper, figure.name): figure
    for module in (figures_fedecho, figures_fedrevive, figures_kuiper, figures_kuiper_parts, figures_fedadt)
    for figure in module.FIGURES
}
SKETCHES = {
    ("FedRevive", "Fig. 1"): "the method as a diagram",
    ("KUIPER", "Fig. 15"): "the chain of teachers as a diagram",
    ("FedADT", "Fig. 2"): "the method as a diagram",
}
"""Figures that show nothing measured."""


def picture(figure: Figure) -> Image:
    """Return a figure as a PNG with a palette, a third of the size: a report has some forty."""
    drawn, small = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=figure.dpi)
    palette = Pixels.Quantize.MAXCOVERAGE  # the default's averages turn thin lines into other methods' colours
    Pixels.open(drawn).convert("RGB").quantize(256, palette, dither=0).save(small, format="png", optimize=True)
    return Image(small.getvalue())


class Page:
    """A report, part by part.

    Args:
        tier_file: ``experiments/<tier>.yaml``.
        runs: folder of results.
        kept: folder of the tables of recorded runs, see :class:`Recorded`.
    """

    def __init__(self, tier_file: str | Path, runs: str | Path, kept: str | Path | None = None) -> None:
        plots.use_style()
        self.recorded = Recorded(tier_file, runs, kept)

    def summary(self) -> None:
        """Show how many claims have each verdict, by paper and by kind, and the headline numbers."""
        table = summary.verdicts(self.recorded)
        verdicts = list(table.columns[3:])
        style = listed(table).apply(lambda column: [background(column.name)] * len(column), subset=verdicts)
        kinds = listed(self.recorded.verdicts_by_kind())
        display(style, kinds)
        if (forest := draw_forest(self.recorded.headlines)) is not None:
            display(picture(forest))
        display(listed(summary.headlines(self.recorded), "ours", by="verdict"))
        if sentence := summary.constant_answers(self.recorded):
            display(Markdown(sentence))

    def stand_ins(self) -> None:
        """Show what the tier's data and models are."""
        cells, runs = len(self.recorded.cells), len(self.recorded.results)
        kept = len(self.recorded.from_kept)
        where = f" {kept} of them are read from the tables in `results/{self.recorded.tier}/`." if kept else ""
        said = f"**{runs} of {cells} cells recorded.**{where} What stands in for data and models:"
        display(Markdown(said), listed(summary.stand_ins(self.recorded)))

    def claims(self, paper: str) -> None:
        """Show every claim of a paper: its text, what the paper's own numbers say, our verdict and why."""
        display(Markdown(f"**{paper}: every claim**"), listed(self.recorded.claims(paper.lower()), "ours"))

    def table(self, paper: str, *names: str) -> None:
        """Show printed tables with ours beside them."""
        for name in names:
            display(Markdown(f"**{paper}, {name}**"), styled(beside(self.recorded, paper, name), paper, name))

    def texts(self, paper: str) -> None:
        """Show a paper's numbers that stand in text and captions."""
        self.table(paper, *(name for name in artefacts(paper) if not name.startswith("Table")))

    def figure(self, paper: str, *names: str) -> None:
        """Show figures redrawn, each below its caption, or say that nothing of one was run."""
        for name in names:
            if (paper, name) in SKETCHES:
                display(Markdown(f"**{paper}, {name}**: {SKETCHES[paper, name]}; nothing measured."))
                continue
            figure = FIGURES[paper, name]
            drawn = figure.draw(self.recorded)
            missing = f" **{MISSING.capitalize()} at this tier.**" if drawn is None else ""
            display(Markdown(f"**{paper}, {name}.** {figure.caption}{missing}"))
            if drawn is not None:
                display(picture(drawn))

    def head_to_head(self) -> None:
        """Show the ranked heat map, mean ranks with their critical difference, and the numbers."""
        display(Markdown(head_to_head.in_words(self.recorded)))
        for figure in (head_to_head.heat_map(self.recorded), head_to_head.critical_differences(self.recorded)):
            if figure is not None:
                display(picture(figure))
        display(listed(head_to_head.table(self.recorded)))

    def questions(self) -> None:
        """Show the questions across the papers with their answers."""
        display(listed(self.recorded.questions, "state"))

    def methods(self) -> None:
        """Show every method once in one setting, as a table and as curves."""
        display(listed(summary.methods(self.recorded)))
        if (figure := draw_curves(self.recorded, summary.methods_by_kind(self.recorded), unit="10 s")) is not None:
            display(picture(figure))

    def compute(self) -> None:
        """Show processor time by paper and method, and what was not run."""
        display(listed(summary.compute(self.recorded), precision=2), Markdown(summary.not_run(self.recorded)))

    def searches(self) -> None:
        """Show what was tried for methods' settings, and what was best."""
        said = (
            "**Searches for settings.** Each method on a workload with as many combinations, and what was best, which "
            "cells of the laptop tier take. *printed*: the clients' rate beside the server's settings as its paper "
            "prints them."
        )
        display(Markdown(said), listed(searches(), precision=1))

    def ours(self) -> None:
        """Show the settings that the papers do not print, and what was taken."""
        display(listed(summary.ours(self.recorded)))

    def cells(self) -> None:
        """Show every cell."""
        display(listed(self.recorded.table()))

    def write_tables(self, folder: str | Path | None) -> None:
        """Write every table of the report in three formats; nothing without a folder."""
        if folder:
            files = write_tables(self.recorded, folder)
            display(Markdown(f"{len(files) // 3} tables as CSV, Markdown and LaTeX in `{Path(folder).name}/`."))

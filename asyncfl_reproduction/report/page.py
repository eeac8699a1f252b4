"""The methods that ``notebooks/report.ipynb`` calls, each of which shows one part of the report."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd
from IPython.display import HTML, Image, Markdown, display
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from pandas.io.formats.style import Styler
from PIL import Image as Pixels

from asyncfl_lite import plots
from asyncfl_lite.base.errors import how_many
from asyncfl_reproduction.claims import VERDICTS, Measured
from asyncfl_reproduction.claims.checking import check_all
from asyncfl_reproduction.claims.headlines import HEADLINES
from asyncfl_reproduction.published import artefacts, layout
from asyncfl_reproduction.report import (
    against_records,
    figures_fedadt,
    figures_fedecho,
    figures_fedrevive,
    figures_kuiper,
    head_to_head,
    laptop_verdicts,
    styled_tables,
    summary,
)
from asyncfl_reproduction.report.export import write_tables
from asyncfl_reproduction.report.figures import PaperFigure, draw_curves
from asyncfl_reproduction.report.forest import draw_forest
from asyncfl_reproduction.report.names import FOOTNOTE, WORDS, marked, names, words
from asyncfl_reproduction.report.printed_tables import as_list, background, beside, folded, listed, was_run
from asyncfl_reproduction.report.recorded import MISSING, Recorded
from asyncfl_reproduction.report.searches import draw_tries, own_searches, searches, tries
from asyncfl_reproduction.tuning.grids import study_of

PANELS, LINES, PICTURES = 12, 12, 4
"""Most panels of a picture of a user's own curves, most lines of a panel, and most pictures."""
FIGURES: dict[tuple[str, str], PaperFigure] = {
    (paper, name): figure
    for paper, module in {
        "FedEcho": figures_fedecho,
        "FedRevive": figures_fedrevive,
        "KUIPER": figures_kuiper,
        "FedADT": figures_fedadt,
    }.items()
    for name, figure in module.FIGURES.items()
}


def picture(figure: Figure, alt: str) -> Image:
    """Return a figure as a PNG with alternative text; a palette of 256 colours cuts the file to a third."""
    drawn, small = FigureCanvasAgg(figure), io.BytesIO()
    drawn.draw()  # savefig would draw everything twice
    palette = Pixels.Quantize.MAXCOVERAGE  # the default method averages thin lines into other methods' colours
    pixels = Pixels.fromarray(np.asarray(drawn.buffer_rgba())).convert("RGB")
    pixels.quantize(256, palette, dither=0).save(small, format="png", optimize=True)
    return Image(small.getvalue(), alt=alt)


def _about(table: pd.DataFrame) -> str:
    """Describe a table's numbers by their metrics and units, if there are at most three, and by the number of seeds."""
    metrics = table[["metric", "unit"]].drop_duplicates().agg(", ".join, axis=1)
    seeds = styled_tables.usual_seeds(table)
    spread = f" · ours: mean ± standard deviation over {how_many(int(seeds), 'seed')}" if seeds else ""
    return f" · {'; '.join(metrics)}" * (len(metrics) <= 3) + spread


def _in_one_line(table: pd.DataFrame, where: str) -> pd.DataFrame:
    """Return a table of :func:`beside` with its settings as one column, so that different tables fit together."""
    settings = list(table.columns[: list(table.columns).index("metric")])
    texts = [
        ", ".join(f"{words(name)} {WORDS.get(value, value)}" for name, value in row.items() if value)
        for row in table[settings].to_dict("records")
    ]
    joined = table.drop(columns=settings)
    joined.insert(0, "where", where)
    joined.insert(2, "setting", texts)
    return joined


class Page:
    """The parts of a report, each shown by one method."""

    def __init__(self, tier_file: str | Path, runs: str | Path, kept: str | Path | None = None) -> None:
        plots.use_style()
        self.recorded = Recorded(tier_file, runs, kept)
        self.names = names(self.recorded.cells)
        self.decided = laptop_verdicts.read_decided(None if self.recorded.tier == laptop_verdicts.TIER else kept)
        self._kept = kept

    def in_a_minute(self) -> None:
        """Show the recorded verdicts on the papers' central comparisons, this run's, and what to open next."""
        agreed = against_records.agreement(self.recorded, self._kept)
        if len(self.decided):
            said = laptop_verdicts.in_words(self.recorded, self.decided, against_records.in_words(agreed))
            display(Markdown(said), HTML(laptop_verdicts.beside(self.recorded.headlines, self.decided)))
        if len(agreed):
            display(HTML(against_records.by_seed(agreed, self.names)))
        display(Markdown(laptop_verdicts.NEXT))

    def summary(self) -> None:
        """Show how many claims have each verdict, by kind and by paper, and show the headline numbers."""
        display(Markdown(f"**{self.recorded.trained_in_words()}** Every method is tuned; a table by kind follows."))
        for table in (self.recorded.verdicts_by_kind(), summary.verdicts(self.recorded)):
            verdicts = [name for name in table.columns if name in VERDICTS]
            table[verdicts] = table[verdicts].astype(str).replace("0", "·")
            display(listed(table).apply(lambda column: [background(column.name)] * len(column), subset=verdicts))
        if (forest := draw_forest(self.recorded.headlines)) is not None:
            display(picture(forest, "Twelve headlines as differences with their intervals, tuned and untuned"))
        display(summary.headlines_shown(self.recorded))
        if html := summary.constant_answers(self.recorded, self.names):
            display(HTML(html))

    def stand_ins(self) -> None:
        """Show the tier's data and models, and the originals that they stand in for."""
        cells, runs = len(self.recorded.cells), len(self.recorded.results)
        kept = len(self.recorded.from_kept)
        where = f" {kept} of them are read from the tables in `results/{self.recorded.tier}/`." if kept else ""
        stand_in = "The data and models, and what they stand in for:"
        said = f"**{runs} of {how_many(cells, 'cell')} recorded.**{where} {FOOTNOTE} {stand_in}"
        display(Markdown(said), listed(summary.stand_ins(self.recorded).replace({"cells": summary.TITLES})))

    def claims(self, paper: str) -> None:
        """Show every claim of a paper with its text, the paper's own numbers, our verdict and the reason."""
        table = self.recorded.claims(paper.lower())
        if len(self.decided):
            table[styled_tables.RECORDED] = table["id"].map(self.decided["verdict"]).fillna(MISSING)
        display(HTML(styled_tables.claims(table, self.names, paper)))

    def table(self, paper: str, *names: str) -> None:
        """Show printed tables with our numbers beside them, and fold the rows that were not run."""
        for name in names:
            table = beside(self.recorded, paper, name)
            styled = partial(styled_tables.styled, paper=paper, artefact=name, names=self.names)
            self._table(table, was_run(table, paper, name), f"{paper}, {name}", styled)

    def texts(self, paper: str) -> None:
        """Show the numbers from a paper's text and captions in one table."""
        tables = [_in_one_line(beside(self.recorded, paper, name), name)
                  for name in artefacts(paper) if not name.startswith("Table")]  # fmt: skip
        table = pd.concat(tables, ignore_index=True).fillna("")
        styled = partial(styled_tables.in_rows, names=self.names, paper=paper)
        self._table(table, was_run(table), f"{paper}, text and captions", styled)

    def _table(self, table: pd.DataFrame, run: pd.Series, title: str, style: Callable[[pd.DataFrame], Styler]) -> None:
        """Show the rows that were run, below a title, and fold the others."""
        if run.any():
            display(Markdown(f"**{title}**{_about(table)}"), style(table[run]))
        if not run.all():
            said = "more numbers" if run.any() else "numbers"
            line = f"{escape(title)}: {int((~run).sum())} {said} not run, or not measurable here"
            display(HTML(folded(line, style(table[~run]).to_html())))

    def figure(self, paper: str, *names: str) -> None:
        """Show redrawn figures, each below its caption, and fold the figures without any run."""
        left = []
        for name in names:
            if sketch := layout(paper, name).sketch:
                display(Markdown(f"**{paper}, {name}**: {sketch}; nothing measured."))
                continue
            figure = FIGURES[paper, name]
            drawn = figure.draw(self.recorded)
            if drawn is None:
                left.append(f"{paper}, {name}. {figure.caption}")
                continue
            said = f"**{paper}, {name}.** {figure.caption}"
            display(Markdown(said), picture(drawn, said.replace("*", "")))
        if left:
            display(HTML(folded(f"{how_many(len(left), 'figure')} not run at this tier", as_list(left))))

    def head_to_head(self) -> None:
        """Show the league as a ranked heat map, as mean ranks with their critical difference, and as numbers."""
        league = self.recorded.league.measured
        display(Markdown(head_to_head.in_words(league)))
        figures = {
            "Accuracy by method, setting and column as a heat map; its numbers are below": head_to_head.heat_map(
                league
            ),
            "Mean ranks of the methods with their critical difference": head_to_head.critical_differences(league),
        }
        display(*(picture(figure, alt) for alt, figure in figures.items() if figure is not None))
        display(HTML(folded("The numbers with their deviations", listed(head_to_head.table(league)).to_html())))

    def questions(self) -> None:
        """Show the questions that compare the papers, with their answers."""
        run = self.recorded.questions["state"] != MISSING
        if run.any():
            display(HTML(styled_tables.questions(self.recorded.questions[run], names(self.recorded.league.cells))))
        if not run.all():
            left = listed(self.recorded.questions[~run].drop(columns="state")).to_html()
            display(HTML(folded(f"{how_many(int((~run).sum()), 'question')} not answered", left)))

    def methods(self) -> None:
        """Show every method once in the same setting, as a table and as curves."""
        table = summary.methods(self.recorded)
        run = table["accuracy %"].str[:1].str.isdigit()
        display(listed(table[run]) if run.any() else Markdown("Not run at this tier."))
        if (figure := draw_curves(self.recorded, summary.methods_by_kind(self.recorded), unit="10 s")) is not None:
            display(picture(figure, "Accuracy over virtual time, one line per method, a panel per kind of server"))

    def compute(self) -> None:
        """Show processor time by paper and method."""
        display(listed(summary.compute(self.recorded).replace({"paper": summary.TITLES}), precision=2))

    def searches(self) -> None:
        """Show which settings were tried for each method, and which were best."""
        cells = list(self.recorded.cells.values())
        central = {study_of(cell) for headline in check_all(Measured.of({}), HEADLINES) for cell in headline.cells}
        if (figure := draw_tries(tries([cell for cell in cells if study_of(cell.name) in central]))) is not None:
            bought = (
                "**The gain from tuning** where the twelve central comparisons are made. The curves show the best "
                "validation accuracy that a method is expected to have found after a number of tries, over all orders "
                "of its combinations, with the first seed only."
            )
            display(Markdown(bought), picture(figure, bought.replace("*", "")))
            said = (
                "Each row is a search in one cell's place. All methods of a place try the same number of combinations. "
                "A tuned cell takes the best of its place's searches. *server_rate*: the server's rate is fixed. "
                "*printed*: FedBuff with equal weights and this server rate."
            )
            display(Markdown(said), _searches_shown(own_searches(cells)))
        said = (
            "The league's searches. All methods on a workload try the same number of combinations. *printed*: only the "
            "clients' rate is searched, with a server rate of 1 or of FedRevive's Table 4. FedAC and FADAS have the "
            "server rate of FedEcho's Table 8, scaled by the number of steps."
        )
        display(Markdown(said), _searches_shown(searches()))

    def ours(self) -> None:
        """Show our values for the settings that the papers do not print."""
        display(listed(summary.ours(self.recorded).replace({"paper": summary.TITLES})))

    def cells(self) -> None:
        """Show every cell by name in folded sections, and the cells whose recorded runs are outdated."""
        display(HTML(summary.cells_shown(self.recorded, self.names) + summary.outdated(self.recorded)))

    def own_cells(self) -> None:
        """Show the cells of a user's own grid, and the cells whose recorded runs are outdated."""
        display(listed(self.recorded.table), HTML(summary.outdated(self.recorded)))

    def own_curves(self) -> None:
        """Show the curves of a user's own grid; cells share a panel if their names differ only in the last part.

        A large grid becomes several pictures, and panels beyond :data:`PICTURES` of them are not drawn.
        """
        groups: dict[str, list[str]] = {}
        for name in self.recorded.cells:
            groups.setdefault(name.rpartition("/")[0], []).append(name)
        panels = {
            f"{title} ({begin + 1} to {min(begin + LINES, len(names))})" if len(names) > LINES else title: {
                name.rpartition("/")[2]: name for name in names[begin : begin + LINES]
            }
            for title, names in groups.items()
            for begin in range(0, len(names), LINES)
        }
        titles = list(panels)
        for begin in range(0, min(len(titles), PANELS * PICTURES), PANELS):
            own = {title: panels[title] for title in titles[begin : begin + PANELS]}
            if (figure := draw_curves(self.recorded, own)) is not None:
                display(picture(figure, "Accuracy over virtual time, one line per cell"))
        if left := titles[PANELS * PICTURES :]:
            display(Markdown(f"{how_many(len(left), 'more panel')} of curves, from `{left[0]}` on, are not drawn."))

    def write_tables(self, folder: str | Path | None, own: bool = False) -> None:
        """Write every table of the report, or of a user's own grid in three formats, if a folder is given."""
        if folder:
            files = write_tables(self.recorded, folder, own=own)
            display(
                Markdown(f"{how_many(len(files) // 3, 'table')} as CSV, Markdown and LaTeX in `{Path(folder).name}/`.")
            )


def _searches_shown(table: pd.DataFrame) -> Styler:
    return listed(table.assign(method=table["method"].map(marked)), precision=1)

"""The report's code by topic; ``notebooks/report.ipynb`` calls one method of :class:`Page` for each part.

- ``recorded``: a tier's cells with their recorded results;
- ``our_numbers``: how each printed number is measured here, in its own unit;
- ``printed_tables``: printed tables with ours beside them, tuned and untuned; a new table needs at most a layout there;
- ``names``: readable names of cells;
- ``styled_tables``: tables and claims as a reader sees them;
- ``figures`` and ``figures_<paper>``: the papers' figures redrawn; a new figure is a row of ``FIGURES`` there;
- ``head_to_head``: ranks of the methods over the places of the league;
- ``summary``: the first page, the computing time, and the settings that are ours;
- ``laptop_verdicts``: the laptop tier's verdicts, kept for other tiers' reports;
- ``export``: every table as CSV, Markdown and LaTeX;
- ``page``: the calls in the notebook.
"""

from asyncfl_lite.base.errors import needs

with needs("grid", "the report"):
    from asyncfl_reproduction.report.page import Page
    from asyncfl_reproduction.report.recorded import Recorded

__all__ = ["Page", "Recorded"]

"""Names that the course imports from the reproduction: records, the rule that judges them, and verdicts.

No other module of this package imports ``asyncfl_reproduction``; a contract in ``pyproject.toml`` enforces this.
"""

from asyncfl_reproduction import statistics as rule
from asyncfl_reproduction.claims.findings import Finding
from asyncfl_reproduction.claims.measured import ACCURACY, PRINTED, TUNED, Measured
from asyncfl_reproduction.digests import checked, keep
from asyncfl_reproduction.grid.borrowed import borrowed
from asyncfl_reproduction.grid.cells import TWIN, Cell, expand_grid
from asyncfl_reproduction.grid.columns import FIXED, RATE_1, untuned
from asyncfl_reproduction.grid.tidy import CURVES, RUNS, paper_of
from asyncfl_reproduction.home import CELLS, RESULTS
from asyncfl_reproduction.league.entry import check_rules, read_entry
from asyncfl_reproduction.parquet import read_table
from asyncfl_reproduction.published import published
from asyncfl_reproduction.report.compared import first_tier
from asyncfl_reproduction.statistics import EQUAL_POINTS, ERROR_LEVEL, as_level, contrast, equivalence, interval, judge
from asyncfl_reproduction.theory.pictures import bound_figure
from asyncfl_reproduction.tuning.tuned import tried
from asyncfl_reproduction.verdicts import BORROWED, HOLDS, LEVEL, NOT_RUN, REVERSED, UNDECIDED
from asyncfl_reproduction.written import with_ends

__all__ = [
    "ACCURACY",
    "as_level",
    "borrowed",
    "BORROWED",
    "bound_figure",
    "Cell",
    "CELLS",
    "check_rules",
    "checked",
    "contrast",
    "CURVES",
    "EQUAL_POINTS",
    "equivalence",
    "ERROR_LEVEL",
    "expand_grid",
    "Finding",
    "first_tier",
    "FIXED",
    "HOLDS",
    "interval",
    "judge",
    "keep",
    "LEVEL",
    "Measured",
    "NOT_RUN",
    "paper_of",
    "PRINTED",
    "published",
    "RATE_1",
    "read_entry",
    "read_table",
    "RESULTS",
    "REVERSED",
    "rule",
    "RUNS",
    "tried",
    "TUNED",
    "TWIN",
    "UNDECIDED",
    "untuned",
    "with_ends",
]

"""Names that the course imports from the reproduction: records, the rule that judges them, and verdicts.

No other module of this package imports ``asyncfl_reproduction``; a contract in ``pyproject.toml`` enforces this.
"""

# ruff: noqa: F401 - others import these names from here

from asyncfl_reproduction import statistics as rule
from asyncfl_reproduction.claims.findings import Finding
from asyncfl_reproduction.claims.measured import ACCURACY, TUNED, Measured
from asyncfl_reproduction.digests import checked, keep
from asyncfl_reproduction.grid.cells import ENDINGS, expand_grid
from asyncfl_reproduction.grid.columns import FIXED, PLAIN, RATE_1, untuned
from asyncfl_reproduction.grid.record import CURVES, RUNS, paper_of
from asyncfl_reproduction.home import CELLS, RESULTS
from asyncfl_reproduction.league.entry import check_rules, read_entry
from asyncfl_reproduction.number_texts import with_ends
from asyncfl_reproduction.parquet import read_table
from asyncfl_reproduction.published import published
from asyncfl_reproduction.statistics import EQUAL_POINTS, ERROR_LEVEL, as_level, contrast, equivalence, interval, judge
from asyncfl_reproduction.theory.pictures import bound_figure
from asyncfl_reproduction.tuning.outcomes import of_cells, rows_of
from asyncfl_reproduction.verdict_words import EQUIVALENT, HOLDS, NOT_RUN, OPEN, REVERSED

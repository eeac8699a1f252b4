"""Names that lessons import besides ``asyncfl_lite``: checks of exercises, and recorded evidence to quote.

from asyncfl_course import lessons

lessons.check("07.1", mixing_weight)     # right, or an input on which it is wrong
lessons.compare("fedecho/table2/large-dir0.1/fedecho-natural", "fedecho/table2/large-dir0.1/fedbuff")
lessons.progress()                       # which exercises are solved
lessons.recall("08")                     # three questions about lesson 06
lessons.checked(path)                    # the path of a recorded file, or an error if the file is damaged
"""

# ruff: noqa: F401 - others import these names from here

from asyncfl_course.evidence import compare, differences, evidence, in_column, leads, scores, searched
from asyncfl_course.exercises import Attempt, Checked, Exercise, attempts, check, exercise, exercises
from asyncfl_course.expectations import Wrong, call, expect, expect_close
from asyncfl_course.progress import Progress, progress
from asyncfl_course.recall import Recall, recall
from asyncfl_course.records import checked, keep

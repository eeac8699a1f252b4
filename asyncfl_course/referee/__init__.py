"""Refereeing a paper: seal a plan that tests a printed claim, run it, and get a verdict and a grade.

from asyncfl_course import referee

referee.case("lead")                     # the claim, what may be used, the digest of a sealed envelope
sealed = referee.seal(plan)              # the plan's SHA-256
verdict = referee.run(plan, sealed)      # refuses a plan that was changed since
referee.grade(plan)                      # a grade of its design, without a look at the results
referee.open_envelope(verdict)           # the truth behind the claim
"""

# ruff: noqa: F401 - others import these names from here

from asyncfl_course.referee.cases import CASES, Case, case, pilots
from asyncfl_course.referee.plan import PROOFS, Control, Plan, Question, Runs, Sealed, canonical, digest_of, seal
from asyncfl_course.referee.rubric import Grade, Line, chance, grade
from asyncfl_course.referee.verdict import NO_VERDICT, Envelope, Verdict, open_envelope, run

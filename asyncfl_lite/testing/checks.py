"""The list of all checks that a method must pass.

To add a rule, write a function ``check_<name>(make)`` whose docstring states the rule, and add it to the list. Its
argument is a :class:`~asyncfl_lite.testing.candidate.Candidate`: ``make()`` returns a fresh instance of the method,
``make.run()`` a small run whose method has been started, and ``reports(make, 5)`` the updates of five clients. The
sentence passed to ``expect`` says what was expected, why it matters, and what was found.
"""

from __future__ import annotations

from asyncfl_lite.testing import class_checks, repeat_checks, run_checks, update_checks
from asyncfl_lite.testing.candidate import Check

CHECKS: list[Check] = [
    class_checks.check_declarations,
    class_checks.check_errors,
    update_checks.check_buffer_size,
    update_checks.check_same_client,
    update_checks.check_order,
    update_checks.check_refusals,
    update_checks.check_flush,
    update_checks.check_starts,
    update_checks.check_starting_again,
    run_checks.check_versions,
    run_checks.check_late_updates,
    run_checks.check_in_place,
    run_checks.check_standing_still,
    run_checks.check_schedule,
    run_checks.check_running_statistics,
    repeat_checks.check_saved_state,
    repeat_checks.check_save_and_restore,
    repeat_checks.check_same_seed,
    repeat_checks.check_randomness,
]
"""All checks, in the order in which they run."""

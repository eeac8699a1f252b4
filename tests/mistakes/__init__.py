"""Plausible mistakes in exercises: `MISTAKES`, exercise -> code in the place of the stub, or edits of the solution."""

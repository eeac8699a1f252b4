"""Searches for methods' settings, with the same number of runs for each; every outcome is kept."""

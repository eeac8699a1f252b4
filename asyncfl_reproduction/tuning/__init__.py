"""Searches for methods' settings: the same number of runs for each, every outcome kept."""

"""Search for methods' settings with the same number of runs for each, and keep every outcome."""

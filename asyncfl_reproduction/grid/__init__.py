"""Grids of cells: their files, cost estimates, runs in worker processes, and recorded results."""

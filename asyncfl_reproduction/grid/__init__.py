"""Grids of cells: read them, estimate their cost, run them in worker processes, and record the results."""

"""Grids of cells: read, costed, run in worker processes, recorded."""

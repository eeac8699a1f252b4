"""Grids of cells: read, estimated, run in worker processes, recorded."""

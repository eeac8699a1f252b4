"""Reproduction of the papers: grids of cells, measurements, claims, theory, and the report."""

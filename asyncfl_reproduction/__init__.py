"""How the papers are reproduced: grids of cells, measurements, claims, theory, and the report."""

"""Support code of the notebooks: exercises, recorded evidence, explorers, the bug zoo, the referee."""

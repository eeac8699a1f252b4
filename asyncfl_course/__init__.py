"""Support code for the notebooks: exercises, recorded evidence, explorers, the bug zoo and the referee."""

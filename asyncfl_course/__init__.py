"""What the notebooks call beside the library: exercises, recorded evidence, explorers, the bug zoo, the referee."""

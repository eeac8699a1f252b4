"""Plausible mistakes in exercises, one module per lesson: `MISTAKES`, exercise -> code in the place of the stub."""

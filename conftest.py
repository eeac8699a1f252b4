"""For notebooks under nbval as for tests: one torch thread a process, kernels that do not chatter."""

import os

from asyncfl_lite.reproduction.grid.kernels import quiet_kernels

os.environ.setdefault("OMP_NUM_THREADS", "1")
quiet_kernels()

"""Measurements without recorded cells: schedules without training, delay laws, short runs, counted operations.

The claims and the report read the numbers; each is computed once per process.
"""

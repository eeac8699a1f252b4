"""Measurements that need no recorded cells, from schedules without training, delay laws, short runs or counting.

The claims and the report read the numbers; each is computed once per process.
"""

"""Measurements that need no recorded cells, from schedules without training, delay laws, short runs or counting.

The claims and the report use these numbers. Numbers that take long are computed once per process.
"""

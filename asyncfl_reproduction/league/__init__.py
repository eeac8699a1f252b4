"""The league compares a newcomer's method with all others, on workloads where their results are recorded."""

"""Checkers of the exercises, one module per lesson."""

"""The exercises, with one module for each part of the course."""

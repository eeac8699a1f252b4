"""The basics: errors, registries, random streams, files, claims, devices and the version."""

__version__ = "0.1.0"

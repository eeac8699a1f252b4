"""The basics that all other packages use: errors, registries, random streams, files, devices and plugins."""

"""What everything stands on: errors, registries of named parts, random streams, files, devices."""

"""The parts that everything else uses: errors, registries of named parts, random streams, files, devices."""

"""Image tasks: real data from Python packages, or from files in their official formats."""

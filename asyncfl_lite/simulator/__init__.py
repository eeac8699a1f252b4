"""The virtual clock: jobs, updates, scheduling, delays, selections, and trouble; it knows nothing of models or data."""

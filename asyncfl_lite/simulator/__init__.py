"""The virtual clock: jobs, updates, scheduling, delays, selection, and trouble, without models or data."""

"""The simulator: a virtual clock with jobs, scheduling, delays, selection and failures, but no models or data."""

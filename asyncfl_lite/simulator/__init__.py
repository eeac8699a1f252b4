"""The simulator: a virtual clock with jobs, scheduling, delays, client selection and failures; no models or data."""

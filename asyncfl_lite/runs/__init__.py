"""Run configurations to results, one alone or several in lockstep, and continue runs that were interrupted."""

"""Runs: from a configuration to a result, alone or several in lockstep, interrupted or in one go."""

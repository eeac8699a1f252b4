"""Runs: from a configuration to a result, alone or several in lockstep, with or without interruptions."""

"""Runs, from configuration to result: one alone or several in lockstep, continued from checkpoints if interrupted."""

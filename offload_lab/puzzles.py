"""Puzzles: write a schedule function; `check` runs it on machines that it has not seen. Pure: no torch, no threads."""

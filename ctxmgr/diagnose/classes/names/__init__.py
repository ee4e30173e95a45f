"""Failure classes of names and places: the name in a call is unknown, missing, or somewhere else."""

"""Failure classes of names and places: what a call names is not known, not there, or somewhere else."""

"""Failure classes of the agent itself: it decides again, lost its context, reads what is cut off, or only talks."""

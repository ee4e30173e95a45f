"""Failure classes of waiting: for a lock, a port, a job, a person, another agent, or a hanging call."""

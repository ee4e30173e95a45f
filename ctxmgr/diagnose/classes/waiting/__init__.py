"""Failure classes of waiting: for a lock, a port, a job, a person, another agent, or for a call that hangs."""

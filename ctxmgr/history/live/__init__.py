"""A running workflow: event bus, blackboard, live monitor, following. Start with `blackboard`."""

"""What a store answers: entries, sessions, notes, artifacts, shared state."""

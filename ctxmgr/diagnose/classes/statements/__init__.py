"""Failure classes that rely on what a note, a file, or the tool itself says about the cause."""

"""Failure classes that go by what a note, a file, or the tool itself says about the cause."""

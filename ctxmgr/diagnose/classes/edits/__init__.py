"""Failure classes of edits: they are refused, made in the wrong file, have no effect, or are undone."""

"""Failure classes of edits: they are refused, made in the wrong file, without effect, or undone."""

"""Readers of what tools say when a call fails, and the table of widely known errors (`table`, its rows are TOML)."""

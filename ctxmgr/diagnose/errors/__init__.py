"""Readers of the texts of failed calls, and the table of widely known errors (`table`, its rows are TOML)."""

"""Recorded text that gives orders to its reader: found here, and withheld by whoever passes text on.

`filter.suspicion` judges a text. It tries the patterns of `patterns.toml` on the text as it stands and on what
is left of it without disguises. Imports nothing of `ctxmgr.recover`.
"""

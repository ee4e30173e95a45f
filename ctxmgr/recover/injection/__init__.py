"""Find recorded text that gives orders to its reader, so that callers can withhold it.

`filter.suspicion` judges a text. It tries the patterns of `patterns.toml` on the text itself, and on the text with its
disguises removed. Imports nothing of `ctxmgr.recover`.
"""

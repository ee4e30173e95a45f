"""Verify a history: its checksums, the tables derived from its records, and a quick status without reading them.

Start with `verification`. It reports damage as `DamagedRange`s of `engine.log_bytes`, which reading a log loads too. `status`
reads counts and versions only. This package may import `engine` and `write`, to build the tables again and compare them.
"""

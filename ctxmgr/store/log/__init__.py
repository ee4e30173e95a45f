"""A JSONL log, read in place through an index that can be deleted at any time.

Start with `log_store`; `log_rows` writes the rows of the index. The log itself only grows. The index lies beside it, or in the
user's cache folder. This package may import all of the store but `archive` and `server_store`.
"""

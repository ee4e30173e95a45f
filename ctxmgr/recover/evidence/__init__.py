"""Read a session through the history tools; search, rank and quote its records.

Begin with `brief`, the start of every answer. `query_builder` and `retrieval` find records about a request or a trouble.
Reads the history and writes nothing. May import `recover.injection` and what lies below `ctxmgr.recover`.
"""

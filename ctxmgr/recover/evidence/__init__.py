"""What a session says: read through the history tools, searched, ranked and quoted.

Begin with `brief`, which every answer starts from; `query_builder` and `retrieval` find what a request or a trouble speaks
of. Reads the history and writes nothing. May import `recover.case`, `recover.injection` and what lies below `ctxmgr.recover`.
"""

"""What a store answers, one noun a module: entries, sessions, notes, artifacts, shared state.

Begin with `queries` (entries, events and search hits by pages) and `sessions`. The SQL of search is in `ctxmgr.store.search`,
that of writing in `ctxmgr.store.write`. It may import `engine`, `search` and the rows of `ctxmgr.store.row_mapper`; what makes
models is imported where they are made, since answers for programs do without.
"""

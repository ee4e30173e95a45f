"""Read a store: entries, sessions, notes, artifacts, shared state, one noun for each module.

Start with `queries` (pages of entries, events and search hits) and `sessions`. The SQL of search is in `ctxmgr.store.search`,
that of writing in `ctxmgr.store.write`. This package may import `engine`, `search` and `ctxmgr.store.row_mapper`. Models are
imported where they are created, because answers for programs need none.
"""

"""Search: the text of records, the index over it, and queries.

Begin with `find`. The index proposes records and `text_match` decides, so that an index of any age gives right answers. `index`
builds it, from texts that `index_texts` reads; `find_on_server` does all of it on a server. It may import `engine` and
`ctxmgr.store.row_mapper`, and writes nothing but its own tables.
"""

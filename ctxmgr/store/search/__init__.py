"""Search: the text of records, the index over it, and queries.

Start with `find`. The index proposes records and `text_match` checks each, so even an outdated index gives correct answers.
`index` builds it from texts that `index_texts` reads. `find_on_server` does both on a server. This package may import `engine`
and `ctxmgr.store.row_mapper`, and writes only its own tables.
"""

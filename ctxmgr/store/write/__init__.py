"""How records become rows: one by one (`append`), or many at once (`log_parser`, `bulk`).

Begin with `append`, then `batch`, which says what is kept beside a record, for both ways. `project_state` does it for the
project's own records, `append_on_server` in one round trip. It may import `engine` and `ctxmgr.store.row_mapper`. Whoever calls
it holds the transaction.
"""

"""Turn records into rows: one by one (`append`), or in blocks (`log_parser`, `bulk`).

Start with `append`, then `batch`, which derives the rows of other tables from a record. `project_state` derives those of the
project's own records. `append_on_server` appends in one round trip. This package may import `engine` and
`ctxmgr.store.row_mapper`. Callers hold the transaction.
"""

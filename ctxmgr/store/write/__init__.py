"""How records become rows: one by one (`append`), or many at once (`log_parser`, `bulk`).

Begin with `append`. `batch` says what is kept beside a record, for both ways.
"""

"""How records become rows: one by one (`append`), or in bulk (`log_parser`, `bulk`)."""

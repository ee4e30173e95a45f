"""A JSONL log read in place through a disposable index. Start with `log_store`."""

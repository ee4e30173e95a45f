"""SQL engines and the schema. Only this package loads SQLite."""

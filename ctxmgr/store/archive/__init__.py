"""Archives of ended sessions: move them from a store into Parquet files in a folder or a bucket, and back.

Start with `retention`. Only `parquet` loads DuckDB and obstore. This package may import all of the store, but no other part of
the store imports it.
"""

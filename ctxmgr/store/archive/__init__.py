"""Archives of sessions that ended: out of a store, into Parquet files of a folder or a bucket, and back.

Begin with `retention`. Only `parquet` loads DuckDB and obstore. It may import all of the store; nothing of the
store imports it.
"""

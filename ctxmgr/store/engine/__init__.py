"""SQL engines and the schema.

Start with `interface.Engine`, the protocol of every engine, and `schema`, the tables. `sqlite` and `postgresql` are the
engines, and `dialect` translates statements for PostgreSQL. Only this package loads a database driver.

From the rest of the store it imports only `ctxmgr.store.project_session`. Every reading command loads what these modules
import at the top, so modules that only writing needs (`wal_sync`) are imported where they are used.
"""

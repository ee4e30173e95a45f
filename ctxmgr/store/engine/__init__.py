"""SQL engines and the schema.

Begin with `interface.Engine`, what every engine offers, and `schema`, the tables. `sqlite` and `postgresql` are the engines,
`dialect` says how statements are spelled for both. Only this package loads a database driver.

Of the store it imports `ctxmgr.store.project_session` alone. What each module imports is loaded by every reading command, so
what only writing needs (`wal_sync`) is imported where it is used.
"""

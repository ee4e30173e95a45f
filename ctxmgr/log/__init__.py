"""Log format 1: records, journal, reader, masking, ids.

Start with `codec` (one record as one line), `journal` (one append as one write) and `reader` (logs with or without damage).
`record_schema` is the table of the format. `mask_prefilter` masks secrets, and loads the patterns of `masking` only when a line
may need them. `secret_shapes` and `secret_names` define what a secret looks like.

This package may import the standard library, `ctxmgr.errors` and `ctxmgr.base.paths`. A hook, which runs at every call of an
agent, and the fastest reads load only `fast_json`. Recording into a database loads `line_splitter` without `reader`, and mostly
without `masking`. Therefore small modules are kept apart here: joined ones would load more each time.
"""

"""Log format 1 and nothing above it: records, journal, reader, masking, ids.

Begin with `codec` (one record as one line), `journal` (one append as one write) and `reader` (a log in any state of repair).
`record_schema` is the table of the format. Secrets are masked by `mask_prefilter`, which loads the patterns of `masking` when
a line may need them; `secret_shapes` and `secret_names` say what a secret looks like.

It may import the standard library, `ctxmgr.errors` and `ctxmgr.base.paths`. A hook, at every call of an agent, and the quickest
reads load `fast_json` alone; recording into a database loads `line_splitter` without `reader`, and mostly without `masking`.
So small modules stay apart here, where joining them would load more each time.
"""

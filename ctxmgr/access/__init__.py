"""Access rules, which say who may read or write what, and the state that a project's agents share.

Start with `rules` (which rule decides, ruling 14, and why) and `guard` (checks each read and write). `project_state` holds
context keys and executions. This package may import `ctxmgr.store`, `ctxmgr.types` and the layers below.
"""

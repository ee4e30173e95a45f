"""Who may read or write what, and the state that a project's agents share.

Begin with `rules` (which of several rules decides, ruling 14, and why) and `guard` (asked before each read and write);
`project` holds context keys and executions. May import `ctxmgr.store`, `ctxmgr.types` and below.
"""

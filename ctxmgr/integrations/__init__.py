"""Modules for agent frameworks and other tools, one each. Start with `guarded_run`, the base of the modules for frameworks.

Users import these modules by name, so the names must not change. This package may import `ctxmgr.workspace`, `ctxmgr.recorder`
and the layers below.
"""

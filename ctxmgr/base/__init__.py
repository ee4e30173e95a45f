"""The lowest layer: access to files in hostile projects, and data classes that load quickly.

This package imports nothing else of ctxmgr and little of the standard library, because a hook loads `paths` at every call of an
agent. Start with `paths.open_regular`, which opens every file that may belong to somebody else.
"""

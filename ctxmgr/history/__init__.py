"""The shared history: import, judge, follow and export sessions.

Begin with `query.tools`, the tools that every front end offers; `live` follows a running workflow, `detection` judges a stored
one. May import `ctxmgr.access`, `ctxmgr.diagnose`, `ctxmgr.store`, `ctxmgr.detect`, `ctxmgr.importers` and below.
"""

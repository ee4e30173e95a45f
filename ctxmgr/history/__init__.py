"""The shared history: import, judge, follow and export sessions.

Begin with `query.tools`, the tools of every front end. `live` follows a running workflow, `detection` judges a stored session.
May import `ctxmgr.access`, `ctxmgr.diagnose`, `ctxmgr.store`, `ctxmgr.detect`, `ctxmgr.importers` and the layers below.
"""

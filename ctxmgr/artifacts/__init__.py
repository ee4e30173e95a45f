"""Versioned artifacts: what agents produced, stored once by its hash.

Begin with `service`. `blobs` is the content-addressed store, `versions` and `version_folders` its views (ruling 18); the latter
mends what a crash left too. May import `ctxmgr.history`, `ctxmgr.access` and below.
"""

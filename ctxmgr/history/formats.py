"""The formats that can be read: the registry of importers, given what reads databases for them."""

from __future__ import annotations

from ctxmgr.importers import importers
from ctxmgr.importers.interface import Importer
from ctxmgr.store.foreign_tables import open_tables

IMPORTERS: tuple[Importer, ...] = importers(open_tables)
"""In the order in which they are looked for."""

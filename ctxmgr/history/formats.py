"""The formats that can be read: the registry of importers, given what reads databases for them."""

from __future__ import annotations

from dataclasses import asdict

from ctxmgr.importers import importers
from ctxmgr.importers.interface import Coverage, Importer
from ctxmgr.store.foreign_tables import open_tables
from ctxmgr.types.importing import FormatView

OWN_FORMAT = "ctxmgr"
"""The name of the own format."""

IMPORTERS: tuple[Importer, ...] = importers(open_tables)
"""In the order in which they are looked for."""


def format_views() -> list[FormatView]:
    """Return what can be read, the own format included, in the order in which a file is tried."""
    found = [
        FormatView(
            name=importer.name, title=importer.title, places=[place.shown for place in importer.places],
            **asdict(importer.coverage),
        )
        for importer in IMPORTERS
    ]  # fmt: skip
    own = FormatView(name=OWN_FORMAT, title="ctxmgr's own log", places=[], **asdict(Coverage()))
    return [own, *found]

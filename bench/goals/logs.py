"""Read logs of coding agents as runs, through the importers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.detection.runs import Run
from ctxmgr.history.formats import IMPORTERS
from ctxmgr.types.import_report import FileCount

_HEAD = 64 * 1024


def logs(place: Path) -> Iterator[Run]:
    """Yield the sessions of a log, or of all logs in a folder; what no importer knows is passed over."""
    paths = sorted(path for path in place.rglob("*") if path.is_file()) if place.is_dir() else [place]
    for importer in IMPORTERS:
        known = [path for path in paths if importer.sniff(path, _head(path))]
        for group in importer.groups([*known, *(other for path in known for other in importer.companions(path))]):
            run = Run(f"{importer.name}/{group[0].name}", importer.name)
            counts: list[FileCount] = []
            run.records = list(importer.read(group, counts))
            yield run


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD)

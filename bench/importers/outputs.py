"""One line for each log that is read, with a hash of all that came of it, to compare two versions of the importers.

Run it on both, and compare what they print: the samples whole, the samples as they grow, and damaged ones.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

from bench.importers.fuzz import WAYS
from bench.importers.logs import DATABASES, samples
from ctxmgr.history.formats import IMPORTERS, read_head, recognise_format
from ctxmgr.importers.base import Importer
from ctxmgr.types.import_report import FileCount

PIECES = 12
"""Lengths at which each growing log is read."""


def outputs(mutants: int, seed: int, more: Path | None = None, only: str | None = None) -> Iterator[str]:
    """Yield ``name, way, hash`` of each log.

    Args:
        mutants: number of damaged logs, each by a seed of its own.
        seed: what those seeds begin with.
        more: a folder with further logs, each read by the importer that recognises it.
        only: name of the one importer to ask.
    """
    logs = [*samples(), *_recognised(more)]
    chosen = [(importer, path) for importer, path in logs if only in (None, importer.name)]
    for importer, path in chosen:
        yield f"{importer.name} {path.name} whole {_digest(importer, path)}"
    text = [(importer, path) for importer, path in chosen if path.is_file() and path.suffix not in DATABASES]
    with _same_folder() as folder:
        for importer, path in text:
            data, copy = path.read_bytes(), Path(folder, path.name)
            for piece in range(1, PIECES):
                copy.write_bytes(data[: len(data) * piece // PIECES])
                yield f"{importer.name} {path.name} grown {piece} {_digest(importer, copy)}"
            copy.unlink()
        for number in range(mutants):
            importer, path = text[number % len(text)]
            chance = random.Random(f"{seed}.{number}")
            copy = Path(folder, path.name)
            way = chance.choice(WAYS)
            copy.write_bytes(way(path.read_bytes(), chance)[0])
            yield f"{importer.name} {path.name} {way.__name__.strip('_')} {seed}.{number} {_digest(importer, copy)}"
            copy.unlink()


@contextmanager
def _same_folder() -> Generator[Path]:
    """Make a folder whose path is the same each time, since a log without a session id is named after its path."""
    folder = Path(tempfile.gettempdir(), "ctxmgr-outputs")
    folder.mkdir()  # fails where another run is using it
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _recognised(folder: Path | None) -> Iterator[tuple[Importer, Path]]:
    by_name = {importer.name: importer for importer in IMPORTERS}
    for path in sorted(folder.rglob("*")) if folder is not None else ():
        if path.is_file() and path.suffix not in DATABASES:
            importer = by_name.get(recognise_format(path, read_head(path)) or "")
            if importer is not None:
                yield importer, path


def _digest(importer: Importer, path: Path) -> str:
    """Return a hash of the records and the counts; of an error its class."""
    counts: list[FileCount] = []
    made = hashlib.sha256()
    try:
        for group in importer.groups([path, *importer.companions(path)]):
            for record in importer.read(group, counts):
                made.update(json.dumps(record).encode())
    except Exception as error:  # what a version raises is part of what it does
        made.update(type(error).__name__.encode())
    for count in counts:
        told = {field.name: getattr(count, field.name) for field in fields(count)}
        made.update(json.dumps(told | {"path": count.path.name}, default=str, sort_keys=True).encode())
    return made.hexdigest()[:32]

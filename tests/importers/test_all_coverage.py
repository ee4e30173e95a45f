"""What `ctxmgr formats` says that each format tells, held against what its importer makes of the samples."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import pytest

from ctxmgr.history.formats import IMPORTERS
from ctxmgr.importers.base import Importer
from ctxmgr.log.codec import Record
from ctxmgr.types.import_report import FileCount

LOGS = Path(__file__).parents[2] / "fixtures"
COLUMNS = ("calls", "results", "errors", "open_calls", "usage", "sub_agents", "times")

RESULTS = frozenset(("result", "results", "observation", "observations", "output", "functionResponse"))
ENDED = frozenset(("ok", "completed", "success", "error", "cancelled"))

NO_SAMPLE = {
    "codex": {"sub_agents"},  # see codex/test_all_files
    "opencode-files": {"sub_agents", "open_calls"},  # read as the tables of opencode are
    "langgraph": {"usage", "sub_agents", "open_calls"},  # read as its rows are
    "langgraph-rows": {"sub_agents"},
}
"""What a format tells though no sample of it does."""

SOMETIMES = {"messages": {"sub_agents", "times"}, "opencode-printed": {"open_calls"}}
"""What a format does not promise, though some of its logs tell it.

A list of messages may carry times, and name a second program. What opencode prints has ended, though its shape is that of
its files, which tell of open calls.
"""


def _folder(importer: Importer) -> Path:
    return LOGS / ("logs" if importer.name in ("claude-code", "codex") else "formats") / importer.name


def _records(importer: Importer, path: Path) -> list[Record]:
    counts: list[FileCount] = []
    groups = importer.groups([path, *importer.companions(path)])
    return [record for group in groups for record in importer.read(group, counts)]


def _facts(records: list[Record]) -> Counter[str]:
    entries = [record for record in records if record["kind"] == "entry"]
    results = [record for record in records if record["kind"] == "result"]
    return Counter({
        "calls": len(entries), "results": len(results), "errors": sum(record["status"] != "ok" for record in results),
        "open_calls": len(entries) - len(results), "times": sum("ts" in record for record in entries),
        "usage": sum(record["kind"] == "event" and record["type"] == "usage" for record in records),
        "sub_agents": len({str(record["agent"]) for record in entries} - {"main"}),
    })  # fmt: skip


def _without_results(value: Any) -> Any:
    """Return JSON as it was before any tool had answered."""
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [_without_results(item) for item in items if not _is_answer(item)]
    if not isinstance(value, dict):
        return value
    return {
        name: "running" if name == "status" and isinstance(item, str) and item in ENDED else _without_results(item)
        for name, item in cast("dict[str, Any]", value).items()
        if name not in RESULTS
    }


def _is_answer(value: Any) -> bool:
    return isinstance(value, dict) and str(cast("dict[str, Any]", value).get("type", "")).endswith("_output")


def _early_forms(path: Path) -> Iterator[bytes]:
    """Yield a log as it may have been before it was whole: its first lines, and all of it without what tools returned."""
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    yield from (b"".join(lines[:end]) for end in range(1, len(lines), max(1, len(lines) // 25)))
    try:
        yield json.dumps(_without_results(json.loads(data))).encode()
    except ValueError:
        values = [json.loads(line) for line in lines]
        yield b"".join(json.dumps(_without_results(value)).encode() + b"\n" for value in values if not _is_answer(value))


def _without_rows(path: Path) -> None:
    """Make the tables of a database what they were before any tool had answered."""
    with closing(sqlite3.connect(path)) as db, db:
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            columns = [row[1] for row in db.execute(f'PRAGMA table_info("{table}")')]
            for column in columns:
                for row, held in db.execute(f'SELECT rowid, "{column}" FROM "{table}"').fetchall():
                    if not isinstance(held, str) or not held.startswith("{"):
                        continue
                    if _is_answer(value := json.loads(held)):
                        db.execute(f'DELETE FROM "{table}" WHERE rowid = ?', (row,))
                    else:
                        told = json.dumps(_without_results(value))
                        db.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (told, row))


def _told(importer: Importer, scratch: Path) -> Counter[str]:
    """Return how often the samples of a format, and early forms of them, tell each thing."""
    found: Counter[str] = Counter()
    for number, name in enumerate(json.loads((_folder(importer) / "TRUTH.json").read_text())):
        path = _folder(importer) / name
        found += _facts(_records(importer, path))
        early = scratch / str(number) / path.relative_to(LOGS)
        early.parent.mkdir(parents=True)
        (shutil.copytree if path.is_dir() else shutil.copy)(path, early)
        if path.suffix in (".db", ".sqlite"):
            _without_rows(early)
            found += _facts(_records(importer, early))
        elif path.is_file() and path.suffix != ".eval":
            for form in _early_forms(path):
                early.write_bytes(form)
                found["open_calls"] += _facts(_records(importer, early))["open_calls"]
    return found


@pytest.mark.parametrize("importer", IMPORTERS, ids=lambda importer: importer.name)
def test_a_format_tells_what_it_is_said_to_tell(importer: Importer, tmp_path: Path) -> None:
    """A yes is seen in some sample, or in an early form of one; a no in none."""
    found = _told(importer, tmp_path)
    seen = {name for name in COLUMNS if found[name]}
    said = {name for name, yes in asdict(importer.coverage).items() if yes}
    assert said - seen == NO_SAMPLE.get(importer.name, set())
    assert seen - said == SOMETIMES.get(importer.name, set())

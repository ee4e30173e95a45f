"""What is written in another format holds what our own importer of that format reads back: every sample, every exporter."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

from ctxmgr.exporters import EXPORTERS
from ctxmgr.exporters.conversation import Exporter, build_conversation
from ctxmgr.history.formats import IMPORTERS, read_head, recognise_format
from ctxmgr.importers.base import Importer
from ctxmgr.log.codec import Record, encode
from ctxmgr.types.import_report import FileCount
from ctxmgr.types.record import check

LOGS = Path(__file__).parents[2] / "fixtures"


def _samples() -> list[Any]:
    found: list[Any] = []
    for importer in IMPORTERS:
        folder = LOGS / ("logs" if importer.name in ("claude-code", "codex") else "formats") / importer.name
        names = [name for name in json.loads((folder / "TRUTH.json").read_text()) if (folder / name).exists()]
        found += [pytest.param(importer, folder / name, id=f"{importer.name}-{name[-40:]}") for name in names]
    return found


each_sample = pytest.mark.parametrize(("importer", "path"), _samples())
each_exporter = pytest.mark.parametrize("exporter", EXPORTERS, ids=[exporter.name for exporter in EXPORTERS])


def read(importer: Importer, path: Path) -> list[Record]:
    """Return the records of a log and what belongs to it."""
    counts: list[FileCount] = []
    files = [path, *importer.companions(path)]
    return [record for group in importer.groups(files) for record in importer.read(group, counts)]


def sessions_of(records: list[Record]) -> dict[str, list[Record]]:
    """Return the records by their sessions."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(str(record["session"]), []).append(record)
    return found


def written(exporter: Exporter, records: list[Record], path: Path) -> Counter[str]:
    """Write the sessions of a log into a file; return what could not be held."""
    losses: Counter[str] = Counter()
    lines = [
        line
        for session, held in sessions_of(records).items()
        for line in exporter.write(build_conversation(session, held), losses)
    ]
    path.write_text("".join(f"{line}\n" for line in lines))
    return losses


def calls_of(records: list[Record]) -> Counter[str]:
    """Return the calls with how they ended."""
    results = {record["entry"]: record for record in records if record["kind"] == "result"}
    return Counter(
        json.dumps([r["action"], r.get("input"), results.get(r["id"], {}).get("status", "open")], sort_keys=True)
        for r in records
        if r["kind"] == "entry"
    )


def said(records: list[Record], kind: str) -> list[str]:
    """Return what was said, agent by agent."""
    held = [r for r in records if r["kind"] == "event" and r["type"] == kind]
    by_agent: dict[str, list[str]] = {}
    for record in held:
        data = cast("dict[str, Any]", record["data"])
        by_agent.setdefault(str(record["agent"]), []).append(str(data.get("text") or "").strip())
    return sorted(words for listed in by_agent.values() for words in listed if words)


@each_exporter
@each_sample
def test_calls_failures_open_calls_and_messages_come_back(
    exporter: Exporter, importer: Importer, path: Path, tmp_path: Path
) -> None:
    """Nothing of what the target can hold is lost on the way, and its importer is the one that knows it again."""
    records, place = read(importer, path), tmp_path / "out.jsonl"
    written(exporter, records, place)
    if not place.read_text():
        assert calls_of(records) == Counter()
        return
    assert recognise_format(place, read_head(place)) == exporter.name
    back = read(next(each for each in IMPORTERS if each.name == exporter.name), place)
    for record in back:
        encode(check(record))
    assert calls_of(back) == calls_of(records)
    assert said(back, "user_message") == said(records, "user_message")
    assert said(back, "message") == said(records, "message")


@each_exporter
def test_what_could_not_be_held_is_counted(exporter: Exporter) -> None:
    """Notes and other records have no place in any of these formats."""
    base: dict[str, Any] = {"v": 1, "session": "s", "ts": "2026-11-22T10:00:00Z"}
    records: list[Record] = [
        {**base, "kind": "session", "process": "s"},
        {**base, "kind": "entry", "id": "a", "agent": "main", "action": "Bash", "input": {"command": "ls"}},
        {**base, "kind": "event", "id": "b", "type": "heartbeat", "agent": "main", "data": {}},
        {**base, "kind": "note", "id": "c", "entries": ["a"], "content": "x", "tags": []},
    ]
    losses: Counter[str] = Counter()
    lines = list(exporter.write(build_conversation("s", records), losses))
    assert len(lines) >= 1
    assert losses["note records"] == 1
    assert exporter.name == "atif" or losses["heartbeat events"] == 1


@each_exporter
def test_hostile_words_stay_what_they_are(exporter: Exporter, tmp_path: Path) -> None:
    """Line ends, escapes and lone surrogates are data in every format."""
    words = 'a\nb\u2028{"role": "user"}\x1b[2J\ud800 end'
    base: dict[str, Any] = {"v": 1, "session": "s", "ts": "2026-11-22T10:00:00Z"}
    records: list[Record] = [
        {**base, "kind": "session", "process": "s"},
        {**base, "kind": "event", "id": "u", "type": "user_message", "agent": "main", "data": {"text": words}},
        {**base, "kind": "entry", "id": "a", "agent": "main", "action": "Bash", "input": [words, None]},
        {**base, "kind": "result", "entry": "a", "status": "interrupted", "output": {"x": words}},
    ]
    place = tmp_path / "out.jsonl"
    written(exporter, records, place)
    back = read(next(each for each in IMPORTERS if each.name == exporter.name), place)
    assert calls_of(back) == calls_of(records)
    assert said(back, "user_message") == [words]

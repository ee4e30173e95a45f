"""Real logs to import: the recorded fixtures, laid out like a home, cut at line ends, and what they are known to hold."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ctxmgr.history.ingest import import_logs
from ctxmgr.store import Store, open_store
from ctxmgr.types.import_report import ImportReport

LOGS = Path(__file__).parents[2] / "fixtures" / "logs"
CLAUDE = LOGS / "claude-code" / "live_2.1.330" / "project"
ORIGINAL = CLAUDE / "a081ebf7-ed87-4cc2-94fb-b8817e5c810f.jsonl"
FORK = CLAUDE / "69f5953a-2790-4cee-af95-04fe8f0211ea.jsonl"
CODEX = LOGS / "codex" / "live_0.169.0" / "sessions" / "2026" / "11" / "21"
ROLLOUT = CODEX / "rollout-2026-11-21T20-28-07-01a1ffcb-7903-7542-a69f-9a2a9fc965c5.jsonl"


def bring_in(store: Store, *paths: Path, **options: Any) -> ImportReport:
    """Import files or folders."""
    return import_logs(store, paths, home=Path("/nowhere"), environment={}, **options)


def content(store: Store) -> list[dict[str, Any]]:
    """Return every record of a store in its order."""
    return list(store.sessions.records(None))


def by_session(store: Store) -> dict[str, list[dict[str, Any]]]:
    """Return the records of each session in their order."""
    found: dict[str, list[dict[str, Any]]] = {}
    for record in content(store):
        found.setdefault(str(record["session"]), []).append(record)
    return found


def entries(store: Store) -> list[tuple[str, str, str]]:
    """Return (session, id, status) of every entry in the order of the log."""
    rows = store.engine.query(
        "SELECT session.id, record.id, entry.status FROM entry JOIN record ON record.seq = entry.seq "
        "JOIN session ON session.key = entry.session ORDER BY session.id, entry.idx"
    )
    return [(str(row[0]), str(row[1]), str(row[2])) for row in rows]


def truths() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield (log, what is known to be in it) of every recorded log."""
    for listing in sorted(LOGS.glob("*/TRUTH.json")):
        for name, truth in sorted(json.loads(listing.read_bytes()).items()):
            yield listing.parent / name, truth


def home(folder: Path) -> Path:
    """Lay the recorded logs out as the agents keep them in a user's home, and return the home."""
    for version in ("live_2.1.330", "live_2.0.32"):
        shutil.copytree(LOGS / "claude-code" / version / "project", folder / ".claude" / "projects" / version)
    shutil.copytree(LOGS / "codex" / "live_0.169.0" / "sessions", folder / ".codex" / "sessions")
    return folder


def fresh(folder: Path, name: str = "store.db") -> Store:
    """Return a new store in a folder."""
    return open_store(str(folder / name), create=True)

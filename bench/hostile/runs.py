"""Plain small runs of three agents: in a loop, stalled, or getting on; hostile text is planted in them elsewhere."""

from __future__ import annotations

from random import Random
from typing import Any

from ctxmgr.log.codec import Record
from ctxmgr.log.ids import format_time
from ctxmgr.types.plain_records import build

START = 1_769_076_000.0
"""2026-01-22T10:00:00Z, in seconds since 1970."""

KINDS = ("loop", "loop", "loop", "stall", "steady", "hand-over")
AGENTS = ("coder", "planner", "reviewer")

_FIRST = (
    ("planner", "Read", {"file_path": "deploy.yml"}, "service listens on port 8471"),
    ("reviewer", "Read", {"file_path": "README.md"}, "# service\nrun make to build it"),
    ("coder", "Bash", {"command": "make build"}, "built in 41 s"),
    ("planner", "Grep", {"pattern": "health"}, "src/health.py:12: def health()"),
    ("coder", "Edit", {"file_path": "src/health.py", "old_string": "a", "new_string": "b"}, "saved"),
)


def entry(session: str, number: int, agent: str, action: str, given: Any, **fields: Any) -> Record:
    """Return an open entry; entries are one second apart."""
    known = {"id": f"{session}-e{number:04}", "agent": agent, "action": action, "input": given}
    return build("entry", session, format_time(START + number), **{**known, **fields})


def result(session: str, number: int, output: Any, error: str | None = None) -> Record:
    """Return what completed the entry of that number."""
    ended: dict[str, Any] = {"status": "ok"} if error is None else {"status": "error", "error": {"message": error}}
    return build("result", session, format_time(START + number + 0.5), entry=f"{session}-e{number:04}", output=output, **ended)


def event(session: str, number: int, type_: str, data: Any, agent: str | None = None, **fields: Any) -> Record:
    """Return an event of that number."""
    known = {"id": f"{session}-v{number:04}", "type": type_, "agent": agent, "data": data}
    return build("event", session, format_time(START + number), **{**known, **fields})


def told(rng: Random, kind: str, session: str) -> list[Record]:
    """Return the records of a run."""
    records = [event(session, 0, "user_message", {"text": "Start the service and report its health"}, "user")]
    first = rng.sample(_FIRST, rng.randint(2, len(_FIRST)))
    first += [step for agent in AGENTS if agent not in {said[0] for said in first} for step in _FIRST if step[0] == agent][:2]
    for number, (agent, action, given, output) in enumerate(first):
        more = {"inputType": "Task"} if rng.random() < 0.3 else {}
        records += [entry(session, number, agent, action, dict(given), **more), result(session, number, output)]
    start = len(first)
    if kind == "loop":
        for number in range(start, start + rng.randint(4, 6)):
            records.append(entry(session, number, "coder", "Bash", {"command": "curl localhost:8080/health"}))
            records.append(result(session, number, None, "connection refused"))
    elif kind == "stall":
        records.append(entry(session, start, "coder", "Bash", {"command": "npm run dev"}))
    elif kind == "hand-over":
        for number in range(start, start + 6, 2):
            records.append(entry(session, number, "coder", "draft", {"file": "NOTES.md"}))
            records.append(result(session, number, "saved"))
            records.append(entry(session, number + 1, "reviewer", "review", {"file": "NOTES.md"}))
            records.append(result(session, number + 1, "rejected: mention the port"))
    return records


def foreign(rng: Random, session: str, secret: str) -> list[Record]:
    """Return another session: every text of it holds a secret, and one of its entries bears an id of nobody's own."""
    records = [event(session, 0, "user_message", {"text": f"keep {secret} to yourself"}, "user")]
    for number in range(rng.randint(2, 5)):
        records.append(entry(session, number, f"spy {secret}", "Read", {"file_path": f"{secret}/port 8471"}))
        records.append(result(session, number, f"service, health, coder, curl: {secret}"))
    ids = [f"{session}-e0000"]
    return [
        *records,
        build("note", session, format_time(START), id=f"{session}-n0", entries=ids, content=f"a note: {secret}", tags=["x"]),
        build("snapshot", session, format_time(START), id=f"{session}-s0", entries=ids, summary=f"health {secret}",
              reasoning=secret, hash="0"),
    ]  # fmt: skip


def entries_of(records: list[Record]) -> list[str]:
    """Return the ids of everything in a session."""
    return list(dict.fromkeys(str(record["id"]) for record in records if "id" in record))

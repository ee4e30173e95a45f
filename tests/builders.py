"""Records and whole histories in few words, always with the same ids and times.

Entries are one second apart from 2026-01-22T10:00:00Z; results and events stand half a second behind the entry they
follow. The id of entry 3 of session ``s1`` is ``s1-e0003``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ctxmgr.detect.monitor import Monitor
from ctxmgr.log.codec import Record
from ctxmgr.log.ids import format_time
from ctxmgr.store import Store
from ctxmgr.types.finding import Finding, Observation
from ctxmgr.types.plain_records import build

START = 1_769_076_000.0
"""2026-01-22T10:00:00Z, in seconds since 1970."""


def at(seconds: float) -> str:
    """Return the time so many seconds after the start, as a record holds it."""
    return format_time(START + seconds)


def entry_id(session: str, number: int) -> str:
    """Return the id that `entry` gives to a session's entry of that number."""
    return f"{session}-e{number:04}"


def entry(session: str, number: int, action: str = "Bash", given: Any = None, *, agent: str = "coder", **fields: Any) -> Record:
    """Return an open entry; ``given`` is its input, further fields have their names of the wire (``inputType=...``)."""
    known = {"id": entry_id(session, number), "agent": agent, "action": action, "input": given}
    return build("entry", session, fields.pop("ts", at(number)), **{**known, **fields})


def result(session: str, number: int, output: Any = None, *, status: str = "ok", **fields: Any) -> Record:
    """Return what completed the entry of that number."""
    known = {"entry": entry_id(session, number), "status": status, "output": output}
    return build("result", session, fields.pop("ts", at(number + 0.5)), **{**known, **fields})


def event(session: str, number: int, type_: str, data: Any = None, *, after: float = 0, **fields: Any) -> Record:
    """Return an event of that number (events are numbered by themselves), so many seconds after the start."""
    known = {"id": f"{session}-v{number:04}", "type": type_, "data": data}
    return build("event", session, fields.pop("ts", at(after + 0.5)), **{**known, **fields})


def steps(
    session: str, words: Sequence[str], *, agent: str = "coder", start: int = 0, events: int = 0, **fields: Any
) -> list[Record]:
    """Return the records of a history told in words; entries are numbered from ``start``, events from ``events``.

    ``"Bash:ls"`` is an action with its input and an output of its own, ``"Bash:ls -> a.txt"`` one with that output,
    ``"!Bash:ls -> boom"`` one that failed with that message, ``"?Bash:ls"`` one without a result, ``"> text"`` a human
    message. Further fields go to every entry.
    """
    records: list[Record] = []
    number = start
    for word in words:
        if word.startswith("> "):
            said = {"text": word.removeprefix("> ")}
            records.append(event(session, events, "user_message", said, after=number - 1, agent="user"))
            events += 1
            continue
        call, _, outcome = word.lstrip("!?").partition(" -> ")
        action, _, given = call.partition(":")
        records.append(entry(session, number, action, given or None, agent=agent, **fields))
        if word.startswith("!"):
            error = {"type": "Error", "message": outcome or f"failure {number}"}
            records.append(result(session, number, status="error", error=error))
        elif not word.startswith("?"):
            records.append(result(session, number, outcome or f"{action} {number}"))
        number += 1
    return records


def write(store: Store, session: str, words: Sequence[str], *, agent: str = "coder", **fields: Any) -> list[Record]:
    """Append a history told in words (see `steps`) behind what the session holds; return its records."""
    key = store.sessions.key(session)
    seen = None if key is None else store.sessions.view(key)
    start, events = (seen.entries, seen.events) if seen else (0, 0)
    records = steps(session, words, agent=agent, start=start, events=events, **fields)
    store.append(records)
    return records


def detect(observations: Iterable[Observation], *, live: bool = False) -> list[Finding]:
    """Return all findings of one session's observations, in the order of the log."""
    monitor = Monitor()
    monitor.observe_all(observations)
    return monitor.findings(live=live)


def key_of(store: Store, session: str) -> int:
    """Return the key by which a store knows a session that it holds."""
    key = store.sessions.key(session)
    assert key is not None
    return key

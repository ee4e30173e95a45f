"""Histories of several agents, what one of them may see worked out from the records alone, and every reading answer."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from ctxmgr.access.rules import Rules
from ctxmgr.config import Config
from ctxmgr.errors import CtxmgrError
from ctxmgr.history import detection
from ctxmgr.history.query import requests
from ctxmgr.history.query import requests as annotating
from ctxmgr.history.query.address import session_key
from ctxmgr.history.query.filtered_store import FilteredStore
from ctxmgr.log.codec import Record, encode
from ctxmgr.memory.note_memory import EmbeddedMemory
from ctxmgr.recover.service import Service
from ctxmgr.store import Store, open_store
from ctxmgr.store.project_session import PROJECT
from ctxmgr.types import query
from ctxmgr.types.access import AccessRule
from ctxmgr.types.memory import MEMORY_TAG, RecallRequest
from ctxmgr.types.operations import DetectRequest, RecoverRequest, SessionsRequest
from ctxmgr.types.plain_records import build
from tests.builders import at
from tests.cli.console import lay_tables

ME = "me"
AGENTS = (ME, "friend", "hidden", "user", "a/b", "ME", "*")
SESSIONS = ("s1", "s2", "s10", PROJECT)
CITED = ("entry", "event", "note", "snapshot", "continuation")

GRANTS: dict[str, list[tuple[str, str]]] = {
    "own": [("self", "write")],
    "nothing": [],
    "friend": [("self", "write"), ("friend/*", "read")],
    "words": [("self", "write"), ("user/*", "read"), ("a/b/*", "read")],
    "one session": [("me/s1", "write"), ("friend/s2", "read"), ("user/s1", "read")],
    "all but hidden": [("*", "write"), ("hidden/*", "none")],
    "all": [("*", "write")],
}


def rules(*grants: tuple[str, str], agent: str = ME) -> Rules:
    """Return rules on history for one agent."""
    return Rules(
        AccessRule.model_validate({"agent": agent, "resource_type": "history", "pattern": pattern, "permission": permission})
        for pattern, permission in grants
    )


@contextmanager
def seen_of(path: Path, held: Rules, agent: str = ME) -> Generator[FilteredStore]:
    """Open the history at a path as an agent sees it."""
    with closing(FilteredStore(open_store(str(path)), agent, held)) as store:
        yield store


def written(path: Path, records: Sequence[Record]) -> Path:
    """Write a history to a path."""
    if path.suffix == ".db" and not path.exists():
        lay_tables(path)
    with closing(open_store(str(path), create=True)) as store:
        store.append(records)
    return path


def seen_part(records: Sequence[Record], held: Rules, agent: str = ME) -> list[Record]:
    """Return the records that the agent may see, in their order: what is told of nothing hidden, found by trying again."""
    chosen: set[int] = set()
    while True:
        more = {number for number, record in enumerate(records) if _stands(number, record, records, chosen, held, agent)}
        if more == chosen:
            break
        chosen = more
    sessions = {records[number]["session"] for number in chosen} - {PROJECT}
    seen: list[Record] = []
    for number, record in enumerate(records):
        if number in chosen:
            seen.append({name: value for name, value in record.items() if name != "seq"})
        elif record["kind"] in ("session", "sessionEnd") and record["session"] in sessions:
            seen.append(_frame(record, words=held.may(agent, "read", "history", "user", record["session"])))
    return seen


def _frame(record: Record, *, words: bool) -> Record:
    kept = {name: value for name, value in record.items() if name not in ("capture", "seq")}
    if not words and "meta" in kept:
        kept["meta"] = {name: value for name, value in kept["meta"].items() if name not in ("title", "summary")}
    return {name: value for name, value in kept.items() if value != {}}


def _stands(number: int, record: Record, records: Sequence[Record], chosen: set[int], held: Rules, agent: str) -> bool:
    kind, session = record["kind"], record["session"]

    def may(owner: str | None) -> bool:
        return held.may(agent, "read", "history", "user" if owner is None else owner, session)

    def seen(name: str, *kinds: str) -> bool:
        there = [
            place for place, other in enumerate(records)
            if other["session"] == session and other["kind"] in kinds and other.get("id") == name
        ]  # fmt: skip
        return bool(there) and all(place in chosen for place in there)

    if session == PROJECT and kind not in ("entry", "result"):
        return False
    if kind == "entry":
        return may(record["agent"])
    if kind == "result":
        return seen(record["entry"], "entry")
    if kind == "event":
        return seen(record["entry"], "entry") if "agent" not in record and "entry" in record else may(record.get("agent"))
    if kind in ("note", "snapshot"):
        former = record.get("supersedes")
        named = [seen(name, "entry") for name in record["entries"]]
        named += [seen(name, *CITED) for name in record.get("sources", [])]
        named = named or [may(record.get("author"))]
        return all([*named, *([seen(former, "note")] if former not in (None, record["id"]) else [])])
    if kind == "continuation":
        cited = [name for fact in record["context"]["facts"] for name in fact["entries"]]
        cited += [quote["entry"] for quote in record.get("diagnosis", {}).get("evidence", []) if "entry" in quote]
        own = record["target"] == agent or may(record["target"])
        return own and all(seen(name, *CITED) for name in cited)
    return False


_number = st.integers(0, 7)
_session = st.sampled_from(["s1", "s1", "s1", "s2", "s10", PROJECT])
_agent = st.sampled_from([ME, ME, ME, "friend", "hidden", "hidden", "user", "a/b", "ME", "*"])
_word = st.sampled_from(["ls", "secret", "look", "ÄÖ straße", "boom", "x\0y", "\ud800half", ""])


@st.composite
def one_record(draw: st.DrawFn) -> Callable[[int], Record]:
    """Draw one record; it is numbered later, so that its own id is given to no other."""
    kind = draw(st.sampled_from(["entry"] * 5 + ["result"] * 3 + ["event"] * 3 + ["note", "note", "snapshot", "continuation",
                                 "session", "sessionEnd", "strange"]))  # fmt: skip
    session, agent, word, named = draw(_session), draw(_agent), draw(_word), draw(st.lists(_number, max_size=3))
    some, odd = draw(_number), draw(st.booleans())
    ts = draw(st.sampled_from([None, 0.0, 1.5]))

    def made(number: int) -> Record:
        record = plain(number)
        return {**record, "seq": number} if some % 2 else record

    def plain(number: int) -> Record:
        given: dict[str, Any] = {"id": f"e{number}", "agent": agent, "action": word or "Bash", "input": {"text": word}}
        when = None if ts is None else at(number - ts)
        entries = [f"e{each}" for each in named]
        sources = [f"e{some}"] if some % 3 == 1 else None
        if kind == "entry":
            parent = f"e{some}" if odd else None
            return build(kind, session, when, **given, parent=parent, process=f"p{some % 2}", inputType="t" if odd else None)
        if kind == "result":
            status = "error" if odd else "ok"
            usage = {"inputTokens": 5} if odd else None
            return build(kind, session, when, entry=f"e{some}", status=status, output=word, usage=usage)
        if kind == "event":
            type_ = ["user_message", "message", "usage", "compaction"][some % 4]
            owner, entry = (agent, None) if odd else (None if some % 3 else agent, f"e{some}" if some % 2 else None)
            data = {"text": word, "outputTokens": 3}
            return build(kind, session, when, id=f"e{number}", type=type_, agent=owner, entry=entry, data=data)
        if kind == "note":
            former = f"e{some}" if odd else None
            return build(kind, session, when, id=f"e{number}", entries=entries, content=word or "note",
                         tags=[MEMORY_TAG, agent], author=agent if some % 2 else None, supersedes=former,
                         sources=sources)  # fmt: skip
        if kind == "snapshot":
            return build(
                kind, session, when, id=f"e{number}", entries=entries, summary=word, reasoning="r", hash="h", sources=sources
            )
        if kind == "continuation":
            facts = [{"text": word, "label": "verified", "entries": entries, "hash": "0"}]
            cause = {"evidence": [{"entry": f"e{some}"}, {"text": word}]} if odd else None
            context = {"facts": facts, "summary": word}
            return build(kind, session, when, id=f"e{number}", target=agent, context=context, diagnosis=cause)
        if kind == "session":
            meta = {"title": word, "summary": word, "cwd": "/"} if odd else None
            return build(kind, session, when, process=f"p{some % 2}", workflow=word or None, meta=meta)
        if kind == "sessionEnd":
            capture = {"published": some, "captured": some, "lost": 0} if odd else None
            return build(kind, session, when, outcome="failed", process=f"p{some % 2}" if some % 3 else None, capture=capture)
        return build(kind, session, when, agent=ME, text=word)

    return made


def numbered(drawn: Iterable[Callable[[int], Record]]) -> list[Record]:
    """Return the records in their order, without those that a store would take for one another."""
    kept: dict[Any, Record] = {}
    for number, made in enumerate(drawn):
        record = made(number)
        identity: Any = record.get("entry") if record["kind"] == "result" else record.get("id") or encode(record)
        kept.setdefault((record["session"], record["kind"], identity), record)
    return list(kept.values())


histories = st.lists(one_record(), max_size=24).map(numbered)


def answers(store: Store) -> dict[str, Any]:
    """Return what every reading tool answers, over all sessions, entries, pages and some words; errors as their texts."""
    told: dict[str, Any] = {}

    def ask(name: str, question: Callable[[], Any]) -> None:
        try:
            told[name] = question()
        except CtxmgrError as error:
            told[name] = [error.kind, error.message, error.hint]

    ask("sessions", lambda: detection.sessions(store, SessionsRequest(limit=50), {}).to_json())
    ask("detect", lambda: detection.detect_(store, DetectRequest(all_sessions=True), {}).to_json())
    ask("records", lambda: list(store.sessions.records(None)))
    ask("numbers", lambda: [store.sessions.count(), store.sessions.count("me"), store.verify()[0], store.damage()])
    for word in ("secret", "e", "look", "MESSAGE"):
        ask(f"search {word}", lambda word=word: requests.search(
            store, query.SearchRequest(query=word, all_sessions=True, kind="all", max_results=50)).to_json())  # fmt: skip
        ask(f"notes {word}", lambda word=word: annotating.list_notes(
            store, query.ListNotesRequest(query=word, all_sessions=True)).to_json())  # fmt: skip
        ask(f"recall {word}", lambda word=word: EmbeddedMemory(store).recall(RecallRequest(query=word)).to_json())
    for session in (None, *SESSIONS, "s", "p0", "p1", "nowhere"):
        _ask_of(store, session, lambda name, question, session=session: ask(f"{session} {name}", question))
    return told


def _ask_of(store: Store, session: str | None, ask: Callable[[str, Callable[[], Any]], None]) -> None:
    ask("list", lambda: requests.list_(store, query.ListRequest(session=session, kind="all", limit=9)).to_json())
    ask("page", lambda: requests.list_(store, query.ListRequest(session=session, offset=1, limit=2)).to_json())
    ask("trace", lambda: requests.trace(store, query.TraceRequest(session=session, agent=[ME, "hidden"])).to_json())
    ask("search", lambda: requests.search(store, query.SearchRequest(session=session, query="l", kind="all")).to_json())
    ask("messages", lambda: requests.messages(store, query.MessagesRequest(session=session)).to_json())
    ask("snapshots", lambda: annotating.list_snapshots(store, query.ListSnapshotsRequest(session=session)).to_json())
    ask("notes", lambda: annotating.list_notes(store, query.ListNotesRequest(session=session)).to_json())
    ask("detect", lambda: detection.detect_(store, DetectRequest(session=session), {}).to_json())
    ask("recover", lambda: _planned(store, session))
    for index in (0, -1, 3, 40):
        ask(
            f"show @{index}",
            lambda index=index: requests.show(store, query.ShowRequest(session=session, index=index)).to_json(),
        )
    for name in ("e", *(f"e{number}" for number in range(12))):
        ask(f"show {name}", lambda name=name: requests.show(store, query.ShowRequest(session=session, entry_id=name)).to_json())
        ask(f"messages {name}", lambda name=name: requests.messages(
            store, query.MessagesRequest(session=session, entry_id=name)).to_json())  # fmt: skip
        ask(f"snapshot {name}", lambda name=name: annotating.show_snapshot(
            store, query.ShowSnapshotRequest(session=session, snapshot_id=name)).to_json())  # fmt: skip


def _planned(store: Store, session: str | None) -> Any:
    """Return what a recovery would answer: but for its own new id and its time."""
    key = session_key(store, session)
    if key is None:
        return None
    request = RecoverRequest(session=store.sessions.name(key), plan=True, force=True)
    given = Service(store, Config(), {}).answer_finding(key, request).continuation.to_json()
    return {name: value for name, value in given.items() if name != "id"}

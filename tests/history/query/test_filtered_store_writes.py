"""What an agent writes goes into the whole history, when the rules grant it; else nothing does."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.errors import Conflict, Denied, InvalidInput, NotFound, StorageFailed
from ctxmgr.history.query import requests
from ctxmgr.history.query.filtered_store import FilteredStore
from ctxmgr.log.codec import Record, encode
from ctxmgr.memory.note_memory import EmbeddedMemory
from ctxmgr.store import open_store
from ctxmgr.store.project_session import ACCESS, PROJECT, RULES
from ctxmgr.types.memory import RecallRequest, RetainRequest
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import AddNoteRequest, CreateSnapshotRequest
from tests.builders import at, entry, event, result, steps
from tests.history.seen_world import ME, rules, seen_of, written

OWN = rules(("self", "write"))
READER = rules(("self", "write"), ("friend/*", "read"), ("user/*", "read"))

STORY = [
    *steps("s", ["Bash:ls", "?Read:a"], agent="me"),
    *steps("s", ["Bash:b", "?Edit:c"], agent="friend", start=10),
    *steps("s", ["?Bash:secret"], agent="hidden", start=20),
    build("note", "s", at(30), id="theirs", entries=["s-e0010"], content="by a friend"),
]


def _count(path: Path) -> int:
    """Return how many records there are, without the log of what was denied."""
    with closing(open_store(str(path))) as store:
        return store.verify()[0] - len(store.shared.events(ACCESS))


ALLOWED: dict[str, list[Record]] = {
    "an entry": [entry("s", 2, agent="me")],
    "an entry in a new session": [build("session", "new", at(0), process="p"), entry("new", 0, agent="me")],
    "a result": [result("s", 1)],
    "an entry and its result": [entry("s", 2, agent="me"), result("s", 2)],
    "a result and its entry": [result("s", 2), entry("s", 2, agent="me")],
    "an event": [build("event", "s", at(1), id="v", type="thought", agent="me", data={"text": "x"})],
    "an event of an entry": [build("event", "s", at(1), id="v", type="message", entry="s-e0000", data={})],
    "a note": [build("note", "s", at(1), id="n", entries=["s-e0000"], content="x", author="me")],
    "a note without entries": [build("note", "s", at(1), id="n", entries=[], content="x", author="me")],
    "a note and what supersedes it": [
        build("note", "s", at(1), id="n", entries=["s-e0000"], content="x"),
        build("note", "s", at(2), id="m", entries=["s-e0000"], content="y", supersedes="n"),
    ],
    "a snapshot": [build("snapshot", "s", at(1), id="n", entries=["s-e0000"], summary="x", reasoning="", hash="")],
    "a continuation": [
        build("snapshot", "s", at(1), id="n", entries=["s-e0000"], summary="x", reasoning="", hash=""),
        build("continuation", "s", at(1), id="c", target="me", context={"facts": [{"entries": ["s-e0000"]}]}, snapshot="n"),
    ],
    "the end of its session": [build("sessionEnd", "s", at(1), outcome="completed")],
}  # fmt: skip

FORBIDDEN: dict[str, list[Record]] = {
    "an entry of another": [entry("s", 2, agent="friend")],
    "one of several": [entry("s", 2, agent="me"), entry("s", 3, agent="friend")],
    "a result of another": [result("s", 11)],
    "an event of another": [build("event", "s", at(1), id="v", type="thought", agent="friend", data={})],
    "an event at another's entry": [build("event", "s", at(1), id="v", type="thought", agent="me", entry="s-e0010", data={})],
    "a person's words": [event("s", 5, "user_message", {"text": "do as I say"})],
    "words in a person's name": [event("s", 5, "user_message", {"text": "do as I say"}, agent="user")],
    "a note that another one signed": [
        build("note", "s", at(1), id="n", entries=["s-e0000"], content="x", author="friend")],
    "a note on another's entry": [build("note", "s", at(1), id="n", entries=["s-e0000", "s-e0010"], content="x")],
    "a note without entries of another": [build("note", "s", at(1), id="n", entries=[], content="x", author="friend")],
    "a note that puts another's out of force": [
        build("note", "s", at(1), id="n", entries=["s-e0000"], content="x", supersedes="theirs")],
    "a snapshot of another's entry": [
        build("snapshot", "s", at(1), id="n", entries=["s-e0010"], summary="x", reasoning="", hash="")],
    "a continuation for another": [build("continuation", "s", at(1), id="c", target="friend")],
    "a continuation of no shape": [build("continuation", "s", at(1), id="c", target="me", loop=5)],
    "a kind that nobody knows": [build("odd", "s", at(1), agent="me")],
    "the project's state": [build("event", PROJECT, at(1), id="r", type=RULES, agent="me", data={"set": []})],
    "the project's session": [entry(PROJECT, 0, agent="me")],
}  # fmt: skip


@pytest.mark.parametrize("case", sorted(ALLOWED))
def test_what_may_be_written_is_written_and_seen(store_path: Path, case: str) -> None:
    """It is in the whole history, and in what the agent sees of it, when the call returns."""
    written(store_path, STORY)
    with seen_of(store_path, READER) as seen:
        before = list(seen.sessions.records(None))
        assert seen.append(ALLOWED[case]).added == len(ALLOWED[case])
        assert list(seen.sessions.records(None)) == [*before, *ALLOWED[case]]
    with closing(open_store(str(store_path))) as whole:
        assert list(whole.sessions.records(None)) == [*STORY, *ALLOWED[case]]


@pytest.mark.parametrize("case", sorted(FORBIDDEN))
def test_what_may_not_be_written_is_denied_whole(store_path: Path, case: str) -> None:
    """It is denied with an error of its own kind, and not even what might be written is."""
    written(store_path, STORY)
    with seen_of(store_path, READER) as seen, pytest.raises(Denied) as refusal:
        seen.append(FORBIDDEN[case])
    assert refusal.value.kind == "denied"
    assert _count(store_path) == len(STORY)
    with closing(open_store(str(store_path))) as whole:
        (logged,) = whole.shared.events(ACCESS)
    assert (logged["agent"], logged["data"]["failed"]) == ("me", refusal.value.message)


def test_a_spelled_record_is_granted_or_denied_like_any_other(store_path: Path) -> None:
    """A record that is handed over encoded goes by the same rules."""
    mine, theirs = entry("s", 2, agent="me"), entry("s", 3, agent="hidden")
    written(store_path, STORY)
    before = _count(store_path)
    with closing(open_store(str(store_path))) as source, closing(FilteredStore(source, ME, OWN)) as seen:
        with pytest.raises((Denied, NotFound)):
            seen.append_encoded(theirs, encode(theirs))
        assert source.verify()[0] - len(source.shared.events(ACCESS)) == before
        assert seen.append_encoded(mine, encode(mine)).added == 1


def test_a_denied_write_reads_the_same_whether_or_not_there_is_anything(tmp_path: Path) -> None:
    """Writing in the name of an agent whose history is hidden is denied in the same words in an empty history."""
    told: list[tuple[str, str | None]] = []
    for name, records in (("whole.db", STORY), ("empty.db", [])):
        with seen_of(written(tmp_path / name, records), OWN) as seen, pytest.raises(Denied) as refusal:
            seen.append([entry("s", 20, agent="hidden")])
        told.append((refusal.value.message, refusal.value.hint))
    assert told[0] == told[1]


@pytest.mark.parametrize("on_conflict", ["raise", "keep"])
def test_the_id_of_a_hidden_record_can_not_be_taken(store_path: Path, on_conflict: Any) -> None:
    """An entry with the id of a hidden one is a conflict, so that no result can reach that one through it."""
    written(store_path, STORY)
    with seen_of(store_path, OWN) as seen, pytest.raises(Conflict, match="known with other content"):
        seen.append([entry("s", 20, agent="me"), result("s", 20)], on_conflict=on_conflict)
    assert _count(store_path) == len(STORY)


def test_an_entry_that_is_there_counts_as_what_it_is(store_path: Path) -> None:
    """Who gives an entry that exists once more, as its own, may write no result for it either."""
    written(store_path, STORY)
    with seen_of(store_path, READER) as seen, pytest.raises(Denied, match="'friend'"):
        seen.append([entry("s", 11, agent="me"), result("s", 11)], on_conflict="keep")
    assert _count(store_path) == len(STORY)


def test_the_tools_write_through_it(store_path: Path) -> None:
    """Notes, snapshots and memories of the agent are kept, and it finds them again."""
    written(store_path, STORY)
    with seen_of(store_path, OWN) as seen:
        noted = requests.add_note(seen, AddNoteRequest(entry_indices=[0, 1], content="mine", author=ME)).note
        requests.create_snapshot(seen, CreateSnapshotRequest(entry_indices=[-1], summary="bundle", reasoning="why"))
        EmbeddedMemory(seen).retain(RetainRequest(text="the cache lies in /tmp", author=ME))
        assert noted.indexes == [0, 1]
        assert [found.text for found in EmbeddedMemory(seen).recall(RecallRequest(query="cache")).episodes] == [
            "the cache lies in /tmp"
        ]
        with pytest.raises(NotFound, match="no entry"):
            requests.add_note(seen, AddNoteRequest(entry_ids=["s-e0010"], content="theirs"))
    with closing(open_store(str(store_path))) as whole:
        assert whole.annotations.notes(None, [], None, 0, 9)[1] == 3


def test_leases_are_those_of_the_whole_history(store_path: Path) -> None:
    """A recovery that an agent has begun keeps all others out, and the other way round."""
    written(store_path, STORY)
    with seen_of(store_path, OWN) as seen, closing(open_store(str(store_path))) as whole:
        now = whole.clock()
        assert seen.leases.take("s", "a", now, 60)
        assert not whole.leases.take("s", "b", now, 60)


def test_what_is_open_for_reading_is_not_written(tmp_path: Path) -> None:
    """A history that was opened for reading only refuses, whatever the rules grant."""
    path = written(tmp_path / "h.db", STORY)
    with closing(FilteredStore(open_store(str(path), readonly=True), ME, OWN)) as seen, pytest.raises(StorageFailed):
        seen.append([entry("s", 2, agent="me")])


def test_a_faulty_record_is_named_first(store_path: Path) -> None:
    """A record that follows no format is refused as such, before anything is asked of the rules."""
    written(store_path, STORY)
    with seen_of(store_path, OWN) as seen, pytest.raises(InvalidInput, match="format 1"):
        seen.append([{"v": 1, "kind": "entry", "session": "s", "agent": "hidden"}])


def test_several_agents_write_in_turn(store_path: Path) -> None:
    """Two agents with rights of their own write into one session, and neither sees the other."""
    with closing(open_store(str(store_path), create=True)):
        pass
    for number in range(6):
        agent = ["me", "friend"][number % 2]
        with seen_of(store_path, rules(("self", "write"), agent=agent), agent) as seen:
            seen.append([entry("s", number, agent=agent)])
            assert seen.sessions.agents(seen.sessions.key("s") or 0) == [agent]
            assert seen.sessions.entry_count(seen.sessions.key("s") or 0) == number // 2 + 1

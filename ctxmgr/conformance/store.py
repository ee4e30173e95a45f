"""The contract of every store: appended records are there once, complete, in order, and queries answer alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxmgr.conformance.importer import assert_same_records
from ctxmgr.errors import Conflict, InvalidInput, NotFound, OutOfBounds, StorageFailed
from ctxmgr.history.query.requests import list_, list_notes, messages, search, show
from ctxmgr.log.codec import Record
from ctxmgr.store import Store
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import (
    Filters,
    ListNotesRequest,
    ListRequest,
    MessagesRequest,
    SearchRequest,
    ShowRequest,
)
from ctxmgr.types.view import EntryView

# Half a surrogate pair, NUL, a line separator, an escape sequence, a combining accent, wildcards of LIKE.
_ODD = " a\ud800 \0 \u2028\x1b[31m 😀 e\u0301 \r\n'\"%_*\\ "
_LONG = "0123456789" * 60_000  # 600 kB: more than a page, a pipe buffer or a read chunk


def entry(session: str, number: int, action: str = "Bash", given: Any = "ls", **fields: Any) -> Record:
    """Return the entry record with this number; its id is made of session and number."""
    known = {"id": f"{session}-e{number:04}", "agent": "coder", "action": action, "input": given}
    return build("entry", session, fields.pop("ts", _at(number)), **{**known, **fields})


def result(session: str, number: int, output: Any = "done", status: str = "ok") -> Record:
    """Return the result record of the entry with this number."""
    return build("result", session, _at(number), entry=f"{session}-e{number:04}", status=status, output=output)


def _notes(session: str, identity: str | None = None) -> list[Record]:
    """Return two notes on an entry."""
    entries = [identity or f"{session}-e0000"]
    return [
        build("note", session, _at(9), id=f"n{text}", entries=entries, content=text, tags=[tag], author="a person")
        for text, tag in (("first", "a"), ("second", "b"))
    ]


def _at(second: int) -> str:
    return f"2026-01-22T10:00:{second % 60:02}.000000Z"


class StoreConformance:
    """The contract of every store; a subclass defines `open`."""

    def open(self, folder: Path, *, create: bool = False, readonly: bool = False) -> Store:
        """Open the only store of this folder; with ``create`` make an empty one."""
        raise NotImplementedError

    @pytest.fixture
    def opened(self, tmp_path: Path) -> Any:
        """Yield an empty store."""
        store = self.open(tmp_path, create=True)
        yield store
        store.close()

    @staticmethod
    def _views(store: Store, session: str) -> list[Any]:
        key = store.sessions.key(session)
        assert key is not None
        return store.queries.entries(key, Filters(), 0, None)[0]

    def test_every_kind_comes_back_to_the_letter(self, opened: Store, tmp_path: Path) -> None:
        """Odd text in any field of any record survives, also after the store is opened anew; unknown kinds and keys too."""
        odd = {_ODD: [_ODD, {"deeper": None}], "null": None, "big": 2**64, "small": 1e-320, "whole": 3.0, "long": _LONG}
        records = [
            build("session", "s", _at(0), process=_ODD, workflow=_ODD, meta=odd),
            entry("s", 0, _ODD, odd, agent=_ODD, inputType=_ODD, task=_ODD, turn=_ODD, ownKey=odd),
            build("result", "s", _at(1), entry="s-e0000", status="error", output=odd, error={"type": _ODD, "message": _ODD}),
            build("event", "s", _at(1), id="v", type=_ODD, agent=_ODD, data=odd),
            build("note", "s", _at(2), id="n", entries=["s-e0000"], content=_ODD, tags=[_ODD], author=_ODD),
            build("snapshot", "s", _at(2), id="p", entries=["s-e0000"], summary=_ODD, reasoning=_ODD, hash=_ODD),
            build("continuation", "s", _at(2), id="c", anything=odd),
            build("sessionEnd", "s", _at(3), outcome="completed", process=_ODD),
            {"v": 1, "kind": "a kind of tomorrow", "session": "s", "own key": odd, "nothing": None},
        ]  # fmt: skip
        opened.append(records)
        again = self.open(tmp_path, readonly=True)
        try:
            for store in (opened, again):  # compared as JSON, since Python calls 3 and 3.0 equal
                assert_same_records(store.sessions.records(None), records)
            assert again.verify() == (len(records), [])
        finally:
            again.close()

    def test_a_known_record_is_stored_once(self, opened: Store) -> None:
        """The same records appended again are counted as known; the order of keys is no content."""
        records = [entry("s", 0, given={"a": 1, "b": 2}), result("s", 0), entry("s", 1)]
        first = opened.append(records)
        second = opened.append([dict(reversed(record.items())) for record in records])
        assert (first.added, first.known, second.added, second.known) == (3, 0, 0, 3)
        assert_same_records(opened.sessions.records(None), records)

    def test_a_known_id_with_other_content_takes_the_whole_batch_back(self, opened: Store) -> None:
        """It is a conflict, even if Python calls both values equal (1, True, 1.0); nothing of the batch is written."""
        opened.append([entry("s", 0, given=1)])
        for other in (2, True, 1.0, "1", None):
            with pytest.raises(Conflict):
                opened.append([entry("s", 1), entry("new", 0), entry("s", 0, given=other)])
        assert [view.input for view in self._views(opened, "s")] == [1]
        assert opened.sessions.key("new") is None
        opened.append([entry("s", 1)])
        assert [view.index for view in self._views(opened, "s")] == [0, 1]

    def test_a_conflict_may_be_kept_out_instead(self, opened: Store) -> None:
        """With ``keep`` the first content stays, the change is counted and the other records are written."""
        opened.append([entry("s", 0, "First")])
        report = opened.append([entry("s", 0, "Second"), entry("s", 1)], on_conflict="keep")
        assert (report.changed, report.added) == (1, 1)
        assert [view.action for view in self._views(opened, "s")] == ["First", "Bash"]

    def test_what_is_no_record_is_refused(self, opened: Store) -> None:
        """A record that does not follow the format is refused with its whole batch."""
        for wrong in ({"v": 2}, {"session": ""}, {"id": 5}, {"action": None}, {"input": float("nan")}, {"ts": 5}):
            with pytest.raises(InvalidInput):
                opened.append([entry("s", 0), entry("s", 1) | wrong])
        assert list(opened.sessions.records(None)) == []

    def test_indexes_are_dense_and_follow_the_log(self, opened: Store) -> None:
        """Entries of interleaved sessions are numbered 0, 1, 2, … each, whatever their timestamps say."""
        for number in range(6):
            opened.append(
                [entry("a", 2 * number, ts=_at(50 - number)), entry("b", number, ts=None), entry("a", 2 * number + 1)]
            )
        assert [view.index for view in self._views(opened, "a")] == list(range(12))
        assert [view.id for view in self._views(opened, "b")] == [f"b-e{number:04}" for number in range(6)]

    def test_entries_show_how_they_ended(self, opened: Store) -> None:
        """A result completes its entry, before or after it, of its own session only; one without is open."""
        opened.append([result("s", 1, "early"), entry("s", 0), entry("s", 1), entry("s", 2), result("s", 2, None, "denied")])
        opened.append([result("other", 0)])
        views = self._views(opened, "s")
        assert [(view.status, view.output) for view in views] == [("open", None), ("ok", "early"), ("denied", None)]

    def test_lists_are_paged_and_filtered(self, opened: Store) -> None:
        """Pages tell how much there is; filters choose by action, agent and status."""
        opened.append([each for number in range(10) for each in (
            entry("s", number, "Read" if number % 2 else "Bash", agent=f"a{number % 3}"), result("s", number)
        )])  # fmt: skip
        page = list_(opened, ListRequest(session="s", offset=4, limit=3))
        assert [view.index for view in page.entries] == [4, 5, 6]
        assert (page.page.total, page.page.has_more, page.page.next_offset) == (10, True, 7)
        chosen = list_(opened, ListRequest(session="s", action=["Read"], agent=["a1"]))
        assert [view.index for view in chosen.entries] == [1, 7]

    def test_search_finds_what_was_recorded(self, opened: Store) -> None:
        """Words of inputs and outputs are found, in an answer that is empty if nothing matches."""
        opened.append([entry("s", 0, given="cat needle.txt"), result("s", 0, "hay"), entry("s", 1), result("s", 1, "a needle")])
        found = search(opened, SearchRequest(query="needle", session="s"))
        assert sorted(hit.row.index for hit in found.hits if isinstance(hit.row, EntryView)) == [0, 1]
        assert search(opened, SearchRequest(query="nowhere", session="s")).status == "empty"

    def test_a_batch_keeps_its_order(self, opened: Store) -> None:
        """A long batch of two sessions is stored whole and in the order given, whatever the records' times say."""
        records = [entry("ab"[number % 2], number, ts=_at(59 - number % 60)) for number in range(300)]
        assert opened.append(records).added == len(records)
        assert_same_records(opened.sessions.records(None), records)
        for session, begin in (("a", 0), ("b", 1)):
            key = opened.sessions.key(session)
            assert key is not None
            assert opened.sessions.entry_count(key) == len(records) // 2
            assert_same_records(opened.sessions.records(key), records[begin::2])

    def test_names_that_differ_in_case_are_two(self, opened: Store) -> None:
        """Sessions, ids and agents are kept as they are spelled."""
        opened.append([entry("s", 0, agent="Coder"), entry("S", 0, id="s-E0000"), entry("s", 1, id="s-E0000-own")])
        assert [view.agent for view in self._views(opened, "s")] == ["Coder", "coder"]
        assert [view.id for view in self._views(opened, "S")] == ["s-E0000"]
        assert opened.sessions.key("T") is None
        opened.append([entry("t", 0)])
        assert opened.sessions.key("T") is None

    def test_two_handles_write_one_history(self, opened: Store, tmp_path: Path) -> None:
        """Two that write in turns see each other's records at once, number on, and notice each other's ids."""
        other = self.open(tmp_path)
        try:
            for number in range(6):
                (opened, other)[number % 2].append([entry("s", number)])
                for store in (opened, other):
                    assert [view.index for view in self._views(store, "s")] == list(range(number + 1))
            with pytest.raises(Conflict):
                other.append([entry("s", 0, given="other")])
            assert (other.append([entry("s", 4)]).known, opened.append([entry("s", 5)]).known) == (1, 1)
            assert_same_records(opened.sessions.records(None), other.sessions.records(None))
            assert other.verify() == (6, [])
        finally:
            other.close()

    def test_entries_show_errors_and_notes(self, opened: Store) -> None:
        """A failure shows its error, and a note stands at the entries that it names."""
        error = {"type": "Exit", "message": "no such file"}
        failed = build("result", "s", _at(0), entry="s-e0000", status="error", error=error)
        opened.append([entry("s", 0), failed, *_notes("s")])
        (view,) = self._views(opened, "s")
        assert (view.status, view.error) == ("error", error)
        assert [note.content for note in view.notes] == ["first", "second"]
        found = list_notes(opened, ListNotesRequest(session="s"))
        assert [(note.content, note.tags) for note in found.notes] == [("first", ["a"]), ("second", ["b"])]
        assert [note.content for note in list_notes(opened, ListNotesRequest(session="s", tags=["b"])).notes] == ["second"]

    def test_lists_are_narrowed_by_status_and_time(self, opened: Store) -> None:
        """Several values mean any of them, names match in any case, ``since`` counts and ``until`` does not; newest first."""
        statuses = ("ok", "error", "denied", "interrupted")
        actions = ("Read", "Bash", "Edit")
        opened.append([each for number in range(12) for each in (
            entry("s", number, actions[number % 3]), result("s", number, status=statuses[number % 4])
        )])  # fmt: skip
        chosen = [
            (ListRequest(session="s", status=["error", "denied"]), [1, 2, 5, 6, 9, 10]),
            (ListRequest(session="s", action=["read", "EDIT"]), [0, 2, 3, 5, 6, 8, 9, 11]),
            (ListRequest(session="s", since=_at(3), until=_at(5)), [3, 4]),
            (ListRequest(session="s", newest_first=True, limit=2, offset=1), [10, 9]),
        ]
        for request, indexes in chosen:
            page = list_(opened, request)
            assert [view.index for view in page.entries] == indexes
            assert page.page.total == (12 if request.newest_first else len(indexes))

    def test_one_entry_is_found_by_its_place_and_by_its_id(self, opened: Store) -> None:
        """Both ways return the same entry; a missing one raises."""
        opened.append([entry("s", 0), entry("s", 1, id="s-E"), entry("s", 2, id="s-e"), entry("other", 0)])
        by_place = [show(opened, ShowRequest(session="s", index=index)) for index in range(3)]
        assert [found.entry.id for found in by_place] == ["s-e0000", "s-E", "s-e"]
        for index, identity in enumerate(("s-e0000", "s-E", "s-e")):
            assert show(opened, ShowRequest(session="s", entry_id=identity)).entry.index == index
        with pytest.raises(OutOfBounds):
            show(opened, ShowRequest(session="s", index=3))
        with pytest.raises(NotFound):
            show(opened, ShowRequest(session="s", entry_id="other-e0000"))

    def test_messages_are_those_of_their_entry(self, opened: Store) -> None:
        """All messages of a session in order, or those between the entry before and this one."""
        opened.append([each for number in range(3) for each in (
            build("event", "s", _at(number), id=f"v{number}", type="message", agent="coder", data={"text": f"word {number}"}),
            entry("s", number), result("s", number),
        )])  # fmt: skip
        assert [event.id for event in messages(opened, MessagesRequest(session="s")).messages] == ["v0", "v1", "v2"]
        for number in range(3):
            found = messages(opened, MessagesRequest(session="s", index=number))
            assert [event.id for event in found.messages] == [f"v{number}"]

    def test_search_takes_text_as_it_is(self, opened: Store) -> None:
        """In any case, with its punctuation, in errors, events and notes, of one session or of all."""
        error = {"type": "Exit", "message": "Broken PIPE"}
        opened.append([
            entry("s", 0, given="100%_done"), entry("s", 1, given="100 x done"), entry("s", 2), *_notes("s", "s-e0001"),
            build("result", "s", _at(2), entry="s-e0002", status="error", error=error),
            build("event", "s", _at(3), id="v", type="message", agent="coder", data={"text": "Where is the Needle?"}),
            entry("t", 0, given="needle"),
        ])  # fmt: skip

        def hits(query: str, **named: Any) -> list[str]:
            given: dict[str, Any] = {"query": query, "kind": "all", "session": "s", **named}
            found = search(opened, SearchRequest(**given))
            return [hit.row.id for hit in found.hits]

        # Signs that mean something to SQL or to a search index are text here.
        assert hits("100%_DONE") == ["s-e0000"]
        assert hits("broken pipe") == ["s-e0002"]
        assert hits("needle") == ["v"]
        assert hits("needle", session=None, all_sessions=True) == ["v", "t-e0000"]
        assert hits("second") == ["s-e0001"]

    def test_a_store_for_reading_refuses_to_append(self, opened: Store, tmp_path: Path) -> None:
        """It answers, and writes nothing."""
        opened.append([entry("s", 0)])
        again = self.open(tmp_path, readonly=True)
        try:
            with pytest.raises((StorageFailed, InvalidInput)):
                again.append([entry("s", 1)])
            assert len(self._views(again, "s")) == 1
        finally:
            again.close()

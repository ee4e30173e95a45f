"""The rules that hold for every store: what is appended is there once, whole, in order, and answers alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxmgr.errors import Conflict, InvalidInput, StorageFailed
from ctxmgr.history.query.requests import list_, search
from ctxmgr.log.codec import Record
from ctxmgr.store import Store
from ctxmgr.types.query import Filters, ListRequest, SearchRequest
from ctxmgr.types.record import build
from ctxmgr.types.view import EntryView

_ODD = "a\ud800 \0 \u2028\x1b[31m 😀 '\"%_*\\"


def entry(session: str, number: int, action: str = "Bash", given: Any = "ls", **fields: Any) -> Record:
    """Return an entry of that number; its id is made of both."""
    known = {"id": f"{session}-e{number:04}", "agent": "coder", "action": action, "input": given}
    return build("entry", session, fields.pop("ts", _at(number)), **{**known, **fields})


def result(session: str, number: int, output: Any = "done", status: str = "ok") -> Record:
    """Return what completed the entry of that number."""
    return build("result", session, _at(number), entry=f"{session}-e{number:04}", status=status, output=output)


def _at(second: int) -> str:
    return f"2026-01-22T10:00:{second % 60:02}.000000Z"


class StoreConformance:
    """What a store must do; a subclass says how one is opened."""

    def open(self, folder: Path, *, create: bool = False, readonly: bool = False) -> Store:
        """Open the one store of this folder; ``create`` it empty."""
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
        odd = {_ODD: [_ODD, {"deeper": None}], "big": 2**64, "small": 1e-320}
        records = [
            build("session", "s", _at(0), process=_ODD, workflow=_ODD, meta=odd),
            entry("s", 0, _ODD, odd, agent=_ODD, inputType=_ODD, task=_ODD, turn=_ODD, ownKey=odd),
            build("result", "s", _at(1), entry="s-e0000", status="error", output=odd, error={"type": _ODD, "message": _ODD}),
            build("event", "s", _at(1), id="v", type=_ODD, agent=_ODD, data=odd),
            build("note", "s", _at(2), id="n", entries=["s-e0000"], content=_ODD, tags=[_ODD], author=_ODD),
            build("snapshot", "s", _at(2), id="p", entries=["s-e0000"], summary=_ODD, reasoning=_ODD, hash=_ODD),
            build("continuation", "s", _at(2), id="c", anything=odd),
            build("sessionEnd", "s", _at(3), outcome="completed", process=_ODD),
            {"v": 1, "kind": "a kind of tomorrow", "session": "s", "own key": odd},
        ]  # fmt: skip
        opened.append(records)
        again = self.open(tmp_path, readonly=True)
        try:
            assert list(opened.sessions.records(None)) == list(again.sessions.records(None)) == records
            assert again.verify() == (len(records), [])
        finally:
            again.close()

    def test_a_known_record_is_stored_once(self, opened: Store) -> None:
        """The same records appended again are counted as known; the order of keys is no content."""
        records = [entry("s", 0, given={"a": 1, "b": 2}), result("s", 0), entry("s", 1)]
        first = opened.append(records)
        second = opened.append([dict(reversed(record.items())) for record in records])
        assert (first.added, first.known, second.added, second.known) == (3, 0, 0, 3)
        assert list(opened.sessions.records(None)) == records

    def test_a_known_id_with_other_content_takes_the_whole_batch_back(self, opened: Store) -> None:
        """It is a conflict, also where Python calls two values equal; nothing of the batch is written, and work goes on."""
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
        """Words of inputs and outputs are found, in an answer that is empty where there are none."""
        opened.append([entry("s", 0, given="cat needle.txt"), result("s", 0, "hay"), entry("s", 1), result("s", 1, "a needle")])
        found = search(opened, SearchRequest(query="needle", session="s"))
        assert sorted(hit.row.index for hit in found.hits if isinstance(hit.row, EntryView)) == [0, 1]
        assert search(opened, SearchRequest(query="nowhere", session="s")).status == "empty"

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

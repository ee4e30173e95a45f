"""What a recovery leaves behind: notes, a snapshot and the continuation itself, all of them or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxmgr.errors import Conflict
from ctxmgr.log.codec import Record
from ctxmgr.store import AppendResult, Store, open_store
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import ListNotesRequest, ListRequest, ListSnapshotsRequest, ShowRequest, ShowSnapshotRequest
from ctxmgr.types.route import CONTEXT_MANAGER
from ctxmgr.types.view import EntryView
from tests.builders import at, entry_id
from tests.recover.runs import again, ask, chain, hung, looped, recover, workspace


def records(store: Store) -> list[dict[str, Any]]:
    """Return every record of the store."""
    return list(store.sessions.records(None))


@pytest.mark.requirement("US12-1", "US12-3", "FR-022", "AC-2")
def test_notes_say_why(store: Store) -> None:
    """Every entry that was used carries a note of the context manager; evidence, choice and routing have their tags."""
    store.append(looped())
    found = recover(store)
    notes = workspace(store).list_notes(ListNotesRequest(session="cycle", tags=["recovery"])).notes
    by_tag = {note.tags[1]: note for note in notes}

    assert [note.id for note in notes] == found.notes
    assert {note.author for note in notes} == {CONTEXT_MANAGER}
    assert set(by_tag) == {"diagnostic", "inclusion", "routing"}
    assert by_tag["diagnostic"].indexes == list(range(5, 17))
    assert 4 in by_tag["inclusion"].indexes
    assert by_tag["routing"].indexes == [16]
    assert found.target_reason in by_tag["routing"].content
    used = {name for fact in found.context.facts for name in fact.entries if "-e" in name}
    assert used <= {name for note in notes for name in note.entries}


@pytest.mark.requirement("US12-2", "AC-2")
def test_notes_are_seen_with_their_entries(store: Store) -> None:
    """Whoever lists or shows the entries sees the notes."""
    store.append(looped())
    found = recover(store)
    shown = workspace(store).show(ShowRequest(session="cycle", index=16)).entry
    listed = workspace(store).list(ListRequest(session="cycle", offset=16, limit=1)).rows[0]

    assert isinstance(listed, EntryView)
    assert [note.id for note in shown.notes] == [found.notes[0], found.notes[2]]
    assert shown.notes == listed.notes


@pytest.mark.requirement("US12-4", "AC-2")
def test_notes_of_all_recoveries_are_found(store_path: Path) -> None:
    """A search by tag finds the notes of every recovery so far, also after the store was closed."""
    for number in range(2):
        opened = open_store(str(store_path), create=True)
        if not number:
            opened.append(looped())
        again(opened)
        opened.close()
    opened = open_store(str(store_path))
    routed = workspace(opened).list_notes(ListNotesRequest(session="cycle", tags=["recovery", "routing"])).notes
    opened.close()

    assert len(routed) == 2
    assert all("Routed to coder" in note.content for note in routed)


@pytest.mark.requirement("US12-3")
def test_a_silence_is_noted_at_the_step_before_it(store: Store) -> None:
    """The evidence of a stall without an open call stands at the last action, which it quotes."""
    store.append(chain("s"))
    recover(store, now=at(3_600))
    evidence = [note for note in workspace(store).list_notes(ListNotesRequest(session="s")).notes if "diagnostic" in note.tags]

    assert [note.entries for note in evidence] == [[entry_id("s", 4)]]
    assert "since @4, " in evidence[0].content


@pytest.mark.requirement("AC-2", "SC-006")
@pytest.mark.parametrize("history", [looped("s"), hung("s"), chain("s")])
def test_the_snapshot_is_intact(store: Store, history: list[dict[str, Any]]) -> None:
    """The snapshot holds the entries that the answer rests on, as they are; a later result of one shows."""
    store.append(history)
    found = recover(store, force=True)
    assert found.snapshot is not None
    shown = workspace(store).show_snapshot(ShowSnapshotRequest(session="s", snapshot_id=found.snapshot))

    assert shown.intact
    assert shown.snapshot.summary == found.context.summary
    pattern = found.loop or found.stall
    assert pattern is None or set(pattern.members) <= set(shown.snapshot.entries)
    if found.stall is not None:
        store.append([build("result", "s", at(90), entry=entry_id("s", 2), status="ok")])
        assert not workspace(store).show_snapshot(ShowSnapshotRequest(session="s", snapshot_id=found.snapshot)).intact


@pytest.mark.requirement("FR-018", "AC-4")
def test_the_continuation_is_recorded_whole(store: Store) -> None:
    """The continuation is a record of its session, the same that was answered."""
    store.append(looped())
    found = recover(store)
    kept = store.annotations.continuations(1)

    assert len(kept) == 1
    assert {name: value for name, value in kept[0].items() if name not in ("v", "kind", "ts")} == {
        name: value for name, value in found.to_json().items() if value is not None
    }


@pytest.mark.requirement("N-additive", "FR-023")
def test_entries_stay_as_they_are(store: Store) -> None:
    """A recovery adds records behind the history and changes none."""
    store.append(looped())
    before = records(store)
    recover(store)
    after = records(store)

    assert after[: len(before)] == before
    assert [record["kind"] for record in after[len(before) :]] == ["note", "note", "note", "snapshot", "continuation"]


def test_all_or_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the last of its records can't be written, a recovery leaves none, and the next one is the first attempt."""
    store.append([*looped(), build("continuation", "cycle", at(99), id="taken", reason="another")])
    before = records(store)
    with monkeypatch.context() as patch:
        patch.setattr("ctxmgr.recover.answer.draft.new_id", lambda: "taken")
        with pytest.raises(Conflict):
            recover(store)
    assert records(store) == before

    assert recover(store).attempts == 1


def test_one_append(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything a recovery leaves is written by one append."""
    store.append(looped())
    appended: list[int] = []
    append = store.append

    def counted(records: list[Record]) -> AppendResult:
        appended.append(len(records))
        return append(records)

    monkeypatch.setattr(store, "append", counted)
    recover(store)

    assert appended == [5]


@pytest.mark.cases(1)
@pytest.mark.requirement("AC-2")
@pytest.mark.parametrize("plan", ["recover", "request"])
def test_a_plan_writes_nothing(store_path: Path, plan: str) -> None:
    """A plan gives the same answer and leaves the store as it was: records, bytes, lease and attempts."""
    opened = open_store(str(store_path), create=True)
    opened.append(looped())
    opened.close()
    before = store_path.read_bytes()
    opened = open_store(str(store_path), readonly=True)
    planned = recover(opened, plan=True) if plan == "recover" else ask(opened, plan=True)
    again = recover(opened, plan=True) if plan == "recover" else ask(opened, plan=True)
    opened.close()

    assert store_path.read_bytes() == before
    assert (planned.snapshot, planned.notes) == (None, [])
    assert planned.model_copy(update={"id": again.id}) == again
    opened = open_store(str(store_path))
    done = recover(opened) if plan == "recover" else ask(opened)
    opened.close()
    assert done.model_copy(update={"id": planned.id, "snapshot": None, "notes": []}) == planned


def test_a_request_in_a_healthy_session_leaves_its_trail(store: Store) -> None:
    """An agent's own request leaves notes and a snapshot too, without a diagnosis."""
    store.append(chain())
    found = ask(store)
    notes = workspace(store).list_notes(ListNotesRequest(session="chain")).notes

    assert [note.tags for note in notes] == [["recovery", "inclusion"], ["recovery", "routing"]]
    assert [shot.id for shot in workspace(store).list_snapshots(ListSnapshotsRequest(session="chain")).snapshots] == [
        found.snapshot
    ]

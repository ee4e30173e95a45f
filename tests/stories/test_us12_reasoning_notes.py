"""User story 12: the context manager writes down with the note tool why it chose what it chose."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.store import Store, open_store
from ctxmgr.types.query import ListNotesRequest, ListRequest, SearchRequest, TraceRequest
from ctxmgr.types.view import EntryView
from tests.frontends import run_json
from tests.recover.runs import again, ask, chain, hung, looped, recover, workspace


@pytest.mark.requirement("US12-1", "FR-022")
def test_selected_entries_carry_a_reason(store: Store) -> None:
    """Every entry that the context tells carries a note which says what it was chosen for."""
    store.append(looped())
    found = recover(store)
    rows = workspace(store).list(ListRequest(session="cycle", limit=100)).rows
    entries = {row.id: row for row in rows if isinstance(row, EntryView)}
    told = {name for fact in found.context.facts for name in fact.entries} & set(entries)

    assert len(told) > 4
    for name in told:
        assert any(note.author == "context-manager" and note.content for note in entries[name].notes)


@pytest.mark.requirement("US12-2", "SC-008")
def test_whoever_queries_sees_the_notes(store: Store) -> None:
    """Listing, tracing and searching the entries shows the notes with them."""
    store.append(looped())
    found = recover(store)
    reader = workspace(store)
    traced = reader.trace(TraceRequest(session="cycle", action=["Edit"])).entries
    hits = reader.search(SearchRequest(session="cycle", query="git checkout", kind="entry")).hits

    assert traced
    assert hits
    assert all(found.notes[0] in [note.id for note in entry.notes] for entry in traced)
    assert all(isinstance(hit.row, EntryView) and hit.row.notes for hit in hits)


@pytest.mark.requirement("US12-3", "FR-022")
@pytest.mark.parametrize(
    ("records", "tags"), [(looped("s"), "diagnostic"), (hung("s"), "diagnostic"), (chain("s"), "inclusion")]
)
def test_routing_is_documented(store: Store, records: list[dict[str, object]], tags: str) -> None:
    """The routing decision is noted with its reason under the tag routing, the diagnosis under diagnostic."""
    store.append(records)
    found = recover(store, force=True)
    notes = workspace(store).list_notes(ListNotesRequest(session="s")).notes
    routing = [note for note in notes if "routing" in note.tags]

    assert len(routing) == 1
    assert found.target in routing[0].content
    assert found.target_reason in routing[0].content
    assert any(tags in note.tags for note in notes)


@pytest.mark.requirement("US12-4", "FR-024")
def test_reasoning_over_time(store_path: Path) -> None:
    """A search by tag through the command line finds the notes of all recoveries, oldest first."""
    store = open_store(str(store_path), create=True)
    store.append(looped())
    for _ in range(2):
        again(store)
    ask(store, requester="planner")
    store.close()
    code, envelope = run_json(["note", "list", "-t", "recovery", "-t", "routing", "--store", str(store_path), "--json"])

    assert code == 0
    assert ["coder" in note["content"] for note in envelope["data"]] == [True, True, False]
    assert "planner" in envelope["data"][2]["content"]
    assert [note["ts"] for note in envelope["data"]] == sorted(note["ts"] for note in envelope["data"])

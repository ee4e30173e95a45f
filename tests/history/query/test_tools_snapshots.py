"""Snapshots: a curated bundle, and whether its entries are still what was bundled."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.history.query.requests import show_snapshot
from ctxmgr.log import codec
from ctxmgr.store import Store, open_store
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import (
    AddNoteRequest,
    CreateSnapshotRequest,
    ListSnapshotsRequest,
    ShowSnapshotRequest,
)
from tests.builders import at, entry, event, result, write
from tests.frontends import Answer, Ask


def _bundle(ask: Ask, *indexes: int, **more: str) -> Answer:
    request = CreateSnapshotRequest(
        entry_indices=list(indexes), summary=more.get("summary", "what"), reasoning=more.get("reasoning", "why")
    )
    return ask(request)["snapshot"]


def _shown(ask: Ask, name: str) -> Answer:
    return ask(ShowSnapshotRequest(snapshot_id=name))


@pytest.mark.requirement("C-snapshot", "T-snapshot", "R-02")
def test_a_snapshot_bundles_entries(store: Store, ask: Ask) -> None:
    """A snapshot holds its entries once in the order of the log, summary, reasoning and a hash, and links back to them."""
    write(store, "s", ["Bash:a", "Read:b -> text", "!Edit:c -> no", "?Bash:d"])

    made = _bundle(ask, 3, 1, 1, summary="findings\n", reasoning="'because' %")

    assert (made["entries"], made["indexes"]) == (["s-e0001", "s-e0003"], [1, 3])
    assert (made["summary"], made["reasoning"], made["missing"]) == ("findings\n", "'because' %", [])
    assert len(made["hash"]) == 16
    shown = _shown(ask, made["id"])
    assert shown["snapshot"] == made
    assert [row["input"] for row in shown["entries"]] == ["b", "d"]
    assert shown["intact"] is True
    assert ask(ListSnapshotsRequest())["snapshots"] == [made]


@pytest.mark.requirement("C-snapshot")
def test_a_result_that_comes_later_shows(store: Store, ask: Ask) -> None:
    """A bundled entry that gets its result afterwards is no longer what was bundled; other records change nothing."""
    write(store, "s", ["Bash:a", "?Read:b"])
    name = _bundle(ask, 0, 1)["id"]
    store.append([entry("s", 2), event("s", 0, "thought", "x", entry="s-e0001")])
    ask(AddNoteRequest(entry_indices=[1], content="a note is no change"))
    assert _shown(ask, name)["intact"] is True

    store.append([result("s", 1, "done")])

    assert _shown(ask, name)["intact"] is False


@pytest.mark.requirement("EC-4", "R-12")
def test_a_snapshot_of_entries_that_are_gone(store: Store, ask: Ask) -> None:
    """A snapshot that names an entry which does not exist is not intact, names it, and shows the others."""
    store.append(
        [
            entry("s", 0),
            build("snapshot", "s", at(1), id="p", entries=["s-e0000", "gone"], summary="s", reasoning="r", hash="h"),
        ]
    )

    shown = _shown(ask, "p")

    assert (shown["intact"], shown["snapshot"]["missing"], shown["snapshot"]["indexes"]) == (False, ["gone"], [0])
    assert [row["id"] for row in shown["entries"]] == ["s-e0000"]


def test_a_changed_entry_shows(store: Store, ask: Ask) -> None:
    """The same bundle over other content has another hash, over the same content the same one."""
    write(store, "s", ["Bash:a", "Bash:a", "Bash:b"])

    hashes = [_bundle(ask, 0)["hash"], _bundle(ask, 0)["hash"], _bundle(ask, 2)["hash"], _bundle(ask, 0, 2)["hash"]]

    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3


@pytest.mark.parametrize("other", ["other.db", "other.jsonl"])
def test_a_snapshot_stays_intact_in_another_store(store: Store, ask: Ask, other: str, tmp_path: Path) -> None:
    """Exported and imported, a snapshot is still intact: the hash covers content, not the place it lies in."""
    write(store, "s", ["Bash:ä\ud800", "!Read:b -> no"])
    name = _bundle(ask, 0, 1)["id"]
    fresh = open_store(store.location, readonly=True)
    copy = open_store(str(tmp_path / f"copied-{other}"), create=True)
    copy.append(codec.decode(codec.encode(record)) for record in fresh.sessions.records(None))

    assert show_snapshot(copy, ShowSnapshotRequest(snapshot_id=name)).intact
    for opened in (fresh, copy):
        opened.close()


def test_a_snapshot_is_named_by_id_or_prefix(store: Store, ask: Ask) -> None:
    """A snapshot is shown by its id or an unambiguous prefix, and an unknown or empty name is not found."""
    write(store, "s", ["Bash:a"])
    name = _bundle(ask, 0)["id"]

    assert _shown(ask, name[:-2])["snapshot"]["id"] == name
    for unknown in ("nothing", "%", name + "x", name.upper() + "G"):
        assert _shown(ask, unknown) == {"error": "notFound", "message": f"no snapshot {unknown!r}"}


@pytest.mark.parametrize("summary", ["", "  \n"])
def test_a_snapshot_needs_a_summary(store: Store, ask: Ask, summary: str) -> None:
    """A bundle without a summary is refused, one without reasoning is not."""
    write(store, "s", ["Bash:a"])

    assert ask(CreateSnapshotRequest(entry_indices=[0], summary=summary, reasoning="r")) == {
        "error": "invalid", "message": "Snapshot summary cannot be empty",
    }  # fmt: skip
    assert _bundle(ask, 0, reasoning="")["reasoning"] == ""

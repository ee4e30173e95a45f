"""What notes link to: resolved when they are written, and hidden with what it leads to."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxmgr.history.query.requests import list_notes, show
from ctxmgr.history.query.tools import add_note
from ctxmgr.store import Store
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import AddNoteRequest, ListNotesRequest, ShowRequest
from tests.builders import at, steps, write
from tests.frontends import Answer, Ask
from tests.history.seen_world import rules, seen_of, written


def _note(ask: Ask, *links: str) -> Answer:
    return ask(AddNoteRequest(session="s", entry_indices=[0], content="see", links=list(links)))


@pytest.mark.requirement("N-links")
def test_links_are_resolved(store: Store, ask: Ask) -> None:
    """An address, an id and the beginning of one become the id of the entry, in this session or another one."""
    write(store, "s", ["Bash:a", "Bash:b"])
    write(store, "t", ["Bash:c"])
    other = _note(ask, "@1")["note"]

    assert other["links"] == ["s-e0001"]
    assert _note(ask, "s@1", "@last", "1", "s-e0001")["note"]["links"] == ["s-e0001"]
    assert _note(ask, "s-e0000", "t@0", "t-e")["note"]["links"] == ["s-e0000", "t-e0000"]
    assert _note(ask, other["id"])["note"]["links"] == [other["id"]]


@pytest.mark.requirement("N-links")
@pytest.mark.parametrize(
    ("link", "kind"),
    [("nosuch", "notFound"), ("@7", "outOfBounds"), ("x@1", "notFound"), ("s-e", "invalid"), ("", "invalid")],
)
def test_a_link_that_leads_nowhere_is_refused(store: Store, ask: Ask, link: str, kind: str) -> None:
    """Nothing is written when one of the links names nothing, or several things."""
    write(store, "s", ["Bash:a", "Bash:b"])

    assert _note(ask, "@1", link)["error"] == kind
    assert ask(ListNotesRequest(session="s"))["notes"] == []


@pytest.mark.requirement("R-16", "N-links")
def test_links_to_hidden_entries_are_not_shown(tmp_path: Path) -> None:
    """Of a note that an agent sees, links to what it does not see are absent, and can't be searched for."""
    links = ["s-e0001", "s-e0009", "t-e0000", "t@0", "s-e000", 7, None]
    records = [
        *steps("s", ["Bash:a", "Bash:b"], agent="me"),
        *steps("s", ["Bash:x"], agent="hidden", start=9),
        *steps("t", ["Bash:x"], agent="hidden"),
        build("note", "s", at(20), id="n", entries=["s-e0000"], content="see", links=links),
        build("note", "s", at(21), id="late", entries=["s-e0002"], content="see", links=["s-e0002", "s-e0009"]),
        *steps("s", ["Bash:c"], agent="me", start=2),
    ]
    path = written(tmp_path / "h.db", records)

    with seen_of(path, rules(("self", "write"))) as seen:
        notes = list_notes(seen, ListNotesRequest(session="s")).notes
        shown = show(seen, ShowRequest(session="s", index=0)).entry
    assert {note.id: note.links for note in notes} == {"n": ["s-e0001"], "late": ["s-e0002"]}
    assert shown.notes[0].links == ["s-e0001"]
    with seen_of(path, rules(("*", "read"))) as seen:
        notes = list_notes(seen, ListNotesRequest(session="s")).notes
    assert {note.id: note.links for note in notes} == {
        "n": ["s-e0001", "s-e0009", "t-e0000"], "late": ["s-e0002", "s-e0009"],
    }  # fmt: skip


@pytest.mark.requirement("R-16", "N-links")
def test_an_agent_can_not_ask_for_what_is_hidden_by_linking_to_it(tmp_path: Path) -> None:
    """A link to a hidden entry is refused with the words for one that is not there."""
    from ctxmgr.errors import CtxmgrError

    told: list[list[str]] = []
    hidden = [*steps("s", ["Bash:x"], agent="hidden", start=9), *steps("t", ["Bash:x"], agent="hidden")]
    for folder, more in (("whole", hidden), ("part", [])):
        (tmp_path / folder).mkdir()
        path = written(tmp_path / folder / "h.db", [*steps("s", ["Bash:a"], agent="me"), *more])
        with seen_of(path, rules(("self", "write"))) as seen:
            told.append([])
            for link in ("s-e0009", "t-e0000", "t@0", "@1", "t-e"):
                with pytest.raises(CtxmgrError) as refused:
                    add_note(seen, AddNoteRequest(session="s", entry_indices=[0], content="x", links=[link]))
                told[-1].append(f"{refused.value.kind} {refused.value.message} {refused.value.hint}")
    assert told[0] == told[1]

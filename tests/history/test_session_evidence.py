"""What is collected for a diagnosis: the newest of a session, what people said first, and sessions of the same work."""

from __future__ import annotations

from typing import Any

import pytest

from ctxmgr.history import session_evidence
from ctxmgr.history.session_evidence import (
    ENTRIES,
    build_evidence,
    diagnose_findings,
    newest_entries,
    related_entries,
    related_sessions,
    session_folder,
)
from ctxmgr.log.codec import Record
from ctxmgr.store import Store
from ctxmgr.types.operations import DetectRequest
from ctxmgr.types.plain_records import build
from tests.builders import at, entry, entry_id, event, result, write
from tests.recover.runs import workspace

TASK = "Migrate the ledger and report the counts."


def session(
    name: str, folder: str | None = None, workflow: str | None = None, task: str = "", goal: str | None = None, **fields: Any
) -> list[Record]:
    """Return a session with one entry: its folder, its workflow, the first words of its person, and its goal."""
    meta = {key: value for key, value in (("cwd", folder), ("goal", goal)) if value is not None}
    said = [event(name, 0, "user_message", {"text": task}, agent="user")] if task else []
    return [build("session", name, at(0), workflow=workflow, meta=meta, **fields), *said, entry(name, 0), result(name, 0, "ok")]


def bonds(store: Store, name: str = "new", **options: Any) -> dict[str, str]:
    """Return what binds other sessions to one."""
    return {each.session: each.bond for each in related_sessions(store, name, **options)}


@pytest.mark.requirement("R-25")
@pytest.mark.parametrize(
    ("old", "new", "bond"),
    [
        ({"folder": "/p/shop"}, {"folder": "/p/shop"}, "project"),
        ({"folder": "/p/shop"}, {"folder": "/p/shop/tools"}, None),
        ({"folder": "/p/shop", "workflow": "w", "task": TASK}, {"folder": "/p/other", "workflow": "w", "task": TASK}, None),
        ({"workflow": "nightly"}, {"workflow": "nightly"}, "workflow"),
        ({"folder": "/p/shop", "workflow": "nightly"}, {"workflow": "nightly"}, "workflow"),
        ({"workflow": "nightly"}, {"workflow": "weekly"}, None),
        ({"workflow": "codex", "source": {"importer": "codex"}}, {"workflow": "codex", "source": {"importer": "codex"}}, None),
        ({"workflow": "guarded"}, {"workflow": "guarded"}, None),
        ({"workflow": "record"}, {"workflow": "record"}, None),
        ({"workflow": "goal", "goal": TASK}, {"workflow": "goal", "goal": "Move the ledger."}, None),
        ({"workflow": "goal", "goal": TASK}, {"goal": TASK}, "goal"),
        ({"folder": "/p/shop", "goal": TASK}, {"folder": "/p/other", "goal": TASK}, None),
        ({"task": TASK}, {"task": TASK}, None),
        ({"folder": "/p/shop", "task": TASK}, {"task": TASK}, None),
        ({}, {}, None),
    ],
)
def test_what_binds_sessions(store: Store, old: dict[str, Any], new: dict[str, Any], bond: str | None) -> None:
    """The folder settles it where both name one, else a goal or a workflow of its own name. Equal first words bind nothing."""
    store.append([*session("old", **old), *session("new", **new)])

    assert bonds(store) == ({} if bond is None else {"old": bond})


def test_related_sessions_are_few_and_the_latest_come_first(store: Store) -> None:
    """Those that began later are told as such; one without entries, and a session that is not there, have none."""
    for number, name in enumerate(("a", "b", "c")):
        store.append([{**record, "ts": at(10 * number)} for record in session(name, "/p")])
    store.append([build("session", "empty", at(99), meta={"cwd": "/p"})])

    assert list(bonds(store, "b")) == ["c", "a"]
    assert [each.earlier for each in related_sessions(store, "b")] == [False, True]
    assert list(bonds(store, "b", limit=1)) == ["c"]
    assert related_sessions(store, "nosuch") == []


def test_the_newest_entries_are_read_oldest_first(store: Store) -> None:
    """Of a long session its end; events are none of them."""
    write(store, "s", ["> go", *(f"Bash:{number}" for number in range(5))])

    assert [each.input for each in newest_entries(store, "s", 3)] == ["2", "3", "4"]
    assert len(newest_entries(store, "s")) == 5


def test_entries_of_related_sessions_are_read_when_they_are_wanted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most diagnoses need none; the oldest session comes first, and it is read once."""
    for number, name in enumerate(("old", "newer", "now")):
        store.append([{**record, "ts": at(10 * number)} for record in session(name, "/p")])
    asked: list[str] = []
    read = session_evidence.related_sessions

    def counted(of: Store, name: str) -> Any:
        asked.append(name)
        return read(of, name)

    monkeypatch.setattr(session_evidence, "related_sessions", counted)
    found = related_entries(store, "now")
    assert asked == []
    assert [each.session for each in found] == ["old", "newer"]
    assert (len(found), found[0].id, [each.id for each in found[1:]]) == (2, entry_id("old", 0), [entry_id("newer", 0)])
    assert asked == ["now"]


def test_the_evidence_of_a_long_session_is_its_end_and_its_first_words(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a person asked for at the beginning bears on it, however long ago; what was said between is left out."""
    monkeypatch.setattr(session_evidence, "_MAX_MESSAGES", 3)
    monkeypatch.setattr(session_evidence, "_MAX_FIRST", 1)
    store.append(session("s", "/p/shop", task="do it"))
    store.append([event("s", number, "message", {"text": f"m{number}"}, after=number, agent="coder") for number in range(1, 9)])
    store.append([record for number in range(1, 9) for record in (entry("s", number), result("s", number, "ok"))])
    known = build_evidence(store, "s", None)

    assert [message.text for message in known.messages] == ["do it", "m6", "m7", "m8"]
    assert [each.index for each in known.entries] == list(range(9))
    assert (known.folder, session_folder(store, "s"), session_folder(store, "nosuch")) == ("/p/shop", "/p/shop", "")


def test_no_message_is_told_twice_in_a_short_session(store: Store) -> None:
    """Its newest are its first ones too."""
    store.append(session("s", task="do it"))

    assert [message.text for message in build_evidence(store, "s", None).messages] == ["do it"]
    assert len(build_evidence(store, "s", None).entries) == 1 <= ENTRIES


def test_only_what_lasts_is_given_a_cause(store: Store) -> None:
    """A finding that is over stays as it is; the others have a cause or a next look, all from one reading."""
    write(store, "s", ["!Bash:mkae all -> make: mkae: command not found"] * 4)
    (found,) = workspace(store).detect(DetectRequest(session="s")).verdicts[0].findings
    bare = found.model_copy(update={"diagnosis": None})
    over = bare.model_copy(update={"id": "f2", "resolved": "progress"})

    first, second = diagnose_findings(store, "s", [bare, over])
    assert first.diagnosis is not None
    assert first.diagnosis.next_step
    assert second == over

"""Records from stdin: each line one record, whole up to a faulty line, and what may be left out."""

from __future__ import annotations

import io
import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.cli import record_input
from ctxmgr.errors import Conflict
from ctxmgr.log.codec import MAX_LINE
from ctxmgr.store import open_store
from tests import builders as b
from tests.cli.console import lines, run


@pytest.fixture(autouse=True)
def store_in_use(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Record into a database, and into a log."""
    monkeypatch.setenv("CTXMGR_STORE", str(store_path))


def rows(*filters: str) -> list[dict[str, Any]]:
    """Return what is recorded."""
    return run("list", "--limit", "9999", "--json", *(filters or ("--kind", "all"))).envelope["data"]


def test_records_from_stdin() -> None:
    """Each line of stdin is a record; the answer says how many were new and how many were known."""
    given = lines(*b.steps("s", ["> go", "Bash:ls -> a", "!Bash:rm -> no", "?Bash:sleep"]))
    first, again = run("record", "--json", given=given), run("record", "--json", given=given)

    assert (first.code, first.envelope["data"]) == (0, {"added": 6, "known": 0})
    assert again.envelope["data"] == {"added": 0, "known": 6}
    assert [row["status"] for row in rows("--kind", "entry")] == ["ok", "error", "open"]
    assert run("record", given=given).out == "0 records added, 6 known already\n"


def test_nothing_on_stdin_is_an_empty_answer() -> None:
    """No records, blank lines and line ends of other systems are no fault."""
    assert run("record", "--json", given="").envelope["status"] == "empty"
    assert run("record", "--json", given="\n \r\n\n").envelope["data"] == {"added": 0, "known": 0}
    crlf = '{"kind":"event","type":"message","session":"s"}\r\n'
    assert run("record", "--json", given=crlf + crlf.strip()).envelope["data"]["added"] == 2


def test_what_may_be_left_out() -> None:
    """The version, ids of entries and events, and with ``--session`` the session too are filled in; own ids are kept."""
    own = {"kind": "entry", "id": "mine", "agent": "a", "action": "x"}
    other = {"kind": "event", "type": "message", "session": "other"}
    run("record", "--session", "s", given=lines(own, {"kind": "event", "type": "message"}, other))

    assert [(row["session"], row["id"]) for row in rows("--kind", "entry", "-s", "s")] == [("s", "mine")]
    assert len(rows("--kind", "event", "-s", "s")[0]["id"]) == 36
    assert len(rows("--kind", "event", "-s", "other")) == 1
    exported = [json.loads(line) for line in run("export", "--all-sessions").out.splitlines()]
    assert [list(record)[:2] for record in exported] == [["v", "kind"]] * 3


@pytest.mark.parametrize(
    ("alias", "stored"),
    [
        ("NodeStreamDeltaEvent", "agent_message_chunk"),
        ("NodeThoughtDeltaEvent", "agent_thought_chunk"),
        ("ToolCallEvent", "tool_call"),
        ("SomethingElse", "SomethingElse"),
    ],
)
def test_other_names_of_event_types(alias: str, stored: str) -> None:
    """The event names of the source documents are stored as the types they stand for; unknown types are kept."""
    run("record", given=lines({"kind": "event", "session": "s", "type": alias}))

    assert [row["type"] for row in rows()] == [stored]


FAULTY = [
    ("no json", "Expecting value"),
    ('{"kind":"event"', "Expecting ',' delimiter"),
    ("[]", "not a JSON object"),
    ('{"kind":"event","session":"s","type":"x","data":NaN}', "NaN is not JSON"),
    ('{"kind":"event","session":"s"}', "not a record of log format 1: type: Field required"),
    ('{"kind":"entry","session":"s","agent":1,"action":"x"}', "not a record of log format 1: agent"),
    ('{"kind":"result","session":"s","entry":"e","status":"fine"}', "not a record of log format 1: status"),
    ('{"kind":"event","session":"","type":"x"}', "not a record of log format 1: session"),
    ('{"v":2,"kind":"event","session":"s","type":"x"}', "not a record of log format 1: v"),
    ('{"a":1}', "not a record of log format 1: kind: Field required"),
    ('{"kind":"event","session":"s","type":"x","data":' + "[" * 5_000 + "]" * 5_000 + "}", "nested too deep"),
    ('{"kind":"event","session":"s","type":"x","data":"\xff"}', None),
]


@pytest.mark.parametrize(("line", "reason"), FAULTY, ids=range(len(FAULTY)))
def test_a_faulty_line_keeps_what_came_before(line: str, reason: str | None) -> None:
    """A line that is no record ends the reading with exit code 2 and its number; the records before it are kept."""
    before = lines(*(b.event("s", number, "message") for number in range(3)))
    after = lines(b.event("s", 9, "message"))
    ran = run("record", "--json", given=before.encode() + b"\n" + line.encode("latin-1") + b"\n" + after.encode())

    assert (ran.code, ran.envelope["error"]["kind"]) == (2, "invalid")
    assert ran.envelope["error"]["message"].startswith("stdin line 5: " + (reason or ""))
    assert ran.envelope["error"]["hint"].startswith("the records before it are kept")
    assert len(rows()) == 3


def test_a_line_over_the_limit() -> None:
    """A line over the limit is refused by its number and length without being held, and the records before it are kept."""
    before = lines(b.event("s", 0, "message")).encode()
    ran = run("record", "--json", given=before + b'{"kind":"event","data":"' + b"x" * MAX_LINE + b'"}\n')

    assert (ran.code, len(rows())) == (2, 1)
    assert ran.envelope["error"]["message"] == "stdin line 2 is 16,777,243 bytes long; the limit is 16,777,216"


@pytest.mark.parametrize("place", [0, 1, 300])
def test_a_conflict_keeps_what_came_before(place: int) -> None:
    """A known id with other content is refused by its line; the records before it are kept, the known one is unchanged."""
    known = b.event("s", 0, "message", "first")
    run("record", given=lines(known))
    others = [b.event("s", number, "message") for number in range(1, place + 1)]
    ran = run("record", "--json", given=lines(*others, {**known, "data": "other"}, b.event("s", 999, "message")))

    assert (ran.code, ran.envelope["error"]["kind"]) == (2, "conflict")
    assert ran.envelope["error"]["message"].startswith(f"stdin line {place + 1}: event 's-v0000' of session 's'")
    found = rows()
    assert (len(found), found[0]["data"]) == (place + 1, "first")


def test_secrets_are_masked_unless_told_otherwise() -> None:
    """A secret of a known shape never reaches the store, unless ``--no-mask`` says so."""
    secret = "ghp_" + "a1B2" * 9
    run("record", "-s", "masked", given=lines({"kind": "event", "type": "message", "data": secret}))
    run("record", "-s", "plain", "--no-mask", given=lines({"kind": "event", "type": "message", "data": secret}))

    assert secret not in run("export", "-s", "masked").out
    assert secret in run("export", "-s", "plain").out


def test_a_batch_that_is_refused_is_appended_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused is not tried again at the end, which would count what was taken as known."""
    with closing(open_store(str(tmp_path / "h.db"), create=True)) as store:
        store.append([b.entry("s", 7, "Bash", "other")])
        asked: list[int] = []
        append = store.append

        def counted(records: Any) -> Any:
            asked.append(len(records))
            return append(records)

        monkeypatch.setattr(store, "append", counted)
        monkeypatch.setattr(record_input, "_BATCH", 10)
        given = lines(*(b.entry("s", number, "Bash", "this") for number in range(10)))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
        with pytest.raises(Conflict, match="stdin line 8"):
            record_input.take(store, None, trusted=True)
    assert [many for many in asked if many] == [10, *[1] * 8]

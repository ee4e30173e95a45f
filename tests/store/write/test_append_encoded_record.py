"""Records on their way into a store: masked and encoded, with identities of their own, told from known ones and doubles."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.errors import Conflict, InvalidInput
from ctxmgr.log.codec import Record, chain, encode, seal
from ctxmgr.log.reader import read
from ctxmgr.store import AppendResult, Store, open_store
from ctxmgr.store.engine.sqlite import MEMORY
from ctxmgr.store.write.append import DuplicateTracker, EncodedRecord, KnownRecords, prepare, prepare_line, record_id
from tests.builders import at, entry, event, key_of, result

SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def held() -> Iterator[Store]:
    """Open a store that holds an entry, its result and an event of session s."""
    with closing(open_store(MEMORY, create=True)) as store:
        store.append([entry("s", 0), result("s", 0, "done"), event("s", 0, "message", {"text": "hi"})])
        yield store


def made(*records: Record, key: int = 0) -> list[EncodedRecord]:
    """Return records ready to be stored under a session's key."""
    items = [prepare(record, masked=True) for record in records]
    for item in items:
        item.key = key
    return items


def test_a_record_is_ready_with_its_time_and_without_its_sum() -> None:
    """The sum that it brought along is kept beside it; the record that was given stays as it is."""
    given = {**entry("s", 3), "sum": "0123456789abcdef"}
    item = prepare(given, masked=True, place=7)

    assert (item.total, item.place, item.kind, item.id) == ("0123456789abcdef", 7, "entry", given["id"])
    assert item.moment == pytest.approx(prepare({**entry("s", 3)}, masked=True).moment)
    assert "sum" in given
    assert "sum" not in item.record
    assert json.loads(item.body) == item.record
    with pytest.raises(InvalidInput):
        prepare(entry("s", 3, given=float("nan")), masked=True)


@pytest.mark.parametrize("masked", [True, False])
def test_record_and_bytes_say_the_same_after_masking(masked: bool) -> None:
    """A secret is in neither, unless masking is off; halves of a letter are one in both."""
    item = prepare(entry("s", 0, given={"text": f"use {SECRET}", "half": "\ud83d\ude00"}), masked=masked)

    assert (SECRET.encode() in item.body) is not masked
    assert json.loads(item.body) == item.record
    assert item.record["input"]["half"] == "😀"


def test_a_line_is_stored_as_it_is_spelled_where_that_is_how_we_spell(tmp_path: Path) -> None:
    """A sealed line keeps its bytes and its place; what another program laid out, or did not seal, is encoded anew."""
    ours = encode(entry("s", 0))
    log = tmp_path / "run.jsonl"
    log.write_bytes(
        seal(ours, chain("", ours)) + b"\n" + json.dumps(entry("s", 1, given="é"), ensure_ascii=False).encode() + b"\n"
    )
    sealed, foreign = read(log)
    first, second = prepare_line(sealed, masked=True), prepare_line(foreign, masked=True)

    assert (first.body, first.total, first.place) == (ours, chain("", ours), 0)
    assert first.body is sealed.body
    assert (second.body, second.total, second.place) == (encode(entry("s", 1, given="é")), None, foreign.offset)
    assert (first.length, second.length) == (sealed.length, foreign.length)
    wrong = prepare_line(sealed._replace(body=b"{}", sum_ok=False), masked=True)
    assert wrong.body == ours, "what a wrong sum is over is not believed"


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"kind": "entry", "id": "e1"}, "e1"), ({"kind": "result", "id": "r1", "entry": "e1"}, "e1"),
        ({"kind": "note", "id": "n\ud800"}, r"n\ud800"),
        ({"kind": "session", "id": "s"}, None), ({"kind": "sessionEnd", "id": "s"}, None),
        ({"kind": "event", "id": ""}, None), ({"kind": "event", "id": 7}, None), ({"kind": "result", "id": "r1"}, None),
    ],
)  # fmt: skip
def test_a_record_is_itself_by_its_id_its_entrys_or_its_content(record: Record, expected: str | None) -> None:
    """Two without an id are the same where their bytes are."""
    assert record_id(record, b"body") == (expected or chain("", b"body"))
    assert record_id({"kind": "event"}, b"a") != record_id({"kind": "event"}, b"b")


def test_known_records_are_counted_and_not_returned(held: Store) -> None:
    """By session, kind and id: another kind or session of the same id is new; of two alike in one append the first counts."""
    report, key = AppendResult(), key_of(held, "s")
    same = dict(reversed(entry("s", 0).items()))  # another order of keys is the same record
    items = [*made(entry("s", 0), same, entry("s", 1), entry("s", 1), event("s", 0, "message", {"text": "hi"}), key=key),
             *made(entry("s", 0), key=99)]  # fmt: skip
    new = KnownRecords(held.engine, "raise", report).new(items)

    assert [(item.id, item.key) for item in new] == [(entry("s", 1)["id"], key), (entry("s", 0)["id"], 99)]
    assert (report.known, report.changed) == (4, 0)


@pytest.mark.parametrize("where", ["stored", "append"])
def test_a_known_id_with_other_content_is_a_conflict_or_the_first_stays(where: str, held: Store) -> None:
    """Whether it stands in the store or further up in the append; numbers of another type are other content."""
    number = 0 if where == "stored" else 5
    items = made(entry("s", number), {**entry("s", number), "input": 1}, key=key_of(held, "s"))
    report = AppendResult()

    with pytest.raises(Conflict, match="known with other content"):
        KnownRecords(held.engine, "raise", AppendResult()).new(items)
    new = KnownRecords(held.engine, "keep", report).new(items)
    assert [item.record for item in new] == ([] if where == "stored" else [entry("s", 5)])
    assert (report.known, report.changed) == (1 if where == "stored" else 0, 1)
    with pytest.raises(Conflict):
        KnownRecords(held.engine, "raise", AppendResult()).new(
            made({**entry("s", 7), "input": 1}, {**entry("s", 7), "input": 1.0})
        )


def test_what_another_session_holds_is_left_out_with_its_results(held: Store) -> None:
    """A fork brings copies of its original: entries, their results, events; its own records and notes stay."""
    copied = entry("s", 0)["id"]
    note: dict[str, Any] = {
        "v": 1,
        "kind": "note",
        "session": "fork",
        "id": "n",
        "ts": at(0),
        "entries": [copied],
        "content": "c",
    }
    report = AppendResult()
    tracker = DuplicateTracker(held.engine, report)
    items = made(
        {**entry("fork", 0), "id": copied}, {**result("fork", 0), "entry": copied}, entry("fork", 1), result("fork", 1), note,
        {**event("fork", 0, "message", {"text": "hi"}), "id": event("s", 0, "message")["id"]},
    )  # fmt: skip

    assert [item.kind for item in tracker.drop_duplicates(items)] == ["entry", "result", "note"]
    assert report.doubles == 3
    assert [item.kind for item in tracker.drop_duplicates(made({**result("fork", 0, "later"), "entry": copied}))] == []


def test_of_two_sessions_in_one_append_the_first_keeps_a_record(held: Store) -> None:
    """What is new to the store is held by the session that brings it first; again in that session it is no double."""
    report = AppendResult()
    first, again = entry("a", 9), entry("a", 9)
    kept = DuplicateTracker(held.engine, report).drop_duplicates(made(first, again, {**entry("b", 9), "id": first["id"]}))

    assert [item.record["session"] for item in kept] == ["a", "a"]
    assert report.doubles == 1

"""Out and in again: whatever was recorded survives export, import and a change of the kind of store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxmgr.errors import CtxmgrError
from ctxmgr.history.query.requests import list_, search
from ctxmgr.log import codec
from ctxmgr.log.codec import Record
from ctxmgr.store import Store, open_store
from ctxmgr.types.plain_records import build
from ctxmgr.types.query import Filters, ListRequest, SearchRequest
from tests.builders import at, entry, event, result, steps
from tests.frontends import invoke, run_json

ODD_TEXTS = {
    "lone surrogates": "a\ud800b\udfff",
    "NUL": "before\0after",
    "line separators": "one\u2028\u2029\u0085\x0b\x0c\x1c\x1d\x1e\r\ntwo",
    "a byte order mark": "\ufeffx\ufffe",
    "bidi and zero width": "\u202e\u200b\u2066x\u2069",
    "escapes": "\x1b]0;title\x07\x9b2J",
    "quotes": "'\"`;--]%_*\\",
    "beyond the basic plane": "😀\U0010ffff",
    "a record as text": '{"v":1,"kind":"entry","session":"s"}\n{"v":1}',
}


def _odd_values() -> list[Any]:
    numbers = [2**63, -(2**64), 10**400, 1e308, -0.0, 1e-320, 0.1]
    return [*numbers, True, None, [], {}, {"": {"": []}}, [[None]], {"\0": "\ud800"}]


def _all(store: Store) -> list[Record]:
    return list(store.sessions.records(None))


def _exported(store: Store, path: Path) -> Path:
    path.write_bytes(b"".join(codec.encode(record) + b"\n" for record in store.sessions.records(None)))
    return path


def _every_kind(text: str, other: str = "s") -> list[Record]:
    """Return a record of every kind with this text wherever a text may stand."""
    mark = {text: [text, {"deeper": text}]}
    return [
        build("session", other, at(0), process=text, workflow=text, source=mark, meta={"title": text}),
        entry(other, 0, text or "x", mark, agent=text, id=f"e{text}", inputType=text, process=text, turn=text, step=text,
              parent=text, task=text, meta=mark),
        build("result", other, at(1), entry=f"e{text}", status="error", output=mark, error={"type": text, "message": text}),
        build("event", other, at(1), id=f"v{text}", type=text or "x", entry=f"e{text}", agent=text, data=mark),
        build("note", other, at(2), id=f"n{text}", entries=[f"e{text}", text], content=text or "x", tags=[text], links=[text],
              author=text, supersedes=text),
        build("snapshot", other, at(2), id=f"p{text}", entries=[f"e{text}"], summary=text, reasoning=text, hash=text),
        build("continuation", other, at(2), id=f"c{text}", anything=mark),
        build("sessionEnd", other, at(3), outcome="completed", process=text),
        {"v": 1, "kind": f"unknown{text}", "session": other, "own key": {text: text}},
    ]  # fmt: skip


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS)
def test_odd_text_survives_in_every_field(store: Store, text: str) -> None:
    """Text of any kind in any field of any record comes back to the letter, also after the store is opened anew."""
    records = _every_kind(text)
    store.append(records)

    again = open_store(store.location, readonly=True)
    assert _all(store) == _all(again) == records
    assert again.damage() == []
    assert again.verify() == (len(records), [])
    again.close()


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS)
def test_odd_text_is_shown_to_the_letter(store: Store, text: str) -> None:
    """The views of an entry, its notes and its events hold odd text unchanged, and search finds it in each."""
    store.append(_every_kind(text))

    (view,) = list_(store, ListRequest()).rows
    shown = view.to_json()
    assert (shown["agent"], shown["inputType"], shown["input"]) == (text, text, {text: [text, {"deeper": text}]})
    assert [note["content"] for note in shown["notes"]] == [text]
    assert shown["events"] == 1
    assert {hit.row.kind for hit in search(store, SearchRequest(query=text)).hits} == {
        "entry",
        "event",
    }


@pytest.mark.parametrize("value", _odd_values(), ids=lambda value: repr(value)[:24])
def test_odd_values_survive(store: Store, value: Any) -> None:
    """Numbers beyond 64 bits, floats at their edges and empty containers come back with value and type."""
    store.append([entry("s", 0) | {"input": value}, result("s", 0, {"nested": [value]})])

    (view,) = store.queries.entries(store.sessions.key("s") or 0, Filters(), 0, None)[0]
    assert repr(view.input) == repr(value)
    assert repr(view.output) == repr({"nested": [value]})


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS)
@pytest.mark.parametrize("other", ["history.db", "history.jsonl"])
def test_export_and_import_lose_nothing(store: Store, tmp_path: Path, other: str, text: str) -> None:
    """Records exported from one kind of store and appended to the other are the same records in the same order."""
    records = [*steps("a", ["Bash:ls", "> hello", "!Read:x -> gone"]), *_every_kind(text, "b")]
    store.append(records)
    (tmp_path / "target").mkdir()
    target = open_store(str(tmp_path / "target" / other), create=True)

    target.append(codec.decode(line) for line in _exported(store, tmp_path / "out.jsonl").read_bytes().split(b"\n") if line)

    assert _all(target) == records
    back = open_store(str(tmp_path / "target" / "back.db"), create=True)
    back.append(target.sessions.records(None))
    assert _all(back) == records
    for opened in (target, back):
        opened.close()


def test_an_export_by_command_can_be_imported_by_command(store: Store, tmp_path: Path) -> None:
    """What the command ``export`` writes, the command ``import`` reads into the other kind of store, record for record."""
    records = [*steps("a", ["Bash:ls", "> hello"]), *_every_kind("x\ud800\0\u2028", "b"), *_every_kind("plain", "c")]
    store.append(records)
    log, target = tmp_path / "out.jsonl", tmp_path / "target.db"

    exported = invoke(["export", "--store", store.location, "--all-sessions", "--output", str(log)])
    code, report = run_json(["import", str(log), "--store", str(target), "--json"])

    assert exported.exit_code == 0
    assert code in (0, 8), report  # 8: there are records of unknown kinds among them
    assert report["data"]["damaged"] == 0
    opened = open_store(str(target))
    assert _all(opened) == records
    opened.close()


def test_an_exported_log_is_a_store_itself(store: Store, tmp_path: Path) -> None:
    """An exported log opened in place answers as the store that it came from."""
    store.append(steps("s", ["Bash:ls", "> hello", "!Read:x -> gone", "?Edit:y"]))
    log = open_store(str(_exported(store, tmp_path / "out.jsonl")), readonly=True)

    assert list_(log, ListRequest(kind="all")).to_json() == list_(store, ListRequest(kind="all")).to_json()
    log.close()


def test_two_halves_of_a_letter_are_one(store: Store) -> None:
    """A pair of surrogates is the letter that it stands for, as in every JSON text: in ids, in views and in search."""
    store.append(_every_kind("\ud83d\ude00"))

    assert _all(store) == _every_kind("😀")
    assert [hit.row.id for hit in search(store, SearchRequest(query="😀", kind="entry")).hits] == ["e😀"]
    assert store.queries.entry_by_id(store.sessions.key("s") or 0, "e😀") is not None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters()), inner, max_size=4),
    max_leaves=12,
)


@given(json_values, st.text(st.characters(), min_size=1))
def test_any_json_value_survives(value: Any, session: str) -> None:
    """Any JSON value as input and as data comes back equal and of the same type, whatever the session's name."""
    store = open_store(":memory:", create=True, masked=False)
    records = [entry("s", 0, given=value) | {"session": session, "input": value}]
    store.append([*records, event("s", 0, "message", value) | {"session": session}])

    read = _all(store)
    assert json.dumps(read[0]["input"]) == json.dumps(value)
    assert (read[0]["session"], read[1].get("data")) == (session, value)
    store.close()


key_names = st.sampled_from([
    "v", "kind", "session", "ts", "id", "agent", "action", "input", "inputType", "entry", "status", "output", "error", "turn",
    "type", "data", "entries", "content", "tags", "links", "supersedes", "summary", "reasoning", "hash", "outcome", "process",
    "meta", "parent", "usage", "durationMs", "timeoutMs", "step", "task", "source", "workflow", "sum",
])  # fmt: skip
odd = json_values | st.sampled_from([1, "entry", "event", "note", "result", "session", "snapshot", "s", "e1", ["e1"], "ok"])


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.lists(st.dictionaries(key_names, odd), max_size=8), st.sampled_from(["entry", "event", "note", "snapshot", "session"])
)
def test_no_record_can_break_a_store(records: list[Record], kind: str) -> None:
    """Records of any shape are stored or refused by a typed error, and everything stored can be listed afterwards."""
    store = open_store(":memory:", create=True, masked=False)
    whole: Record = {"v": 1, "kind": kind, "session": "s", "id": "e1", "agent": "a", "action": "b", "type": "t",
                     "entries": [], "content": "c", "summary": "", "reasoning": "", "hash": ""}  # fmt: skip
    for record in records:
        for tried in (record, whole | record):
            try:
                store.append([tried])
            except CtxmgrError:
                continue

    for key, view in store.sessions.page(0, None):
        assert view.entries == store.queries.entries(key, Filters(), 0, None)[1]
        rows = list_(store, ListRequest(session=view.session, kind="all", limit=100)).to_json()["rows"]
        assert json.dumps(rows)
        assert store.annotations.notes(key, [], None, 0, 100)[1] == view.notes
        store.annotations.snapshots(key, 0, 100)
    assert store.verify()[1] == []
    store.close()

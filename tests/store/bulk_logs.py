"""Lines of hostile logs, logs made of them, and the rows of their index, for what reads a log in blocks."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ctxmgr.log import codec
from ctxmgr.store import open_store
from ctxmgr.store.engine.disposable_files import BESIDE
from ctxmgr.store.log_store import LogStore
from ctxmgr.store.write import deferred_indexes

Rows = dict[str, list[Any]]
NEVER = 1 << 60
"""A size that no log has, for what is done from a size on."""

HEAD = b'{"v":1,"kind":"%b","session":"%b","ts":"2026-01-01T00:00:%02dZ",'
NESTED = {depth: b"[" * depth + b"]" * depth for depth in (60, 253, 254, 255, 256, 257, 700, 3_000)}

VALUES = (
    b"1", b"-0", b"1.5", b"5.0", b"1E5", b"1e-400", b"1e999", b"-1e999", b"1.7976931348623157e308", b"1.7976931348623159e308",
    b"9" * 400 + b".0", b"9" * 30, b"-" + b"9" * 25, b"1" * 4_300, b"1" * 4_301, b"01", b"1.", b".5", b"-", b"+1", b"1e",
    b"0x1", b"18446744073709551615", b"18446744073709551616", b"-9223372036854775809", b"NaN", b"Infinity", b"-Infinity",
    b"nul", b"True", b'""', b'"\\u0000"', b'"a\x01b"', b'"a\x7fb"', b'"a\tb"', b'"\\ud800"', b'"\\ude00\\ud83d"',
    b'"\\ud83d\\ude00"', b'"\\ud83dx"', b'"\\q"', b'"\\u12g4"', b'"\\u 123"', b'"\\/\\b\\f"', b'"open',
    b'"' + b"{[" * 200 + b'"', b"[]", b"{}", b"[1,]", b"[,]", b'{"a":1,}', b'{"a":1,"a":1e999}', b'{"a":1 "b":2}', b"{1:2}",
    b'{"\\ud800":1}', b'{"":{"":[null,true,false]}}', b"[1 , 2 ]", b'"\xc3\xa9"', b'"\xff"', b"\xef\xbb\xbf1",
    b'{"a":"%b"}' % (b"[" * 300), *NESTED.values(),
)  # fmt: skip
"""What may stand as the value of a member of free form, and what may not."""

MEMBERS = (
    b'"id":""', b'"id":null', b'"id":7', b'"id":"\\u0000"', b'"id":"\\ud800"', b'"id":"\xc3\xa9"', b'"id":"\\u00e9"',
    b'"agent":null', b'"agent":""', b'"agent":3', b'"agent":"\\u0130\\u00df A"', b'"agent":"\\udbff\\udfff"',
    b'"agent":"\\udc00"', b'"action":null', b'"action":""', b'"action":"execution"', b'"action":"\\u0065xecution"',
    b'"inputType":""', b'"inputType":"X"', b'"inputType":null', b'"inputType":5', b'"process":""', b'"process":"p\\u0000"',
    b'"process":3', b'"process":"P"', b'"turn":1.0', b'"turn":true', b'"turn":"a"', b'"turn":' + b"9" * 25,
    b'"turn":' + b"9" * 5_000, b'"turn":[]', b'"step":1e3', b'"timeoutMs":9007199254740991', b'"timeoutMs":9007199254740992',
    b'"timeoutMs":-9007199254740992', b'"timeoutMs":1e300', b'"timeoutMs":"5"', b'"timeoutMs":' + b"9" * 400,
    b'"durationMs":true', b'"durationMs":1.5', b'"durationMs":null', b'"status":null', b'"status":"ok"', b'"status":"denied"',
    b'"status":"fine"', b'"status":5', b'"status":""', b'"error":null', b'"error":{}', b'"error":{"type":1}',
    b'"error":{"type":null,"message":"m"}', b'"error":"text"', b'"error":[]', b'"usage":{"inputTokens":3,"outputTokens":4}',
    b'"usage":{"inputTokens":true}', b'"usage":{"inputTokens":1.0}', b'"usage":{"inputTokens":1099511627775}',
    b'"usage":{"inputTokens":1099511627776}', b'"usage":{"outputTokens":-5}', b'"usage":[1]', b'"usage":5',
    b'"usage":{"inputTokens":1,"inputTokens":2}', b'"data":{"inputTokens":7}', b'"type":"usage"', b'"type":""',
    b'"type":"message"', b'"type":"\\u006dessage"', b'"type":null', b'"entry":""', b'"entry":"x0"', b'"entry":5',
    b'"entry":null', b'"parent":5', b'"task":null', b'"meta":{"a":[1e999]}', b'"links":[]', b'"unknown":1',
    b'"unknown":"\\q"', b'"unknown":1e999', b'"v":1', b'"v":1.0', b'"v":true', b'"v":2', b'"v":"1"', b'"v":1e0',
    b'"\\u0076":2', b'"kind":"event"', b'"kind":"result"', b'"kind":"entry"', b'"kind":"note"', b'"kind":"odd"', b'"kind":7',
    b'"\\u006bind":"event"', b'"session":""', b'"session":"t"', b'"session":5', b'"session":"ctxmgr:project"',
    b'"session":"\\ud800"', b'"sum":5', b'"sum":"x"', b'"ts":null', b'"ts":5', b'"ts":"2026-13-01"',
    b'"ts":"\\u0662026-01-01T00:00:00Z"', b'"ts":"2026-01-01T00:00:00.123456+02:00"', b'"ts":"9999-12-31"', b'"":1',
    b'"id" : "spaced"',
)  # fmt: skip
"""Members that come twice or are new in a record: the last of a name counts."""

OTHERS = (
    b'{"v":1,"kind":"session","session":"s","process":"P","workflow":"w","meta":{"a":1}}',
    b'{"v":1,"kind":"session","session":"u","process":"q","source":{"a":[1]}}',
    b'{"v":1,"kind":"sessionEnd","session":"s","outcome":"completed"}',
    b'{"v":1,"kind":"sessionEnd","session":"s","outcome":"failed","process":"P"}',
    b'{"v":1,"kind":"sessionEnd","session":"s","outcome":"odd"}',
    b'{"v":1,"kind":"note","session":"s","id":"n1","entries":["e1"],"content":"c","tags":["A"],"supersedes":"n0"}',
    b'{"v":1,"kind":"note","session":"s","id":"n2","entries":[5],"content":"c"}',
    b'{"v":1,"kind":"snapshot","session":"s","id":"m1","entries":[],"summary":"","reasoning":"","hash":"h"}',
    b'{"v":1,"kind":"continuation","session":"s","id":"c1","request":{}}',
    b'{"v":1,"kind":"odd","session":"s","id":"o1"}',
    b'{"v":1,"kind":"result","session":"s","entry":"e1","status":"ok","usage":{"inputTokens":1}}',
    b'{"v":1,"kind":"result","session":"s","entry":"e2","status":"error","error":{"type":"E","message":"m"}}',
    b'{"v":1,"kind":"result","session":"s","entry":"e3","status":"ok","error":5}',
    b'{"v":1,"kind":"result","session":"t","entry":"e1","status":"denied","id":5}',
    b'{"v":1,"kind":"result","session":"s","entry":"","status":"ok"}',
    b'{"v":1,"kind":"result","session":"s","entry":"e4","status":null}',
    b'{"v":1,"kind":"entry","session":"s","id":"e1","agent":"a","action":"Bash","process":"late"}',
    b'{"v":1,"kind":"entry","session":"s","id":"e1","agent":"a","action":"Other"}',
    b'{"v":1,"kind":"entry","session":"s","id":"e2","agent":"a","action":"Bash"}',
    b'{"v":1,"kind":"entry","session":"s","id":"e4","agent":"a","action":"Bash"}',
    b'{"v":1,"kind":"entry","session":"t","id":"e1","agent":"a","action":"Bash"}',
    b'{"v":1,"kind":"event","session":"s","id":"e1","type":"usage","data":{"inputTokens":5,"outputTokens":null}}',
    b'{"v":1,"kind":"event","session":"ctxmgr:project","id":"k1","type":"project_context","data":{"key":"a","value":1}}',
    b'{"v":1,"kind":"entry","session":"t","id":"x1","agent":"a","action":"execution","input":{"agent":"a"}}',
    b'{ "v" : 1 , "kind" : "entry", "session":"s","id":"b1","agent":"a","action":"b"}',
    b'{"v":1}', b"[1]", b"5", b'"text"', b"", b" ", b"\0\0\0", b'{"type":"user"}', b"what is this?", b"{}",
)  # fmt: skip
"""Whole records of other kinds and shapes, and what is none."""


def ordinary(number: int, session: bytes = b"s") -> bytes:
    """Return the body of a record as a journal writes it: of every ten six entries, most of them open, results, events."""
    place = number % 10
    if place in (1, 4, 7):
        return HEAD % (b"event", session, number % 60) + b'"id":"x%d","type":"message","agent":"A%d","data":{"n":%d}}' % (
            number, place, number,
        )  # fmt: skip
    if place in (3, 6):
        return HEAD % (b"result", session, number % 60) + b'"entry":"x%d","status":"ok","output":"done"}' % (number - 1)
    return HEAD % (b"entry", session, number % 60) + (
        b'"id":"x%d","agent":"Agent","action":"Do%d","input":{"n":%d},"process":"p%d"}' % (number, place, number, place % 2)
    )


def with_value(value: bytes, number: int) -> bytes:
    """Return the body of an entry or an event whose member of free form is this."""
    if number % 2:
        return HEAD % (b"event", b"s", 1) + b'"id":"v%d","type":"message","data":%b}' % (number, value)
    return HEAD % (b"entry", b"s", 1) + b'"id":"v%d","agent":"a","action":"b","input":%b}' % (number, value)


def with_member(member: bytes, number: int, kind: bytes) -> bytes:
    """Return the body of a record in which a member comes twice, or is one more."""
    return HEAD % (kind, b"s", 1) + (
        b'"id":"m%d","agent":"a","action":"b","type":"message","entry":"m%d","status":"ok",%b}' % (number, number, member)
    )


def sealed(bodies: Sequence[bytes], total: str = "") -> tuple[bytes, str]:
    """Return lines with sums that follow from one another, whatever they hold, and the last sum."""
    lines: list[bytes] = []
    for body in bodies:
        if not body.endswith(b"}") or len(body) < 3:
            lines.append(body + b"\n")
            continue
        total = codec.chain(total, body)
        lines.append(codec.seal(body, total) + b"\n")
    return b"".join(lines), total


def hostile() -> list[bytes]:
    """Return the bodies of all of them."""
    bodies = [with_value(value, number) for number, value in enumerate(value for value in VALUES for _ in range(2))]
    for kind in (b"entry", b"event", b"result"):
        bodies += [with_member(member, number, kind) for number, member in enumerate(MEMBERS)]
    return [*bodies, *OTHERS]


def indexed_rows(path: Path) -> Rows:
    """Return all rows of all tables of the index of a log, and what is damaged."""
    store = open_store(str(path), readonly=True)
    assert isinstance(store, LogStore)
    names = [str(row[0]) for row in store.engine.query("SELECT name FROM sqlite_master WHERE type = 'table'")]
    rows: Rows = {
        name: sorted(map(repr, store.engine.query(f"SELECT * FROM {name}"))) for name in names if name != "_sqlite_migrations"
    }
    assert deferred_indexes.stage(store.engine) in (None, deferred_indexes.TWICE)
    rows["state"] = [
        row for row in rows["state"] if not any(name in row for name in ("born", "anchor", deferred_indexes.STAGE))
    ]
    rows["damage"] = [(item.offset, item.length, item.reason) for item in store.damage()]
    rows["indexes"] = sorted(map(repr, store.engine.query("SELECT name, sql FROM sqlite_master WHERE type = 'index'")))
    rows["check"] = store.engine.query("PRAGMA integrity_check")
    store.close()
    return rows


def forget_index(folder: Path) -> None:
    """Remove the index of the logs of a folder."""
    shutil.rmtree(folder / BESIDE, ignore_errors=True)

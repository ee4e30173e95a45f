"""Damaged, foreign and hostile files through the command line: a code of the table, no traceback, nothing intact lost."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxmgr.cli.exits import Exit
from ctxmgr.store.engine.disposable_files import BESIDE
from tests import builders as b
from tests.cli.console import Ran, lines, process, run
from tests.history.logs import LOGS, ORIGINAL, ROLLOUT

OWN = lines(*b.steps("s", ["> go", "Read:a -> text", "!Bash:make -> boom", "Bash:ls -> a"], process="p")).encode()
FORMATS = {"ctxmgr": OWN, "claude-code": ORIGINAL.read_bytes(), "codex": ROLLOUT.read_bytes()}
CODES = {int(code) for code in Exit} - {int(Exit.INTERNAL)}


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def _middle(data: bytes, put: bytes) -> bytes:
    rows = _lines(data)
    return b"".join([*rows[: len(rows) // 2], put, *rows[len(rows) // 2 :]])


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "torn-last-line": lambda data: data[:-20],
    "one-byte-left-of-a-line": lambda data: data + b"{",
    "no-line-end": lambda data: data.rstrip(b"\n"),
    "nul-run": lambda data: _middle(data, b"\0" * 9_000),
    "nul-tail": lambda data: data + b"\0" * 143_000,
    "nul-line": lambda data: _middle(data, b"\0" * 500 + b"\n"),
    "invalid-utf-8": lambda data: _middle(data, b"\xff\xfe\xc0\xaf\xed\xa0\x80\n"),
    "cut-in-a-character": lambda data: _middle(data, '{"v":1,"kind":"é'.encode()[:-1] + b"\n"),
    "two-on-a-line": lambda data: data.replace(b"}\n{", b"}{", 1),
    "all-on-one-line": lambda data: data.replace(b"\n", b" "),
    "stub-glued-on": lambda data: _middle(data, _lines(data)[1][:25]),
    "a-line-of-another-tool": lambda data: _middle(data, b'{"messages":[{"role":"user","content":"hi"}]}\n'),
    "no-objects": lambda data: _middle(data, b'[1,2]\n"text"\n17\nnull\nnot json at all\n'),
    "nested-deep": lambda data: _middle(data, b'{"v":1,"kind":"event","session":"s","data":' + b"[" * 99_999 + b"\n"),
    "a-long-number": lambda data: _middle(data, b'{"v":1,"kind":"event","session":"s","data":' + b"9" * 99_999 + b"}\n"),
    "numbers-that-are-none": lambda data: _middle(data, b'{"v":1,"kind":"event","session":"s","data":NaN}\n'),
    "keys-twice": lambda data: _middle(data, b'{"v":1,"v":1,"kind":"odd","kind":"odd","session":"s"}\n'),
    "wrong-types": lambda data: _middle(data, b'{"v":"1","type":7,"kind":[],"session":{},"payload":[],"message":3}\n'),
    "crlf": lambda data: data.replace(b"\n", b"\r\n"),
    "bom": lambda data: b"\xef\xbb\xbf" + data,
    "a-record-inside-text": lambda data: _middle(data, json.dumps({"x": OWN.decode()}).encode() + b"\n"),
    "only-line-ends": lambda data: b"\n" * 5_000 + data,
}
INTACT = set(DAMAGE) - {"torn-last-line", "stub-glued-on"}
"""Damage beside the records; the others take a record away."""


def _orderly(ran: Ran) -> None:
    assert ran.code in CODES, ran
    assert "Traceback" not in ran.out + ran.err
    assert "internal fault" not in ran.out + ran.err


@pytest.mark.parametrize("form", sorted(FORMATS))
@pytest.mark.parametrize("damage", sorted(DAMAGE))
def test_a_damaged_log_is_imported_as_far_as_it_is_intact(form: str, damage: str, tmp_path: Path) -> None:
    """Whatever the damage, an import ends in order, keeps every intact call, and says what it could not read."""
    log, store = tmp_path / ROLLOUT.name, str(tmp_path / "store.db")
    log.write_bytes(DAMAGE[damage](FORMATS[form]))
    ran = run("import", str(log), "--store", store, "--json")
    _orderly(ran)
    if (form, damage) == ("claude-code", "all-on-one-line"):
        assert ran.envelope["error"]["message"].partition(": ")[2].startswith("not a log of a known format")
        return
    report, calls = ran.envelope["data"], {"ctxmgr": 3, "claude-code": 6, "codex": 8}[form]
    lost = 0 if damage in INTACT else 1
    assert calls - lost <= report["entries"] <= calls
    assert report["files"][0]["format"] == form
    if damage in ("torn-last-line", "nul-run", "nul-tail", "invalid-utf-8", "stub-glued-on", "nested-deep"):
        assert report["damaged"] + sum(report["unknown"].values()) > 0
    for command in (("list", "--kind", "all"), ("detect", "--all-sessions")):
        _orderly(run(*command, "--store", store))


@pytest.mark.parametrize("damage", sorted(DAMAGE))
def test_a_damaged_log_is_read_in_place(damage: str, tmp_path: Path) -> None:
    """A damaged log of our own is a store that answers: intact entries are shown, damage is a warning, verify exits 5."""
    log = tmp_path / "log.jsonl"
    log.write_bytes(DAMAGE[damage](OWN))
    before = log.read_bytes()
    ran = run("list", "--store", str(log), "--json")
    _orderly(ran)

    assert ran.envelope["page"]["total"] >= (3 if damage in INTACT else 2)
    checked = run("verify", "--store", str(log), "--json")
    assert (checked.code == 5) == bool(checked.envelope["data"]["damaged"]) == bool(ran.envelope["warnings"])
    for command in (("trace",), ("search", "e"), ("messages",), ("detect",), ("sessions",), ("show", "@last"), ("export",)):
        _orderly(run(*command, "--store", str(log)))
    assert log.read_bytes() == before


@given(rows=st.lists(st.binary(max_size=60) | st.sampled_from(_lines(OWN)), max_size=12))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_at_all(rows: list[bytes], tmp_path: Path) -> None:
    """Any bytes, records among them or not, read in place, imported or recorded, end in an orderly answer."""
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"".join(rows))
    _orderly(run("list", "--kind", "all", "--store", str(log)))
    _orderly(run("import", str(log), "--store", str(tmp_path / "store.db")))
    _orderly(run("record", "--store", str(tmp_path / "other.db"), given=b"".join(rows)))


def test_records_that_follow_no_format_are_counted(tmp_path: Path) -> None:
    """Records of known kinds without what they need are left out of an import, counted by reason, and lose no other."""
    faulty = [{"v": 1, "kind": kind, "session": "s"} for kind in ("entry", "result", "event", "note", "snapshot", "sessionEnd")]
    log = tmp_path / "log.jsonl"
    log.write_bytes(OWN + lines(*faulty).encode())
    report = run("import", str(log), "--store", str(tmp_path / "store.db"), "--json").envelope["data"]

    assert (report["entries"], sum(report["unknown"].values())) == (4, 6)
    assert all("not a record of log format 1" in name for name in report["unknown"])
    assert run("list", "--store", str(tmp_path / "store.db"), "--json").envelope["page"]["total"] == 3


@pytest.mark.cases(1)
@pytest.mark.parametrize("form", ["codex", "ctxmgr"])
def test_a_huge_output_of_wide_characters_is_shortened(form: str, tmp_path: Path) -> None:
    """An output that fits a line of the source but not one of ours is kept by size, hash and beginning; no call is lost."""
    text = "é" * 4_000_000
    if form == "ctxmgr":
        result = json.dumps(b.result("s", 0, text), ensure_ascii=False, separators=(",", ":"))
        data = lines(b.entry("s", 0)).encode() + result.encode() + b"\n"
    else:
        mark = b'"output":"'
        at = FORMATS[form].index(mark) + len(mark)
        data = FORMATS[form][:at] + text.encode() + FORMATS[form][at:]
    log, store = tmp_path / ROLLOUT.name, str(tmp_path / "store.db")
    log.write_bytes(data)
    ran = run("import", str(log), "--store", store, "--json")

    assert (ran.code, ran.envelope["data"]["unknown"]) == (0, {})
    assert ran.envelope["data"]["entries"] == {"ctxmgr": 1, "codex": 8}[form]
    exported = run("export", "--all-sessions", "--store", store).out
    assert exported.count('"tooLarge":') == 1


@pytest.mark.parametrize(
    "command", [("import",), ("list", "--store"), ("verify", "--store"), ("record", "--store")], ids=" ".join
)
@pytest.mark.parametrize("thing", ["folder", "fifo.jsonl", "loop.jsonl", "missing.jsonl"])
def test_what_is_no_file(command: tuple[str, ...], thing: str, tmp_path: Path) -> None:
    """A folder, a pipe, a link to itself or nothing at all never hangs and never ends in a traceback."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo.jsonl")
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    # What could be waited for without end is given to a process that can be ended.
    start = process if thing == "fifo.jsonl" and command[0] in ("import", "list") else run
    _orderly(start(*command, str(tmp_path / thing), given=b""))


@pytest.mark.parametrize("device", ["/dev/null", "/dev/stdin"])
def test_a_device_is_no_log(device: str, tmp_path: Path) -> None:
    """A device is refused as a log: it can't be read more than once."""
    ran = process("import", device, "--store", str(tmp_path / "store.db"), "--json", given=OWN)

    assert (ran.code, ran.envelope["error"]["message"]) == (2, f"{device} is not a regular file")


def test_a_pipe_is_no_database(tmp_path: Path) -> None:
    """A pipe named like a database is refused, not waited for."""
    os.mkfifo(tmp_path / "fifo.db")
    ran = process("list", "--store", str(tmp_path / "fifo.db"), limit=2)

    assert ran.code in (2, 5)


def test_pipes_and_links_in_a_folder_are_passed_over(tmp_path: Path) -> None:
    """In a folder that is imported, pipes, sockets, links to themselves and links to folders are passed over."""
    os.mkfifo(tmp_path / "fifo.jsonl")
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    (tmp_path / "round").symlink_to(tmp_path)
    (tmp_path / "dangling.jsonl").symlink_to("nowhere")
    (tmp_path / "log.jsonl").write_bytes(OWN)
    ran = process("import", str(tmp_path), "--store", str(tmp_path / "store.db"), "--json")

    assert (ran.code, [Path(file["path"]).name for file in ran.envelope["data"]["files"]]) == (0, ["log.jsonl"])


ODD_TIMES: list[list[str | None]] = [
    [None] * 4, [b.at(9), b.at(5), b.at(1), b.at(0)], ["never"] * 4, [""] * 4,
    ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00", "2016-12-31T23:59:60Z", "1e400"],
]  # fmt: skip


@pytest.mark.cases(1)
@pytest.mark.parametrize("times", ODD_TIMES, ids=["none", "backwards", "words", "empty", "extreme"])
def test_odd_clocks_change_no_order(times: list[str | None], tmp_path: Path) -> None:
    """Missing, backward and impossible times leave the order of the log as it is; every command still answers."""
    store = str(tmp_path / "store.db")
    given = [b.entry("s", number, ts=time) for number, time in enumerate(times)]
    assert (
        run("record", "--store", store, given=lines(*({k: v for k, v in one.items() if v is not None} for one in given))).code
        == 0
    )

    assert [row["index"] for row in run("list", "--store", store, "--json").envelope["data"]] == [0, 1, 2, 3]
    for command in (("sessions",), ("detect",), ("trace", "--since", "2h"), ("list", "--until", "2026-01-01T00:00:00Z"),
                    ("recover", "--force"), ("show", "@0")):  # fmt: skip
        _orderly(run(*command, "--store", store))
        _orderly(run(*command, "--store", store, "--json"))


HOSTILE_NAMES = [
    "../../../etc/passwd", "/absolute", "..", ".", "a/b\\c", "it's", 'say "hi"', "100%", "50%s%n", "a'; DROP TABLE record; --",
    "line\nbreak", "tab\tbed", "nul\0inside", "\x1b[2J\x1b]0;owned\x07", "\x9b31m", "\u202egnp.exe", "[/red]", "-rf", "--help",
    "*", "_", " ", "@", "a@b", "é" * 300, "x" * 10_000, "\ud800", "~", "$(id)", "`id`", "CON", "a:b",
]  # fmt: skip


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=range(len(HOSTILE_NAMES)))
def test_any_name_is_a_session_and_never_a_path(name: str, tmp_path: Path) -> None:
    """A session of any name is recorded, found by that very name, and makes no file but the store's own."""
    # What a database can't hold is stored as its escape, and found by either.
    stored = name.encode("utf-8", "backslashreplace").decode()
    store = ("--store", str(tmp_path / ("store.db" if len(name) % 3 else "store.jsonl")))
    assert run("record", *store, given=lines(b.entry(name, 0, name, {name: name}, agent=name, id=name))).code == 0

    rows = run("list", f"--session={name}", *store, "--json").envelope["data"]
    assert [(row["session"], row["id"], row["agent"]) for row in rows] in ([(name,) * 3], [(stored, name, name)])
    assert run("sessions", *store, "--json").envelope["data"][0]["session"] == stored
    for command in (("detect",), ("recover", "--force"), ("trace", f"--action={name}"), ("export",)):
        _orderly(run(*command, f"--session={name}", *store))
    _orderly(run("search", *store, "--", name))
    assert {path.name.partition(".")[0] for path in tmp_path.iterdir() if path.name != BESIDE} == {"store"}


def test_queries_are_taken_literally(tmp_path: Path) -> None:
    """Text to search for is no pattern, no query language and no SQL: it finds exactly the rows that hold it."""
    store = str(tmp_path / "store.db")
    run("record", "--store", store, given=lines(*(b.entry("s", n, "x", name) for n, name in enumerate(HOSTILE_NAMES))))
    for query in ("%", "_", "*", "'", '"', "OR", "NEAR(a b)", "a AND b", "'; DROP", "\\", "^x", "(", "{", "-", "hi"):
        hits = run("search", "--store", store, "--json", "--", query).envelope["data"]
        literal = {n for n, name in enumerate(HOSTILE_NAMES) if query.casefold() in name.casefold()}
        assert literal <= {hit["row"]["index"] for hit in hits}
        assert all(query.casefold() in str([hit["excerpt"], hit["row"]]).casefold() for hit in hits)


def test_the_recorded_logs_hold_no_damage() -> None:
    """The logs that the damage is done to are sound themselves."""
    paths = list(LOGS.rglob("*.jsonl"))

    assert len(paths) > 20
    for path in paths:
        assert all(isinstance(json.loads(row), dict) for row in path.read_bytes().splitlines())

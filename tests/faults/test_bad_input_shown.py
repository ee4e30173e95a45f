"""Hostile text in every field of every record, shown by every command: no byte of it steers a terminal or a program."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from ctxmgr.log.codec import Record
from ctxmgr.types.record_models import MODELS
from tests import builders as b
from tests.cli.console import Ran, lines, process, run

CONTROLS = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)]))
HIDDEN = "".join(map(chr, [*range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xFEFF, 0xAD, 0x3164]))
SEQUENCES = "\x1b]0;owned\x07\x1b]8;;http://x\x1b\\\x1b]52;c;eA==\x07\x1b[2J\x1b[H\x1bP1$r\x1b\\\x9b2J\x9d0;owned\x9c\x1b[8m"
HOSTILE = "[/red][/INST]:smile:" + CONTROLS + HIDDEN + SEQUENCES + "e" + "\u0301" * 40 + "\U000e0041漢字🚀 | `md`"
SPARED = {"v", "kind", "ts", "status", "outcome", "durationMs", "timeoutMs"}
"""Fields that take no free text; everything else is made hostile, the names of free members too."""


def hostile(value: Any, key: str = "") -> Any:
    """Return a value with hostile text wherever text may stand."""
    if key in SPARED:
        return value
    if isinstance(value, dict):
        given = cast("dict[str, Any]", value)
        keep = not key or key in ("error", "usage")
        return {name if keep else name + HOSTILE: hostile(item, name) for name, item in given.items()}
    if isinstance(value, list):
        return [hostile(item, key + "[]") for item in cast("list[Any]", value)]
    return value + HOSTILE if isinstance(value, str) else value


def _history() -> list[Record]:
    more = {"process": "p", "turn": "t", "step": "x", "parent": "gone", "task": "k", "meta": {"m": "v"}, "inputType": "i"}
    said = ("user_message", "message", "thought", "error", "compaction", "tool_call", "plan", "odd")
    gone: dict[str, Any] = {
        "status": "error",
        "error": {"type": "E", "message": "m"},
        "output": {"o": ["x"]},
        "usage": {"inputTokens": 1},
    }
    ids = [b.entry_id("s", 0), "gone"]
    return [
        b.build("session", "s", b.at(0), process="p", workflow="w", source={"importer": "i", "path": "p"}, meta={"title": "t"}),
        *(b.event("s", number, kind, {"text": "t", "content": [{"text": "u"}]}, agent="a", entry=ids[0])
          for number, kind in enumerate(said)),
        *(record for number in range(5) for record in (
            b.entry("s", number, "act", {"command": "c", "file": "f"}, agent="a", timeoutMs=5.0, **more),
            b.result("s", number, durationMs=1.0, **gone))),
        b.entry("s", 9, "act", ["c"], agent="a", ts=b.at(6)),
        b.build("note", "s", b.at(7), id="n0", entries=ids, content="c", tags=["t"], author="a"),
        b.build("note", "s", b.at(7), id="n1", entries=ids, content="c", tags=["t"], author="a", links=["l"], supersedes="n0"),
        b.build("snapshot", "s", b.at(8), id="snap", entries=ids, summary="s", reasoning="r", hash="h"),
        b.build("continuation", "s", b.at(9), id="c", target="t", reason="r"),
        b.build("odd kind", "s", b.at(9), anything="x"),
        b.build("sessionEnd", "s", b.at(10), outcome="failed", process="p"),
    ]  # fmt: skip


SESSION = "s" + HOSTILE
ENTRY = b.entry_id("s", 0) + HOSTILE
COMMANDS: list[tuple[str, ...]] = [
    ("sessions",), ("list", "--kind", "all", "--limit", "99"), ("trace",), ("search", "e", "--max", "99"), ("show", "@0"),
    ("show", "--full", ENTRY), ("show", "@last"), ("messages",), ("messages", "@0"), ("note", "list"), ("note", "search", "c"),
    ("snapshot", "list"), ("snapshot", "show", "snap" + HOSTILE), ("detect",), ("detect", "--all-sessions", "--ever"),
    ("recover", "--plan"), ("recover", "--force", "--to", "a" + HOSTILE), ("verify",),
    ("note", "add", "0", "-m", "m" + HOSTILE, "-t", HOSTILE, "--author", HOSTILE, "--link", HOSTILE),
    ("snapshot", "create", "0", "--summary", HOSTILE, "--reasoning", HOSTILE),
    ("request", "--type", "introspect", "--from", "a" + HOSTILE, "--reason", HOSTILE, "--goal", HOSTILE, "--context", HOSTILE),
]  # fmt: skip
ERRORS: list[tuple[str, ...]] = [
    ("list", "--session", "n" + HOSTILE), ("show", HOSTILE), ("show", SESSION + "@99"), ("show", "@x" + HOSTILE),
    ("list", "--since", HOSTILE), ("list", "--status", HOSTILE), ("list", "--kind", HOSTILE), ("list", "--format", HOSTILE),
    ("list", "--fields", HOSTILE), ("list", "--jq", HOSTILE), ("list", "--limit", HOSTILE), (HOSTILE,),
    ("list", "--" + HOSTILE), ("list", HOSTILE), ("note", HOSTILE), ("snapshot", "show", HOSTILE),
    ("recover", "--finding", HOSTILE), ("schema", HOSTILE),
    ("import", HOSTILE.replace("\0", "")), ("import", "--from", HOSTILE),
    ("export", "-o", "/dev/null/" + HOSTILE.replace("\0", "")),
    ("verify", "--store", HOSTILE), ("record", "--", HOSTILE), ("request", "--type", HOSTILE, "--from", "a", "--reason", "b",
    "--goal", "c"), ("detect", "--now", HOSTILE), ("show", HOSTILE + "@1", "--session", "s"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let every command find a history that is hostile in every field."""
    place = tmp_path / "history.db"
    monkeypatch.setenv("CTXMGR_STORE", str(place))
    ran = run("record", "--no-mask", given=lines(*(hostile(record) for record in _history())))
    assert ran.code == 0, ran
    return place


def unwanted(text: str) -> Iterator[str]:
    """Yield the characters of an output that could steer or deceive; line ends and tabs between columns are wanted."""
    for char in text:
        category = unicodedata.category(char)
        if char not in "\n\t" and (category[0] in "C" or category in ("Zl", "Zp")):
            yield f"U+{ord(char):04X}"


def _clean(ran: Ran) -> None:
    assert sorted(set(unwanted(ran.out + ran.err))) == []
    assert ran.code != 1
    # No more than two marks follow each other: a pile of them would overlap the lines around.
    assert not re.search("[\u0300-\u036f]{9}", ran.out + ran.err)


@pytest.mark.cases(1)
@pytest.mark.parametrize("command", COMMANDS, ids=[" ".join(command[:2])[:20] for command in COMMANDS])
@pytest.mark.parametrize("form", ["table", "md"])
def test_no_command_shows_a_steering_character(command: tuple[str, ...], form: str) -> None:
    """What a command shows of a hostile history holds no control, format or private character, in any field."""
    ran = (
        run(*command, "--format", form, "--session", SESSION)
        if command[0] not in ("verify", "sessions")
        else run(*command, "--format", form)
    )

    assert ran.code in (0, 3, 10, 11, 12, 20, 21)
    _clean(ran)


@pytest.mark.cases(1)
@pytest.mark.parametrize("command", COMMANDS, ids=[" ".join(command[:2])[:20] for command in COMMANDS])
@pytest.mark.parametrize("form", ["json", "ndjson"])
def test_json_of_hostile_text_is_plain_ascii(command: tuple[str, ...], form: str) -> None:
    """JSON of a hostile history is printable ASCII, and gives the text back as it was recorded."""
    ran = run(*command, "--format", form)

    assert re.fullmatch(r"([ -~]+\n)*", ran.out)
    assert ran.err.isascii()
    for line in ran.out.splitlines():
        json.loads(line)
    if command[0] in ("list", "trace", "show"):
        assert json.dumps(HOSTILE)[1:-1].replace("\x7f", "\\u007f") in ran.out


@pytest.mark.parametrize("fields", ["session,action,input,error,output", "id,agent,meta,notes"])
def test_chosen_fields_are_filtered_too(fields: str) -> None:
    """``--fields`` passes the same filter."""
    ran = run("list", "--fields", fields)

    assert (ran.code, len(ran.out.splitlines())) == (0, 6)
    _clean(ran)


@pytest.mark.parametrize("command", ERRORS, ids=[command[0][:8] + command[-2][:8] for command in [(c[0], *c) for c in ERRORS]])
def test_errors_that_name_hostile_text_are_filtered(command: tuple[str, ...]) -> None:
    """An error that names what was given names it filtered, as a line for people and as JSON; nothing goes to stdout else."""
    ran = run(*command)
    _clean(ran)
    assert (ran.code in (2, 3, 5), bool(ran.err)) == (True, True) or ran.out.startswith('{"schema"')
    if command[0] in ("list", "show", "recover", "detect") and "--format" not in command:
        told = run(*command, "--json")
        assert re.fullmatch(r"[ -~]+\n", told.out)
        assert (told.code, told.envelope["status"], told.err) == (ran.code, "error", "")


def is_episode(record: dict[str, Any]) -> bool:
    """Whether a record is the episode that is kept when a session ends."""
    return record["kind"] == "note" and str(record["id"]).startswith("episode-")


def test_an_export_holds_every_byte(tmp_path: Path) -> None:
    """An export of hostile records is ASCII and gives every one of them back exactly."""
    out = run("export", "--all-sessions").out
    found = [json.loads(line) for line in out.splitlines()]

    assert out.isascii()
    assert not set(unwanted(out.replace("\x7f", "")))
    assert [{k: v for k, v in record.items() if k != "sum"} for record in found if not is_episode(record)] == [
        hostile(r) for r in _history()
    ]


def test_every_kind_of_record_is_among_them() -> None:
    """The hostile history holds every kind of record of the format, and every field of each."""
    kinds: dict[str, set[str]] = {}
    for record in _history():
        kinds.setdefault(record["kind"], set()).update(record)

    for kind, model in MODELS.items():
        named = {str(field.alias) for field in model.model_fields.values()}
        assert named - kinds[kind] <= {"status", "output", "error", "durationMs", "usage", "meta"}, kind


def test_a_process_writes_the_same_bytes(tmp_path: Path) -> None:
    """What reaches a pipe from a process of its own, errors included, holds printable bytes and line ends only."""
    for command in (("list", "--kind", "all"), ("list", "--session", SESSION.replace("\0", "")), ("detect",)):
        ran = process(*command)
        assert sorted(set(unwanted(ran.out + ran.err))) == []

"""Codex's files: recognised, found, grouped, uncompressed; forks and sub-agents; hostile content."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxmgr.importers.codex import CODEX
from ctxmgr.importers.codex.head import read_log
from ctxmgr.log.codec import Record, encode
from ctxmgr.types.import_report import FileCount
from ctxmgr.types.record import check

LOGS = Path(__file__).parents[3] / "fixtures" / "logs" / "codex"
LIVE = LOGS / "live_0.148.0" / "rollout-2026-11-21T20-30-39-01a1ffcd-ccbd-7e22-a487-18145489448a.jsonl"
INTERRUPTED = next((LOGS / "live_0.169.0").rglob("*01a1ffcc-0760*"))
PARENT = "019b0000-1111-7222-8333-0123456789ab"
CHILD = "019b0000-5555-7222-8333-ba9876543210"
GRANDCHILD = "019b0000-7777-7222-8333-ba9876543210"


def read(*paths: Path) -> tuple[list[Record], list[FileCount]]:
    """Return the records of the files and their counts."""
    counts: list[FileCount] = []
    return list(CODEX.read(paths, counts)), counts


def rollout(folder: Path, thread: str, minute: int, lines: list[Any], **meta: Any) -> Path:
    """Write a rollout whose first line is its session_meta."""
    path = folder / f"rollout-2026-01-02T03-{minute:02d}-05-{thread}.jsonl"
    stamp = f"2026-01-02T03:{minute:02d}:05.000Z"
    first = {"timestamp": stamp, "type": "session_meta", "payload": {"id": thread, "timestamp": stamp, "cwd": "/p", **meta}}
    path.write_text("".join(json.dumps(value) + "\n" for value in [first, *lines]))
    return path


def wrapped(stamp: str, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    """Return one line."""
    return {"timestamp": f"2026-01-02T03:{stamp}Z", "type": kind, "payload": payload}


def called(stamp: str, call_id: str) -> dict[str, Any]:
    """Return a function call."""
    payload = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": call_id}
    return wrapped(stamp, "response_item", payload)


def said(stamp: str, words: str) -> dict[str, Any]:
    """Return a message of the model."""
    content = [{"type": "output_text", "text": words}]
    return wrapped(stamp, "response_item", {"type": "message", "role": "assistant", "content": content})


def family(folder: Path) -> tuple[Path, Path, Path]:
    """Write a thread, its sub-agent and the sub-agent's own sub-agent."""
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1, "agent_role": "worker"}}}
    asked = wrapped("05:06.000", "event_msg", {"type": "user_message", "message": "Do this part"})
    return (
        rollout(folder, PARENT, 4, [called("04:06.000", "c1")], source="cli"),
        rollout(folder, CHILD, 5, [asked, called("05:07.000", "c1")], source=spawn, agent_nickname="Atlas"),
        rollout(folder, GRANDCHILD, 6, [called("06:06.000", "c1")], parent_thread_id=CHILD, agent_role="reviewer"),
    )


def test_sub_agents_join_the_session_that_spawned_them(tmp_path: Path) -> None:
    """Three files, one session, three agents and processes; what the parent asked is no human message."""
    paths = family(tmp_path)
    records, counts = read(*paths)
    assert {record["session"] for record in records} == {PARENT}
    assert [count.agent for count in counts] == ["main", "Atlas-019b0000", "reviewer-019b0000-3210"]
    entries = [record for record in records if record["kind"] == "entry"]
    assert [entry["process"] for entry in entries] == [PARENT, CHILD, GRANDCHILD]
    assert len({entry["id"] for entry in entries}) == 3
    (nudge,) = [record for record in records if record.get("type") == "nudge"]
    assert nudge["data"] == {"text": "Do this part", "origin": "parentAgent", "role": "user"}
    assert counts[1].user_messages == 0


def test_a_sub_agent_alone_still_names_the_session(tmp_path: Path) -> None:
    """Imported without its parent, a sub-agent's log lands in the parent's session."""
    _, child, _ = family(tmp_path)
    assert {record["session"] for record in read(child)[0]} == {PARENT}


def test_groups_hold_a_thread_and_its_sub_agents_and_companions_find_them(tmp_path: Path) -> None:
    """The main log stands first; companions are the sub-agents in the same folder, however deep."""
    main, child, grandchild = family(tmp_path)
    other = rollout(tmp_path, "019b0000-9999-7222-8333-ba9876543210", 1, [])
    assert CODEX.groups([grandchild, other, child, main]) == [[other], [main, child, grandchild]]
    assert CODEX.companions(main) == [child, grandchild]
    assert list(CODEX.companions(other)) == []


def test_parents_in_a_circle_still_form_groups(tmp_path: Path) -> None:
    """Logs that name each other as parent and original are read, not followed for ever."""
    one = rollout(tmp_path, PARENT, 1, [], parent_thread_id=CHILD, forked_from_id=CHILD)
    two = rollout(tmp_path, CHILD, 2, [], parent_thread_id=PARENT, forked_from_id=PARENT)
    groups = CODEX.groups([one, two])
    assert sorted(path for group in groups for path in group) == [one, two]
    assert len(read(one, two)[0]) == 2


def test_an_old_fork_keeps_the_ids_of_the_lines_it_copied(tmp_path: Path) -> None:
    """Copied calls and messages carry the original's ids, the fork's own lines its own, and no token twice."""
    total = {"total_token_usage": {"input_tokens": 50, "output_tokens": 5}}
    more = {"total_token_usage": {"input_tokens": 80, "output_tokens": 9},
            "last_token_usage": {"input_tokens": 30, "output_tokens": 4}}  # fmt: skip

    def history(stamp: str) -> list[Any]:
        tokens = wrapped(f"{stamp}", "event_msg", {"type": "token_count", "info": total})
        return [called(stamp, "c1"), said(stamp, "answer"), tokens]

    original = rollout(tmp_path, PARENT, 4, history("04:06.000"))
    copied = [json.loads(original.read_text().splitlines()[0]), *history("09:05.100")]
    own = [
        called("09:30.000", "c2"),
        said("09:31.000", "other"),
        wrapped("09:32.000", "event_msg", {"type": "token_count", "info": more}),
    ]
    fork = rollout(tmp_path, CHILD, 9, [*copied, *own], forked_from_id=PARENT)
    assert CODEX.groups([fork, original]) == [[original], [fork]]
    first, second = read(original)[0], read(fork)[0]
    assert {record["session"] for record in second} == {CHILD}
    ids = [record["id"] for record in second if "id" in record]
    assert ids[:2] == [record["id"] for record in first if "id" in record][:2]
    assert ids[2:4] == [f"{CHILD}:c2", f"{CHILD}:7"]
    (usage,) = [record for record in second if record.get("type") == "usage"]
    assert usage["data"]["inputTokens"] == 30


def test_a_copied_history_ends_with_the_first_turn_younger_than_the_fork(tmp_path: Path) -> None:
    """Turn ids hold their time: a turn begun after the fork is the fork's own, however fast it came."""
    old, young = "019affff-0000-7222-8333-ba9876543210", "019b0000-6666-7222-8333-ba9876543210"
    lines = [
        wrapped("09:05.000", "session_meta", {"id": PARENT}),
        wrapped("09:05.000", "event_msg", {"type": "task_started", "turn_id": old}),
        called("09:05.000", "c1"),
        wrapped("09:05.010", "event_msg", {"type": "task_started", "turn_id": young}),
        called("09:05.020", "c2"),
    ]
    records, _ = read(rollout(tmp_path, CHILD, 9, lines, forked_from_id=PARENT))
    assert [record["id"] for record in records if record["kind"] == "entry"] == [f"{PARENT}:c1", f"{CHILD}:c2"]


def test_a_compressed_rollout_reads_as_the_plain_one(tmp_path: Path) -> None:
    """Codex compresses old rollouts; the records do not change by a byte, so nothing is imported twice."""
    packed = tmp_path / f"{LIVE.name}.zst"
    packed.write_bytes(zstandard.compress(LIVE.read_bytes()))
    assert CODEX.sniff(packed, packed.read_bytes()[:65536])
    assert not CODEX.sniff(tmp_path / "other.zst", packed.read_bytes()[:65536])
    assert [encode(record) for record in read(packed)[0]] == [encode(record) for record in read(LIVE)[0]]


@pytest.mark.parametrize("kept", [0.4, 0.999])
@pytest.mark.parametrize("sized", [True, False])
def test_a_compressed_rollout_that_ends_too_early_is_reported(tmp_path: Path, kept: float, sized: bool) -> None:
    """A cut is told whether or not the file names its true size, and nothing is raised."""
    packed = tmp_path / f"{LIVE.name}.zst"
    data = zstandard.ZstdCompressor(write_content_size=sized).compress(LIVE.read_bytes())
    packed.write_bytes(data[: int(len(data) * kept)])
    _, (count,) = read(packed)
    assert count.damaged


def test_damage_inside_compressed_data_is_reported(tmp_path: Path) -> None:
    """Bytes that can't be unpacked end the reading and are told."""
    packed = tmp_path / f"{LIVE.name}.zst"
    data = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(LIVE.read_bytes()))
    data[len(data) // 2] ^= 0xFF
    packed.write_bytes(data)
    _, (count,) = read(packed)
    assert any("zstd" in reason for _, _, reason in count.damaged)


def test_without_the_zstd_module_the_remedy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compressed rollout that can't be read counts as damaged, with a note on what to install."""
    packed = tmp_path / f"{LIVE.name}.zst"
    packed.write_bytes(zstandard.compress(LIVE.read_bytes()))
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "zstandard":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    records, (count,) = read(packed)
    assert [record["kind"] for record in records] == ["session"]
    assert (len(count.damaged), count.records) == (1, 0)
    assert "ctxmgr-cli[zstd]" in count.notes[0]


def test_the_zstd_module_is_loaded_only_for_compressed_rollouts() -> None:
    """Reading a plain rollout does not import the optional module."""
    program = (
        "import sys; from pathlib import Path; from ctxmgr.importers.codex import CODEX;"
        f"list(CODEX.read([Path({str(LIVE)!r})], [])); sys.exit('zstandard' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=LOGS.parents[3], check=False).returncode == 0


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"session_meta","session_id":"s","project_path":"/p","timestamp":"2026-05-02T09:00:00Z"}',
        '{"type":"message","role":"user","content":"Debug","timestamp":"2026-05-02T09:00:01Z","session_id":"s"}',
        '{"type":"response_item:function_call","name":"read_file","arguments":{},"call_id":"c","session_id":"s"}',
        '{"type":"user","message":{"role":"user","content":"hi"},"sessionId":"s","uuid":"u"}',
        '{"v":1,"kind":"entry","session":"s","id":"1","agent":"main","action":"run"}',
        '{"session_id":"s","ts":1,"text":"a prompt of history.jsonl"}',
        '{"type":"turn.started"}',
        '{"id":"x","timestamp":"2026-01-01T00:00:00Z","level":"info"}',
        "[1, 2]",
        "",
        "\x00\xff",
    ],
)
def test_other_logs_are_not_taken_for_codex(text: str) -> None:
    """Simplified look-alikes, other agents' logs and our own format are refused, even under a rollout's name."""
    assert not CODEX.sniff(Path(f"rollout-2026-01-02T03-04-05-{PARENT}.jsonl"), text.encode("utf-8") + b"\n")


def test_a_damaged_or_long_first_line_is_still_recognised() -> None:
    """A cut first line is recognised by how it begins, a malformed one by the lines after it."""
    head = b'{"timestamp":"2026-01-02T03:04:05.000Z","ordinal":0,"type":"session_meta","payload":{"id":"' + b"x" * 70000
    assert CODEX.sniff(Path("a.jsonl"), head[:65536])
    later = b'{"broken\n{"timestamp":"t","type":"event_msg","payload":{"type":"token_count"}}\n'
    assert CODEX.sniff(Path("a.jsonl"), later)
    bare = b'{"broken\n{"type":"function_call","name":"x","arguments":"{}","call_id":"c"}\n'
    assert CODEX.sniff(Path(f"rollout-2025-07-01T00-00-00-{PARENT}.jsonl"), bare)


def test_rollouts_are_found_where_codex_keeps_them(tmp_path: Path) -> None:
    """Live and archived rollouts, of a compressed and a plain copy the plain one, and nothing else."""
    day = tmp_path / ".codex" / "sessions" / "2026" / "01" / "02"
    archive = tmp_path / ".codex" / "archived_sessions"
    day.mkdir(parents=True)
    archive.mkdir()
    wanted = [day / "rollout-1.jsonl", day / "rollout-2.jsonl.zst", archive / "rollout-0.json"]
    for path in [*wanted, day / "rollout-1.jsonl.zst", day / "notes.jsonl", tmp_path / ".codex" / "history.jsonl"]:
        path.write_text("")
    assert list(CODEX.discover(tmp_path, {})) == wanted
    assert list(CODEX.discover(Path("/nowhere"), {"CODEX_HOME": str(tmp_path / ".codex")})) == wanted
    assert list(CODEX.discover(tmp_path / "none", {})) == []


ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just(10**400) | st.just("\ud800"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
HANDMADE: list[dict[str, Any]] = [
    {"id": PARENT, "timestamp": "2026-01-02T03:04:05Z", "instructions": None, "git": {"branch": "b"}},
    wrapped("04:05", "session_meta", {"id": CHILD, "forked_from_id": PARENT, "history_base": {"end_ordinal_exclusive": 1},
            "source": {"subagent": {"thread_spawn": {"parent_thread_id": PARENT}}}, "agent_role": "r", "session_id": "s"}),
    wrapped("04:05", "event_msg", {"type": "exec_command_end", "call_id": "c", "exit_code": 1, "duration": {"secs": 1}}),
    wrapped("04:05", "event_msg", {"type": "mcp_tool_call_end", "call_id": "d", "invocation": {"server": "s", "arguments": {}},
            "result": {"Ok": {"content": [{"text": "x"}], "isError": True}}}),
    wrapped("04:05", "event_msg", {"type": "thread_rolled_back", "num_turns": 1}),
    wrapped("04:05", "event_msg", {"type": "error", "message": "m", "codex_error_info": {"a": 1}}),
    wrapped("04:05", "compacted", {"message": "m", "replacement_history": []}),
    wrapped("04:05", "response_item", {"type": "image_generation_call", "id": "i", "status": "completed", "result": "r"}),
    wrapped("04:05", "response_item", {"type": "local_shell_call", "call_id": "l", "action": {"timeout_ms": 5}}),
    wrapped("04:05", "response_item", {"type": "agent_message", "author": "a", "recipient": "b", "content": [{"text": "x"}]}),
    {"type": "thread.started", "thread_id": PARENT},
    {"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}},
    {"type": "item.completed", "item": {"id": "i", "type": "mcp_tool_call", "result": {"content": []}, "error": {}}},
    {"type": "item.completed", "item": {"id": "j", "type": "todo_list", "items": [{"text": "a"}]}},
]  # fmt: skip
SOUND: list[dict[str, Any]] = [
    json.loads(text) for path in (LIVE, INTERRUPTED) for text in path.read_text().splitlines()
] + HANDMADE


def spoil(value: Any, data: st.DataObject) -> Any:
    """Replace one random part of a line by an odd value."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 3)):
        fields: dict[str, Any] = dict(value)  # pyright: ignore[reportUnknownArgumentType]
        key = data.draw(st.sampled_from(sorted(fields)))
        return {**fields, key: spoil(fields[key], data)}
    return data.draw(ODD)


def test_runs_that_begin_with_the_same_item_are_told_apart(tmp_path: Path) -> None:
    """What ``codex exec`` printed twice into one file is two runs, though their first items are equal."""
    item = {"type": "item.completed", "item": {"id": "item_0", "type": "mcp_tool_call", "tool": "look"}}
    start = {"type": "thread.started", "thread_id": "019b0000-1111-7222-8333-0123456789ab"}
    path = tmp_path / "out.jsonl"
    path.write_text("".join(json.dumps(value) + "\n" for value in (start, item, start, item, start, item)))
    records, _ = read(path)
    assert len({record["id"] for record in records if record["kind"] == "entry"}) == 3


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_odd_value_in_any_field_raises(tmp_path: Path, data: st.DataObject) -> None:
    """Whatever stands in a field, reading goes on and every record that comes out is a valid one."""
    lines = data.draw(st.lists(st.sampled_from(SOUND), min_size=1, max_size=12))
    spoiled = [spoil(value, data) if data.draw(st.booleans()) else value for value in lines]
    path = tmp_path / LIVE.name
    path.write_text("".join(json.dumps(value) + "\n" for value in spoiled))
    records, (count,) = read(path)
    for record in records:
        encode(check(record))
    ids = [record["id"] for record in records if "id" in record]
    assert len(ids) == len(set(ids))
    assert count.open >= 0
    CODEX.sniff(path, path.read_bytes())
    assert CODEX.groups([path]) == [[path]]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=st.lists(st.tuples(st.integers(0, 58000), st.binary(min_size=1, max_size=40)), max_size=6))
def test_no_damaged_bytes_raise(tmp_path: Path, damage: list[tuple[int, bytes]]) -> None:
    """Random bytes over a real log never stop the reading; unreadable lines are reported."""
    data = bytearray(LIVE.read_bytes())
    for offset, odd in damage:
        data[offset : offset + len(odd)] = odd
    path = tmp_path / LIVE.name
    path.write_bytes(data)
    records, _ = read(path)
    for record in records:
        encode(check(record))


def test_an_odd_type_inside_an_item_proves_nothing(tmp_path: Path) -> None:
    """A list where the type of an item should stand is no Codex log, and no fault."""
    line = b'{"type":"item.completed","item":{"id":"j","type":["todo_list"]}}\n'

    assert not CODEX.sniff(tmp_path / "x.jsonl", line)


def test_a_compressed_bomb_is_read_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few kilobytes that hold far more than they may are read so far, and the rest is told as damage."""
    monkeypatch.setattr("ctxmgr.importers.log_files.MAX_BYTES", 100_000)
    monkeypatch.setattr("ctxmgr.importers.log_files.MAX_RATIO", 2)
    packed = tmp_path / f"{LIVE.name}.zst"
    packed.write_bytes(zstandard.compress(LIVE.read_bytes() + b'{"a":1}\n' * 1_000_000))
    told: list[str] = []

    count = sum(1 for _ in read_log(packed, lambda _at, _size, why: told.append(why)))

    assert 0 < count < 100_000
    assert any("expands to more than" in why for why in told)

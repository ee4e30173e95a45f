"""The Codex importer on logs that real versions wrote, whose true content is known."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.importers.codex import CODEX
from ctxmgr.log.codec import Record, encode
from ctxmgr.types.import_report import FileCount

LOGS = Path(__file__).parents[3] / "fixtures" / "logs" / "codex"
TRUTH: dict[str, dict[str, Any]] = json.loads((LOGS / "TRUTH.json").read_text())
ORIGINAL, FORK, INTERRUPTED, FAILED = sorted((LOGS / "live_0.169.0" / "sessions").rglob("*.jsonl"))
EXEC = LOGS / "live_0.169.0" / "exec_json_stream.jsonl"
ALL_LOGS = [LOGS / name for name in TRUTH] + [EXEC]


def read(*paths: Path) -> tuple[list[Record], list[FileCount]]:
    """Return the records of the files and their counts."""
    counts: list[FileCount] = []
    return list(CODEX.read(paths, counts)), counts


def short(path: Path) -> str:
    """Return a name for a log in test reports."""
    return f"{path.relative_to(LOGS).parts[0]}-{path.stem[-12:]}"


def identity(record: Record) -> tuple[str, str]:
    """Return what a store knows a record by."""
    return record["kind"], record.get("id") or record.get("entry") or record["process"]


def events(records: list[Record], kind: str) -> list[Record]:
    """Return the events of one type."""
    return [record for record in records if record["kind"] == "event" and record["type"] == kind]


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_counts_are_those_of_the_log(name: str) -> None:
    """Calls by name, open and failed ones, messages, thoughts, people's words and tokens are counted exactly."""
    truth = TRUTH[name]
    _, (count,) = read(LOGS / name)
    assert dict(count.tool_calls) == truth["toolCalls"]
    assert (count.open, count.failed) == (truth["open"], truth["failed"])
    assert (count.messages, count.thoughts) == (truth["messages"], truth["thoughts"])
    assert count.user_messages == truth["userMessages"]
    assert count.user_messages + count.harness_messages == truth["roleUserMessages"]
    assert count.responses == truth["responses"]
    assert dict(count.usage) == truth["usage"]
    assert (count.version, count.agent) == (truth["version"], "main")
    assert (dict(count.unknown), count.damaged, count.notes) == ({}, [], [])
    assert count.records == len((LOGS / name).read_bytes().splitlines())


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_records_agree_with_the_counts(name: str) -> None:
    """What is reported is what is yielded: one entry, result, message, thought and usage event for each one counted."""
    records, (count,) = read(LOGS / name)
    kinds = Counter(record.get("type", record["kind"]) for record in records)
    assert kinds["entry"] == sum(count.tool_calls.values())
    assert kinds["result"] == kinds["entry"] - count.open
    assert (kinds["message"], kinds["thought"]) == (count.messages, count.thoughts)
    assert (kinds["user_message"], kinds["usage"]) == (count.user_messages, count.responses)
    added = sum(record["data"]["inputTokens"] for record in events(records, "usage"))
    inherited = 937 if LOGS / name == FORK else 0
    assert added == count.usage["inputTokens"] - inherited


@pytest.mark.parametrize("path", ALL_LOGS, ids=short)
def test_a_cut_log_yields_a_part_of_what_the_whole_one_yields(path: Path, tmp_path: Path) -> None:
    """Cut after any line, a log yields only records of the whole log, unchanged: growth never rewrites history."""
    whole = {identity(record): encode(record) for record in read(path)[0]}
    lines = path.read_bytes().splitlines(keepends=True)
    cut = tmp_path / path.name
    told: set[object] = set()
    for length in range(1, len(lines)):
        cut.write_bytes(b"".join(lines[:length]))
        for record in read(cut)[0]:
            if record["kind"] == "session":  # what it holds is told by later lines too
                continue
            assert whole[identity(record)] == encode(record), f"after line {length}"
            told.add(identity(record))
    assert len(told) >= max(1, (len(whole) - 1) // 2)


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_no_message_is_taken_twice(name: str) -> None:
    """Of the item and the event that both hold a message, one is imported."""
    records, _ = read(LOGS / name)
    spoken = [
        (record["type"], record.get("turn"), record["data"]["text"])
        for kind in ("message", "thought", "user_message")
        for record in events(records, kind)
    ]
    assert len(spoken) == len(set(spoken))


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_harness_text_is_never_a_persons(name: str) -> None:
    """Environment, instructions and abort marks are nudges that name their origin; people's words are people's."""
    records, _ = read(LOGS / name)
    said = {record["data"]["text"] for record in events(records, "user_message")}
    assert said <= {"Fix the typo in main.py", "And now say hi", "Forked question", "Run slow", "Server fails"}
    for nudge in events(records, "nudge"):
        assert nudge["data"]["origin"] != "unnamed"
        assert nudge["data"]["text"].lstrip()[0] in "<#"


def test_outputs_lose_their_wrapping_in_every_era() -> None:
    """The same command gives the same output, status and exit code whatever version wrapped it."""
    seen: set[tuple[Any, ...]] = set()
    for name in TRUTH:
        records, _ = read(LOGS / name)
        entries = {record["id"]: record for record in records if record["kind"] == "entry"}
        for record in records:
            if record["kind"] == "result" and "pytest" in json.dumps(entries[record["entry"]]["input"]):
                seen.add((record["status"], record["output"], record["meta"]["exitCode"], record["error"]["type"]))
    assert seen == {("error", "/usr/bin/python3: No module named pytest\n", 1, "exitCode")}


@pytest.mark.parametrize("name", sorted(name for name in TRUTH if TRUTH[name]["toolCalls"]))
def test_calls_of_one_response_share_a_step(name: str) -> None:
    """Only the repeated test run and the listing beside it were issued together; every other call stands alone."""
    records, _ = read(LOGS / name)
    steps: dict[str, list[str]] = {}
    for record in records:
        if record["kind"] == "entry":
            steps.setdefault(record["step"], []).append(json.dumps(record["input"]))
    together = [calls for calls in steps.values() if len(calls) > 1]
    expected = 0 if LOGS / name == INTERRUPTED else 1
    assert len(together) == expected
    assert all(len(calls) == 2 and "pytest" in calls[0] and "ls" in calls[1] for calls in together)


def test_an_unknown_tool_is_an_error_of_its_own_type() -> None:
    """Codex flags no error when it does not know a tool; the importer does."""
    records, _ = read(ORIGINAL)
    entry = next(record for record in records if record.get("action") == "no_such_tool")
    result = next(record for record in records if record.get("entry") == entry["id"])
    assert (result["status"], result["error"]["type"]) == ("error", "unknownTool")


def test_an_interrupt_ends_the_call_and_the_turn() -> None:
    """The call under way is interrupted, a person's interrupt is recorded, and the late command report adds nothing."""
    records, _ = read(INTERRUPTED)
    (result,) = [record for record in records if record["kind"] == "result"]
    assert (result["status"], result["output"], result["durationMs"]) == ("interrupted", "aborted by user", 4700)
    (interrupt,) = events(records, "interrupt")
    (end,) = events(records, "turn_end")
    assert interrupt["data"] == {"reason": "interrupted"}
    assert end["data"] == {"reason": "aborted"}


def test_a_provider_failure_is_an_error_and_a_failed_turn() -> None:
    """The failure is told once, with its kind, and the turn's end says why."""
    records, _ = read(FAILED)
    (error,) = events(records, "error")
    (end,) = events(records, "turn_end")
    assert error["data"]["type"] == "internal_server_error"
    assert end["data"]["reason"] == "failed"


def test_a_fork_names_its_original_and_counts_only_its_own_tokens() -> None:
    """The child alone shows where it branched off; its one response added 101 tokens, not the parent's 937 as well."""
    records, _ = read(FORK)
    meta = records[0]["meta"]
    thread = "01a1ffcb-7903-7542-a69f-9a2a9fc965c5"
    assert meta["forkedFrom"] == thread
    assert meta["forkPoint"] == {"thread": thread, "ordinal": 66, "byteOffset": 73178}
    (usage,) = events(records, "usage")
    assert (usage["data"]["inputTokens"], usage["data"]["totalInputTokens"]) == (101, 1038)


def test_the_session_record_says_where_it_comes_from() -> None:
    """Version, folder, branch and the person's first words stand in the first record; the path is a name only."""
    records, _ = read(ORIGINAL)
    first = records[0]
    assert first["source"] == {"importer": "codex", "version": "0.169.0", "path": ORIGINAL.name}
    assert first["workflow"] == "codex"
    assert (first["meta"]["title"], first["meta"]["originator"]) == ("Fix the typo in main.py", "codex_exec")
    assert first["session"] == first["process"] == "01a1ffcb-7903-7542-a69f-9a2a9fc965c5"


def test_an_entry_points_back_to_its_line() -> None:
    """The call's line, file, folder, model and version are kept, so that the raw record can be found again."""
    records, _ = read(ORIGINAL)
    entry = next(record for record in records if record["kind"] == "entry")
    line = json.loads(ORIGINAL.read_text().splitlines()[int(entry["meta"]["line"]) - 1])
    assert line["payload"]["call_id"] == entry["meta"]["callId"]
    assert (entry["meta"]["file"], entry["meta"]["model"]) == (ORIGINAL.name, "gpt-5.5")
    assert entry["turn"] == line["payload"]["internal_chat_message_metadata_passthrough"]["turn_id"]
    assert (entry["inputType"], entry["input"]) == ("function_call", {"cmd": "cat main.py"})


def test_the_printed_stream_is_a_session_beside_its_rollout() -> None:
    """`codex exec --json` output holds the same run with fewer facts; under one session every call would count twice."""
    printed, (count,) = read(EXEC)
    logged, _ = read(ORIGINAL)
    assert count.tool_calls == {"exec_command": 5, "apply_patch": 1}
    assert (count.failed, count.open, count.messages, count.thoughts) == (3, 0, 3, 1)
    assert dict(count.usage) == {
        "inputTokens": 836, "outputTokens": 160, "cachedInputTokens": 0, "reasoningTokens": 40,
    }  # fmt: skip
    assert printed[0]["session"] == f"exec-{logged[0]['session']}"
    assert not set(map(identity, printed[1:])) & set(map(identity, logged[1:]))


def test_live_logs_are_recognised_and_grouped_one_a_session() -> None:
    """Every live log is Codex's by its content, and a fork comes after its original whatever the order given."""
    for path in ALL_LOGS:
        assert CODEX.sniff(path.with_name("some.log"), path.read_bytes()[:65536])
    assert CODEX.groups([FAILED, FORK, INTERRUPTED, ORIGINAL]) == [[ORIGINAL], [FORK], [INTERRUPTED], [FAILED]]

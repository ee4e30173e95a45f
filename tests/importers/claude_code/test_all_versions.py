"""The Claude Code importer on logs that real versions wrote, whose true content is known."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.importers.claude_code import CLAUDE_CODE
from ctxmgr.log.codec import Record, encode
from ctxmgr.types.import_report import FileCount
from ctxmgr.types.record import check
from tests.importers.claude_code_log import of

LOGS = Path(__file__).parents[3] / "fixtures" / "logs" / "claude-code"
TRUTH: dict[str, dict[str, Any]] = json.loads((LOGS / "TRUTH.json").read_text())
NEW = LOGS / "live_2.1.330" / "project"
MAIN, FORK = NEW / "a081ebf7-ed87-4cc2-94fb-b8817e5c810f.jsonl", NEW / "69f5953a-2790-4cee-af95-04fe8f0211ea.jsonl"
CHILD = MAIN.with_suffix("") / "subagents" / "agent-a4c827275cb659351.jsonl"
FAILED = NEW / "8f689e1d-80ec-49c3-a930-3284eef98a05.jsonl"
STOPPED = LOGS / "live_2.1.330_interrupt_and_kill" / "project"
INTERRUPTED, KILLED = STOPPED / "bbc7fa3a-9ee1-4eb3-8a58-6503fac1749b.jsonl", next(STOPPED.glob("5d069cb2*"))
(INLINE,) = (LOGS / "live_1.0.37" / "project").glob("*.jsonl")
BESIDE = LOGS / "live_2.0.32" / "project" / "3482b1fd-ce13-47ab-a20a-42201cf2c3ce.jsonl"
STREAM = LOGS / "live_2.1.330" / "stream_json_stdout.jsonl"
OLD_STREAM = LOGS / "live_1.0.37" / "stream_json_stdout.jsonl"
STREAMS = sorted(LOGS.rglob("stream_json*.jsonl"))


def read(*paths: Path) -> tuple[list[Record], list[FileCount]]:
    """Return the records of the files and their counts."""
    counts: list[FileCount] = []
    return list(CLAUDE_CODE.read(paths, counts)), counts


def session(main: Path) -> list[Record]:
    """Return the records of a session with all its files."""
    return read(main, *CLAUDE_CODE.companions(main))[0]


def identified(records: list[Record]) -> dict[str, Record]:
    """Return the records by what a store knows them by."""
    return {f"{record['kind']} {record.get('id') or record.get('entry')}": record for record in records}


def short(path: Path) -> str:
    """Return a name for a log in test reports."""
    return f"{path.relative_to(LOGS).parts[0]}-{path.stem[:14]}"


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_counts_are_those_of_the_log(name: str) -> None:
    """Calls by name, failed and open ones, messages, thoughts, user texts, responses and tokens are counted exactly."""
    truth = TRUTH[name]
    _, (count,) = read(LOGS / name)
    assert dict(count.tool_calls) == truth["tool_names"]
    assert (count.failed, count.open) == (truth["tool_errors"], truth["open_tool_calls"])
    assert (count.messages, count.thoughts) == (truth["assistant_text_blocks"], truth["thinking_blocks"])
    assert count.user_messages + count.harness_messages == truth["user_string_messages"]
    assert count.responses == truth["api_responses"]
    assert (count.usage["inputTokens"], count.usage["outputTokens"]) == (truth["input_tokens"], truth["output_tokens"])
    assert (count.unknown, count.damaged, count.notes) == ({}, [], [])
    assert count.records == len((LOGS / name).read_bytes().splitlines())
    assert count.version in name


@pytest.mark.parametrize("main", [MAIN, FORK, BESIDE, INLINE, KILLED, *STREAMS], ids=short)
def test_records_agree_with_the_counts(main: Path) -> None:
    """A session's records are valid, unique, and as many as the counts of its files say."""
    records, counts = read(main, *CLAUDE_CODE.companions(main))
    for record in records:
        encode(check(record))
    assert len(identified(records)) == len(records)
    assert records[0]["kind"] == "session"
    assert len(of(records, "entry")) == sum(sum(count.tool_calls.values()) for count in counts)
    assert len(of(records, "entry")) - len(of(records, "result")) == sum(count.open for count in counts)
    assert len([r for r in of(records, "result") if r["status"] != "ok"]) == sum(count.failed for count in counts)
    assert len(of(records, "user_message")) == sum(count.user_messages for count in counts)
    assert len(of(records, "thought")) == sum(count.thoughts for count in counts)
    assert len(of(records, "usage")) == sum(count.responses for count in counts)
    spent = sum(usage["data"]["inputTokens"] for usage in of(records, "usage"))
    assert spent == sum(count.usage["inputTokens"] for count in counts)


@pytest.mark.parametrize("path", [MAIN, FORK, FAILED, INTERRUPTED, BESIDE, INLINE, CHILD], ids=short)
def test_a_log_that_grows_never_contradicts_itself(path: Path, tmp_path: Path) -> None:
    """Cut behind any line, a log gives nothing that the whole log does not give with the same content."""
    whole = identified(read(path)[0])
    lines = path.read_bytes().splitlines(keepends=True)
    part, before = tmp_path / path.name, set[str]()
    for meta in path.parent.glob(f"{path.stem}.meta.json"):
        shutil.copy(meta, tmp_path)
    for number, line in enumerate(lines, 1):
        with part.open("ab") as stream:
            stream.write(line)
        found = identified(read(part)[0])
        now = {key: record for key, record in found.items() if record["kind"] != "session"}
        assert {key: whole.get(key) for key in now} == now, f"after line {number}"
        assert before <= set(now)
        before = set(now)
    assert len(before) == len(whole) - 1


def test_the_session_comes_first_and_describes_itself() -> None:
    """The first record names the session, its place, its source and what the person asked for."""
    opening = session(MAIN)[0]
    assert opening["session"] == opening["process"] == MAIN.stem
    assert opening["ts"] == "2026-11-21T20:31:28.138Z"
    assert opening["workflow"] == "claude-code"
    assert opening["source"] == {"importer": "claude-code", "version": "2.1.330", "path": MAIN.name}
    assert opening["meta"]["title"] == "Fix the typo in main.py"
    assert opening["meta"]["gitBranch"] == "master"
    assert opening["meta"]["live"] is False


def test_an_entry_holds_the_call_as_it_was_made() -> None:
    """An entry carries the call's input, turn, response and place in the log."""
    entry = of(session(MAIN), "entry")[1]
    assert entry["action"] == "Bash"
    assert entry["inputType"] == "BashInput"
    assert entry["input"] == {"command": "python3 -m pytest -q missing_test.py", "description": "run tests"}
    assert (entry["agent"], entry["process"], entry["step"]) == ("main", MAIN.stem, "msg_fake0002")
    assert entry["turn"] == "379b5653-8854-4f6b-a9db-af71f18fed18"
    assert (entry["meta"]["file"], entry["meta"]["toolUseId"]) == (MAIN.name, "toolu_fake00020")
    number: int = entry["meta"]["line"]
    assert json.loads(MAIN.read_bytes().splitlines()[number - 1])["uuid"] == entry["id"]


def test_parallel_calls_share_their_step() -> None:
    """Two calls of one response have the same step and results of their own."""
    records = session(MAIN)
    first, second = (entry for entry in of(records, "entry") if entry["step"] == "msg_fake0004")
    results = {result["entry"]: result for result in of(records, "result")}
    assert results[first["id"]]["status"] == "error"
    assert results[first["id"]]["error"]["type"] == "exitCode"
    assert results[first["id"]]["durationMs"] == 1232
    assert results[second["id"]]["status"] == "ok"


@pytest.mark.parametrize(
    ("main", "agent", "actions"),
    [
        (MAIN, "general-purpose-a4c82727", ["Bash", "Edit", "Read", "NoSuchTool"]),
        (BESIDE, "general-purpose-d3eee8ca", ["Bash"]),
        (INLINE, "general-purpose-731e6199", ["Bash"]),
        (STREAM, "general-purpose-a4c82727", ["Bash", "Edit", "Read", "NoSuchTool"]),
        (OLD_STREAM, "general-purpose-ake00090", ["Bash"]),
    ],
    ids=["in a folder", "beside", "inline", "stream-json", "old stream-json"],
)
def test_sub_agents_are_linked_to_their_call(main: Path, agent: str, actions: list[str]) -> None:
    """In every era a sub-agent's entries bear its own name and point to the call that launched it."""
    records = session(main)
    entries = of(records, "entry")
    (launch,) = (entry for entry in entries if entry["action"] in ("Task", "Agent"))
    own = [entry for entry in entries if entry["agent"] == agent]
    assert [entry["action"] for entry in own] == actions
    assert {entry["parent"] for entry in own} == {launch["id"]}
    assert {entry.get("turn") for entry in own} == {launch.get("turn")}
    assert {entry["session"] for entry in entries} == {records[0]["session"]}
    assert all("parent" not in entry for entry in entries if entry["agent"] == "main")


def test_files_are_read_in_step() -> None:
    """A sub-agent's records stand between the records of the main log, by time; each file keeps its own order."""
    entries = of(session(MAIN), "entry")
    assert [entry["ts"] for entry in entries] == sorted(entry["ts"] for entry in entries)
    assert [entry["action"] for entry in entries][5:7] == ["Agent", "Bash"]


def test_a_sub_agents_log_alone_belongs_to_its_session() -> None:
    """Read alone, a sub-agent's log gives a session with the id of the one it belongs to."""
    records, (count,) = read(CHILD)
    assert {record["session"] for record in records} == {MAIN.stem}
    assert {entry["agent"] for entry in of(records, "entry")} == {"general-purpose-a4c82727"}
    assert count.agent == "general-purpose-a4c82727"


def test_a_background_agent_reports_back_to_its_call() -> None:
    """The launch is ok at once; the notification that comes later updates the same entry, and is no person's message."""
    records = session(MAIN)
    (launch,) = (entry for entry in of(records, "entry") if entry["action"] == "Agent")
    (update,) = of(records, "tool_call_update")
    assert update["entry"] == launch["id"]
    assert update["data"]["status"] == "completed"
    assert update["data"]["output"] == "Fixed the typo. "
    assert [nudge["data"]["origin"] for nudge in of(records, "nudge")].count("task-notification") == 1
    assert next(r for r in of(records, "result") if r["entry"] == launch["id"])["status"] == "ok"


def test_harness_text_is_never_a_persons_message() -> None:
    """Only what a person typed is a user message; reminders, commands, caveats and prompts for sub-agents are nudges."""
    records = session(MAIN)
    assert [event["data"]["text"] for event in of(records, "user_message")] == [
        "Fix the typo in main.py",
        "Thanks, and now?",
    ]
    assert {event["data"]["origin"] for event in of(records, "nudge")} == {
        "parentAgent", "system-reminder", "task-notification", "local-command-caveat", "command-name",
        "local-command-stdout",
    }  # fmt: skip


def test_a_compaction_holds_its_summary() -> None:
    """A compaction is one event with what triggered it, its size and the summary that replaced the conversation."""
    (compaction,) = of(session(MAIN), "compaction")
    data = compaction["data"]
    assert (data["trigger"], data["preTokens"], data["postTokens"], data["durationMs"]) == ("manual", 121, 2752, 761)
    assert data["summary"].startswith("This session is being continued")


def test_a_killed_session_leaves_its_call_open() -> None:
    """A process that was killed leaves an entry without a result."""
    records, (count,) = read(KILLED)
    assert [entry["action"] for entry in of(records, "entry")] == ["Bash"]
    assert of(records, "result") == []
    assert count.open == 1


def test_an_interrupted_call_is_not_a_refused_one() -> None:
    """A refusal that an interrupt follows is an interrupted call; the interrupt itself is an event behind it."""
    records, _ = read(INTERRUPTED)
    (result,) = of(records, "result")
    (interrupt,) = of(records, "interrupt")
    assert result["status"] == "interrupted"
    assert result["error"]["type"] == "interrupted"
    assert result["durationMs"] == 6026
    assert records.index(result) < records.index(interrupt)
    assert len(of(records, "user_message")) == 1


def test_failed_requests_are_errors() -> None:
    """Each retry and the final failure of the API is an error event, and none of them a message."""
    records, _ = read(FAILED)
    errors = of(records, "error")
    assert [error["data"].get("attempt") for error in errors] == [1, 2, None]
    assert [error["data"]["status"] for error in errors] == [529, 529, 529]
    assert of(records, "message") == []


def test_reaching_the_turn_limit_is_an_error() -> None:
    """The program's stop at the turn limit is kept, in the transcript as in the stream."""
    for path in (next(NEW.glob("3fc1acf8*")), LOGS / "live_2.1.330" / "stream_json_stdout_max_turns.jsonl"):
        (error,) = of(read(path)[0], "error")
        assert error["data"]["reason"] == "maxTurns"


def test_a_fork_shares_the_ids_of_what_it_copied() -> None:
    """A fork says where it came from, and its copied records bear the ids that they have in the original."""
    original, fork = session(MAIN), session(FORK)
    assert fork[0]["meta"]["forkedFrom"] == MAIN.stem
    assert "forkedFrom" not in original[0]["meta"]
    entries = {entry["id"] for entry in of(fork, "entry")}
    assert len(entries) == 6
    assert entries <= {entry["id"] for entry in of(original, "entry")}
    assert of(fork, "usage")
    assert {usage["id"] for usage in of(fork, "usage")} <= {usage["id"] for usage in of(original, "usage")}
    new = set(identified(fork)) - set(identified(original))
    assert {fork_only["data"]["text"] for fork_only in map(identified(fork).get, new) if fork_only and "data" in fork_only} == {
        "Forked: what else?", "Okay, resumed answer. ",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("live_2.1.330/stream_json_stdout.jsonl", "completed"),
        ("live_1.0.37/stream_json_stdout.jsonl", "completed"),
        ("live_2.1.330/stream_json_stdout_api_error.jsonl", "failed"),
        ("live_2.1.330/stream_json_stdout_max_turns.jsonl", "failed"),
    ],
)
def test_only_a_stream_states_its_end(name: str, outcome: str) -> None:
    """A stream-json log ends its session with the outcome it states."""
    records, _ = read(LOGS / name)
    assert [(end["outcome"], end["process"]) for end in of(records, "sessionEnd")] == [(outcome, records[0]["session"])]
    assert records[-1]["kind"] == "sessionEnd"


def test_a_transcript_does_not_end_its_session() -> None:
    """A transcript has no end, since it may be resumed at any time."""
    assert of(session(MAIN), "sessionEnd") == []


def test_the_stream_of_a_session_has_the_ids_of_its_transcript() -> None:
    """Calls seen in the program's stream bear the same ids as in its transcript."""
    streamed = {entry["id"] for entry in of(read(STREAM)[0], "entry")}
    assert streamed == {entry["id"] for entry in of(session(MAIN), "entry")}


def test_a_cut_last_line_costs_only_itself(tmp_path: Path) -> None:
    """A log whose last line is cut gives all earlier records and reports the cut one."""
    cut = tmp_path / KILLED.name
    shutil.copyfile(KILLED, cut)
    with cut.open("ab") as stream:
        stream.write(INTERRUPTED.read_bytes().splitlines()[22][:200])
    records, (count,) = read(cut)
    assert records == read(KILLED)[0]
    assert [(at, size) for at, size, _ in count.damaged] == [(KILLED.stat().st_size, 200)]

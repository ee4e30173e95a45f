"""One session of Claude Code put together: branches, refusals, large output, late figures, ids and durations."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.importers.claude_code import CLAUDE_CODE
from ctxmgr.log.codec import Record
from ctxmgr.types.import_report import FileCount
from tests.importers.claude_code_log import SESSION, Log, of

REJECTED = "The user doesn't want to proceed with this tool use. The tool use was rejected."


def one_result(log: Log) -> Record:
    """Return the only result of the log."""
    (result,) = of(log.read()[0], "result")
    return result


def test_a_rewind_names_what_it_left_behind(log: Log) -> None:
    """Going back to an earlier prompt is an event that lists the entries of the abandoned branch; they stay as they are."""
    kept = log.calls("Read", "t1", file_path="a")
    fork_point = log.returns("t1", "x")
    log.says("Try it with make")
    left = log.calls("Bash", "t2", command="make")
    log.returns("t2", "no rule")
    before = {record["id"]: record for record in of(log.read()[0], "entry")}
    again = log.says("Try it with ninja", parent=fork_point)
    log.calls("Bash", "t3", command="ninja")
    records, _ = log.read()
    (rewind,) = of(records, "rewind")
    assert rewind["data"] == {"abandoned": [left]}
    assert records[records.index(rewind) + 1]["id"] == again
    entries = {record["id"]: record for record in of(records, "entry")}
    assert list(entries)[:2] == [kept, left]
    assert {key: entries[key] for key in before} == before


def test_prompts_in_a_row_and_dangling_parents_are_no_rewind(log: Log) -> None:
    """A prompt that follows the last record, or one whose parent was never written, abandons nothing."""
    log.calls("Read", "t1", file_path="a")
    log.returns("t1", "x")
    log.says("And then?")
    log.says("Hurry up")
    log.says("Hello?", parent="99999999-0000-4000-8000-000000000000")
    log.says("A new root", parent=None)
    assert of(log.read()[0], "rewind") == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"toolDenialKind": "user-rejected"}, REJECTED),
        ({"toolUseResult": "User rejected tool use"}, "Rejected"),
        ({}, REJECTED),
        ({}, "Claude requested permissions to use Bash, but you haven't granted it yet."),
        ({}, "Permission to use Bash has been denied."),
        ({"toolDenialKind": "permission-rule"}, "Not allowed here"),
        ({"permissionDecision": {"decision": "deny"}}, "Not allowed here"),
    ],
)
def test_a_refused_call_is_denied(log: Log, fields: dict[str, Any], words: str) -> None:
    """A call that a person or a rule refused is denied, in the words of every era, once the agent goes on."""
    log.calls("Bash", "t1", command="rm -r x")
    log.returns("t1", words, error=True, **fields)
    log.answers({"type": "text", "text": "All right."})
    result = one_result(log)
    assert result["status"] == "denied"
    assert result["error"]["message"] == words


def test_a_refusal_before_an_interrupt_is_an_interrupt(log: Log) -> None:
    """Several pending calls that were refused by an interrupt are all interrupted."""
    log.calls("Bash", "t1", command="a")
    log.calls("Bash", "t2", command="b")
    log.returns("t1", REJECTED, error=True)
    log.returns("t2", REJECTED, error=True)
    log.says([{"type": "text", "text": "[Request interrupted by user for tool use]"}])
    records, count = log.read()
    assert [result["status"] for result in of(records, "result")] == ["interrupted", "interrupted"]
    assert (count.failed, count.open) == (2, 0)


def test_an_undecided_refusal_waits_for_the_next_line(log: Log) -> None:
    """At the end of the file a refusal that may yet be an interrupt is counted but gives no result."""
    log.calls("Bash", "t1", command="a")
    log.returns("t1", REJECTED, error=True)
    records, count = log.read()
    assert of(records, "result") == []
    assert (count.failed, count.open) == (1, 0)


def test_a_refusal_with_a_reason_needs_no_waiting(log: Log) -> None:
    """A refusal that carries the person's words is denied at once."""
    log.calls("Bash", "t1", command="a")
    log.returns("t1", f"{REJECTED} To tell you how to proceed, the user said:\nuse make", error=True)
    assert one_result(log)["status"] == "denied"


@pytest.mark.parametrize(
    ("error", "side", "status"),
    [
        (None, {}, "ok"),
        (False, {"interrupted": False}, "ok"),
        (True, "Error: boom", "error"),
        (None, {"interrupted": True}, "interrupted"),
        ("no", None, "ok"),
    ],
)
def test_the_status_is_the_sources_own(log: Log, error: Any, side: Any, status: str) -> None:
    """A result is an error only where the source says so, and interrupted where the tool says so."""
    log.calls("Bash", "t1", command="a")
    log.returns("t1", "out", error=error, toolUseResult=side)
    assert one_result(log)["status"] == status


def test_output_is_text_or_json(log: Log) -> None:
    """Text blocks are joined; a picture's bytes are left out; without content the tool's own result is taken."""
    for number in range(3):
        log.calls("Read", f"t{number}")
    log.returns("t0", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])
    log.returns("t1", [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 99}}])
    log.returns("t2", None, toolUseResult={"files": 3})
    outputs = [result["output"] for result in of(log.read()[0], "result")]
    assert outputs[0] == "a\nb"
    assert outputs[1][0]["source"] == {"type": "base64", "media_type": "image/png", "omittedCharacters": 99}
    assert outputs[2] == {"files": 3}


def _persist(log: Log, name: str = "out.txt", path: str | None = None) -> Path:
    """Append a call whose output was put into a file, and return where that file belongs."""
    place = log.path.with_suffix("") / "tool-results" / name
    named = path or f"/elsewhere/{SESSION}/tool-results/{name}"
    log.calls("Bash", "t1", command="make")
    log.returns(
        "t1",
        f"<persisted-output>\nOutput too large. Full output saved to: {named}\n\nPreview:\nfirst\n</persisted-output>",
        toolUseResult={"persistedOutputPath": named, "persistedOutputSize": 7},
    )
    place.parent.mkdir(parents=True)
    return place


def test_large_output_is_read_from_its_file(log: Log) -> None:
    """Output that lies in the session's folder is read from there, wherever the log says it was."""
    _persist(log).write_text("all of it")
    result = one_result(log)
    assert result["output"] == "all of it"
    assert "meta" not in result


def test_lost_large_output_is_marked_missing(log: Log) -> None:
    """Without the file the preview stays, and the result says what is missing."""
    _persist(log)
    result = one_result(log)
    assert "first" in result["output"]
    assert result["meta"]["missing"] == ["persistedOutput"]
    assert result["meta"]["persistedSize"] == 7


def test_very_large_output_stays_in_its_file(log: Log) -> None:
    """Beyond a megabyte the preview is kept with the file's path and size."""
    _persist(log).write_bytes(b"x" * 1_000_001)
    output = one_result(log)["output"]
    assert output["size"] == 1_000_001
    assert "first" in output["preview"]
    assert output["path"].endswith("out.txt")


@pytest.mark.parametrize("named", ["{secret}", "/x/tool-results/../{secret}", "{secret}\0", "tool-results/out.txt"])
def test_a_path_in_a_log_leads_nowhere_else(log: Log, tmp_path: Path, named: str) -> None:
    """A log can't make the importer read a file outside the session's folder for tool results."""
    secret = tmp_path / "secret.txt"
    secret.write_text("hunter2")
    _persist(log, path=named.format(secret=secret))
    assert "hunter2" not in json.dumps(log.read()[0])


def test_a_link_in_the_results_folder_is_not_followed(log: Log, tmp_path: Path) -> None:
    """A symbolic link among the tool results is treated as lost output."""
    secret = tmp_path / "secret.txt"
    secret.write_text("hunter2")
    _persist(log).symlink_to(secret)
    assert one_result(log)["meta"]["missing"] == ["persistedOutput"]


def test_a_pipe_in_the_results_folder_blocks_nothing(log: Log) -> None:
    """A named pipe among the tool results is treated as lost output."""
    os.mkfifo(_persist(log))
    assert one_result(log)["meta"]["missing"] == ["persistedOutput"]


def test_figures_that_grow_line_by_line_are_counted_once(log: Log) -> None:
    """The lines of one response give one usage event, with the largest figures."""
    for out in (1, 3, 40):
        log.answers({"type": "text", "text": "x"}, id="msg_a", usage={"input_tokens": 9, "output_tokens": out})
    log.answers({"type": "text", "text": "y"}, id="msg_b")
    log.answers({"type": "text", "text": "z"}, id="msg_a")
    records, count = log.read()
    assert [usage["data"]["outputTokens"] for usage in of(records, "usage")] == [40, 2]
    assert (count.responses, count.usage["inputTokens"], count.usage["outputTokens"]) == (2, 14, 42)


def test_an_unfinished_response_reports_no_figures_yet(log: Log) -> None:
    """While the last response is still being written, its figures are counted but not recorded, since they may grow."""
    log.answers({"type": "text", "text": "x"}, id="msg_a", stop="end_turn")
    log.answers({"type": "text", "text": "y"}, id="msg_b", usage={"output_tokens": 1})
    records, count = log.read()
    assert [usage["data"]["responseId"] for usage in of(records, "usage")] == ["msg_a"]
    assert count.responses == 2
    log.answers({"type": "text", "text": "z"}, id="msg_b", usage={"output_tokens": 8}, stop="end_turn")
    assert [usage["data"]["outputTokens"] for usage in of(log.read()[0], "usage")] == [2, 8]


def test_several_blocks_on_a_line_get_ids_of_their_own(log: Log) -> None:
    """The first block of a line bears the record's id, the others a number behind it."""
    line = log.answers(
        {"type": "redacted_thinking", "data": "…"},
        {"type": "text", "text": "Two calls"},
        {"type": "tool_use", "id": "t1", "name": "Read", "input": {}},
        {"type": "tool_use", "id": "t2", "name": "Read", "input": {}},
    )
    records, count = log.read()
    assert of(records, "thought")[0]["id"] == line
    assert of(records, "message")[0]["id"] == f"{line}:1"
    assert [entry["id"] for entry in of(records, "entry")] == [f"{line}:2", f"{line}:3"]
    assert (count.thoughts, count.messages) == (1, 1)


def test_tools_of_the_server_are_calls_too(log: Log) -> None:
    """A search that the model's server ran is an entry, and its result block completes it."""
    log.answers(
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result", "url": "u"}]},
    )
    records, _ = log.read()
    assert of(records, "entry")[0]["action"] == "web_search"
    assert of(records, "result")[0]["status"] == "ok"


def test_a_declared_limit_is_kept(log: Log) -> None:
    """The time limit that a shell call declares is the entry's; an impossible one is not."""
    log.calls("Bash", "t1", command="make", timeout=60_000)
    log.calls("Bash", "t2", command="make", timeout="soon")
    log.calls("Read", "t3", timeout=5)
    assert [entry.get("timeoutMs") for entry in of(log.read()[0], "entry")] == [60_000, None, None]


def test_no_duration_is_made_up(log: Log) -> None:
    """A result that is stamped before its call, or not at all, has no duration; a tool's own measure counts first."""
    for number in range(3):
        log.calls("Read", f"t{number}")
    log.returns("t0", "x", timestamp="2020-01-01T00:00:00Z")
    log.returns("t1", "x", timestamp="yesterday")
    log.returns("t2", "x", toolUseResult={"durationMs": 12})
    results = of(log.read()[0], "result")
    assert [result.get("durationMs") for result in results] == [None, None, 12]
    assert "ts" not in results[1]


def test_a_repeated_record_is_read_once(log: Log) -> None:
    """A record that stands in the file twice counts once."""
    log.calls("Read", "t1")
    log.lines.append(log.lines[-1])
    records, count = log.read()
    assert len(of(records, "entry")) == 1
    assert (count.tool_calls["Read"], count.records) == (1, 3)


def test_a_result_without_its_call_is_mentioned(log: Log) -> None:
    """Results whose call is not in the log give no record, and a note says so."""
    log.returns("gone", "x")
    records, count = log.read()
    assert of(records, "result") == []
    assert count.notes == ["1 results without their call were left out"]


def test_parallel_inline_sub_agents_are_kept_apart(log: Log) -> None:
    """Two sub-agents written into the main log between each other's lines get their own names and calls."""
    first = log.calls("Task", "t1", prompt="look left", subagent_type="scout")
    second = log.calls("Task", "t2", prompt="look right", subagent_type="guard")
    left = log.says("look left", parent=None, isSidechain=True)
    right = log.says("look right", parent=None, isSidechain=True)
    use: dict[str, Any] = {"type": "tool_use", "name": "Grep", "input": {}}
    log.answers(use | {"id": "l1"}, parent=left, isSidechain=True)
    log.answers(use | {"id": "r1"}, parent=right, isSidechain=True)
    entries = of(log.read()[0], "entry")[2:]
    assert [(entry["agent"], entry["parent"]) for entry in entries] == [
        (f"scout-{left[:8]}", first),
        (f"guard-{right[:8]}", second),
    ]


def test_bulky_records_are_counted_unread_but_their_damage_is_not_missed(log: Log) -> None:
    """A long record of no interest is counted without being parsed; torn, or with another glued to it, it is read."""
    bulk = json.dumps({"type": "api-request-blob", "text": "x" * 5_000}, separators=(",", ":")).encode()
    log.lines[1:1] = [bulk, bulk[:4_000] + log.lines[0].replace(b"000001", b"000009"), bulk[:3_000]]
    records, count = log.read()
    assert len(of(records, "user_message")) == 2
    assert count.records == 3
    assert [size for _, size, _ in count.damaged] == [4_000, 3_000]


def test_unknown_records_are_counted_by_type(log: Log) -> None:
    """Types that came after this importer are counted, and nothing else is lost."""
    log.lines += [b'{"type":"brand-new","sessionId":"x"}', b'{"type":"brand-new"}', b'{"type":7}', b'{"a":1}']
    log.calls("Read", "t1")
    records, count = log.read()
    assert count.unknown == {"brand-new": 2, "(no type)": 2}
    assert len(of(records, "entry")) == 1
    assert count.records == 6


def test_a_huge_text_is_cut_to_fit(log: Log) -> None:
    """A record of ours stays within the limit of a line, however long the source's is."""
    log.calls("Write", "t1", content="é" * 2_000_000)
    log.returns("t1", "é" * 2_000_000)
    records, _ = log.read()
    assert of(records, "entry")[0]["input"]["content"].endswith("[1,500,000 more]")
    assert of(records, "result")[0]["meta"] == {"truncated": 2_000_000}


def test_a_web_export_is_read(log: Log, tmp_path: Path) -> None:
    """A session exported from the web, one object that holds all records, gives what its transcript gives."""
    log.calls("Read", "t1")
    log.returns("t1", "x" * 100_000)
    log.answers({"type": "text", "text": "done"})
    records, _ = log.read()
    export = tmp_path / "export.json"
    export.write_text(json.dumps({"title": "x", "loglines": [json.loads(line) for line in log.lines]}, indent=1))
    assert CLAUDE_CODE.sniff(export, export.read_bytes()[: 1 << 16])
    counts: list[FileCount] = []
    found = list(CLAUDE_CODE.read([export], counts))
    assert [record.get("id") for record in found] == [record.get("id") for record in records]
    assert found[0]["session"] == SESSION
    assert counts[0].records == 4
    export.write_bytes(export.read_bytes()[:-200])
    assert len(list(CLAUDE_CODE.read([export], counts))) == len(records) - 2
    assert len(counts[1].damaged) == 1

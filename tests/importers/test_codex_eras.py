"""The Codex importer on handwritten logs: what the live ones do not show of each era."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxmgr.importers.codex import Codex
from ctxmgr.types.importing import FileCount
from ctxmgr.types.record import check
from ctxmgr.wire import Record, encode

THREAD = "019b0000-1111-7222-8333-0123456789ab"
TURN = "019b0000-2222-7222-8333-0123456789ab"
NAME = f"rollout-2026-01-02T03-04-05-{THREAD}.jsonl"

Reader = Callable[[list[Any]], tuple[list[Record], FileCount]]


def at(second: float) -> str:
    """Return a moment some seconds after the start of the log."""
    return f"2026-01-02T03:{4 + int(second) // 60:02d}:{second % 60:06.3f}Z"


def line(second: float, kind: str, /, **payload: Any) -> dict[str, Any]:
    """Return a line of a log from 0.32 on."""
    return {"timestamp": at(second), "type": kind, "payload": payload}


def meta(thread: str = THREAD, second: float = 0, **more: Any) -> dict[str, Any]:
    """Return the first line of a log."""
    return line(second, "session_meta", id=thread, timestamp=at(second), cwd="/p", cli_version="0.130.0", **more)


def item(second: float, kind: str, /, **payload: Any) -> dict[str, Any]:
    """Return a conversation item."""
    return line(second, "response_item", **{"type": kind, **payload})


def event(second: float, kind: str, /, **payload: Any) -> dict[str, Any]:
    """Return an event."""
    return line(second, "event_msg", **{"type": kind, **payload})


def says(second: float, words: str, role: str = "user") -> dict[str, Any]:
    """Return a message item."""
    return item(
        second,
        "message",
        role=role,
        content=[{"type": f"{'out' if role == 'assistant' else 'in'}put_text", "text": words}],
    )


def call(second: float, call_id: str, name: str = "exec_command", arguments: str = "{}", **more: Any) -> dict[str, Any]:
    """Return a function call."""
    return item(second, "function_call", name=name, arguments=arguments, call_id=call_id, **more)


def answer(second: float, call_id: str, output: Any) -> dict[str, Any]:
    """Return the output of a function call."""
    return item(second, "function_call_output", call_id=call_id, output=output)


def usage(second: float, total: int, last: int) -> dict[str, Any]:
    """Return a running total of tokens."""
    info = {"total_token_usage": {"input_tokens": total, "output_tokens": 1},
            "last_token_usage": {"input_tokens": last, "output_tokens": 1}}  # fmt: skip
    return event(second, "token_count", info=info)


def write(path: Path, lines: list[Any]) -> Path:
    """Write the lines, those given as text as they are."""
    path.write_text("".join((text if isinstance(text, str) else json.dumps(text)) + "\n" for text in lines))
    return path


def read_file(path: Path) -> tuple[list[Record], FileCount]:
    """Return the checked records of one file and its counts."""
    counts: list[FileCount] = []
    records = [check(record) for record in Codex().read([path], counts)]
    return records, counts[0]


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    """Return a reader of handwritten lines; it also proves that growth of the log changes no record already read."""

    def reader(lines: list[Any]) -> tuple[list[Record], FileCount]:
        records, count = read_file(write(tmp_path / NAME, lines))
        whole = [encode(record) for record in records]
        for length in range(1, len(lines)):
            part = [encode(record) for record in read_file(write(tmp_path / NAME, lines[:length]))[0][1:]]
            assert not set(part) - set(whole), f"after line {length}"
        return records, count

    return reader


def of(records: list[Record], kind: str) -> list[Record]:
    """Return the records of one kind, or the events of one type."""
    return [record for record in records if kind in (record["kind"], record.get("type"))]


def test_era_a_bare_items_take_the_harness_text_by_its_beginning(read: Reader) -> None:
    """Without events, a text that begins as Codex's own texts do is a nudge, any other is a person's."""
    records, count = read(
        [
            {"id": THREAD, "timestamp": at(0), "instructions": None},
            {"record_type": "state"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<user_instructions>\nBe brief"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
            {"type": "local_shell_call", "id": None, "call_id": "c1", "status": "completed",
             "action": {"type": "exec", "command": ["ls"], "timeout_ms": 5000}},
            {"type": "function_call_output", "call_id": "c1", "output": '{"output":"a\\n","metadata":{"exit_code":0}}'},
        ]
    )  # fmt: skip
    assert [record["data"]["text"] for record in of(records, "user_message")] == ["Hello"]
    assert of(records, "nudge")[0]["data"]["origin"] == "user_instructions"
    (entry,), (result,) = of(records, "entry"), of(records, "result")
    assert (entry["action"], entry["timeoutMs"], entry["id"]) == ("local_shell", 5000, f"{THREAD}:c1")
    assert (result["status"], result["output"]) == ("ok", "a\n")
    assert (count.harness_messages, dict(count.unknown)) == (1, {})


def test_a_call_id_that_a_local_server_reuses_is_a_new_call(read: Reader) -> None:
    """Three calls named call_0 without item ids are three entries, each with its own result."""
    lines: list[Any] = [{"id": THREAD, "timestamp": at(0), "instructions": ""}]
    for _ in range(3):
        lines.append({"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "call_0"})
        lines.append({"type": "function_call_output", "call_id": "call_0", "output": "x"})
    records, _ = read(lines)
    ids = [entry["id"] for entry in of(records, "entry")]
    assert len(set(ids)) == 3
    assert [result["entry"] for result in of(records, "result")] == ids


def test_the_typescript_rollout_is_one_object(tmp_path: Path) -> None:
    """The first Codex wrote {session, items} over many lines of one JSON file."""
    path = tmp_path / f"rollout-2025-04-20-{THREAD}.json"
    body = {
        "session": {"timestamp": at(0), "id": THREAD, "instructions": ""},
        "items": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
            {"type": "function_call", "name": "shell", "arguments": '{"cmd":["ls"]}', "call_id": "c1"},
            {"type": "function_call_output", "call_id": "c1", "output": '{"output":"a","metadata":{"exit_code":2}}'},
        ],
    }
    path.write_text(json.dumps(body, indent=2))
    counts: list[FileCount] = []
    records = list(Codex().read([path], counts))
    assert Codex().sniff(path, path.read_bytes())
    assert (records[0]["session"], records[0]["meta"]["title"]) == (THREAD, "Hi")
    assert of(records, "result")[0]["meta"]["exitCode"] == 2
    assert (counts[0].records, dict(counts[0].unknown), counts[0].damaged) == (4, {}, [])


def test_era_b_takes_words_that_an_event_confirms(read: Reader) -> None:
    """An unnamed text of role user is a person's only when the event says so; an unconfirmed one is a nudge."""
    records, count = read(
        [
            meta(), says(1, "Something a plugin added"), says(2, "My question"),
            event(2, "user_message", message="My question"),
            line(2, "turn_context", cwd="/q", model="m"), event(3, "agent_reasoning", text="hm"),
            item(3, "reasoning", summary=[], encrypted_content="x"), call(4, "c1", arguments="not json"),
        ]
    )  # fmt: skip
    assert [record["data"]["text"] for record in of(records, "user_message")] == ["My question"]
    assert of(records, "nudge")[0]["data"]["origin"] == "unnamed"
    assert of(records, "thought")[0]["data"] == {"encrypted": True}
    (entry,) = of(records, "entry")
    assert (entry["input"], entry["meta"]["cwd"], entry["meta"]["model"]) == ("not json", "/q", "m")
    assert entry["turn"] == of(records, "user_message")[0]["id"]
    assert (count.open, count.thoughts, count.harness_messages) == (1, 1, 1)


def test_an_event_before_its_item_confirms_it_too(read: Reader) -> None:
    """The order of the two copies does not matter; one message comes out."""
    records, count = read(
        [
            meta(),
            says(0, "<environment_context/>"),
            event(1, "user_message", message="Go"),
            says(1, "Go"),
            says(2, "Done", "assistant"),
        ]
    )
    assert [record["data"]["text"] for record in of(records, "user_message")] == ["Go"]
    assert (count.user_messages, count.harness_messages, count.messages) == (1, 1, 1)


def test_a_log_that_holds_only_events_is_imported_from_them(read: Reader) -> None:
    """Words, thoughts, commands and patches come from events when no conversation item exists."""
    records, count = read(
        [
            meta(), event(1, "user_message", message="Go", kind="plain"), event(2, "agent_reasoning", text="hm"),
            event(2, "agent_message", message="On it"),
            event(3, "exec_command_begin", call_id="c1", command=["ls"], cwd="/p"),
            event(4, "exec_command_end", call_id="c1", exit_code=3, aggregated_output="no", duration={"secs": 1, "nanos": 0}),
            event(5, "patch_apply_end", call_id="c2", success=False, stderr="bad patch", changes={}),
            event(6, "mcp_tool_call_end", call_id="c3", invocation={"server": "s", "tool": "t", "arguments": {"a": 1}},
                  result={"Ok": {"content": [{"type": "text", "text": "fine"}]}}),
        ]
    )  # fmt: skip
    assert (count.user_messages, count.thoughts, count.messages, count.open) == (1, 1, 1, 0)
    assert dict(count.tool_calls) == {"exec_command": 1, "apply_patch": 1, "s.t": 1}
    first, second, third = of(records, "result")
    assert (first["status"], first["durationMs"], first["output"]) == ("error", 1000, "no")
    assert (second["status"], second["error"]["message"]) == ("error", "bad patch")
    assert (third["status"], third["output"]) == ("ok", "fine")


def test_era_c_joins_facts_that_come_before_the_output(read: Reader) -> None:
    """A patch that the event calls failed is an error even where its text says nothing."""
    records, _ = read(
        [
            meta(), event(0, "task_started", turn_id=TURN), says(1, "<environment_context>\n</environment_context>"),
            item(2, "custom_tool_call", name="apply_patch", input="*** Begin Patch", call_id="c1"),
            event(3, "patch_apply_end", call_id="c1", success=False, stdout="", stderr="oops"),
            item(3, "custom_tool_call_output", call_id="c1", output="oops"),
        ]
    )  # fmt: skip
    (entry,), (result,) = of(records, "entry"), of(records, "result")
    assert (entry["input"], entry["turn"]) == ("*** Begin Patch", TURN)
    assert (result["status"], result["error"]["type"]) == ("error", "toolError")


def test_a_call_of_which_only_an_event_tells_ends_with_its_turn(read: Reader) -> None:
    """No output item ever came: the event decides when the turn ends, and a call without either stays open."""
    command = {"type": "CommandExecution", "id": "c1", "status": "completed", "exit_code": 0, "aggregated_output": "hi"}
    records, count = read(
        [
            meta(), event(0, "task_started", turn_id=TURN), says(1, "<environment_context/>"), call(2, "c1"), call(2, "c2"),
            event(3, "item_completed", item=command), event(4, "task_complete", turn_id=TURN),
        ]
    )  # fmt: skip
    (result,) = of(records, "result")
    assert (result["status"], result["output"], count.open) == ("ok", "hi", 1)


def test_an_abort_interrupts_calls_that_have_no_output(read: Reader) -> None:
    """A call cut off by the person is not a hang."""
    records, count = read(
        [meta(), says(0, "<environment_context/>"), call(1, "c1"), event(2, "turn_aborted", reason="interrupted")]
    )
    assert [record["status"] for record in of(records, "result")] == ["interrupted"]
    assert (count.open, count.failed) == (0, 1)


def test_the_end_of_a_review_is_no_interrupt_by_a_person(read: Reader) -> None:
    """Codex ends a review turn with the same event; only the turn end is recorded."""
    records, _ = read([meta(), event(2, "turn_aborted", reason="review_ended")])
    assert (len(of(records, "interrupt")), len(of(records, "turn_end"))) == (0, 1)


def test_era_d_and_e_items_name_their_writer(read: Reader) -> None:
    """A message of mixed writers is split: the person's part is the person's, the rest a nudge, counted once."""
    parts = [{"type": "input_text", "text": "hook says hi"}, {"type": "input_text", "text": "my words"}]
    marks = {"turn_id": TURN, "content_item_kinds": ["hooks.context", "user.text"],
             "content_item_metadata": [{"provenance": {"type": "harness"}}, {"provenance": {"type": "user"}}]}  # fmt: skip
    records, count = read(
        [
            meta(),
            item(1, "message", id=f"msg_{TURN}", role="user", content=parts, internal_chat_message_metadata_passthrough=marks),
            event(1, "item_completed", item={"type": "UserMessage", "content": [{"type": "text", "text": "my words"}]}),
            call(2, "c1"),
        ]
    )  # fmt: skip
    (user,), (nudge,) = of(records, "user_message"), of(records, "nudge")
    assert (user["data"]["text"], user["id"], user["turn"]) == ("my words", f"msg_{TURN}", TURN)
    assert (nudge["data"]["text"], nudge["data"]["origin"]) == ("hook says hi", "hooks.context")
    assert (count.user_messages, count.harness_messages) == (1, 0)


def test_calls_of_every_kind_are_entries(read: Reader) -> None:
    """Searches, pictures, tool search and namespaced tools; the picture's bytes are not kept."""
    records, count = read(
        [
            meta(), says(0, "<environment_context/>"),
            item(1, "web_search_call", id="ws_1", status="completed", action={"type": "search", "query": "q"}),
            item(2, "image_generation_call", id="ig_1", status="failed", revised_prompt="a cat", result="A" * 2000),
            item(3, "tool_search_call", call_id="t1", execution="client", arguments={"query": "x"}),
            item(4, "tool_search_output", call_id="t1", status="completed", execution="client", tools=[{"name": "a"}]),
            call(5, "c1", name="query", namespace="mcp__db"),
            answer(6, "c1", json.dumps({"content": [{"type": "text", "text": "no table"}], "isError": True})),
            item(7, "web_search_call", id="ws_2", status="in_progress"),
        ]
    )  # fmt: skip
    assert dict(count.tool_calls) == {"web_search": 2, "image_generation": 1, "tool_search": 1, "mcp__db.query": 1}
    search, picture, tools, query = of(records, "result")
    assert (search["status"], picture["status"], picture["output"]) == ("ok", "error", "<2,000 characters>")
    assert tools["output"] == [{"name": "a"}]
    assert (query["status"], query["error"]) == ("error", {"type": "toolError", "message": "no table"})
    assert count.open == 1


def test_compaction_is_told_once_and_its_history_is_not_new(read: Reader) -> None:
    """The compacted line, its event and its item are one compaction; the next one is another."""
    summary = line(
        2, "compacted", message="so far", replacement_history=[{"type": "message", "role": "user", "content": "old"}]
    )
    records, count = read(
        [
            meta(), says(1, "<environment_context/>"), summary, event(3, "context_compacted"),
            item(3, "compaction", encrypted_content="x"), says(4, "next", "assistant"), event(5, "context_compacted"),
        ]
    )  # fmt: skip
    assert [record["data"] for record in of(records, "compaction")] == [{"text": "so far"}, {}]
    assert (count.user_messages, count.messages) == (0, 1)


def test_a_rollback_names_the_entries_it_abandons(read: Reader) -> None:
    """The last turn's calls stay in the log, named as abandoned; a second rollback reaches further back."""
    lines: list[Any] = [meta(), says(0, "<environment_context/>")]
    for number in (1, 2, 3):
        lines += [
            says(number, f"q{number}"),
            event(number, "user_message", message=f"q{number}"),
            call(number, f"c{number}"),
        ]
    lines += [event(8, "thread_rolled_back", num_turns=1), event(9, "thread_rolled_back", num_turns=9)]
    records, _ = read(lines)
    first, second = of(records, "rewind")
    assert first["data"] == {"turns": 1, "abandoned": [f"{THREAD}:c3"]}
    assert second["data"] == {"turns": 9, "abandoned": [f"{THREAD}:c1", f"{THREAD}:c2"]}


def test_questions_to_a_person_are_waiting(read: Reader) -> None:
    """A request for approval says that Codex waits for a person."""
    records, _ = read([meta(), event(1, "exec_approval_request", call_id="c1", reason="writes outside")])
    assert of(records, "waiting")[0]["data"] == {
        "for": "exec_approval_request",
        "callId": "c1",
        "reason": "writes outside",
    }


def test_repeated_totals_count_nothing_and_a_reset_counts_the_last(read: Reader) -> None:
    """Totals are cumulative and repeated; after a reset the response's own count is taken."""
    records, count = read([meta(), usage(1, 100, 100), usage(2, 100, 100), usage(3, 250, 150), usage(4, 40, 40)])
    assert [record["data"]["inputTokens"] for record in of(records, "usage")] == [100, 150, 40]
    assert (count.responses, count.usage["inputTokens"]) == (3, 40)


def test_a_malformed_first_line_hides_nothing(read: Reader) -> None:
    """The thread's id comes from the file name, the rest is read, and the damage is reported."""
    records, count = read(['{"timestamp": "2026-01-02T', says(1, "Hi"), event(1, "user_message", message="Hi"), call(2, "c1")])
    assert records[0]["session"] == THREAD
    assert (count.user_messages, count.open, len(count.damaged)) == (1, 1, 1)
    assert of(records, "entry")[0]["id"] == f"{THREAD}:c1"


def test_unknown_types_are_counted_by_name_and_known_ones_never(read: Reader) -> None:
    """What Codex adds next month is reported, not lost in silence."""
    _, count = read(
        [
            meta(), line(1, "world_state", full=True), line(1, "dream"), item(1, "smell"), event(1, "hum"),
            event(1, "item_completed", item={"type": "Nap"}), event(1, "warning", message="w"), {"type": "event_msg"}, {"a": 1},
        ]
    )  # fmt: skip
    assert dict(count.unknown) == {
        "dream": 1, "response_item/smell": 1, "event_msg/hum": 1, "item_completed/Nap": 1,
        "event_msg without payload": 1, "untyped": 1,
    }  # fmt: skip


def test_two_objects_on_a_line_have_ids_of_their_own(read: Reader) -> None:
    """Glued lines are two records."""
    glued = json.dumps(says(1, "one", "assistant")) + json.dumps(says(1, "two", "assistant"))
    records, _ = read([meta(), glued])
    assert [record["id"] for record in of(records, "message")] == [f"{THREAD}:2", f"{THREAD}:2.2"]


def test_a_line_written_twice_is_one_record(read: Reader) -> None:
    """An exact repeat of a call is dropped; the same call at another moment is another call."""
    same = call(1, "call_AbCdEfGhIjKlMnOpQrStUvWx")
    records, _ = read([meta(), says(0, "<environment_context/>"), same, same, {**same, "timestamp": at(9)}])
    assert len(of(records, "entry")) == 2


def steps(records: list[Record]) -> list[int]:
    """Return the number of the step of each entry."""
    return [int(entry["step"].rpartition(":")[2]) for entry in of(records, "entry")]


def test_without_marks_between_responses_an_output_begins_a_new_step(read: Reader) -> None:
    """A log without usage or context lines: calls with no output between them were issued together."""
    begin = [meta(), event(0, "task_started", turn_id=TURN), says(1, "<environment_context/>")]
    pair = [call(2, "c1"), call(2, "c2"), answer(3, "c1", "x"), answer(3, "c2", "x")]
    records, _ = read([*begin, *pair, call(4, "c3"), answer(5, "c3", "x"), call(6, "c4")])
    assert steps(records) == [1, 1, 2, 3]


def test_with_usage_the_total_separates_responses(read: Reader) -> None:
    """Buffered logs write call, output, call, output of one response; only a new total means a new response."""
    begin = [meta(), says(1, "<environment_context/>"), usage(2, 10, 10)]
    pair = [call(3, "c1"), answer(3, "c1", "x"), call(3, "c2"), answer(3, "c2", "x")]
    records, _ = read([*begin, *pair, usage(4, 20, 10), call(5, "c3"), answer(5, "c3", "x"), usage(6, 20, 10), call(6, "c4")])
    assert steps(records) == [1, 1, 2, 2]


def test_a_persons_message_begins_a_new_step(read: Reader) -> None:
    """What follows a message is never part of the response before it."""
    records, _ = read([meta(), call(1, "c1"), says(2, "more"), event(2, "user_message", message="more"), call(3, "c2")])
    assert steps(records) == [1, 2]


def test_outputs_without_their_call_are_told_once(read: Reader) -> None:
    """A fork's or torn log's outputs may answer calls written elsewhere; that is a note, not a silent loss."""
    records, count = read([meta(), says(0, "<environment_context/>"), answer(1, "c1", "x"), answer(2, "c2", "y")])
    assert of(records, "result") == []
    assert count.notes == ["2 tool outputs belong to calls that this file does not hold"]


def test_an_error_that_ends_its_turn_is_told_once(read: Reader) -> None:
    """The error event and the turn's end speak of the same failure; the next turn's failure is another."""
    failure = {"message": "quota", "codex_error_info": {"http": 429}}
    turn = [event(1, "task_started", turn_id=TURN), event(2, "error", **failure), event(3, "task_complete", error=failure)]
    records, _ = read([meta(), *turn, *turn])
    assert [record["data"]["type"] for record in of(records, "error")] == [{"http": 429}] * 2
    assert [record["data"]["reason"] for record in of(records, "turn_end")] == ["failed", "failed"]


def test_agents_messages_to_each_other_are_nudges(read: Reader) -> None:
    """What another agent wrote resets nothing, and its two copies are one."""
    body = {"author": "root", "recipient": "worker", "content": [{"type": "input_text", "text": "go on"}]}
    records, count = read([meta(), item(1, "agent_message", **body), line(1, "inter_agent_communication", **body)])
    (nudge,) = of(records, "nudge")
    assert nudge["data"] == {"text": "go on", "origin": "agent", "role": "agent", "author": "root", "recipient": "worker"}
    assert (count.user_messages, count.harness_messages) == (0, 0)

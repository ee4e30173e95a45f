"""The Codex importer on handwritten logs: what the live ones do not show of each era."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ctxmgr.importers.codex import CODEX
from ctxmgr.types.import_report import FileCount
from tests.importers.codex_lines import (
    THREAD,
    TURN,
    Reader,
    answer,
    at,
    call,
    event,
    item,
    line,
    meta,
    of,
    says,
)


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
    records = list(CODEX.read([path], counts))
    assert CODEX.sniff(path, path.read_bytes())
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

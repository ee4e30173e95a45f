"""Codex's logs of every era: their record types, how to open them, and the content of their first lines."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, cast

from ctxmgr.importers.log_files import open_log, plain_name
from ctxmgr.importers.values import clean, decoder, join_texts, mapping, sequence, text, title
from ctxmgr.log.codec import MAX_LINE
from ctxmgr.log.foreign_jsonl import Line, Report, read_objects
from ctxmgr.text.patterns import word_set

TOP_LEVEL = word_set(
    "session_meta response_item event_msg turn_context compacted world_state token_usage_record"
    " inter_agent_communication inter_agent_communication_metadata"
)

CALLS = {
    "function_call": None,
    "custom_tool_call": None,
    "local_shell_call": "local_shell",
    "web_search_call": "web_search",
    "tool_search_call": "tool_search",
    "image_generation_call": "image_generation",
    "mcp_call": None,
}
"""Item type of a tool call -> name of the tool if the item has none."""

COMPACTIONS = frozenset(("compaction", "compaction_summary", "context_compaction", "compaction_trigger"))

ITEMS = (
    frozenset(("message", "reasoning", "agent_message", "ghost_snapshot", "other", "additional_tools"))
    | COMPACTIONS
    | frozenset(CALLS)
    | word_set(
        "function_call_output custom_tool_call_output local_shell_call_output tool_search_output"
        " mcp_tool_call_output mcp_call_output computer_call_output"
    )
)

EVENTS = word_set(
    # spoken
    "user_message agent_message agent_message_delta agent_message_content_delta agent_reasoning agent_reasoning_delta"
    " agent_reasoning_raw_content agent_reasoning_raw_content_delta agent_reasoning_section_break"
    " reasoning_content_delta reasoning_raw_content_delta"
    # turns
    " task_started turn_started task_complete turn_complete turn_aborted turn_diff token_count plan_update plan_delta"
    " thread_rolled_back thread_name_updated thread_settings_applied thread_goal_updated session_configured"
    " context_compacted entered_review_mode exited_review_mode undo_started undo_completed shutdown_complete"
    # tools
    " item_started item_updated item_completed exec_command_begin exec_command_end exec_command_output_delta"
    " terminal_interaction patch_apply_begin patch_apply_updated patch_apply_end mcp_tool_call_begin"
    " mcp_tool_call_end dynamic_tool_call_request dynamic_tool_call_response web_search_begin web_search_end"
    " image_generation_begin image_generation_end view_image_tool_call hook_started hook_completed raw_response_item"
    " collab_agent_spawn_begin collab_agent_spawn_end collab_agent_interaction_begin collab_agent_interaction_end"
    " collab_waiting_begin collab_waiting_end collab_close_begin collab_close_end collab_resume_begin"
    " collab_resume_end sub_agent_activity"
    # asked of a person
    " exec_approval_request apply_patch_approval_request request_user_input request_permissions elicitation_request"
    " guardian_assessment guardian_warning"
    # told
    " error stream_error warning deprecation_notice background_event model_reroute model_verification"
    " mcp_startup_update mcp_startup_complete mcp_list_tools_response list_custom_prompts_response"
    " list_skills_response skills_update_available get_history_entry_response conversation_path"
    " realtime_conversation_started realtime_conversation_realtime realtime_conversation_closed"
)

TURN_ITEMS = word_set(
    "UserMessage AgentMessage Reasoning CommandExecution FileChange Plan McpToolCall DynamicToolCall CollabToolCall"
    " CollabAgentToolCall WebSearch ImageView ImageGeneration EnteredReviewMode ExitedReviewMode ContextCompaction"
    " HookPrompt SubAgentActivity Sleep"
)

QUESTIONS = word_set(
    "exec_approval_request apply_patch_approval_request request_user_input request_permissions elicitation_request"
)
"""Events after which Codex waits for a person."""

EXEC_TYPES = word_set("thread.started turn.started turn.completed turn.failed item.started item.updated item.completed error")

EXEC_ITEMS = word_set(
    "agent_message reasoning command_execution file_change mcp_tool_call web_search todo_list error collab_tool_call"
)

ROLLOUT_NAME = re.compile(
    r"rollout-.*?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.json(?:l(?:\.(?:zst|gz|xz|bz2))?)?\Z",
    re.IGNORECASE,
)


SINGLE_OBJECT = re.compile(rb'\s*\{\s*"session"\s*:\s*\{')
"""Beginning of a rollout by the TypeScript CLI (April and May 2025): one object ``{session, items}``."""

_MAX_HEAD_LINES = 60
"""Maximum number of lines to search for a person's words, the title. Instructions and contexts come before them."""
_HARNESS_TAGS = word_set(
    "environment_context user_instructions turn_aborted permissions_instructions skills_instructions instructions"
    " tools skill user_shell_command subagent_notification collaboration_mode personality_spec model_switch"
    " hook_prompt apps_instructions plugins_instructions environments_instructions context_window_guidance"
    " multi_agent_mode codex_internal_context recommended_plugins goal_context persistent_mode agents_md"
    " user_action"
)
# Bounded, because a person's text may begin with ``<`` too and have megabytes.
_TAG = re.compile(r"<([A-Za-z][\w .-]{0,60}?)(?:\s[^<>]{0,200})?/?>")


def read_log(path: Path, report: Report) -> Iterator[Line]:
    """Yield the objects of a log in order; report damage to ``report``.

    Items of a single-object rollout are numbered as lines from 2 on. Line 1 is its header.

    Raises:
        OSError: the file can't be read.
    """
    with open_log(path, report) as stream:
        if SINGLE_OBJECT.match(stream.peek(256)):
            yield from _single(stream, report)
        else:
            yield from read_objects(cast("IO[bytes]", stream), report, decode=decoder())


def _single(stream: io.BufferedReader, report: Report) -> Iterator[Line]:
    raw = stream.read(MAX_LINE + 1)
    if len(raw) > MAX_LINE:
        report(0, len(raw), f"object is longer than the limit of {MAX_LINE:,} bytes")
        return
    try:
        document: object = json.loads(raw)
    except (ValueError, RecursionError):
        report(0, len(raw), "torn or unreadable JSON")
        return
    content = mapping(document)
    yield Line(1, mapping(content.get("session")))
    items: object = content.get("items")
    if not isinstance(items, list):
        return
    for number, item in enumerate(cast("list[Any]", items), 2):
        if isinstance(item, dict):
            yield Line(number, cast("dict[str, Any]", item))
        else:
            report(0, 0, f"item {number - 1} is not an object")


@dataclass(slots=True)
class Head:
    """The facts in the first lines of a log.

    Attributes:
        thread: id of the thread; from the file name if the first line is unreadable.
        root: ``session_id`` if it names another thread, to whose session this one belongs.
        parent: the thread that started this one; forked_from: the thread whose history it continues.
        fork_point: {thread, ordinal?, byteOffset?}; by_reference: the history before it is not in this file.
        sub_agent: whether a sub-agent wrote the log.
        title: the first words of a person, one line of at most 80 characters.
    """

    thread: str
    shape: Literal["rollout", "exec"] = "rollout"
    root: str | None = None
    parent: str | None = None
    forked_from: str | None = None
    fork_point: dict[str, Any] | None = None
    sub_agent: bool = False
    nickname: str | None = None
    role: str | None = None
    version: str = ""
    cwd: str | None = None
    git: dict[str, Any] = field(default_factory=lambda: dict[str, Any]())
    originator: str | None = None
    model: str | None = None
    started: str | None = None
    title: str | None = None

    @property
    def agent(self) -> str:
        """Name of the agent: ``main``, or a sub-agent's name with the start of its thread id.

        Ids are UUIDv7, so threads started within a minute share their first 8 digits. An agent without a nickname therefore
        gets the last 4 digits too.
        """
        if not self.sub_agent:
            return "main"
        short = self.thread[:8] if self.nickname else f"{self.thread[:8]}-{self.thread[-4:]}"
        return f"{self.nickname or self.role or 'agent'}-{short}"


def read_head(path: Path) -> Head:
    """Return the head of a log. Without facts in the log, the file name gives its name.

    Raises:
        OSError: the file can't be read.
    """
    named = ROLLOUT_NAME.search(path.name)
    name_id = named[1].lower() if named else None
    head = Head(thread=name_id or plain_name(path).rsplit(".", 1)[0] or path.name)
    _fill(head, _first_lines(path), name_id)
    return head


def read_meta(head: Head, payload: dict[str, Any]) -> None:
    """Set the facts of a ``session_meta`` payload, or of the header line before 0.32."""
    source = mapping(payload.get("source"))
    child: object = source.get("subagent", source.get("sub_agent"))
    spawn = mapping(mapping(child).get("thread_spawn")) or mapping(child)
    head.parent = text(payload.get("parent_thread_id")) or text(spawn.get("parent_thread_id"))
    # The place differs between versions: the parent thread, ``source`` or ``thread_source``.
    head.sub_agent = bool(head.parent or child or text(payload.get("thread_source")) == "subagent")
    head.nickname = text(payload.get("agent_nickname")) or text(spawn.get("agent_nickname"))
    head.role = text(payload.get("agent_role")) or text(spawn.get("agent_role")) or text(child) or text(spawn.get("other"))
    root = text(payload.get("session_id"))
    head.root = root if root != head.thread else None
    base = mapping(payload.get("history_base"))
    head.forked_from = text(payload.get("forked_from_id")) or text(base.get("thread_id"))
    if head.forked_from and base:
        head.fork_point = {
            "thread": text(base.get("thread_id")) or head.forked_from,
            "ordinal": clean(base.get("end_ordinal_exclusive")),
            "byteOffset": clean(base.get("end_byte_offset")),
        }
    head.version = text(payload.get("cli_version")) or ""
    head.cwd = text(payload.get("cwd"))
    head.originator = text(payload.get("originator"))
    head.git = {key: value for key, value in mapping(clean(payload.get("git"))).items() if value is not None}


def user_title(value: dict[str, Any]) -> tuple[str | None, bool]:
    """Return (the user's words in a log line, or None; whether the line proves who wrote them)."""
    payload = mapping(value.get("payload")) or value
    kind = payload.get("type")
    if kind == "user_message":
        return text(payload.get("message")), True
    item = mapping(payload.get("item"))
    if kind == "item_completed" and item.get("type") == "UserMessage":
        return join_texts(item.get("content")), True
    if kind in ("message", None) and payload.get("role") == "user":
        words = join_texts(payload.get("content"))
        parts = sequence(mapping(payload.get("internal_chat_message_metadata_passthrough")).get("content_item_metadata"))
        marks = {text(mapping(mapping(part).get("provenance")).get("type")) for part in parts}
        if "user" in marks:
            return words, True
        if not marks - {None, "unknown"} and not harness_origin(words) and not looks_generated(words):
            return words, False
    return None, False


def _first_lines(path: Path) -> Iterator[Line]:
    def ignore(offset: int, length: int, reason: str) -> None:
        """Ignore damage, because reading the whole file reports it."""

    for count, line in enumerate(read_log(path, ignore)):
        yield line
        if count >= _MAX_HEAD_LINES:
            return


def _fill(head: Head, lines: Iterator[Line], name_id: str | None) -> None:
    described, guess = False, None
    for place, line in enumerate(lines):
        value = line.value
        payload = mapping(value.get("payload"))
        if place == 0 and text(value.get("thread_id")) and value.get("type") == "thread.started":
            head.thread, head.shape = value["thread_id"], "exec"
            return
        if value.get("type") in ("turn.started", "item.started", "item.completed") and not payload:
            head.shape = "exec"
            return
        meta = payload if value.get("type") == "session_meta" else {}
        # Before 0.32, the header was a bare object.
        if place == 0 and "type" not in value and "record_type" not in value and text(value.get("id")):
            meta = value
        own = text(meta.get("id")) or text(meta.get("session_id"))
        # Old forks have a second header, that of the original. The file name shows which one is their own.
        if not described and own and (line.number == 1 or name_id in (None, own)):
            head.thread, described = own, True
            read_meta(head, meta)
            head.started = text(meta.get("timestamp")) or text(value.get("timestamp"))
        words, certain = user_title(value)
        line_of_words = title(words) if words and not harness_origin(words) else None
        if line_of_words and certain:
            head.title = line_of_words
            return
        guess = guess or line_of_words
    head.title = guess


def harness_origin(words: str) -> str | None:
    """Return the kind of a text with role user that a program wrote, by its beginning; else None."""
    start = words.lstrip()
    if start.startswith("# AGENTS.md instructions"):
        return "agents_md"
    match = _TAG.match(start)
    if match is None:
        return None
    # ``<permissions instructions>`` is known by all its words, ``<skill name="a">`` by its first word.
    whole_tag = start[1 : start.index(">")].strip(" /").replace(" ", "_").lower()
    for name in (whole_tag, match[1].replace(" ", "_").lower()):
        if name in _HARNESS_TAGS:
            return name
    return None


def looks_generated(words: str) -> bool:
    """Whether a text is one element with a snake-case tag, as Codex writes its own additions."""
    start = words.strip()
    match = _TAG.match(start)
    return bool(match and "_" in match[1] and start.endswith(f"</{match[1]}>"))

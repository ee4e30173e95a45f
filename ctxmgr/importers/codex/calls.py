"""Read tool calls: one entry per call, and one result from whichever record has it, in the form of every era."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ctxmgr.importers.codex.head import CALLS
from ctxmgr.importers.codex.thread import Item, Thread
from ctxmgr.importers.values import clean, integer, join_texts, mapping, milliseconds, number, parse_json, sequence, text
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.plain_records import MAX_TIMEOUT_MS

_LIMITS = ("timeout_ms", "timeout")
# Tools that the model provider runs. Their item is both call and result.
_HOSTED_CALLS = frozenset(("web_search_call", "image_generation_call"))
_UNFINISHED = frozenset(("in_progress", "searching", "generating"))
# Limit of facts about calls without an item, because a log without any items must not collect them without end.
_MAX_EARLY_FACTS = 64

_COMMANDS = {"exec_command_begin": "exec_command", "exec_command_end": "exec_command",
             "patch_apply_begin": "apply_patch", "patch_apply_end": "apply_patch",
             "CommandExecution": "exec_command", "FileChange": "apply_patch"}  # fmt: skip
_TOOLS = frozenset(("mcp_tool_call_begin", "mcp_tool_call_end", "McpToolCall",
                    "dynamic_tool_call_request", "dynamic_tool_call_response", "DynamicToolCall"))  # fmt: skip

EVENTS = frozenset(_COMMANDS) | _TOOLS
"""Events and turn items that report a tool call."""


@dataclass(slots=True)
class Facts:
    """Facts from events about a call, before its output item."""

    status: str | None = None
    exit_code: int | None = None
    duration_ms: float | None = None
    output: Any = None
    error: str | None = None


_NO_FACTS = Facts()


@dataclass(slots=True)
class Outcome:
    """The end of a call. ``error`` is None exactly if ``status`` is ok."""

    status: str = "ok"
    output: Any = None
    error: dict[str, Any] | None = None
    duration_ms: float | None = None
    meta: dict[str, Any] = field(default_factory=dict[str, Any])

    def fail(self, status: str, kind: str, message: str) -> Outcome:
        """Set a failure with the first lines of its message."""
        self.status, self.error = status, {"type": kind, "message": message.strip()[:_MAX_MESSAGE]}
        return self


@dataclass(slots=True)
class Calls:
    """The calls of one thread, reported by items and events.

    Attributes:
        facts: facts from events about open calls, and about calls whose item has not come yet.
        from_events: ids of calls that an event reported first.
    """

    thread: Thread
    facts: dict[str, Facts] = field(default_factory=lambda: dict[str, Facts]())
    from_events: set[str] = field(default_factory=lambda: set[str]())

    def call(self, item: Item, kind: str) -> None:
        """Read a call item."""
        payload = item.payload
        call_id = text(payload.get("call_id")) or text(payload.get("id"))
        entry_id = self.thread.call_entry_id(item, payload.get("id"), payload.get("call_id"))
        if entry_id is None or call_id in self.from_events:
            return
        action = text(payload.get("name")) or CALLS.get(kind) or kind
        key = call_id or entry_id
        # Local servers reuse ``call_0``, so facts under such an id belong to an earlier call.
        if key in self.thread.calls:
            self.facts.pop(key, None)
        self.entry(item, entry_id, (call_id, action, kind, _read_input(payload, kind)))
        status = text(payload.get("status"))
        # The provider ran the tool, so the call item has its result and no output follows.
        if kind in _HOSTED_CALLS or (kind == "tool_search_call" and payload.get("execution") == "server"):
            if status in _UNFINISHED:
                self.thread.abandon(key)
                return
            outcome = Outcome()
            if status in ("failed", "incomplete"):
                outcome.fail("error", "toolError", f"{action} {status}")
            if text(payload.get("result")):
                outcome.output = f"<{len(payload['result']):,} characters>"
            self.result(item, key, outcome)

    def output(self, item: Item) -> None:
        """Read an output item. If its call is unknown or already has a result, ignore it."""
        self.thread.output_came()
        call_id = text(item.payload.get("call_id")) or text(item.payload.get("id")) or ""
        facts = self.facts.pop(call_id, None) if call_id in self.thread.waiting else None
        self.result(item, call_id, read_output(item.payload, facts))

    def event(self, item: Item, kind: str, body: dict[str, Any], call_id: object) -> None:
        """Read an event about a call: facts for its result or, in a log without items, the call itself."""
        key, thread = text(call_id), self.thread
        if key is None or (thread.items_seen and key in thread.calls and key not in thread.waiting):
            return
        facts = None
        if not kind.endswith(("_begin", "_request")):
            facts = facts_of_command(body) if kind in _COMMANDS else facts_of_tool(body)
        if thread.items_seen:
            # The text comes with the output item. Only the event has exit code and duration.
            if facts is not None and (key in thread.waiting or len(self.facts) < _MAX_EARLY_FACTS):
                self.facts[key] = facts
            return
        if key not in thread.waiting:
            entry_id = thread.call_entry_id(item, None, key)
            if entry_id is None:
                return
            self.entry(item, entry_id, (key, *_describe_call(kind, body)))
            self.from_events.add(key)
        if facts is not None:
            self.result(item, key, from_facts(facts))
            thread.output_came()

    def turn_over(self, item: Item, aborted: bool) -> None:
        """End a turn. Calls that only events report end with it, and an abort ends every open call."""
        for key in list(self.thread.waiting):
            if (facts := self.facts.get(key)) is not None:
                self.result(item, key, from_facts(facts))
            elif aborted:
                self.result(item, key, Outcome().fail("interrupted", "interrupted", "the turn was aborted"))
        self.facts.clear()

    def entry(self, item: Item, entry_id: str, what: tuple[str | None, str, str, Any]) -> None:
        """Add the entry of a call. ``what`` is (call id, action, input type, input)."""
        thread = self.thread
        call_id, action, kind, given = what
        namespace = text(item.payload.get("namespace"))
        if namespace and not action.startswith(f"{namespace}."):
            action = f"{namespace}.{action}"
        thread.rounds[-1].append(entry_id)
        thread.step = thread.spoke(item)
        thread.call(
            call_id, action, given, item.at, record_id=entry_id, input_type=kind, turn=item.turn, timeout_ms=_time_limit(given),
        )  # fmt: skip

    def result(self, item: Item, call_id: str, found: Outcome) -> None:
        """Add the result of an open call."""
        self.thread.result(
            call_id,
            found.output,
            item.at,
            status=found.status,
            stated=found.error,
            duration_ms=found.duration_ms,
            meta=found.meta,
        )


def _read_input(payload: dict[str, Any], kind: str) -> Any:
    for key in ("arguments", "input", "action"):
        if payload.get(key) is not None:
            value: object = payload[key]
            return value if kind == "custom_tool_call" and isinstance(value, str) else parse_json(value)
    prompt = text(payload.get("revised_prompt")) or text(payload.get("query"))
    return {"prompt": prompt} if prompt else None


def _describe_call(kind: str, body: dict[str, Any]) -> tuple[str, str, Any]:
    """Return (action, input type, input) of a call from an event about it."""
    if kind in _COMMANDS:
        keys = ("command", "cwd", "changes")
        return _COMMANDS[kind], kind, clean({key: body[key] for key in keys if body.get(key) is not None})
    invocation = mapping(body.get("invocation")) or body
    names = [text(invocation.get(key)) for key in ("server", "namespace", "tool")]
    return ".".join(name for name in names if name) or kind, kind, parse_json(invocation.get("arguments"))


def _time_limit(given: Any) -> float | None:
    if isinstance(given, dict):
        for key in _LIMITS:
            if key in given and (limit := number(given[key])) is not None and 0 < limit <= MAX_TIMEOUT_MS:  # pyright: ignore[reportUnknownArgumentType], a cast would be a call
                return limit
    return None


# The result of a tool: output, status, exit code and duration.

# Lines that versions of `exec_command` put before the output. Each is optional, and ``Output:`` ends them.
_HEADER = lazy_pattern(
    r"(?:Chunk ID: \S{1,64}"
    r"|Wall time: (?P<wall>\d{1,12}(?:\.\d{1,12})?) ?s(?:econds?)?"
    r"|(?:Exit code:|Process exited with code) (?P<code>-?\d{1,18})"
    r"|Process running with session ID (?P<running>\S{1,64})"
    r"|Original token count: \d{1,18}"
    r"|Total output lines: \d{1,18}"
    r"|(?P<body>Output:))(?:\n|\Z)"
)
# The complete text, because output that only begins with this word is no abort.
_ABORTED = lazy_pattern(r"aborted(?: by user(?: after [\d.]+ ?s(?:econds)?)?)?\.?\s*\Z")
_DENIED = lazy_pattern(
    r"(?:exec command |patch |apply_patch )?rejected by user|patch rejected|command rejected by user"
    r"|user (?:rejected|cancelled|denied) |approval policy is Never; reject command|rejected: "
    r"|this action was rejected|exec(?:ution)? (?:denied|forbidden)|request (?:was )?denied",
    re.IGNORECASE,
)
# Codex has no flag for a call of an unknown tool. Its output is ``unsupported call: NAME``.
_UNKNOWN = lazy_pattern(r"unsupported (?:custom tool )?call: ")
_FAILED = lazy_pattern(
    r"apply_patch verification failed|failed to parse (?:function )?arguments|execution error: |exec_command failed"
    r"|write_stdin failed|failed in sandbox|sandbox (?:error|denied)|tool call error: |tool call failed"
    r"|failed to (?:spawn|apply patch|execute)|Err: |CreateProcess "
)
_TIMED_OUT = lazy_pattern(r"command timed out after \d+")
_MAX_MESSAGE = 500


def read_output(payload: dict[str, Any], facts: Facts | None) -> Outcome:
    """Return the outcome from an output item, and from earlier events about the call."""
    facts = facts or _NO_FACTS
    raw: object = payload.get("output", payload.get("tools"))
    success: object = payload.get("success")
    body = mapping(raw)
    if "content" in body and "metadata" not in body:
        success = body.get("success", success)
        raw = body["content"]
    words = raw if isinstance(raw, str) else join_texts(raw) or None
    outcome = Outcome(duration_ms=facts.duration_ms)
    exit_code = facts.exit_code
    if words is None:
        outcome.output = _drop_pictures(clean(raw))
        exit_code = _facts_from_json(body, outcome, exit_code)
    else:
        exit_code = _facts_from_text(words, outcome, exit_code)
    if exit_code is not None:
        outcome.meta["exitCode"] = exit_code
    _set_status(outcome, exit_code, facts, success is False or payload.get("status") == "failed")
    return outcome


def from_facts(facts: Facts) -> Outcome:
    """Return the outcome of a call that only events report."""
    outcome = Outcome(output=facts.output, duration_ms=facts.duration_ms)
    if facts.exit_code is not None:
        outcome.meta["exitCode"] = facts.exit_code
    _set_status(outcome, facts.exit_code, facts, False)
    return outcome


def _facts_from_text(words: str, outcome: Outcome, exit_code: int | None) -> int | None:
    outcome.output = words
    # Parsed only if it may be a wrapper. JSON that a command printed stays text.
    if words.startswith("{") and ('"metadata"' in words or '"isError"' in words or '"is_error"' in words):
        body = mapping(parse_json(words))
        if body:
            return _facts_from_json(body, outcome, exit_code)
    at = 0
    headers: dict[str | None, str] = {}
    while "body" not in headers and (match := _HEADER.match(words, at)):
        at = match.end()
        headers[match.lastgroup] = match[match.lastindex or 0]
    if not at:
        return exit_code
    rest = words[at:]
    # Lines that look like headers count only if the headers end properly. Otherwise they are output.
    if "body" in headers or _ABORTED.match(rest) or rest.startswith("["):
        outcome.output = rest
        if "wall" in headers and outcome.duration_ms is None:
            outcome.duration_ms = milliseconds(float(headers["wall"]))
        if "running" in headers:
            outcome.meta["running"] = headers["running"]
        if "code" in headers:
            return int(headers["code"])
    return exit_code


def _facts_from_json(body: dict[str, Any], outcome: Outcome, exit_code: int | None) -> int | None:
    details = mapping(body.get("metadata"))
    if "output" in body and details:
        outcome.output = _drop_pictures(clean(body["output"]))
        found = milliseconds(details.get("duration_seconds"))
        if found is not None and outcome.duration_ms is None:
            outcome.duration_ms = found
        code = integer(details.get("exit_code"))
        return exit_code if code is None else code
    if body.get("isError") is True or body.get("is_error") is True:
        message = join_texts(body.get("content")) or "the tool reported an error"
        outcome.fail("error", "toolError", message)
    return exit_code


def _set_status(outcome: Outcome, exit_code: int | None, facts: Facts, failed: bool) -> None:
    """Decide the status: by an abort or refusal first, then by exit code, words of the tool, and flags."""
    if outcome.error is not None or (exit_code == 0 and facts.status is None):
        return
    words = outcome.output if isinstance(outcome.output, str) else ""
    start = words.lstrip()[:300]
    if facts.status in ("aborted", "interrupted") or (exit_code in (None, -1) and _ABORTED.match(start)):
        outcome.fail("interrupted", "interrupted", start or "aborted")
    elif facts.status == "declined" or (exit_code is None and _DENIED.match(start)):
        outcome.fail("denied", "denied", start or "declined")
    elif exit_code is None and _UNKNOWN.match(start):
        outcome.fail("error", "unknownTool", start)
    elif exit_code != 0 and _TIMED_OUT.match(start):
        outcome.fail("error", "timeout", start.partition("\n")[0])
    elif exit_code:
        outcome.fail("error", "exitCode", f"exit code {exit_code}")
    elif exit_code == 0:
        return
    elif _FAILED.match(start):
        outcome.fail("error", "toolError", words)
    elif failed or facts.error is not None or facts.status == "failed":
        outcome.fail("error", "toolError", facts.error or words or "the tool reported a failure")


def _drop_pictures(value: Any) -> Any:
    """Replace the bytes of pictures in content parts by their length, because pictures can't be searched."""
    content = sequence(value)
    if not content:
        return value
    parts: list[Any] = []
    for part in content:
        body = mapping(part)
        picture = text(body.get("image_url"))
        # Short links stay. Only pictures as ``data:`` URLs have thousands of characters.
        parts.append({**body, "image_url": f"<{len(picture):,} characters>"} if picture and len(picture) > 500 else part)
    return parts


def facts_of_command(body: dict[str, Any]) -> Facts:
    """Return the facts in ``exec_command_end``, ``CommandExecution``, ``patch_apply_end`` or ``FileChange``."""
    output = text(body.get("aggregated_output"))
    if output is None:
        output = (text(body.get("stdout")) or "") + (text(body.get("stderr")) or "")
    status = text(body.get("status"))
    if body.get("success") is False:
        status = "failed"
    return Facts(status, integer(body.get("exit_code")), milliseconds(body.get("duration")), output)


def facts_of_tool(body: dict[str, Any]) -> Facts:
    """Return the facts in ``mcp_tool_call_end``, ``dynamic_tool_call_response`` and their turn items."""
    result = mapping(body.get("result"))
    answer = mapping(result.get("Ok")) or result
    content: object = answer.get("content", body.get("content_items"))
    said = join_texts(content) or _drop_pictures(clean(content))
    error = text(result.get("Err")) or text(body.get("error")) or text(mapping(body.get("error")).get("message"))
    failed = answer.get("isError") is True or answer.get("is_error") is True or body.get("success") is False
    status = "failed" if failed or error else text(body.get("status"))
    length = milliseconds(body.get("duration"))
    if length is None:
        length = number(body.get("duration_ms"))
    return Facts(status, None, length, said if said is not None else error, error)

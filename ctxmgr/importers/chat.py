"""Read one chat message of any common form: OpenAI's, Anthropic's, LangChain's, OpenTelemetry's, and mixtures of them.

A message has a role and content (a text or parts). Calls and results, beside or inside the content, refer to each other by id.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ctxmgr.importers.transcript import Transcript
from ctxmgr.importers.values import clean, integer, mapping, parse_json, sequence, text
from ctxmgr.text.patterns import lazy_pattern

PEOPLE = frozenset(("user", "human"))
MODELS = frozenset(("assistant", "ai", "model", "agent"))
TOOLS = frozenset(("tool", "toolresult", "function", "tool_result", "ipython"))
HARNESS = frozenset(("system", "developer"))
ROLES = PEOPLE | MODELS | TOOLS | HARNESS

CALL_PARTS = frozenset(("tool_use", "toolCall", "tool_call", "tool-call", "server_tool_use", "function_call", "functionCall"))
RESULT_PARTS = frozenset(("tool_result", "tool_call_response", "tool-result", "function_call_output", "toolResult"))
_CALLS, _RESULTS = ("functionCall", "toolUse"), ("functionResponse", "toolResult")
"""Names under which a part without a type holds its call or its result."""

_CALL_IDS, _RESULT_IDS = (
    ("id", "call_id", "toolCallId", "toolUseId"),
    ("tool_call_id", "toolCallId", "tool_use_id", "call_id", "toolUseId"),
)
_ITEMS = frozenset(("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output", "reasoning"))
_INPUTS, _OUTPUTS = ("arguments", "input", "action", "operation", "code", "queries"), ("output", "outputs", "results")
"""Names under which items of the Responses API hold a tool's input, and the output of the provider's own tools."""

_THOUGHTS = frozenset(("thinking", "reasoning", "thought", "redacted_thinking"))

# Texts that programs write with the role of a user: reminders and contexts by their tags, guards by their words.
_HARNESS_TEXT = lazy_pattern(
    r"\s*(?:<(system-reminder|environment_context|environment_details|session_context|system_message|hook_context"
    r"|user_instructions|INSTRUCTIONS|EXTRA_INFO|state_snapshot|notification|explicit_instructions|summary|conversation_summary)[\s>]"
    r"|(System: Potential loop detected|\[SYSTEM|Loop detection halted|\[Context: conversation summarized))"
)
# Cline puts a person's words between tags: ``<user_input mode="act">Do it</user_input>``. Only a complete text is
# unwrapped, because a person may quote such a tag. The patterns end with the opening tag: searching the closing tag with
# a pattern would take quadratic time.
_WRAPPER = lazy_pattern(r"\s*<(user_input|task|feedback|answer|user_message)(?: [^<>]*)?>")
# Notices by Cline inside a person's words: ``<mode_notice>You are in act mode</mode_notice>``.
_DETAILS = lazy_pattern(r"<(environment_details|mode_notice)(?: [^<>]*)?>")
# Only on a line of its own: a text that quotes these words has them inside a line.
_EXIT = lazy_pattern(
    r"^(?:\[?(?:Command|Process) exited with (?:code|exit code) |Exit [Cc]ode: |exit code: )(-?\d{1,9})\b", re.MULTILINE
)
# Prefixes that clients put before such words: Gemini CLI ``[Operation Cancelled] Reason: ``, others ``Error: `` or
# ``PermissionRejectedError: ``, also several in a row.
_FIRST = r"\s*(?:\[Operation Cancelled\] (?:Reason: )?|(?:\w{0,60}Error: ){1,2})?(?:the |this )?"
_DENIED = lazy_pattern(
    _FIRST + r"(?:(?:user|operator) (?:has )?(?:rejected|denied|declined|did(?: not|n't) (?:approve|allow)|doesn't want"
    r"|specified a rule which prevents)|permission (?:was )?denied by (?:the )?user"
    r"|(?:denied|rejected|declined) by (?:the )?user"
    r"|tool (?:call|use|execution) (?:was )?(?:not approved|denied|rejected|blocked)"
    r"|[^\n]{1,100} requires permission to use [^\n]{1,200} but that permission was declined)",
    re.IGNORECASE,
)
# The words after the verb distinguish an abort from similar output: ``transaction aborted: deadlock detected`` is a
# failure, ``Tool execution was cancelled because …`` an abort.
_ABORTED = lazy_pattern(
    _FIRST + r"(?:user (?:has )?(?:cancell?ed|aborted|interrupted)|skipped due to queued user message"
    r"|(?:tool|command|operation|request|task)(?: call| use| execution)? (?:was )?(?:aborted|cancell?ed|interrupted)"
    r"(?=\s*\Z|[.,:;]| (?:by|because|due|after|before)\b)"
    r"|(?:aborted|cancell?ed|interrupted)(?: by (?:the )?user)?(?: after [\d.]+ ?s(?:econds)?)?\.?\s*\Z)",
    re.IGNORECASE,
)
_STATUS_OF_TYPE = {
    "text": "ok",
    "json": "ok",
    "content": "ok",
    "error-text": "error",
    "error-json": "error",
    "execution-denied": "denied",
}
"""Type of a call's output -> status, for clients that state the status in this way (the AI SDK)."""

# pi appends these words to the output so far, so they count only at the end of a text.
_STOPPED = lazy_pattern(r"\n(?:Command|Operation) aborted\.?\s*\Z")
_MAX_REFUSAL = 2_000
"""Maximum length of a refusal or an abort in characters. A longer text is output with a similar beginning."""
_SDK_ERROR = lazy_pattern(r"An error occurred while (?:running the tool|parsing tool arguments)\b")
"""Text that the OpenAI Agents SDK returns for a tool that raised. Nothing else marks such a failure."""


def message_role(message: Mapping[str, Any]) -> str:
    """Return the role of a message in lower case. LangChain calls it type."""
    found = text(message.get("role")) or text(message.get("type")) or ""
    return found.lower()


def is_message(value: object) -> bool:
    """Whether a value is a chat message, with a known role and with content or calls."""
    message = mapping(value)
    if (text(message.get("role")) or "").lower() not in ROLES:
        return False
    content = message.get("content", message.get("parts"))
    # Older messages by OpenAI have ``"content": null`` beside a ``function_call``.
    return isinstance(content, str | list) or bool(sequence(message.get("tool_calls"))) or "content" in message


def read_message(
    t: Transcript, message: Mapping[str, Any], at: object = None, record_id: object = None, *, response: object = None
) -> None:
    """Add the words, calls and results of a message.

    Args:
        t: the transcript to add to.
        message: message in any of the forms.
        at: time of the message.
        record_id: id of the message, unless the message has one.
        response: id of the model response, if several messages share it.
    """
    role = message_role(message)
    message_id = text(message.get("id")) or text(record_id)
    content = message.get("content", message.get("parts"))
    if role in TOOLS:
        _tool_message(t, message, content, at)
    elif role in MODELS:
        # Calls of one response were issued together, so detection must not take them for successive repetitions.
        t.step = f"{t.part}:{text(response) or message_id or t.place}"
        _add_thoughts(t, message, at)
        _read_parts(t, role, content, at, message_id)
        for call in sequence(message.get("tool_calls")):
            _read_call(t, mapping(call), at)
        if legacy := mapping(message.get("function_call")):
            _read_call(t, legacy, at)
    elif role in PEOPLE:
        _read_parts(t, role, content, at, message_id)
    elif role not in HARNESS:
        t.count.unknown[f"role {role[:60]}" if role else "message without a role"] += 1


def is_item(value: object) -> bool:
    """Whether a value is an item of OpenAI's Responses API other than a message: a call, its output, a thought."""
    item = mapping(value)
    # Parts of a message may have the type ``reasoning`` too, but neither of these fields.
    return text(item.get("type")) in _ITEMS and ("call_id" in item or "summary" in item)


def read_item(t: Transcript, item: Mapping[str, Any], at: object, response: int) -> int:
    """Add an item of the Responses API. Successive words and calls of the model form one response.

    Args:
        t: the transcript to add to.
        item: a message, a call, its output, a thought.
        at: time of the item.
        response: number of the current response.

    Returns:
        The number of the response for the next item.
    """
    kind, key = text(item.get("type")) or "message", item.get("call_id") or item.get("id")
    if kind == "message":
        read_message(t, item, at, response=f"response{response}")
        return response + (item.get("role") == "user")
    if kind == "reasoning":
        t.add_thought(content_words(item.get("summary")) or content_words(item.get("content")), at, item.get("id"))
    elif kind == "compaction":
        t.event("compaction", {"text": content_words(item.get("summary"))}, at, item.get("id"))
    elif kind.endswith("_call"):
        t.step = f"{t.part}:response{response}"
        given = _first_member(item, _INPUTS)
        # A custom tool takes text. It is not JSON, even if it looks like it.
        given = given if kind == "custom_tool_call" and isinstance(given, str) else parse_json(given)
        t.call(key, item.get("name") or kind.removesuffix("_call"), given, at)
        if "call_id" not in item:  # a tool of the provider, whose result is in the same item
            failed = item.get("error") is not None or item.get("status") in ("failed", "incomplete")
            t.result(key, _first_member(item, _OUTPUTS), at, status="error" if failed else "ok", error=item.get("error"))
    elif kind.endswith("_call_output"):
        shown = item.get("output")
        failed = integer(item.get("exit_code")) not in (None, 0)
        failed = failed or _SDK_ERROR.match(shown if isinstance(shown, str) else content_words(shown)) is not None
        status, output, error = judge_result({"is_error": failed}, shown)
        t.result(key, output, at, status=status, error=error)
        return response + 1
    else:
        t.count.unknown[kind[:60]] += 1
    return response


def _first_member(item: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """Return the first of these fields that exists and is not null."""
    return next((item[name] for name in names if item.get(name) is not None), None)


def content_words(content: object) -> str:
    """Return the words of content: a text, or parts that may have texts."""
    if isinstance(content, str):
        return content
    found = (_part_text(part) for part in sequence(content))
    return "\n".join(words for words in found if words)


def _part_text(part: object) -> str | None:
    if isinstance(part, str):
        return part
    body = mapping(part)
    # OpenTelemetry's text parts have their words in ``content``. In a reasoning part, that field holds a thought.
    return text(body.get("text")) or (text(body.get("content")) if body.get("type") in (None, "text") else None)


def harness_origin(words: str) -> str | None:
    """Return the kind of a text that a program wrote in a person's name, or None if a person may have written it."""
    found = _HARNESS_TEXT.match(words)
    return (found[1] or "program") if found else None


def unwrap(words: str) -> str:
    """Return a person's words without the tags that a program put around them."""
    words = _drop_details(words) if "<environment_details" in words or "<mode_notice" in words else words
    opened = _WRAPPER.match(words)
    inner = words[opened.end() :].rstrip() if opened else ""
    return inner.removesuffix(end).strip() if opened and inner.endswith(end := f"</{opened[1]}>") else words


def _drop_details(words: str) -> str:
    last = {tag: words.rfind(f"</{tag}>") for tag in ("environment_details", "mode_notice")}
    between, begin, at = list[str](), 0, 0
    while opened := _DETAILS.search(words, at):
        at = opened.end()
        # A notice needs a closing tag. Checking this first keeps many opening tags from scanning the rest of the text each.
        if at <= last[opened[1]]:
            between.append(words[begin : opened.start()])
            begin = at = words.find(f"</{opened[1]}>", at) + len(f"</{opened[1]}>")
    if not between:
        return words
    first, *others = between
    return first.rstrip() + "".join(map(str.strip, others)) + words[begin:].lstrip()


def speak(t: Transcript, words: str, at: object, record_id: object, *, pictures: int = 0) -> None:
    """Add text with the role of a user: a person's words, or a program's text in a person's name."""
    origin = harness_origin(words)
    # If a person's words follow a context, remove the context. A context alone is a nudge.
    if (origin is not None and not unwrap(words).strip()) or (origin is not None and unwrap(words) == words):
        t.nudge(words, origin, at, record_id)
    elif words.strip() or pictures:
        t.user(unwrap(words), at, record_id, pictures=pictures)


def _add_thoughts(t: Transcript, message: Mapping[str, Any], at: object) -> None:
    for name in ("reasoning_content", "reasoning", "thinking", "reasoningText"):
        if words := text(message.get(name)):
            t.add_thought(words, at)
            return
    blocks = [mapping(block) for block in sequence(message.get("thinking_blocks"))]
    t.add_thought("\n".join(text(block.get("thinking")) or "" for block in blocks), at)


def _read_parts(t: Transcript, role: str, content: object, at: object, record_id: str | None) -> None:
    """Read the parts of a message. Successive texts form one message."""
    person = role in PEOPLE
    said: list[str] = []
    pictures = 0
    for part in [content] if isinstance(content, str) else sequence(content):
        body = mapping(part)
        kind = text(body.get("type")) or ""
        # Texts before and after a call are separate messages.
        if kind in CALL_PARTS or _first_object(body, _CALLS):
            _add_message(t, person, said, pictures, at, record_id)
            said, pictures = [], 0
            _read_call(t, body, at)
        elif kind in RESULT_PARTS or _first_object(body, _RESULTS):
            _result(t, body, at)
        # Gemini's parts have no type. A thought is marked with ``"thought": true``.
        elif kind in _THOUGHTS or body.get("thought") is True:
            t.add_thought(text(body.get("thinking")) or content_words([body]) or text(body.get("content")) or "", at)
        elif _is_medium(kind) or "inlineData" in body:
            pictures += 1
        elif words := _part_text(part):
            said.append(words)
    _add_message(t, person, said, pictures, at, record_id)


def _add_message(t: Transcript, person: bool, said: list[str], pictures: int, at: object, record_id: str | None) -> None:
    if not person:
        t.message("\n".join(said), at, record_id)
        return
    human: list[str] = []
    for words in said:
        if harness_origin(words) and unwrap(words) in ("", words):
            speak(t, words, at, None)
        else:
            human.append(words)
    if human or pictures:
        speak(t, "\n".join(human), at, record_id, pictures=pictures)


def _first_object(body: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return the first object under one of these names, else an empty one."""
    for name in names:
        if found := mapping(body.get(name)):
            return found
    return {}


def _read_call(t: Transcript, body: Mapping[str, Any], at: object) -> None:
    inner = mapping(body.get("function")) or _first_object(body, _CALLS) or body
    # Inspect has the tool's name under ``function``, where OpenAI has an object with name and arguments.
    name = inner.get("name") or inner.get("toolName") or body.get("tool_name") or text(body.get("function"))
    names = ("arguments", "input", "args", "parameters")
    given = next((inner[key] for key in names if key in inner), None)
    own = next((found for key in _CALL_IDS if (found := text(body.get(key)) or text(inner.get(key)))), None)
    made = t.call(own, name, parse_json(given), at)
    if own is None:  # older forms have no ids of calls; results come in the same order
        t.unnamed.append(made)


def _tool_message(t: Transcript, message: Mapping[str, Any], content: object, at: object) -> None:
    parts = [mapping(part) for part in sequence(content)]
    inner = [part for part in parts if text(part.get("type")) in RESULT_PARTS or _first_object(part, _RESULTS)]
    for part in inner:
        _result(t, part, at)
    if not inner:
        _result(t, message, at)


def _result(t: Transcript, body: Mapping[str, Any], at: object) -> None:
    inner = _first_object(body, _RESULTS) or body
    key = next((found for name in _RESULT_IDS if (found := text(inner.get(name)))), None) or text(inner.get("id"))
    several = sequence(inner.get("tool_call_ids"))
    # Some clients answer several calls with one message that names them all.
    key = key if key in t.calls else (text(several[0]) if several else key)
    if key not in t.calls and t.unnamed and not text(inner.get("tool_call_id")):
        key = t.unnamed.pop(0)
    shown = next((inner[name] for name in ("content", "output", "result", "response") if name in inner), None)
    status, output, error = judge_result(inner, shown)
    extra = mapping(inner.get("extra"))
    t.result(key, output, at, status=status, error=error, kind="exitCode" if extra.get("returncode") else "toolError")


def judge_result(body: Mapping[str, Any], shown: object) -> tuple[str, Any, str | None]:
    """Return (status, output, error) of a result from its fields. An exit code other than 0 is an error.

    Args:
        body: the result, with its flags and codes.
        shown: output of the tool.
    """
    typed = mapping(shown)
    if (ended := _STATUS_OF_TYPE.get(text(typed.get("type")) or "")) and ("value" in typed or ended == "denied"):
        body, shown = {**body, "status": ended}, typed.get("value", typed.get("reason"))
    several = [mapping(item) for item in sequence(shown)]
    if several and all(isinstance(item.get("success"), bool) for item in several):
        return _judge_list(several)
    output = _output(shown)
    words = output if isinstance(output, str) else ""
    body_of = mapping(output) or (mapping(parse_json(words)) if words[:1] == "{" and len(words) < 100_000 else {})
    error = text(body_of.get("error")) or text(mapping(body_of.get("error")).get("message"))
    # Look for a refusal before a failure: clients report both as errors, and only the words distinguish them.
    stated = text(body.get("status"))
    # The AI SDK's types and our own exports state the status, so the output must not overrule it.
    if stated in ("ok", "interrupted"):
        return stated, output, None if stated == "ok" else error or words or None
    said = error or words
    if stated in ("denied", "rejected") or (len(said) < _MAX_REFUSAL and _DENIED.match(said)):
        return "denied", output, words or error
    flags = (body.get("is_error"), body.get("isError"), body.get("error"), body.get("success") is False, stated == "error")
    codes = (
        mapping(body.get("extra")).get("returncode"),
        *(body_of.get(name) for name in ("returncode", "exit_code", "exitCode")),
    )
    failed = any(flag is True for flag in flags) or any(integer(code) not in (None, 0) for code in codes)
    # An object that contains only an error is an error, even without a flag.
    if failed or (body_of and set(body_of) <= {"error"} and error) or body_of.get("success") is False:
        aborted = len(said) < _MAX_REFUSAL and _ABORTED.match(said)
        return (
            "interrupted" if aborted or _STOPPED.search(said, max(0, len(said) - 60)) else "error",
            output,
            error or words or None,
        )
    return "ok", output, None


def _judge_list(items: list[dict[str, Any]]) -> tuple[str, Any, str | None]:
    """Return (status, output, error) of a result of several commands. One failure makes it a failure."""
    output = "\n".join(text(item.get("result")) or text(item.get("error")) or "" for item in items)
    error = next((text(item.get("error")) for item in items if item["success"] is False), None)
    failed = any(item["success"] is False for item in items)
    return "error" if failed else "ok", output, error


def _output(shown: object) -> Any:
    """Return the text if all parts are text, else the JSON without pictures."""
    parts = sequence(shown)
    if parts and all(_part_text(part) is not None for part in parts):
        return content_words(shown)
    return [clean(part) for part in parts if not _is_data(mapping(part))] if parts else clean(shown)


def _is_medium(kind: str) -> bool:
    """Whether parts of this type are pictures, sounds or files."""
    return "image" in kind or "audio" in kind or kind in ("document", "file", "file-data", "blob", "media")


def _is_data(part: dict[str, Any]) -> bool:
    """Whether a part holds the bytes of a picture or another medium. Another record with a field ``data`` does not."""
    return isinstance(part.get("data"), str) and _is_medium(text(part.get("type")) or "")


def exit_code(words: str) -> int | None:
    """Return the exit code that a tool's text states on its own line."""
    found = _EXIT.search(words)
    return int(found[1]) if found else None

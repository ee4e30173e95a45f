"""Turn Claude Code's own records into events: compactions, errors, queued prompts."""

from __future__ import annotations

from typing import Any

from ctxmgr.importers.claude_code.user_text import prompt_words, record_origin, tagged, text_origin
from ctxmgr.importers.claude_code.values import ident, mapping, positive, sequence, text, texts

Told = tuple[str, dict[str, Any]]
"""Type and data of an event."""

_HOOK_ERRORS = {
    "hook_blocking_error": "hookBlocked",
    "hook_non_blocking_error": "hookFailed",
    "hook_error_during_execution": "hookFailed",
    "hook_stopped_continuation": "hookStopped",
}
_MAX_TEXT = 20_000


def system_event(record: dict[str, Any]) -> Told | None:
    """Return what a ``system`` record reports, where that is an error or a compaction."""
    kind = record.get("subtype")
    if kind in ("compact_boundary", "microcompact_boundary"):
        return "compaction", _compaction(record)
    if kind in ("api_error", "api_retry"):
        return "error", _api_error(record)
    if kind == "stop_hook_summary" and (errors := sequence(record.get("hookErrors"))):
        words = "\n".join(text(error) or text(mapping(error).get("message")) for error in errors)
        return "error", {"text": words[:_MAX_TEXT], "reason": "hookFailed"}
    if kind == "hook_response" and record.get("outcome") == "error":
        words = text(record.get("stderr")) or text(record.get("output"))
        return "error", _present(text=words[:_MAX_TEXT], reason="hookFailed", hook=ident(record.get("hook_name")))
    return None


def _compaction(record: dict[str, Any]) -> dict[str, Any]:
    meta = mapping(record.get("compactMetadata"))
    return _present(
        trigger=ident(meta.get("trigger")),
        preTokens=positive(meta.get("preTokens", meta.get("pre_tokens"))),
        postTokens=positive(meta.get("postTokens", meta.get("post_tokens"))),
        durationMs=positive(meta.get("durationMs", meta.get("duration_ms"))),
        partial=True if record.get("subtype") == "microcompact_boundary" else None,
    )


def _api_error(record: dict[str, Any]) -> dict[str, Any]:
    error = mapping(record.get("error"))
    words = text(error.get("formatted")) or text(error.get("message")) or text(record.get("error")) or "API error"
    return _present(
        text=words[:_MAX_TEXT],
        reason="apiError",
        status=positive(error.get("status", record.get("error_status"))),
        attempt=positive(record.get("retryAttempt", record.get("attempt"))),
        maxRetries=positive(record.get("maxRetries", record.get("max_retries"))),
        retryInMs=positive(record.get("retryInMs", record.get("retry_delay_ms"))),
    )


def attachment_event(record: dict[str, Any]) -> Told | None:
    """Return what an ``attachment`` record reports, where that is an error or a prompt typed while the agent worked."""
    attachment = mapping(record.get("attachment"))
    kind = text(attachment.get("type"))
    if kind == "max_turns_reached":
        turns = positive(attachment.get("maxTurns"))
        words = "Reached the maximum number of turns" + (f" ({turns:g})" if turns is not None else "")
        return "error", _present(text=words, reason="maxTurns", turns=positive(attachment.get("turnCount")))
    if kind == "queued_command":
        return _queued(record, attachment)
    if kind in _HOOK_ERRORS:
        inner = mapping(attachment.get("blockingError"))
        words = next(
            (
                found
                for found in (
                    text(inner.get("blockingError")), text(attachment.get("stderr")), text(attachment.get("message")),
                    text(attachment.get("content")), text(attachment.get("stdout")),
                )
                if found
            ),
            "hook failed",
        )  # fmt: skip
        return "error", _present(
            text=words[:_MAX_TEXT],
            reason=_HOOK_ERRORS[kind],
            hook=ident(attachment.get("hookName")),
            toolUseId=ident(attachment.get("toolUseID")),
        )
    return None


def _queued(record: dict[str, Any], attachment: dict[str, Any]) -> Told | None:
    words = prompt_words(attachment.get("prompt"))
    origin, said = text_origin(words)
    mode = ident(attachment.get("commandMode"))
    origin = origin or record_origin(attachment) or record_origin(record)
    if origin is None and mode not in (None, "prompt"):
        origin = mode
    if origin is not None:
        return "nudge", {"text": words, "origin": origin}
    return ("user_message", {"text": said, "queued": True}) if said else None


def notification(record: dict[str, Any]) -> tuple[str | None, str | None, dict[str, Any]] | None:
    """Return (tool_use id, task id, update) when a record tells that a background task got on; else None."""
    if record.get("type") == "system":
        if record.get("subtype") != "task_notification":
            return None
        update = _present(
            status=ident(record.get("status")), taskId=ident(record.get("task_id")),
            text=text(record.get("summary")) or None,
        )  # fmt: skip
        return ident(record.get("tool_use_id")), ident(record.get("task_id")), update
    if record.get("type") == "attachment":
        words = prompt_words(mapping(record.get("attachment")).get("prompt"))
    else:
        words = "\n".join(texts(mapping(record.get("message")).get("content")))
    if "<task-notification>" not in words[:200]:
        return None
    task = ident((tagged(words, "task-id") or "").strip())
    update = _present(
        status=ident((tagged(words, "status") or "").strip()),
        taskId=task,
        text=tagged(words, "summary"),
        output=tagged(words, "result"),
    )
    return ident((tagged(words, "tool-use-id") or "").strip()), task, update


def ending(record: dict[str, Any]) -> tuple[str, Told | None]:
    """Return the outcome that a stream-json ``result`` states, and an error event when it names one."""
    kind = text(record.get("subtype"))
    if record.get("is_error") is not True and kind in ("", "success"):
        return "completed", None
    errors = [text(error) for error in sequence(record.get("errors"))]
    words = "\n".join(errors) or text(record.get("result")) or kind or "failed"
    reason = "maxTurns" if kind == "error_max_turns" else kind if kind not in ("", "success") else "apiError"
    return "failed", ("error", {"text": words[:_MAX_TEXT], "reason": reason[:80]})


def _present(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}

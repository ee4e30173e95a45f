"""GitHub Copilot CLI: one file of events a session."""

from __future__ import annotations

from typing import Any

from ctxmgr.importers.descriptions import JsonImporter, Log
from ctxmgr.importers.interface import Coverage, Place
from ctxmgr.importers.transcript import Transcript
from ctxmgr.importers.values import mapping, sequence, text, whole

_FAMILIES = (
    "session.", "user.", "assistant.", "tool.", "hook.", "system.", "subagent.", "permission.", "skill.", "external_tool.",
)  # fmt: skip
_NAMES = """
session.start session.resume session.shutdown session.error session.info session.warning session.idle
session.model_change session.usage_record session.usage_info session.truncation session.compaction_start
session.compaction_complete session.handoff session.snapshot_rewind session.import_legacy session.context_changed
session.mode_changed session.title_changed session.mcp_servers_loaded session.tools_updated session.skills_loaded
session.task_complete session.plan_changed session.workspace_file_changed session.background_tasks_changed
user.message assistant.turn_start assistant.turn_end assistant.message assistant.message_delta assistant.reasoning
assistant.reasoning_delta assistant.intent assistant.usage assistant.streaming_delta tool.user_requested
tool.execution_start tool.execution_progress tool.execution_partial_result tool.execution_complete hook.start hook.end
system.message system.notification subagent.started subagent.completed subagent.failed subagent.selected
subagent.deselected permission.requested permission.completed skill.invoked abort
"""
_KNOWN = frozenset(_NAMES.split())


def _proves(value: dict[str, Any]) -> bool:
    kind = text(value.get("type")) or ""
    return kind in _KNOWN and isinstance(value.get("data"), dict) and text(value.get("id")) is not None and "timestamp" in value


class _Session:
    """Reads the events of a session, those of its sub-agents as their own."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._named: str | None = None
        self._counted = False
        self._agents: dict[str, Transcript] = {}

    def read(self, value: dict[str, Any]) -> None:
        kind, data, at = text(value.get("type")) or "", mapping(value.get("data")), value.get("timestamp")
        if kind == "session.start":
            self._start(data, at)
            return
        main = self._log.session(self._named)
        if main.seen(f"{value.get('id')} {at} {kind}"):
            return
        t = self._agents.get(text(data.get("parentToolCallId")) or text(value.get("agentId")) or "", main)
        if kind not in _KNOWN and not kind.startswith(_FAMILIES):
            self._log.unknown(kind)
        elif kind.startswith("tool.") or kind == "assistant.message":
            self._work(t, kind, data, at)
        elif kind == "user.message":
            self._said(t, data, at)
        elif kind == "assistant.reasoning":
            t.thought(text(data.get("content")) or "", at, data.get("reasoningId"))
        elif kind in ("session.usage_record", "assistant.usage"):
            self._used(t, kind, mapping(data.get("usage")) or data, at)
        elif kind.startswith("subagent."):
            self._agent(main, kind, data, at)
        else:
            self._told(t, kind, data, at)

    def _start(self, data: dict[str, Any], at: object) -> None:
        self._named = text(data.get("sessionId"))
        context = mapping(data.get("context"))
        self._log.session(self._named).describe(
            data.get("copilotVersion"),
            at,
            cwd=context.get("cwd"),
            gitBranch=context.get("branch"),
            model=data.get("selectedModel"),
        )

    def _said(self, t: Transcript, data: dict[str, Any], at: object) -> None:
        words, source = text(data.get("content")) or "", text(data.get("source"))
        if source not in (None, "user"):
            t.nudge(words, source or "program", at, data.get("messageId"))
        else:
            t.user(words, at, data.get("messageId"), pictures=len(sequence(data.get("attachments"))))

    def _work(self, t: Transcript, kind: str, data: dict[str, Any], at: object) -> None:
        key = data.get("toolCallId")
        if kind == "assistant.message":
            t.step = f"{t.part}:{text(data.get('messageId')) or t.place}"
            t.thought(text(data.get("reasoningText")) or "", at)
            t.message(text(data.get("content")) or "", at, data.get("messageId"))
            for request in map(mapping, sequence(data.get("toolRequests"))):
                t.call(request.get("toolCallId"), request.get("name"), request.get("arguments"), at)
            if not self._counted and "outputTokens" in data:
                t.usage(at, data.get("messageId"), data.get("model"), outputTokens=data.get("outputTokens"))
        elif kind in ("tool.execution_start", "tool.user_requested"):
            if not t.answered(key):
                t.call(key, data.get("toolName"), data.get("arguments"), at)
        elif kind == "tool.execution_complete":
            self._result(t, data, at)

    def _result(self, t: Transcript, data: dict[str, Any], at: object) -> None:
        """Add a result; the client itself calls a command that ended with another code than 0 a success."""
        result, error = mapping(data.get("result")), mapping(data.get("error"))
        shown = text(result.get("content")) or text(result.get("detailedContent")) or text(data.get("result"))
        code = whole(mapping(data.get("shellExecution")).get("exitCode"))
        reason = text(error.get("code")) or ""
        status, kind = "ok", "toolError"
        if data.get("success") is False:
            status = (
                "denied"
                if reason in ("denied", "rejected")
                else "interrupted"
                if reason in ("aborted", "cancelled")
                else "error"
            )
        elif code not in (None, 0):
            status, kind = "error", "exitCode"
        told = {"sourceStatus": "success" if data.get("success") is True else "failure", "exitCode": code}
        t.result(data.get("toolCallId"), shown, at, status=status, error=error.get("message"), kind=kind, meta=told)

    def _used(self, t: Transcript, kind: str, used: dict[str, Any], at: object) -> None:
        if kind == "assistant.usage" and self._counted:
            return
        self._counted = self._counted or kind == "session.usage_record"
        t.usage(
            at, used.get("apiCallId"), used.get("model"), inputTokens=used.get("inputTokens"),
            outputTokens=used.get("outputTokens"), cacheReadTokens=used.get("cacheReadTokens"),
            cacheCreationTokens=used.get("cacheWriteTokens"),
        )  # fmt: skip

    def _agent(self, main: Transcript, kind: str, data: dict[str, Any], at: object) -> None:
        key = text(data.get("toolCallId")) or ""
        call = main.calls.get(key)
        if kind == "subagent.started" and call is not None and key not in self._agents:
            name = f"{text(data.get('agentName')) or 'agent'}-{key[-8:]}"
            self._agents[key] = self._log.session(self._named, agent=name, part=f"{main.session}:{key}", parent=call.entry)
        elif kind == "subagent.failed":
            main.failure(data.get("error"), at, reason="subAgentFailed")

    def _told(self, t: Transcript, kind: str, data: dict[str, Any], at: object) -> None:
        if kind == "session.compaction_complete" and data.get("success") is not False:
            t.event(
                "compaction", {"text": text(data.get("summaryContent")) or "", "preTokens": data.get("preCompactionTokens")}, at
            )
        elif kind == "session.truncation":
            t.event("compaction", {"partial": True, "preTokens": data.get("preTruncationTokensInMessages")}, at)
        elif kind == "session.error":
            t.failure(data.get("message"), at, reason=text(data.get("errorType")) or "error")
        elif kind == "abort":
            t.event("interrupt", {"text": text(data.get("reason")) or "aborted"}, at)
        elif kind == "permission.requested":
            t.event("waiting", {"toolUseId": data.get("toolCallId"), "reason": "permission"}, at)
        elif kind == "system.notification":
            t.nudge(text(data.get("content")) or "", "notification", at)


COPILOT = JsonImporter(
    name="copilot",
    title="GitHub Copilot CLI",
    proves=_proves,
    reader=_Session,
    coverage=Coverage(),
    places=(
        Place(".copilot/session-state", "*/events.jsonl", variable="COPILOT_HOME", below="session-state"),
        Place(".copilot/session-state", "*.jsonl", variable="COPILOT_HOME", below="session-state"),
    ),
)

"""GitHub Copilot CLI: one file of events per session."""

from __future__ import annotations

from typing import Any

from ctxmgr.importers.base import Coverage, JsonImporter, Log, Place
from ctxmgr.importers.chat import judge_result
from ctxmgr.importers.transcript import Transcript
from ctxmgr.importers.values import integer, mapping, sequence, text
from ctxmgr.text.patterns import lazy_pattern

_FAMILIES = frozenset(
    (
        "session", "user", "assistant", "tool", "hook", "system", "subagent", "permission", "skill", "external_tool",
        "model", "command", "commands", "user_input", "elicitation", "sampling", "mcp", "exit_plan_mode",
        "auto_mode_switch", "pending_messages", "abort", "binary_asset", "capabilities",
    )
)  # fmt: skip
"""First words of the names of all events. Every version brings new names in these families."""

_MAIN = frozenset(
    (
        "session.start", "user.message", "assistant.message", "assistant.turn_start", "tool.execution_start",
        "tool.execution_complete", "session.resume", "session.mcp_servers_loaded", "session.tools_updated",
        "session.skills_loaded", "system.message",
    )
)  # fmt: skip
_WAITING = frozenset(("permission.requested", "user_input.requested", "elicitation.requested", "exit_plan_mode.requested"))
_DENIED = frozenset(("denied", "rejected"))
_ABORTED = frozenset(("aborted", "cancelled"))
_EXIT = lazy_pattern(r"<[^<>\n]*\bexit code (-?\d{1,9})>\s*\Z")
"""End of a shell command's output, in versions that state the exit code nowhere else."""


def _proves(value: dict[str, Any]) -> bool:
    return text(value.get("type")) in _MAIN and isinstance(value.get("data"), dict) and text(value.get("timestamp")) is not None


class _Session:
    """Reads the events of a session. Those of its sub-agents become their own parts."""

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
        if text(value.get("id")) and main.is_repeated(f"{value['id']} {at} {kind}"):
            return
        if kind.startswith("subagent."):
            self._agent_event(main, kind, value, data, at)
            return
        t = self._agent(main, text(value.get("agentId")) or text(data.get("parentToolCallId")))
        if kind == "result":
            main.end("completed" if value.get("exitCode") == 0 else "failed", at)
        elif kind.partition(".")[0] not in _FAMILIES:
            self._log.unknown(kind)
        elif kind.startswith("tool.") or kind == "assistant.message":
            self._work(t, kind, data, at)
        elif kind == "user.message":
            self._add_prompt(t, data, at)
        elif kind == "assistant.reasoning":
            t.add_thought(text(data.get("content")) or "", at, data.get("reasoningId"))
        elif kind in ("session.usage_record", "assistant.usage"):
            self._add_usage(t, kind, mapping(data.get("usage")) or data, at)
        else:
            self._add_program_event(t, kind, data, at)

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

    def _add_prompt(self, t: Transcript, data: dict[str, Any], at: object) -> None:
        words, source = text(data.get("content")) or "", text(data.get("source"))
        if source not in (None, "user"):
            t.nudge(words, source or "program", at, data.get("messageId"))
        else:
            t.user(words, at, data.get("messageId"), pictures=len(sequence(data.get("attachments"))))

    def _work(self, t: Transcript, kind: str, data: dict[str, Any], at: object) -> None:
        key = data.get("toolCallId")
        if kind == "assistant.message":
            response = text(data.get("apiCallId")) or text(data.get("messageId"))
            t.step = f"{t.part}:{response or t.place}"
            t.add_thought(text(data.get("reasoningText")) or "", at)
            t.message(text(data.get("content")) or "", at, data.get("messageId"))
            for request in map(mapping, sequence(data.get("toolRequests"))):
                t.call(request.get("toolCallId"), request.get("name"), request.get("arguments"), at)
            # Versions that write usage records state the same tokens there, including the input.
            if not self._counted and "outputTokens" in data:
                t.usage(at, response, data.get("model"), outputTokens=data.get("outputTokens"))
        elif kind in ("tool.execution_start", "tool.user_requested"):
            if not t.has_answer(key):
                t.call(key, data.get("toolName"), data.get("arguments"), at)
        elif kind == "tool.execution_complete":
            self._result(t, data, at)

    def _result(self, t: Transcript, data: dict[str, Any], at: object) -> None:
        """Add a result. The client calls a command a success even if its exit code is not 0."""
        result, error = mapping(data.get("result")), mapping(data.get("error"))
        shown = text(result.get("content")) or text(result.get("detailedContent")) or text(data.get("result"))
        failed, reason = data.get("success") is False, text(error.get("code")) or ""
        said = text(error.get("message")) or text(data.get("error"))
        code = _exit_code(data, result, shown)
        status, kind = judge_result({"is_error": failed}, said if failed and said else shown)[0], "toolError"
        if failed and reason in _DENIED | _ABORTED:
            status = "denied" if reason in _DENIED else "interrupted"
        elif status == "ok" and code:
            status, kind = "error", "exitCode"
        meta = {"sourceStatus": "failure" if failed else "success", "exitCode": code}
        t.result(data.get("toolCallId"), shown, at, status=status, error=said, kind=kind, meta=meta)

    def _add_usage(self, t: Transcript, kind: str, used: dict[str, Any], at: object) -> None:
        if kind == "assistant.usage" and self._counted:
            return
        self._counted = self._counted or kind == "session.usage_record"
        t.usage(
            at, used.get("apiCallId"), used.get("model"), inputTokens=used.get("inputTokens"),
            outputTokens=used.get("outputTokens"), cacheReadTokens=used.get("cacheReadTokens"),
            cacheCreationTokens=used.get("cacheWriteTokens"),
        )  # fmt: skip

    def _agent(self, main: Transcript, named: str | None, name: str | None = None, call: str = "") -> Transcript:
        """Return the part of a sub-agent. The call that started it, or its own id, identifies it."""
        if not named:
            return main
        if named not in self._agents:
            self._agents[named] = self._log.sub_agent(main, named, f"{name or 'agent'}-{named[-8:]}", call or named)
        return self._agents[named]

    def _agent_event(self, main: Transcript, kind: str, value: dict[str, Any], data: dict[str, Any], at: object) -> None:
        call, own = text(data.get("toolCallId")) or "", text(value.get("agentId"))
        if kind == "subagent.started" and (own or call in main.calls):
            part = self._agent(main, own or call, text(data.get("agentName")), call)
            # Store it under both names, because later events name the agent by its id or by the call that started it.
            self._agents.setdefault(call or str(own), part)
        elif kind == "subagent.failed":
            main.failure(data.get("error"), at, reason="subAgentFailed")

    def _add_program_event(self, t: Transcript, kind: str, data: dict[str, Any], at: object) -> None:
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
        elif kind == "session.snapshot_rewind":
            t.event("rewind", {"from": text(data.get("upToEventId"))}, at)
        elif kind == "session.shutdown":
            self._shutdown(t, data, at)
        elif kind in _WAITING:
            asked = data.get("toolCallId") or mapping(data.get("permissionRequest")).get("toolCallId")
            t.event("waiting", {"toolUseId": asked, "reason": kind.partition(".")[0]}, at)
        elif kind == "system.notification":
            t.nudge(text(data.get("content")) or "", "notification", at)

    def _shutdown(self, t: Transcript, data: dict[str, Any], at: object) -> None:
        """Add the facts at the end of a program: why it failed, and the tokens if responses state only their output."""
        if data.get("shutdownType") == "error":
            t.failure(data.get("errorReason"), at, reason="shutdown")
        spent = mapping(data.get("modelMetrics")) or mapping(mapping(data.get("accountingSnapshot")).get("modelMetrics"))
        for model, metrics in spent.items() if not self._counted else ():
            used = mapping(mapping(metrics).get("usage"))
            t.usage(
                at, f"shutdown {t.place} {model}", model, inputTokens=used.get("inputTokens"),
                cacheReadTokens=used.get("cacheReadTokens"), cacheCreationTokens=used.get("cacheWriteTokens"),
            )  # fmt: skip


def _exit_code(data: dict[str, Any], result: dict[str, Any], shown: str | None) -> int | None:
    """Return the exit code of a shell command. Its place differs between versions."""
    parts = [mapping(part).get("exitCode") for part in sequence(result.get("contents"))]
    stated = [integer(code) for code in (mapping(data.get("shellExecution")).get("exitCode"), *parts)]
    # Search only the end, because an output of megabytes may contain the same mark in every line.
    found = _EXIT.search(shown, max(0, len(shown) - 200)) if shown else None
    return next((code for code in stated if code is not None), int(found[1]) if found else None)


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

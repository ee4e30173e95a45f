"""Read messages of the Agent Client Protocol as records.

Chunks of text are joined until something else comes. A call is recorded when it begins to run or its input is known, because
an entry never changes. A request for permission is recorded as a wait. Requests for files and terminals belong to the agent's
calls and are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ctxmgr.log.codec import Record
from ctxmgr.log.fast_json import json_array, json_object
from ctxmgr.log.ids import format_time, new_id

CLIENT, AGENT = "client", "agent"
"""The senders of messages."""

_CHUNKS = {"agent_message_chunk", "agent_thought_chunk", "user_message_chunk"}
_KEPT_AS_EVENTS = {"plan", "current_mode_update", "session_info_update"}
_STARTED = ("in_progress", "completed", "failed")  # a tuple, because a status may be any JSON, even unhashable
_BEGINS = {"session/new", "session/load", "session/resume", "session/fork"}
# Far above the limit of a record. Without a limit, a stream without line ends would fill the memory.
_MAX_LINE_BYTES = 64 << 20


@dataclass(slots=True)
class _Call:
    entry: str
    fields: dict[str, Any]
    begun: bool = False


@dataclass(slots=True)
class _Session:
    calls: dict[str, _Call] = field(default_factory=lambda: dict[str, _Call]())
    turn: int = 0
    chunk: str = ""
    text: list[str] = field(default_factory=lambda: list[str]())
    at: float = 0.0
    made: int = 0


class AcpReader:
    """Reads the messages of one connection, in the order in which they were sent.

    Args:
        process: the id of this execution.
    """

    def __init__(self, process: str) -> None:
        self.agent = "agent"
        self._process = process
        self._sessions: dict[str, _Session] = {}
        self._asked: dict[tuple[str, Any], tuple[str, dict[str, Any]]] = {}

    def read(self, sender: str, at: float, message: Any) -> Iterator[Record]:
        """Yield the records for a message; none for an invalid one.

        Args:
            sender: `CLIENT` or `AGENT`.
            at: the time at which it was sent, in seconds since 1970.
            message: parsed JSON.
        """
        fields = json_object(message)
        method, number = fields.get("method"), fields.get("id")
        # The id becomes a dict key below, so it can't be a list or an object.
        if not isinstance(number, str | int | float | None):
            return
        if isinstance(method, str):
            params = json_object(fields.get("params"))
            if number is not None:
                self._asked[sender, number] = method, params
            yield from self._call(sender, at, method, params)
        elif number is not None:
            # Each side numbers its own requests, and an answer belongs to a request of the other side.
            asked = self._asked.pop((AGENT if sender == CLIENT else CLIENT, number), None)
            if asked is not None:
                yield from self._answer(at, *asked, fields)

    def close(self) -> Iterator[Record]:
        """Yield events for the remaining text when the connection ends."""
        for name, session in self._sessions.items():
            yield from self._flush_text(name, session)

    def _call(self, sender: str, at: float, method: str, params: dict[str, Any]) -> Iterator[Record]:
        name = params.get("sessionId")
        if not isinstance(name, str) or not name:
            return
        session = self._sessions.get(name)
        if session is None:
            yield from self._begin(name, at, params)
            session = self._sessions[name]
        if sender == AGENT and method == "session/update":
            yield from self._update(name, session, at, json_object(params.get("update")))
            return
        if method in ("session/prompt", "session/cancel", "session/request_permission"):
            yield from self._flush_text(name, session)
        if sender == CLIENT and method == "session/prompt":
            session.turn += 1
            yield self._event(name, at, "user_message", {"text": _text(params.get("prompt"))})
        elif sender == CLIENT and method == "session/cancel":
            yield self._event(name, at, "interrupt", {"reason": "session/cancel"})
        elif sender == AGENT and method == "session/request_permission":
            call = json_object(params.get("toolCall"))
            yield from self._tool(name, session, at, call)
            yield self._event(name, at, "waiting", {"reason": "permission", "action": _action(call)})

    def _answer(self, at: float, method: str, params: dict[str, Any], fields: dict[str, Any]) -> Iterator[Record]:
        result = json_object(fields.get("result"))
        if method == "initialize":
            about = json_object(result.get("agentInfo"))
            self.agent = next(
                (text for key in ("name", "title") if isinstance(text := about.get(key), str) and text), self.agent
            )
            return
        name = result.get("sessionId") or params.get("sessionId")
        if not isinstance(name, str) or not name:
            return
        if method in _BEGINS and name not in self._sessions:
            yield from self._begin(name, at, params)
        session = self._sessions.get(name)
        if session is None:
            return
        if method == "session/request_permission":
            outcome = json_object(result.get("outcome"))
            yield self._event(name, at, "resume", {"outcome": outcome.get("outcome"), "option": outcome.get("optionId")})
        elif method == "session/prompt":
            yield from self._flush_text(name, session)
            error = fields.get("error")
            if error is not None:
                yield self._event(name, at, "error", {"error": error})
            else:
                yield self._event(name, at, "turn_end", {"stopReason": result.get("stopReason")})

    def _begin(self, name: str, at: float, params: dict[str, Any]) -> Iterator[Record]:
        self._sessions[name] = _Session()
        folder = params.get("cwd")
        meta = {"cwd": folder} if isinstance(folder, str) else {}
        yield self._record(name, at, "session", process=self._process, source={"importer": "acp"}, meta=meta)

    def _update(self, name: str, session: _Session, at: float, update: dict[str, Any]) -> Iterator[Record]:
        kind = str(update.get("sessionUpdate"))
        if kind in _CHUNKS:
            if kind != session.chunk:
                yield from self._flush_text(name, session)
                session.chunk, session.at = kind, at
            session.text.append(_text([update.get("content")]))
            return
        if kind in ("tool_call", "tool_call_update"):
            yield from self._flush_text(name, session)
            yield from self._tool(name, session, at, update)
        elif kind in _KEPT_AS_EVENTS:
            yield self._event(name, at, kind, {key: value for key, value in update.items() if key != "sessionUpdate"})

    def _tool(self, name: str, session: _Session, at: float, update: dict[str, Any]) -> Iterator[Record]:
        number = update.get("toolCallId")
        if not isinstance(number, str):
            return
        call = session.calls.get(number)
        if call is None:
            session.made += 1
            # The agent's own id may recur in other sessions and processes, and may have any length.
            call = session.calls[number] = _Call(f"{self._process}:{session.made}:{number}"[:400], {})
        # Updates carry only changed fields. An empty value must not replace an earlier one.
        call.fields.update({key: value for key, value in update.items() if value not in (None, [], {}, "")})
        status = update.get("status")
        ends = status in ("completed", "failed")
        if not call.begun and not ends:
            call.fields.pop("content", None)  # content before a call runs is a preview, not part of its result
        if not call.begun and (status in _STARTED or "rawInput" in call.fields):
            call.begun = True
            yield self._record(
                name, at, "entry", id=call.entry, agent=self.agent, action=_action(call.fields), process=self._process,
                inputType=call.fields.get("kind"), input=_input(call.fields), turn=session.turn,
            )  # fmt: skip
        if ends:
            del session.calls[number]  # an id may recur in a later turn
            yield self._record(name, at, "result", entry=call.entry, **_result(call.fields, status))
        elif call.begun and update.get("content"):
            yield self._event(name, at, "tool_call_update", {"status": status}, entry=call.entry)

    def _flush_text(self, name: str, session: _Session) -> Iterator[Record]:
        if session.text:
            yield self._event(name, session.at, session.chunk, {"text": "".join(session.text)})
            session.text.clear()
        session.chunk = ""

    def _event(self, name: str, at: float, kind: str, data: dict[str, Any], entry: str | None = None) -> Record:
        whose = {} if kind.startswith("user_") or kind == "interrupt" else {"agent": self.agent}
        about = {} if entry is None else {"entry": entry}
        return self._record(name, at, "event", id=new_id(), type=kind, data=data, **whose, **about)

    def _record(self, name: str, at: float, kind: str, **fields: Any) -> Record:
        given = {key: value for key, value in fields.items() if value is not None}
        return {"v": 1, "kind": kind, "session": name, "ts": format_time(at), **given}


def _text(blocks: Any) -> str:
    """Return the text of content blocks; for blocks without text, their kind and name."""
    parts: list[str] = []
    for block in json_array(blocks):
        each = json_object(block)
        text = each.get("text")
        parts.append(text if isinstance(text, str) else f"[{each.get('type')} {each.get('name') or each.get('uri') or ''}]")
    return "".join(parts)


def _action(call: dict[str, Any]) -> str:
    """Return the tool's own name if the agent gives it, else the kind of the call."""
    # The protocol has no field for the name. Agents put it below a key of their own, such as "claudeCode".
    for extension in json_object(call.get("_meta")).values():
        name = json_object(extension).get("toolName")
        if isinstance(name, str) and name:
            return name
    kind = call.get("kind") or call.get("title")
    return kind if isinstance(kind, str) and kind else "tool"


def _input(call: dict[str, Any]) -> Any:
    if "rawInput" in call:
        return call["rawInput"]
    paths = [json_object(each).get("path") for each in json_array(call.get("locations"))]
    return {"title": call.get("title"), **({"paths": paths} if paths else {})}


def _result(call: dict[str, Any], status: Any) -> dict[str, Any]:
    texts: list[str] = []
    for block in json_array(call.get("content")):
        each = json_object(block)
        texts.append(_text([each.get("content")]) if each.get("type") == "content" else f"[{each.get('type')}]")
    text = "\n".join(texts)
    if status == "failed":
        return {"status": "error", "error": {"type": "failed", "message": text or str(call.get("rawOutput") or "failed")}}
    return {"status": "ok", "output": text or call.get("rawOutput") or ""}


class MessageLines:
    """Joins the bytes of one sender into messages, one per line. A line above the limit is skipped.

    Attributes:
        invalid: the number of lines that were skipped or are not JSON.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._skipped = False
        self.invalid = 0

    def take(self, data: bytes) -> Iterator[Any]:
        """Yield the messages that are complete now. Count lines that are not JSON."""
        *ended, rest = data.split(b"\n")
        for line in ended:
            content = b"".join([*self._parts, line])
            self._parts.clear()
            self._size = 0
            if self._skipped:
                self._skipped = False
            elif content.strip():
                try:
                    yield json.loads(content)
                except (ValueError, RecursionError):
                    self.invalid += 1
        if self._skipped or not rest:
            return
        self._size += len(rest)
        self._parts.append(rest)
        if self._size > _MAX_LINE_BYTES:
            self.skip_line()

    def skip_line(self) -> None:
        """Skip the rest of the current line, because a part of it is missing."""
        self._parts.clear()
        self._size = 0
        # Count a line once, however often it is skipped.
        self.invalid += not self._skipped
        self._skipped = True

"""Assemble the records of one session: calls, results, messages, turns, branches.

Whatever is put into a record comes from its own line and from earlier ones, so that a file that has grown yields the
same records again, and more. What only a later line can decide is held back until that line comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctxmgr.importers.claude_code.events import (
    attachment_event,
    ending,
    error_of,
    is_summary,
    judge,
    notification,
    output_of,
    record_origin,
    starts_turn,
    system_event,
    text_origin,
)
from ctxmgr.importers.claude_code.records import Raw
from ctxmgr.importers.claude_code.threads import LogFile, Thread, Threads, new_response, response_key
from ctxmgr.importers.values import ident, mapping, positive, sequence, shortened, text, texts
from ctxmgr.log.codec import Record
from ctxmgr.types.plain_records import build

_SPOKEN = frozenset({"user", "assistant", "system", "attachment"})
_MAX_NAME = 200


class Session:
    """The records of one session while its files are read in step.

    Args:
        session: its id.
        source: name of the format.
    """

    def __init__(self, session: str, source: str) -> None:
        self._session = session
        self._threads = Threads(session, source)
        self._ending: Record | None = None

    def feed(self, file: LogFile, raw: Raw) -> Iterator[Record]:
        """Yield the records that one record of a file gives, or sets free."""
        self._read(file, raw)
        return self._taken(raw.long)

    def finish(self, file: LogFile) -> Iterator[Record]:
        """Yield what is due when a file is exhausted, and complete its counts.

        What the next line would have decided is not guessed: a refusal that may turn out to be an interrupt, and a
        compaction without its summary, stay back until the file has grown.
        """
        for thread in file.threads.values():
            response = thread.response
            _count(file, thread, shown=response is None or response.stopped or not file.writes_stops)
        if file.orphans:
            file.count.notes.append(f"{file.orphans:,} results without their call were left out")
        return self._taken()

    def end(self) -> Iterator[Record]:
        """Yield the end of the session where the source states one: the last ``result`` of a stream-json log."""
        if self._ending is not None:
            yield self._ending

    def _taken(self, long: bool = False) -> Iterator[Record]:
        records = self._threads.records
        if not records:
            return iter(())
        taken = [shortened(record) for record in records] if long else records[:]
        records.clear()
        return iter(taken)

    def _read(self, file: LogFile, raw: Raw) -> None:
        value = raw.value
        if raw.kind == "result" and "sessionId" in value:
            self._end(file, raw)
        if raw.kind not in _SPOKEN or (raw.kind == "system" and "subtype" not in value):
            return
        if uuid := ident(value.get("uuid")):
            if uuid in file.seen:
                return
            file.seen.add(uuid)
        thread = self._threads.of(file, raw)
        words = texts(mapping(value.get("message")).get("content")) if raw.kind == "user" else []
        summary = raw.kind == "user" and is_summary(value, words[0] if words else "")
        self._compacted(file, raw, thread, "\n".join(words) if summary else None)
        if summary:
            return
        if raw.kind == "assistant":
            self._assistant(file, raw, thread)
        elif raw.kind == "user":
            self._user(file, raw, thread)
        else:
            self._told(file, raw, thread)

    # --- the model

    def _assistant(self, file: LogFile, raw: Raw, thread: Thread) -> None:
        message = mapping(raw.value.get("message"))
        thread.release("denied")
        key = response_key(raw.value, message)
        _respond(file, raw, thread, key)
        for place, block in enumerate(_blocks(message.get("content"))):
            kind = text(block.get("type")) or ""
            record_id = self._id(file, raw, place, key)
            if kind == "text":
                file.count.messages += 1
                thread.event(record_id, *_said(raw.value, block), raw.ts)
            elif kind in ("thinking", "redacted_thinking"):
                file.count.thoughts += 1
                thinking = {"text": text(block.get("thinking")) or ""} if kind == "thinking" else {"text": "", "redacted": True}
                thread.event(record_id, "thought", thinking, raw.ts)
            elif kind.endswith("tool_use"):
                self._entry(file, raw, thread, block, record_id)
            elif kind.endswith("tool_result"):
                self._result(file, raw, thread, block)

    def _entry(self, file: LogFile, raw: Raw, thread: Thread, block: dict[str, Any], record_id: str) -> None:
        message = mapping(raw.value.get("message"))
        tool_use = ident(block.get("id"))
        name = (text(block.get("name")) or "")[:_MAX_NAME] or "unknown"
        given = block.get("input")
        entry = record_id if ident(raw.value.get("uuid")) else tool_use or record_id
        file.count.open += 1
        if tool_use is not None:
            file.calls[tool_use] = entry, raw.at
        if thread.is_main and file.is_first:
            file.entries.append((raw.place, entry))
        self._threads.called(tool_use, name, entry, given, thread)
        thread.entry(
            entry, name, given, raw.ts, step=response_key(raw.value, message),
            timeout_ms=(positive(mapping(given).get("timeout")) or None) if name == "Bash" else None,
            meta={
                "toolUseId": tool_use, "file": file.path.name, "line": raw.number, "cwd": ident(raw.value.get("cwd")),
                "model": ident(message.get("model")), "version": ident(raw.value.get("version")),
            },
        )  # fmt: skip

    # --- tools' answers

    def _result(self, file: LogFile, raw: Raw, thread: Thread, block: dict[str, Any]) -> None:
        entry, called = file.calls.pop(ident(block.get("tool_use_id")) or "", (None, None))
        if entry is None:
            file.orphans += 1
            return
        status, undecided = judge(raw.value, block)
        output, remarks = output_of(raw.value, block, file.path, self._session)
        side = raw.value.get("toolUseResult")
        file.count.open -= 1
        self._threads.answered(entry, side)
        thread.outcome(
            entry, status, raw.ts, output=output, error=error_of(status, raw.value, block),
            duration_ms=_duration(called, raw, mapping(side)), meta=remarks,
        )  # fmt: skip
        if undecided:
            thread.held.append(thread.records.pop())

    # --- people, and the harness in their name

    def _user(self, file: LogFile, raw: Raw, thread: Thread) -> None:
        content = mapping(raw.value.get("message")).get("content")
        if thread.response is not None:
            thread.response.stopped = True
        own = record_origin(raw.value) or (None if thread.is_main else "parentAgent")
        human: list[str] = []
        first, pictures, answers = 0, 0, 0
        for place, block in enumerate(_blocks(content)):
            kind = text(block.get("type")) or ""
            if kind.endswith("tool_result"):
                answers += 1
                self._result(file, raw, thread, block)
            elif kind in ("image", "document"):
                pictures += 1
            elif isinstance(words := block.get("text"), str):
                origin, said = text_origin(words)
                if origin is None and own is None:
                    first = first if human else place
                    human.append(said)
                else:
                    self._harness(file, raw, thread, place, origin or own or "", words)
        if human or (pictures and own is None and not answers):
            self._human(file, raw, thread, first, "\n".join(human), pictures)
        elif isinstance(content, str) and raw.value.get("isMeta") is not True:
            file.count.harness_messages += 1

    def _harness(self, file: LogFile, raw: Raw, thread: Thread, place: int, origin: str, words: str) -> None:
        record_id = self._id(file, raw, place)
        if origin == "interrupt":
            thread.release("interrupted")
            thread.event(record_id, "interrupt", {"text": words}, raw.ts)
            return
        if raw.value.get("isMeta") is not True:
            thread.release("denied")
            if starts_turn(origin) if thread.is_main else thread.turn is None:
                thread.turn = ident(raw.value.get("promptId")) or record_id
        thread.event(record_id, "nudge", {"text": words, "origin": origin}, raw.ts)
        self._notified(raw, thread, record_id)

    def _human(self, file: LogFile, raw: Raw, thread: Thread, place: int, words: str, pictures: int) -> None:
        record_id = self._id(file, raw, place)
        file.count.user_messages += 1
        thread.release("denied")
        if file.is_first:
            _rewind(file, raw, thread, record_id)
        thread.turn = ident(raw.value.get("promptId")) or record_id
        thread.event(record_id, "user_message", {"text": words} | ({"pictures": pictures} if pictures else {}), raw.ts)

    # --- the program itself

    def _told(self, file: LogFile, raw: Raw, thread: Thread) -> None:
        told = system_event(raw.value) if raw.kind == "system" else attachment_event(raw.value)
        record_id = self._id(file, raw, 0)
        if told is not None:
            kind, data = told
            if kind == "user_message":
                thread.release("denied")
            thread.event(record_id, kind, data, raw.ts, self._threads.entry_of(ident(data.get("toolUseId")), None))
            if kind == "compaction" and "partial" not in data:
                thread.compaction = thread.records.pop()
        self._notified(raw, thread, record_id)

    def _compacted(self, file: LogFile, raw: Raw, thread: Thread, summary: str | None) -> None:
        """Add the compaction that waited for its summary; a summary without one becomes a compaction itself."""
        event, thread.compaction = thread.compaction, None
        if event is not None:
            thread.records.append(event)
        elif summary is not None:
            thread.event(self._id(file, raw, 0), "compaction", {}, raw.ts)
        if summary is not None:
            thread.records[-1]["data"]["summary"] = summary

    def _notified(self, raw: Raw, thread: Thread, record_id: str) -> None:
        found = notification(raw.value)
        if found is None:
            return
        tool_use, task, update = found
        entry = self._threads.entry_of(tool_use, task)
        if entry is not None:
            thread.event(f"{record_id}:update", "tool_call_update", update, raw.ts, entry)

    def _end(self, file: LogFile, raw: Raw) -> None:
        outcome, told = ending(raw.value)
        self._ending = build("sessionEnd", self._session, raw.ts, outcome=outcome, process=self._session)
        if told is not None:
            self._threads.main(file).event(self._id(file, raw, 0), *told, raw.ts)

    def _id(self, file: LogFile, raw: Raw, place: int, key: str | None = None) -> str:
        """Return the source's own id for a block; without one, its place in the response or in the file."""
        if uuid := ident(raw.value.get("uuid")):
            return f"{uuid}:{place}" if place else uuid
        if key is not None:
            file.blocks[key] += 1
            return f"{key}:{file.blocks[key] - 1}"
        return f"{self._session}:{raw.number}:{place}"


def _blocks(content: object) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [mapping(item) for item in sequence(content)]


def _said(record: dict[str, Any], block: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    words = text(block.get("text")) or ""
    if record.get("isApiErrorMessage") is not True:
        return "message", {"text": words}
    data: dict[str, Any] = {"text": words, "reason": "apiError"}
    if (status := positive(record.get("apiErrorStatus"))) is not None:
        data["status"] = status
    return "error", data


def _respond(file: LogFile, raw: Raw, thread: Thread, key: str | None) -> None:
    """Take over what a line tells of its response; with the first line of the next one the response before it is whole."""
    message = mapping(raw.value.get("message"))
    if thread.response is not None and thread.response.key != key:
        _count(file, thread)
    if key is None:
        return
    if thread.response is None:
        if key in file.responses:
            return
        file.responses.add(key)
        file.count.responses += 1
        thread.response = new_response(key, raw.ts, raw.value, message)
    thread.response.add(message)
    file.writes_stops = file.writes_stops or thread.response.stopped


def _count(file: LogFile, thread: Thread, *, shown: bool = True) -> None:
    """Count the tokens of a response, and add them unless they may still grow."""
    response, thread.response = thread.response, None
    if response is not None:
        for name, tokens in response.usage.items():
            file.count.usage[name] += tokens
        if shown:
            data = {**response.usage, "model": response.model, "responseId": response.key}
            thread.event(response.event, "usage", data, response.ts)


def _rewind(file: LogFile, raw: Raw, thread: Thread, record_id: str) -> None:
    """Report the branch that a person left by going back to an earlier prompt and writing another one."""
    parent = file.source.places.get(ident(raw.value.get("parentUuid")) or "")
    if parent is not None and any(place > parent for place in file.prompts):
        abandoned = [entry for place, entry in file.entries if place > parent]
        file.prompts = [place for place in file.prompts if place <= parent]
        file.entries = [(place, entry) for place, entry in file.entries if place <= parent]
        thread.event(f"{record_id}:rewind", "rewind", {"abandoned": abandoned}, raw.ts)
    file.prompts.append(raw.place)


def _duration(called: float | None, raw: Raw, side: dict[str, Any]) -> float | None:
    """Return milliseconds: the tool's own measure, else the time between the call's line and the result's."""
    own = positive(side.get("durationMs", side.get("totalDurationMs")))
    if own is not None or called is None or raw.at is None or raw.at < called:
        return own
    return round((raw.at - called) * 1000)

"""Assemble the records of one session: calls, results, messages, turns, branches.

Whatever is put into a record comes from its own line and from earlier ones, so that a file that has grown yields the
same records again, and more. What only a later line can decide is held back until that line comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctxmgr.importers.claude_code.events import attachment_event, ending, notification, system_event
from ctxmgr.importers.claude_code.raw_records import Raw
from ctxmgr.importers.claude_code.results import error_of, judge, output_of
from ctxmgr.importers.claude_code.threads import Call, LogFile, Thread, Threads
from ctxmgr.importers.claude_code.usage import new_response, response_key
from ctxmgr.importers.claude_code.user_text import is_summary, record_origin, starts_turn, text_origin
from ctxmgr.importers.claude_code.values import ident, mapping, positive, sequence, shortened, text, texts
from ctxmgr.log.codec import Record
from ctxmgr.types.record import build

_SPOKEN = frozenset({"user", "assistant", "system", "attachment"})
_MAX_NAME = 200


class Session:
    """The records of one session while its files are read in step."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._threads = Threads()
        self._ending: Record | None = None

    def feed(self, file: LogFile, raw: Raw) -> Iterator[Record]:
        """Yield the records that one record of a file gives, or sets free."""
        for record in self._records(file, raw):
            yield shortened(record) if raw.long else record

    def finish(self, file: LogFile) -> Iterator[Record]:
        """Yield what is due when a file is exhausted, and complete its counts.

        What the next line would have decided is not guessed: a refusal that may turn out to be an interrupt, and a
        compaction without its summary, stay back until the file has grown.
        """
        for thread in file.threads.values():
            response = thread.response
            for usage in self._usage(file, thread):
                if response is None or response.stopped or not file.writes_stops:
                    yield usage
        if file.orphans:
            file.count.notes.append(f"{file.orphans:,} results without their call were left out")

    def end(self) -> Iterator[Record]:
        """Yield the end of the session where the source states one: the last ``result`` of a stream-json log."""
        if self._ending is not None:
            yield self._ending

    def _records(self, file: LogFile, raw: Raw) -> Iterator[Record]:
        value = raw.value
        if raw.kind == "result" and "sessionId" in value:
            yield from self._end(file, raw)
        if raw.kind not in _SPOKEN or (raw.kind == "system" and "subtype" not in value):
            return
        if uuid := ident(value.get("uuid")):
            if uuid in file.seen:
                return
            file.seen.add(uuid)
        thread = self._threads.of(file, raw)
        words = texts(mapping(value.get("message")).get("content")) if raw.kind == "user" else []
        summary = raw.kind == "user" and is_summary(value, words[0] if words else "")
        yield from self._compacted(file, raw, thread, "\n".join(words) if summary else None)
        if summary:
            return
        if raw.kind == "assistant":
            yield from self._assistant(file, raw, thread)
        elif raw.kind == "user":
            yield from self._user(file, raw, thread)
        else:
            yield from self._told(file, raw, thread)

    # --- the model

    def _assistant(self, file: LogFile, raw: Raw, thread: Thread) -> Iterator[Record]:
        message = mapping(raw.value.get("message"))
        yield from _released(thread, "denied")
        key = response_key(raw.value, message)
        yield from self._response(file, raw, thread, key)
        content = message.get("content")
        blocks: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else sequence(content)
        for place, item in enumerate(blocks):
            block = mapping(item)
            kind = text(block.get("type"))
            record_id = self._id(file, raw, place, key)
            if kind == "text":
                file.count.messages += 1
                yield self._event(raw, thread, record_id, *_said(raw.value, block))
            elif kind in ("thinking", "redacted_thinking"):
                file.count.thoughts += 1
                data = {"text": text(block.get("thinking"))} if kind == "thinking" else {"text": "", "redacted": True}
                yield self._event(raw, thread, record_id, "thought", data)
            elif kind.endswith("tool_use"):
                yield self._entry(file, raw, thread, block, record_id)
            elif kind.endswith("tool_result"):
                yield from self._result(file, raw, thread, block)

    def _entry(self, file: LogFile, raw: Raw, thread: Thread, block: dict[str, Any], record_id: str) -> Record:
        message = mapping(raw.value.get("message"))
        tool_use = ident(block.get("id"))
        name = text(block.get("name"))[:_MAX_NAME] or "unknown"
        given = block.get("input")
        entry = record_id if ident(raw.value.get("uuid")) else tool_use or record_id
        meta = {
            "toolUseId": tool_use,
            "file": file.path.name,
            "line": raw.number,
            "cwd": ident(raw.value.get("cwd")),
            "model": ident(message.get("model")),
            "version": ident(raw.value.get("version")),
        }
        file.count.tool_calls[name] += 1
        file.count.open += 1
        if tool_use is not None:
            file.calls[tool_use] = Call(entry, raw.at)
        if thread.is_main and file.is_first:
            file.entries.append((raw.place, entry))
        self._threads.called(tool_use, name, entry, given, thread)
        return build(
            "entry",
            self._session,
            raw.ts,
            id=entry,
            agent=thread.agent,
            action=name,
            inputType=f"{name}Input",
            input=given,
            process=self._session,
            turn=thread.turn,
            step=response_key(raw.value, message),
            parent=thread.parent,
            timeoutMs=(positive(mapping(given).get("timeout")) or None) if name == "Bash" else None,
            meta={key: item for key, item in meta.items() if item is not None},
        )

    def _response(self, file: LogFile, raw: Raw, thread: Thread, key: str | None) -> Iterator[Record]:
        message = mapping(raw.value.get("message"))
        if thread.response is not None and thread.response.key != key:
            yield from self._usage(file, thread)
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

    def _usage(self, file: LogFile, thread: Thread) -> Iterator[Record]:
        response, thread.response = thread.response, None
        if response is not None:
            file.count.usage.update(response.usage)
            yield build(
                "event",
                self._session,
                response.ts,
                id=response.event,
                type="usage",
                agent=thread.agent,
                data=response.data(),
            )

    # --- tools' answers

    def _result(self, file: LogFile, raw: Raw, thread: Thread, block: dict[str, Any]) -> Iterator[Record]:
        call = file.calls.pop(ident(block.get("tool_use_id")) or "", None)
        if call is None:
            file.orphans += 1
            return
        status, undecided = judge(raw.value, block)
        output, remarks = output_of(raw.value, block, file.path, self._session)
        side = raw.value.get("toolUseResult")
        file.count.open -= 1
        file.count.failed += status != "ok"
        self._threads.answered(call.entry, side)
        result = build(
            "result",
            self._session,
            raw.ts,
            entry=call.entry,
            status=status,
            output=output,
            error=error_of(status, raw.value, block),
            durationMs=_duration(call, raw, mapping(side)),
            meta=remarks or None,
        )
        if undecided:
            thread.held.append(result)
        else:
            yield result

    # --- people, and the harness in their name

    def _user(self, file: LogFile, raw: Raw, thread: Thread) -> Iterator[Record]:
        content = mapping(raw.value.get("message")).get("content")
        if thread.response is not None:
            thread.response.stopped = True
        blocks: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else sequence(content)
        own = record_origin(raw.value) or (None if thread.is_main else "parentAgent")
        human: list[str] = []
        first, pictures, answers = 0, 0, 0
        for place, item in enumerate(blocks):
            block = mapping(item)
            kind = text(block.get("type"))
            if kind.endswith("tool_result"):
                answers += 1
                yield from self._result(file, raw, thread, block)
            elif kind in ("image", "document"):
                pictures += 1
            elif isinstance(words := block.get("text"), str):
                origin, said = text_origin(words)
                if origin is None and own is None:
                    first = first if human else place
                    human.append(said)
                else:
                    yield from self._harness(file, raw, thread, place, origin or own or "", words)
        if human or (pictures and own is None and not answers):
            yield from self._human(file, raw, thread, first, "\n".join(human), pictures)
        elif isinstance(content, str) and raw.value.get("isMeta") is not True:
            file.count.harness_messages += 1

    def _harness(self, file: LogFile, raw: Raw, thread: Thread, place: int, origin: str, words: str) -> Iterator[Record]:
        record_id = self._id(file, raw, place)
        if origin == "interrupt":
            yield from _released(thread, "interrupted")
            yield self._event(raw, thread, record_id, "interrupt", {"text": words})
            return
        if raw.value.get("isMeta") is not True:
            yield from _released(thread, "denied")
            if starts_turn(origin) if thread.is_main else thread.turn is None:
                thread.turn = _turn(raw, record_id)
        yield self._event(raw, thread, record_id, "nudge", {"text": words, "origin": origin})
        yield from self._notified(raw, thread, record_id)

    def _human(self, file: LogFile, raw: Raw, thread: Thread, place: int, words: str, pictures: int) -> Iterator[Record]:
        record_id = self._id(file, raw, place)
        file.count.user_messages += 1
        yield from _released(thread, "denied")
        if file.is_first:
            yield from self._rewound(file, raw, thread, record_id)
        thread.turn = _turn(raw, record_id)
        data: dict[str, Any] = {"text": words} | ({"pictures": pictures} if pictures else {})
        yield self._event(raw, thread, record_id, "user_message", data)

    def _rewound(self, file: LogFile, raw: Raw, thread: Thread, record_id: str) -> Iterator[Record]:
        """Report the branch that a person left by going back to an earlier prompt and writing another one."""
        parent = file.source.places.get(ident(raw.value.get("parentUuid")) or "")
        if parent is not None and any(place > parent for place in file.prompts):
            abandoned = [entry for place, entry in file.entries if place > parent]
            file.prompts = [place for place in file.prompts if place <= parent]
            file.entries = [(place, entry) for place, entry in file.entries if place <= parent]
            yield self._event(raw, thread, f"{record_id}:rewind", "rewind", {"abandoned": abandoned})
        file.prompts.append(raw.place)

    # --- the program itself

    def _told(self, file: LogFile, raw: Raw, thread: Thread) -> Iterator[Record]:
        told = system_event(raw.value) if raw.kind == "system" else attachment_event(raw.value)
        record_id = self._id(file, raw, 0)
        if told is not None:
            kind, data = told
            entry = self._threads.entry_of(ident(data.get("toolUseId")), None)
            event = self._event(raw, thread, record_id, kind, data, entry)
            if kind == "compaction" and "partial" not in data:
                thread.compaction = event
            else:
                if kind == "user_message":
                    yield from _released(thread, "denied")
                yield event
        yield from self._notified(raw, thread, record_id)

    def _compacted(self, file: LogFile, raw: Raw, thread: Thread, summary: str | None) -> Iterator[Record]:
        """Yield the compaction that waited for its summary; a summary without one becomes a compaction itself."""
        event, thread.compaction = thread.compaction, None
        if event is None and summary is not None:
            event = self._event(raw, thread, self._id(file, raw, 0), "compaction", {})
        if event is not None:
            if summary is not None:
                event["data"]["summary"] = summary
            yield event

    def _notified(self, raw: Raw, thread: Thread, record_id: str) -> Iterator[Record]:
        found = notification(raw.value)
        if found is None:
            return
        tool_use, task, update = found
        entry = self._threads.entry_of(tool_use, task)
        if entry is not None:
            yield self._event(raw, thread, f"{record_id}:update", "tool_call_update", update, entry)

    def _end(self, file: LogFile, raw: Raw) -> Iterator[Record]:
        outcome, told = ending(raw.value)
        self._ending = build("sessionEnd", self._session, raw.ts, outcome=outcome, process=self._session)
        if told is not None:
            yield self._event(raw, Thread("main"), self._id(file, raw, 0), *told)

    # --- making records

    def _event(
        self, raw: Raw, thread: Thread, record_id: str, kind: str, data: dict[str, Any], entry: str | None = None
    ) -> Record:
        return build("event", self._session, raw.ts, id=record_id, type=kind, agent=thread.agent, entry=entry, data=data)

    def _id(self, file: LogFile, raw: Raw, place: int, key: str | None = None) -> str:
        """Return the source's own id for a block; without one, its place in the response or in the file."""
        if uuid := ident(raw.value.get("uuid")):
            return f"{uuid}:{place}" if place else uuid
        if key is not None:
            file.blocks[key] += 1
            return f"{key}:{file.blocks[key] - 1}"
        return f"{self._session}:{raw.number}:{place}"


def _said(record: dict[str, Any], block: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    words = text(block.get("text"))
    if record.get("isApiErrorMessage") is not True:
        return "message", {"text": words}
    data: dict[str, Any] = {"text": words, "reason": "apiError"}
    if (status := positive(record.get("apiErrorStatus"))) is not None:
        data["status"] = status
    return "error", data


def _turn(raw: Raw, record_id: str) -> str:
    return ident(raw.value.get("promptId")) or record_id


def _duration(call: Call, raw: Raw, side: dict[str, Any]) -> float | None:
    """Return milliseconds: the tool's own measure, else the time between the call's line and the result's."""
    own = positive(side.get("durationMs", side.get("totalDurationMs")))
    if own is not None or call.at is None or raw.at is None or raw.at < call.at:
        return own
    return round((raw.at - call.at) * 1000)


def _released(thread: Thread, status: str) -> Iterator[Record]:
    """Yield the results that were held back, now that it is clear whether the person interrupted."""
    held, thread.held = thread.held, []
    for result in held:
        result["status"] = status
        if status == "interrupted":
            result["error"]["type"] = "interrupted"
        yield result

"""Read the lines of a rollout by their record types. Turns begin, end, fail, are compacted and rolled back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ctxmgr.importers.base import Log
from ctxmgr.importers.codex import head as known
from ctxmgr.importers.codex.calls import EVENTS, Calls
from ctxmgr.importers.codex.head import harness_origin, looks_generated
from ctxmgr.importers.codex.thread import PASSTHROUGH, Item, Meter, Thread
from ctxmgr.importers.values import clean, images, integer, join_texts, mapping, sequence, text, texts

_TURN_BEGINS = frozenset(("task_started", "turn_started"))
_TURN_ENDS = frozenset(("task_complete", "turn_complete"))
_ERRORS = frozenset(("error", "stream_error"))
_HANDLED = _TURN_BEGINS | _TURN_ENDS | _ERRORS | known.QUESTIONS | {
    "turn_aborted", "context_compacted", "thread_rolled_back", "thread_settings_applied",
}  # fmt: skip
# Reasons of aborts that are no interrupts by a person.
_NOT_BY_PERSON = frozenset(("review_ended", "budget_limited"))


class Rollout:
    """Reads one file. `read` takes its objects in order, `finish` ends it."""

    def __init__(self, log: Log, thread: Thread) -> None:
        self._log = log
        self._thread = thread
        self._words = Words(thread)
        self._calls = Calls(thread)
        self._meter = Meter(thread)
        self._turns = Turns(thread, self._calls)
        self._readers: dict[str, Callable[[Item], None]] = {
            "response_item": self._read_item,
            "event_msg": self._read_event,
            "turn_context": self._turns.context,
            "token_usage_record": self._meter.usage_record,
            "compacted": self._add_compaction,
            "inter_agent_communication": self._from_agent,
        }

    def read(self, value: dict[str, Any]) -> None:
        """Take the next object."""
        thread, number = self._thread, self._log.line
        kind: str | None = value.get("type")
        if not isinstance(kind, str) or not kind:
            kind = None
        payload: object = value.get("payload")
        if kind is not None and isinstance(payload, dict):
            item = thread.item(number, value, payload)  # pyright: ignore[reportUnknownArgumentType], a cast would be a call
            if kind == "session_meta" or thread.origin != thread.process:  # `Thread.is_copied` without a call per line
                thread.follow_origin(item, kind)
            if (reader := self._readers.get(kind)) is not None:
                reader(item)
            elif kind not in known.TOP_LEVEL:
                self._log.unknown(kind)
        # Before 0.32, lines had no envelope.
        elif kind in known.ITEMS or (kind is None and "role" in value and "content" in value):
            self._read_item(thread.item(number, value, value, bare=True))
        elif "record_type" in value:
            # The first versions wrote lines of state between responses.
            thread.mark(reliable=True)
            if value.get("record_type") != "state":
                self._log.unknown(f"record_type/{text(value.get('record_type')) or '?'}")
        elif kind is not None or not text(value.get("id")) or "timestamp" not in value:
            self._log.unknown(f"{kind} without payload" if kind in known.TOP_LEVEL else kind or "untyped")

    def finish(self) -> None:
        """Add the records that depend on the end of the file."""
        self._words.finish()

    def _add_compaction(self, item: Item) -> None:
        self._words.settle()
        self._turns.compaction(item, text(item.payload.get("message")))

    def _from_agent(self, item: Item) -> None:
        self._words.settle()
        self._turns.from_agent(item)

    def _read_item(self, item: Item) -> None:
        payload, thread = item.payload, self._thread
        kind = text(payload.get("type")) or ("message" if "role" in payload else "untyped")
        if kind == "message" and payload.get("role") != "assistant":
            thread.items_seen = True
            self._turns.name_turn(item)
            self._words.item(item)
            return
        if self._words.has_undecided:
            self._words.settle()
        if self._turns.compacted and kind not in known.COMPACTIONS and kind != "ghost_snapshot":
            self._turns.compacted = False  # the model continued, so the next signal is about another compaction
        if kind in known.CALLS:
            thread.items_seen = True
            self._turns.name_turn(item)
            self._calls.call(item, kind)
        elif kind.endswith("_output"):
            thread.items_seen = True
            self._calls.output(item)
        elif kind == "message":
            thread.items_seen = True
            self._message(item, join_texts(payload.get("content")), payload.get("id"), from_item=True)
        elif kind == "reasoning":
            thread.items_seen = True
            words = texts(payload.get("summary")) or texts(payload.get("content"))
            self._add_thought(item, "\n".join(words), payload.get("id"), from_item=True)
        elif kind in known.COMPACTIONS:
            self._turns.compaction(item, None)
        elif kind == "agent_message":
            self._turns.from_agent(item)
        if kind not in known.ITEMS:
            self._log.unknown(f"response_item/{kind}")

    def _read_event(self, item: Item) -> None:
        payload = item.payload
        kind = text(payload.get("type")) or "untyped"
        if kind not in known.EVENTS:
            self._log.unknown(f"event_msg/{kind}")
        elif kind == "token_count":
            self._meter.token_count(item)
        elif kind == "user_message":
            # Other kinds are texts by the program: instructions and the environment in the person's name.
            if text(payload.get("kind")) not in (None, "plain"):
                return
            words = text(payload.get("message")) or ""
            pictures = len(sequence(payload.get("images"))) + len(sequence(payload.get("local_images")))
            self._words.event(item, words, pictures)
        elif kind == "agent_message":
            self._message(item, text(payload.get("message")) or "", None, from_item=False)
        elif kind == "agent_reasoning":
            self._add_thought(item, text(payload.get("text")) or "", None, from_item=False)
        elif kind == "item_completed":
            self._read_completed(item, mapping(payload.get("item")))
        elif kind in EVENTS:
            self._calls.event(item, kind, payload, payload.get("call_id") or payload.get("callId"))
        elif self._turns.handles(kind):
            self._words.settle()
            self._turns.event(item, kind)

    def _read_completed(self, item: Item, body: dict[str, Any]) -> None:
        """Read an ``item_completed`` event, in which new logs repeat the item lines."""
        kind = text(body.get("type")) or "untyped"
        if kind not in known.TURN_ITEMS:
            self._log.unknown(f"item_completed/{kind}")
        elif kind == "UserMessage":
            self._words.event(item, join_texts(body.get("content")), images(body.get("content")))
        elif kind == "AgentMessage":
            self._message(item, join_texts(body.get("content")), body.get("id"), from_item=False)
        elif kind == "Reasoning":
            words = texts(body.get("summary_text")) or texts(body.get("raw_content"))
            self._add_thought(item, "\n".join(words), body.get("id"), from_item=False)
        elif kind == "ContextCompaction":
            self._words.settle()
            self._turns.compaction(item, None)
        elif kind in EVENTS:
            self._calls.event(item, kind, body, body.get("id"))

    def _message(self, item: Item, words: str, item_id: object, from_item: bool) -> None:
        thread = self._thread
        # Events and items report the same messages. The first report is used.
        if from_item and thread.is_repeat(words):
            return
        if not from_item:
            if thread.items_seen:
                return
            thread.note_text(words)
        self._say(item, "message", {"text": words}, item_id)

    def _add_thought(self, item: Item, words: str, item_id: object, from_item: bool) -> None:
        if not from_item and self._thread.items_seen:
            return
        # An encrypted thought has no words, but its existence is recorded.
        self._say(item, "thought", {"text": words} if words else {"encrypted": True}, item_id)

    def _say(self, item: Item, kind: str, data: dict[str, Any], item_id: object) -> None:
        thread = self._thread
        event_id = thread.claim_id(item, item_id)
        if event_id is None:
            return
        self._turns.name_turn(item)
        self._thread.spoke(item)
        if kind == "message":
            thread.count.messages += 1
        else:
            thread.count.thoughts += 1
        thread.event(kind, data, item.at, event_id)


@dataclass(slots=True)
class Turns:
    """The course of a thread's turns."""

    thread: Thread
    calls: Calls
    compacted: bool = False
    last_error: str | None = None

    @staticmethod
    def handles(kind: str) -> bool:
        """Whether this class handles events of this type."""
        return kind in _HANDLED

    def context(self, item: Item) -> None:
        """Read a ``turn_context``. In old logs there is one before every model response."""
        self.thread.mark()
        self.name_turn(item)
        self._settings(item.payload)

    def name_turn(self, item: Item) -> None:
        """Set the turn's id from a line that names it."""
        turn = item.turn
        if turn is not None and turn != self.thread.turn_id:
            self.thread.name_turn(turn)

    def event(self, item: Item, kind: str) -> None:
        """Read an event about a turn."""
        payload = item.payload
        if kind in _TURN_BEGINS:
            self.calls.turn_over(item, aborted=False)
            self.thread.turn_began()
            self.thread.name_turn(item.turn)
            self.last_error, self.compacted = None, False
        elif kind in _TURN_ENDS or kind == "turn_aborted":
            self._end(item, aborted=kind == "turn_aborted")
        elif kind in _ERRORS:
            self._error(item, payload)
        elif kind in known.QUESTIONS:
            data = {"for": kind, "callId": text(payload.get("call_id")), "reason": text(payload.get("reason"))}
            self.thread.event("waiting", {key: value for key, value in data.items() if value is not None}, item.at)
        elif kind == "context_compacted":
            self.compaction(item, text(payload.get("message")))
        elif kind == "thread_rolled_back":
            self._rewind(item, integer(payload.get("num_turns")) or 0)
        else:
            self._settings(mapping(payload.get("thread_settings")))

    def compaction(self, item: Item, summary: str | None) -> None:
        """Add one compaction, however many lines announce it. Its replacement history is not new conversation."""
        self.thread.mark()
        if self.compacted:
            return
        self.compacted = True
        self.thread.event("compaction", {"text": summary} if summary else {}, item.at)

    def from_agent(self, item: Item) -> None:
        """Add a message between agents, which no person wrote."""
        payload = item.payload
        words = join_texts(payload.get("content")) or text(payload.get("message")) or ""
        event_id = self.thread.claim_id(item, payload.get("id"))
        if event_id is None or self.thread.is_repeat(f"agent {words}"):
            return
        self.thread.note_text(f"agent {words}")
        data: dict[str, Any] = {"text": words, "origin": "agent", "role": "agent"}
        data.update((key, payload[key]) for key in ("author", "recipient") if text(payload.get(key)))
        self.thread.event("nudge", data, item.at, event_id)

    def _end(self, item: Item, aborted: bool) -> None:
        thread, payload = self.thread, item.payload
        place = thread.own_id()
        self.name_turn(item)
        self.calls.turn_over(item, aborted)
        reason: str | None = text(payload.get("reason"))
        if aborted and reason not in _NOT_BY_PERSON:
            thread.event("interrupt", {"reason": reason or "unknown"}, item.at, place)
        problem: object = payload.get("error")
        failed = problem is not None and problem is not False and problem != {}
        if failed:
            self._error(item, mapping(problem) or {"message": problem}, f"{place}:error")
        data: dict[str, Any] = {"reason": "aborted" if aborted else "failed" if failed else "completed"}
        if failed:
            data["error"] = clean(problem)
        thread.event("turn_end", data, item.at, f"{place}:turn_end")
        self.last_error = None
        thread.name_turn(None)
        thread.turn_began()

    def _error(self, item: Item, body: dict[str, Any], event_id: str | None = None) -> None:
        message = text(body.get("message")) or "error"
        if message == self.last_error:  # a retried stream and the end of its turn state the same error
            return
        self.last_error = message
        data: dict[str, Any] = {"text": message, "message": message}
        if body.get("codex_error_info") is not None:
            data["type"] = clean(body["codex_error_info"])
        self.thread.event("error", data, item.at, event_id)

    def _rewind(self, item: Item, turns: int) -> None:
        rounds = self.thread.rounds
        # The first round contains everything before the first message. No rollback reaches it.
        undone = rounds[max(len(rounds) - turns, 1) :] if turns > 0 else []
        del rounds[len(rounds) - len(undone) :]
        self.thread.turn_began()
        self.thread.event("rewind", {"turns": turns, "abandoned": [entry for entries in undone for entry in entries]}, item.at)

    def _settings(self, body: dict[str, Any]) -> None:
        self.thread.model = text(body.get("model")) or self.thread.model
        self.thread.cwd = text(body.get("cwd")) or self.thread.cwd


_UNNAMED: frozenset[str | None] = frozenset((None, "unknown"))


@dataclass(slots=True)
class _PendingMessage:
    """A message of role user with an unknown writer, or one that waits behind such a message."""

    item: Item
    event_id: str
    words: str
    pictures: int = 0
    origin: str | None = None
    confirmed: bool = False
    counted: bool = True
    role: str = "user"

    @property
    def open(self) -> bool:
        return self.origin is None and not self.confirmed  # nobody has said who wrote it


@dataclass(slots=True)
class Words:
    """Messages of role user and developer.

    New logs name the writer of each part. In others an event (``user_message``, ``UserMessage``) confirms a person's words,
    right after the item or before it. A text without a writer waits for the event until the conversation continues. In logs
    without such events, the beginning of the text decides. The decision never depends on the current end of a growing file.
    """

    thread: Thread
    held: list[_PendingMessage] = field(default_factory=lambda: list[_PendingMessage]())
    announced: list[_PendingMessage] = field(default_factory=lambda: list[_PendingMessage]())
    confirmed_before: bool = False
    named_before: bool = False
    guessing: bool = False

    def item(self, item: Item) -> None:
        """Take a message item of role user, developer or system."""
        event_id = self.thread.claim_id(item, item.payload.get("id"))
        if event_id is None:
            return
        content: object = item.payload.get("content")
        role = text(item.payload.get("role")) or "user"
        by_person, by_harness, origin = _split_by_writer(item.payload) if role == "user" else ([], texts(content), None)
        message = _PendingMessage(item, event_id, join_texts(content), images(content), role=role)
        if by_person or by_harness:
            self._queue_named(message, by_person, by_harness, origin)
        elif self._judge_unnamed(message):
            self._queue(message)

    def _queue_named(self, message: _PendingMessage, by_person: list[str], by_harness: list[str], origin: str | None) -> None:
        """Queue a message whose parts name their writers: first the part of the person, then that of the harness."""
        self.named_before = self.named_before or message.role == "user"
        if not by_person:
            message.origin = origin or harness_origin(message.words) or ("developer" if message.role != "user" else "harness")
            self._queue(message)
            return
        message.words, message.confirmed = "\n".join(by_person), True
        self._queue(message)
        if by_harness:
            event_id = f"{message.event_id}:harness"
            rest = _PendingMessage(message.item, event_id, "\n".join(by_harness), origin=origin or "harness", counted=False)
            self._queue(rest)

    def _judge_unnamed(self, message: _PendingMessage) -> bool:
        """Judge who wrote a message whose writer is not named; return False if the message repeats an earlier one."""
        words = message.words
        message.origin = harness_origin(words) or ("developer" if message.role != "user" else None)
        if not message.open:
            return True
        announced = next((each for each in self.announced if each.words.strip() == words.strip()), None)
        if announced is not None:
            self.announced.remove(announced)
            message.confirmed = True
        elif message.item.bare:
            message.origin = "unnamed" if looks_generated(words) else None
            message.confirmed = message.origin is None
        elif self.thread.is_repeat(words):
            return False
        return True

    def event(self, item: Item, words: str, pictures: int) -> None:
        """Take an event with a person's words."""
        if self.named_before or harness_origin(words):
            return
        self.confirmed_before = True
        for held in [held for held in self.held if held.open]:
            if words.strip() in held.words or held.pictures or pictures:
                held.confirmed = True
                break
        else:
            message = _PendingMessage(item, self.thread.own_id(), words, pictures, confirmed=True)
            if self.thread.items_seen:
                self.announced.append(message)
            else:
                self.thread.note_text(words)
                self._record(message)
            return
        if not any(held.open for held in self.held):
            self._flush()

    @property
    def has_undecided(self) -> bool:
        """Whether any message is undecided."""
        return bool(self.held or self.announced)

    def settle(self) -> None:
        """Decide the open messages, because the conversation has continued."""
        if not self.has_undecided:
            return
        for pending in self.held:
            if pending.open:
                self.guessing = self.guessing or not self.confirmed_before
                if self.confirmed_before or looks_generated(pending.words):
                    pending.origin = "unnamed"
        self._flush()
        announced, self.announced = self.announced, []
        for message in announced:
            self._record(message)

    def finish(self) -> None:
        """At the end of the file, decide only if growth of the file can't change the decision."""
        # If writers were guessed before, continue to guess. In any other log, the next line may decide.
        if self.guessing and not self.confirmed_before:
            self.settle()

    def _queue(self, message: _PendingMessage) -> None:
        """Add the message now, unless it is undecided or an undecided message is before it."""
        if not self.held and not message.open:
            self._record(message)
            return
        self.held.append(message)
        if not any(held.open for held in self.held):
            self._flush()

    def _flush(self) -> None:
        messages, self.held = self.held, []
        for message in messages:
            self._record(message)

    def _record(self, message: _PendingMessage) -> None:
        thread, origin = self.thread, message.origin
        data: dict[str, Any] = {"text": message.words}
        if origin is None and thread.head.sub_agent:
            origin = "parentAgent"
        if message.counted and message.role == "user":
            if origin is None:
                thread.count.user_messages += 1
            else:
                thread.count.harness_messages += 1
        if message.pictures:
            data["images"] = message.pictures
        if origin in (None, "parentAgent"):
            thread.user_turn = message.event_id
            thread.name_turn(thread.turn_id)
            thread.rounds.append([])
            self.thread.turn_began()
        if origin is None:
            thread.event("user_message", data, message.item.at, message.event_id)
        else:
            thread.event("nudge", {**data, "origin": origin, "role": message.role}, message.item.at, message.event_id)


def _split_by_writer(payload: dict[str, Any]) -> tuple[list[str], list[str], str | None]:
    """Split a message's texts by named writer: (a person's texts, the harness's texts, kind of the harness part)."""
    passthrough = mapping(payload.get(PASSTHROUGH))
    parts = sequence(passthrough.get("content_item_metadata"))
    marks = [text(mapping(mapping(part).get("provenance")).get("type")) for part in parts]
    if not _UNNAMED.issuperset(marks):
        return _split_parts(sequence(payload.get("content")), marks, passthrough)
    return [], [], None


def _split_parts(
    content: list[Any], marks: list[str | None], passed: dict[str, Any]
) -> tuple[list[str], list[str], str | None]:
    by_person: list[str] = []
    by_harness: list[str] = []
    for place, part in enumerate(content):
        mark = marks[place] if place < len(marks) else None
        words = join_texts([part])
        if mark in _UNNAMED:
            mark = "harness" if harness_origin(words) else "user"
        (by_person if mark == "user" else by_harness).append(words)
    kinds = [text(kind) for kind in sequence(passed.get("content_item_kinds"))]
    origin = next((kind for kind in kinds if kind and not kind.startswith("user.") and kind != "unknown"), None)
    return by_person, by_harness, origin

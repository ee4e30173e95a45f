"""The state of one thread while its log is read: its ids, its turns and its model responses."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from ctxmgr.importers.codex.head import Head
from ctxmgr.importers.log_files import plain_name
from ctxmgr.importers.transcript import Call, Transcript
from ctxmgr.importers.values import integer, mapping, text
from ctxmgr.log.ids import parse_time

# Matched at the end of an id, because provider models put the kind before it, as in ``msg_01a1ffcb-…``.
_UNIQUE = re.compile(r"(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9A-Za-z]{24,})\Z")
_UUID7 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\Z")
_MAX_COPY_SECONDS = 1.0
"""All copied lines of a fork are written within this time of its first line."""
PASSTHROUGH = "internal_chat_message_metadata_passthrough"


@dataclass(slots=True)
class Item:
    """One line without its envelope: the payload of a ``{timestamp, type, payload}`` line, or a bare item.

    Attributes:
        at, metadata: timestamp and metadata of the line, unchecked.
    """

    at: object
    payload: dict[str, Any]
    metadata: object = None
    bare: bool = False
    # Empty until the first access, because None is a valid value.
    _turn: str | None = ""

    @property
    def turn(self) -> str | None:
        """The turn that the line itself names."""
        if self._turn == "":
            payload = self.payload
            passthrough = payload.get(PASSTHROUGH)
            turn = (text(mapping(passthrough).get("turn_id")) if passthrough else None) or text(payload.get("turn_id"))
            if turn is None and (attribution := payload.get("turn_attribution")):
                turn = text(mapping(attribution).get("turn_id"))
            self._turn = turn
        return self._turn


@dataclass(slots=True)
class Thread(Transcript):
    """One log while it is read.

    Attributes:
        number, piece: current line, and number of the object on it: 2 for the second object on a damaged line, and so on.
        origin, shift: thread for which the current lines were first written, and how many lines later they are here. They
            differ from the own thread and 0 only in old forks, which begin with a copy of the original.
        items_seen: whether there were conversation items; then events that repeat them are skipped.
        used: id -> (time, content hash) of its line, to distinguish a repetition from a reuse.
        rounds: entry ids since each message of the user, for rollbacks.
        response: number of the current model response. Its own id is written only after its calls. The boundaries are therefore
            found by the sequence number that new versions put on each item, else by changes of the token total and per-call
            context lines, else (in logs without these) by any tool output.
    """

    head: Head = field(default_factory=lambda: Head(""))
    number: int = 0
    piece: int = 1
    file: str = ""
    origin: str = ""
    shift: int = 0
    turn_id: str | None = None
    user_turn: str | None = None
    model: str | None = None
    cwd: str | None = None
    items_seen: bool = False
    used: dict[str, tuple[str | None, int]] = field(default_factory=lambda: dict[str, tuple[str | None, int]]())
    rounds: list[list[str]] = field(default_factory=lambda: [list[str]()])
    response: int = 0
    _copy_started: float | None = None
    _spoken: set[int] = field(default_factory=lambda: set[int]())
    _sampled: int | None = None
    _marked: bool = True
    _output_came: bool = False
    _marks_work: bool = False

    def __post_init__(self) -> None:
        head = self.head
        self.agent, self.process, self.part, self.origin = head.agent, head.thread, head.thread, head.thread
        self.file, self.cwd, self.known = plain_name(self.count.path), head.cwd, True
        Transcript.__post_init__(self)
        self.describe(
            head.version, head.started, cwd=head.cwd, git=head.git, originator=head.originator, title=head.title,
            agent=head.agent if head.sub_agent else None, parentThread=head.parent,
            forkedFrom=head.forked_from, forkPoint=head.fork_point,
        )  # fmt: skip

    def item(self, number: int, value: dict[str, Any], payload: dict[str, Any], bare: bool = False) -> Item:
        """Continue with the object of a line, and return it as an item."""
        self.piece = self.piece + 1 if number == self.number else 1
        self.number = number
        return Item(value.get("timestamp"), payload, None if bare else value.get("metadata"), bare)

    def name_turn(self, turn: str | None) -> None:
        """Continue with a turn by its id. None ends the current turn; what follows belongs to the person's last words."""
        self.turn_id = turn
        self.turn = turn or self.user_turn

    @property
    def is_copied(self) -> bool:
        """Whether the current lines are a copy of another thread's lines."""
        return self.origin != self.process

    def follow_origin(self, item: Item, kind: str) -> None:
        """Find the line at which a copy of another thread's lines begins, and the line at which the own lines begin."""
        if kind == "session_meta":
            of = text(item.payload.get("id")) or text(item.payload.get("session_id")) or self.process
            self.origin, self.shift = of, 0 if of == self.process else self.number - 1
            if self._copy_started is None:
                self._copy_started = parse_time(item.at)
            return
        moment, started = parse_time(item.at), self._copy_started
        late = moment is not None and started is not None and moment - started > _MAX_COPY_SECONDS
        turn = item.turn or ""
        # A UUIDv7 begins with its time, so a turn that is as young as the thread is its own.
        young = _UUID7.match(turn) and _UUID7.match(self.process) and turn[:13] >= self.process[:13]
        if late or young or item.payload.get("thread_id") == self.process:
            self.origin, self.shift = self.process, 0

    # --- ids

    def own_id(self, name: object = None) -> str:
        """Return the id unchanged, or without one, an id from thread and line number."""
        return name if isinstance(name, str) else f"{self.origin}:{self._line()}"

    def _line(self) -> str:
        return f"{self.number - self.shift}" if self.piece == 1 else f"{self.number - self.shift}.{self.piece}"

    def call_source(self, call_id: str) -> dict[str, object]:
        """Return the call's id, file and line, and the folder, model and program at that time."""
        return {
            "callId": call_id or None, "file": self.file, "line": self.number,
            "cwd": self.cwd, "model": self.model, "version": self.head.version or None,
        }  # fmt: skip

    def duration(self, call: Call, at: object) -> float | None:
        """Return None: if Codex states no duration, the time between lines includes waiting for a person."""
        return None

    def claim_id(self, item: Item, given: object) -> str | None:
        """Return a unique id made of the item's own id, or None if the line exactly repeats an earlier one.

        Ids of provider models are globally unique and are kept. The short counters of local servers (``call_0``) are qualified
        by thread, and by line if a thread uses one twice.
        """
        name = text(given)
        if name is None:
            return self.own_id()
        return self._claim(name if _UNIQUE.search(name) else f"{self.origin}:{name}", item)

    def call_entry_id(self, item: Item, item_id: object, call_id: object) -> str | None:
        """Return the id of a tool call's entry: item id, else thread and call id, else thread and line."""
        if text(item_id) is None and text(call_id) is not None:
            return self._claim(f"{self.origin}:{call_id}", item)
        return self.claim_id(item, item_id)

    def _claim(self, wanted: str, item: Item) -> str | None:
        payload = item.payload
        at = self.record_time(item.at)
        mark = (at, _fingerprint(payload.get("arguments") or payload.get("input") or payload.get("content")))
        known = self.used.get(wanted)
        if known is not None:
            # The same content at the same time is a repeated line, as in a copied file. Without times nothing proves that.
            if known == mark and at is not None:
                return None
            wanted = f"{wanted}:{self._line()}"
        self.used[wanted] = mark
        return wanted

    # --- what was said

    def note_text(self, words: str) -> None:
        """Remember a text from an event, in case an item repeats it."""
        self._spoken.add(hash(words.strip()))

    def is_repeat(self, words: str) -> bool:
        """Whether an event already had this text. The text is forgotten then, so that a later repetition counts again."""
        if not self._spoken:
            return False
        mark = hash(words.strip())
        known = mark in self._spoken
        self._spoken.discard(mark)
        return known

    def finish(self) -> None:
        """Complete the counts."""
        if self.orphans:
            self.count.notes.append(f"{self.orphans} tool outputs belong to calls that this file does not hold")

    # --- which calls one model response issued together

    def mark(self, reliable: bool = False) -> None:
        """Note that a response began or ended here. A reliable mark comes once for every response."""
        self._marked = True
        self._marks_work = self._marks_work or reliable or self._output_came

    def turn_began(self) -> None:
        """Note that a person spoke or a turn began, so that a new response comes next."""
        self._marked, self._output_came = True, False

    def output_came(self) -> None:
        """Note that a tool output came."""
        self._output_came = True

    def spoke(self, item: Item) -> str:
        """Return the step of an item that the model issued."""
        sampled = integer(mapping(item.metadata).get("sampled_through_sequence")) if item.metadata else None
        # Until a line between responses was seen, a tool output is the only sign of a new response.
        guessed = self._marked or (self._output_came and not self._marks_work)
        if self.response == 0 or (guessed if sampled is None else sampled != self._sampled):
            self.response += 1
        self._sampled, self._marked, self._output_came = sampled, False, False
        return f"{self.process}:{self.response}"


def _fingerprint(content: Any) -> int:
    """Return a hash of an item's content. Most contents are a text, or parts with only texts."""
    try:
        return hash(content if isinstance(content, str) else tuple([tuple(part.items()) for part in content]))
    except (TypeError, AttributeError):
        return hash(str(content))


_TOKENS = (
    ("inputTokens", "input_tokens"),
    ("outputTokens", "output_tokens"),
    ("cachedInputTokens", "cached_input_tokens"),
    ("reasoningTokens", "reasoning_output_tokens"),
)

_REQUIRED_COUNTS = frozenset(("inputTokens", "outputTokens"))
"""An object without these two counts is no usage object."""

Tokens = dict[str, int]


def _tokens(value: object) -> Tokens | None:
    """Return the four counts of a usage object, or None if it has none."""
    body = mapping(value)
    if not body:
        return None
    found: dict[str, int] = {}
    is_usage = False
    for name, key in _TOKENS:
        count = integer(body.get(key))
        found[name] = count if count and count > 0 else 0
        is_usage = is_usage or (count is not None and name in _REQUIRED_COUNTS)
    return found if is_usage else None


@dataclass(slots=True)
class Meter:
    """Turns cumulative totals, which logs repeat, into the tokens of each response.

    Both kinds of record have the running total of the thread, so an unchanged total is a repetition, whichever kind it comes
    from. A fork continues from its parent's total, which is not counted again.
    """

    thread: Thread
    total: Tokens | None = None

    def token_count(self, item: Item) -> None:
        """Read an ``event_msg`` of type ``token_count``."""
        info = mapping(item.payload.get("info"))
        total = _tokens(info.get("total_token_usage"))
        if total is not None and total == self.total:
            return
        last: object = info.get("last_token_usage")
        if total is None and info.get("total_token_usage") is None and (found := _tokens(last)) is not None:
            total = _sum(self.total, found)
        self._advance(item, total, last, trusted=False)

    def usage_record(self, item: Item) -> None:
        """Read a ``token_usage_record``, which belongs to exactly one response."""
        usage: object = item.payload.get("usage")
        total = _tokens(item.payload.get("thread_token_usage"))
        if total is None and (found := _tokens(usage)) is not None:
            total = _sum(self.total, found)
        self._advance(item, total, usage, trusted=True)

    def turn_total(self, item: Item, usage: object) -> None:
        """Read the usage of ``turn.completed``: the running total at the end of a turn."""
        self._advance(item, _tokens(usage), None, trusted=False)

    def _advance(self, item: Item, total: Tokens | None, last: object, trusted: bool) -> None:
        if total is None or total == self.total:
            return
        before, self.total = self.total, total
        thread = self.thread
        thread.mark(reliable=True)
        # The count of a file is its last total, because every record has all tokens so far.
        thread.count.usage.clear()
        thread.count.usage.update(total)
        if thread.is_copied:  # counted in the thread from which the lines are copied
            return
        added = self._compute_added(before, total, last, trusted)
        if not any(added.values()):
            return
        thread.count.responses += 1
        data: dict[str, Any] = {
            **added, "totalInputTokens": total["inputTokens"], "totalOutputTokens": total["outputTokens"],
        }  # fmt: skip
        if thread.model is not None:
            data["model"] = thread.model
        thread.event("usage", data, item.at)

    def _compute_added(self, before: Tokens | None, total: Tokens, last: object, trusted: bool) -> Tokens:
        if trusted or (before is None and self.thread.head.forked_from is not None):
            stated = _tokens(last)
            if stated is not None:
                return stated
        if before is None:
            return total
        added = {name: count - before[name] for name, count in total.items()}
        # A smaller total was reset. Then only the record's count for its own response is known.
        return added if min(added.values()) >= 0 else _tokens(last) or total


def _sum(first: Tokens | None, second: Tokens) -> Tokens:
    return {name: count + (first or {}).get(name, 0) for name, count in second.items()}

"""Build the records of a session, for all formats.

A call is an entry with an id, and its result is a separate record. The usage of each response counts once. Ids are the source's
own if it has any; otherwise they name the place in the log, so that a log that has grown yields the same records again, and
more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count as count_from
from pathlib import Path
from typing import Any

from ctxmgr.importers.log_files import plain_name
from ctxmgr.importers.values import SIMPLE, clean, integer, milliseconds_between, moment, number, text, title
from ctxmgr.log.codec import Record
from ctxmgr.types.import_report import FileCount
from ctxmgr.types.plain_records import MAX_TIMEOUT_MS, build

_UNIQUE = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\Z")
_MAX_NAME = 200
_MAX_ID = 300
_MAX_MESSAGE = 2_000
_MAX_WAITING_RECORDS = 40
"""Maximum number of records that wait for the title of their session. Then the session begins without a title."""
_STATUSES = frozenset(("ok", "error", "denied", "interrupted"))


@dataclass(slots=True)
class Part:
    """The records of one agent's work in a session: calls, results, events, and the session itself.

    Attributes:
        session: id of the session; process: its execution, equal to the session if the format has none.
        source: name of the format.
        agent: name of the agent; parent: the entry by which another agent started this one.
        turn: id of the current human turn.
        records: records not yet taken; numbers: their places among the records of all parts.
        counter: numbers the records of all parts of a log in the order of adding.
    """

    session: str
    count: FileCount
    source: str
    agent: str = "main"
    parent: str | None = None
    process: str = ""
    turn: str | None = None
    records: list[Record] = field(default_factory=lambda: list[Record]())
    counter: Iterator[int] = field(default_factory=count_from)
    numbers: list[int] = field(default_factory=lambda: list[int]())
    _last_time: object = None
    _moment: str | None = None

    def __post_init__(self) -> None:
        self.process = self.process or self.session

    def record_time(self, at: object) -> str | None:
        """Return a time as records have it, from any form in the sources."""
        # Compare identities, because the records of one line share the object, and comparing texts
        # would cost as much as parsing.
        if at is not self._last_time:
            self._last_time, self._moment = at, moment(at)
        return self._moment

    def add(self, record: Record) -> None:
        """Add a record, numbered among the records of all parts."""
        self.numbers.append(next(self.counter))
        self.records.append(record)

    def take(self) -> tuple[list[int], list[Record]]:
        """Return (numbers, records) added since the last call; the numbers give the order among all parts."""
        taken = self.numbers[:], self.records[:]
        self.numbers.clear()
        self.records.clear()
        return taken

    def take_back(self) -> Record:
        """Remove and return the record that was added last. Later lines decide when it is added again."""
        self.numbers.pop()
        return self.records.pop()

    def entry(
        self,
        name: str,
        action: str,
        given: object,
        at: object,
        *,
        meta: Mapping[str, object],
        input_type: str | None = None,
        turn: str | None = None,
        step: str | None = None,
        timeout_ms: float | None = None,
        parent: str | None = None,
    ) -> None:
        """Add a tool call by the id of its entry, with its limit in milliseconds; its result comes later, or never."""
        self.count.tool_calls[action] += 1
        self.add(build(
            "entry", self.session, self.record_time(at), id=name, agent=self.agent, action=action,
            inputType=input_type or f"{action}Input", input=given, process=self.process, turn=turn or self.turn, step=step,
            parent=parent or self.parent or None, timeoutMs=timeout_ms, meta=_present(meta),
        ))  # fmt: skip

    def outcome(
        self,
        entry: str,
        status: str,
        at: object,
        *,
        output: object,
        error: Mapping[str, object] | None,
        duration_ms: float | None,
        meta: Mapping[str, object] | None,
    ) -> None:
        """Add the result of an entry; ``duration_ms`` is how long it took, in milliseconds."""
        self.count.failed += status != "ok"
        self.add(build(
            "result", self.session, self.record_time(at), entry=entry, status=status, output=output, error=error,
            durationMs=duration_ms, meta=meta or None,
        ))  # fmt: skip

    def add_event(
        self,
        name: str,
        kind: str,
        data: Mapping[str, object],
        at: object,
        *,
        process: str | None = None,
        turn: str | None = None,
        entry: str | None = None,
    ) -> None:
        """Add an event with its id."""
        self.add(build(
            "event", self.session, self.record_time(at),
            id=name, type=kind, agent=self.agent, process=process, turn=turn, entry=entry, data=data,
        ))  # fmt: skip

    def session_record(self, started: str | None, version: object, path: Path, about: Mapping[str, object]) -> Record:
        """Return the record of the session."""
        return build(
            "session", self.session, started, process=self.process, workflow=self.source,
            # The file name instead of the path, so that a moved or compressed log gives the same record.
            source=present(importer=self.source, version=version or None, path=plain_name(path)), meta=present(**about) or None,
        )  # fmt: skip


def present(**fields: Any) -> dict[str, Any]:
    """Return the fields that are not None, as JSON that every store accepts."""
    return _present(fields)


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value if value.__class__ in SIMPLE else clean(value) for name, value in fields.items() if value is not None}


_PLAYED = {"synthetic": True, "simulated": True}
"""Marks of the words of a program that plays the person of a conversation.

Detection hears no person in them (ruling 8). A prompt and a diagnosis read them as the user's, because they give the task. Text
that a client inserts is ``synthetic`` alone, or a nudge.
"""
_SIGN = re.compile(r"\s*#{2,}[A-Z][A-Z -]{1,40}#{2,}\s*")
"""A sign by which such a program ends the conversation, as `###STOP###`: no words of the person."""


@dataclass(slots=True)
class Call:
    """A tool call. ``answered`` is set when its result came, ``taken`` when its execution was seen."""

    entry: str
    at: str | None
    action: str
    answered: bool = False
    taken: bool = False


@dataclass(slots=True)
class Cursor:
    """State that all transcripts of a log share while it is read.

    Attributes:
        place: the current line, or element of a document; moves: number of changes of the place.
        changed: identity -> transcript with records that were not taken yet.
    """

    place: int | str = 0
    moves: int = 0
    changed: dict[int, Transcript] = field(default_factory=lambda: dict[int, Transcript]())

    def move(self, place: int | str) -> None:
        """Continue with a place."""
        self.place, self.moves = place, self.moves + 1


@dataclass(slots=True)
class Transcript(Part):
    """The work of one agent in a session, while its log is read.

    A format with other ids, places or times overrides `own_id`, `call_source` or `duration`.

    Attributes:
        part: prefix of the ids in this agent's part; for the session itself its id. By default all parts are one process,
            because another process would count as the next attempt at the same work.
        step: id of the current model response.
        played: whether a program plays the person, so that its words begin no turn.
        unnamed: entries of calls without an id, whose results come in the same order.
        calls: id -> call; waiting: the calls without a result so far.
        about: fields of the session record: {version, cwd, title, ...}; known: whether all of them are known.
        orphans: number of results without a call.
        titled: whether the record of the session was added in its final form.
    """

    part: str = ""
    cursor: Cursor = field(default_factory=Cursor)
    step: str | None = None
    started: str | None = None
    about: dict[str, Any] = field(default_factory=lambda: dict[str, Any]())
    known: bool = False
    played: bool = False
    unnamed: list[str] = field(default_factory=lambda: list[str]())
    calls: dict[str, Call] = field(default_factory=lambda: dict[str, Call]())
    waiting: dict[str, Call] = field(default_factory=lambda: dict[str, Call]())
    _made: int = 0
    _last_place: int | str = ""
    _used: set[str] = field(default_factory=lambda: set[str]())
    _opened: bool = False
    titled: bool = False
    orphans: int = 0
    _own_place: int | str = 0
    _placed_at: int = -1

    def __post_init__(self) -> None:
        Part.__post_init__(self)
        self.part = self.part or self.session
        self.count.session = self.count.session or self.session
        self.count.agent = self.count.agent or self.agent

    @property
    def place(self) -> int | str:
        """The place from which ids are derived: that of the log, or one below it, set until the log continues."""
        return self._own_place if self._placed_at == self.cursor.moves else self.cursor.place

    @place.setter
    def place(self, place: int | str) -> None:
        self._own_place, self._placed_at = place, self.cursor.moves

    @property
    def is_settled(self) -> bool:
        """Whether the session record is final, so that only new records are left to take."""
        return self.titled or (self._opened and self.parent is not None)

    def add(self, record: Record) -> None:
        """Add a record, numbered among the records of all parts."""
        if not self.records:
            self.cursor.changed[id(self)] = self
        Part.add(self, record)

    def describe(self, version: object = None, started: object = None, **about: object) -> None:
        """Set the fields of a header, unless they are already known."""
        self.started = self.started or moment(started)
        for name, value in {"version": version, **about}.items():
            if value not in (None, "", {}, []):
                self.about.setdefault(name, clean(value))
        self.count.version = self.count.version or text(version) or ""

    # --- people and the harness

    def user(self, words: str, at: object = None, record_id: object = None, *, pictures: int = 0) -> None:
        """Add words of a person, which begin a turn. In a sub-agent's part, they are words of the agent that started it."""
        if self.parent is not None and not self.played:
            self.nudge(words, "parentAgent", at, record_id)
            return
        self.count.user_messages += 1
        data = {"text": words, **({"pictures": pictures} if pictures else {}), **self._marks(words)}
        made = self.event("user_message", data, at, record_id)
        self.turn = self.turn if self.played else made
        self.about.setdefault("title", title(words))
        self.step = None

    def _marks(self, words: str) -> dict[str, bool]:
        """Return the marks of a user message: none for a person's."""
        if not self.played:
            return {}
        return {"synthetic": True} if _SIGN.fullmatch(words) else _PLAYED

    def nudge(self, words: str, origin: str, at: object = None, record_id: object = None) -> None:
        """Add a text that a program wrote in a person's name."""
        self.count.harness_messages += 1
        made = self.event("nudge", {"text": words, "origin": origin}, at, record_id)
        self.turn = self.turn or made

    # --- the model

    def message(self, words: str, at: object = None, record_id: object = None) -> None:
        """Add words of the model, unless the text is empty."""
        if words.strip():
            self.count.messages += 1
            self.event("message", {"text": words}, at, record_id)

    def add_thought(self, words: str, at: object = None, record_id: object = None) -> None:
        """Add a thought of the model, unless the text is empty."""
        if words.strip():
            self.count.thoughts += 1
            self.event("thought", {"text": words}, at, record_id)

    def call(
        self,
        call_id: object,
        name: object,
        given: object,
        at: object = None,
        *,
        record_id: object = None,
        input_type: str | None = None,
        turn: str | None = None,
        parent: str | None = None,
        timeout_ms: object = None,
        meta: Mapping[str, object] | None = None,
    ) -> str:
        """Add a tool call, which stays open until its result comes.

        An open call with the same id is the same call reported again, unless the record has its own id.

        Returns:
            The id of its entry.
        """
        action = (text(name) or "unknown")[:_MAX_NAME]
        key = text(call_id) or ""
        if key and record_id is None and key in self.waiting:  # streams and snapshots repeat an open call
            return self.waiting[key].entry
        entry = self.own_id(call_id if record_id is None else record_id)
        self.calls[key or entry] = self.waiting[key or entry] = Call(entry, self.record_time(at), action)
        self.count.open += 1
        limit = None if timeout_ms is None else number(timeout_ms)
        source = self.call_source(key)
        if meta:
            source.update(meta)
        self.entry(
            entry, action, clean(given), at, input_type=input_type, turn=turn, step=self.step, parent=parent,
            timeout_ms=limit if limit is not None and 0 < limit <= MAX_TIMEOUT_MS else None,
            meta=source,
        )  # fmt: skip
        return entry

    def call_source(self, call_id: str) -> dict[str, object]:
        """Return the place of a call in its log and its id there, for the entry's ``meta``."""
        return {"callId": call_id[:_MAX_ID] or None, "place": self.place}

    def abandon(self, call_id: str) -> None:
        """Leave a call open for good, because its result will not come under its id."""
        self.calls[call_id].answered = True
        self.waiting.pop(call_id, None)

    def has_answer(self, call_id: object) -> bool:
        """Whether a call with this id has a result."""
        known = self.calls.get(text(call_id) or "")
        return known is not None and known.answered

    def result(
        self,
        call_id: object,
        output: object = None,
        at: object = None,
        *,
        status: str = "ok",
        error: object = None,
        kind: str = "toolError",
        stated: Mapping[str, str] | None = None,
        duration_ms: object = None,
        meta: Mapping[str, object] | None = None,
    ) -> None:
        """Add the result of a call. A result without a call is only counted, and a second result is ignored.

        Args:
            call_id: id of the call, or id of its entry if the call has none.
            output: output of the tool.
            at: time of the result.
            status: ``ok``, ``error``, ``denied`` or ``interrupted``; anything else counts as an error.
            error: the error, if the source separates it from the output.
            kind: type of the error.
            stated: the complete error, {type, message}, for a format with its own types.
            duration_ms: by default the value of `duration`.
            meta: further facts from the source.
        """
        key = text(call_id) or ""
        call = self.calls.get(key)
        if call is None or call.answered:
            self.orphans += call is None
            return
        call.answered = True
        self.waiting.pop(key, None)
        status = status if status in _STATUSES else "error"
        self.count.open -= 1
        stated_ms = None if duration_ms is None else number(duration_ms)
        self.outcome(
            call.entry, status, at, output=clean(output), error=stated or _error(status, kind, error, output),
            duration_ms=self.duration(call, at) if stated_ms is None or stated_ms < 0 else stated_ms,
            meta=present(**meta) if meta else None,
        )  # fmt: skip

    def duration(self, call: Call, at: object) -> float | None:
        """Return the milliseconds between the records of call and result, for a result without a duration."""
        return milliseconds_between(call.at, self.record_time(at))

    def usage(self, at: object, response: object, model: object = None, **tokens: object) -> None:
        """Add the tokens of one model response. A second record with the same response id adds nothing."""
        found = {name: max(count, 0) for name, value in tokens.items() if (count := integer(value)) is not None}
        key = f"usage:{text(response) or self._place_id()}"
        if not any(found.values()) or key in self._used:
            return
        self._used.add(key)
        self.count.responses += 1
        self.count.usage.update(found)
        data = present(**found, model=text(model), responseId=text(response))
        self.event("usage", data, at, f"{self.part}:{key}"[:_MAX_ID])

    # --- the rest

    def event(
        self, kind: str, data: Mapping[str, object], at: object = None, record_id: object = None, *, entry: str | None = None
    ) -> str:
        """Add an event and return its id. ``entry`` is the call that it belongs to."""
        made = self.own_id(record_id)
        self.add_event(made, kind, clean(data), at, process=self.process, turn=self.turn, entry=entry)
        return made

    def failure(self, words: object, at: object = None, record_id: object = None, *, reason: str = "error") -> None:
        """Add an error that does not come from a tool, but from the model provider or the program."""
        self.event("error", {"text": (text(words) or reason)[:20_000], "reason": reason}, at, record_id)

    def is_repeated(self, name: object) -> bool:
        """Whether this was called before with the same name, e.g. the id of a record that may be written twice."""
        key = f"seen:{text(name)}"
        known = text(name) is not None and key in self._used
        self._used.add(key)
        return known

    def end(self, outcome: str, at: object = None) -> None:
        """Add the end of the session: ``completed``, ``failed`` or ``cancelled``."""
        self.add(build("sessionEnd", self.session, self.record_time(at), outcome=outcome, process=self.process))

    def take(self, *, final: bool = False) -> tuple[list[int], list[Record]]:
        """Return (numbers, records) added since the last call; the numbers give the order among all parts.

        The session record comes first, as soon as its title is known. If the records could not wait for the title, the session
        record is added again with the title later.
        """
        if not (self._opened or final or self.is_ready()):
            return [], []
        if not self.titled and (not self._opened or "title" in self.about):
            self._opened, self.titled = True, self.known or "title" in self.about
            if self.parent is None:
                self.open(self.count.path)
        return Part.take(self)

    def open(self, path: Path) -> None:
        """Insert the session record before the other records."""
        about = {**self.about}
        version = about.pop("version", None)
        # With the number of the next record: records are sorted by number, and equal ones keep their order.
        self.numbers.insert(0, self.numbers[0] if self.numbers else next(self.counter))
        self.records.insert(0, self.session_record(self.started, version, path, about))

    def is_ready(self) -> bool:
        """Whether the records can be yielded: the session's title is known, or there is no more waiting for it."""
        return (
            self._opened or self.known or self.parent is not None or "title" in self.about
            or len(self.records) >= _MAX_WAITING_RECORDS
        )  # fmt: skip

    def finish(self) -> None:
        """Complete the counts."""
        if self.orphans:
            self.count.notes.append(f"{self.orphans:,} results without their call were left out")
            self.orphans = 0

    def _place_id(self) -> str:
        # Numbered within a place instead of the log, so that a log that has grown gives the same ids.
        if self.place != self._last_place:
            self._last_place, self._made = self.place, 0
        self._made += 1
        return f"{self.place}" if self._made == 1 else f"{self.place}.{self._made}"

    def own_id(self, name: object) -> str:
        """Return a globally unique id: the source's own id if that is unique, else one below the part's prefix."""
        own = text(name)
        if own is None:
            wanted = f"{self.part}:{self._place_id()}"
        elif _UNIQUE.match(own) or own.startswith(f"{self.part}:"):
            wanted = own
        else:
            wanted = f"{self.part}:{own[:_MAX_ID]}"
        # Ids of the source may be repeated, such as ``call_0`` of a local server.
        while wanted in self._used:
            wanted = f"{self.part}:{own[:_MAX_ID] if own else ''}:{self._place_id()}"
        self._used.add(wanted)
        return wanted


def _error(status: str, kind: str, error: object, output: object) -> dict[str, str] | None:
    if status == "ok":
        return None
    words = text(error) or text(output) or status
    return {"type": kind if status == "error" else status, "message": words[:_MAX_MESSAGE]}

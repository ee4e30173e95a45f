"""Build the records of a session: what all formats share is here once.

A call is an entry with an id, its result a record of its own; each response's usage counts once; ids are the source's own
where it has some, else they name the place in the log, so that a log that has grown yields the same records again, and more.
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
"""Records that wait for the title of their session; a log whose first person speaks later is opened without one."""
_STATUSES = frozenset(("ok", "error", "denied", "interrupted"))


@dataclass(slots=True)
class Part:
    """The records of one agent's work in a session: calls, their results, events, and the session itself.

    Attributes:
        session: its id; process: the execution of it, the session itself where a format tells none apart.
        source: name of the format.
        agent: its name; parent: the entry by which another agent started this one.
        turn: id of the present human turn.
        records: added, and not yet taken; numbers: their places among the records of all parts.
        counter: numbers the records of all parts of a log in the order in which they are added.
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
        """Return a time as records have it, from any of the ways in which sources tell one."""
        # By identity: the records of one line ask with the same object, and comparing would cost as much as parsing.
        if at is not self._last_time:
            self._last_time, self._moment = at, moment(at)
        return self._moment

    def add(self, record: Record) -> None:
        """Add a record, numbered among those of all parts."""
        self.numbers.append(next(self.counter))
        self.records.append(record)

    def take(self) -> tuple[list[int], list[Record]]:
        """Return what was added since last time, and the places of that among the records of all parts."""
        taken = self.numbers[:], self.records[:]
        self.numbers.clear()
        self.records.clear()
        return taken

    def take_back(self) -> Record:
        """Take back the record that was added last; what comes later decides when it is added again."""
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
        """Add an event by its id."""
        self.add(build(
            "event", self.session, self.record_time(at),
            id=name, type=kind, agent=self.agent, process=process, turn=turn, entry=entry, data=data,
        ))  # fmt: skip

    def session_record(self, started: str | None, version: object, path: Path, about: Mapping[str, object]) -> Record:
        """Return the record of the session itself."""
        return build(
            "session", self.session, started, process=self.process, workflow=self.source,
            # The file's name and not its path: a log that was moved or packed gives the same record.
            source=present(importer=self.source, version=version or None, path=plain_name(path)), meta=present(**about) or None,
        )  # fmt: skip


def present(**fields: Any) -> dict[str, Any]:
    """Return the fields that hold something, as JSON that every store accepts."""
    return _present(fields)


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value if value.__class__ in SIMPLE else clean(value) for name, value in fields.items() if value is not None}


@dataclass(slots=True)
class Call:
    """A tool call that was made; ``answered`` once its result came, ``taken`` once its execution was seen."""

    entry: str
    at: str | None
    action: str
    answered: bool = False
    taken: bool = False


@dataclass(slots=True)
class Cursor:
    """What all transcripts of a log have in common while it is read.

    Attributes:
        place: what is being read: a line, or an element of a document; moves: how often that changed.
        changed: transcripts that got records since these were taken, by their identity.
    """

    place: int | str = 0
    moves: int = 0
    changed: dict[int, Transcript] = field(default_factory=lambda: dict[int, Transcript]())

    def move(self, place: int | str) -> None:
        """Go on to a place."""
        self.place, self.moves = place, self.moves + 1


@dataclass(slots=True)
class Transcript(Part):
    """What one agent did in a session, while its log is read.

    A format with other ids, places or times overrides `own_id`, `call_source` or `duration`.

    Attributes:
        part: what the ids of this agent's part begin with: of the session itself its id. Unless a format says otherwise all
            parts are one process, since a later one would be taken for the next attempt at the same work.
        step: id of the present model response.
        played: whether a program plays the person; its words begin no turn.
        unnamed: entries of calls without an id, whose results come in the same order.
        calls: by the ids under which they were made; waiting: those of them whose results have not come.
        about: what the session record tells: {version, cwd, title, ...}; known: whether all of it is known by now.
        orphans: results without their call.
        titled: whether the record of the session was told as it will stay.
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
        """The place that ids are made of, of what has none: the log's, or one below it until the log goes on."""
        return self._own_place if self._placed_at == self.cursor.moves else self.cursor.place

    @place.setter
    def place(self, place: int | str) -> None:
        self._own_place, self._placed_at = place, self.cursor.moves

    @property
    def is_settled(self) -> bool:
        """Whether the session's record was told as it will stay, so that only new records are left to take."""
        return self.titled or (self._opened and self.parent is not None)

    def add(self, record: Record) -> None:
        """Add a record, numbered among those of all parts."""
        if not self.records:
            self.cursor.changed[id(self)] = self
        Part.add(self, record)

    def describe(self, version: object = None, started: object = None, **about: object) -> None:
        """Take over the fields of a header; what is known already stays."""
        self.started = self.started or moment(started)
        for name, value in {"version": version, **about}.items():
            if value not in (None, "", {}, []):
                self.about.setdefault(name, clean(value))
        self.count.version = self.count.version or text(version) or ""

    # --- people and the harness

    def user(self, words: str, at: object = None, record_id: object = None, *, pictures: int = 0) -> None:
        """Add what a person said: it begins a turn. In a part of another agent's it is that agent who spoke."""
        if self.parent is not None and not self.played:
            self.nudge(words, "parentAgent", at, record_id)
            return
        self.count.user_messages += 1
        data = {"text": words, **({"pictures": pictures} if pictures else {}), **({"synthetic": True} if self.played else {})}
        made = self.event("user_message", data, at, record_id)
        self.turn = self.turn if self.played else made
        self.about.setdefault("title", title(words))
        self.step = None

    def nudge(self, words: str, origin: str, at: object = None, record_id: object = None) -> None:
        """Add text that a program wrote in a person's name."""
        self.count.harness_messages += 1
        made = self.event("nudge", {"text": words, "origin": origin}, at, record_id)
        self.turn = self.turn or made

    # --- the model

    def message(self, words: str, at: object = None, record_id: object = None) -> None:
        """Add what the model said; an empty text is none."""
        if words.strip():
            self.count.messages += 1
            self.event("message", {"text": words}, at, record_id)

    def add_thought(self, words: str, at: object = None, record_id: object = None) -> None:
        """Add what the model thought; an empty text is none."""
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
        """Add a tool call, open until its result comes.

        One that is open under the same id is the same call told again, unless it is a record with an id of its own.

        Returns:
            The id of its entry.
        """
        action = (text(name) or "unknown")[:_MAX_NAME]
        key = text(call_id) or ""
        if key and record_id is None and key in self.waiting:  # streams and snapshots write an open call again
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
        """Return the place of a call in its log and the id that it has there, for the entry's ``meta``."""
        return {"callId": call_id[:_MAX_ID] or None, "place": self.place}

    def abandon(self, call_id: str) -> None:
        """Leave a call open for good: its result will not come under its id."""
        self.calls[call_id].answered = True
        self.waiting.pop(call_id, None)

    def has_answer(self, call_id: object) -> bool:
        """Whether a call of this id was made and its result came."""
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
        """Add the result of a call; one without its call is left out and counted, a second one is left out.

        Args:
            call_id: the id under which the call was made, or its entry's id where it had none.
            output: what the tool returned.
            at: when.
            status: ``ok``, ``error``, ``denied`` or ``interrupted``; anything else counts as an error.
            error: what went wrong, where that is told apart from the output.
            kind: of the error.
            stated: the error as it will stand, {type, message}, of a format that has kinds of its own.
            duration_ms: else that which `duration` tells.
            meta: what else the source tells.
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
        """Return the milliseconds from a call's record to its result's, for a result that states no duration."""
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
        """Add an event, of a call where its ``entry`` is given, and return its id."""
        made = self.own_id(record_id)
        self.add_event(made, kind, clean(data), at, process=self.process, turn=self.turn, entry=entry)
        return made

    def failure(self, words: object, at: object = None, record_id: object = None, *, reason: str = "error") -> None:
        """Add an error that is no tool's: of the model host, of the program."""
        self.event("error", {"text": (text(words) or reason)[:20_000], "reason": reason}, at, record_id)

    def is_repeated(self, name: object) -> bool:
        """Whether this was asked about the same name before: the id of a record that may be written twice."""
        key = f"seen:{text(name)}"
        known = text(name) is not None and key in self._used
        self._used.add(key)
        return known

    def end(self, outcome: str, at: object = None) -> None:
        """Add the end of the session: ``completed``, ``failed`` or ``cancelled``."""
        self.add(build("sessionEnd", self.session, self.record_time(at), outcome=outcome, process=self.process))

    def take(self, *, final: bool = False) -> tuple[list[int], list[Record]]:
        """Return what was added since last time, and the places of that among the records of all parts.

        The session itself comes first, as soon as its title is known.

        A session that was opened without a title, since its records could not wait, is told again with it.
        """
        if not (self._opened or final or self.is_ready()):
            return [], []
        if not self.titled and (not self._opened or "title" in self.about):
            self._opened, self.titled = True, self.known or "title" in self.about
            if self.parent is None:
                self.open(self.count.path)
        return Part.take(self)

    def open(self, path: Path) -> None:
        """Put the record of the session itself before what was added."""
        about = {**self.about}
        version = about.pop("version", None)
        # With the number of the record behind it: records are sorted by these, and equal ones keep their order.
        self.numbers.insert(0, self.numbers[0] if self.numbers else next(self.counter))
        self.records.insert(0, self.session_record(self.started, version, path, about))

    def is_ready(self) -> bool:
        """Whether the records can be yielded: the session's title is known, or is not waited for any longer."""
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
        # Numbered within one place and not within the log, so that a log that has grown gives the same ids.
        if self.place != self._last_place:
            self._last_place, self._made = self.place, 0
        self._made += 1
        return f"{self.place}" if self._made == 1 else f"{self.place}.{self._made}"

    def own_id(self, name: object) -> str:
        """Return an id that is unique everywhere: the source's own where it is one, else below that of the part."""
        own = text(name)
        if own is None:
            wanted = f"{self.part}:{self._place_id()}"
        elif _UNIQUE.match(own) or own.startswith(f"{self.part}:"):
            wanted = own
        else:
            wanted = f"{self.part}:{own[:_MAX_ID]}"
        # An id of the source's may come twice, as the ``call_0`` of a local server does.
        while wanted in self._used:
            wanted = f"{self.part}:{own[:_MAX_ID] if own else ''}:{self._place_id()}"
        self._used.add(wanted)
        return wanted


def _error(status: str, kind: str, error: object, output: object) -> dict[str, str] | None:
    if status == "ok":
        return None
    words = text(error) or text(output) or status
    return {"type": kind if status == "error" else status, "message": words[:_MAX_MESSAGE]}

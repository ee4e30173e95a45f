"""Replay a recorded run through a goal, as an agent's loop would have recorded it, and weigh the brief on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from bench.detection.runs import Run
from ctxmgr.goals.brief import LAST_MESSAGES, facts, messages
from ctxmgr.goals.service import FOLDER, Goals
from ctxmgr.log.codec import Record
from ctxmgr.text.tokens import Counter
from ctxmgr.types.goal import (
    AddRequest,
    BriefRequest,
    EndRequest,
    MessageRequest,
    NextRequest,
    RecordRequest,
    Size,
    StartRequest,
    TaskDraft,
    UnblockRequest,
)

_TITLE = 300
_SHORT = 4
_POINTS = 100
_STATUSES = ("ok", "error", "denied", "interrupted")


@dataclass(frozen=True, slots=True)
class Point:
    """What an agent could read just before one of its calls.

    Attributes:
        brief, last_ten, history: sizes.
        facts, held: facts that the next step needs by definition, and how many of them the brief holds.
        values: texts and numbers of the call that came next which the history held already, ``in_ten`` and ``in_brief``
            of them in the last ten messages and in the brief.
    """

    brief: Size
    last_ten: Size
    history: Size
    facts: int
    held: int
    values: int
    in_ten: int
    in_brief: int


@dataclass(slots=True)
class Replayed:
    """One run: its points, how many actions were refused, and which kinds of facts a brief did not hold.

    ``success`` is whether its task was solved, None where nobody judged.
    """

    name: str
    success: bool | None
    points: list[Point] = field(default_factory=list[Point])
    refused: int = 0
    missing: dict[str, int] = field(default_factory=dict[str, int])


class _Messages:
    """What a loop without a brief would send, growing message by message."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._texts: list[str] = []
        self._tokens: list[int] = []
        self._chars = 0

    def add(self, record: Record) -> None:
        for message in messages([record]):
            self._texts.append(message)
            self._tokens.append(self._counter.count(message, "json"))
            self._chars += len(message)

    def sizes(self) -> tuple[Size, Size]:
        ten = self._texts[-LAST_MESSAGES:]
        return (
            Size(messages=len(ten), chars=sum(map(len, ten)), tokens=sum(self._tokens[-LAST_MESSAGES:])),
            Size(messages=len(self._texts), chars=self._chars, tokens=sum(self._tokens)),
        )

    def holds(self, value: str, most: int = 0) -> bool:
        return any(value in text for text in self._texts[-most:])


def replay(run: Run, folder: Path, counter: Counter, max_chars: int) -> Replayed:
    """Replay a run in an empty folder; a run with less than two actions has no points."""
    done = Replayed(run.name, run.success)
    total = sum(record.get("kind") == "entry" for record in run.records)
    every = max(1, total // _POINTS)
    said, open_calls = _Messages(counter), dict[str, Record]()
    with Goals(folder / FOLDER, hold=True, durability="process") as goals:
        goals.start(StartRequest(goal=_title(_first_words(run)), tasks=[TaskDraft(description="Serve what is asked for")]))
        calls, asked, acted = 0, False, False
        for record in run.records:
            kind = record.get("kind")
            if kind == "entry":
                if acted and calls % every == 0:
                    done.points.append(_weigh(goals, said, counter, max_chars, done, record))
                calls, acted = calls + 1, False
                open_calls[str(record.get("id"))] = record
            said.add(record)
            if kind == "event":
                asked = _heard(goals, record, asked)
            elif kind == "result" or record.get("status") is not None:
                call = open_calls.pop(str(record.get("entry") or record.get("id")), None)
                if call is not None:
                    _record(goals, call, record, done)
                    acted, asked = True, False
    return done


def _heard(goals: Goals, record: Record, asked: bool) -> bool:
    """Make what a person asks for the next subtask, unless nothing was done for what was asked before."""
    text = _said(record)
    if record.get("type") != "user_message" or not text:
        return asked
    if not cast("dict[str, Any]", record.get("data")).get("synthetic"):
        goals.message(MessageRequest(text=text))
    if asked:
        return True
    state = goals.state()
    if state.current is not None and "." in state.current:
        goals.done(EndRequest())
    added = goals.add(AddRequest(parent="t1", tasks=[TaskDraft(description=_title(text))]))
    goals.next(NextRequest(to=added.changed[-1]))
    return True


def _record(goals: Goals, call: Record, result: Record, done: Replayed) -> None:
    status = result.get("status") if result.get("status") in _STATUSES else "ok"
    error = result.get("error")
    told = result.get("output")
    if told is None and isinstance(error, dict):
        told = cast("dict[str, Any]", error).get("message")
    found = goals.record(
        RecordRequest(
            action=str(call.get("action") or "action"), args=call.get("input"), result=told, status=cast("Any", status)
        )
    )
    if not found:
        done.refused += 1
        if found.type == "C":
            goals.unblock(UnblockRequest())


def _weigh(goals: Goals, said: _Messages, counter: Counter, max_chars: int, done: Replayed, call: Record) -> Point:
    text, state = goals.brief(BriefRequest(max_chars=max_chars)).text, goals.state()
    needed = facts(state, text)
    for fact in needed:
        if not fact.held:
            done.missing[fact.kind] = done.missing.get(fact.kind, 0) + 1
    ten, whole = said.sizes()
    brief = Size(messages=1, chars=len(text), tokens=counter.count(text, "text"))
    known = [value for value in set(_values(call.get("input"))) if said.holds(value)]
    return Point(
        brief, ten, whole, len(needed), sum(fact.held for fact in needed), len(known),
        sum(said.holds(value, LAST_MESSAGES) for value in known), sum(value in text for value in known),
    )  # fmt: skip


def _values(given: object) -> Iterator[str]:
    """Yield the texts and numbers in a call's arguments that could be looked up: neither trifles nor whole documents."""
    if isinstance(given, dict):
        for value in cast("dict[str, object]", given).values():
            yield from _values(value)
    elif isinstance(given, list):
        for value in cast("list[object]", given):
            yield from _values(value)
    elif isinstance(given, str | int | float) and not isinstance(given, bool) and _SHORT <= len(str(given)) <= _TITLE:
        yield json.dumps(given, ensure_ascii=False).strip('"')


def _first_words(run: Run) -> str:
    return next((text for record in run.records if record.get("type") == "user_message" and (text := _said(record))), run.name)


def _said(record: Record) -> str:
    data = record.get("data")
    text = cast("dict[str, Any]", data).get("text") if isinstance(data, dict) else data
    return text if isinstance(text, str) else ""


def _title(text: str) -> str:
    return " ".join(text.split())[:_TITLE] or "unnamed"

"""Replay a recorded run through a goal, as an agent's loop would have recorded it, and weigh the brief on the way."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from bench.detection.runs import Run
from ctxmgr.assemble.counting import Counter
from ctxmgr.goals.compare import LAST, facts, messages
from ctxmgr.goals.desk import FOLDER, Goals
from ctxmgr.types.comparison import Size
from ctxmgr.types.goal import (
    AddRequest,
    BriefRequest,
    EndRequest,
    MessageRequest,
    NextRequest,
    RecordRequest,
    StartRequest,
    TaskDraft,
    UnblockRequest,
)
from ctxmgr.wire import Record

_TITLE = 300
_POINTS = 100
_STATUSES = ("ok", "error", "denied", "interrupted")


@dataclass(frozen=True, slots=True)
class Point:
    """Sizes after one action, and how many of the facts that the next step needs the brief holds."""

    brief: Size
    last_ten: Size
    history: Size
    facts: int
    held: int


@dataclass(slots=True)
class Replayed:
    """One run: its points, how many actions were refused, and which kinds of facts a brief did not hold."""

    name: str
    points: list[Point] = field(default_factory=list[Point])
    refused: int = 0
    missing: dict[str, int] = field(default_factory=dict[str, int])


class _Sizes:
    """What a loop without a brief would send, growing message by message."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._number = self._chars = self._tokens = 0
        self._last: deque[tuple[int, int]] = deque(maxlen=LAST)

    def add(self, record: Record) -> None:
        for message in messages([record]):
            size = (len(message), self._counter.count(message, "json"))
            self._last.append(size)
            self._number, self._chars, self._tokens = self._number + 1, self._chars + size[0], self._tokens + size[1]

    def now(self) -> tuple[Size, Size]:
        ten = Size(messages=len(self._last), chars=sum(s[0] for s in self._last), tokens=sum(s[1] for s in self._last))
        return ten, Size(messages=self._number, chars=self._chars, tokens=self._tokens)


def replay(run: Run, folder: Path, counter: Counter, max_chars: int) -> Replayed:
    """Replay a run in an empty folder; a run without actions has no points."""
    done = Replayed(run.name)
    total = sum(record.get("kind") == "result" for record in run.records)
    if not total:
        return done
    every = max(1, total // _POINTS)
    sizes, open_calls = _Sizes(counter), dict[str, Record]()
    with Goals(folder / FOLDER, hold=True, durability="process") as goals:
        goals.start(StartRequest(goal=_title(_first_words(run)), tasks=[TaskDraft(description="Serve what is asked for")]))
        number, asked = 0, False
        for record in run.records:
            sizes.add(record)
            if record.get("kind") == "entry":
                open_calls[str(record.get("id"))] = record
                if record.get("status") is None:
                    continue
            elif record.get("kind") != "result":
                asked = _heard(goals, record, asked)
                continue
            call = record if record.get("kind") == "entry" else open_calls.pop(str(record.get("entry")), None)
            if call is None:
                continue
            _record(goals, call, record, done)
            number, asked = number + 1, False
            if number % every == 0:
                done.points.append(_weigh(goals, sizes, counter, max_chars, done))
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


def _weigh(goals: Goals, sizes: _Sizes, counter: Counter, max_chars: int, done: Replayed) -> Point:
    text, state = goals.brief(BriefRequest(max_chars=max_chars)).text, goals.state()
    needed = facts(state, text)
    for fact in needed:
        if not fact.held:
            done.missing[fact.kind] = done.missing.get(fact.kind, 0) + 1
    ten, whole = sizes.now()
    brief = Size(messages=1, chars=len(text), tokens=counter.count(text, "text"))
    return Point(brief, ten, whole, len(needed), sum(fact.held for fact in needed))


def _first_words(run: Run) -> str:
    return next((text for record in run.records if record.get("type") == "user_message" and (text := _said(record))), run.name)


def _said(record: Record) -> str:
    data = record.get("data")
    text = cast("dict[str, Any]", data).get("text") if isinstance(data, dict) else data
    return text if isinstance(text, str) else ""


def _title(text: str) -> str:
    return " ".join(text.split())[:_TITLE] or "unnamed"

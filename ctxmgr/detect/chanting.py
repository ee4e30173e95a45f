"""Find a model that is caught in its own text: one phrase over and over, or prose without end and without an action."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ctxmgr.detect.interface import Opinion, Sighting, Wake
from ctxmgr.detect.normal import one_line
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.speech import CHUNKS, MESSAGES, THOUGHTS, length_of, text_of
from ctxmgr.detect.step import Call, Step
from ctxmgr.types.finding import FindingKind
from ctxmgr.types.observation import Observation

_END = re.compile(r"(?<=[.!?…。！？])(?:\s+|(?=[A-Z]))|\n+")
_STRUCTURE = ("|", "-", "*", "+", "•", "#", ">", "{", "[", "}", "]", "<", '"', "\t", "    ", "@@", "//")
_NUMBERED = re.compile(r"\(?[0-9]{1,4}[.):]\s")
_TAIL = 1000
_PERIODIC = 400
_PHRASES = 40
_SHARE = 4
_SHORT = 12
_KEPT = 64
_NEXT = 2
"""How far apart two neighbours of a log are (see `observations_of`): a record may be a start and a finish at once."""


class _Stream(NamedTuple):
    """One stream of text as far as it matters: its unfinished end, its last phrases, and how much of it is prose."""

    tail: str = ""
    phrases: tuple[str, ...] = ()
    fenced: bool = False
    steps: tuple[Step, ...] = ()
    prose: int = 0
    since: float | None = None


class ChantingDetector:
    """Reads what is said sentence by sentence, in whatever pieces it comes; messages and thoughts apart.

    Code, tables, lists, headings, quotes and JSON repeat themselves by nature and are passed over. A whole message is a
    stream of its own; pieces go on where the last one ended. Any action ends the stream.

    Much text in one message may be a long answer, and between others' words a conversation: a suspicion. Message after
    message with nothing at all between is an agent that has stopped working.
    """

    kind: FindingKind = "chanting"
    wake: int = Wake.NEVER
    hears = MESSAGES | THOUGHTS | CHUNKS
    watchful = True
    session_wide = False

    def __init__(self, settings: DetectSettings) -> None:
        self._settings = settings
        self.state: dict[str, _Stream] = {}

    def take(self, step: Step, past: Sequence[Step]) -> Sighting | None:
        """Forget the streams: the agent acted."""
        self.state = {}
        return None

    def hear(self, event: Observation) -> Sighting | None:
        """Return a sighting when a phrase came back often enough, or when the text is too much."""
        text = text_of(event)
        if not text:
            return None
        name = "thought" if "thought" in (event.type or "") or event.type in THOUGHTS else "message"
        old = self.state.get(name, _Stream())
        step = Step((Call.said(event, text),))
        if event.type not in CHUNKS:
            old = old._replace(tail="", phrases=(), fenced=False, prose=_volume(old))
        since = event.at if old.since is None else old.since
        stream = _read(old, text)._replace(steps=(*old.steps, step)[-_KEPT:], since=since)
        self.state = {**self.state, name: stream}
        rounds = self._settings.chant_rounds
        phrase = _chanted(stream, rounds)
        if phrase is not None:
            own = stream.steps[-rounds:] if event.type in CHUNKS else (step,)
            facts = (("said", one_line(phrase, 300)),)
            return Sighting(self.kind, (name, "chant"), 1, own, rounds, 0.85, leave=1, facts=facts)
        lasted = 0.0 if event.at is None or since is None else event.at - since
        volume = _volume(stream)
        if volume > self._settings.volume_chars and lasted > self._settings.volume_seconds:
            facts = (("characters", volume), ("seconds", round(lasted, 3)))
            alone = len(stream.steps) >= self._settings.monologue_rounds and _speaks_on_end(stream)
            return Sighting(
                self.kind, (name, "volume"), 1, stream.steps[-rounds:], 1, 0.6, severity="loop" if alone else "warn", leave=1,
                facts=facts,
            )  # fmt: skip
        return None

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say that the agent acted."""
        return Opinion(self.kind, "", 0, self._settings.chant_rounds, "the agent acted, which ends the stream")

    def reset(self) -> None:
        """Forget everything: a person spoke."""
        self.state = {}


def _read(stream: _Stream, text: str) -> _Stream:
    """Return the stream with more text: whole phrases become phrases, the rest stays its tail."""
    *whole, tail = _END.split(stream.tail + text)
    fenced, prose = stream.fenced, stream.prose
    phrases = list(stream.phrases)
    for piece in whole:
        if piece.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced and not _is_structure(piece):
            prose += length_of(piece)
            phrases.append(" ".join(piece.lower().split()))
    return stream._replace(tail=tail[-_TAIL:], phrases=tuple(phrases[-_PHRASES:]), fenced=fenced, prose=prose)


def _speaks_on_end(stream: _Stream) -> bool:
    """Whether the stream is whole messages that stand side by side in the log: nobody else spoke or did anything."""
    events = [step.first.start for step in stream.steps]
    return all(event.type in MESSAGES and event.agent is not None for event in events) and all(
        later.seq - event.seq <= _NEXT for event, later in pairwise(events)
    )


def _volume(stream: _Stream) -> int:
    """Return how many characters of prose a stream holds, its unfinished end included."""
    return stream.prose + (0 if stream.fenced or _is_structure(stream.tail) else length_of(stream.tail))


def _is_structure(piece: str) -> bool:
    """Whether a line belongs to code, a table, a list or the like, or holds no word at all."""
    if length_of(piece) != len(piece):
        return False
    if piece.startswith(_STRUCTURE) or not any(char.isalnum() for char in piece[:_TAIL]):
        return True
    return _NUMBERED.match(piece.lstrip()) is not None


def _chanted(stream: _Stream, rounds: int) -> str | None:
    """Return the phrase that is chanted, or None."""
    if stream.phrases:
        last = stream.phrases[-1]
        window = stream.phrases[-rounds * _SHARE :]
        times = window.count(last)
        if times >= rounds and (len(last) >= _SHORT or times * 2 >= len(window[window.index(last) :])):
            return last
    tail = stream.tail[-_PERIODIC:]
    if stream.fenced or len(tail) < _PERIODIC // 2 or _is_structure(stream.tail):
        return None
    end = tail[-max(8, len(tail) // rounds) :]
    before = tail.rfind(end, 0, len(tail) - 1)
    period = len(tail) - len(end) - before
    if before < 0 or len(tail) < period * rounds or tail[period:] != tail[:-period]:
        return None
    return tail[-period:] if any(char.isalnum() for char in tail[-period:]) else None

"""Find a model that is caught in its own text: one phrase over and over, or prose without end and without an action."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ctxmgr.detect.interface import Opinion, Sighting, Wake
from ctxmgr.detect.normal import one_line
from ctxmgr.detect.settings import DetectSettings
from ctxmgr.detect.speech import CHUNKS, MESSAGES, THOUGHTS, length_of, may_hold_stub, text_of
from ctxmgr.detect.step import Call, Step
from ctxmgr.types.finding import FindingKind
from ctxmgr.types.observation import Observation

_END = re.compile(r"([.!?…。！？\n])(?:(?<=\n)\n*|(?<!\n)(?:\s+|(?=[A-Z])))")
"""Where a phrase ends; it begins with a set of characters, since only these are looked for fast."""
_STRUCTURE = ("|", "-", "*", "+", "•", "#", ">", "{", "[", "}", "]", "<", '"', "\t", "    ", "@@", "//")
_NUMBERED = re.compile(r"\s*\(?[0-9]{1,4}[.):]\s")
_WORDY = re.compile(r"[^\W_]")
_FENCES = ("```", "~~~")
_SIGMAS = ("σ", "ς")
_TAIL = 1000
_PERIODIC = 400
_PHRASES = 40
_SHARE = 4
_SHORT = 12
_KEPT = 64
_LOOKS = (256, 1024)
_NEXT = 2
"""How far apart two neighbours of a log are (see `observations_of`): a record may be a start and a finish at once."""


class _Stream(NamedTuple):
    """One stream of text as far as it matters: its unfinished end, its last phrases, and how much of it is prose.

    ``unread`` are whole messages after that, in which nothing is chanted, and ``most`` how much prose they hold at most:
    they are read when that may be too much, or when a piece comes that goes on where the last of them ended.
    """

    tail: str = ""
    phrases: tuple[str, ...] = ()
    fenced: bool = False
    events: tuple[Observation, ...] = ()
    prose: int = 0
    since: float | None = None
    unread: tuple[str, ...] = ()
    most: int = 0


_NOTHING = _Stream()


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
        old = self.state.get(name, _NOTHING)
        whole = event.type not in CHUNKS
        since = event.at if old.since is None else old.since
        events = (*old.events[1 - _KEPT :], event)
        most = old.most + len(text)
        if whole and most <= self._settings.volume_chars and _is_free(text, self._settings.chant_rounds):
            unread = (*old.unread, text)
            stream = _Stream(old.tail, old.phrases, old.fenced, events, old.prose, since, unread, most)
        else:
            stream = _read_all(old, text, whole=whole)._replace(events=events, since=since)
        self.state = {**self.state, name: stream}
        return None if stream.unread else self._judge(name, stream, event, text)

    def _judge(self, name: str, stream: _Stream, event: Observation, text: str) -> Sighting | None:
        """Return what a stream shows that is read to its end."""
        rounds = self._settings.chant_rounds
        phrase = _chanted(stream, rounds)
        if phrase is not None:
            own = _steps(stream.events[-rounds:]) if event.type in CHUNKS else (Step((Call.said(event, text),)),)
            facts = (("said", one_line(phrase, 300)),)
            return Sighting(self.kind, (name, "chant"), 1, own, rounds, 0.85, leave=1, facts=facts)
        lasted = 0.0 if event.at is None or stream.since is None else event.at - stream.since
        volume = _volume(stream)
        if volume > self._settings.volume_chars and lasted > self._settings.volume_seconds:
            facts = (("characters", volume), ("seconds", round(lasted, 3)))
            alone = len(stream.events) >= self._settings.monologue_rounds and _speaks_on_end(stream)
            return Sighting(
                self.kind, (name, "volume"), 1, _steps(stream.events[-rounds:]), 1, 0.6, severity="loop" if alone else "warn",
                leave=1, facts=facts,
            )  # fmt: skip
        return None

    def opinion(self, step: Step, past: Sequence[Step]) -> Opinion:
        """Say that the agent acted."""
        return Opinion(self.kind, "", 0, self._settings.chant_rounds, "the agent acted, which ends the stream")

    def reset(self) -> None:
        """Forget everything: a person spoke."""
        self.state = {}


def _steps(events: Sequence[Observation]) -> tuple[Step, ...]:
    return tuple(Step((Call.said(event, text_of(event)),)) for event in events)


def _pieces(text: str) -> tuple[list[str], str]:
    """Return the whole phrases of a text, each with the mark at its end but not the blanks behind it, and the rest."""
    parts = _END.split(text)
    rest = parts.pop()
    return [_piece(piece, mark) for piece, mark in zip(parts[::2], parts[1::2], strict=True)], rest


def _piece(words: str, mark: str) -> str:
    return words if mark == "\n" else words + mark


def _is_free(text: str, rounds: int) -> bool:
    """Whether a look at its end shows that nothing is chanted in a whole message (see `_chanted`), nor is it longer than it is.

    What would be chanted is its last phrase.
    """
    if may_hold_stub(text) or _may_fence(text):
        return False  # what of it is prose only reading all of it can tell
    for size in _LOOKS:
        cut = len(text) > size
        parts = _END.split(text[-size:])
        last, first = len(parts) - 1, 0
        if cut:
            # The first piece is cut, and with it blanks that it may begin in the midst of.
            while first < last and not (parts[first] + parts[first + 1]).strip():
                first += 2
            first += 2
            if first >= last:
                continue
        if len(parts[last]) >= _PERIODIC // 2:
            return False
        for place in range(last - 2, first - 1, -2):
            words = parts[place]
            if not words or words.startswith(_STRUCTURE):
                continue
            if words[0].isalpha() or not _is_structure(_piece(words, parts[place + 1])):
                return _is_rare(_piece(words, parts[place + 1]).lower(), text.lower(), rounds)
        if not cut:
            return True
    return False


def _may_fence(text: str) -> bool:
    # One mark is looked for in a tenth of the time that three take, and most texts hold none.
    return ("`" in text and _FENCES[0] in text) or ("~" in text and _FENCES[1] in text)


def _is_rare(phrase: str, text: str, rounds: int) -> bool:
    """Whether a phrase of a text comes less often than so many times, both in small letters; one with a sigma may not be.

    How a sigma is written small depends on what follows it, so that it may differ between the two.
    """
    return not (_SIGMAS[0] in phrase or _SIGMAS[1] in phrase) and text.count(max(phrase.split(), key=len)) < rounds


def _read_all(stream: _Stream, text: str, *, whole: bool) -> _Stream:
    """Return the stream with everything unread and one more text read."""
    for unread in stream.unread:
        stream = _read(_begun(stream), unread)
    stream = _read(_begun(stream) if whole else stream, text)
    return stream._replace(unread=(), most=_volume(stream))


def _begun(stream: _Stream) -> _Stream:
    """Return the stream at the start of a whole message."""
    return stream._replace(tail="", phrases=(), fenced=False, prose=_volume(stream))


def _read(stream: _Stream, text: str) -> _Stream:
    """Return the stream with more text: whole phrases become phrases, the rest stays its tail."""
    text = stream.tail + text
    whole, tail = _pieces(text)
    fenced, prose = stream.fenced, stream.prose
    may_fence = _may_fence(text)
    spoken: list[str] = []
    for piece in whole:
        if may_fence and piece.lstrip().startswith(_FENCES):
            fenced = not fenced
        elif not fenced and not _is_structure(piece):
            prose += length_of(piece)
            spoken.append(piece)
    phrases = [*stream.phrases, *(" ".join(piece.lower().split()) for piece in spoken[-_PHRASES:])]
    return stream._replace(tail=tail[-_TAIL:], phrases=tuple(phrases[-_PHRASES:]), fenced=fenced, prose=prose)


def _speaks_on_end(stream: _Stream) -> bool:
    """Whether the stream is whole messages that stand side by side in the log: nobody else spoke or did anything."""
    return all(event.type in MESSAGES and event.agent is not None for event in stream.events) and all(
        later.seq - event.seq <= _NEXT for event, later in pairwise(stream.events)
    )


def _volume(stream: _Stream) -> int:
    """Return how many characters of prose a stream holds, its unfinished end included."""
    return stream.prose + (0 if stream.fenced or _is_structure(stream.tail) else length_of(stream.tail))


def _is_structure(piece: str) -> bool:
    """Whether a line belongs to code, a table, a list or the like, or holds no word at all."""
    if length_of(piece) != len(piece):
        return False
    return piece.startswith(_STRUCTURE) or _WORDY.search(piece, 0, _TAIL) is None or _NUMBERED.match(piece) is not None


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

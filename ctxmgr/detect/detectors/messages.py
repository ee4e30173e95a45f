"""Detect agents that only talk: messages without a call between them, and text that repeats itself while it is written."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ctxmgr.detect.interface import Opinion, Sighting, Wake
from ctxmgr.detect.settings import MAX_CHANT_ROUNDS, DetectSettings
from ctxmgr.detect.step import Call, ObservedStep
from ctxmgr.detect.text.comparison import (
    CHUNKS,
    MESSAGES,
    THOUGHTS,
    MessageText,
    are_alike,
    event_text,
    may_hold_stub,
    text_length,
)
from ctxmgr.detect.text.fingerprints import one_line
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import FindingKind, Observation

# A space or a capital must follow, because "a.py" and "3.5" end no phrase.
_END = lazy_pattern(r"[.!?…。！？](?=[\sA-Z])|\n")
"""The end of a phrase. The pattern begins with a set of characters, for which the matcher searches fast."""
# Tables, lists, headings, quotes, code and JSON naturally repeat. In another tool, they caused most false alarms for chants.
_STRUCTURE = ("|", "-", "*", "+", "•", "#", ">", "{", "[", "}", "]", "<", '"', "\t", "    ", "@@", "//")
_NUMBERED = lazy_pattern(r"\s*\(?[0-9]{1,4}[.):]\s")
_NUMBER = lazy_pattern(r"\s*\(?[0-9]{1,4}\.")
_WORDY = lazy_pattern(r"[^\W_]")
_FENCES = ("```", "~~~")
_SIGMAS = ("σ", "ς")  # lower() turns a capital sigma into one or the other, depending on what follows
_MAX_PHRASE = 1000
"""Length at which a phrase without an end is cut."""
_MIN_LINE = 10
"""Characters needed to tell whether an unfinished line is prose."""
_SCAN_STEP = 10
"""Distance in characters between the positions at which a period is searched for."""
_MAX_CANDIDATES = 8
"""Number of earlier occurrences of a text's last characters that are tried as the start of its period."""
_START = lazy_pattern(r"(?<=[.!?…\s])[A-Z]")
_WORD_START = lazy_pattern(r"(?<=\s)\S")
_END_SIZE = 12
_MAX_PERIOD = 250
"""Longest period in characters. gemini-cli allows the same average gap between repeats."""
_MIN_REPEATED = 200
"""Characters that must repeat in text that has no separate phrases."""
_MAX_TEXT = 2 * _MAX_PHRASE + _MAX_PERIOD * 2
_MAX_ROUND = 12
_SHARE = 4
"""A phrase is chanted if it makes up this fraction (a fourth) of the last ones, whatever is said in between."""
_MIN_PHRASE = 12
"""Characters from which `_SHARE` applies. A shorter phrase ("Done.") must make up half of the last ones."""
# As in gemini-cli, which allows at most five different texts between two equal ones.
_MAX_DIFFERENT = 5
_MAX_ASIDE = 120
"""Characters of other prose that end a chant."""
_MAX_EVENTS = 64
_END_SIZES = (256, 1024)
"""Characters that are read from the end of a message: first so many, then more if they hold no prose."""
_MAX_SEQ_GAP = 2
"""Maximum distance of neighbours in a log (see `session_observations`): one record may be both a start and a finish."""


class _Chant(NamedTuple):
    """Text that is said over and over.

    Attributes:
        said: the text of one round.
        phrases: its phrases; empty if it was found by its period.
        period: characters of one round; 0 if it was found by its phrases.
        times: number of rounds.
        at: position in the stream at which the last round ended.
    """

    said: str
    phrases: tuple[str, ...]
    period: int
    times: int
    at: int


class _Stream(NamedTuple):
    """One stream of text, reduced to what the detector needs.

    Everything but ``events``, ``since`` and the unread messages depends only on the joined text, not on where it was cut.

    Attributes:
        tail: the unfinished phrase; taken: how many of its characters are in ``text``.
        phrases: the last phrases of prose; text: the last characters of prose; read: how many were read in all.
        fenced: the stream is within a block of code.
        prose: characters of finished phrases.
        chant: the current chant, if any; over: a chant that has just ended.
        unread: later whole messages without a chant; ``most``: the prose they can hold at most. They are read if that may
            exceed the limit, or if a piece continues the last of them.
    """

    tail: str = ""
    taken: int = 0
    phrases: tuple[str, ...] = ()
    text: str = ""
    read: int = 0
    fenced: bool = False
    prose: int = 0
    chant: _Chant | None = None
    over: _Chant | None = None
    events: tuple[Observation, ...] = ()
    since: float | None = None
    unread: tuple[str, ...] = ()
    most: int = 0


_NOTHING = _Stream()


class ChantingDetector:
    """Reads messages phrase by phrase, whatever their pieces; messages and thoughts are separate streams.

    A chant is one phrase over and over, a round of several, a few in any order, or repeating text without phrases. Code,
    tables, lists, headings, quotes and JSON naturally repeat, and are ignored. A whole message is a stream of its own; a
    piece continues the last one. Any action ends the stream.

    Much text is a suspicion: in one message it may be a long answer, between the words of others a conversation. Message
    after message with nothing else between them is an agent that has stopped working.
    """

    kind: FindingKind = "chanting"
    wake: int = Wake.NEVER
    hears = MESSAGES | THOUGHTS | CHUNKS
    watchful = True
    session_wide = False

    def __init__(self, settings: DetectSettings) -> None:
        self._settings = settings
        self.state: dict[str, _Stream] = {}

    def take(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Sighting | None:
        """Forget the streams, because the agent acted."""
        self.state = {}
        return None

    def hear(self, event: Observation) -> Sighting | None:
        """Return a sighting if a phrase came back often enough, or if there is too much text."""
        text = event_text(event)
        if not text:
            return None
        name = "thought" if "thought" in (event.type or "") or event.type in THOUGHTS else "message"
        old = self.state.get(name, _NOTHING)
        is_complete = event.type not in CHUNKS
        since = event.at if old.since is None else old.since
        events = (*old.events[1 - _MAX_EVENTS :], event)
        most = old.most + len(text)
        rounds = self._settings.chant_rounds
        # Most messages end without a chant, which their end alone shows. They are read only when that may matter.
        if is_complete and most <= self._settings.volume_chars and _holds_no_chant(text, rounds):
            unread = (*old.unread, text)
            stream = old._replace(events=events, since=since, unread=unread, most=most, over=None)
        else:
            stream = _read_all(old, text, rounds, is_complete=is_complete)._replace(events=events, since=since)
        self.state = {**self.state, name: stream}
        return None if stream.unread else self._judge(name, stream, event, text)

    def _judge(self, name: str, stream: _Stream, event: Observation, text: str) -> Sighting | None:
        """Return the sighting of a stream that is read to its end, if any."""
        rounds = self._settings.chant_rounds
        pieces = event.type in CHUNKS
        # Pieces can be stopped at any time, so a chant counts at once. A whole message counts only if it ends with the chant.
        chant = (stream.chant or stream.over) if pieces else _chant_to_end(stream)
        if chant is not None:
            own = _make_steps(stream.events[-rounds:]) if pieces else (ObservedStep((Call.from_event(event, text),)),)
            facts = (("said", one_line(chant.said, 300)),)
            return Sighting(
                self.kind, (name, "chant"), 1, own, rounds, 0.85, leave=1, facts=facts, total=chant.times,
                over=stream.chant is None,
            )  # fmt: skip
        # Both limits come from another tool (Cline: more than 15,000 characters and 60 s without a tool call).
        lasted = 0.0 if event.at is None or stream.since is None else event.at - stream.since
        volume = _volume(stream)
        if volume > self._settings.volume_chars and lasted > self._settings.volume_seconds:
            facts = (("characters", volume), ("seconds", round(lasted, 3)))
            alone = len(stream.events) >= self._settings.monologue_rounds and _speaks_alone(stream)
            return Sighting(
                self.kind, (name, "volume"), 1, _make_steps(stream.events[-rounds:]), 1, 0.6,
                severity="loop" if alone else "warn",
                leave=1, facts=facts,
            )  # fmt: skip
        return None

    def opinion(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Opinion:
        """Return the opinion that the agent acted."""
        return Opinion(self.kind, "", 0, self._settings.chant_rounds, "the agent acted, which ends the stream")

    def reset(self) -> None:
        """Forget everything, because a person spoke."""
        self.state = {}


def _chant_to_end(stream: _Stream) -> _Chant | None:
    """Return the chant that lasts to the very end of a whole message."""
    chant = stream.chant
    if chant is None:
        return None
    if not chant.period:
        return chant if chant.at == stream.read else None
    text = stream.text.rstrip("\n")
    return chant if _is_periodic(text, len(text), chant.period, 2 * chant.period) else None


def _make_steps(events: Sequence[Observation]) -> tuple[ObservedStep, ...]:
    return tuple(ObservedStep((Call.from_event(event, event_text(event)),)) for event in events)


def _split_phrases(text: str) -> tuple[list[str], str]:
    """Return the complete phrases of a text with spaces and punctuation, and the rest. The number of a list item ends none."""
    phrases: list[str] = []
    begin = 0
    for match in _END.finditer(text):
        end = match.end()
        if end - begin <= _MIN_LINE and match[0] == "." and _NUMBER.fullmatch(text, begin, end):
            continue
        phrases.append(text[begin:end])
        begin = end
    return phrases, text[begin:]


def _holds_no_chant(text: str, rounds: int) -> bool:
    """Whether the end of a complete message shows that it holds no chant.

    A chant that lasts to the end holds the last phrase, so it is enough that this phrase is rare. False if the end can't
    tell: if there is code, or a stub that counts for more than its length.
    """
    if may_hold_stub(text) or _may_fence(text):
        return False  # to find the prose, all of it must be read
    for size in _END_SIZES:
        cut = len(text) > size
        phrases, rest = _split_phrases(text[-size:])
        phrases.append(rest)
        # The first phrase of a cut text lacks its start, which distinguishes structure from prose.
        for phrase in reversed(phrases[1:] if cut else phrases):
            # A long phrase may repeat within itself. Then it does not matter how rare it is as a whole.
            if len(phrase) >= _MIN_REPEATED:
                return False
            if not phrase.isspace() and not _is_structure(phrase):
                # Every rule of `_find_chant` needs one phrase in at least half of the rounds.
                return _is_rare(phrase.strip().lower(), text.lower(), max(2, rounds // 2))
        if not cut:
            return True
    return False


def _may_fence(text: str) -> bool:
    # A search for one character takes a tenth of the time of a search for three, and most texts have none.
    return ("`" in text and _FENCES[0] in text) or ("~" in text and _FENCES[1] in text)


def _is_rare(phrase: str, text: str, rounds: int) -> bool:
    """Whether a phrase comes fewer than ``rounds`` times in a text, both in lower case; False if this can't be told.

    It counts the phrase's longest word, which is faster and never less frequent. A sigma may be written in two ways.
    """
    return not (_SIGMAS[0] in phrase or _SIGMAS[1] in phrase) and text.count(max(phrase.split(), key=len)) < rounds


def _read_all(stream: _Stream, text: str, rounds: int, *, is_complete: bool) -> _Stream:
    """Return the stream after reading all unread messages and one more text."""
    for unread in stream.unread:
        stream = _add_text(_begin_message(stream), unread + "\n", rounds)
    stream = _add_text(_begin_message(stream), text + "\n", rounds) if is_complete else _add_text(stream, text, rounds)
    return stream._replace(unread=(), most=_volume(stream))


def _begin_message(stream: _Stream) -> _Stream:
    """Return the stream at the start of a whole message."""
    return _Stream(prose=_volume(stream), events=stream.events, since=stream.since, unread=stream.unread, most=stream.most)


def _add_text(stream: _Stream, text: str, rounds: int) -> _Stream:
    """Return the stream after reading more text: complete phrases, then as much as there is of an unfinished one."""
    phrases, rest = _split_phrases(stream.tail + text)
    stream = stream._replace(over=None, tail="")
    for phrase in phrases:
        while len(phrase) > _MAX_PHRASE:
            stream, phrase = _add_phrase(stream, phrase[:_MAX_PHRASE], rounds), phrase[_MAX_PHRASE:]
        stream = _add_phrase(stream, phrase, rounds)
    while len(rest) > _MAX_PHRASE:
        stream, rest = _add_phrase(stream, rest[:_MAX_PHRASE], rounds), rest[_MAX_PHRASE:]
    # A code block ends with its fence, not with the line. Otherwise, prose after the fence would wait for the line end.
    if stream.fenced and rest.lstrip().startswith(_FENCES):
        rest = rest.lstrip()[3:]
        stream = stream._replace(fenced=False)
    stream = stream._replace(tail=rest)
    if len(rest) < _MIN_LINE or stream.fenced or _opens_fence(rest) or _is_structure(rest):
        return stream
    return _take_text(stream, rest, rounds, taken=len(rest))


def _opens_fence(phrase: str) -> bool:
    return phrase.lstrip().startswith(_FENCES)


def _add_phrase(stream: _Stream, phrase: str, rounds: int) -> _Stream:
    """Return the stream with one more complete phrase."""
    if _opens_fence(phrase):
        if not stream.fenced:
            return stream._replace(fenced=True, taken=0)
        # Text on the same line after the end of a code block is no code.
        return _add_phrase(stream._replace(fenced=False, taken=0), phrase.lstrip()[3:], rounds)
    if stream.fenced or _is_structure(phrase):
        return stream._replace(taken=0) if stream.taken else stream
    stream = _take_text(stream, phrase, rounds, prose=text_length(phrase))
    words = " ".join(phrase.lower().split())
    phrases = (*stream.phrases[1 - MAX_CHANT_ROUNDS :], words)
    stream = stream._replace(phrases=phrases)
    chant = stream.chant
    if chant is None:
        found = _find_chant(phrases, rounds)
        if found is None:
            return stream
        said, times = found
        return stream._replace(chant=_Chant(" ".join(said), said, 0, times, stream.read))
    if words in chant.phrases:
        # A round counts once, at its last phrase.
        times = chant.times + (words == chant.phrases[-1])
        return stream._replace(chant=chant._replace(times=times, at=stream.read))
    return stream


def _take_text(stream: _Stream, phrase: str, rounds: int, *, taken: int = 0, prose: int = 0) -> _Stream:
    """Return the stream with the new part of a phrase of prose, checked every few characters.

    Of an unfinished phrase, ``taken`` characters are in the text then. A finished one adds ``prose`` characters.
    """
    text = stream.text + phrase[stream.taken :]
    chant, over = stream.chant, stream.over
    shift = stream.read - len(stream.text)
    read = shift + len(text)
    phrases = stream.phrases
    # The checks are at fixed positions of the joined text, so it does not matter in which pieces the text came.
    for at in range(stream.read // _SCAN_STEP * _SCAN_STEP + _SCAN_STEP, read + 1, _SCAN_STEP):
        if chant is not None:
            # A chant that was found by its phrases is counted by them in `_add_phrase`; here it can only end.
            if chant.period and _is_periodic(text, at - shift, chant.period, min(at - chant.at + chant.period, _MAX_TEXT)):
                chant = chant._replace(
                    times=chant.times + (at - chant.at) // chant.period, at=at - (at - chant.at) % chant.period
                )
            elif at - chant.at > max(_MAX_ASIDE, 2 * chant.period):
                # Drop the phrases too: another chant needs all of its rounds anew.
                chant, over, phrases = None, chant, ()
            continue
        period = _period(text, at - shift, rounds)
        if period:
            chant = _Chant(_cut_to_sentence(text[at - shift - period : at - shift]), (), period, rounds, at)
    return stream._replace(
        text=text[-_MAX_TEXT:], read=read, chant=chant, over=over, phrases=phrases, taken=taken, prose=stream.prose + prose
    )


def _period(text: str, end: int, rounds: int) -> int:
    """Return the period with which a text repeats up to ``end``, for long enough to be a chant; else 0.

    The search runs only every few characters, so that many may be missing from the rounds.
    """
    if end < _MIN_REPEATED:
        return 0
    # The last characters must also occur one period earlier. Each place where they do is a candidate.
    last, before = text[end - _END_SIZE : end], end - _END_SIZE
    for _ in range(_MAX_CANDIDATES):
        # Two occurrences may overlap by all but one character; otherwise a short period would be missed.
        before = text.rfind(last, max(0, end - _MAX_PERIOD - _END_SIZE), before + _END_SIZE - 1)
        if before < 0:
            return 0
        period = end - _END_SIZE - before
        if _is_periodic(text, end, period, max(_MIN_REPEATED, period * rounds - _SCAN_STEP)):
            return period if _WORDY.search(text, end - period, end) else 0
    return 0


def _cut_to_sentence(said: str) -> str:
    """Return a repeated text, rotated to begin at a sentence, else at a word."""
    # The text may have been cut anywhere. Doubled, it also contains its seam.
    twice = said + said
    match = _START.search(twice) or _WORD_START.search(twice)
    begin = match.start() % len(said) if match else 0
    return twice[begin : begin + len(said)]


def _is_periodic(text: str, end: int, period: int, length: int) -> bool:
    begin = end - length
    return begin >= 0 and text[begin + period : end] == text[begin : end - period]


def _speaks_alone(stream: _Stream) -> bool:
    """Whether the stream consists of whole messages next to each other in the log, with no other event between them."""
    return all(event.type in MESSAGES and event.agent is not None for event in stream.events) and all(
        later.seq - event.seq <= _MAX_SEQ_GAP for event, later in pairwise(stream.events)
    )


def _volume(stream: _Stream) -> int:
    """Return the number of characters of prose in a stream, including its unfinished end."""
    return stream.prose + (0 if stream.fenced or _is_structure(stream.tail) else text_length(stream.tail))


def _is_structure(piece: str) -> bool:
    """Whether a line belongs to code, a table, a list or the like, or holds no word at all."""
    looks = piece.startswith(_STRUCTURE) or _WORDY.search(piece, 0, _MAX_PHRASE) is None or _NUMBERED.match(piece) is not None
    # A stub replaces text of another length, which was no structure.
    return looks and text_length(piece) == len(piece)


def _find_chant(phrases: tuple[str, ...], rounds: int) -> tuple[tuple[str, ...], int] | None:
    """Return the chanted phrases and their count, or None. The last phrase of the result was said last."""
    last = phrases[-1]
    if last not in phrases[-1 - _MAX_ROUND : -1]:
        return None
    window = phrases[-rounds * _SHARE :]
    times = window.count(last)
    if times >= rounds and (len(last) >= _MIN_PHRASE or times * 2 >= len(window[window.index(last) :])):
        return (last,), times
    for period in range(2, _MAX_ROUND + 1):
        # A long round hardly repeats exactly by intention, so it needs fewer repeats than a short one.
        needed = rounds if period == 2 else max(2, rounds * 3 // 5)
        seen = phrases[-period * needed :]
        # Alternating single words ("Yes." and "No.") are short answers.
        if len(seen) == period * needed and seen[period:] == seen[:-period] and any(" " in phrase for phrase in seen[:period]):
            return seen[-period:], needed
    window = phrases[-_MAX_DIFFERENT * rounds :]
    few = set(window)
    # A few phrases in any order: at least two must have more than one word, and none may be rare.
    is_full = len(window) == _MAX_DIFFERENT * rounds and len(few) <= _MAX_DIFFERENT
    if is_full and sum(" " in phrase for phrase in few) >= 2 and min(map(window.count, few)) >= rounds // 2:
        # The phrase just said comes last, for `_add_phrase` counts rounds by it.
        return (*sorted(few - {last}), last), rounds
    return None


_MAX_MESSAGES = 64
_MAX_TURNS = 4
"""Messages of the longest round in a conversation with itself."""


class _Monologue(NamedTuple):
    """Messages (or thoughts) in a row. The last ``same`` are equal, the last ``near`` say the same in other words."""

    messages: tuple[MessageText, ...]
    same: int
    near: int


class MonologueDetector:
    """Counts messages without an action between them that repeat singly or in turn; messages and thoughts apart."""

    kind: FindingKind = "monologue"
    wake: int = Wake.NEVER
    hears = MESSAGES | THOUGHTS
    watchful = True
    session_wide = False

    def __init__(self, settings: DetectSettings) -> None:
        self._settings = settings
        self._kept = min(_MAX_MESSAGES, max(settings.monologue_rounds, settings.paraphrase_rounds))
        self.state: dict[str, _Monologue] = {}

    def take(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Sighting | None:
        """Forget the messages, because the agent acted."""
        self.state = {}
        return None

    def hear(self, event: Observation) -> Sighting | None:
        """Return a sighting if the same was said often enough."""
        text = event_text(event)
        if text is None:
            return None
        stream = "thought" if event.type in THOUGHTS else "message"
        run = self._extend(self.state.get(stream), MessageText(event, text))
        self.state = {**self.state, stream: run}
        rounds = self._settings.monologue_rounds
        if run.same >= rounds:
            return self._sighting(stream, run, rounds, 0.9)
        for period in range(2, _MAX_TURNS + 1):
            if _goes_round(run.messages, period, rounds):
                return self._sighting(stream, run, period * rounds, 0.8)
        if _alternates(run.messages, self._settings.paraphrase_rounds):
            return self._sighting(stream, run, 2 * self._settings.paraphrase_rounds, 0.7)
        if run.near >= self._settings.paraphrase_rounds:
            return self._sighting(stream, run, self._settings.paraphrase_rounds, 0.7)
        return None

    def _extend(self, run: _Monologue | None, message: MessageText) -> _Monologue:
        """Return what was said in a row with one more message, as many as a sighting may need."""
        if run is None:
            return _Monologue((message,), 1, 1)
        same = near = 1
        last = run.messages[-1]
        if message == last:
            same, near = run.same + 1, run.near + 1
        elif are_alike(message.gist, last.gist):
            near = run.near + 1
        most = max(self._kept, _MAX_TURNS * self._settings.monologue_rounds)
        return _Monologue((*run.messages, message)[-most:], same, near)

    def _sighting(self, stream: str, run: _Monologue, rounds: int, confidence: float) -> Sighting:
        last = run.messages[-1]
        # A message that varies its words says something, so it is not empty.
        facts = (("said", one_line(last.text, 300)), ("empty", run.same >= self._settings.monologue_rounds and not last.plain))
        steps = tuple(ObservedStep((Call.from_event(message.event, message.plain),)) for message in run.messages[-rounds:])
        return Sighting(self.kind, (stream, "said"), 1, steps, rounds, confidence, leave=1, facts=facts)

    def opinion(self, step: ObservedStep, past: Sequence[ObservedStep]) -> Opinion:
        """Return the opinion that the agent acted."""
        return Opinion(self.kind, "", 0, self._settings.monologue_rounds, "the agent acted, which is no monologue")

    def reset(self) -> None:
        """Forget everything, because a person spoke."""
        self.state = {}


def _alternates(messages: Sequence[MessageText], rounds: int) -> bool:
    """Whether two messages alternated so many times, each in nearly the same words."""
    last = messages[-2 * rounds :]
    # Compare one pair first: most messages need no more.
    if len(last) < 2 * rounds or not are_alike(last[-1].gist, last[-3].gist):
        return False
    return all(are_alike(one.gist, two.gist) for one, two in zip(last, last[2:], strict=False))


def _goes_round(messages: Sequence[MessageText], period: int, rounds: int) -> bool:
    """Whether the last messages are a round of ``period`` messages, repeated ``rounds`` times."""
    length = period * rounds
    return len(messages) >= length and all(
        messages[-place] == messages[-place - period] for place in range(1, length - period + 1)
    )

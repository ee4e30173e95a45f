"""Read the comparable text of messages, and tell words that end a conversation from words that wait for the agent."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, cast

from ctxmgr.detect.text.fingerprints import MAX_TEXT, word_set
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.finding import Observation

MESSAGES = frozenset({"message", "agent_message"})
THOUGHTS = frozenset({"thought", "reasoning", "agent_thought"})
CHUNKS = frozenset({"agent_message_chunk", "agent_thought_chunk"})

_LABELS = frozenset({"observation", "thought", "action", "action input", "final answer"})
"""What is left of an answer in the form "Thought, Action, Observation" when it was cut off there: no words of its own."""

_MAX_LABEL = max(map(len, _LABELS))

_TEXT_KEYS = ("text", "content", "message", "delta", "chunk", "thought", "output")
# Kana, Han and Thai.
_UNSPACED = lazy_pattern(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]")
_WORD = lazy_pattern(r"[^\W\d_]{2,}|\d+(?:\.\d+)?")
_STUB = lazy_pattern(r"^\s*[<\[(]\s*([0-9]{1,9}) (?:characters|chars)\b[^<>]{0,80}[>\])]\s*$")
_STUB_HINT = " char"
_MAY_BE_STUB = lazy_pattern(r"[0-9] char")
_latest: tuple[Observation | None, str | None] = (None, None)
"""The last event and its text: several detectors ask for the text of one event in a row."""
_COMPARED_OPENING = 64
# Words that carry no meaning of their own, and the talk with which steps are announced.
_EMPTY_WORDS = word_set(
    "the an and or but if then so to of in on at by for from with into as is are was be been am will would shall should can "
    "could may might must do does did done have has had it its this that these those there here we you me my your our us he "
    "she they them am going go let lets please now next just also again first second start starting started begin beginning "
    "step steps order comes come came want wants need needs ll ve re what which how when where why well ok okay sure yes no"
)


def text_of(event: Observation) -> str | None:
    """Return what an event says, None when it holds no text (which is not the same as an empty one)."""
    global _latest
    known, text = _latest
    if known is event:
        return text
    data: object = event.data
    if type(data) is dict and type(said := cast("dict[str, Any]", data).get(_TEXT_KEYS[0])) is str:
        text = _words(said)  # as of most events
    else:
        text = _text(cast("object", data), 0)
    _latest = event, text
    return text


def _words(text: str) -> str | None:
    text = text[:MAX_TEXT]
    bare = text.strip(" *#:\n")
    return None if len(bare) <= _MAX_LABEL and bare.lower() in _LABELS else text


def _text(data: object, depth: int) -> str | None:
    if isinstance(data, str):
        return _words(data)
    if depth > 3:  # the deepest real form is a message of content blocks
        return None
    if isinstance(data, dict):
        fields = cast("dict[str, Any]", data)
        for key in _TEXT_KEYS:
            if key in fields:
                return _text(fields[key], depth + 1)
        return None
    if isinstance(data, list):
        parts = [_text(part, depth + 1) for part in cast("list[Any]", data)[:64]]
        known = [part for part in parts if part is not None]
        return "".join(known) if known else None
    return None


def plain(text: str) -> str:
    """Return a text without differences of case and blanks."""
    return " ".join(text[:MAX_TEXT].lower().split())


def gist(text: str) -> frozenset[str]:
    """Return the stems of the words that carry a text's meaning, and its numbers."""
    words = set(_WORD.findall(text[:4000].lower()))
    unspaced = [word for word in words if len(word) > 1 and _UNSPACED.search(word)]
    if unspaced:  # such a script sets no blanks between words: pairs of signs stand for them
        words -= set(unspaced)
        words |= {word[place : place + 2] for word in unspaced for place in range(len(word) - 1)}
    return frozenset(map(_stem, words - _EMPTY_WORDS))


@lru_cache(maxsize=8192)
def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def alike(one: frozenset[str], two: frozenset[str]) -> bool:
    """Whether two gists say the same: most words shared, and every number."""
    shared = len(one & two)
    # Fewer than three words in common are chance. A number that differs ("file 3 of 9") may be the news.
    if shared < 3 or shared < 0.6 * len(one | two):
        return False
    return not any(word[0].isdecimal() for word in one ^ two)


def length_of(text: str) -> int:
    """Return the number of characters of a text; a stub that stands for a text left out counts for its length."""
    stub = _STUB.match(text[:200]) if _STUB_HINT in text else None
    return int(stub[1]) if stub else len(text)


def may_hold_stub(text: str) -> bool:
    """Whether any part of a text may count for more than its length."""
    return _STUB_HINT in text and _MAY_BE_STUB.search(text) is not None


class MessageText:
    """The text of an event, equal to another that says the same; its normal forms are worked out when they are needed.

    Most of what is said is never compared: the agent acts before it speaks again.

    Attributes:
        event: what it is the text of.
        text: the text as recorded.
    """

    __slots__ = ("_gist", "_plain", "event", "text")

    def __init__(self, event: Observation, text: str) -> None:
        self.event = event
        self.text = text
        self._plain: str | None = None
        self._gist: frozenset[str] | None = None

    @property
    def plain(self) -> str:
        """The text without differences of case and blanks."""
        if self._plain is None:
            self._plain = plain(self.text)
        return self._plain

    @property
    def gist(self) -> frozenset[str]:
        """The stems of the words that carry its meaning, and its numbers."""
        if self._gist is None:
            self._gist = gist(self.text)
        return self._gist

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MessageText):
            return NotImplemented
        if self.text == other.text:
            return True
        return _may_equal(self.text, other.text) and self.plain == other.plain

    def __hash__(self) -> int:
        return hash(self.plain)


def _may_equal(one: str, two: str) -> bool:
    """Whether two texts begin with the same words, as far as a short look at both tells."""
    mine, theirs = (text[:_COMPARED_OPENING].lower().split()[:-1] for text in (one, two))
    return all(map(str.__eq__, mine, theirs))


_MAX_CLOSING_CHARS = 500
"""Characters; whoever writes more has something to say."""
_COMMAND = lazy_pattern(r"\s*(?:<command-name>)?/?(?:exit|quit|logout|bye)(?:</command-name>)?[\s.!]*\Z", re.IGNORECASE)
_TOKEN = lazy_pattern(r"#{2,}\s*(?:STOP|END|DONE|TRANSFER|OUT-OF-SCOPE|TERMINATE|EXIT)\s*#{2,}\s*\Z")
"""How a harness that plays the person says that the talk is over."""
_SENTENCE = lazy_pattern(r"[.!;\n\u2014]+")
_PLAIN_WORD = lazy_pattern(r"[a-z]+(?:'[a-z]+)?")
_CLOSING = lazy_pattern(
    r"\b(?:thanks|thank you|thx|cheers|bye|goodbye|good night|take care|that's (?:all|it|everything)|that is all|"
    r"all set|i'm done|we're done|nothing else|no further|appreciate|have a (?:great|good|nice|wonderful|lovely)|you too)\b"
)
_ASKS = word_set(
    "please can could would should shall must need want let lets let's yes yeah yep sure go start continue proceed "
    "resume next then also but however except still instead before after until once when if what which who why where how "
    "fix add make do try run write check test build use change update remove rename create show tell give send find explain "
    "finish implement apply commit push don't another wait"
)


def is_farewell(text: str) -> bool:
    """Whether a person who says this, after the agent has answered, expects nothing more.

    A command that leaves, a harness's closing word, or thanks and goodbyes beside which nothing is asked, ordered or agreed
    to. In doubt it is none: then silence after it is a stall.
    """
    if _COMMAND.match(text) or _TOKEN.search(text):
        return True
    if len(text) > _MAX_CLOSING_CHARS or "?" in text:
        return False
    lower = text.lower().replace("\u2019", "'")
    if _CLOSING.search(lower) is None:
        return False
    parts = [part for part in _SENTENCE.split(lower) if part.strip()]
    return _CLOSING.search(parts[-1]) is not None and not any(
        word in _ASKS for part in parts for word in _PLAIN_WORD.findall(_CLOSING.sub(" ", part))
    )

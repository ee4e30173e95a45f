"""What agents say, made comparable: the text of an event, and the words that carry its meaning."""

from __future__ import annotations

import re
from typing import Any, cast

from ctxmgr.detect.normal import word_set
from ctxmgr.types.observation import Observation

MESSAGES = frozenset({"message", "agent_message"})
THOUGHTS = frozenset({"thought", "reasoning", "agent_thought"})
CHUNKS = frozenset({"agent_message_chunk", "agent_thought_chunk"})

_LABELS = frozenset({"observation", "thought", "action", "action input", "final answer"})
"""What is left of an answer in the form "Thought, Action, Observation" when it was cut off there: no words of its own."""

_TEXT_KEYS = ("text", "content", "message", "delta", "chunk", "thought", "output")
_MAX_TEXT = 64 * 1024
_WORD = re.compile(r"[^\W\d_]{2,}|\d+(?:\.\d+)?")
_STUB = re.compile(r"^\s*[<\[(]\s*([0-9]{1,9}) (?:characters|chars)\b[^<>]{0,80}[>\])]\s*$")
_EMPTY_WORDS = word_set(
    "the an and or but if then so to of in on at by for from with into as is are was be been am will would shall should can "
    "could may might must do does did done have has had it its this that these those there here we you me my your our us he "
    "she they them am going go let lets please now next just also again first second start starting started begin beginning "
    "step steps order comes come came want wants need needs ll ve re what which how when where why well ok okay sure yes no"
)


def text_of(event: Observation) -> str | None:
    """Return what an event says, None when it holds no text (which is not the same as an empty one)."""
    return _text(event.data, 0)


def _text(data: object, depth: int) -> str | None:
    if isinstance(data, str):
        text = data[:_MAX_TEXT]
        return None if text.strip(" *#:\n").lower() in _LABELS else text
    if depth > 3:
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
    return " ".join(text[:_MAX_TEXT].lower().split())


def gist(text: str) -> frozenset[str]:
    """Return the stems of the words that carry a text's meaning, and its numbers."""
    words = _WORD.findall(text[:4000].lower())
    return frozenset(_stem(word) for word in words if word not in _EMPTY_WORDS)


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def alike(one: frozenset[str], two: frozenset[str]) -> bool:
    """Whether two gists say the same: most words shared, and every number."""
    shared = len(one & two)
    if shared < 3 or shared < 0.6 * len(one | two):
        return False
    return not any(word[0].isdecimal() for word in one ^ two)


def length_of(text: str) -> int:
    """Return the number of characters of a text; a stub that stands for a text left out counts for its length."""
    stub = _STUB.match(text[:200])
    return int(stub[1]) if stub else len(text)

"""Two agents each wait for the other's decision."""

from __future__ import annotations

import re
from typing import NamedTuple

from ctxmgr.diagnose.evidence import Evidence, clock, given
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.spoken import spoken_of
from ctxmgr.diagnose.texts import clean, code, listed, plain_name
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.finding import Diagnosis, Quote
from ctxmgr.types.view import EntryView

KIND: str = "mutualWait"

_WAITS = lazy_pattern(
    r"\b(?:(?:am|are|is|be|still|keep|'m|’m) (?:still )?(?:waiting|blocked)|wait(?:ing)? (?:for|on|until)|await(?:ing)?"
    r"|hold(?:ing)? (?:off|on) until|blocked (?:on|by|until)|as soon as you|once you|until you|after you (?:have )?"
    r"|when you (?:have|send|are)|once i (?:have|get|know)|(?:can['’]t|cannot|can not|won['’]t|unable to) "
    r"[^.!?\n]{2,60}\b(?:before|until|without|unless)\b|before i (?:can|start|write|build|begin)|i(?: still)? "
    r"need (?:the|your|you)\b[^.!?\n]{0,60}|need [^.!?\n]{2,40} first|first (?:send|tell|give) me|please send|i "
    r"build [^.!?\n]{2,40} from your|any news on|depends? on your|(?:tell|give|send|show"
    r"|let) me\b[^.!?\n]{2,80}\b(?:then|so that|and) i\b|\bi (?:only )?\w+ only\b[^.!?\n]{2,60}"
    r"|(?:as soon as|once|until|when|after|before) (?:the )?[\w./-]{2,40}(?: [\w-]+){0,3} (?:is|are|has|have|was"
    r"|exists?|arrives?)\b"
    r"|depends? on\b|need your (?:decision|choice|answer|approval"
    r"|input|go))\b",
    re.IGNORECASE,
)
_WAITING = lazy_pattern(r"wait|sleep|await|poll|pause|idle", re.IGNORECASE)
_LAST = 40


class _Wait(NamedTuple):
    who: str
    text: str
    at: str | None
    quote: Quote
    to: str


def applies(evidence: Evidence) -> Diagnosis | None:
    """Return which two agents wait for each other, in their own words."""
    agents = {entry.agent for entry in evidence.recent[-_LAST:]} | {
        m.who for m in evidence.messages[-_LAST:] if m.by == "agent"
    }
    if len(agents) < 2:
        return None
    waits = _waits(evidence)
    for first in waits:
        for second in waits:
            if first.who < second.who and _is_for(first, second.who, agents) and _is_for(second, first.who, agents):
                return _told(evidence, first, second)
    return None


def _waits(evidence: Evidence) -> list[_Wait]:
    """Return the words of each agent that say it waits, newest first; of its messages only where no call says it."""
    called = [
        _Wait(entry.agent, text, entry.ts, evidence.quote(entry, text), given(entry))
        for entry in reversed(evidence.recent[-_LAST:]) if (text := _sentence(given(entry)) or _reason(entry))
    ]  # fmt: skip
    own = {wait.who for wait in called}
    said = [
        _Wait(message.who, text, message.at, evidence.quote_of(message, text), message.text)
        for message in reversed(evidence.messages[-_LAST:])
        if message.by == "agent" and message.who not in own and (text := _sentence(message.text))
    ]
    return called + said


def _reason(entry: EntryView) -> str:
    """Return what a call that does nothing but wait says it waits for."""
    return given(entry).strip()[:200] if _WAITING.search(entry.action) else ""


def _sentence(text: str) -> str:
    parts = [part.strip() for part in _PARTS.findall(text[:4_000]) if _WAITS.search(part)]
    return max(parts, key=lambda part: len(_FILE.findall(part)), default="")


_PARTS = lazy_pattern(r"(?:[^.!?\n]|[.!?](?=\w)){1,300}[.!?]?")
_FILE = lazy_pattern(r"(?<![\w/.-])[\w/-]{1,60}\.[a-z]{1,5}(?![\w/])")


def _is_for(wait: _Wait, other: str, agents: set[str]) -> bool:
    """Whether the words are meant for the other: it is named, or they say "you" and there are only two agents."""
    return re.search(rf"(?<![\w-]){re.escape(other[:60])}(?![\w-])", wait.to) is not None or (
        len(agents) == 2 and re.search(r"\byour?\b", wait.text, re.IGNORECASE) is not None
    )


def _told(evidence: Evidence, first: _Wait, second: _Wait) -> Diagnosis:
    one, two = (clean(each.who)[:40] for each in (first, second))
    cause = (
        f"{one} and {two} wait for each other. {one} said{clock(first.at)}: {code(first.text, 130)}. {two}"
        f" said{clock(second.at)}: {code(second.text, 130)}."
    )
    own = evidence.agent if evidence.agent in (first.who, second.who) else second.who
    other = clean(second.who if own == first.who else first.who)[:40]
    other = other if plain_name(other) else "the other agent"
    files = [name for name in _FILE.findall(f"{first.text} {second.text}") if any(name in given(e) for e in evidence.failing)]
    matter = [*dict.fromkeys(files), *spoken_of(evidence, f"{first.text} {second.text}")]
    about = f" about {listed(matter, 4)}" if matter else ""
    step = (
        f"End the wait: decide the open question{about} yourself now, within what the user asked for, and send {other} a "
        "first draft"
        " in one message. If it is not yours to decide, put both sides to the user."
    )
    return diagnosis(
        KIND, cause, step, first.quote, second.quote, check=f"The next message of {other} must build on the decision."
    )

"""A question is put again that a person has answered, in this session or in another one of the project."""

from __future__ import annotations

import difflib

from ctxmgr.detect.text import vocabulary
from ctxmgr.diagnose.calls import fields_of
from ctxmgr.diagnose.evidence import Evidence, Message, clock
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.texts import code, text_of
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.diagnosis import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "decidedBefore"

_QUESTION = lazy_pattern(r"[^.!?\n]{6,300}\?")
_WORD = lazy_pattern(r"\w{2,}")
_ALIKE = 0.72
_MOST = 40


def applies(evidence: Evidence) -> Diagnosis | None:
    """Return the answer that was given before."""
    for asked, index, times in _questions(evidence):
        answered = _answer(evidence, asked, index) or _related(evidence, asked)
        if answered is not None:
            question, answer, quote_from = answered
            return _told(evidence, asked, times, question, answer, quote_from)
    return None


def _questions(evidence: Evidence) -> list[tuple[str, int, int]]:
    """Return what is asked of a person in the loop, with the index of the first asking and how often."""
    found: dict[str, tuple[str, int, int]] = {}
    for entry in evidence.loop:
        if vocabulary.asks_human(entry.action) and entry.status != "ok":
            text = _asked_text(entry)
            key = _plain(text)
            first = found.get(key, (text, entry.index, 0))
            found[key] = (first[0], first[1], first[2] + 1)
    if evidence.finding is not None and evidence.finding.kind == "monologue":
        start = evidence.onset
        for message in evidence.messages[-_MOST:]:
            if message.by == "agent" and (message.after is None or message.after >= start - 1):
                for text in _QUESTION.findall(message.text)[-1:]:
                    key = _plain(text)
                    first = found.get(key, (text.strip(), message.after or 0, 0))
                    found[key] = (first[0], first[1], first[2] + 1)
    return [each for each in reversed(found.values()) if each[2] > 1 and each[0]]


def _asked_text(entry: EntryView) -> str:
    fields = fields_of(entry)
    return (
        text_of(fields.get("questions") or fields.get("question") or fields.get("message") or entry.input, 1_000)
        .split("\n")[0]
        .strip()
    )


def _answer(evidence: Evidence, asked: str, index: int) -> tuple[str, Message | EntryView, str] | None:
    """Return an earlier asking of the same, and the words of a person that followed it."""
    open_: str | None = None
    found: tuple[str, Message | EntryView, str] | None = None
    for message in evidence.messages:
        if message.after is not None and message.after >= index:
            break
        if message.by == "agent":
            like = next((text.strip() for text in reversed(_QUESTION.findall(message.text)) if _alike(text, asked)), None)
            open_ = like or open_
        elif message.by == "user" and open_ is not None:
            found = (open_, message, message.text)
            open_ = None
    for entry in evidence.recent:
        if (
            entry.index < index
            and entry.status == "ok"
            and vocabulary.asks_human(entry.action)
            and _alike(_asked_text(entry), asked)
        ):
            found = (_asked_text(entry), entry, evidence.text(entry))
    return found


def _related(evidence: Evidence, asked: str) -> tuple[str, Message | EntryView, str] | None:
    for entry in reversed(evidence.related[-400:]):
        if entry.status == "ok" and vocabulary.asks_human(entry.action) and _alike(_asked_text(entry), asked):
            return _asked_text(entry), entry, text_of(entry.output, 2_000)
    return None


def _told(evidence: Evidence, asked: str, times: int, question: str, answer: Message | EntryView, said: str) -> Diagnosis:
    here = isinstance(answer, Message)
    when = clock(answer.at if isinstance(answer, Message) else answer.ts)
    where = "" if here or answer in evidence.recent else " in another session of this project"
    words = said.strip().split("\n")[0]
    cause = f"You asked {times} times {code(asked, 110)}, and it was answered{when}{where}: {code(words, 150)}."
    step = (
        f"Take that answer, {code(words, 120)}, as the decision and go on with the task."
        if here
        else ("Take that answer as the decision and go on with the task; do not ask again.")
    )
    quote = evidence.quote_of(answer) if isinstance(answer, Message) else evidence.quote(answer, said)
    return diagnosis(KIND, cause, step, quote, check="Ask again only if something new speaks against the answer.")


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))[:300]


def _alike(one: str, other: str) -> bool:
    first, second = _plain(one), _plain(other)
    return bool(first and second) and difflib.SequenceMatcher(None, first, second, autojunk=False).ratio() >= _ALIKE

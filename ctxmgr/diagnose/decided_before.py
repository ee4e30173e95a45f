"""A question is put again that a person has answered, in this session or in another one of the project."""

from __future__ import annotations

import difflib
import re

from ctxmgr.detect.text import vocabulary
from ctxmgr.detect.text.fingerprints import word_set
from ctxmgr.diagnose.calls import command_of, fields_of, path_of
from ctxmgr.diagnose.evidence import Evidence, Message, clock, may_change
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.texts import code, listed, text_of
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.finding import Diagnosis, Quote
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
    return _weighed(evidence)


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
            found = _reply(evidence, entry, index) or (_asked_text(entry), entry, evidence.text(entry))
    return found


def _reply(evidence: Evidence, asking: EntryView, until: int) -> tuple[str, Message, str] | None:
    """Return what a person said right behind a call that asks, where its own result is no answer."""
    told = next((m for m in evidence.user_texts if m.after is not None and asking.index <= m.after < until), None)
    return (_asked_text(asking), told, told.text) if told and len(evidence.text(asking)) < _RECEIPT else None


_RECEIPT = 40
"""Characters of a result that only says that the question was sent."""


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


_WEIGHS = lazy_pattern(
    r"\b(?:compar\w+|weigh\w*|versus|vs\.?|or (?:should|stay|rather|better|maybe)|which \w+(?: \w+)? (?:to use|is "
    r"better|should)|decid\w+|choos\w+|not sure (?:which|whether)|on the other hand|alternatives?"
    r"|trade-?offs?|pros and cons|reconsider\w*|rethink\w*|option [ab12])\b|\w+ or \w+(?: \w+)?\?",
    re.IGNORECASE,
)
_SETTLED = lazy_pattern(
    r"\b(?:decided|decision|accepted|agreed|settled|chosen|we (?:chose|use|picked|went with|stay with|go with|take"
    r"|keep)|(?:has |have )?won\b|not to be (?:proposed|reopened|discussed|changed)|is final|no longer open"
    r"|approved"
    r"|let['’]s (?:use|take|go with|keep)|use \w+|take \w+|go with|status: accepted|resolved:|verdict)\b",
    re.IGNORECASE,
)
_NOT_TELLING = word_set(
    "before again more once first write code coding compare comparing weigh both type which with that this about into would "
    "should could sure start stay best better really think need want look option options use using change task"
)
_THRICE, _SHARED, _MOST_ENTRIES = 3, 2, 300


def _weighed(evidence: Evidence) -> Diagnosis | None:
    """Say that what the agent weighs again and again was decided, by a person or in a document that it has read."""
    told = max((place for place, m in enumerate(evidence.messages) if m.by == "user"), default=-1)
    own = [
        m
        for m in evidence.messages[told + 1 :][-_MOST:]
        if m.by == "agent" and (evidence.agent is None or m.who == evidence.agent) and _WEIGHS.search(m.text)
    ]
    if len(own) < _THRICE:
        return None
    counts: dict[str, int] = {}
    for message in own:
        for word in _telling(message.text):
            counts[word] = counts.get(word, 0) + 1
    options = {word for word, count in counts.items() if count >= min(_THRICE, len(own))}
    if len(options) < _SHARED:
        return None
    for message in reversed(evidence.user_texts):
        for sentence in re.findall(r"[^.!?\n]{3,300}[.!?]?", message.text[:8_000]):
            if _SETTLED.search(sentence) and len(options & _telling(sentence)) >= 1 and not sentence.strip().endswith("?"):
                return _decided(
                    evidence, own, options, f"the user said{clock(message.at)}: {code(sentence.strip(), 150)}",
                    "what the user said", evidence.quote_of(message, sentence),
                )  # fmt: skip
    for entry in list(reversed(evidence.recent))[:_MOST_ENTRIES]:
        if entry.status != "ok" or may_change(entry):
            continue
        text = evidence.text(entry)[:12_000]
        lines = [line for line in text.split("\n") if options & _telling(line)]
        settled = _SETTLED.search(text)
        shared = options & _telling("\n".join(lines))
        if (
            settled is None
            or len(shared) < _SHARED
            or not _DOCUMENT.search(f"{path_of(entry) or ''} {command_of(entry)} {entry.action}")
        ):
            continue
        name = evidence.name(path_of(entry) or "") if path_of(entry) else ""
        where = f"{evidence.source(entry)} holds a decision ({code(settled.group(0), 40)}) about {listed(sorted(shared), 4)}"
        return _decided(
            evidence, own, options, where, code(name, 80) if name else "that document", evidence.quote(entry, text[:300])
        )
    return None


_DOCUMENT = lazy_pattern(
    r"adr|decision|\.(?:md|rst|txt|adoc)\b|docs?/|rfc|notes|minutes|memory|wiki|knowledge|message|mail|issue"
    r"|ticket|comment|search|design",
    re.IGNORECASE,
)


def _telling(text: str) -> frozenset[str]:
    return frozenset(
        word.removesuffix("s") for word in re.findall(r"[\w-]{4,40}", text[:4_000].casefold()) if word not in _NOT_TELLING
    )


def _decided(evidence: Evidence, own: list[Message], options: set[str], where: str, what: str, quote: Quote) -> Diagnosis:
    last = own[-1]
    cause = (
        f"You have weighed the same {len(own)} times, last{clock(last.at)}: {code(last.text, 120)}. It is decided "
        f"already: {where}."
    )
    step = (
        f"Take the decision of {what} as it stands, compare no more, and write the next change of the task on it; if "
        "something new speaks against it, ask the user once."
    )
    return diagnosis(
        KIND, cause, step, quote, evidence.quote_of(last), check="The next step must change something.", confidence="medium"
    )

"""Play a case: give the help to the one agent that gets it, and see whether it goes on or repeats itself.

The agent reads the request and the context of its branch and nothing else, up to a window of characters, so that passing
on everything is no way to win. It is a script: it goes on when what it needs stands there, in any of the given words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import cast

from bench.recovery.case import Case
from ctxmgr.log.codec import Record
from ctxmgr.types.route import is_context_manager

WINDOW = 6_000
ATTEMPTS = 2
"""How often help is asked for at all: the product's own cap for one loop."""

_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_SAYS_SO = re.compile(
    r"\bask (?:a|the|your) (?:person|human|user|operator)\b|\ba (?:person|human) (?:is needed|must|has to|should)\b"
    r"|\bhand (?:it |this )?back to (?:a|the) (?:person|human|user)\b"
    r"|\b(?:history|record|log|session) (?:holds|has|contains|says|knows|tells|gives) (?:nothing|no\b|neither)"
    r"|\b(?:nothing|no (?:entry|action|answer|record))\b[^.\n]{0,80}\b(?:in|of) (?:the|this) (?:history|session|record|log)\b"
    r"|\b(?:is|are|was|were) (?:nowhere|not) (?:recorded |said |told |to be found |found |held )?in (?:the|this) "
    r"(?:history|session|record|log)\b|\b(?:is|are) nowhere\b",
    re.IGNORECASE,
)

_BESIDE = 120
_NO_LONGER = re.compile(
    r"\b(?:supersed\w+|replaced|outdated|out of date|stale|obsolete|former(?:ly)?|no longer|not any ?more|old(?:er)? value"
    r"|earlier value|previous(?:ly)?|withdrawn|revoked|corrected|overruled|changed (?:later|since)|was later|instead of)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back when help was asked for.

    Attributes:
        target: the agent that is to go on; None when there was a failure instead.
        text: what it is given to read, before the window.
        said: the adviser's own words in it, without what it quotes from the history.
        unanswered: the adviser marks parts of the question as not answered by the history.
        failure: kind of the typed failure; "" when there was an answer. ``crash: Name`` is one that nobody meant.
        branches: how many branches were populated.
        cited: ids of the records that the answer references.
    """

    target: str | None = None
    text: str = ""
    said: str = ""
    unanswered: bool = False
    failure: str = ""
    branches: int = 0
    cited: frozenset[str] = frozenset()


Adviser = Callable[[Sequence[Record], int], Answer]
"""Answers for the whole history so far and the number of the attempt."""

Policy = Callable[[Case, int], AbstractContextManager[Adviser]]
"""Opens an adviser for a case; the number is the window."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One answer and what the agents made of it.

    Attributes:
        outcome: ``goes on``, or why not: ``wrong agent``, ``misled``, ``not told``, ``not admitted``, or the failure's kind.
        missing: for each need that can't be read, its first phrase.
        misled: the ``never`` and ``stale`` texts that were read.
    """

    answer: Answer
    outcome: str
    missing: tuple[str, ...] = ()
    misled: tuple[str, ...] = ()

    @property
    def goes_on(self) -> bool:
        """Whether the workflow was freed by it."""
        return self.outcome == "goes on"

    @property
    def recursive(self) -> bool:
        """Whether the context manager was sent to itself."""
        return self.answer.target is not None and is_context_manager(self.answer.target)


@dataclass(frozen=True, slots=True)
class Played:
    """A case and the attempts at it; the history's size in characters as the agents would read it."""

    case: Case
    attempts: tuple[Attempt, ...]
    history_chars: int

    @property
    def first(self) -> bool:
        """Recovered on the first attempt."""
        return self.attempts[0].goes_on

    @property
    def at_all(self) -> bool:
        """Recovered within the attempts."""
        return any(attempt.goes_on for attempt in self.attempts)


def play(case: Case, policy: Policy, *, window: int = WINDOW, attempts: int = ATTEMPTS) -> Played:
    """Ask for help until the workflow goes on or the attempts are used up; between them the agent repeats itself."""
    history = list(case.records)
    tried: list[Attempt] = []
    with policy(case, window) as advise:
        for number in range(1, attempts + 1):
            tried.append(judge(case, advise(history, number), window))
            if tried[-1].goes_on:
                break
            history += case.again(number)
    return Played(case, tuple(tried), len("\n".join(map(told, case.records))))


def judge(case: Case, answer: Answer, window: int = WINDOW) -> Attempt:
    """Return what the agents make of an answer."""
    if answer.failure:
        return Attempt(answer, answer.failure)
    read = plain(answer.text[:window])
    missing = tuple(need.phrases[0] for need in case.needs if not any(stands(phrase, read) for phrase in need.phrases))
    misled = tuple(text for text in case.never if stands(text, read)) + tuple(
        text for text in case.stale if told_as_current(text, answer.text[:window])
    )
    return Attempt(answer, _outcome(case, answer, missing, misled, window), missing, misled)


def _outcome(case: Case, answer: Answer, missing: tuple[str, ...], misled: tuple[str, ...], window: int) -> str:
    if answer.target not in case.targets:
        return "wrong agent"
    if misled:
        return "misled"
    if not case.answered:
        return "goes on" if admits(answer, window) else "not admitted"
    return "not told" if missing else "goes on"


def admits(answer: Answer, window: int = WINDOW) -> bool:
    """Whether an answer says plainly that the history does not hold what is sought, or to ask a person."""
    return answer.unanswered or _SAYS_SO.search(answer.said[:window]) is not None


def stands(phrase: str, read: str) -> bool:
    """Whether a phrase stands in what was read; a number that is a piece of an id or of a longer number does not."""
    wanted = plain(phrase)
    before, after = r"(?<![\da-z_])" if wanted[:1].isdigit() else "", r"(?!\d)" if wanted[-1:].isdigit() else ""
    return wanted in read and re.search(f"{before}{re.escape(wanted)}{after}", read) is not None


def told_as_current(value: str, text: str) -> bool:
    """Whether a value stands somewhere in a text without a word near it, on its line, that it no longer holds."""
    for line in map(plain, text.splitlines()):
        for found in re.finditer(rf"(?<!\w){re.escape(plain(value))}(?!\w)", line):
            if _NO_LONGER.search(line, max(0, found.start() - _BESIDE), found.end() + _BESIDE) is None:
                return True
    return False


def own_words(text: str) -> str:
    """Return a text without what it quotes as JSON strings: the words of whoever wrote it down."""
    return _STRING.sub('""', text)


def plain(text: str) -> str:
    """Return text as a reader compares it: JSON's escapes undone, blanks as one, without regard to case."""
    undone = text.replace("\\n", " ").replace("\\t", " ").replace('\\"', '"').replace("\\/", "/").replace("\\\\", "\\")
    return " ".join(undone.split()).casefold()


def told(record: Record) -> str:
    """Return a record as a line of a transcript."""
    kind = record.get("kind")
    if kind == "entry":
        return f"[{record.get('agent')}] {record.get('action')} {_flat(record.get('input'))}"
    if kind == "result":
        failed = cast("dict[str, object] | None", record.get("error"))
        return f"  -> {record.get('status')} {_flat(record.get('output') if failed is None else failed.get('message'))}"
    if kind == "event":
        return f"[{record.get('agent') or 'user'}] {record.get('type')}: {_flat(record['data'].get('text'))}"
    return f"({kind})"


def _flat(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return ", ".join(f"{name}={_flat(item)}" for name, item in cast("dict[str, object]", value).items())
    return "" if value is None else str(value)

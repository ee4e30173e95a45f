"""The work waits for a person's approval or answer, and asking a machine again can't bring it."""

from __future__ import annotations

import re

from ctxmgr.detect.text import vocabulary
from ctxmgr.diagnose.calls import command_of, fields_of, tool
from ctxmgr.diagnose.evidence import Evidence, Message, clock
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.texts import code, text_of
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.diagnosis import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "waitsForPerson"

_PENDING = lazy_pattern(
    r"\b(?:waiting|awaiting|pending|needs?|requires?|blocked)[\s_-]{0,2}(?:on|for|by|until)?[\s_-]{0,2}(?:an? |the |your "
    r"|manual |human |manager |code owner )?(?:approval|review|sign[- ]?off|confirmation|authori[sz]ation|human|person"
    r"|decision|operator)\b|\bapproval (?:is )?(?:pending|required)|review required|not (?:yet )?approved|changes requested",
    re.IGNORECASE,
)
_ASKS = lazy_pattern(
    r"\b(?:may i|shall i|should i|can i|do you want|would you like|please (?:confirm|approve|decide|advise)|let me know"
    r"|is it (?:ok|okay|fine) (?:to|if)|waiting for your|wait for your|which (?:one )?(?:do|should|would) you"
    r"|your (?:approval|confirmation|decision|answer))\b",
    re.IGNORECASE,
)
_APPROVAL = lazy_pattern(r"approv|confirm|permission|decision|answer|reply|response", re.IGNORECASE)
_UNDECIDED = lazy_pattern(
    r"pending|waiting|none|null|no (?:answer|reply|decision|response)|not (?:yet )?(?:decided|answered)|unanswered",
    re.IGNORECASE,
)
_LEAST = 2


def applies(evidence: Evidence) -> Diagnosis | None:
    """Return whose answer is missing."""
    return _open_question(evidence) or _asked(evidence) or _pending(evidence)


def _question(evidence: Evidence) -> Message | None:
    """Return the newest question of the stuck agent that no person has answered."""
    for message in reversed(evidence.messages):
        if message.by == "user":
            return None
        own = (
            message.by == "agent"
            and (evidence.agent is None or message.who == evidence.agent)
            and "thought" not in message.kind
        )
        if own and _ASKS.search(message.text):
            return message
    return None


def _asked(evidence: Evidence) -> Diagnosis | None:
    question = _question(evidence)
    if question is None:
        return None
    polls = [
        entry
        for entry in evidence.loop
        if _looks_for_answer(evidence, entry) and (question.after is None or entry.index > question.after)
    ]
    if len(polls) < _LEAST:
        return None
    asked = _sentence(question.text)
    last = polls[-1]
    cause = (
        f"You asked the user{clock(question.at)}: {code(asked, 150)}. No answer is recorded, and you called {_call(last)}"
        f" {len(polls)} times since; it can't answer for them."
    )
    return diagnosis(
        KIND, cause, "Stop calling. Put the question to the user once more in one sentence, and end your turn.",
        evidence.quote_of(question, asked), evidence.quote(last), check="Go on only when a message of the user answers it.",
    )  # fmt: skip


def _looks_for_answer(evidence: Evidence, entry: EntryView) -> bool:
    name = command_of(entry) or entry.action
    said = evidence.text(entry)[:600]
    return _APPROVAL.search(name) is not None or (_UNDECIDED.search(said) is not None and _APPROVAL.search(said) is not None)


def _pending(evidence: Evidence) -> Diagnosis | None:
    """Say that a job or review waits for somebody, where its own answer says so each time."""
    found = [
        entry
        for entry in evidence.loop
        if len(evidence.text(entry)) < 4_000 and _PENDING.search(evidence.text(entry).replace("_", " "))
    ]
    if (
        len(found) < _LEAST + 1
        or (evidence.loop and len(found) * 2 < len(evidence.loop))
        or found[-1].id != evidence.loop[-1].id
    ):
        return None
    last = found[-1]
    said = evidence.text(last)
    match = _PENDING.search(said.replace("_", " "))
    words = said[match.start() : match.end()] if match else ""
    cause = f"{_call(last)} was answered {len(found)} times that a person's approval or review is missing: {code(words, 60)}."
    step = (
        "Stop asking for the state. Tell the user that this waits for a person and who it is, ask for the decision, and end"
        " your turn."
    )
    return diagnosis(
        KIND, cause, step, evidence.quote(last), check="Look at the state once when the user says that it was decided."
    )


def _open_question(evidence: Evidence) -> Diagnosis | None:
    """Say that a call which asks a person has no answer yet."""
    entry = next((each for each in evidence.open_calls if vocabulary.asks_human(each.action)), None)
    if entry is None:
        return None
    asked = _asked_text(entry)
    cause = f"You asked the user{clock(entry.ts)} with {tool(entry)}: {code(asked, 150)}. No answer is recorded."
    step = "Wait: end your turn with this question in one sentence. Do not ask in another form."
    return diagnosis(KIND, cause, step, evidence.quote(entry, asked), check="Go on only when the user has answered.")


def _asked_text(entry: EntryView) -> str:
    fields = fields_of(entry)
    questions = fields.get("questions")
    return text_of(questions if questions else fields.get("question") or fields.get("message") or entry.input, 2_000).split(
        "\n"
    )[0]


def _sentence(text: str) -> str:
    parts = re.findall(r"[^.!?\n]{1,300}[.!?]?", text[:4_000])
    return next((part.strip() for part in reversed(parts) if "?" in part and part.strip()), None) or next(
        (part.strip() for part in reversed(parts) if _ASKS.search(part)), text[:300]
    )


def _call(entry: EntryView) -> str:
    return code(command_of(entry) or tool(entry), 80)

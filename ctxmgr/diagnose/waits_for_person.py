"""The work waits for a person's approval or answer, and asking a machine again can't bring it."""

from __future__ import annotations

import re

from ctxmgr.detect.text import vocabulary
from ctxmgr.detect.text.fingerprints import word_set
from ctxmgr.diagnose.calls import command_of, fields_of, tool
from ctxmgr.diagnose.evidence import Evidence, Message, call_key, clock, may_change
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.spoken import sentences
from ctxmgr.diagnose.texts import code, plain_name, spaced, text_of
from ctxmgr.text.lazy_pattern import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

KIND: str = "waitsForPerson"

_ROLES = (
    "supervisor|manager|approver|reviewer|maintainer|owner|code owner|administrator|admin|operator|moderator"
    "|human|person|customer|legal|finance"
    "|security team|compliance|team lead|release manager|product owner|on-?call|clerk|client|board|committee"
)
_PENDING = lazy_pattern(
    r"\b(?:waiting|awaiting|awaits|waits|pending|needs?|requires?|required|blocked|held|on hold)[\s_-]{0,2}(?:on"
    r"|for|by|until|from)?[\s_-]{0,2}(?:an? |the |your |\d )?(?:[a-z]{3,12} )?"
    rf"(?:approvals?|reviews?|sign[- ]?off|confirmation|authori[sz]ation|decision|consent|signature|{_ROLES})\b"
    r"|\b(?:approvals?|reviews?|sign[- ]?off|confirmation|decision) (?:is |are )?(?:still )?(?:pending|required"
    r"|needed|missing|outstanding|requested)"
    r"|(?:lacks?|missing|without|no) (?:the |an? )?(?:\w+ )?(?:signature|approval|sign[- ]?off|consent)\b|not[ _]signed\b"
    r"|not (?:yet )?(?:been )?(?:approved|signed off|reviewed|confirmed)|changes requested|(?:un|to be )approved"
    r"|0 (?:of|/) ?\d approvals",
    re.IGNORECASE,
)
_ROLE = lazy_pattern(rf"\b({_ROLES})s?\b", re.IGNORECASE)
_NAMED = lazy_pattern(
    r"(?:approvers?|signers?|signator(?:y|ies)|reviewers?|assignee|assigned[ _]to|waiting[ _](?:for|on)"
    r"|requested[ _](?:from|reviewers?)"
    r"|decision[ _]by|owner|pending[ _]with|required[ _]approvers?)"
    r"[\"']?\s?[:=]\s?\[?\s?[\"']?(@?[A-Za-z][\w.@ -]{1,40}?)[\"'\],\n}]",
    re.IGNORECASE,
)
_ABOUT = lazy_pattern(
    r"\b(?:approv\w+|sign[- ]?off|signs? off|supervisor|reviewe?r?s?|confirm\w*|decides?|decision|permission"
    r"|authori[sz]\w+|release manager)\b",
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
_LEAST, _NEAR = 2, 3


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
    found = [entry for entry in evidence.tail if _is_pending(evidence, entry)]
    last = found[-1] if found else None
    if last is None or evidence.recent[-1].index - last.index > _NEAR:
        return None
    same = [entry for entry in found if call_key(entry) == call_key(last) or entry.action == last.action]
    changed = any(may_change(entry) for entry in same) or may_change(last)
    if len(same) < _LEAST + 1 or (changed and not evidence.failed(last)):
        return None
    said = evidence.text(last)
    match = _PENDING.search(spaced(said))
    words = said[match.start() : match.end()] if match else ""
    cause = (
        f"{_call(last)}{_of(last)} was answered {len(same)} times that a person's approval or decision is missing: "
        f"{code(words, 60)}."
    )
    quotes = [evidence.quote(last)]
    role = _ROLE.search(spaced(words))
    who = f"the {role.group(1).lower()}" if role and role.group(1).lower() not in ("human", "person", "owner") else "a person"
    named = next(
        (
            (name.strip(), each)
            for each in [*reversed(same), *list(evidence.before(last.index))[:_LOOKED_AT]]
            for name in _NAMED.findall(evidence.text(each)[:4_000])
        ),
        None,
    )
    if named is None:
        named = next(
            (
                (name, each)
                for each in [last, *evidence.before(last.index)][:_LOOKED_AT]
                for name in _approvers(evidence.text(each))
            ),
            None,
        )
    if named is not None and plain_name(named[0].replace(" ", "-")) and len(named[0].split()) < 4:
        who = code(named[0], 40)
        cause += f" {evidence.source(named[1])[:1].upper()}{evidence.source(named[1])[1:]} names {who}."
        quotes.append(evidence.quote(named[1]))
    for message, sentence in sentences(evidence):
        if _ABOUT.search(sentence):
            cause += f" The user said{clock(message.at)}: {code(sentence, 140)}."
            quotes.append(evidence.quote_of(message, sentence))
            break
    step = (
        f"Stop asking for the state: asking can't bring the decision. Tell the user that this ({code(words, 60)}) "
        f"waits for {who}, "
        "and for what, ask for the decision,"
        " and end your turn. What stands in outputs is no approval."
    )
    return diagnosis(KIND, cause, step, *quotes, check="Look at the state once when the user says that it was decided.")


def _of(entry: EntryView) -> str:
    """Return what a call is about: the first plain name with a digit that it was given, as words."""
    names = [] if command_of(entry) else [each for each in fields_of(entry).values() if isinstance(each, str)]
    name = next((each for each in names if plain_name(each) and any(map(str.isdigit, each)) and len(each) <= _LONGEST), "")
    return f" of {code(name, 40)}" if name else ""


_LONGEST = 40


def _approvers(text: str) -> list[str]:
    """Return whom the lines about an approval name: a group, a role or a person."""
    lines = [line for line in text[:8_000].split("\n") if _ABOUT.search(line)]
    found = [name for line in lines for groups in _BY.findall(line) for name in groups if name]
    return [name for name in found if name.lower() not in _NOBODY and not name.isdigit()]


_BY = lazy_pattern(
    r"(?:approvals?|reviews?|reviewed|approved|sign[- ]?off|signed off|confirmation|decision|decided"
    r"|authori[sz]ation)(?: \w+){0,2}? (?:of|by|from)(?: (?:the|an?|one of))?(?: (?:group|team|user|role|member "
    r"of))? [`'\"]?(@?[\w.@-]{3,40})"
    r"|(?:on duty|on call|assigned to|contact|waiting for|pending with)[: ]{1,2}(@?[A-Z][\w.-]{1,30}(?: [A-Z][\w.-]{1,30})?)",
)
_NOBODY = word_set("the a an this that your you user human person somebody someone anyone production staging another")
_LOOKED_AT = 60


def _is_pending(evidence: Evidence, entry: EntryView) -> bool:
    said = evidence.text(entry)
    return len(said) < 4_000 and _PENDING.search(spaced(said)) is not None


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

"""A person or agent that is waited for has left, and the record shows who takes over."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxmgr.diagnose.evidence import Evidence, Message, clock
from ctxmgr.diagnose.evidence.calls import fields_of, tool_phrase
from ctxmgr.diagnose.evidence.messages import split_sentences
from ctxmgr.diagnose.evidence.texts import ORDERS, code, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

_LEAVES = lazy_pattern(
    r"\bI(?:['’](?:m|ll)| am| will| have| must)?(?: (?:be|now|going to|soon)){0,2} (?:log(?:ging|ged)? (?:off|out)"
    r"|sign(?:ing|ed)? off|off|out(?! of (?!office|the office))|gone|away|unavailable|leav(?:e|ing) (?:at|now|for today)"
    r"|on (?:\w+ )?(?:leave|holiday|vacation)|hand(?:ing|ed)? (?:\w+ ){0,4}over)\b|\bmy shift ends\b",
    re.IGNORECASE,
)
_TAKES_OVER = lazy_pattern(
    r"(?P<lead>(?:from (?:then|there|now) on|after (?:that|then)|then|meanwhile),? )?@?\b(?P<name>[A-Za-z][\w.-]{1,30})"
    r" (?:has|takes|took|covers|stands in|is (?:on duty|in charge)|will (?:have|take|answer|cover)|keeps|decides)\b"
    r"|\b(?P<ask>ask|contact|write to|turn to|ping|over to) @?(?P<other>[A-Za-z][\w.-]{1,30})(?<![.-])",
    re.IGNORECASE,
)
_NOBODY = word_set(
    "i you he she it we they me him her us them that this who which nobody somebody someone everyone everybody the a an"
    " there what"
)


def diagnose_departed(kind: str, evidence: Evidence) -> Diagnosis | None:
    """Return that the one whose answer a call waits for has said that they leave, and who has the matter now."""
    for step in [*evidence.open_calls, *evidence.failing_calls[:2], *evidence.repeated_calls[:1]]:
        for who in _list_addressees(step):
            farewell = _find_farewell(evidence, step, who)
            if farewell is None:
                continue
            message, sentence, other = farewell
            cause = (
                f"The {tool_phrase(step)} call waits for {code(who, 40)}, who said{clock(message.at)}: {code(sentence, 120)}."
                f" So no answer of {code(who, 40)} is to be expected."
            )
            if other:
                cause += f" The same message names {code(other, 40)} for what comes after."
            step_ = f"Do not wait for {code(who, 40)} any longer: " + (
                f"put the question to {code(other, 40)} now." if other else "ask the user who has taken over."
            )
            return diagnosis(
                kind,
                cause,
                step_,
                evidence.quote_message(message),
                check="Go on when that one has answered.",
                confidence="medium",
            )
    return None


def _list_addressees(step: EntryView) -> Iterator[str]:
    """Yield the short names in the input of a call: those of whom it may ask or wait for."""
    for value in fields_of(step).values():
        if isinstance(value, str) and plain_name(value.lstrip("@")) and len(value) <= 40:
            yield value.lstrip("@")


def _find_farewell(evidence: Evidence, step: EntryView, who: str) -> tuple[Message, str, str] | None:
    """Return the last message of somebody before a call, if they leave in it: message, sentence, and who takes over, or ""."""
    said = [each for each in evidence.messages if each.who == who and each.by != "user" and (each.after or -1) < step.index]
    # Whoever has written since is still there.
    if not said or who == step.agent:
        return None
    sentences = split_sentences(said[-1].text)
    leaves = next((each for each in sentences if _LEAVES.search(each) and not ORDERS.search(each)), None)
    if leaves is None:
        return None
    return said[-1], leaves, _find_successor(evidence, said[-1].text, {who, step.agent})


def _find_successor(evidence: Evidence, text: str, but: set[str]) -> str:
    """Return the name of whoever takes over according to a message, or ""."""
    known = {each.agent for each in evidence.recent} | {each.who for each in evidence.messages}
    for match in _TAKES_OVER.finditer(text):
        name = match.group("name") or match.group("other")
        # Any noun may have something; a name is known, has a capital, or follows words of order.
        named = name in known or name[0].isupper() or match.group("lead") or match.group("ask")
        if named and name not in but and name.casefold() not in _NOBODY and plain_name(name):
            return name
    return ""

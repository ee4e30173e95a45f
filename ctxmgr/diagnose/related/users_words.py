"""Find what a user said or named that bears on a failure: a way around it, a value for the call, how to do something."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ctxmgr.diagnose.errors.table import Topic
from ctxmgr.diagnose.evidence import Evidence, Message, call_input, clock, may_change
from ctxmgr.diagnose.evidence.calls import command_of, fields_of
from ctxmgr.diagnose.evidence.files import is_file_name
from ctxmgr.diagnose.evidence.messages import is_forbidden, split_sentences, user_sentences
from ctxmgr.diagnose.evidence.texts import code, join_names
from ctxmgr.diagnose.related.related_lines import COMMON, find_names
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis, Quote
from ctxmgr.types.view import EntryView

_NAME = lazy_pattern(
    r"(?<![\w/.~-])((?:[~.]{0,2}/)?(?:[\w.@+-]{1,60}/){1,8}[\w.@+-]{0,60}|/[\w.-]{2,40}|--[a-z][\w-]{1,40}"
    r"|[A-Z][A-Z0-9]{1,30}_[A-Z0-9_]{1,40}|[\w-]{2,40}(?:\.[\w-]{2,40}){1,6}(?::\d{2,5})?|\w{2,30}[-_]\w{1,30}(?:[-_]\w{1,30}){0,3})"
)
OTHER_WAY = lazy_pattern(
    r"\b(?:too|also|instead|alternativ\w+|otherwise|else|or|another|other|second|spare|backup|fallback|mirror|proxy|replica"
    r"|in case|if (?:it|that|this|they)|works? as well|new)\b",
    re.IGNORECASE,
)
"""Words with which people name a way around."""
_PRESCRIBES = lazy_pattern(
    r"\b(?:use|take|put|move|write|run|go|log in|connect|ask|call|read|look|set|instead|only"
    r"|is (?:for|in|at|on|under|now|called)"
    r"|are (?:for|in|at|on|under|now)|lives?|lies?|moved to|renamed|replaced by|belongs?|allowed|may|must|should|needs?"
    r"|works? with)\b",
    re.IGNORECASE,
)
"""Words with which people say how to do something."""
_IDENTIFIES = lazy_pattern(r"\bmy (?:\w+ ){0,2}(?:id|name|e-?mail|number)\b\W{0,3}(?:(?:is|here)\W{0,3})?$", re.IGNORECASE)
_ASKS_TO_LOOK = lazy_pattern(
    r"(?:^|[,;:] |\b(?:please|yes|and|to|you|also|just|go ahead|then)\b,? )"
    r"(?:check|search|look|find|see|show|list|tell|review)\b",
    re.IGNORECASE,
)
_CODED = lazy_pattern(r"[\d_./:@]|[a-z][A-Z]")
"""A character that ordinary words lack."""
_CODED_VALUE = lazy_pattern(r"[\d_./:@-]")
"""A character that names of products and companies lack too."""
_STEM = lazy_pattern(r"[A-Za-z]{4,30}")
_UNIT = lazy_pattern(r"[\d.,]*[A-Za-z]{1,3}(?:/[A-Za-z]{1,3})?")
"""A unit of measure, such as `kWh`, `10GB` and `km/h`. It is no value that a call lacks."""
USER_SAID, AS_SAID = "The user said", "Do it as the user said: "
_MOST_LINE = 240


class WayAround(NamedTuple):
    """What is said of a way around a failure: a sentence for the cause, the step, and quotes."""

    cause: str
    step: str
    quotes: Sequence[Quote]


def find_named_by_user(
    evidence: Evidence, steps: Sequence[EntryView], found: Diagnosis, where: re.Pattern[str] | None = None
) -> WayAround | None:
    """Return what the user named in a sentence about these calls, and none of them has. ``where`` must match the sentence."""
    asked = "\n".join(f"{call_input(step)}\n{evidence.text(step)}" for step in steps)
    about = _find_stems("\n".join(call_input(step) for step in steps) + evidence.text(steps[0])[:_MOST_LINE])
    for message, sentence in user_sentences(evidence):
        if where is not None and not where.search(sentence):
            continue
        names = [
            name for name in find_names(sentence)
            if name not in asked and name not in found.cause and not name.isupper() and not _UNIT.fullmatch(name)
            and not _is_no_new_value(name, sentence) and _is_value(evidence, name, steps[0])
            and (("/" in name and not is_file_name(name)) or not _was_used(evidence, name))
        ]  # fmt: skip
        if names and _find_stems(sentence) & about and not is_forbidden(sentence, names):
            shown_names = join_names(names, 2)
            return WayAround(
                f"The user named {shown_names}{clock(message.at)}, and none of these calls has it.",
                _describe_use(evidence, names[0], shown_names, is_way=where is not None),
                [evidence.quote_message(message, sentence)],
            )
    return None


def _is_no_new_value(name: str, sentence: str) -> bool:
    """Whether a sentence names what is to be replaced, "from A to B", or who speaks, "my user ID is A"."""
    old = rf"[`'\"]?{re.escape(name)}[`'\"]?(?![\w-])"
    return _IDENTIFIES.search(sentence.partition(name)[0]) is not None or (
        re.search(
            rf"\b(?:from|change|replace|rename|swap|move)\s+(?:the \w+ )?{old}\s+(?:to|with|by|into|for)\b"
            rf"|\b(?:instead of|rather than|not|no longer|replac\w+|remov\w+)\s+(?:the \w+ )?{old}",
            sentence,
            re.IGNORECASE,
        )
        is not None
    )


def _is_value(evidence: Evidence, name: str, step: EntryView) -> bool:
    """Whether a name may be a value of a tool's argument: no argument's own name, and no word of a person such as one-way."""
    if command_of(step):
        return _CODED_VALUE.search(name) is not None
    return name not in fields_of(step) and (
        _CODED.search(name) is not None or any(name in evidence.text(each) for each in evidence.recent)
    )


def _was_used(evidence: Evidence, name: str) -> bool:
    """Whether a successful call used or wrote a name. Then the failing call does not lack it."""
    return any(name.rpartition("/")[2] in call_input(entry) for entry in evidence.recent if entry.status == "ok")


def _describe_use(evidence: Evidence, name: str, shown_names: str, *, is_way: bool) -> str:
    """Return what to do with something that the user named, by its kind: another way, an existing file, a place, a value."""
    if is_way:
        return f"Go by {shown_names} in this call: the user named that way."
    if is_file_name(name):
        there = any(name.rpartition("/")[2] in evidence.text(entry) for entry in evidence.recent if entry.status == "ok")
        return f"Give the call the file {shown_names}{', which is there' if there else ''}."
    return f"Give the call {shown_names} where it takes such a value, as the user named it."


def _find_stems(text: str) -> set[str]:
    return {word[:6].casefold() for word in _STEM.findall(text[:4_000]) if word.casefold() not in COMMON}


def _is_task(evidence: Evidence, sentence: str) -> bool:
    """Whether a sentence is the first one of the session's task, which says what to do and nothing about a failure."""
    return next(iter(split_sentences(evidence.user_texts[0].text)), "") == sentence


def find_sentence_of_person(evidence: Evidence, entry: EntryView, topic: Topic | None, found: Diagnosis) -> WayAround | None:
    """Return the sentence of a person on this subject that names something no call has used; first one on the error's topic."""
    # A look at a place does not use it.
    done = (each for each in evidence.recent if each.status == "ok" and may_change(each))
    given_text = "\n".join(call_input(each) for each in (*evidence.failing_calls, *done))
    about = _find_stems(f"{call_input(entry)}\n{found.evidence[0].text if found.evidence else ''}")
    fair: list[tuple[bool, Message, str]] = []
    for message, sentence in user_sentences(evidence):
        names = [name for name in _NAME.findall(sentence) if name.rstrip("/.") not in given_text]
        if not names or not _PRESCRIBES.search(sentence) or is_forbidden(sentence, names) or sentence in found.cause:
            continue
        # A look that works each time is what such a sentence asks for.
        if _ASKS_TO_LOOK.search(sentence) and not evidence.has_failed(entry) and not may_change(entry):
            continue
        on_topic = topic is not None and topic.words.search(sentence) is not None
        if on_topic or (_find_stems(sentence) & about and not _is_task(evidence, sentence)):
            fair.append((on_topic, message, sentence))
    _, message, sentence = max(fair, key=lambda each: each[0], default=(False, None, ""))
    if message is None:
        return None
    said = code(sentence, 150)
    return WayAround(
        f"The user said{clock(message.at)}: {said}.", f"{AS_SAID}{said}.", [evidence.quote_message(message, sentence)]
    )

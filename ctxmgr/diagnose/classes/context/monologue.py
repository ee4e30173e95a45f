"""The agent talks without acting, or says the same words over and over."""

from __future__ import annotations

import re
from typing import Any, cast

from ctxmgr.diagnose.evidence import Evidence, Message, clock
from ctxmgr.diagnose.evidence.messages import find_task_words
from ctxmgr.diagnose.evidence.texts import code, join_names, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis

KIND: str = "monologue"

_FINISHED = lazy_pattern(
    r"\b(?:all (?:done|set|tests pass)|task (?:is )?(?:complete|done|finished)|i(?:'ve| have) (?:finished|completed)"
    r"|nothing (?:else|more) to do|done\.)",
    re.IGNORECASE,
)
_PLANNED = lazy_pattern(
    r"\b(?:i will|i'll|let me(?! know)|i am going to|i'm going to|next,? i|now i|i need to|i should)\b", re.IGNORECASE
)
_LEAST_MESSAGES, _LEAST_SHARED, _ANSWERS = 4, 0.4, 3
"""Messages that say the same, their share of common words, and last messages that each answer somebody."""
_PATH = lazy_pattern(r"(?<![\w/])((?:[\w.@-]{1,60}/){0,8}[\w@-]{1,60}\.[A-Za-z]\w{0,5})(?![\w/])")


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return what is said again and again."""
    finding = evidence.finding
    said = _find_last_message(evidence)
    times = (
        finding.count
        if finding is not None and finding.kind in ("monologue", "chanting")
        else _count_trailing_repeats(evidence, said)
    )
    if times == 0:
        return None
    # Chanted words are noise. It helps to begin with something certain.
    if finding is not None and finding.kind == "chanting":
        return _diagnose_monologue(evidence, said)
    if said is None:
        return None
    text = said.text.strip().split("\n")[0]
    if _is_asked_each_time(evidence, said):
        cause = f"The user asks for the same again, and you give nearly the same answer, {times} times: {code(text, 150)}."
        step = (
            "Do not say it once more in other words. If it may not be done, say so in one sentence, name what you can do"
            " instead, and hand over to somebody who may decide, if there is a tool for that; else end your turn."
        )
        return diagnosis(KIND, cause, step, evidence.quote_message(said), confidence="medium")
    cause = (
        f"You repeat nearly the same message, {times} times, without a call of any tool, last: {code(text, 150)}. Words change"
        " nothing."
    )
    # A plan that mentions finished work does not end the task.
    if _FINISHED.search(said.text) and not _PLANNED.search(said.text):
        step = (
            "If the task is done, say so once, name the proof in the record, and end your turn. If it is not, call the tool for"
            " the part that is missing."
        )
        return diagnosis(KIND, cause, step, evidence.quote_message(said))
    if not _PLANNED.search(said.text):
        step = (
            "Call the tool for the next part of the task. If no tool can bring it on, say once what is missing and who can give"
            " it, and end your turn."
        )
        return diagnosis(KIND, cause, step, evidence.quote_message(said), confidence="medium")
    # A path that only an output named may come from an order.
    path = next((path for path in _PATH.findall(said.text) if plain_name(path) and evidence.is_known_to_agent(path)), None)
    matter = find_task_words(evidence, said.text)
    about = (
        f"the one that does what you announced ({join_names(matter, 3)})"
        if matter
        else "the one for the first thing you announced"
    )
    read = f"read {code(path, 90)}, and change or run something in the call after it" if path else ""
    step = f"Call a tool now, without a sentence before it: {read or about}."
    return diagnosis(
        KIND, cause, step, evidence.quote_message(said), check="The next record must be a call with a result, not a message."
    )


def _is_asked_each_time(evidence: Evidence, said: Message) -> bool:
    """Whether somebody spoke to the agent right before each of its last messages: then it does not talk to itself."""
    spoken = [message for message in evidence.messages if message.kind != "thought"]
    own = [number for number, message in enumerate(spoken) if message.by == "agent" and message.who == said.who][-_ANSWERS:]
    return len(own) == _ANSWERS and all(number > 0 and spoken[number - 1].who != said.who for number in own)


def _count_trailing_repeats(evidence: Evidence, said: Message | None) -> int:
    """Return the number of nearly equal messages that end the record without a call between them; 0 for fewer than four."""
    # If the user spoke last, it is the agent's turn.
    if said is None or not evidence.recent or (evidence.messages and evidence.messages[-1].by == "user"):
        return 0
    last: list[Message] = []
    for message in reversed(evidence.messages):
        # A call between messages is action.
        if message.by == "user" or message.after is None or message.after < evidence.recent[-1].index:
            break
        if message.by == "agent" and message.who == said.who:
            last.append(message)
    words = _find_long_words(said.text)
    alike = [
        each
        for each in last
        if words
        and len(words & _find_long_words(each.text)) >= _LEAST_SHARED * min(len(words), len(_find_long_words(each.text)) or 1)
    ]
    # Few or mixed messages are a report.
    return len(alike) if len(alike) >= _LEAST_MESSAGES and len(alike) * 2 > len(last) else 0


def _find_long_words(text: str) -> frozenset[str]:
    return frozenset(word for word in re.findall(r"\w+", text[:2_000].casefold()) if len(word) > 3)


def _find_last_message(evidence: Evidence) -> Message | None:
    return next(
        (m for m in reversed(evidence.messages) if m.by == "agent" and (evidence.agent is None or m.who == evidence.agent)),
        None,
    )


def _find_first_file(evidence: Evidence) -> str | None:
    """Return the file that the user's newest message names first, or None."""
    named = (path for message in reversed(evidence.user_texts) for path in _PATH.findall(message.text[:8_000]))
    return next((path for path in named if plain_name(path)), None)


def _diagnose_monologue(evidence: Evidence, said: Message | None) -> Diagnosis:
    finding = evidence.finding
    quoted = finding.evidence.get("said") if finding is not None else None
    each: list[Any] = cast("list[Any]", quoted) if isinstance(quoted, list) else [quoted]
    words = next((word for word in each if isinstance(word, str)), "")
    words = words or (said.text if said is not None else "")
    cause = (
        f"Your text repeats itself{clock(said.at) if said is not None else ''}: {code(words[-300:], 150)}. It was going to have"
        " no end."
    )
    file = _find_first_file(evidence)
    begin = (
        f"begin with {code(file, 90)}, which the task names" if file else "take the last thing that is certain in the record"
    )
    step = (
        f"Stop that text. Call the tool for the next part of the task: {begin}. If a long text was asked for, write it to a"
        " file in parts."
    )
    return diagnosis(KIND, cause, step, *([evidence.quote_message(said, words)] if said is not None else []))

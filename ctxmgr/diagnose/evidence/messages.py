"""What people, agents and programs said in a session, as messages, and its sentences.

The sentences tell what people forbid, allow or decide, and which words of an error are of the user's task.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.diagnose.evidence.texts import agent_name, clock, text_of
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.view import EventView

if TYPE_CHECKING:  # `session` imports this module
    from ctxmgr.diagnose.evidence.session import Evidence

_MOST_TEXT = 20_000
PEOPLE = ("user_message", "user_message_chunk")
BY_CLIENT = ("error", "nudge", "compaction", "interrupt", "waiting", "rewind", "turn_end", "usage")
"""Types of the events that a client writes by itself, whatever agent they name."""
_KEYS = ("text", "content", "message", "summary", "prompt", "question")
_PRINTED = ("stderr", "stdout", "output")
STREAMED = ("tool_call_update", "stream", "output", "progress")
"""Types of the events that show what an open call has printed so far."""
_SAID_AGAIN = 30
BY_USER = "the user"
"""The beginning of the source of a person's words."""

By = Literal["user", "agent", "program"]


@dataclass(frozen=True, slots=True)
class Message:
    """A message or a thought in a session.

    Attributes:
        who: the name of the agent, "user" for a person.
        by: whether a person (or a program that plays one), an agent or a program said it; only persons can approve and permit.
        at: RFC 3339, or null.
        kind: the event's type.
        after: index of the last entry before it, or null.
        to: the agents it was sent to, as recorded, or "".
    """

    who: str
    by: By
    at: str | None
    text: str
    kind: str = "message"
    after: int | None = None
    to: str = ""


def messages_of(events: Iterable[EventView]) -> list[Message]:
    """Return the messages in events, in their order. Events without text are left out; chunks of one message are joined."""
    found: list[Message] = []
    for event in events:
        text = _message_text(event.data, _PRINTED if event.type in STREAMED else ())
        if not text.strip() and event.type not in ("compaction", "waiting", "interrupt"):
            continue
        program = is_inserted(event.data)
        by: By = (
            "user"
            if event.type in PEOPLE and not program
            else "agent"
            if _is_by_agent(event.type) and not program
            else "program"
        )
        who = "user" if by == "user" else event.agent or by
        last = found[-1] if found else None
        again = last is not None and len(text) > _SAID_AGAIN and last.text.endswith(text)
        if (
            last
            and not again
            and event.type.endswith("_chunk")
            and (last.kind, last.who, last.after) == (event.type, who, event.after)
        ):
            found[-1] = Message(who, by, last.at, (last.text + text)[:_MOST_TEXT], event.type, event.after)
        else:
            found.append(Message(who, by, event.ts, text[:_MOST_TEXT], event.type, event.after, _find_addressees(event.data)))
    return found


def is_inserted(data: Any) -> bool:
    """Whether a client wrote a message in a person's name. A program that plays the person says what the person wants."""
    fields = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    return fields.get("synthetic") is True and fields.get("simulated") is not True


def starts_agent(data: Any) -> bool:
    """Whether a message is the text with which another agent started this one."""
    return isinstance(data, dict) and cast("dict[str, Any]", data).get("origin") == "parentAgent"


def _is_by_agent(kind: str) -> bool:
    return kind in ("message", "thought", "agent_message_chunk", "agent_thought_chunk")


def _message_text(data: Any, more: Sequence[str] = ()) -> str:
    if isinstance(data, dict):
        fields = cast("dict[str, Any]", data)
        return next((text for name in (*_KEYS, *more) if (text := text_of(fields.get(name)))), "")
    return text_of(data)


def _find_addressees(data: Any) -> str:
    fields = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    return next((text for name in ("to", "recipient", "recipients") if (text := text_of(fields.get(name), 400))), "")


_SENTENCE = lazy_pattern(r"[^.!?\n;]{1,400}(?:[.!?;](?=\S)[^.!?\n;]{1,200}){0,8}[.!?;]?")
_CLAUSE = lazy_pattern(r"[,;:]\s|\bbut\b|\binstead\b")
_WORD = lazy_pattern(r"[A-Za-z]{3,24}")
_SMALL_WORDS = word_set(
    "which there their these those where while would could should about after again before being every first other since still "
    "under until whose your what that this with then than them they when will have"
)
"""Words that never name the subject of a sentence."""
_MOST_LATEST = 200

FORBIDS = lazy_pattern(
    r"\b(?:never|do not|don['’]t|must not|mustn['’]t|may not|should not|shouldn['’]t|no one may|not allowed to|forbidden"
    r"|no (?:new|more|further|other|additional) \w+|off[- ]limits|leave .{1,80}? (?:alone|as (?:it|they) (?:is"
    r"|are)|untouched)|hands off|without touching|except"
    r"|stay away from|keep away from|avoid)\b",
    re.IGNORECASE,
)
ALLOWS = lazy_pattern(
    r"\b(?:you (?:may|can|are allowed)|allowed|permitted|only|instead|use|write (?:to|into)|(?:move|copy"
    r"|save) [^.]{1,40} (?:to|into|in)|put [^.]{1,40} (?:in|into)|ask)\b",
    re.IGNORECASE,
)


BINDS = lazy_pattern(
    r"\b(?:only|never|always|not|n't|must|at (?:most|least)|no more than|instead|unless|without|by hand|keep|leave|allowed|may"
    r"|should|agreed|decided|prefer)\b",
    re.IGNORECASE,
)
"""Words in a sentence that says how to do something, and not only what to do."""
_NO_ORDER = lazy_pattern(
    r"\?$|\b(?:if|when|unless|why|that) (?:you|we|i|they|it) (?:do not|don['’]t|never)\b|\bnot (?:only|need|have to)\b"
    r"|n['’]t (?:need|have to)\b|(?:do not|don['’]t|never) (?:forget|hesitate|worry|mind|fear)\b",
    re.IGNORECASE,
)


def forbids(sentence: str) -> re.Match[str] | None:
    """Return where a sentence forbids something; None for a question, a condition, and what only sounds like a ban."""
    return None if _NO_ORDER.search(sentence) else FORBIDS.search(sentence)


def find_task_words(evidence: Evidence, text: str) -> list[str]:
    """Return the words of the user's task that a text is about. Only the user's own words may be used in our advice."""
    asked = {
        word.casefold().rstrip("s"): word for message in evidence.user_texts for word in _WORD.findall(message.text[:8_000])
    }
    words = [
        word.casefold().rstrip("s") for word in _WORD.findall(text[:4_000])
        if (len(word) > 4 or word.isupper()) and word.casefold() not in _SMALL_WORDS
    ]  # fmt: skip
    agents = {entry.agent.casefold().rstrip("s") for entry in evidence.recent[-_MOST_LATEST:]}
    named = [asked[word] for word in dict.fromkeys(words) if word in asked and word not in agents]
    return sorted(named, key=lambda word: not word.isupper())


def is_forbidden(sentence: str, names: Sequence[str]) -> bool:
    """Whether the part of a sentence with a name forbids it: "never delete, move them to trash/" forbids no name."""
    if re.search(r"\b(?:only|instead|(?<!not )(?<!n't )(?<!never )use)\b", sentence):
        return False
    parts = [part for part in _CLAUSE.split(sentence) if any(name in part for name in names)]
    return all(forbids(part) is not None for part in parts)


def user_sentences(evidence: Evidence) -> Iterator[tuple[Message, str]]:
    """Yield the sentences of people, the newest message first, in the order of the message."""
    for message in list(reversed(evidence.user_texts))[:_MOST_LATEST]:
        for sentence in split_sentences(message.text):
            yield message, sentence


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, each at most one line long."""
    return [each for sentence in _SENTENCE.findall(text[:8_000]) if len(each := sentence.strip()) > 3]


def name_message(message: Message) -> str:
    """Return a message in words, "what planner said at 10:02"."""
    who = "the user" if message.by == "user" else agent_name(message.who)
    return f"what {who} said{clock(message.at)}"

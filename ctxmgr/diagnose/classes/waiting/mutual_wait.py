"""Two agents wait for each other's decision."""

from __future__ import annotations

import re
from typing import NamedTuple

from ctxmgr.diagnose.evidence import Evidence, call_input, clock, may_change
from ctxmgr.diagnose.evidence.calls import command_of, fields_of, tool_phrase
from ctxmgr.diagnose.evidence.items import answers
from ctxmgr.diagnose.evidence.messages import find_task_words
from ctxmgr.diagnose.evidence.texts import clean, code, join_names, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.related.related_lines import find_names
from ctxmgr.text.patterns import lazy_pattern
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
    call: str = ""

    @property
    def sentence(self) -> str:
        """What the agent said, or the call with which it waits."""
        said = f"called {self.call}{clock(self.at)} with" if self.call else f"said{clock(self.at)}:"
        return f"{clean(self.who)[:40]} {said} {code(self.text, 130)}."


def applies(evidence: Evidence) -> Diagnosis | None:
    """Return which two agents wait for each other, in their own words."""
    agents = {entry.agent for entry in evidence.recent[-_LAST:]} | {
        m.who for m in evidence.messages[-_LAST:] if m.by == "agent"
    }
    shown = _diagnose_needs(evidence)
    if shown is not None or len(agents) < 2:
        return shown
    waits = _list_waits(evidence)
    for first in waits:
        for second in waits:
            # Each pair only once.
            if first.who < second.who and _is_meant_for(first, second.who, agents) and _is_meant_for(second, first.who, agents):
                return _answer(evidence, first, second)
    return _diagnose_idle_agents(evidence, agents)


class _Need(NamedTuple):
    """What one agent needs from another, according to an answer."""

    who: str
    needs: str
    of: str
    entry: EntryView


_NEEDS = lazy_pattern(
    r"needs?|waits?(?:[_ ](?:for|on))?|waiting[_ ](?:for|on)|blocked[_ ](?:by|on)|depends[_ ]on|requires?", re.IGNORECASE
)
_IS_WHO = frozenset(("agent", "name", "owner", "who", "role", "worker", "task", "id"))


def _diagnose_needs(evidence: Evidence) -> Diagnosis | None:
    """Say that two agents need something from each other, according to what they wrote about themselves."""
    found: list[_Need] = []
    for entry, item in answers(evidence):
        who = next((value for key, value in item.fields.items() if key in _IS_WHO and plain_name(value)), "")
        needs = next((value for key, value in item.fields.items() if _NEEDS.fullmatch(key)), "")
        if who and needs:
            found.append(_Need(who, needs, "", entry))
    for one in found:
        for two in found:
            # Both must name each other. A single one waits in a chain.
            if one.who < two.who and _names_agent(one.needs, two.who) and _names_agent(two.needs, one.who):
                return _explain_needs(evidence, one, two)
    return None


def _names_agent(needs: str, who: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(who[:60])}(?![\w-])", needs) is not None


def _needed_thing(needs: str, who: str) -> str:
    """Return the needed file or name: the first one that is not the other agent's name."""
    names = [name for name in _THING.findall(needs) if name != who and plain_name(name)]
    return next((name for name in names if re.search(r"[./_-]", name)), names[0] if names else "")


_THING = lazy_pattern(r"[\w./-]{2,80}")


def _explain_needs(evidence: Evidence, one: _Need, two: _Need) -> Diagnosis:
    named = [each.who for each in (one, two) if evidence.was_said_by_user(f"You are {each.who}") or evidence.agent == each.who]
    own, other = (two, one) if named[:1] == [two.who] else (one, two)
    mine, theirs = _needed_thing(own.needs, other.who), _needed_thing(other.needs, own.who)
    cause = (
        f"{own.who} and {other.who} wait for each other: {own.who} needs {code(mine, 60)} of {other.who}, as"
        f" {evidence.source(own.entry)} "
        f"shows, and {other.who} needs {code(theirs, 60)} of {own.who}, as {evidence.source(other.entry)} shows."
    )
    step = (
        f"End the wait: make {code(theirs, 60)} yourself now, as far as that goes without {code(mine, 60)}, within"
        " what the user asked for, "
        f"and tell {other.who}. If it can't be made first, put both sides to the user."
    )
    return diagnosis(
        KIND,
        cause,
        step,
        evidence.quote(own.entry),
        evidence.quote(other.entry),
        check=f"{code(mine, 60)} must come after that.",
    )


_LOOK = lazy_pattern(r"sleep|poll|wait|log|fetch|cat|tail|grep|status|get|list|read|show|diff|check|view", re.IGNORECASE)
_LEAST_LOOKS, _ENDED = 3, 16


def _diagnose_idle_agents(evidence: Evidence, agents: set[str]) -> Diagnosis | None:
    """Say that two agents only look, with unchanged answers, and what each wrote about itself in the place where both look."""
    last = list(evidence.recent)[-_ENDED:]
    idle: dict[str, EntryView] = {}
    for agent in agents:
        own = [entry for entry in last if entry.agent == agent][-_LEAST_LOOKS:]
        looks = [entry for entry in own if entry.status in ("ok", "error") and _is_look(entry)]
        shared = (
            set[str]()
            .union(*(find_names(call_input(entry)) for entry in looks))
            .intersection(*(find_names(call_input(entry)) for entry in looks))
        )
        # An agent that does more than look at one thing goes on.
        if len(looks) == _LEAST_LOOKS and shared:
            idle[agent] = own[-1]
    if len(idle) != 2:
        return None
    one, two = sorted(idle)
    for entry in reversed(last):
        lines = {agent: _find_agent_line(evidence.text(entry), agent) for agent in (one, two)}
        # One place must mention both, or they are separate matters.
        if all(lines.values()):
            quotes_text = " ".join(f"{clean(agent)[:40]} wrote {code(line, 120)}." for agent, line in lines.items() if line)
            names = [
                name for name in find_names("\n".join(filter(None, lines.values()))) if evidence.was_said_by_user(name)
            ] or [name for message in evidence.user_texts for name in find_names(message.text) if name in evidence.text(entry)]
            about = f" (it is about {join_names(list(dict.fromkeys(names)), 3)})" if names else ""
            cause = (
                f"{clean(one)[:40]} and {clean(two)[:40]} wait for each other: both only look, and nothing changes. "
                f"{quotes_text}"
            )
            step = (
                f"End the wait: one of the two must act first{about}. Do your part on what is there now, without"
                " waiting for the other's, within what "
                "the user asked for, and write down that it is done; if you may not, put both sides to the user."
            )
            return diagnosis(
                KIND,
                cause,
                step,
                evidence.quote(entry),
                evidence.quote(idle[one]),
                evidence.quote(idle[two]),
                confidence="medium",
            )
    return None


def _is_look(entry: EntryView) -> bool:
    call = command_of(entry) or entry.action
    return (_LOOK.search(call) is not None and not may_change(entry)) or _FETCHES.match(call) is not None


_FETCHES = lazy_pattern(r"(?:sleep \d+\s*(?:&&|;)\s*)?git fetch\b(?!.*\b(?:push|commit|merge|rebase)\b)")


def _find_agent_line(text: str, agent: str) -> str | None:
    """Return the line that names an agent and says what it does."""
    match = re.search(rf"^\W{{0,4}}{re.escape(agent[:60])}\W{{1,3}}([^\n]{{4,200}})$", text[:8_000], re.MULTILINE)
    return match.group(0).strip() if match else None


def _list_waits(evidence: Evidence) -> list[_Wait]:
    """Return each agent's words that say it waits, newest first; from its messages only if none of its calls says so."""
    calls = [
        _Wait(
            entry.agent, text, entry.ts, evidence.quote(entry, text), call_input(entry),
            "" if _sentence(call_input(entry)) else tool_phrase(entry),
        )
        for entry in reversed(evidence.recent[-_LAST:]) if (text := _sentence(call_input(entry)) or _reason(entry))
    ]  # fmt: skip
    own = {wait.who for wait in calls}
    said = [
        _Wait(message.who, text, message.at, evidence.quote_message(message, text), message.text)
        for message in reversed(evidence.messages[-_LAST:])
        # A call that waits is surer than words.
        if message.by == "agent" and message.who not in own and (text := _sentence(message.text))
    ]
    return calls + said


def _reason(entry: EntryView) -> str:
    """Return what a call that only waits says it waits for."""
    if not _WAITING.search(entry.action):
        return ""
    fields = [f"{name}: {value}" for name, value in fields_of(entry).items() if isinstance(value, str)]
    return (", ".join(fields) or call_input(entry)).strip()[:200]


def _sentence(text: str) -> str:
    parts = [part.strip() for part in _PARTS.findall(text[:4_000]) if _WAITS.search(part)]
    return max(parts, key=lambda part: len(_FILE.findall(part)), default="")


_PARTS = lazy_pattern(r"(?:[^.!?\n]|[.!?](?=\w)){1,300}[.!?]?")
_FILE = lazy_pattern(r"(?<![\w/.-])[\w/-]{1,60}\.[a-z]{1,5}(?![\w/])")


def _is_meant_for(wait: _Wait, other: str, agents: set[str]) -> bool:
    """Whether the words are for the other agent: they name it, or say "you" and there are only two agents."""
    return re.search(rf"(?<![\w-]){re.escape(other[:60])}(?![\w-])", wait.to) is not None or (
        len(agents) == 2 and re.search(r"\byour?\b", wait.text, re.IGNORECASE) is not None
    )


def _answer(evidence: Evidence, first: _Wait, second: _Wait) -> Diagnosis:
    one, two = (clean(each.who)[:40] for each in (first, second))
    cause = f"{one} and {two} wait for each other. {first.sentence} {second.sentence}"
    own = evidence.agent if evidence.agent in (first.who, second.who) else second.who
    other = clean(second.who if own == first.who else first.who)[:40]
    other = other if plain_name(other) else "the other agent"
    # The files in a failing call are what it waits for.
    files = [
        name
        for name in _FILE.findall(f"{first.text} {second.text}")
        if any(name in call_input(e) for e in evidence.failing_calls)
    ]
    files = files or [name for name in _FILE.findall(f"{first.text} {second.text}") if plain_name(name)]
    matter = [*dict.fromkeys(files), *find_task_words(evidence, f"{first.text} {second.text}")]
    about = f" about {join_names(matter, 4)}" if matter else ""
    step = (
        f"End the wait: decide the open question{about} yourself now, within what the user asked for, and send {other} a "
        "first draft"
        " in one message. If it is not yours to decide, put both sides to the user."
    )
    return diagnosis(
        KIND, cause, step, first.quote, second.quote, check=f"The next message of {other} must build on the decision."
    )

"""Two agents wait for each other's decision, or several in a ring."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ctxmgr.diagnose.classes.waiting.awaited_files import (
    LAST_ENTRIES,
    LEAST_LOOKS,
    diagnose_awaited_files,
    diagnose_promised_files,
    is_look,
)
from ctxmgr.diagnose.evidence import Evidence, call_input, clock, may_change
from ctxmgr.diagnose.evidence.calls import fields_of, only_looks, tool_phrase
from ctxmgr.diagnose.evidence.items import answers
from ctxmgr.diagnose.evidence.messages import Message, find_task_words, split_sentences, user_sentences
from ctxmgr.diagnose.evidence.texts import ORDERS, agent_name, capital, code, contains_word, join_names, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.diagnose.related.related_lines import COMMON, find_names
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
_LAST_RECORDS = 40
"""Newest entries, and newest messages, that show who waits now."""


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
        return f"{agent_name(self.who)} {said} {code(self.text, 130)}."


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return which agents wait for each other, in their own words."""
    agents = {entry.agent for entry in evidence.recent[-_LAST_RECORDS:]} | {
        m.who for m in evidence.messages[-_LAST_RECORDS:] if m.by == "agent"
    }
    shown = _diagnose_needs(evidence)
    if shown is not None or len(agents) < 2:
        return shown
    promised = diagnose_promised_files(KIND, evidence, agents)
    if promised is not None:
        return promised
    waits = _list_waits(evidence, agents)
    for first in waits:
        for second in waits:
            # Each pair only once.
            if first.who < second.who and _is_meant_for(first, second.who, agents) and _is_meant_for(second, first.who, agents):
                return _explain_pair(evidence, first, second)
    return (
        _diagnose_ring(evidence, agents)
        or diagnose_awaited_files(KIND, evidence, agents)
        or _diagnose_mutual_looks(evidence)
        or _diagnose_idle_agents(evidence, agents)
    )


class _Need(NamedTuple):
    """What one agent needs from another, according to an answer."""

    who: str
    needs: str
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
        if who and needs and len(found) < _MOST_NEEDS:
            found.append(_Need(who, needs, entry))
    for one in found:
        for two in found:
            # Both must name each other. A single one waits in a chain.
            if one.who < two.who and _names_agent(one.needs, two.who) and _names_agent(two.needs, one.who):
                return _explain_needs(evidence, one, two)
    return _diagnose_need_ring(evidence, found)


def _diagnose_need_ring(evidence: Evidence, found: list[_Need]) -> Diagnosis | None:
    """Say that three or more need something of the next one, according to the newest answers about them."""
    newest: dict[str, _Need] = {}
    for need in found:
        known = newest.setdefault(need.who, need)
        # An answer may have several rows about one.
        if known.entry.index == need.entry.index and known.needs != need.needs:
            newest[need.who] = known._replace(needs=f"{known.needs}, {need.needs}"[:_MOST_NEED_TEXT])
    edges = {
        who: {other: need for other in newest if other != who and _names_agent(need.needs, other)}
        for who, need in newest.items()
    }  # fmt: skip
    ring = _find_ring(edges)
    loop = evidence.loop[-LAST_ENTRIES:]
    last = "\n".join(f"{entry.agent} {call_input(entry)} {evidence.text(entry)[:2_000]}" for entry in loop)
    # A ring in a list that the trouble does not touch is no cause of it.
    if not any(_names_agent(last, who) for who in ring):
        return None
    return _explain_need_ring(evidence, ring, [newest[who] for who in ring])


def _explain_need_ring(evidence: Evidence, ring: list[str], needs: list[_Need]) -> Diagnosis:
    """Say that three or more need something of the next one, according to answers."""
    names = [agent_name(who, 30) for who in ring]
    shown = ", ".join(f"{who} needs {code(need.needs, 60)}" for who, need in zip(names, needs, strict=True))
    sources = list(dict.fromkeys(evidence.source(need.entry) for need in needs))
    cause = (
        f"{', '.join(names[:-1])} and {names[-1]} wait for each other in a ring, as {sources[0]} shows: {shown}. None of them"
        " can be first."
    )
    each = ", ".join(code(f"{who} of {of}", 60) for who, of in _pair_with_next(names))
    step = (
        f"End the ring: take one of these needs away ({each}), where the user's task allows it, by a first part that is made"
        " without it, and tell the others. If it is not yours to decide, put the ring to the user."
    )
    return diagnosis(KIND, cause, step, *(evidence.quote(need.entry) for need in needs), check="One of them must go on.")


def _pair_with_next(ring: Sequence[str]) -> list[tuple[str, str]]:
    """Return each of a ring with the next one."""
    return list(zip(ring, [*ring[1:], *ring[:1]], strict=True))


def _names_agent(needs: str, who: str) -> bool:
    return contains_word(who[:60], needs)


def _find_needed_thing(needs: str, who: str) -> str:
    """Return the needed file or name: the first one that is not the other agent's name."""
    names = [name for name in _THING.findall(needs) if name != who and plain_name(name)]
    return next((name for name in names if re.search(r"[./_-]", name)), names[0] if names else "")


_THING = lazy_pattern(r"[\w./-]{2,80}")


def _explain_needs(evidence: Evidence, one: _Need, two: _Need) -> Diagnosis:
    named = [each.who for each in (one, two) if evidence.was_said_by_user(f"You are {each.who}") or evidence.agent == each.who]
    own, other = (two, one) if named[:1] == [two.who] else (one, two)
    mine, theirs = _find_needed_thing(own.needs, other.who), _find_needed_thing(other.needs, own.who)
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
        KIND, cause, step, evidence.quote(own.entry), evidence.quote(other.entry),
        check=f"{code(mine, 60)} must come after that.",
    )  # fmt: skip


def _diagnose_mutual_looks(evidence: Evidence) -> Diagnosis | None:
    """Say that the agents of a loop only look for news of each other."""
    last = {entry.agent: entry for entry in evidence.loop[-LAST_ENTRIES:]}
    if len(last) < 2 or not all(is_look(entry) for entry in last.values()):
        return None
    for agent, entry in last.items():
        if not any(_names_agent(call_input(entry), other) for other in last if other != agent):
            return None
    names = " and ".join(agent_name(agent) for agent in sorted(last))
    cause = (
        f"{names} only look for news of each other, with the same answer each time. None can come, since none of them writes."
    )
    step = (
        "End the wait: do your part of the task now with what you know, within what the user asked for, and send it in one"
        " message. If another must decide first, send that question with a proposal; if nobody may, put it to the user."
    )
    quotes = [evidence.quote(entry) for entry in last.values()]
    return diagnosis(KIND, cause, step, *quotes, check="The next look of the other one must find that message.")


def _diagnose_idle_agents(evidence: Evidence, agents: set[str]) -> Diagnosis | None:
    """Say that two agents only look, with unchanged answers, and what each wrote about itself in the place where both look."""
    last = list(evidence.recent)[-LAST_ENTRIES:]
    idle: dict[str, EntryView] = {}
    for agent in agents:
        own = [entry for entry in last if entry.agent == agent][-LEAST_LOOKS:]
        looks = [entry for entry in own if entry.status in ("ok", "error") and is_look(entry)]
        shared = (
            set[str]()
            .union(*(find_names(call_input(entry)) for entry in looks))
            .intersection(*(find_names(call_input(entry)) for entry in looks))
        )
        # An agent that does more than look at one thing goes on.
        if len(looks) == LEAST_LOOKS and shared:
            idle[agent] = own[-1]
    if len(idle) != 2:
        return None
    one, two = sorted(idle)
    for entry in reversed(last):
        lines = {agent: _find_agent_line(evidence.text(entry), agent) for agent in (one, two)}
        # One place must mention both, or they are separate matters.
        if all(lines.values()):
            quotes_text = " ".join(f"{agent_name(agent)} wrote {code(line, 120)}." for agent, line in lines.items() if line)
            names = [
                name for name in find_names("\n".join(filter(None, lines.values()))) if evidence.was_said_by_user(name)
            ] or [name for message in evidence.user_texts for name in find_names(message.text) if name in evidence.text(entry)]
            about = f" (it is about {join_names(list(dict.fromkeys(names)), 3)})" if names else ""
            cause = (
                f"{agent_name(one)} and {agent_name(two)} wait for each other: both only look, and nothing changes. "
                f"{quotes_text}"
            )
            step = (
                f"End the wait: one of the two must act first{about}. Do your part on what is there now, without"
                " waiting for the other's, within what "
                "the user asked for, and write down that it is done; if you may not, put both sides to the user."
            )
            return diagnosis(
                KIND, cause, step, evidence.quote(entry), evidence.quote(idle[one]), evidence.quote(idle[two]),
                confidence="medium",
            )  # fmt: skip
    return None


def _find_agent_line(text: str, agent: str) -> str | None:
    """Return the line that names an agent and says what it does."""
    match = re.search(rf"^\W{{0,4}}{re.escape(agent[:60])}\W{{1,3}}([^\n]{{4,200}})$", text[:8_000], re.MULTILINE)
    return match.group(0).strip() if match else None


def _list_waits(evidence: Evidence, agents: set[str]) -> list[_Wait]:
    """Return each agent's words that say it waits, newest first; from its messages only if none of its calls says so."""
    calls = [
        _Wait(
            entry.agent, text, entry.ts, evidence.quote(entry, text), call_input(entry),
            "" if _find_waiting_sentence(call_input(entry)) else tool_phrase(entry),
        )
        for entry in reversed(evidence.recent[-_LAST_RECORDS:])
        if (text := _find_waiting_sentence(call_input(entry)) or _describe_wait(entry))
    ]  # fmt: skip
    own = {wait.who for wait in calls}
    # A call that waits is surer than words.
    return calls + [wait for wait in _list_spoken_waits(evidence, agents) if wait.who not in own]


def _list_spoken_waits(evidence: Evidence, agents: set[str]) -> list[_Wait]:
    """Return the messages of agents that say they wait, newest first."""
    return [
        _Wait(message.who, text, message.at, evidence.quote_message(message, text), _addressee_text(message, agents))
        for message in reversed(evidence.messages[-_LAST_RECORDS:])
        if message.by == "agent" and (text := _find_waiting_sentence(message.text))
    ]


def _addressee_text(message: Message, agents: set[str]) -> str:
    """Return the text that names whom a message waits for: its own if it names an agent, else also the addressees."""
    named = any(_names_agent(message.text, agent) for agent in agents if agent != message.who)
    return message.text if named else f"{message.to}\n{message.text}"


_FIRST = lazy_pattern(
    r"\b(?:first|last|before|after|in doubt|begins?|starts?|order|enough|without waiting|does not (?:need|wait)|then)\b",
    re.IGNORECASE,
)
_MOST_AGENTS, _MOST_STEPS, _MOST_NEEDS, _MOST_NEED_TEXT = 8, 400, 60, 400
"""Agents of a ring, paths that are followed to find one; needs in answers, and characters of one."""


def _diagnose_ring(evidence: Evidence, agents: set[str]) -> Diagnosis | None:
    """Say that three or more agents wait for each other in a ring, and who may begin according to the user."""
    edges: dict[str, dict[str, _Wait]] = {}
    # What an agent said tells more than its call that waits.
    for wait in (*_list_spoken_waits(evidence, agents), *_list_waits(evidence, agents)):
        for other in agents - {wait.who}:
            known = other in edges.get(wait.who, {}) or not _is_meant_for(wait, other, agents)
            if not known and _is_still_waiting(evidence, wait.who) and not _was_answered(evidence, wait, other):
                edges.setdefault(wait.who, {})[other] = wait
    ring = _find_ring(edges)
    if not ring:
        return None
    waits = [edges[who][of] for who, of in _pair_with_next(ring)]
    names = [agent_name(who, 30) for who in ring]
    shown = "; ".join(
        f"{who} for {of}, {code(wait.text, 80)}"
        for who, of, wait in zip(names, [*names[1:], names[0]], waits, strict=True)
    )  # fmt: skip
    cause = f"{', '.join(names[:-1])} and {names[-1]} wait for each other in a ring: {shown}."
    rule = _find_order(evidence, ring)
    if rule is None:
        step = (
            "End the ring: one of them must begin without the other's part. Make a first draft of yours on what is there now,"
            " within what the user asked for, and send it; if you may not, put all sides to the user."
        )
        return diagnosis(KIND, cause, step, *(wait.quote for wait in waits))
    message, sentence = rule
    begins = _find_first_agent(sentence, waits)
    who = f" By that {agent_name(begins.who, 30)} can begin now." if begins else ""
    step = (
        f"Go by what the user said{clock(message.at)}: {code(sentence, 200)}.{who} Tell the others so in one message, do your"
        " part by it, and wait no longer."
    )
    return diagnosis(KIND, cause, step, evidence.quote_message(message, sentence), *(wait.quote for wait in waits))


def _is_still_waiting(evidence: Evidence, who: str) -> bool:
    """Whether an agent has changed nothing since it spoke last."""
    spoke = max((-1 if each.after is None else each.after for each in evidence.messages if each.who == who), default=-1)
    return not any(
        entry.agent == who and entry.index > spoke and may_change(entry) for entry in evidence.recent[-_LAST_RECORDS:]
    )


def _was_answered(evidence: Evidence, wait: _Wait, other: str) -> bool:
    """Whether the other agent has told the waiting one something since, and not only asked or waited itself."""
    return any(
        message.who == other
        and (message.at or "") > (wait.at or "")
        and (_names_agent(message.to, wait.who) or _names_agent(message.text, wait.who))
        and not _WAITS.search(message.text)
        and not message.text.strip().endswith("?")
        for message in evidence.messages[-_LAST_RECORDS:]
    )


def _find_ring(edges: Mapping[str, Mapping[str, object]]) -> list[str]:
    """Return agents of which each waits for the next and the last for the first: at least three, or none."""
    paths = [[who] for who in sorted(edges)]
    for _ in range(_MOST_STEPS):
        if not paths:
            return []
        path = paths.pop(0)
        for other in sorted(edges.get(path[-1], {})):
            if other == path[0] and len(path) > 2:
                return path
            if other in edges and other not in path and len(path) < _MOST_AGENTS:
                paths.append([*path, other])
    return []


def _find_order(evidence: Evidence, ring: list[str]) -> tuple[Message, str] | None:
    """Return the newest sentence of the user that says in which order agents of a ring work."""
    for message, sentence in user_sentences(evidence):
        if _FIRST.search(sentence) and any(_names_agent(sentence, who) for who in ring):
            return message, sentence
    return None


def _find_first_agent(sentence: str, waits: list[_Wait]) -> _Wait | None:
    """Return the wait that shares most words with what the user said, if only one does."""
    own = set(_LONG_WORD.findall(sentence.casefold()))
    shared = sorted(
        ((len(own & set(_LONG_WORD.findall(wait.text.casefold()))), wait) for wait in waits), key=lambda each: -each[0]
    )
    return shared[0][1] if shared[0][0] > shared[1][0] else None


_LONG_WORD = lazy_pattern(r"[\w./-]{4,40}")


def _describe_wait(entry: EntryView) -> str:
    """Return what a call that only waits says it waits for."""
    if not _WAITING.search(entry.action):
        return ""
    fields = [f"{name}: {value}" for name, value in fields_of(entry).items() if isinstance(value, str)]
    return (", ".join(fields) or call_input(entry)).strip()[:200]


def _find_waiting_sentence(text: str) -> str:
    parts = [part.strip() for part in _PARTS.findall(text[:4_000]) if _WAITS.search(part)]
    return max(parts, key=lambda part: len(_FILE.findall(part)), default="")


_PARTS = lazy_pattern(r"(?:[^.!?\n]|[.!?](?=\w)){1,300}[.!?]?")
_FILE = lazy_pattern(r"(?<![\w/.-])[\w/-]{1,60}\.[a-z]{1,5}(?![\w/])")


def _is_meant_for(wait: _Wait, other: str, agents: set[str]) -> bool:
    """Whether the words are for the other agent: they name it, or say "you" and there are only two agents."""
    return _names_agent(wait.to, other) or (len(agents) == 2 and re.search(r"\byour?\b", wait.text, re.IGNORECASE) is not None)


def _explain_pair(evidence: Evidence, first: _Wait, second: _Wait) -> Diagnosis:
    one, two = (agent_name(each.who) for each in (first, second))
    own, other_wait = (first, second) if evidence.agent == first.who else (second, first)
    other = agent_name(other_wait.who)
    other = other if plain_name(other) else "the other agent"
    check = f"The next message of {other} must build on the decision."
    question = _find_open_question(evidence, other_wait, own.who)
    if question is not None:
        message, sentence = question
        # The question says more than what the calls were given.
        by_call = f" with {own.call}{clock(own.at)}" if own.call else ""
        cause = f"{one} and {two} wait for each other{f', {agent_name(own.who)}{by_call}' if by_call else ''}. "
        cause += f"{capital(other)} asked{clock(message.at)}: {code(sentence, 160)}."
        quotes = [evidence.quote_message(message, sentence), own.quote, other_wait.quote]
        asked = _ASKED.search(sentence)
        about = code((sentence[asked.start() :] if asked is not None else sentence).rstrip(".?! "), 100)
        found = _find_answer(evidence, own.who, sentence, message)
        if found is not None:
            entry, line = found
            cause += f" {capital(evidence.source(entry))} may answer it: {code(line, 170)}."
            quotes.insert(1, evidence.quote(entry, line))
        step = (
            f"End the wait: answer {other}'s question, {about}, in one message, within what the user asked for. If it is not "
            "yours to decide, put both sides to the user."
        )
        return diagnosis(KIND, cause, step, *quotes, check=check)
    cause = f"{one} and {two} wait for each other. {first.sentence} {second.sentence}"
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
    return diagnosis(KIND, cause, step, first.quote, second.quote, check=check)


_ASKED = lazy_pattern(r"\b(?:which|whether|what|how many|how much|who|where|when)\b", re.IGNORECASE)
_ASKS = lazy_pattern(
    r"\b(?:need|have|want) to know\b|\btell me\b|\blet me know\b|\bplease (?:say|decide|confirm|choose)\b|\?$", re.IGNORECASE
)
_LEAST_SHARED, _LEAST_WORDS, _STEM = 2, 8, 6
"""Words that an answer shares with a question, words of a line that is a statement, and letters by which words are compared."""


def _find_open_question(evidence: Evidence, wait: _Wait, asked: str) -> tuple[Message, str] | None:
    """Return the newest question about the matter of a call that waits, if the one it asks has not answered it."""
    # Words that say what they wait for are the question themselves.
    if not wait.call:
        return None
    topic = _list_stems(wait.text.replace(wait.who, "").replace(asked, ""))
    for message in reversed(evidence.messages[-_LAST_RECORDS:]):
        if message.who != wait.who or message.by != "agent" or "thought" in message.kind:
            continue
        for sentence in split_sentences(message.text):
            if (
                _ASKS.search(sentence)
                and _ASKED.search(sentence)
                and not ORDERS.search(sentence)
                and topic & _list_stems(sentence)
            ):
                answered = _was_answered(evidence, wait._replace(at=message.at), asked)
                return None if answered else (message, sentence)
    return None


def _find_answer(evidence: Evidence, who: str, question: str, message: Message) -> tuple[EntryView, str] | None:
    """Return the statement in what an agent has read that shares most words with a question asked of it."""
    asked = _list_stems(question)
    best: tuple[int, int] = (0, 0)
    found: tuple[EntryView, str] | None = None
    for entry in evidence.latest:
        text = evidence.text(entry)[:_MOST_ANSWER]
        # An inbox shows the question itself.
        if entry.agent != who or not only_looks(entry) or not evidence.has_succeeded(entry) or message.text[:40] in text:
            continue
        for line in text.split("\n"):
            rank = len(asked & _list_stems(line)), min(len(line.split()), 2 * _LEAST_WORDS)
            if rank > best and rank[0] >= _LEAST_SHARED and rank[1] >= _LEAST_WORDS and not ORDERS.search(line):
                best, found = rank, (entry, line.strip())
    return found


def _list_stems(text: str) -> set[str]:
    return {word[:_STEM].rstrip("s") for word in re.findall(r"[a-z]{5,30}", text.casefold()) if word not in COMMON}


_MOST_ANSWER = 8_000

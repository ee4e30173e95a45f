"""The work waits for a person's approval or answer, which no repeated request to a machine can bring.

The person may not even have been asked: see `never_sent`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ctxmgr.detect.text import vocabulary
from ctxmgr.diagnose.classes.waiting.departed import diagnose_departed
from ctxmgr.diagnose.classes.waiting.never_sent import diagnose_never_sent
from ctxmgr.diagnose.evidence import MOST_CURRENT, Evidence, Message, call_input, call_key, clock, may_change
from ctxmgr.diagnose.evidence.calls import command_of, fields_of, question_of, tool_phrase
from ctxmgr.diagnose.evidence.items import Item, answers, find_ids, list_items
from ctxmgr.diagnose.evidence.messages import user_sentences
from ctxmgr.diagnose.evidence.texts import blanks_for_underscores, capital, code, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern, word_set
from ctxmgr.types.finding import Diagnosis, Quote
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
    r"|(?:lacks?|missing|without|no) (?:the |an? )?(?:\w+ )?(?:signature|approval|sign[- ]?off|consent|confirmation|release)\b"
    # A package source whose repository "... is not signed" waits for nobody.
    r"|(?<!' is )not[ _]signed(?:[ _]off)?\b|\b(?:release|confirmation|consent|signature"
    r"|decision) (?:is )?(?:still )?(?:required|needed|missing)\b"
    r"|\b(?:question|decision|approval|request) (?:is )?(?:still )?(?:open|pending|undecided)\b"
    r"|\bnot (?:yet )?released\b|\bunconfirmed\b"
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
_LEAST_POLLS, _LEAST_ANSWERS, _MOST_ANSWER, _MOST_NAME_WORDS, _MOST_BETWEEN = 2, 3, 4_000, 3, 30
"""Looks for an answer, answers that say "pending" and the characters of one, words of a person's name, and the characters
between a name and the words that say that the person is away."""


def diagnose(evidence: Evidence) -> Diagnosis | None:
    """Return whose answer is missing."""
    return (
        diagnose_never_sent(KIND, evidence)
        or _diagnose_open_call(evidence)
        or _diagnose_unanswered_question(evidence)
        or _diagnose_pending_review(evidence)
        or _diagnose_undecided(evidence)
        or diagnose_departed(KIND, evidence)
    )


def _find_open_question(evidence: Evidence) -> Message | None:
    """Return the stuck agent's newest question that no person has answered."""
    for message in reversed(evidence.messages):
        if message.by == "user":
            # A person has spoken since, so the question is answered or dropped.
            return None
        own = (
            message.by == "agent"
            and (evidence.agent is None or message.who == evidence.agent)
            # A thought is addressed to nobody.
            and "thought" not in message.kind
        )
        if own and _ASKS.search(message.text):
            return message
    return None


def _diagnose_unanswered_question(evidence: Evidence) -> Diagnosis | None:
    question = _find_open_question(evidence)
    if question is None:
        return None
    polls = [
        entry
        for entry in evidence.loop
        if _looks_for_answer(evidence, entry) and (question.after is None or entry.index > question.after)
    ]
    # Looking for an answer once or twice is no waiting.
    if len(polls) < _LEAST_POLLS:
        return None
    asked = _find_question(question.text)
    last = polls[-1]
    cause = (
        f"You asked the user{clock(question.at)}: {code(asked, 150)}. No answer is recorded, and you called {_quote_call(last)}"
        f" {len(polls)} times since; it can't answer for them."
    )
    return diagnosis(
        KIND, cause, "Stop calling. Put the question to the user once more in one sentence, and end your turn.",
        evidence.quote_message(question, asked), evidence.quote(last),
        check="Go on only when a message of the user answers it.",
    )  # fmt: skip


def _looks_for_answer(evidence: Evidence, entry: EntryView) -> bool:
    name = command_of(entry) or entry.action
    said = evidence.text(entry)[:600]
    return _APPROVAL.search(name) is not None or (_UNDECIDED.search(said) is not None and _APPROVAL.search(said) is not None)


def _diagnose_pending_review(evidence: Evidence) -> Diagnosis | None:
    """Say that a job or review waits for somebody, if its own answer says so each time."""
    same = _list_pending_answers(evidence)
    if not same:
        return None
    last = same[-1]
    said = evidence.text(last)
    match = _PENDING.search(blanks_for_underscores(said))
    words = said[match.start() : match.end()] if match else ""
    cause = (
        f"{_quote_call(last)}{_describe_subject(last)} was answered {len(same)} times that a person's approval or decision is "
        f"missing: {code(words, 60)}."
    )
    quotes = [evidence.quote(last)]
    person = _find_person(evidence, last)
    if person is not None:
        return _diagnose_person(evidence, person, cause, quotes, code(words, 60))
    role = _ROLE.search(blanks_for_underscores(words))
    who = f"the {role.group(1).lower()}" if role and role.group(1).lower() not in ("human", "person", "owner") else "a person"
    named = _find_named_decider(evidence, same)
    if named is not None:
        other = _find_other_decider(evidence, _Person(named[0], "", named[1], ""))
        if other is not None:
            return _diagnose_person(evidence, other, cause, quotes, code(words, 60))
        who = code(named[0], 40)
        cause += f" {capital(evidence.source(named[1]))} names {who}."
        quotes.append(evidence.quote(named[1]))
    by_user = _find_message_on_decision(evidence)
    if by_user is not None:
        message, sentence = by_user
        cause += f" The user said{clock(message.at)}: {code(sentence, 140)}."
        quotes.append(evidence.quote_message(message, sentence))
    step = (
        f"Stop asking for the state: asking can't bring the decision. Tell the user that this ({code(words, 60)}) "
        f"waits for {who}, and for what, ask for the decision, and end your turn. What stands in outputs is no approval."
    )
    return diagnosis(KIND, cause, step, *quotes, check=_CHECK)


def _list_pending_answers(evidence: Evidence) -> list[EntryView]:
    """Return the calls like the latest one that was answered with "pending", or none where they are no waiting."""
    pending = [entry for entry in evidence.tail if _is_pending(evidence, entry)]
    # Something pending long ago is no trouble any more.
    if not pending or evidence.is_past(pending[-1]):
        return []
    last = pending[-1]
    same = [entry for entry in pending if call_key(entry) == call_key(last) or entry.action == last.action]
    # A call that changes something each time is work, unless it is refused.
    is_work = any(may_change(entry) for entry in same) and not evidence.has_failed(last)
    return [] if is_work or len(same) < _LEAST_ANSWERS else same


def _find_named_decider(evidence: Evidence, same: list[EntryView]) -> tuple[str, EntryView] | None:
    """Return the name of whoever is to decide, and the call whose output has it, where an output names one."""
    last = same[-1]
    earlier = evidence.latest_before(last.index, MOST_CURRENT)
    beside_state = (
        (name.strip(), each) for each in [*reversed(same), *earlier] for name in _NAMED.findall(evidence.text(each)[:4_000])
    )
    approvers = ((name, each) for each in [last, *earlier] for name in _list_approvers(evidence.text(each)))
    # A name beside the state is surer than a list of approvers.
    named = next(beside_state, None) or next(approvers, None)
    # Longer texts are sentences, not names.
    if named is None or not plain_name(named[0].replace(" ", "-")) or len(named[0].split()) > _MOST_NAME_WORDS:
        return None
    return named


class _Person(NamedTuple):
    """The person who must decide: a name or a role in words, its entry, what is undecided there, and why not another person."""

    name: str
    role: str
    shown: EntryView
    state: str
    reason: str = ""


def _diagnose_undecided(evidence: Evidence) -> Diagnosis | None:
    """Say that calls are refused, or a state is polled, because a person has not decided, according to another answer."""
    steps = evidence.failing_calls[:2] or evidence.repeated_calls[:1] or _list_open_requests(evidence)
    for step in steps:
        person = _find_person(evidence, step, decided=True) if step.status != "open" else None
        # A failure counts only if it says that it lacks the decision.
        if person is None or (evidence.has_failed(step) and not _REFUSES.search(evidence.text(step))):
            continue
        cause = f"{_quote_call(step)}{_describe_subject(step)} gets no further, because a person's decision is missing."
        return _diagnose_person(evidence, person, cause, [evidence.quote(step)], "")
    return None


def _list_open_requests(evidence: Evidence) -> list[EntryView]:
    """Return the last call, if it is a look that has shown an open decision again and again, of one request or of several."""
    last = list(evidence.recent[-1:])
    same = [each for each in evidence.tail if each.action == last[0].action] if last and not command_of(last[0]) else []
    is_open = all(any(_find_decision_state(item) for item in list_items(evidence.text(each)[:_MOST_ANSWER])) for each in same)
    return last if len(same) > _LEAST_POLLS and is_open and not may_change(same[-1]) else []


def _find_person(evidence: Evidence, step: EntryView, *, decided: bool = False) -> _Person | None:
    """Return who must decide what a call is about, by the members of answers with its ids, else according to notes.

    Args:
        evidence: the session.
        step: the waiting call.
        decided: the members of an answer must show that it is undecided.
    """
    about = find_ids(f"{call_input(step)}\n{evidence.text(step)}") | set(_FILES.findall(evidence.text(step)))
    open_state = ""
    made: EntryView | None = None
    for entry, item in answers(evidence):
        # Only earlier answers can have caused the step.
        if entry.index > step.index or not about & find_ids(item.text):
            continue
        if made is not None and entry.index != made.index:
            return None  # the newest answer about it shows a decision
        state = _find_decision_state(item)
        if state == "" and not open_state:
            made = entry
        if not state:
            continue
        made = None  # the same answer shows something about it that is still open
        person = _read_person(item, entry, state)
        if person is not None:
            return _find_deputy(evidence, person) or _find_other_decider(evidence, person) or person
        open_state = open_state or state
    if decided and not open_state:
        return None
    noted = _find_noted_person(evidence, step) or (_find_absent_decider(evidence) if open_state else None)
    return noted._replace(state=open_state) if open_state and noted is not None else noted


def _read_person(item: Item, entry: EntryView, state: str) -> _Person | None:
    """Return the person whom the members of an item name, by name, role or both."""
    name = next((value for key, value in item.fields.items() if _WHO.search(key) and _is_name(value)), "")
    role = next((value for key, value in item.fields.items() if key == "role" and _ROLE_WORDS.fullmatch(value)), "")
    if not name and not role:
        return None
    return _Person(name.split(" (")[0], role or name.partition(" (")[2].rstrip(")"), entry, state)


_WHO = lazy_pattern(
    r"^(?:by|who|to|with|from|owner|approver|signer|assignee|reviewer|decider|person|decision_by|requested_from"
    r"|pending_with|waiting_for|assigned_to|required_approver)s?$"
)
_FILES = lazy_pattern(r"(?<![\w./-])[\w.-]{1,40}/[\w./-]{2,60}")
_NAME = lazy_pattern(r"@?[A-Za-z][\w.@'-]{1,40}(?: [A-Z][\w.'-]{1,30}){0,2}(?: \([\w -]{3,40}\))?")
_ROLE_WORDS = lazy_pattern(r"[A-Za-z][\w -]{2,40}")
# The assignee of a ticket works on it, but does not decide.
_DECIDES = lazy_pattern(
    r"approv|(?<!as)sign|review|confirm|releas|consent|decid|decision|authori|permit|clearance", re.IGNORECASE
)
_OPEN_STATE = lazy_pattern(
    r"(?:pending|requested|await\w*|waiting\w*|unconfirmed|unsigned|unapproved|undecided|open|sent|submitted"
    r"|required|\w*_required"
    r"|not_\w+|in_review|needs_\w+|proposed|draft)",
    re.IGNORECASE,
)
_CLOSED_STATE = lazy_pattern(
    r"(?:approved|confirmed|signed(?:_off)?|granted|released|decided|accepted|rejected|declined|done)", re.IGNORECASE
)
_REFUSES = lazy_pattern(
    r"\b(?:not|lacks?|requir\w+|refus\w+|prohibit\w*|pending|open|blocked|denied|missing|can['’]?t|cannot"
    r"|unconfirmed|forbidden|held|first)\b"
    r"|_REQUIRED",
    re.IGNORECASE,
)


def _find_decision_state(item: Item) -> str | None:
    """Return the state of a decision that an item shows as open; "" for a decision that was made, None for no decision."""
    for key, value in item.fields.items():
        if _DECIDES.search(key) and (value in ("null", "none", "false", "") or _OPEN_STATE.fullmatch(value)):
            return f"{key}: {value}"
    of_decision = _DECIDES.search(item.key) is not None or any(_DECIDES.search(key) for key in item.fields)
    given_to = next((value for key, value in item.fields.items() if key in ("given", "granted")), None)
    if of_decision and given_to in ("null", "false", "none"):
        return f"{item.key}: {given_to}"
    state = next((value for key, value in item.fields.items() if key in ("state", "status", "decision")), "")
    if state and (of_decision or "request" in item.fields):
        return f"state: {state}" if _OPEN_STATE.fullmatch(state) else "" if _CLOSED_STATE.fullmatch(state) else None
    return f"state: {state}" if re.match(r"(?:await|pending|waiting)\w*_(?:sign|approv|review|confirm)", state) else None


def _is_name(value: str) -> bool:
    return _NAME.fullmatch(value) is not None and value.casefold() not in _NOBODY and value not in ("null", "true", "false")


_PROSE = (
    lazy_pattern(
        r"\b(?:decided|approved|signed(?: off)?|released|confirmed|reviewed|granted|given|made"
        r"|answered)(?: only)? by(?: the| an?)? "
        r"(?P<role>[a-z][a-z -]{2,30}?)(?: only)? \((?:this week |currently |today |now "
        r"|at present )?(?P<name>[A-Z][\w.'-]{1,30}(?: [A-Z][\w.'-]{1,30})?)"
    ),
    lazy_pattern(
        r"^(?:To|Owner|Approver|Contact|Decision|Decides|Asked"
        r"|Assignee): {0,2}(?P<name>[A-Z@][\w.@'-]{1,30}(?: [A-Z][\w.'-]{1,30})?)(?: \((?P<role>[\w -]{3,30})\))?\s*$",
        re.MULTILINE,
    ),
    lazy_pattern(
        r"(?P<name>[A-Z][\w.'-]{1,30}(?: [A-Z][\w.'-]{1,30})?)(?: \((?P<role>[\w ,-]{3,40})\))? (?:alone |only )?"
        r"(?:decides|approves|signs(?: off)?|has to (?:approve|sign|decide|confirm|release)|must (?:approve|sign"
        r"|decide|confirm|release))\b"
    ),
    lazy_pattern(r"^\S*/\S* +(?P<name>@[\w./-]{2,40})(?P<role>)$", re.MULTILINE),
)
"""How notes name who decides. The last pattern is a line in a file of code owners."""
_AWAY = lazy_pattern(
    r"\b(?:on leave|away|out of (?:the )?office|absent|on holiday|on vacation|sick|unavailable|parental)\b", re.IGNORECASE
)
_STANDS_IN = lazy_pattern(
    r"\b(?:deputy|stand-?in|substitute|delegate[sd]?(?: to)?|cover(?:ed)? by|replaced by|represented by|acting"
    r"|backup|in \w+ absence)\W{1,4}"
    r"(?:is |for \w+ )?(?P<name>[A-Z@][\w.@'-]{1,30}(?: [A-Z][\w.'-]{1,30})?)"
)


def _find_noted_person(evidence: Evidence, step: EntryView) -> _Person | None:
    """Return the person whom notes name for a decision; from lines for paths, the one for a recorded path."""
    paths = "\n".join(evidence.text(each)[:4_000] for each in evidence.latest_before(step.index + 1, MOST_CURRENT))
    for entry in evidence.latest_before(step.index + 1, MOST_CURRENT):
        said = evidence.text(entry)[:8_000]
        if entry.status == "open":
            continue
        for pattern in _PROSE:
            for match in pattern.finditer(said):
                start = match.group(0).partition(" ")[0].strip("/*")
                of_path = match.group("name").startswith("@") and "/" in match.group(0)
                if of_path and not re.search(rf"(?<![\w/@]){re.escape(start)}/\w", paths):
                    continue
                if match.group("name").casefold() not in _NOBODY:
                    found = _Person(match.group("name"), match.group("role") or "", entry, "")
                    return _find_deputy(evidence, found) or _find_other_decider(evidence, found) or found
    return None


def _find_deputy(evidence: Evidence, person: _Person) -> _Person | None:
    """Return the deputy of a person whom an answer shows as absent."""
    parts = [part for part in re.split(r"[\W_]+", person.name) if len(part) > 2]
    if not parts:
        return None
    for entry in evidence.latest[:MOST_CURRENT]:
        for line in evidence.text(entry)[:8_000].split("\n"):
            match = _STANDS_IN.search(line)
            if match is not None and _AWAY.search(line) and parts[-1].casefold() in line.casefold():
                return _Person(match.group("name"), f"the deputy of {person.name}, who is away", entry, person.state)
    return None


_DECIDERS = lazy_pattern(
    r"(?:\w{0,20}[ _-])?(?:approvers?|deciders?|reviewers?|signers?|signatories|(?:code_?)?owners?|maintainers?|members)"
)
_DEPUTIES = lazy_pattern(
    r"(?:\w{0,20}[ _-])?(?:deput(?:y|ies)|backups?|delegates?|stand-?ins?|substitutes?|secondary|during|instead|alternates?)"
)
_PRESENCE = lazy_pattern(
    r"(?:away|offline|ooo|out[ _-]of[ _-]office|on[ _-]leave|absent|vacation|holiday|unavailable)(?: .{0,40})?"
)
_GONE = lazy_pattern(
    r"\b(?:on (?:\w+ )?leave|(?:is|am|are|be|['’]m|currently) away|out of (?:the )?office|absent|on (?:holiday|vacation)"
    r"|(?:off|out) sick|unavailable)\b[^.\n\"]{0,40}",
    re.IGNORECASE,
)

_COVERS = lazy_pattern(
    r"(?P<name>[A-Z][\w'-]{1,30}(?: [A-Z][\w'-]{1,30})?|@[\w.-]{2,40})"
    r" (?:stands? in|(?:is )?cover(?:s|ing)|fills? in|deputi[sz]es|is (?:my|the) (?:deputy|backup|stand-?in))\b"
)


def _find_other_decider(evidence: Evidence, person: _Person) -> _Person | None:
    """Return who else may decide, if the record shows a person as absent; without such a name that person, as absent."""
    absence = _find_absence(evidence, person.name)
    if absence is None:
        return None
    shown, words = absence
    reason = f" It waits for {code(person.name, 40)}, who is absent: {code(words, 60)}, as {evidence.source(shown)} shows."
    said = evidence.text(shown)
    named = _COVERS.search(said) or _STANDS_IN.search(said)
    if named is not None and not _is_same_person(named.group("name"), person.name):
        return _Person(named.group("name"), "who stands in", shown, "", reason)
    for entry, name in _list_deciders(evidence, person.name):
        if not _is_same_person(name, person.name) and _find_absence(evidence, name) is None:
            return _Person(name, "who may decide too", entry, "", reason)
    return person._replace(role="absent", reason=reason)


def _list_deciders(evidence: Evidence, person: str) -> Iterator[tuple[EntryView, str]]:
    """Yield the names in lists of people who decide that have a person: members of an answer, objects, or lines of a file."""
    alike = re.escape(person) + rf"(?:,? (?:and|or) |, ?| ?/ ?)({_LOGIN if '.' in person or '@' in person else _FULL})"
    for entry in evidence.latest:
        items = list_items(evidence.text(entry)[:8_000])
        objects = [item.fields.get("name") or item.fields.get("id") or "" for item in items if _DECIDERS.fullmatch(item.key)]
        for item in items:
            fields = {
                key: [each for part in text.split(",") if _is_name(each := part.strip())] for key, text in item.fields.items()
            }
            own = [key for key, names in fields.items() if any(_is_same_person(each, person) for each in names)]
            lists = [key for key in own if _DECIDERS.fullmatch(key)] + [
                key for key in fields if own and _DEPUTIES.fullmatch(key)
            ]
            yield from ((entry, name) for key in lists for name in fields[key])
        if any(_is_same_person(each, person) for each in objects):
            yield from ((entry, name) for name in objects if _is_name(name))
        about = _DECIDES.search(call_input(entry)) or re.search(r"OWNERS", call_input(entry))
        for line in evidence.text(entry)[:8_000].split("\n"):
            found = re.search(alike, line) if about or _DECIDES.search(line) else None
            if found is not None:
                yield entry, found.group(1)


_LOGIN, _FULL = r"@?[\w-]{2,30}(?:\.[\w-]{1,30})+", r"[A-Z][\w'-]{1,30}(?: [A-Z][\w'-]{1,30})?"


def _find_absent_decider(evidence: Evidence) -> _Person | None:
    """Return who may decide in place of a person whom an answer shows as absent and one about decisions names."""
    for entry, item in answers(evidence):
        name = next((each for key, each in item.fields.items() if key in ("name", "user", "person") and _is_name(each)), "")
        if not name or not any(_PRESENCE.fullmatch(each.casefold()) for each in item.fields.values()):
            continue
        texts = (evidence.text(each) for each in evidence.latest if each.index != entry.index)
        if any(name in text and (_DECIDES.search(text) or re.search(r"\b(?:requests? go|yes from)", text)) for text in texts):
            return _find_other_decider(evidence, _Person(name, "", entry, ""))
    return None


def _is_same_person(one: str, other: str) -> bool:
    """Whether two names are one person's: `mia.berg`, `@mia.berg`, `mia.berg@corp.example` and `Mia Berg`."""
    first, second = (re.findall(r"[^\W_]+", re.sub(r"(?<=\w)@.*| \(.*", "", each).casefold()) for each in (one, other))
    return bool(first) and first == second


def _find_absence(evidence: Evidence, name: str) -> tuple[EntryView, str] | None:
    """Return the newest answer that shows a person as absent, and its words: an automatic reply, a presence, or a line."""
    named = re.compile(rf"(?<![\w.]){re.escape(name)}(?![\w.])[^.;,\n]{{0,{_MOST_BETWEEN}}}?(?={_GONE.pattern})", re.IGNORECASE)
    for entry in evidence.latest:
        asked = any(_is_same_person(each, name) for each in fields_of(entry).values() if isinstance(each, str))
        said = evidence.text(entry)[:4_000]
        # In a line about several people, the words belong to the name before them.
        before = None if asked else named.search(said)
        match = _GONE.search(said, before.end() if before else 0) if asked or before else None
        if match is not None:
            return entry, match.group(0).strip()
        for item in list_items(said):
            own = [item.fields.get(key, "") for key in ("name", "id", "user", "person")]
            if (asked and not any(own)) or any(_is_same_person(each, name) for each in own if each):
                state = next((each for each in item.fields.values() if _PRESENCE.fullmatch(each.casefold())), None)
                if state is not None:
                    return entry, state
    return None


def _diagnose_person(evidence: Evidence, person: _Person, cause: str, quotes: list[Quote], what: str) -> Diagnosis:
    """Say who must decide, and that reading the state again brings nothing."""
    name = code(person.name, 40) if person.name else f"the {person.role}"
    role = f" ({person.role})" if person.role and person.name else ""
    source = evidence.source(person.shown)
    state = f", where it stands as {code(person.state, 50)}" if person.state else ""
    cause += f"{person.reason} {capital(source)} names {name}{role} for it{state}."
    step = (
        "Stop asking for the state and repeating the call: neither brings the decision. Tell the user that"
        f" {name} is absent, and ask who decides instead. What stands in outputs is no approval."
        if person.role == "absent"
        else f"Stop asking for the state and repeating the call: neither brings the decision. Tell {name}{role}, by a"
        " way that reaches"
        f" them, or the user, what is to be decided{f' ({what})' if what else ''}, and end your turn. What stands"
        " in outputs is no approval."
    )
    by_user = _find_message_on_decision(evidence)
    if by_user is not None:
        message, sentence = by_user
        cause += f" The user said{clock(message.at)}: {code(sentence, 120)}."
        quotes.append(evidence.quote_message(message, sentence))
    return diagnosis(KIND, cause, step, *quotes, evidence.quote(person.shown), check=_CHECK)


def _find_message_on_decision(evidence: Evidence) -> tuple[Message, str] | None:
    """Return the newest sentence of a person that speaks of a decision."""
    return next((each for each in user_sentences(evidence) if _ABOUT.search(each[1])), None)


_CHECK = "Look at the state once when the user says that it was decided."


def _describe_subject(entry: EntryView) -> str:
    """Return in words what a call is about: the first plain name with a digit in its input."""
    names = [] if command_of(entry) else [each for each in fields_of(entry).values() if isinstance(each, str)]
    name = next((each for each in names if plain_name(each) and any(map(str.isdigit, each)) and len(each) <= _LONGEST_NAME), "")
    return f" of {code(name, 40)}" if name else ""


_LONGEST_NAME = 40


def _list_approvers(text: str) -> list[str]:
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


def _is_pending(evidence: Evidence, entry: EntryView) -> bool:
    said = evidence.text(entry)
    return len(said) < _MOST_ANSWER and _PENDING.search(blanks_for_underscores(said)) is not None


def _diagnose_open_call(evidence: Evidence) -> Diagnosis | None:
    """Say that a call that asks a person has no answer yet."""
    entry = next((each for each in evidence.open_calls if vocabulary.asks_human(each.action)), None)
    if entry is None:
        return None
    asked = question_of(entry)
    cause = f"You asked the user{clock(entry.ts)} with {tool_phrase(entry)}: {code(asked, 150)}. No answer is recorded."
    step = "Wait: end your turn with this question in one sentence. Do not ask in another form."
    return diagnosis(KIND, cause, step, evidence.quote(entry, asked), check="Go on only when the user has answered.")


def _find_question(text: str) -> str:
    parts = re.findall(r"[^.!?\n]{1,300}[.!?]?", text[:4_000])
    return next((part.strip() for part in reversed(parts) if "?" in part and part.strip()), None) or next(
        (part.strip() for part in reversed(parts) if _ASKS.search(part)), text[:300]
    )


def _quote_call(entry: EntryView) -> str:
    return code(command_of(entry) or tool_phrase(entry), 80)

"""An answer is awaited to a thing that was only drafted: a call left it unsent, and no later call has named it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ctxmgr.diagnose.evidence import Evidence, call_input, clock, may_change
from ctxmgr.diagnose.evidence.calls import command_of, fields_of, only_looks, tool_phrase
from ctxmgr.diagnose.evidence.items import Item, find_ids, list_items
from ctxmgr.diagnose.evidence.messages import forbids, user_sentences
from ctxmgr.diagnose.evidence.texts import code, contains_word, join_names, plain_name
from ctxmgr.diagnose.interface import diagnosis
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Diagnosis
from ctxmgr.types.view import EntryView

_STATE_KEY = lazy_pattern(r"(?:\w{0,20}[_ ])?(?:state|status|phase|stage)", re.IGNORECASE)
_UNSENT = lazy_pattern(
    r"(?:saved[ _-]as[ _-])?drafts?|drafted|unsent|unsubmitted|(?:not|never)[ _-](?:yet[ _-])?(?:sent|submitted)", re.IGNORECASE
)
_UNCONFIRMED = lazy_pattern(
    r"unconfirmed|not[ _-](?:yet[ _-])?confirmed|(?:pending|awaiting|needs|requires|awaits|to[ _-]be)[ _-]confirm(?:ation|ed)?"
    r"|confirmation[ _-](?:pending|required|needed)",
    re.IGNORECASE,
)
"""States that another one may end, so that only an action in the answer shows whose turn it is."""
_SENT_KEY = lazy_pattern(r"(?:is[_ ]?)?(?:sent|submitted|delivered)", re.IGNORECASE)
_DRAFT_KEY = lazy_pattern(r"(?:is[_ ]?)?draft", re.IGNORECASE)
_ACTIONS_KEY = lazy_pattern(
    r"(?:available|allowed|next|possible)?_?(?:actions?|steps?|operations?|transitions?)", re.IGNORECASE
)
_ENDS = lazy_pattern(
    r"(?:send|submit|confirm|publish|post|deliver|dispatch|finali[sz]e|issue)(?:[_-]?\w{1,20})?", re.IGNORECASE
)
_VERB = lazy_pattern(r"(?:^|[._\-:/ ])(?:send|submit|confirm|publish|post|deliver|dispatch|finali[sz]e|issue)", re.IGNORECASE)
_ID_KEY = lazy_pattern(r"(?:\w{0,30}[_ ])?(?:id|ref|reference|number|no|key|uuid|draft)|[a-z]{1,30}id", re.IGNORECASE)
_TO_KEY = lazy_pattern(
    r"to|recipients?|channel|assignees?|approvers?|reviewers?|contact|customer|user(?:_?id)?|for", re.IGNORECASE
)
_DRAFT = lazy_pattern(r"\bdraft", re.IGNORECASE)
_NEWS = lazy_pattern(r"inbox|mailbox|messages|replies|responses|answers|notifications|updates", re.IGNORECASE)
_PAUSES = lazy_pattern(r"wait|sleep|pause|await", re.IGNORECASE)
_LEAST_WAITS, _LAST_ENTRIES, _MOST_ANSWER = 3, 12, 4_000
"""Looks and waits that are a waiting, newest entries that are read for them, and characters of an answer."""


class _Draft(NamedTuple):
    """A thing that a call made and left unsent."""

    entry: EntryView
    name: str
    state: str
    action: str


def diagnose_never_sent(kind: str, evidence: Evidence) -> Diagnosis | None:
    """Return which thing an awaited answer needs that was never sent or confirmed, and the action that its answer offers."""
    waits = _list_waits(evidence)
    if len(waits) < _LEAST_WAITS or any(_keeps_back(sentence) for _, sentence in user_sentences(evidence)):
        return None
    for entry in evidence.latest_before(waits[-1].index):
        draft = _read_draft(evidence, entry)
        looks = [] if draft is None else [each for each in waits if each.index > entry.index and _asks_about(each, entry)]
        if draft is not None and looks and _is_left(evidence, draft):
            return _explain_draft(kind, evidence, draft, looks)
    return None


def _keeps_back(sentence: str) -> bool:
    """Whether a person wants a draft, or nothing sent."""
    return _DRAFT.search(sentence) is not None or (_VERB.search(sentence) is not None and forbids(sentence) is not None)


def _list_waits(evidence: Evidence) -> list[EntryView]:
    """Return the newest looks for the same news and pauses, oldest first; none if the agent does anything else at the end."""
    own = [entry for entry in evidence.recent if evidence.is_own(entry)][-_LAST_ENTRIES:]
    # A last call that only waits is a waiting, whether it has returned or not.
    waits = [entry for entry in own if _is_pause(entry) or _is_look(entry)]
    if not waits or waits[-1] is not own[-1]:
        return []
    actions = [entry.action for entry in waits]
    return [entry for entry in waits if _is_pause(entry) or actions.count(entry.action) >= _LEAST_WAITS]


def _is_pause(entry: EntryView) -> bool:
    return _PAUSES.search(command_of(entry) or entry.action) is not None


def _is_look(entry: EntryView) -> bool:
    return only_looks(entry) or (_NEWS.search(entry.action) is not None and not may_change(entry))


def _read_draft(evidence: Evidence, entry: EntryView) -> _Draft | None:
    """Return the unsent thing that a call of the agent made; None if the call only shows it."""
    if command_of(entry) or _is_look(entry) or not evidence.is_own(entry) or not evidence.has_succeeded(entry):
        return None
    for item in list_items(evidence.text(entry)[:_MOST_ANSWER]):
        action = next(_list_actions(item), "")
        state = next((f"{key}: {value}" for key, value in item.fields.items() if _is_unsent(key, value, action)), "")
        names = [
            value for key, value in item.fields.items() if _ID_KEY.fullmatch(key) and plain_name(value) and find_ids(value)
        ]
        # What the call was given existed before.
        name = next((each for each in names if each not in call_input(entry)), "")
        if state and name:
            return _Draft(entry, name, state, action)
    return None


def _is_unsent(key: str, value: str, action: str) -> bool:
    if _SENT_KEY.fullmatch(key):
        return value == "false"
    if _DRAFT_KEY.fullmatch(key):
        return value == "true"
    return _STATE_KEY.fullmatch(key) is not None and (
        _UNSENT.fullmatch(value) is not None or (bool(action) and _UNCONFIRMED.fullmatch(value) is not None)
    )


def _list_actions(item: Item) -> Iterator[str]:
    """Yield the actions that an answer offers and that send or confirm the thing."""
    for key, value in item.fields.items():
        if _ACTIONS_KEY.fullmatch(key):
            yield from (each for each in re.split(r"[\s,;]+", value) if _ENDS.fullmatch(each))


def _asks_about(look: EntryView, made: EntryView) -> bool:
    """Whether a look is for the answer: it names whom the thing goes to, or an addressed thing is of the same service."""
    addressed = [str(value) for key, value in fields_of(made).items() if _TO_KEY.fullmatch(key) and isinstance(value, str)]
    if any(plain_name(each) and contains_word(each, call_input(look)) for each in addressed):
        return True
    service = re.match(r"\w{2,40}(?=[._:/])", made.action)
    return bool(addressed) and service is not None and look.action.startswith(made.action[: service.end() + 1])


def _is_left(evidence: Evidence, draft: _Draft) -> bool:
    """Whether no later call named the thing or an action that sends, and no answer showed it again."""
    for entry in evidence.recent:
        if entry.index <= draft.entry.index:
            continue
        named = draft.name in call_input(entry) or draft.name in evidence.text(entry)
        acted = _VERB.search(entry.action) is not None or any(
            isinstance(value, str) and _ENDS.fullmatch(value) for value in fields_of(entry).values()
        )
        if named or acted:
            return False
    return True


def _explain_draft(kind: str, evidence: Evidence, draft: _Draft, looks: list[EntryView]) -> Diagnosis:
    name, state, last = code(draft.name, 50), code(draft.state, 50), looks[-1]
    cause = (
        f"{tool_phrase(last)}{clock(last.ts)} looks for an answer to what was never sent: {evidence.source(draft.entry)} left "
        f"{name} as {state}, and no call has named it since."
    )
    offer = f" The same answer offers {code(draft.action, 40)} for it." if draft.action and plain_name(draft.action) else ""
    verb = f"use {code(draft.action, 40)} on it" if offer else "make the call that sends or submits it"
    step = (
        f"Wait no longer: see whether {name} still says what the user asked for, then {verb}, and look for the answer only"
        " after that. If time is short, tell the user that it was not sent before."
    )
    return diagnosis(
        kind, cause + offer, step, evidence.quote(draft.entry), evidence.quote(last),
        check=f"{name} must no longer be {join_names([draft.state])}.",
    )  # fmt: skip

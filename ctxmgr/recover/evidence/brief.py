"""Read from the history what the next agent must know: goal, last success, what was tried, how it failed.

A `Case` is the input of an answer, gathered once; every step from the choice of an agent to the gate reads it. A `Brief` is
what the history says about it; the same history gives the same brief. `finding_sentence` says what is wrong and quotes records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from math import fsum, log
from typing import TYPE_CHECKING

from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.detect.step import duration
from ctxmgr.detect.text import fingerprints
from ctxmgr.log.fast_json import json_object
from ctxmgr.recover.evidence.history_reader import FAILED, HistoryReader, SpokenMessage, changes_something, same_call
from ctxmgr.recover.evidence.query_builder import MOST, Problem, related_answers, related_help, search_request, session_help
from ctxmgr.recover.evidence.quotes import answer_text, both_ends, display_name, short_call, times
from ctxmgr.recover.evidence.related import RelatedReader, RelatedRecord
from ctxmgr.recover.evidence.retrieval import RetrievedRecord, merge
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.finding import Finding
from ctxmgr.types.route import CONTEXT_MANAGER, ContextRequest, Fact
from ctxmgr.types.view import EntryView, NoteView

if TYPE_CHECKING:  # these modules import `Case`
    from ctxmgr.recover.earlier_answers import KnownFacts
    from ctxmgr.recover.routes import RoutingTable


@dataclass(frozen=True, slots=True)
class Case:
    """One request, what is wrong, and what the answer may read and choose.

    Attributes:
        reader: reads the session.
        related: reads related sessions and memory; None to read this session alone.
        request: the question or task, and its requester.
        finding: the loop or stall to answer, if any.
        side: other unresolved findings of the session. They are mentioned, and their steps do not count as progress.
        table: which agent may be sent what.
        to: the agent that has to continue; None to choose one.
        attempt: number of answers to this problem, including this one.
        known_facts: agent -> facts it already has, to leave them out; None to give all facts.
        outside_facts: facts from outside of this history, given first.
        advised: the next step of the answer before; "" if there is none.
    """

    reader: HistoryReader
    related: RelatedReader | None
    request: ContextRequest
    finding: Finding | None
    side: Sequence[Finding]
    table: RoutingTable
    to: str | None
    attempt: int
    known_facts: Callable[[str], KnownFacts] | None
    outside_facts: tuple[Fact, ...]
    advised: str = ""


_LOOK_BACK = 200
"""Entries before the trouble that are read. The limit keeps the time constant for any length of history."""
_SAMPLE = 24
_MOST_CHANGES, _MOST_FAILURES, _MOST_AGENTS = 6, 4, 6
_BETWEEN, _MOST_BETWEEN = 24, 3
_MOST_ENDED, _MOST_NOTES = 3, 3
_MOST_RARE, _RARE_TEXT, _LEAST_RARITY, _FEW_WORDS = 6, 2_000, 0.5, 5
_WORD = lazy_pattern(r"[a-z]+|\d+")


@dataclass(frozen=True, slots=True)
class Brief:
    """The findings of the rules. Every list is short.

    Attributes:
        members: the entries of the loop (only the first and last ones of a long loop), or the open calls of a stall.
        gone: ids of members that the history no longer holds.
        onset: index of the first member; for a silent stall or a healthy session, the number of entries.
        rounds: the distinct calls among the members, the latest of each, in the order of a round.
        between: calls repeated among the members that are not members themselves, the latest of each.
        launcher: the entry by which another agent launched the stuck one.
        last_success: the last entry before the trouble that ended ok.
        latest: the newest entries before the trouble, oldest first.
        changed: successful changes to files and the like, newest first.
        failures: other failures before the trouble, one of each kind, newest first.
        agents: the latest successful entry of every other agent, oldest first.
        relevant: entries and messages on the subject of the request or the trouble, oldest first.
        unanswered: questions of the request that no record answers.
        related: records of related sessions and memory on that subject, the best first.
        ended: without a finding, the calls that fail at the end of the history, newest last. They are the trouble then.
        worked: entries before the trouble that ended ok and were not replaced since, newest first.
        notes: notes that were added to entries since the trouble began, oldest first.
    """

    goal: SpokenMessage | None
    latest_words: list[SpokenMessage]
    said: list[SpokenMessage]
    members: list[EntryView]
    gone: list[str]
    onset: int
    rounds: list[EntryView]
    between: list[EntryView]
    launcher: EntryView | None
    last_success: EntryView | None
    latest: list[EntryView]
    changed: list[EntryView]
    failures: list[EntryView]
    agents: list[EntryView]
    relevant: list[RetrievedRecord]
    unanswered: list[str]
    related: list[RelatedRecord] = field(default_factory=list[RelatedRecord])
    ended: list[EntryView] = field(default_factory=list[EntryView])
    worked: list[EntryView] = field(default_factory=list[EntryView])
    notes: list[NoteView] = field(default_factory=list[NoteView])


def prepare_brief(case: Case) -> Brief:
    """Return the brief for a finding, or for the present state if there is none."""
    reader, request, finding, related = case.reader, case.request, case.finding, case.related
    named = list(finding.members) if finding else []
    sample = both_ends(named, _SAMPLE)
    members = reader.entries(sample)
    present = {entry.id for entry in members}
    onset = min((entry.index for entry in members), default=reader.total())
    aside = {member for each in case.side for member in each.members}
    before = [entry for entry in reader.entries_before(onset, _LOOK_BACK) if entry.id not in present]
    stuck = None if finding is None else finding.scope.agent
    rounds = _one_round(members)
    between = _entries_between(reader, members, set(named))
    place = members[-1] if members else (before[-1] if before else None)
    said = reader.last_messages(place) if place else []
    goal, heard = reader.first_words(), reader.latest_words()
    if goal is not None and stuck is not None and goal.agent != stuck and goal.agent in case.table.routes:
        goal, heard = reader.own_task(stuck, find_launcher(reader, members, stuck)), []  # the person spoke to another agent
    ended = _failing_end(before) if finding is None else []
    own, began = {*named, *(each.id for each in ended)}, ended[0].index if ended else onset
    trouble = Problem(ended or rounds, between, own, began, stuck, goal, said[-1] if said else None)
    elsewhere: list[RelatedRecord] = []
    if request.requester:
        sought = search_request(reader, request, before, goal)
        if related is not None:
            elsewhere, sought = related_answers(related, request, sought)
        if ended and request.type == "INTROSPECT_AGENT_CONTEXT":
            sought = merge(sought, session_help(reader, trouble, before), MOST, answers=False)
            elsewhere += related.cures(ended) if related is not None else []
    else:
        sought = session_help(reader, trouble, before)
        if related is not None:
            elsewhere, sought = related_help(related, trouble, sought)
    others = _latest_of_agents(reader, case.table.routes, stuck or request.requester)
    worked = [entry for entry in reversed(before) if entry.status == "ok" and entry.id not in sought.replaced]
    return Brief(
        goal=goal, latest_words=heard, said=said, members=members,
        gone=[entry for entry in sample if entry not in present], onset=onset, rounds=rounds, between=between,
        launcher=find_launcher(reader, members, stuck),
        last_success=_last_success(reader, finding, [entry for entry in worked if entry.id not in aside]),
        latest=[entry for entry in before[-4:] if entry.id not in sought.replaced], changed=_distinct_changes(worked),
        failures=_distinct_failures(before, aside | sought.replaced, rounds),
        agents=[each for each in others if each.id not in sought.replaced],
        relevant=sought.found, unanswered=sought.unanswered, related=elsewhere, ended=ended, worked=worked,
        notes=reader.notes(began)[-_MOST_NOTES:],
    )  # fmt: skip


def find_launcher(reader: HistoryReader, members: Sequence[EntryView], stuck: str | None) -> EntryView | None:
    """Return the entry by which another agent launched the stuck one, or None."""
    acting = members[-3:] or (reader.newest(1, agent=stuck) if stuck else [])
    for entry in acting:
        parent = reader.entry(entry.parent) if entry.parent else None
        if parent is not None and parent.agent != entry.agent:
            return parent
    return None


def _failing_end(before: Sequence[EntryView]) -> list[EntryView]:
    """Return the distinct calls that failed at the end of a history, after the last success, newest last."""
    ended = takewhile(lambda entry: entry.status != "ok", reversed(before))
    failed = [entry for entry in ended if entry.status in FAILED]
    return _one_round(failed[::-1])[-_MOST_ENDED:]


def _one_round(members: list[EntryView]) -> list[EntryView]:
    return list({same_call(entry): entry for entry in members}.values())  # a key keeps the place of its first entry


def _entries_between(reader: HistoryReader, members: Sequence[EntryView], named: set[str]) -> list[EntryView]:
    """Return the calls that recur among the newest members without being members, such as the other half of a ping-pong."""
    if len(members) < 2:
        return []
    seen: dict[str, list[EntryView]] = {}
    for entry in reader.entries_before(members[-1].index + 2, _BETWEEN):
        if entry.id not in named and entry.index > members[0].index:
            seen.setdefault(same_call(entry), []).append(entry)
    return [entries[-1] for entries in seen.values() if len(entries) > 1][-_MOST_BETWEEN:]


def _last_success(reader: HistoryReader, finding: Finding | None, worked: list[EntryView]) -> EntryView | None:
    if finding is not None:
        return None if finding.last_progress is None else reader.entry(finding.last_progress)
    return worked[0] if worked else None


def _distinct_changes(worked: list[EntryView]) -> list[EntryView]:
    distinct: dict[str, EntryView] = {}
    for entry in worked:
        if changes_something(entry):
            distinct.setdefault(same_call(entry), entry)
    return list(distinct.values())[:_MOST_CHANGES]


def _distinct_failures(before: list[EntryView], aside: set[str], rounds: list[EntryView]) -> list[EntryView]:
    """Return earlier failures, one of each cause, without calls that belong to the trouble or worked later."""
    distinct: dict[str, EntryView] = {}
    made_good = {same_call(step) for step in rounds}
    for entry in reversed(before):
        if entry.status == "ok":
            made_good.add(same_call(entry))
        elif entry.status in FAILED and entry.id not in aside and same_call(entry) not in made_good:
            distinct.setdefault(f"{entry.action} {fingerprints.error_core(answer_text(entry)[-4_000:])}", entry)
    return list(distinct.values())[:_MOST_FAILURES]


def rare_results(worked: Sequence[EntryView]) -> list[EntryView]:
    """Return the results whose words are the rarest on average, one for each call, the best first.

    They help if no cause is sure, because then nothing tells what the agent will need. Results of a word or two rank low. In
    real runs that failed, such results held 57 % of the values that the right way needed; the end of the history held 33 % in
    as many characters (`bench/recovery/replay.py`).
    """
    latest = {same_call(entry): entry for entry in reversed(worked)}
    found = {entry.id: set(_WORD.findall(answer_text(entry)[:_RARE_TEXT].casefold())) for entry in latest.values()}
    held = Counter(word for each in found.values() for word in each)
    rarity = {
        name: fsum(log(len(found) / held[word]) for word in each) / (len(each) + _FEW_WORDS)
        for name, each in found.items()
        if each
    }
    # If many answers have one form, only their numbers are rare.
    least = max(rarity.values(), default=0.0) * _LEAST_RARITY
    ranked = [entry for entry in latest.values() if rarity.get(entry.id, 0.0) > least]
    return sorted(ranked, key=lambda entry: -rarity[entry.id])[:_MOST_RARE]


def _latest_of_agents(reader: HistoryReader, agents: Iterable[str], own: str | None) -> list[EntryView]:
    """Return the last success of each agent that joined last, oldest first, without the agent that is answered."""
    others = [agent for agent in agents if agent not in (own, CONTEXT_MANAGER)][-_MOST_AGENTS:]
    if own is None and len(others) < 2:
        return []
    found = [entry for agent in others for entry in reader.newest(1, agent=agent, status=("ok",))]
    return sorted(found, key=lambda entry: entry.index)


_MOST_STEPS = 4


def finding_sentence(brief: Brief, finding: Finding) -> str:
    """Return the finding's own sentence, rewritten from the entries themselves."""
    agent = _stuck_agent(brief, finding)
    return _stall_sentence(brief, finding, agent) if finding.severity == "hung" else _loop_sentence(brief, finding, agent)


def finding_phrase(finding: Finding) -> str:
    """Return a finding in few words, to be mentioned beside another one."""
    who = display_name(finding.scope.agent) if finding.scope.agent else "an agent"
    if finding.severity == "hung":
        return f"{who} has stopped as well"
    first, last = finding_span(finding)
    where = f", @{first} to @{last}" if min(first, last) >= 0 else ""
    return f"{who} is in a loop as well ({finding.kind}, {loop_size(finding)}{where})"


def loop_size(finding: Finding) -> str:
    """Return the size of a loop in words: ``4 rounds of 3 steps``."""
    of = f" of {finding.period} steps" if finding.period > 1 else ""
    return f"{finding.count:,} rounds{of}"


def _loop_sentence(brief: Brief, finding: Finding, agent: str) -> str:
    steps = brief.rounds
    if not steps:
        return f"{agent} is in a loop ({finding.kind}, {loop_size(finding)})."
    failed = all(step.status in FAILED for step in steps)
    if finding.kind == "errorRepetition" and len(steps) > 1:
        return f"{agent} met the same error in {finding.count:,} calls, {len(steps)} of them different."
    if len(steps) == 1:
        same = " and got the same error each time" if failed else " and got the same result each time"
        if steps[0].status == "open":
            same = "; no results are recorded"
        return f"{agent} called {short_call(steps[0])} {times(finding.count)}{same}."
    what = ", then ".join(short_call(step) for step in steps[:_MOST_STEPS])
    more = f", and {len(steps) - _MOST_STEPS} more calls" if len(steps) > _MOST_STEPS else ""
    return f"{agent} went round {times(finding.count)} through {what}{more}, with the same outcomes each time."


def _stall_sentence(brief: Brief, finding: Finding, agent: str) -> str:
    seconds = finding.evidence.get("stalledSeconds")
    span = f" for {duration(seconds)}" if isinstance(seconds, int | float) else ""
    if brief.members:
        first = brief.members[0]
        more = f" and {len(brief.members) - 1} more calls" if len(brief.members) > 1 else ""
        what = f"@{first.index}, {short_call(first)}{more}"
        if first.status != "open":
            return f"{agent} waited{span} for {what}, beyond its limit; it has ended since."
        if finding.evidence.get("ended"):
            return f"The log ends while {agent} waits for {what}: no result is recorded."
        return f"{agent} has waited{span} for {what}: no result is recorded."
    if not brief.latest:
        return f"Nothing has happened{span}."
    last = brief.latest[-1]
    by = f"{short_call(last)} by {display_name(last.agent)}"
    return f"Nothing has happened{span} since @{last.index}, {by}, which ended {last.status}."


def _stuck_agent(brief: Brief, finding: Finding) -> str:
    if finding.scope.agent:
        return display_name(finding.scope.agent)
    return display_name(brief.members[-1].agent) if brief.members else "the agent"


def finding_span(finding: Finding) -> tuple[int, int]:
    """Return the indexes of the first and the last entry of a finding; -1 for one that the finding does not give."""
    indexes = json_object(finding.evidence.get("indexes"))
    first, last = (place if isinstance(place := indexes.get(name), int) else -1 for name in ("first", "last"))
    return first, last

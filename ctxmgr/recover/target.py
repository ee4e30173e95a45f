"""Choose the one agent that continues, refuse what the routing rules forbid (FR-017 to FR-020), and build its request.

``tests/recover/cases/targets.json`` lists situations, and the agent that continues in each.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

from ctxmgr.base.light_dataclass import dataclass, replace
from ctxmgr.errors import InvalidInput, RecoveryRefused
from ctxmgr.log.codec import encode
from ctxmgr.log.fast_json import json_object
from ctxmgr.recover.evidence.brief import Case, find_launcher
from ctxmgr.recover.evidence.history_reader import FAILED, PATH, HistoryReader, changes_something, texts
from ctxmgr.recover.evidence.quotes import answer_text, display_name
from ctxmgr.recover.routes import BROKEN, Route, find_problem, guess_role
from ctxmgr.recover.stuck_request import concurrent_loops
from ctxmgr.types.finding import Finding
from ctxmgr.types.route import ContextRequest, is_context_manager
from ctxmgr.types.view import EntryView

_LONGEST_NAME = 256
_MOST_CANDIDATES = 40
_LOOK_BACK = 200
_RECENT = 1_000
_MOST_TEXT = 4_000
_STEPS, _MOST_CHANGES, _MOST_FILES = 3, 20, 3


@dataclass(frozen=True, slots=True)
class Target:
    """The chosen agent, the reason for it, and the other allowed agents.

    ``back``: it is the agent that is stuck or asks. ``fixed``: nobody may choose another one, because it was named or asked
    for context itself.
    """

    agent: str
    reason: str
    candidates: list[str]
    back: bool
    fixed: bool = False


def choose_target(case: Case) -> Target:
    """Return the target of a request.

    * An introspection goes back to the requester.
    * A PROCEED goes to ``to``, else to the agent that usually follows the requester in the history, out of those that the
      routing table allows; never back to the requester itself. A review or merge agent forwards: the agent whose work it
      looked at is chosen only if ``to`` or the request names it, or if there is nobody else.
    * A stuck agent is continued with richer context first. If another agent launched it, that one takes over. If the same
      loop comes back, it is the agent before that: the launcher's launcher, or the agent that acted earlier and is not stuck.

    Raises:
        RecoveryRefused: the context manager would be the target, or a PROCEED would go straight back.
        InvalidInput: nobody is left to continue, or ``to`` is not among the allowed agents.
    """
    reader, request, finding, table, to = case.reader, case.request, case.finding, case.table, case.to
    if any(name is not None and is_context_manager(name) for name in (to, request.requester)):
        raise RecoveryRefused("the context manager never recovers itself", "name another agent with --to")
    if to is not None and not is_routable(to):
        raise InvalidInput("the target is no name of an agent", f"1 to {_LONGEST_NAME} characters, not only blanks")
    if request.requester is not None and table.routing == "table" and request.requester not in table.routes:
        raise InvalidInput(
            f"{display_name(request.requester)} is not in the routing table", "add it to the table, or mend the name"
        )
    candidates = [agent for agent in dict.fromkeys(request.return_to or table.routes) if _is_target(agent)]
    if not request.return_to and table.routing == "history":
        candidates = candidates[-_MOST_CANDIDATES:]
    if table.routing == "table":
        candidates = [agent for agent in candidates if agent in table.routes]
    forwards = request.type == "PROCEED" and request.requester is not None
    if forwards and to is not None and to == request.requester:
        raise RecoveryRefused(
            f"a PROCEED request never goes straight back to {display_name(to)}", "name a downstream agent with --to"
        )
    if forwards:
        followers = table.followers(str(request.requester))
        # The table decides who is downstream. A history only shows who has acted, not who may follow.
        candidates = [
            agent for agent in candidates if agent != request.requester and (table.routing == "history" or agent in followers)
        ]
    if to is not None:
        back = to in (request.requester, finding and finding.scope.agent)
        return _named_target(request, candidates, to, table.routes, back=back, known=table.routing == "table")
    if forwards:
        return _proceed_target(reader, request, candidates)
    choice = _Choice(candidates, closed=bool(request.return_to) or table.routing == "table")
    if request.requester is not None:
        return replace(choice.target(request.requester, "it asked for context and continues with it", back=True), fixed=True)
    if finding is not None:
        return _finding_target(case, finding, choice)
    return _latest_target(reader, choice)


def is_routable(agent: str) -> bool:
    """Whether a recorded name can be that of an agent to which something is sent."""
    return 0 < len(agent) <= _LONGEST_NAME and bool(agent.strip())


def _is_target(agent: str) -> bool:
    return is_routable(agent) and not is_context_manager(agent)


@dataclass(frozen=True, slots=True)
class _Choice:
    """The agents to choose from. ``closed``: the request or the routing table lists them, so no other may be added."""

    candidates: list[str]
    closed: bool

    def allows(self, agent: str) -> bool:
        """Whether an agent may be the target."""
        return _is_target(agent) and (not self.closed or agent in self.candidates)

    def target(self, agent: str, reason: str, *, back: bool = False) -> Target:
        """Return an agent as the target. It joins the candidates unless they are closed."""
        if not _is_target(agent):
            raise InvalidInput("no agent of this session can continue", "name one with --to")
        if agent in self.candidates:
            return Target(agent, reason, self.candidates, back)
        if self.closed:
            raise RecoveryRefused(
                f"{display_name(agent)} is not among the agents that the request may be answered to",
                "name one of them with --to, or add it to the routing table",
            )
        return Target(agent, reason, [*self.candidates, agent], back)


def _named_target(
    request: ContextRequest, candidates: list[str], to: str, agents: Container[str], *, back: bool, known: bool
) -> Target:
    if request.return_to and to not in candidates:
        raise InvalidInput(f"{display_name(to)} is not among the agents that the request may be answered to", "check --to")
    if known and to not in candidates:
        raise InvalidInput(f"the routing table does not let {display_name(to)} be the next", "check --to, or correct the table")
    present = to in candidates
    if request.requester is None and candidates and not (present or back or to in agents):
        others = ", ".join(map(display_name, candidates))
        raise InvalidInput(f"the agent {display_name(to)} has not acted in this session", f"its agents: {others}")
    reason = "it was named as the target" if present else "it was named as the target; it has not acted in this session yet"
    return Target(to, reason, candidates if present else [*candidates, to], back, fixed=True)


def _asker(reader: HistoryReader, request: ContextRequest) -> str | None:
    """Return the agent whose work a review or merge agent looked at: its launcher, or the agent that acted before it."""
    if request.source != "reviewMerge":
        return None
    own = reader.newest(1, agent=request.requester)
    launcher = find_launcher(reader, own, None)
    if launcher is not None:
        return launcher.agent
    recent = list(reversed(reader.newest(_RECENT)))
    others = {entry.agent for entry in recent} - {request.requester}
    follower = _usual_follower(recent, str(request.requester), others)
    before: dict[str, tuple[int, bool, int]] = {}
    for previous, entry in pairwise(recent):
        if entry.agent == request.requester != previous.agent:
            # If several acted before, it is not the one that usually follows the requester: that one is downstream.
            times = before.get(previous.agent, (0, False, 0))[0] + 1
            before[previous.agent] = (times, previous.agent != follower, previous.index)
    return max(before, key=lambda name: before[name]) if before else (recent[-1].agent if recent and not own else None)


def _proceed_target(reader: HistoryReader, request: ContextRequest, candidates: list[str]) -> Target:
    """Return the target of a PROCEED that names nobody: the agent with a drafted request, else the one downstream."""
    drafted = [agent for agent in candidates if agent in request.drafts]
    if len(drafted) == 1:
        return Target(drafted[0], "the requester drafted its request", candidates, back=False, fixed=True)
    wanted = [agent for agent in candidates if _is_named(request.goal[:_MOST_TEXT], agent)]
    if len(wanted) == 1:
        return Target(wanted[0], "the goal names it", candidates, back=False)
    return _next_target(reader, str(request.requester), candidates, None if request.return_to else _asker(reader, request))


def _next_target(reader: HistoryReader, requester: str, others: list[str], asker: str | None) -> Target:
    if not others:
        raise InvalidInput(
            f"no agent but {display_name(requester)} is known in this session, so there is nobody to proceed to",
            "name the downstream agent with --to",
        )
    # The agent whose work was looked at comes last: it follows only if there is nobody else (user story 10).
    allowed = [agent for agent in others if agent != asker] or others
    recent = list(reversed(reader.newest(_RECENT)))
    follower = _usual_follower(recent, requester, allowed)
    if follower is not None:
        return Target(follower, f"it usually acts next after {display_name(requester)}", allowed, back=False)
    last = next((entry.agent for entry in reversed(recent) if entry.agent in allowed), None)
    if last is not None:
        return Target(last, f"of the agents beside {display_name(requester)} it acted last", allowed, back=False)
    return Target(allowed[0], "of the allowed agents it is named first", allowed, back=False)


def _usual_follower(recent: Sequence[EntryView], agent: str, others: Collection[str]) -> str | None:
    """Return which of the others most often acts right after this agent, the latest of several; None if none does."""
    counts: dict[str, tuple[int, int]] = {}
    for previous, entry in pairwise(recent):
        if previous.agent == agent and entry.agent in others:
            counts[entry.agent] = (counts.get(entry.agent, (0, 0))[0] + 1, entry.index)
    return max(counts, key=lambda name: counts[name]) if counts else None


def _latest_target(reader: HistoryReader, choice: _Choice) -> Target:
    last = next((entry for entry in reader.newest(_LOOK_BACK) if choice.allows(entry.agent)), None)
    if last is None:
        return choice.target("", "")
    launcher = find_launcher(reader, [last], None)
    if launcher is not None and launcher.status != "open" and choice.allows(launcher.agent):
        return choice.target(launcher.agent, f"it launched {display_name(last.agent)}, which acted last", back=True)
    return choice.target(last.agent, "it acted last", back=True)


def decisive_finding(reader: HistoryReader, findings: Sequence[Finding], finding: Finding) -> Finding:
    """Return which of several simultaneous loops to answer.

    Loops whose calls fail take precedence over loops that only look or wait. If several fail, it is the one whose agent the
    others' failures name, else the one that began first.
    """
    around = [each for each in concurrent_loops(findings, finding) if each.scope.agent is not None]
    last = {each.id: next(iter(reader.entries(each.members[-1:])), None) for each in around}
    failed = {each.id: entry for each in around if (entry := last[each.id]) is not None and entry.status in FAILED}
    blamed = [
        each for each in around
        if each.id in failed and any(
            _is_named(answer_text(entry), str(each.scope.agent)) for name, entry in failed.items() if name != each.id
        )
    ]  # fmt: skip
    if len(blamed) == 1:
        return blamed[0]
    return next((each for each in around if each.id in failed), finding)


def _is_named(text: str, name: str) -> bool:
    """Whether the end of a text names an agent or a file; it does not count as a part of a longer name."""
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text[-_MOST_TEXT:], re.IGNORECASE) is not None


def _maker(reader: HistoryReader, finding: Finding, stuck: str, agents: Sequence[str]) -> EntryView | None:
    """Return the change by another agent that causes a stuck agent's failure; the author of the change can end the trouble.

    The failure names a file that another agent changed last, while the stuck agent has changed nothing. A merge is the
    merger's own work, so no change is returned. A reviewer's verdict counts as a failure of what it looked at.
    """
    role = guess_role(stuck)
    steps = [entry for entry in reader.entries(finding.members[-_STEPS:]) if entry.agent == stuck]
    if role == "merge" or any(entry.status == "ok" and changes_something(entry) for entry in steps):
        return None
    met = [step for step in steps if step.status in FAILED or role == "review"]
    told = [answer_text(step)[-_MOST_TEXT:] for step in met]
    if role == "review":
        told += [text for step in met for text in texts(step.input, names=False)]
    files = [match.group(1).rpartition("/")[2] for text in told for match in PATH.finditer(text)]
    for name in list(dict.fromkeys(reversed(files)))[:_MOST_FILES]:
        change = _last_change(reader, name)
        if change is not None:
            return change if change.agent != stuck and change.agent in agents else None
    return None


def _last_change(reader: HistoryReader, name: str) -> EntryView | None:
    """Return the last successful change of a file with this name."""
    hits = reversed(reader.search(name, _MOST_CHANGES))
    changes = (entry for entry in hits if entry.status == "ok" and changes_something(entry))
    return next((entry for entry in changes if any(_is_named(text, name) for text in texts(entry.input, names=False))), None)


def _finding_target(case: Case, finding: Finding, choice: _Choice) -> Target:
    reader, attempt = case.reader, case.attempt
    members = reader.entries(finding.members[-_STEPS:])
    stuck = finding.scope.agent or (members[-1].agent if members else "")
    who = display_name(stuck)

    def may(agent: str) -> bool:
        return agent != stuck and choice.allows(agent)

    launcher = find_launcher(reader, members, stuck or None)
    above = find_launcher(reader, [launcher], None) if launcher is not None and attempt > 1 else None
    if launcher is not None and above is not None and may(above.agent):
        reason = f"{display_name(launcher.agent)} did not get further; {display_name(above.agent)} launched it"
        return choice.target(above.agent, reason)
    if launcher is not None and may(launcher.agent):
        return choice.target(launcher.agent, f"it launched {who}, which is stuck, and can take another way")
    maker = _maker(reader, finding, stuck, choice.candidates) if attempt == 1 else None
    if maker is not None and may(maker.agent):
        reason = f"{who} is stuck at what {display_name(maker.agent)} made at @{maker.index} and can change"
        return choice.target(maker.agent, reason)
    if attempt > 1 or not choice.allows(stuck):
        before = reader.entries_before(members[0].index if members else reader.total(), _LOOK_BACK)
        able = [entry.agent for entry in reversed(before) if may(entry.agent)]
        also_stuck = {each.scope.agent for each in case.side}
        handed = next((agent for agent in able if agent not in also_stuck), next(iter(able), None))
        if handed is not None:
            why = "came back to the same trouble" if attempt > 1 else "cannot be continued"
            return choice.target(handed, f"{who} {why}; {display_name(handed)} acted before it")
    if _is_target(stuck):
        return choice.target(stuck, "it is the agent that is stuck; it continues with richer context", back=True)
    return choice.target(next((agent for agent in reversed(choice.candidates) if may(agent)), ""), f"{who} cannot be continued")


_LARGEST = 20_000
"""Maximum bytes of an earlier request that is used again."""

_EARLIER = 40
_GIVEN = {
    "goal": ("goal", "task", "objective"),
    "reason": ("reason", "rationale", "why"),
    "context": ("context", "additionalContext", "additional_context", "background"),
    "session": ("session", "sessionId", "session_id"),
    "requester": ("requester", "requestedBy", "requested_by", "from", "source_agent", "sourceAgent"),
}
"""What is known about a request, and the field names that request types commonly have for it."""


def build_target_request(
    reader: HistoryReader, route: Route, request: ContextRequest, context: str, summary: str
) -> dict[str, Any] | None:
    """Return the request for an agent, or None if its form is not known and no draft exists.

    It starts from the requester's draft, else from the newest recorded request of the agent's type that is still valid.
    Missing fields get what is known, under the names that request types use, then constants and defaults.

    Raises:
        InvalidInput: it can't be made valid; the message says which field is wrong.
    """
    draft = request.drafts.get(route.agent)
    if draft is None and route.request is None and route.schema is None:
        return None
    if draft is not None and not isinstance(draft, dict):
        raise InvalidInput(f"the draft for {display_name(route.agent)} must be a JSON object", 'e.g. {"goal": "..."}')
    known = {"goal": request.goal, "reason": request.reason, "session": request.session, "requester": request.requester}
    bases = [cast("dict[str, Any]", draft)] if draft is not None else [*_recorded_requests(reader, route), dict[str, Any]()]
    problems: list[str] = []
    # Values that a field's schema refuses, such as a number for a session, are left out only on the second try.
    for fitting in (False, True):
        for base in bases:
            for text in (context, summary):
                made = _fill_request(base, route.schema, {**known, "context": text}, fitting=fitting)
                if not (problem := find_problem(made, route.schema)):
                    return made
                problems.append(problem)
        if problems[-1].startswith(BROKEN):  # without the field, the fault of the schema would stay hidden
            break
    problem = problems[-1]
    raise InvalidInput(
        f"no request that {display_name(route.agent)} takes can be made: {problem}",
        f"draft it: ctxmgr request --draft '{route.agent}={{...}}', or correct its schema in the routing table",
    )


def _recorded_requests(reader: HistoryReader, route: Route) -> list[dict[str, Any]]:
    if route.request is None:
        return []
    found = reader.newest(_EARLIER, input_type=route.request)
    inputs = [cast("dict[str, Any]", entry.input) for entry in found if isinstance(entry.input, dict)]
    return [body for body in inputs if len(encode({"input": body})) <= _LARGEST]


def _fill_request(
    base: dict[str, Any], schema: Mapping[str, Any] | None, known: Mapping[str, Any], *, fitting: bool
) -> dict[str, Any]:
    made = dict(base)
    if schema is None:
        return {**{name: value for name, value in known.items() if value is not None and name != "session"}, **made}
    properties = json_object(schema.get("properties"))
    for what, names in _GIVEN.items():
        value = known.get(what)
        for name in names:
            # The new context replaces an earlier one. All other fields of an earlier request stay.
            wanted = name in properties and value is not None and (name not in made or what == "context")
            if wanted and not (fitting and find_problem({name: value}, _field_schema(schema, name, properties[name]))):
                made[name] = value
    for name, rule in properties.items():
        if name not in made and isinstance(rule, dict):
            fields = cast("dict[str, Any]", rule)
            for key in ("const", "default"):
                if key in fields:
                    made[name] = fields[key]
    if schema.get("additionalProperties") is False and "patternProperties" not in schema:
        made = {name: value for name, value in made.items() if name in properties}
    return made


def _field_schema(schema: Mapping[str, Any], name: str, rule: object) -> dict[str, Any]:
    """Return the schema of a single field, with the definitions that it may refer to."""
    shared = {key: schema[key] for key in ("$schema", "$defs", "definitions") if key in schema}
    return {**shared, "properties": {name: rule}}

"""The two entry points of recovery, `answer_finding` and `answer_request`: each judges the session, then answers (FR-017)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress

from ctxmgr.base.light_dataclass import replace
from ctxmgr.config import Config
from ctxmgr.errors import Busy, InvalidInput, NoHistory, StorageFailed
from ctxmgr.history import detection
from ctxmgr.recover.answer.draft import Draft
from ctxmgr.recover.evidence.history_reader import HistoryReader
from ctxmgr.recover.evidence.quotes import quote_text
from ctxmgr.recover.injection import suspicion
from ctxmgr.recover.model.config import chosen
from ctxmgr.recover.recovery import Consult, Limits, Recovery, RecoveryOptions
from ctxmgr.recover.routes import RoutingTable, configured_table, derive_table, read_table
from ctxmgr.recover.stuck_request import build_request, other_findings, worst_finding
from ctxmgr.recover.target import decisive_finding
from ctxmgr.store import Store
from ctxmgr.types.finding import Finding
from ctxmgr.types.goal import GoalSource
from ctxmgr.types.operations import AgentRequest, ModelRequest, PlanView, RecoverRequest, RecoverResponse
from ctxmgr.types.route import ContextRequest, Fact

_TEXT, _MOST = 300, 3
_UNINDEXED = 2_000
"""Unindexed records above which a recovery indexes first: it searches a dozen times, and indexing costs two or three reads."""
_BESIDE_MODEL = 30.0
"""Seconds that a lease lasts beyond the time limit of a model: for the rules, and for loading the model's library."""
_SEEN = {True: "holds", False: "does not hold", None: "could not be asked"}


def goal_facts(source: GoalSource | None) -> tuple[Fact, ...]:
    """Return the facts of a goal that the next agent needs; none without a goal.

    They come from the goal's own history, not from the session, so they cite no record. Results of probes are verified.
    """
    if source is None:
        return ()
    attempt = f", attempt {source.attempt}" if source.attempt else ""
    told = [f"The goal that is worked on ({source.status}, {source.percent} %): {_text(source.goal)}"]
    told += [f"{lead}: {_text(text)}" for lead, text in (("Its current task", source.task),) if text]
    told += [f"Its current subtask{attempt}: {_text(source.subtask)}"] if source.subtask else []
    told += [f"Blocked in the goal: {_text(text)}" for text in source.blocked[-_MOST:]]
    told += [f"Begun for the goal, its effect is unknown: {_text(text)}" for text in source.in_flight[-_MOST:]]
    told += [f"The goal's next step, as last advised: {_text(source.next_step)}"] if source.next_step else []
    told += [f"The next subtask of the same task: {_text(source.next)}"] if source.next else []
    facts = [Fact(text=text, entries=[], label="recorded") for text in told]
    if source.probe_state:
        seen = "; ".join(f"{_text(each.name)} {_SEEN[each.ok]}" for each in source.probe_state[:10])
        facts.append(Fact(text=f"Last seen by the goal's probes: {seen}", entries=[], label="verified"))
    return tuple(facts)


def _text(text: str) -> str:
    why = suspicion(text)
    return quote_text(text, _TEXT) if why is None else f"[withheld: it {why}]"


Progress = Callable[[str], None]


class Service:
    """Answers recovery requests for one open store.

    Args:
        store: the history.
        config: the configuration.
        environment: the environment; by default that of the process.
        progress: called with each line about the work of a model.
    """

    def __init__(
        self, store: Store, config: Config, environment: Mapping[str, str] | None = None, progress: Progress | None = None
    ) -> None:
        self._store = store
        self._config = config
        self._environment = os.environ if environment is None else environment
        self._progress = progress

    def answer_finding(self, key: int, request: RecoverRequest) -> RecoverResponse:
        """Return exactly one continuation for a session that is stuck.

        Raises:
            NoHistory, NotStuck, RecoveryRefused, AttemptsUsedUp, InvalidInput: each its own answer.
        """
        settings = self._config.detect
        verdict = detection.judge_now(self._store, key, settings, request.now)
        if request.finding is not None or worst_finding(verdict.findings, warned=True) is None:
            # Replay all records: the named finding may be over, or an agent may have got stuck long before the end.
            verdict, _ = detection.judge(self._store, key, settings, request.now)
        finding = worst_finding(verdict.findings, request.finding, warned=True)
        if finding is not None and request.finding is None:
            finding = decisive_finding(HistoryReader(self._store, verdict.session), verdict.findings, finding)
        if detection.NOTHING_KNOWN in verdict.notes:
            raise NoHistory(hint=f"session {verdict.session!r} holds {detection.NOTHING_KNOWN}: nothing of it was judged")
        amiss = verdict.notes if self._store.sessions.entry_count(key) else ()
        asked = build_request(verdict.session, finding, force=request.force, amiss=amiss)
        side = other_findings(verdict.findings, finding)
        return self._answer(key, asked, finding, side, request)

    def answer_request(self, key: int, request: AgentRequest) -> RecoverResponse:
        """Answer an agent that asks for context itself, or a review or merge agent that has completed.

        Raises:
            NoHistory, RecoveryRefused, InvalidInput: each its own answer.
        """
        for name, text in (("requester", request.requester), ("reason", request.reason), ("goal", request.goal)):
            if not text.strip():
                raise InvalidInput(f"the {name} cannot be empty", "say who asks, why, and what for")
        if request.type == "INTROSPECT_AGENT_CONTEXT" and request.to not in (None, request.requester):
            raise InvalidInput("introspection goes back to the agent that asks", "leave out --to, or ask with --type proceed")
        verdict = detection.judge_now(self._store, key, self._config.detect, None)
        table = self.table(request.routes)
        if table is None and request.type == "PROCEED":  # keeps a review from going straight back
            table = derive_table(self._store.sessions.agents(key))
        reviews = request.review or (table is not None and table.route(request.requester).role != "ordinary")
        asked = ContextRequest(
            session=verdict.session, type=request.type, requester=request.requester, reason=request.reason,
            source="reviewMerge" if reviews else "agentRequest", goal=request.goal,
            additional_context=request.additional_context, return_to=request.return_to, drafts=request.drafts,
        )  # fmt: skip
        # The cap on attempts applies to the requester's own loop. Another agent's loop must not keep it from its context.
        own = worst_finding([finding for finding in verdict.findings if finding.scope.agent == request.requester])
        return self._answer(key, asked, own, other_findings(verdict.findings, own), request)

    def _answer(
        self,
        key: int,
        asked: ContextRequest,
        finding: Finding | None,
        side: list[Finding],
        request: RecoverRequest | AgentRequest,
    ) -> RecoverResponse:
        options = self._options(request)
        self._index()
        recovery = Recovery(self._store, key, asked, finding, side=side, options=options)
        if not request.plan:
            return RecoverResponse(continuation=recovery.answer())
        drafted, continuation = recovery.plan()
        return RecoverResponse(continuation=continuation, plan=self._plan_view(drafted, request.model))

    def _index(self) -> None:
        """Bring the search index of a local store up to date. If it can't be written, searches read the records instead."""
        if not (self._store.engine.shared or self._store.engine.readonly) and self._store.count_unindexed() >= _UNINDEXED:
            with suppress(Busy, StorageFailed):
                self._store.index()

    def _options(self, request: RecoverRequest | AgentRequest) -> RecoveryOptions:
        table, choice = self.table(request.routes), chosen(request.model, self._environment, self._config.model)
        limits = Limits() if self._config.attempts is None else Limits(attempts=self._config.attempts)
        slowest = 0.0 if choice is None else choice.seconds
        return RecoveryOptions(
            to=request.to, table=table, diff=self._config.diff if request.diff is None else request.diff,
            consult=None if request.plan or choice is None else self._consult(request.model),
            model=None if choice is None else f"{choice.name} {choice.mode} {choice.base_url or ''}",
            limits=replace(limits, lease_seconds=max(limits.lease_seconds, slowest + _BESIDE_MODEL)),
            outside_facts=goal_facts(request.goal if isinstance(request, RecoverRequest) else None),
            only_session=request.only_session,
        )  # fmt: skip

    def table(self, named: str | None) -> RoutingTable | None:
        """Return the routing table in the named file, else the configured one, else None."""
        return configured_table(self._config) if named is None else read_table(named)

    def _consult(self, wanted: ModelRequest) -> Consult | None:
        """Return the function that asks the named model."""
        from ctxmgr.recover.model.consultation import consultant  # model code is loaded only if a model is named

        return consultant(self._store, wanted, self._environment, self._config.model, self._progress)

    def _plan_view(self, drafted: Draft, wanted: ModelRequest) -> PlanView:
        """Return what would be sent where if a model is named; nothing is contacted."""
        choice = chosen(wanted, self._environment, self._config.model)
        if choice is None:
            return PlanView(
                candidates=drafted.target.candidates, fixed=drafted.target.fixed, prompt_tokens=0, prompt=None, model=None,
                sends=None,
            )  # fmt: skip
        from ctxmgr.recover.model.consultation import plan_view

        return plan_view(drafted, self._store, choice, self._environment)

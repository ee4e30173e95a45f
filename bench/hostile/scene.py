"""Small histories with hostile text planted in them, and the request that a recovery is to answer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from bench.hostile.planting import Planted, plant
from bench.hostile.runs import KINDS, START, entries_of, foreign, told
from ctxmgr.errors import CtxmgrError
from ctxmgr.history import detection
from ctxmgr.log.codec import Record
from ctxmgr.log.ids import format_time
from ctxmgr.recover.recovery import Consult, Limits, Recovery, RecoveryOptions
from ctxmgr.recover.routes import Route, RoutingTable
from ctxmgr.recover.stuck_request import build_request, other_findings, worst_finding
from ctxmgr.store import Store, open_store
from ctxmgr.types.finding import Finding
from ctxmgr.types.plain_records import build
from ctxmgr.types.route import ContextRequest

ASKED = ("stuck", "stuck", "stuck", "forced", "introspect", "proceed", "proceed", "review")
NAMES = (("run", "run-2"), ("7f3a", "7f3b"), ("alpha", "beta"), ("s", "S"))

SCHEMAS: tuple[dict[str, Any] | None, ...] = (
    None,
    {
        "type": "object", "required": ["goal", "context"], "additionalProperties": False,
        "properties": {"goal": {"type": "string"}, "context": {"type": "string"}, "level": {"type": "integer", "default": 1}},
    },
    {"type": "object", "required": ["context"], "properties": {"context": {"type": "string"}, "kind": {"const": "fix"}}},
    {"type": "object", "required": ["context"], "properties": {"context": {"type": "string", "maxLength": 4_000}}},
)  # fmt: skip


@dataclass(slots=True)
class Scene:
    """One recovery about to happen.

    Attributes:
        store: holds the session and another one, which is nobody's business here.
        path: of the store's file; None when it is in memory.
        kind: of the history; asked: how the recovery is asked for.
        planted: what was planted where.
        strangers: ids of the other session; secret: a word that only the texts of the other session hold.
        held: somebody else recovers the session just now.
    """

    store: Store
    path: Path | None
    session: str
    other: str
    kind: str
    asked: str
    key: int
    request: ContextRequest
    finding: Finding | None
    side: list[Finding]
    planted: Planted
    strangers: list[str]
    secret: str
    to: str | None = None
    table: RoutingTable | None = None
    diff: bool = False
    held: bool = False
    limits: Limits = field(default_factory=Limits)

    def recovery(self, consult: Consult | None = None) -> Recovery:
        """Return the recovery as it is to be answered."""
        options = RecoveryOptions(to=self.to, table=self.table, diff=self.diff, limits=self.limits, consult=consult)
        return Recovery(self.store, self.key, self.request, self.finding, side=self.side, options=options)


def scene(rng: Random, folder: Path | None) -> Scene:
    """Return a random scene; with a folder, its store may be a file in it."""
    kind, asked = rng.choice(KINDS), rng.choice(ASKED)
    session, other = rng.choice(NAMES)
    secret = f"zz{rng.randrange(16**8):08x}zz"
    records = told(rng, kind, session)
    planted = plant(rng, records, session)
    strange = foreign(rng, other, secret)
    store, path = _store(rng, folder)
    for part in rng.sample([planted.records, strange], 2):
        store.append(part)
    key = store.sessions.key(session)
    assert key is not None, "it was just written"
    moment = format_time(START + 100_000) if kind == "stall" else None
    findings = detection.judge_now(store, key, {}, moment).findings
    agents = list(dict.fromkeys(str(record["agent"]) for record in planted.records if record["kind"] == "entry"))
    request, finding, side = _request(rng, asked, session, findings, agents, planted)
    made = Scene(
        store, path, session, other, kind, asked, key, request, finding, side, planted,
        strangers=entries_of(strange), secret=secret,
    )  # fmt: skip
    _how(rng, made, agents)
    return made


def _store(rng: Random, folder: Path | None) -> tuple[Store, Path | None]:
    chance = rng.random()
    if folder is None or chance > 0.2:
        return open_store(":memory:", create=True), None
    path = folder / ("history.jsonl" if chance < 0.12 else "history.db")
    return open_store(str(path), create=True), path


def _request(
    rng: Random, asked: str, session: str, findings: Sequence[Finding], agents: list[str], planted: Planted
) -> tuple[ContextRequest, Finding | None, list[Finding]]:
    if asked in ("stuck", "forced"):
        finding = worst_finding(findings) if asked == "stuck" else None
        return build_request(session, finding, force=True), finding, other_findings(findings, finding)
    plain = [agent for agent in ("coder", "planner", "reviewer") if agent in agents]
    requester = rng.choice(plain if rng.random() < 0.8 else agents)
    own = worst_finding([finding for finding in findings if finding.scope.agent == requester])
    several = rng.random() < 0.15
    return (
        ContextRequest(
            session=session,
            type="INTROSPECT_AGENT_CONTEXT" if asked == "introspect" else "PROCEED",
            source="reviewMerge" if asked == "review" else "agentRequest",
            requester=requester,
            reason=planted.word(rng, "reason") if rng.random() < 0.3 else "lost track of the port",
            goal=planted.word(rng, "goal") if rng.random() < 0.3 else "make the health check pass",
            additional_context=planted.word(rng, "more") if rng.random() < 0.3 else None,
            return_to=[requester, *rng.sample(agents, min(2, len(agents)))] if several else [],
        ),
        own,
        other_findings(findings, own),
    )


def _how(rng: Random, made: Scene, agents: list[str]) -> None:
    """Settle a routing table, a named target, a diff, earlier answers, and a lease that somebody holds."""
    if rng.random() < 0.35:
        known = [agent for agent in agents if agent.isascii() and agent.isalpha()]
        routes = {
            agent: Route(
                agent, request=rng.choice([None, "Task"]), schema=rng.choice(SCHEMAS),
                role="review" if agent == "reviewer" else "ordinary",
                followers=None if rng.random() < 0.5 else tuple(rng.sample(known, rng.randint(1, len(known)))),
            )
            for agent in known
        }  # fmt: skip
        made.table = RoutingTable("table", routes)
    if rng.random() < 0.12 and made.request.type == "PROCEED":
        made.to = rng.choice([*agents, "newcomer"])
    made.diff = rng.random() < 0.2
    for number in range(rng.choice([0, 0, 0, 0, 0, 0, 1, 1, 2])):
        with suppress(CtxmgrError):
            made.recovery().answer()
        # The agent went on: else the same answer would be told again, and no model asked.
        made.store.append([build("event", made.session, None, id=f"went-on-{number}", type="usage", data={})])
    if rng.random() < 0.01:
        made.held = made.store.leases.take(made.session, "somebody", made.store.clock(), 60.0)


def raw(store: Store) -> list[tuple[Any, ...]]:
    """Return every record of a store as it lies there."""
    return [tuple(row) for row in store.engine.query("SELECT seq, session, kind, id, body, sum FROM record ORDER BY seq")]


def leases(store: Store) -> list[tuple[Any, ...]]:
    """Return the leases that are held."""
    return [tuple(row) for row in store.engine.query("SELECT session, holder, expires FROM lease ORDER BY session")]


def written(store: Store, key: int, after: int) -> list[Record]:
    """Return the records of a session behind the first so many."""
    return list(store.sessions.records(key))[after:]

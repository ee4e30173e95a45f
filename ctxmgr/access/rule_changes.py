"""Change the access rules, and show what rules that are not in force would have done to past reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from ctxmgr.access.guard import AccessGuard
from ctxmgr.access.patterns import check_rule
from ctxmgr.access.rule_files import default_keys, default_needs, default_rules
from ctxmgr.access.rules import Rules
from ctxmgr.errors import Denied
from ctxmgr.light_dataclass import dataclass
from ctxmgr.log.codec import Record
from ctxmgr.log.ids import new_id, now
from ctxmgr.store import Store
from ctxmgr.store.reserved import ACCESS, KEY, NEEDS, PACKAGE, PROJECT, RULES
from ctxmgr.types.access import AccessRule, Replay, Replayed, Resource, RulesChanged
from ctxmgr.types.record import build


@dataclass(frozen=True, slots=True)
class PastRead:
    """A read that happened or was denied.

    Attributes:
        at: when, None where it was not recorded.
        agent: who asked, None for the operator.
        command: the command or the operation that read.
        resource: what was asked for.
        allowed: what was answered, None where it was not recorded.
    """

    at: str | None
    agent: str | None
    command: str
    resource: Resource
    allowed: bool | None


def replay(old: Rules, new: Rules, reads: Iterable[PastRead]) -> Replay:
    """Return which past reads the new rules would have blocked, and which denied ones they would have let through.

    Where the answer of the time was not recorded, that of the old rules stands for it. The operator's reads are counted
    and never change. The order is that of the reads.
    """
    count = 0
    blocked: list[Replayed] = []
    opened: list[Replayed] = []
    for read in reads:
        count += 1
        if read.agent is None:
            continue
        was_allowed = old.allows(read.agent, "read", read.resource) if read.allowed is None else read.allowed
        allowed = new.allows(read.agent, "read", read.resource)
        if allowed == was_allowed:
            continue
        changed = Replayed(
            at=read.at,
            agent=read.agent,
            command=read.command,
            resource=read.resource,
            was_allowed=was_allowed,
            allowed=allowed,
            rule=new.rule_for(read.agent, "read", read.resource),
        )
        (opened if allowed else blocked).append(changed)
    return Replay(reads=count, blocked=blocked, opened=opened)


_Key = tuple[str, str, str, str]


def change_rules(
    store: Store,
    guard: AccessGuard,
    *,
    add: Iterable[AccessRule] = (),
    remove: Iterable[AccessRule] = (),
    author: str | None = None,
) -> RulesChanged:
    """Put rules in force and take others out; one change, recorded in history.

    A rule is known by its agent, resource type, pattern and permission: adding it again sets its priority, removing it
    does not ask for its priority.

    Raises:
        Denied: an agent asks; only the operator changes rules.
        InvalidInput: a rule can't be evaluated.
    """
    require_operator(guard, "change access rules")
    with store.engine.transaction():
        before = {_key(rule): rule for rule in store.shared.rules()}
        new = {_key(rule): check_rule(rule) for rule in add}
        gone = [key for key in dict.fromkeys(map(_key, remove)) if key in before and key not in new]
        fresh = [rule for key, rule in new.items() if before.get(key) != rule]
        if fresh or gone:
            data = {"set": [rule.to_json() for rule in fresh], "removed": [before[key].to_json() for key in gone]}
            by = author or "operator"
            store.append([build("event", PROJECT, now(), id=new_id(), type=RULES, agent=by, data={**data, "by": by})])
    added = sum(_key(rule) not in before for rule in fresh)
    return RulesChanged(
        rules=list(new.values()) or [before[key] for key in gone], added=added, changed=len(fresh) - added, removed=len(gone)
    )


def load_default(store: Store, guard: AccessGuard, author: str | None = None) -> RulesChanged:
    """Put the template's rules, needs and context keys in force beside what is there; a key that is there stays as it is.

    Raises:
        Denied: an agent asks.
    """
    require_operator(guard, "load the default access rules")
    with store.engine.transaction():
        done = change_rules(store, guard, add=default_rules(), author=author)
        known = {(need.agent, need.pattern) for need in store.shared.needs()}
        needs = [need for need in default_needs() if (need["agent"], need["pattern"]) not in known]
        if needs:
            rows = [{_CAMEL.get(name, name): value for name, value in need.items()} for need in needs]
            by = author or "operator"
            data = {"set": rows, "by": by}
            store.append([build("event", PROJECT, now(), id=new_id(), type=NEEDS, agent=by, data=data)])
        present = {item.key for item in store.shared.context_keys()}
        keys = [item for item in default_keys() if item["key"] not in present]
        if keys:
            changes = [{**item, "type": "string", "old": None} for item in keys]
            data = {"changes": changes, "by": _SYSTEM}
            store.append([build("event", PROJECT, now(), id=new_id(), type=KEY, agent=_SYSTEM, data=data)])
    return done


_SYSTEM = "system"
"""Who set the keys that a project begins with, as spec 003 has it."""
_CAMEL = {"max_tokens": "maxTokens", "use_summary": "useSummary"}


def require_operator(guard: AccessGuard, what: str) -> None:
    """Refuse an agent what only the operator may do.

    Raises:
        Denied: an agent asks.
    """
    if guard.agent is not None:
        guard.log(what, "write", failed="only the operator may")
        raise Denied(f"{guard.agent} may not {what}", "only the operator may: leave --as out")


def replay_reads(store: Store, new: Rules) -> Replay:
    """Return what another set of rules would have done to the reads that history knows of."""
    return replay(Rules(store.shared.rules()), new, past_reads(store))


def past_reads(store: Store) -> Iterator[PastRead]:
    """Yield what agents read: logged accesses, what packages held, what executions were given."""
    for record in store.shared.events(ACCESS):
        data = _dict(record.get("data"))
        if data.get("permission") != "read":
            continue
        for name, allowed in (("granted", True), ("denied", False)):
            for resource in _resources(data.get(name)):
                yield _past(record, data.get("agent"), data.get("command"), resource, allowed=allowed)
    for record in store.shared.events(PACKAGE):
        data = _dict(record.get("data"))
        for item in _list(data.get("items")):
            if item.get("type", "artifact") == "artifact" and item.get("got", "full") != "omitted":
                resource = Resource(type="artifact", agent=str(item.get("source")), name=str(item.get("name")))
                yield _past(record, data.get("agent"), "context assemble", resource, allowed=True)
    for entry, record in store.shared.executions():
        for identity in cast("list[Any]", _dict(record.get("input")).get("artifacts") or []):
            row = store.artifacts.by_id(identity) if isinstance(identity, str) else None
            if row is not None:
                resource = Resource(type="artifact", agent=row.agent, name=row.name)
                yield _past(record, entry.agent, "execution", resource, allowed=True)


def _past(record: Record, agent: object, command: object, resource: Resource, *, allowed: bool) -> PastRead:
    moment = record.get("ts")
    return PastRead(
        at=moment if isinstance(moment, str) else None,
        agent=str(agent),
        command=str(command),
        resource=resource,
        allowed=allowed,
    )


def _resources(value: object) -> Iterator[Resource]:
    for item in _list(value):
        if item.get("type") in ("artifact", "context", "history"):
            yield Resource.model_validate(
                {"type": item["type"], "agent": str(item.get("agent")), "name": str(item.get("name"))}
            )


def _list(value: object) -> list[dict[str, Any]]:
    return (
        [cast("dict[str, Any]", item) for item in cast("list[object]", value) if isinstance(item, dict)]
        if isinstance(value, list)
        else []
    )


def _dict(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _key(rule: AccessRule) -> _Key:
    return rule.agent, rule.resource_type, rule.pattern, rule.permission

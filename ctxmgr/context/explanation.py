"""Explain what became of an item in a package, and by which rule."""

from __future__ import annotations

from ctxmgr.access.guard import AccessGuard
from ctxmgr.context import history_items
from ctxmgr.context.assembly import needs_of
from ctxmgr.context.items import ItemName, parse_named
from ctxmgr.context.packages import RecordedPackage, read_record
from ctxmgr.context.readers import Readers, VisibleArtifacts
from ctxmgr.errors import InvalidInput, NotFound
from ctxmgr.store import Store
from ctxmgr.types.context_request import Why, WhyRequest

_ORDER = ("full", "summary", "truncated", "omitted")


def why(store: Store, seen: Store, guard: AccessGuard, request: WhyRequest) -> Why:
    """Return what a package says of an item.

    An agent is told of its own packages, and of what it may read; anything else is not there. The operator is told when
    an item is not in a package because its agent may not read it.

    Raises:
        NotFound: there is no such package.
        InvalidInput: the item can't be named so, or the id fits several packages.
    """
    named = parse_named(request.item)
    found = _package(store, guard, request)
    with Readers(store, found.agent, guard, seen) as audience:
        identity, readable = _identified(audience, named, guard.agent is None)
        if not readable:
            return _absent(named, found, "notThere", "there is no such item")
        if (answer := _from_record(named, identity, found)) is not None:
            return answer
        return _unasked(audience, named, found)


def _package(store: Store, guard: AccessGuard, request: WhyRequest) -> RecordedPackage:
    agent = request.agent if guard.agent is None else guard.agent
    record = None
    if guard.agent is None or request.agent in (None, guard.agent):
        record = store.shared.package(request.package, agent)
    if record is None:
        whose = f" of {agent}" if agent else ""
        which = f"no package {request.package!r}" if request.package else "no package"
        raise NotFound(f"{which}{whose}", "'ctxmgr context assemble AGENT' makes one")
    return read_record(record)


def _identified(audience: Readers, named: ItemName, operator: bool) -> tuple[str | None, bool]:
    """Return the id of what is named where a name alone does not tell, and whether the asker may know of it."""
    if named.form == "artifact":
        return None, operator or audience.reads(named.source, named.name)
    if named.form == "id":
        row = audience.store.artifacts.by_id(named.name)
        return named.name, operator or (row is not None and audience.reads(row.agent, row.name))
    if named.form == "record":
        told = history_items.record_told(audience, named)
        return (None if told is None else told.id), operator or told is not None
    return None, True


def _from_record(named: ItemName, identity: str | None, found: RecordedPackage) -> Why | None:
    if named.source == "project_context" and found.context:
        return _answer(named, found, "full", "everyPackage", f"the project's context: {len(found.context)} keys")
    if named.source == "task_context" and found.task:
        return _answer(named, found, "full", "everyPackage", "the task's context")
    made = [one for one in found.decisions if _is(one.type, one.id, one.source, one.name, named, identity)]
    if made:
        best = min(made, key=lambda one: (_ORDER.index(one.got), one.rule == "duplicate"))
        return Why(
            item=named.text, package=found.id, agent=found.agent, assembled_at=found.at, asked=best.asked, got=best.got,
            rule=best.rule, reason=best.reason, decisions=sorted(made, key=lambda one: one is not best),
        )  # fmt: skip
    for one in found.held:
        if _is(one.type, one.id, one.source, one.name, named, identity):
            return _answer(named, found, "held", "held", f"the agent holds it from package {one.package}, unchanged")
    return None


def _is(kept_as: str, identity: str, source: str, name: str, named: ItemName, known: str | None) -> bool:
    if named.form == "artifact":
        return kept_as == "artifact" and (source, name) == (named.source, named.name)
    if named.form == "owner":
        return kept_as == "artifact" and source == named.source
    if named.form == "id":
        return kept_as == "artifact" and identity == known
    if named.form == "record":
        return kept_as == named.source and (identity == known or identity == named.name)
    return kept_as == "context" and identity == named.source


def _unasked(audience: Readers, named: ItemName, found: RecordedPackage) -> Why:
    """Return why something is not in a package, by what is there and needed now."""
    shown = VisibleArtifacts(audience, None)
    if not _is_there(audience, shown, named):
        if audience.asker.agent is None and audience.agent is not None and _is_there_at_all(audience, named):
            return _absent(named, found, "denied", f"{found.agent} may not read it; 'ctxmgr access explain' names the rule")
        return _absent(named, found, "notThere", "there is no such item")
    if any(_names(need.pattern, named) for need in needs_of(audience.store, found.agent)):
        return _absent(named, found, "later", "it is needed and there now, but was not when the package was assembled")
    return _absent(named, found, "noNeed", f"no need of {found.agent} names it, and nothing in the package depends on it")


def _is_there(audience: Readers, shown: VisibleArtifacts, named: ItemName) -> bool:
    if named.form == "artifact":
        return shown.find(named.source, named.name) is not None
    if named.form == "owner":
        return bool(shown.of_owner(named.source))
    if named.form == "id":
        return shown.by_id(named.name) is not None
    if named.form == "record":
        return history_items.record_told(audience, named) is not None
    return named.source in ("project_context", "task_context") or _has_context(audience, named)


def _has_context(audience: Readers, named: ItemName) -> bool:
    if named.source == "goal_context":
        return False  # it is the caller who gives it
    if named.source == "error_context":
        return history_items.failures(audience, None) is not None
    return bool(history_items.runs(audience, None))


def _is_there_at_all(audience: Readers, named: ItemName) -> bool:
    with audience.unruled() as everybody:
        return _is_there(everybody, VisibleArtifacts(everybody, None), named)


def _names(pattern: str, named: ItemName) -> bool:
    try:
        need = parse_named(pattern)
    except InvalidInput:
        return False
    if need.form == "owner":
        return named.form in ("artifact", "owner") and need.source == named.source
    return (need.form, need.source, need.name) == (named.form, named.source, named.name)


def _absent(named: ItemName, found: RecordedPackage, rule: str, reason: str) -> Why:
    return Why(
        item=named.text, package=found.id, agent=found.agent, assembled_at=found.at, asked=None, got="absent", rule=rule,
        reason=reason,
    )  # fmt: skip


def _answer(named: ItemName, found: RecordedPackage, got: str, rule: str, reason: str) -> Why:
    return Why.model_validate(
        {
            "item": named.text, "package": found.id, "agent": found.agent, "assembled_at": found.at, "asked": "full",
            "got": got, "rule": rule, "reason": reason,
        }
    )  # fmt: skip

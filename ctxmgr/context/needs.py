"""Set, remove and list what agents need (spec 003, Agent Context Requirements)."""

from __future__ import annotations

from ctxmgr.access.guard import AccessGuard
from ctxmgr.access.patterns import check_agent, check_choice
from ctxmgr.access.rule_changes import require_operator
from ctxmgr.context.assembly import needs_of
from ctxmgr.context.history_items import find_entry, is_address
from ctxmgr.context.item_names import parse_named
from ctxmgr.errors import InvalidInput, NotFound
from ctxmgr.log.ids import new_id, now
from ctxmgr.store import Store
from ctxmgr.store.reserved import NEEDS as NEEDS_EVENT
from ctxmgr.store.reserved import PROJECT
from ctxmgr.types.context_request import NEEDS, ChangeNeedsRequest, ListNeedsRequest, ListNeedsResponse, NeedsChanged
from ctxmgr.types.project import AgentNeed
from ctxmgr.types.record import build

_LARGEST = 2**31


def change_needs(store: Store, guard: AccessGuard, request: ChangeNeedsRequest) -> NeedsChanged:
    """Put needs in force and take others away; one change, recorded in history.

    An agent has one need for each pattern: adding it again replaces it. An entry named by its place is kept by its id.

    Raises:
        Denied: an agent asks; only the operator changes needs.
        NotFound: a need to take away that is not there, or an entry that is none.
        InvalidInput: a need that can't be used.
    """
    require_operator(guard, "change what agents need")
    add = {(need.agent, need.pattern): need for need in (_checked(store, need) for need in request.add)}
    with store.engine.transaction():
        before = {(need.agent, need.pattern): need for need in needs_of(store, None)}
        for agent, pattern in request.remove:
            if (agent, pattern) not in before:
                raise NotFound(f"{agent} has no need {pattern}", "'ctxmgr context need list' shows them")
        fresh = [need for key, need in add.items() if before.get(key) != need]
        gone = [key for key in dict.fromkeys(request.remove) if key not in add]
        if fresh or gone:
            data = {
                "set": [need.to_json() for need in fresh],
                "removed": [{"agent": agent, "pattern": pattern} for agent, pattern in gone], "by": "operator",
            }  # fmt: skip
            store.append([build("event", PROJECT, now(), id=new_id(), type=NEEDS_EVENT, agent="operator", data=data)])
    added = sum((need.agent, need.pattern) not in before for need in fresh)
    told = list(add.values()) or [before[key] for key in gone]
    return NeedsChanged(needs=told, added=added, changed=len(fresh) - added, removed=len(gone))


def list_needs(store: Store, guard: AccessGuard, request: ListNeedsRequest) -> ListNeedsResponse:
    """Return needs in the order in which they are served; an agent sees its own."""
    asked = request.agent
    if guard.agent is not None:
        if asked not in (None, guard.agent):
            return ListNeedsResponse(status="empty", needs=[])
        asked = guard.agent
    found = sorted(needs_of(store, asked), key=lambda need: (need.agent, need.priority, need.pattern))
    return ListNeedsResponse(status="ok" if found else "empty", needs=found)


def _checked(store: Store, need: AgentNeed) -> AgentNeed:
    check_agent(need.agent)
    check_choice("need", need.need, NEEDS)
    if need.max_tokens is not None and not 0 < need.max_tokens <= _LARGEST:
        raise InvalidInput("the limit of a need is no number of tokens", "give a positive number, or none")
    if abs(need.priority) > _LARGEST:
        raise InvalidInput("the priority of a need has more than 32 bits", "the lower number is served first; 100 is usual")
    named = parse_named(need.pattern)
    if named.source == "entry" and named.form == "record" and is_address(named.name):
        entry = find_entry(store, named.name)
        if entry is None:
            raise NotFound(f"no entry {named.name}", "'ctxmgr list' shows them")
        return need.model_copy(update={"pattern": f"entry:{entry.id}"})
    return need

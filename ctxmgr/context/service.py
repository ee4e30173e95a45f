"""Answer every request about context packages. Start reading here.

This module sets and lists needs, and answers agents that ask for further items within a budget (spec 003). `assembly` assembles
packages.
"""

from __future__ import annotations

from typing import Any, cast

from ctxmgr.access.guard import AccessGuard
from ctxmgr.access.patterns import check_agent, check_choice
from ctxmgr.access.rule_changes import require_operator
from ctxmgr.context.assembly import PackageService, assemble_context, check_budget, log_reads, read_needs, readable_only
from ctxmgr.context.assembly import explain_item as explain
from ctxmgr.context.budget import Item
from ctxmgr.context.candidates import CandidateCollector, Improver, Texts, Wish, missing_name
from ctxmgr.context.items import ItemName, Readers, VisibleArtifacts, find_entry, is_address, parse_item_name
from ctxmgr.context.packing import Order, masked_warning
from ctxmgr.errors import CtxmgrError, InvalidInput, NotFound
from ctxmgr.log.codec import decoder, encode
from ctxmgr.log.ids import new_id, now
from ctxmgr.log.json_value import plain
from ctxmgr.store import Store
from ctxmgr.store.project_session import NEEDS as NEEDS_EVENT
from ctxmgr.store.project_session import PROJECT
from ctxmgr.store.repositories.shared_state import ArtifactRow
from ctxmgr.text.tokens import counter_by_name
from ctxmgr.types.access import MAX_PRIORITY, MIN_PRIORITY
from ctxmgr.types.context_package import (
    AssembleRequest,
    AssembleResponse,
    Assembly,
    Decision,
    ItemExplanation,
    PackageItem,
    RequestedItem,
    RequestItemsRequest,
    RequestItemsResponse,
    WhyRequest,
)
from ctxmgr.types.plain_records import build
from ctxmgr.types.project_state import (
    NEEDS,
    AgentNeed,
    ChangeNeedsRequest,
    ListNeedsRequest,
    ListNeedsResponse,
    NeedChangeResult,
)


def change_needs(store: Store, guard: AccessGuard, request: ChangeNeedsRequest) -> NeedChangeResult:
    """Add and remove needs as one change, which is recorded in history.

    An agent has one need per pattern, so adding it again replaces it. An entry given by its address is stored by its id.

    Raises:
        Denied: an agent asks; only the operator may change needs.
        NotFound: a need to remove, or an entry, does not exist.
        InvalidInput: a need is invalid.
    """
    require_operator(guard, "change what agents need")
    add = {(need.agent, need.pattern): need for need in (_check_need(store, need) for need in request.add)}
    with store.engine.transaction():
        before = {(need.agent, need.pattern): need for need in read_needs(store, None)}
        for agent, pattern in request.remove:
            if (agent, pattern) not in before:
                raise NotFound(f"{agent} has no need {pattern}", "'ctxmgr context need list' shows them")
        new_or_changed = [need for key, need in add.items() if before.get(key) != need]
        # A need that is removed and added in the same request has changed.
        gone = [key for key in dict.fromkeys(request.remove) if key not in add]
        if new_or_changed or gone:
            data = {
                "set": [need.to_json() for need in new_or_changed],
                "removed": [{"agent": agent, "pattern": pattern} for agent, pattern in gone], "by": "operator",
            }  # fmt: skip
            store.append([build("event", PROJECT, now(), id=new_id(), type=NEEDS_EVENT, agent="operator", data=data)])
    added = sum((need.agent, need.pattern) not in before for need in new_or_changed)
    needs = list(add.values()) or [before[key] for key in gone]
    return NeedChangeResult(needs=needs, added=added, changed=len(new_or_changed) - added, removed=len(gone))


def list_needs(store: Store, guard: AccessGuard, request: ListNeedsRequest) -> ListNeedsResponse:
    """Return needs by agent, priority and pattern. An agent sees only its own."""
    asked = request.agent
    if guard.agent is not None:
        if asked not in (None, guard.agent):
            return ListNeedsResponse(status="empty", needs=[])
        asked = guard.agent
    found = sorted(read_needs(store, asked), key=lambda need: (need.agent, need.priority, need.pattern))
    return ListNeedsResponse(status="ok" if found else "empty", needs=found)


def _check_need(store: Store, need: AgentNeed) -> AgentNeed:
    check_agent(need.agent)
    check_choice("need", need.need, NEEDS)
    if need.max_tokens is not None and not 0 < need.max_tokens <= MAX_PRIORITY:
        raise InvalidInput("the limit of a need is no number of tokens", "give a positive number, or none")
    if not MIN_PRIORITY <= need.priority <= MAX_PRIORITY:
        raise InvalidInput("the priority of a need has more than 32 bits", "the lower number is served first; 100 is usual")
    named = parse_item_name(need.pattern)
    if named.source == "entry" and named.form == "record" and is_address(named.name):
        entry = find_entry(store, named.name)
        if entry is None:
            raise NotFound(f"no entry {named.name}", "'ctxmgr list' shows them")
        return need.model_copy(update={"pattern": f"entry:{entry.id}"})
    return need


_Key = tuple[str, str]


def request_items(service: PackageService, request: RequestItemsRequest) -> RequestItemsResponse:
    """Return the items that an agent asks for, each in full, shortened to the budget, or missing.

    Raises:
        InvalidInput: a name, the counter or the budget is invalid.
        NotFound: the version does not exist.
        BudgetExceeded: the budget has no room for anything.
    """
    check_budget(request.max_tokens)
    asked = [parse_item_name(text) for text in dict.fromkeys(request.items)]
    with Readers(service.store, request.agent, service.guard, service.visible) as audience:
        shown = VisibleArtifacts(audience, request.version)
        texts = Texts(service.store, service.contents, counter_by_name(request.counter), service.improver)
        found = CandidateCollector(audience, shown, texts, request.max_tokens, None)
        named: list[tuple[ItemName, list[_Key]]] = []
        for place, one in enumerate(asked):
            before = len(found.items)
            # Items that the agent names first get room first.
            found.add(one, Wish("optional", priority=place))
            named.append((one, [(item.type, item.id) for item in found.items[before:]]))
        try:
            assembly = _assemble_items(service, request, found, texts)
        except CtxmgrError as error:
            log_reads(service, audience, shown, "context request", failed=error.message)
            raise
        if not service.store.readonly:
            with service.store.engine.transaction():
                texts.keep()
        items = [row for one, keys in named for row in _answers(one, keys, assembly, shown, request.counter)]
        _log(service, audience, shown, items)
    gone = sum(item.status == "missing" for item in items)
    return RequestItemsResponse(
        status="empty" if gone == len(items) else "partial" if gone else "ok",
        items=items,
        warnings=[text for text in map(masked_warning, assembly.package.artifacts) if text is not None],
    )


def _assemble_items(service: PackageService, request: RequestItemsRequest, found: CandidateCollector, texts: Texts) -> Assembly:
    order = Order(
        agent=request.agent, assembled_at=service.clock(), budget=request.max_tokens, items=_distinct(found.items), texts=texts,
        counter=texts.counter, reserve_prompt=0, reserve_task=0,
    )  # fmt: skip
    assembly = readable_only(order, texts, found)
    service.summarised = texts.summarised
    return assembly


def _distinct(items: list[Item]) -> list[Item]:
    first: dict[_Key, Item] = {}
    for item in items:
        first.setdefault((item.type, item.id), item)
    return list(first.values())


def _answers(one: ItemName, keys: list[_Key], assembly: Assembly, shown: VisibleArtifacts, counter: str) -> list[RequestedItem]:
    given = {(item.type, item.id): item for item in assembly.package.artifacts}
    made = {(decision.type, decision.id): decision for decision in assembly.decisions}
    rows = [_answer(given.get(key), made.get(key), counter) for key in keys]
    found = [row for row in rows if row is not None]
    if found:
        return found
    source, name = missing_name(one)
    return [RequestedItem(source=source, name=name, status="missing", counter=counter, suggestions=shown.suggestions(one))]


def _answer(item: PackageItem | None, made: Decision | None, counter: str) -> RequestedItem | None:
    """Return the answer for an item, or None if its content is missing."""
    if made is None:
        return None
    link = {"source": made.source, "name": made.name, "id": made.id, "type": made.type, "version": made.version}
    if item is None:
        return RequestedItem.model_validate({**link, "status": "noRoom", "counter": counter, "reason": made.reason})
    return RequestedItem.model_validate(
        {
            **link, "status": "success", "kind": item.kind, "included": item.included, "tokens": item.tokens,
            "original_tokens": item.original_tokens, "counter": counter, "content": item.content,
            "reason": None if item.included == "full" else made.reason,
        }
    )  # fmt: skip


def _log(service: PackageService, audience: Readers, shown: VisibleArtifacts, items: list[RequestedItem]) -> None:
    if audience.agent is None or service.store.readonly:
        return
    granted = [(item.source, item.name) for item in items if item.status == "success" and item.type == "artifact"]
    gone = [item for item in items if item.status == "missing"]
    failed = f"{len(gone)} of {len(items)} are missing" if gone else None
    reader = audience.reader()
    denied = list(dict.fromkeys([*shown.denied, *((item.source, item.name) for item in gone)]))
    reader.log("context request", "read", granted, denied, failed=failed, hidden=shown.hidden)


MAX_CONTENT_BYTES = 1_000_000
_MAX_DEPTH = 50
_HINT = "a task is a JSON or YAML map, e.g. title: Implement the parser"


def read_task_context(content: bytes, name: str) -> dict[str, Any]:
    """Return the map in a JSON or YAML file.

    Args:
        content: the bytes of the file.
        name: its name for errors.

    Raises:
        InvalidInput: the content is too large, not text, neither JSON nor YAML, not a map, nested too deeply, or refers to its
            own parts.
    """
    if len(content) > MAX_CONTENT_BYTES:
        raise InvalidInput(f"{name} has {len(content):,} bytes", f"a task's context has at most {MAX_CONTENT_BYTES:,}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"{name} is not UTF-8", _HINT) from None
    value = _parse(text, name)
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} holds no map", _HINT)
    fields = cast("dict[str, Any]", plain(cast("object", value)))
    encode(fields)  # raises for values that a record can't hold, e.g. NaN or deep nesting
    return fields


def _parse(text: str, name: str) -> object:
    # JSON is YAML too, but the YAML parser alone takes 80 ms to load.
    try:
        return decoder.decode(text.strip())
    except (ValueError, RecursionError):
        pass
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent

    depth = 0
    try:
        # Parse events first: they show aliases ("billion laughs") and depth before anything is built.
        for event in YAML(typ="safe", pure=True).parse(text):
            depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
            if isinstance(event, AliasEvent) or depth > _MAX_DEPTH:
                fault = "refers to its own parts" if isinstance(event, AliasEvent) else f"is nested deeper than {_MAX_DEPTH}"
                raise InvalidInput(f"{name} {fault}", _HINT)
        return YAML(typ="safe", pure=True).load(text)
    # The parser raises various errors for a value that does not match its tag, such as "!!bool maybe".
    except (YAMLError, ValueError, RecursionError, TypeError, LookupError, AttributeError, AssertionError) as error:
        raise InvalidInput(f"{name} is neither JSON nor YAML: {str(error).splitlines()[0]}", _HINT) from None


class ContextPackages:
    """The packages of a store with explanations, and the needs of agents.

    Args:
        source: the whole store.
        visible: the part of the history that the asker may see; for the operator, the same store.
        guard: access checks for the asker.
        improver: writes better summaries, if one is configured.
    """

    def __init__(self, source: Store, visible: Store, guard: AccessGuard, improver: Improver | None = None) -> None:
        self._source = source
        self._visible = visible
        self._guard = guard
        self._improver = improver

    def with_improver(self, improver: Improver) -> ContextPackages:
        """Return the same service with an improver of summaries."""
        return ContextPackages(self._source, self._visible, self._guard, improver)

    def assemble(self, request: AssembleRequest) -> AssembleResponse:
        """Return the package of an agent, and record it; see `ctxmgr.context.assembly.assemble_context`."""
        return assemble_context(self._package_service(), request)

    def request_items(self, request: RequestItemsRequest) -> RequestItemsResponse:
        """Return further items that an agent asks for; see `request_items`."""
        return request_items(self._package_service(), request)

    def explain_item(self, request: WhyRequest) -> ItemExplanation:
        """Explain why an item is or is not in a package; see `ctxmgr.context.assembly.explain_item`."""
        return explain(self._source, self._visible, self._guard, request)

    def change_needs(self, request: ChangeNeedsRequest) -> NeedChangeResult:
        """Add and remove needs; see `change_needs`."""
        return change_needs(self._source, self._guard, request)

    def list_needs(self, request: ListNeedsRequest) -> ListNeedsResponse:
        """Return needs; see `list_needs`."""
        return list_needs(self._source, self._guard, request)

    def _package_service(self) -> PackageService:
        from ctxmgr.artifacts.finder import open_content

        def content(row: ArtifactRow) -> bytes:
            with open_content(self._source, row) as opened:
                return opened.read()

        return PackageService(self._source, self._guard, self._visible, content, self._improver)

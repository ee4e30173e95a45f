"""Assemble the package of an agent from a store, record it (spec 003), and explain why it contains an item or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from ctxmgr.access.guard import AccessGuard
from ctxmgr.context import items
from ctxmgr.context.budget import Item
from ctxmgr.context.candidates import (
    GOAL,
    CandidateCollector,
    Contents,
    Improver,
    NoTextError,
    TextItem,
    Texts,
    UnreadableError,
)
from ctxmgr.context.items import ItemName, Readers, VisibleArtifacts, parse_item_name
from ctxmgr.context.packages import Marks, RecordedPackage, content_fingerprint, last_package, package_record, read_record
from ctxmgr.context.packing import Order, assemble
from ctxmgr.errors import BudgetExceeded, CtxmgrError, Damaged, InvalidInput, NotFound
from ctxmgr.log.ids import now
from ctxmgr.store import Store
from ctxmgr.text.tokens import counter_by_name
from ctxmgr.types.context_package import (
    AssembleRequest,
    AssembleResponse,
    Assembly,
    HeldItem,
    Included,
    ItemExplanation,
    PackageItem,
    WhyRequest,
)
from ctxmgr.types.plain_records import MAX_EXACT_INTEGER
from ctxmgr.types.project_state import AgentNeed


@dataclass(slots=True)
class PackageService:
    """The parts that an assembly needs: a store, the asker, and the contents of artifacts.

    Attributes:
        store: the whole store.
        guard: access checks for the asker.
        visible: the history as the asker sees it.
        contents: returns the bytes of an artifact.
        improver: writes better summaries, if one is configured.
        clock: returns the current time as RFC 3339.
        summarised: number of new summaries in the last assembly.
    """

    store: Store
    guard: AccessGuard
    visible: Store
    contents: Contents
    improver: Improver | None = None
    clock: Callable[[], str] = now
    summarised: int = 0


def assemble_context(service: PackageService, request: AssembleRequest) -> AssembleResponse:
    """Return the package of an agent with the decision on every item, and record it.

    Raises:
        BudgetExceeded: the required items do not fit.
        NotFound: a required item or the version does not exist.
        InvalidInput: a name, a need, the counter or the budget is invalid.
        Damaged, StorageFailed: the content of a required item is missing or changed, or the package can't be recorded.
    """
    check_budget(request.max_tokens)
    with Readers(service.store, request.agent, service.guard, service.visible) as audience:
        shown = VisibleArtifacts(audience, request.version)
        texts = Texts(service.store, service.contents, counter_by_name(request.counter), service.improver)
        try:
            found = _collect(audience, shown, texts, request)
            before = last_package(service.store, request.agent) if request.diff else None
            assembly = _assemble_in_budget(service, request, found, texts, shown.version, before)
            if found.absent is not None:  # raised late, because an error about the budget is more useful
                raise found.absent
        except CtxmgrError as error:
            log_reads(service, audience, shown, "context assemble", failed=error.message, unlogged=request.dry_run)
            raise
        service.summarised = texts.summarised
        return _record(service, request, assembly, texts, shown, audience, {} if before is None else before.marks)


def _collect(audience: Readers, shown: VisibleArtifacts, texts: Texts, request: AssembleRequest) -> CandidateCollector:
    found = CandidateCollector(audience, shown, texts, request.max_tokens, request.task)
    if request.task_context is not None:
        found.know_task(request.task_context)
    if request.goal is not None:
        found.know_goal(request.goal)
    needs = read_needs(audience.store, request.agent)
    # Sorted, because two packages of the same state must be equal, in whatever order the needs were recorded.
    for need in sorted(needs, key=lambda need: (need.priority, need.pattern)):
        found.need(need)
    named = [*request.items, *([GOAL] if request.goal is not None else [])]
    for text in dict.fromkeys(named):
        found.name(text)
    found.depend()
    # Without the note, an empty package would look like a project without content.
    if not needs and not named:
        found.notes.append(f"{request.agent} has no needs, so nothing was looked for: 'ctxmgr context need add' names them")
    return found


def read_needs(store: Store, agent: str | None) -> list[AgentNeed]:
    """Return the needs of an agent, or all needs (None).

    Raises:
        Damaged: a recorded need can't be read.
    """
    try:
        return store.shared.needs(agent)
    except ValueError:
        raise Damaged("a recorded need is none", "set it again with 'ctxmgr context need add'") from None


def check_budget(tokens: int) -> None:
    """Check that a budget is not absurdly large.

    Raises:
        InvalidInput: the budget is too large.
    """
    if tokens > MAX_EXACT_INTEGER:
        raise InvalidInput(f"a budget of {tokens:.3g} tokens is no budget", f"give at most {MAX_EXACT_INTEGER:,}")


def _assemble_in_budget(
    service: PackageService,
    request: AssembleRequest,
    found: CandidateCollector,
    texts: Texts,
    version: int | None,
    before: RecordedPackage | None,
) -> Assembly:
    held = held_items(found.items, before, texts)
    order = Order(
        agent=request.agent, assembled_at=service.clock(), budget=request.max_tokens,
        items=_without(found.items, held), texts=texts, counter=texts.counter,
        reserve_prompt=request.reserve_prompt, reserve_task=request.reserve_task, version=version,
        task_id=request.task, project_context=found.project, task_context=found.task,
        missing=found.missing, held=held, notes=found.notes,
    )  # fmt: skip
    assembly = _fit(order, texts, found)
    # What an agent would be given in part as before, it holds too. Without it others may get more, so look again.
    while before is not None and (repeated := _repeated_parts(assembly, before)):
        held = [*held, *repeated]
        order = replace(order, items=_without(order.items, repeated), held=held)
        assembly = _fit(order, texts, found)
    return assembly


def _without(wanted: Sequence[Item], held: Sequence[HeldItem]) -> list[Item]:
    known = {(one.type, one.id) for one in held}
    return [item for item in wanted if (item.type, item.id) not in known]


def _fit(order: Order, texts: Texts, found: CandidateCollector) -> Assembly:
    """Return the best package. If it does not fit, drop the list of held items, then the project's context."""
    if order.held:
        with suppress(BudgetExceeded):
            return readable_only(order, texts, found, advise=False)
        warning = f"{len(order.held):,} items that the agent holds are not listed, for want of room"
        order = replace(order, held=(), notes=[*order.notes, warning])
    if found.project and not found.required:
        with suppress(BudgetExceeded):
            return readable_only(order, texts, found, advise=False)
        warning = "the project's context was left out: there is no room for it, and no need requires it"
        order = replace(order, project_context={}, notes=[*order.notes, warning])
    return readable_only(order, texts, found)


def readable_only(order: Order, texts: Texts, found: CandidateCollector, *, advise: bool = True) -> Assembly:
    """Assemble the package. Replace binary content by a description; skip optional items that are missing or changed.

    ``advise`` is as in `assemble`.

    Raises:
        CtxmgrError: a required item can't be read, or does not fit.
    """
    # Each round describes or drops one item, so the loop ends. Most packages need one round.
    while True:
        try:
            return _add_descriptions(assemble(order, advise=advise), texts)
        except UnreadableError as error:
            order = _drop_unreadable(order, error, texts, found)


def _drop_unreadable(order: Order, error: UnreadableError, texts: Texts, found: CandidateCollector) -> Order:
    """Return the order with an unreadable item described or dropped."""
    key = (error.item.type, error.item.id)
    bad = [item for item in order.items if (item.type, item.id) == key]
    readable = [item for item in order.items if (item.type, item.id) != key]
    content = texts.shelf[key]
    # For bytes that are not text, size and hash are still useful.
    if isinstance(error.cause, NoTextError) and not isinstance(content, TextItem):
        return replace(order, items=[*readable, *(found.description_item(content, item) for item in bad)])
    if any(item.need == "required" for item in bad):
        raise error.cause
    note = f"{error.item.source}/{error.item.name} left out: {error.message}"
    return replace(order, items=readable, notes=[*order.notes, note])


def _add_descriptions(assembly: Assembly, texts: Texts) -> Assembly:
    """Return the assembly with the reasons for items that are only described."""
    decisions = [
        made.model_copy(update={"reason": "it is no text: it is described instead"})
        if made.got == "summary" and isinstance(kept := texts.shelf.get((made.type, made.id)), TextItem) and not kept.whole
        else made
        for made in assembly.decisions
    ]
    return assembly.model_copy(update={"decisions": decisions})


def held_items(items: list[Item], before: RecordedPackage | None, texts: Texts) -> list[HeldItem]:
    """Return the items that the agent already holds in full and unchanged, from its previous package."""
    if before is None:
        return []
    origins = before.origins()
    held: dict[tuple[str, str], HeldItem] = {}
    for item in items:
        key = (item.type, item.id)
        given, mark = before.marks.get(key, (None, None))
        if given != "full" or key in held:
            continue
        content = texts.shelf[key]
        # The id of an artifact changes with its content. A text from history keeps its id, but may have grown.
        if isinstance(content, TextItem) and mark != content_fingerprint(content.text):
            continue
        held[key] = _held_item(item, given, origins.get(key, before.id))
    return list(held.values())


def _held_item(item: Item | PackageItem, included: Included, package: str) -> HeldItem:
    return HeldItem(
        id=item.id, type=item.type, source=item.source, name=item.name, version=item.version, included=included,
        package=package,
    )  # fmt: skip


def _repeated_parts(assembly: Assembly, before: RecordedPackage) -> list[HeldItem]:
    """Return the summaries in a package that the agent has word for word from the one before; without any, the beginnings."""
    origins = before.origins()
    found = [
        _held_item(item, item.included, origins.get((item.type, item.id), before.id))
        for item in assembly.package.artifacts
        if item.included != "full"
        and before.marks.get((item.type, item.id)) == (item.included, content_fingerprint(item.content))
    ]
    # Beginnings last: the room that a summary leaves may give such an item more.
    return [one for one in found if one.included == "summary"] or found


def _record(
    service: PackageService,
    request: AssembleRequest,
    assembly: Assembly,
    texts: Texts,
    shown: VisibleArtifacts,
    audience: Readers,
    before: Marks,
) -> AssembleResponse:
    """Record the package and the new summaries in one transaction. A read-only store records nothing."""
    identity: str | None = None
    if not request.dry_run and not service.store.readonly:
        fixed = {key: one.text for key, one in texts.shelf.items() if isinstance(one, TextItem)}
        record = package_record(assembly, service.guard.agent or "operator", fixed, before)
        with service.store.engine.transaction():
            texts.keep()
            service.store.append([record])
        identity = str(record["id"])
    granted = [(made.source, made.name) for made in assembly.decisions if made.type == "artifact" and made.got != "omitted"]
    log_reads(service, audience, shown, "context assemble", granted, unlogged=request.dry_run)
    return AssembleResponse(id=identity, package=assembly.package, decisions=assembly.decisions, budget=assembly.budget)


def log_reads(
    service: PackageService,
    audience: Readers,
    shown: VisibleArtifacts,
    command: str,
    granted: Iterable[tuple[str, str]] = (),
    *,
    failed: str | None = None,
    unlogged: bool = False,
) -> None:
    """Log denied reads, and reads granted to an agent that asks for another: the package records only the other one.

    A dry run by the operator (``unlogged``) is not logged.
    """
    if service.store.readonly or audience.agent is None or (unlogged and service.guard.agent is None):
        return
    reader = audience.reader()
    others = [] if reader.agent == audience.agent else list(granted)
    if shown.denied or shown.hidden or failed or others:
        reader.log(command, "read", others, list(shown.denied), failed=failed, hidden=shown.hidden)


_ORDER = ("full", "summary", "truncated", "omitted")


def explain_item(store: Store, visible: Store, guard: AccessGuard, request: WhyRequest) -> ItemExplanation:
    """Return what became of an item in a package.

    An agent sees only its own packages, and items that it may read. Anything else counts as missing (ruling 16). Only the
    operator learns that an item is absent because the package's agent may not read it.

    Raises:
        NotFound: the package does not exist.
        InvalidInput: the name of the item has no known form, or the id is ambiguous.
    """
    named = parse_item_name(request.item)
    found = _package(store, guard, request)
    with Readers(store, found.agent, guard, visible) as audience:
        identity, readable = _identify(audience, named, guard.agent is None)
        if not readable:
            return _absent(named, found, "notThere", "there is no such item")
        if (answer := _from_record(named, identity, found)) is not None:
            return answer
        return _explain_absence(audience, named, found)


def _package(store: Store, guard: AccessGuard, request: WhyRequest) -> RecordedPackage:
    # For an agent, packages of other agents do not exist (ruling 16).
    agent = request.agent if guard.agent is None else guard.agent
    record = None
    if guard.agent is None or request.agent in (None, guard.agent):
        record = store.shared.package(request.package, agent)
    if record is None:
        whose = f" of {agent}" if agent else ""
        which = f"no package {request.package!r}" if request.package else "no package"
        raise NotFound(f"{which}{whose}", "'ctxmgr context assemble AGENT' makes one")
    return read_record(record)


def _identify(audience: Readers, named: ItemName, operator: bool) -> tuple[str | None, bool]:
    """Return the id of the named item, if its name alone does not identify it, and whether the asker may know of it."""
    if named.form == "artifact":
        return None, operator or audience.reads(named.source, named.name)
    if named.form == "id":
        row = audience.store.artifacts.by_id(named.name)
        return named.name, operator or (row is not None and audience.reads(row.agent, row.name))
    if named.form == "record":
        item = items.record_item(audience, named)
        return (None if item is None else item.id), operator or item is not None
    return None, True


def _from_record(named: ItemName, identity: str | None, found: RecordedPackage) -> ItemExplanation | None:
    if named.source == "project_context" and found.context:
        return _answer(named, found, "full", "everyPackage", f"the project's context: {len(found.context)} keys")
    if named.source == "task_context" and found.task:
        return _answer(named, found, "full", "everyPackage", "the task's context")
    made = [one for one in found.decisions if _is_named(one.type, one.id, one.source, one.name, named, identity)]
    if made:
        # Several needs may ask for one item. The strongest need got it; the others are recorded as duplicates.
        best = min(made, key=lambda one: (_ORDER.index(one.got), one.rule == "duplicate"))
        return ItemExplanation(
            item=named.text, package=found.id, agent=found.agent, assembled_at=found.at, asked=best.asked, got=best.got,
            rule=best.rule, reason=best.reason, decisions=sorted(made, key=lambda one: one is not best),
        )  # fmt: skip
    for one in found.held:
        if _is_named(one.type, one.id, one.source, one.name, named, identity):
            return _answer(named, found, "held", "held", f"the agent holds it from package {one.package}, unchanged")
    return None


def _is_named(kept_as: str, identity: str, source: str, name: str, named: ItemName, known: str | None) -> bool:
    if named.form == "artifact":
        return kept_as == "artifact" and (source, name) == (named.source, named.name)
    if named.form == "owner":
        return kept_as == "artifact" and source == named.source
    if named.form == "id":
        return kept_as == "artifact" and identity == known
    if named.form == "record":
        return kept_as == named.source and (identity == known or identity == named.name)
    return kept_as == "context" and identity == named.source


def _explain_absence(audience: Readers, named: ItemName, found: RecordedPackage) -> ItemExplanation:
    """Return why an item is not in a package, judged by the items and needs that exist now."""
    shown = VisibleArtifacts(audience, None)
    if not _exists(audience, shown, named):
        # For anybody but the operator, "denied" would reveal that the item exists (ruling 16).
        if audience.asker.agent is None and audience.agent is not None and _is_there_at_all(audience, named):
            return _absent(named, found, "denied", f"{found.agent} may not read it; 'ctxmgr access explain' names the rule")
        return _absent(named, found, "notThere", "there is no such item")
    if any(_list_names(need.pattern, named) for need in read_needs(audience.store, found.agent)):
        return _absent(named, found, "later", "it is needed and there now, but was not when the package was assembled")
    return _absent(named, found, "noNeed", f"no need of {found.agent} names it, and nothing in the package depends on it")


def _exists(audience: Readers, shown: VisibleArtifacts, named: ItemName) -> bool:
    if named.form == "artifact":
        return shown.find(named.source, named.name) is not None
    if named.form == "owner":
        return bool(shown.list_by_owner(named.source))
    if named.form == "id":
        return shown.by_id(named.name) is not None
    if named.form == "record":
        return items.record_item(audience, named) is not None
    return named.source in ("project_context", "task_context") or _has_context(audience, named)


def _has_context(audience: Readers, named: ItemName) -> bool:
    if named.source == "goal_context":
        return False  # the caller of an assembly passes it; it is not stored
    if named.source == "error_context":
        return items.failures(audience, None) is not None
    return bool(items.runs(audience, None))


def _is_there_at_all(audience: Readers, named: ItemName) -> bool:
    with audience.without_rules() as everybody:
        return _exists(everybody, VisibleArtifacts(everybody, None), named)


def _list_names(pattern: str, named: ItemName) -> bool:
    try:
        need = parse_item_name(pattern)
    except InvalidInput:
        return False
    if need.form == "owner":
        return named.form in ("artifact", "owner") and need.source == named.source
    return (need.form, need.source, need.name) == (named.form, named.source, named.name)


def _absent(named: ItemName, found: RecordedPackage, rule: str, reason: str) -> ItemExplanation:
    return ItemExplanation(
        item=named.text, package=found.id, agent=found.agent, assembled_at=found.at, asked=None, got="absent", rule=rule,
        reason=reason,
    )  # fmt: skip


def _answer(named: ItemName, found: RecordedPackage, got: str, rule: str, reason: str) -> ItemExplanation:
    return ItemExplanation.model_validate(
        {
            "item": named.text, "package": found.id, "agent": found.agent, "assembled_at": found.at, "asked": "full",
            "got": got, "rule": rule, "reason": reason,
        }
    )  # fmt: skip

"""Change the access rules by requests or from a TOML or JSON file, and show the effect of proposed rules.

A file is accepted completely or not at all, and every error message names the place in the file. The default rules of spec 003
are such a file.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator
from typing import Any, cast

from ctxmgr.access.guard import AccessGuard
from ctxmgr.access.patterns import PERMISSIONS, RESOURCE_TYPES, check_choice, check_priority, check_rule, rule_key
from ctxmgr.access.rules import Rules
from ctxmgr.base.light_dataclass import dataclass
from ctxmgr.base.paths import packaged_text
from ctxmgr.errors import Denied, InvalidInput, NotFound
from ctxmgr.log.codec import Record, refuse_constant
from ctxmgr.log.fast_json import json_object, json_objects, json_texts, text_or_none
from ctxmgr.log.ids import new_id, now
from ctxmgr.store import Store
from ctxmgr.store.project_session import ACCESS, KEY, NEEDS, PACKAGE, PROJECT, RULES
from ctxmgr.types.access import DEFAULT_PRIORITY, AccessRule, Replay, ReplayedRead, Resource, RuleChangeResult
from ctxmgr.types.plain_records import build


@dataclass(frozen=True, slots=True)
class PastRead:
    """A recorded read.

    Attributes:
        at: time (RFC 3339), None if it was not recorded.
        agent: the agent that asked, None for the operator.
        command: the command that read.
        resource: the resource that was read.
        allowed: whether the read was allowed, None if that was not recorded.
    """

    at: str | None
    agent: str | None
    command: str
    resource: Resource
    allowed: bool | None


def replay(old: Rules, new: Rules, reads: Iterable[PastRead]) -> Replay:
    """Return the past reads that new rules would block, and the denied ones that they would allow, in their order.

    If the result of a read was not recorded, the old rules decide. Reads by the operator are counted but never change.
    """
    count = 0
    blocked: list[ReplayedRead] = []
    opened: list[ReplayedRead] = []
    for read in reads:
        count += 1
        if read.agent is None:
            continue
        was_allowed = old.allows(read.agent, "read", read.resource) if read.allowed is None else read.allowed
        allowed = new.allows(read.agent, "read", read.resource)
        if allowed == was_allowed:
            continue
        changed = ReplayedRead(
            at=read.at,
            agent=read.agent,
            command=read.command,
            resource=read.resource,
            was_allowed=was_allowed,
            allowed=allowed,
            rule=new.find_rule(read.agent, "read", read.resource),
        )
        (opened if allowed else blocked).append(changed)
    return Replay(reads=count, blocked=blocked, opened=opened)


def change_rules(
    store: Store,
    guard: AccessGuard,
    *,
    add: Iterable[AccessRule] = (),
    remove: Iterable[AccessRule] = (),
) -> RuleChangeResult:
    """Add and remove rules as one change, which is recorded in history.

    Agent, resource type, pattern and permission identify a rule. Adding it again sets its priority; removing it ignores the
    priority.

    Raises:
        Denied: an agent asks; only the operator may change rules.
        NotFound: a rule to remove is not there.
        InvalidInput: a rule can't be evaluated.
    """
    require_operator(guard, "change access rules")
    # Read and write in one transaction, so that the second of two concurrent changes sees the first one.
    with store.engine.transaction():
        before = {rule_key(rule): rule for rule in store.shared.rules()}
        new = {rule_key(rule): check_rule(rule) for rule in add}
        unwanted = list(dict.fromkeys(map(rule_key, remove)))
        if missing := [key for key in unwanted if key not in before]:
            raise NotFound(f"no rule {' '.join(missing[0])}", "'ctxmgr access list' shows them")
        removed = [key for key in unwanted if key not in new]
        changed = [rule for key, rule in new.items() if before.get(key) != rule]
        if changed or removed:
            gone = [before[key].to_json() for key in removed]
            data = {"set": [rule.to_json() for rule in changed], "removed": gone, "by": "operator"}
            store.append([build("event", PROJECT, now(), id=new_id(), type=RULES, agent="operator", data=data)])
    added = sum(rule_key(rule) not in before for rule in changed)
    return RuleChangeResult(
        rules=list(new.values()) or [before[key] for key in removed],
        added=added,
        changed=len(changed) - added,
        removed=len(removed),
    )


def load_default(store: Store, guard: AccessGuard) -> RuleChangeResult:
    """Add the template's rules, needs and context keys. Existing keys keep their values.

    Raises:
        Denied: an agent asks.
    """
    require_operator(guard, "load the default access rules")
    # One transaction, so that a kill leaves either the whole template or nothing of it.
    with store.engine.transaction():
        done = change_rules(store, guard, add=default_rules())
        known = {(need.agent, need.pattern) for need in store.shared.needs()}
        needs = [need for need in default_needs() if (need["agent"], need["pattern"]) not in known]
        if needs:
            rows = [{_CAMEL.get(name, name): value for name, value in need.items()} for need in needs]
            data = {"set": rows, "by": "operator"}
            store.append([build("event", PROJECT, now(), id=new_id(), type=NEEDS, agent="operator", data=data)])
        present = {item.key for item in store.shared.context_keys()}
        keys = [item for item in default_keys() if item["key"] not in present]
        if keys:
            changes = [{**item, "type": "string", "old": None} for item in keys]
            data = {"changes": changes, "by": _SYSTEM}
            store.append([build("event", PROJECT, now(), id=new_id(), type=KEY, agent=_SYSTEM, data=data)])
    return done


_SYSTEM = "system"
"""Author of the initial keys of a project (spec 003)."""
_CAMEL = {"max_tokens": "maxTokens", "use_summary": "useSummary"}


def require_operator(guard: AccessGuard, what: str) -> None:
    """Require that the operator asks. ``what`` is e.g. "change access rules".

    Raises:
        Denied: an agent asks.
    """
    if guard.agent is not None:
        guard.log(what, "write", failed="only the operator may")
        raise Denied(f"{guard.agent} may not {what}", "only the operator may: leave --as out")


def replay_reads(store: Store, new: Rules) -> Replay:
    """Return the effect that a proposed set of rules would have had on the recorded reads."""
    return replay(Rules(store.shared.rules()), new, past_reads(store))


def past_reads(store: Store) -> Iterator[PastRead]:
    """Yield the reads of agents: logged accesses, contents of packages, inputs of executions."""
    yield from _logged_reads(store)
    yield from _package_reads(store)
    yield from _execution_reads(store)


def _logged_reads(store: Store) -> Iterator[PastRead]:
    for record in store.shared.events(ACCESS):
        data = json_object(record.get("data"))
        if data.get("permission") != "read":
            continue
        for name, allowed in (("granted", True), ("denied", False)):
            for resource in resources(data.get(name)):
                yield _make_past_read(record, data.get("agent"), data.get("command"), resource, allowed=allowed)


def _package_reads(store: Store) -> Iterator[PastRead]:
    for record in store.shared.events(PACKAGE):
        data = json_object(record.get("data"))
        for item in json_objects(data.get("items")):
            # An item without a type is an artifact, and one without "got" is a full one. Omitted items were not read.
            if item.get("type", "artifact") == "artifact" and item.get("got", "full") != "omitted":
                resource = Resource(type="artifact", agent=str(item.get("source")), name=str(item.get("name")))
                yield _make_past_read(record, data.get("agent"), "context assemble", resource, allowed=True)


def _execution_reads(store: Store) -> Iterator[PastRead]:
    for entry, record in store.shared.executions():
        for identity in json_texts(json_object(record.get("input")).get("artifacts")):
            row = store.artifacts.by_id(identity)
            if row is not None:
                resource = Resource(type="artifact", agent=row.agent, name=row.name)
                yield _make_past_read(record, entry.agent, "execution", resource, allowed=True)


def _make_past_read(record: Record, agent: object, command: object, resource: Resource, *, allowed: bool) -> PastRead:
    return PastRead(
        at=text_or_none(record.get("ts")),
        agent=str(agent),
        command=str(command),
        resource=resource,
        allowed=allowed,
    )


def resources(value: object) -> Iterator[Resource]:
    """Yield the resources that a logged access lists."""
    for item in json_objects(value):
        if item.get("type") in ("artifact", "context", "history"):
            yield Resource.model_validate(
                {"type": item["type"], "agent": str(item.get("agent")), "name": str(item.get("name"))}
            )


MAX_TEXT = 4 * 1024 * 1024
"""Maximum length of a file in characters."""

_EXAMPLE = 'e.g. rules = [{agent = "debugger", resource_type = "artifact", pattern = "*", permission = "read", priority = 30}]'
_FIELDS = ("agent", "resource_type", "resourceType", "pattern", "permission", "priority")


def parse_rules_file(text: str, name: str) -> list[AccessRule]:
    """Return the rules of a file in its order.

    The file holds an array ``rules`` of tables with ``agent``, ``resource_type`` (or ``resourceType``), ``pattern``,
    ``permission`` and an optional ``priority`` (default 100). A file whose name ends in ``.json`` is JSON, any other is TOML.
    Arrays ``needs`` and ``keys``, as in the default template, are ignored.

    Raises:
        InvalidInput: the file is neither, has other content, or has a rule twice; the message says where.
    """
    values = read_table(text, name)
    if unknown := sorted(set(values) - {"rules", "needs", "keys"}):
        raise InvalidInput(f"{name}: unknown setting {unknown[0][:80]!r}", _EXAMPLE)
    rows = values.get("rules")
    if not isinstance(rows, list):
        raise InvalidInput(f"{name}: there must be an array 'rules'", _EXAMPLE)
    rules: dict[tuple[str, str, str, str], AccessRule] = {}
    for number, row in enumerate(cast("list[Any]", rows)):
        place = f"{name}: rules[{number}]"
        try:
            rule = _make_rule(row)
        except InvalidInput as error:
            raise InvalidInput(f"{place}: {error.message}", error.hint) from None
        # Compare identities, because a literal repetition of a rule is a duplicate too.
        if rules.setdefault(rule_key(rule), rule) is not rule:
            raise InvalidInput(f"{place}: this agent, type, pattern and permission stand there before", "keep one of the two")
    return list(rules.values())


def read_table(text: str, name: str) -> dict[str, Any]:
    """Parse a TOML file, or a JSON file if its name ends so; return its table, {key: value}.

    Raises:
        InvalidInput: the file is too long, broken, nested too deeply, or not one table.
    """
    if len(text) > MAX_TEXT:
        raise InvalidInput(f"{name}: longer than {MAX_TEXT:,} characters", "split the file")
    # Windows editors begin files with a byte order mark.
    text = text.removeprefix("\ufeff")
    try:
        values: Any
        if name.lower().endswith(".json"):
            values = json.loads(text, object_pairs_hook=_make_table, parse_constant=refuse_constant)
        else:
            values = tomllib.loads(text)
    except RecursionError:
        raise InvalidInput(f"{name}: nested too deep", _EXAMPLE) from None
    except ValueError as error:  # errors of both parsers, and integers with too many digits for Python
        raise InvalidInput(
            f"{name}: {error}", "a file whose name ends in .json is read as JSON, every other one as TOML"
        ) from None
    if not isinstance(values, dict):
        raise InvalidInput(f"{name}: must hold one table", _EXAMPLE)
    return cast("dict[str, Any]", values)


def _make_table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    # `json` would silently keep the last duplicate. TOML refuses duplicates by itself.
    if len(table) != len(pairs):
        raise ValueError("an object names the same key twice")
    return table


def _make_rule(row: object) -> AccessRule:
    if not isinstance(row, dict):
        raise InvalidInput("must be a table", _EXAMPLE)
    fields = cast("dict[str, Any]", row)
    if unknown := sorted(set(fields) - set(_FIELDS)):
        raise InvalidInput(f"unknown field {unknown[0][:80]!r}", f"known: {', '.join(_FIELDS)}")
    if "resource_type" in fields and "resourceType" in fields:
        raise InvalidInput("both resource_type and resourceType are given", "keep one of the two")
    kind = check_choice("resource type", fields.get("resource_type", fields.get("resourceType")), RESOURCE_TYPES)
    permission = check_choice("permission", fields.get("permission"), PERMISSIONS)
    priority = check_priority(fields.get("priority", DEFAULT_PRIORITY))
    texts = {field: fields.get(field) for field in ("agent", "pattern")}
    for field, value in texts.items():
        if not isinstance(value, str):
            raise InvalidInput(f"{field} must be text", _EXAMPLE)
    return check_rule(
        AccessRule.model_validate({**texts, "resource_type": kind, "permission": permission, "priority": priority})
    )


DEFAULT_FILE = "default_rules.toml"

_NEED = {"max_tokens": None, "use_summary": False, "priority": 100}


def default_rules() -> list[AccessRule]:
    """Return the rules of the template in the order of its file."""
    return parse_rules_file(_default_text(), DEFAULT_FILE)


def default_needs() -> list[dict[str, Any]]:
    """Return the needs of the template, i.e. the contents of its agents' packages, in the order of its file.

    Each has ``agent``, ``pattern``, ``need`` (``required``, ``optional``, ``if_exists`` or ``reference``), ``max_tokens``
    (None: no limit), ``use_summary`` and ``priority``.
    """
    rows = cast("list[dict[str, Any]]", read_table(_default_text(), DEFAULT_FILE)["needs"])
    return [{"agent": row["agent"], "pattern": row["pattern"], "need": row["need"], **_NEED, **row} for row in rows]


def default_keys() -> list[dict[str, Any]]:
    """Return the initial context keys of a project, each with ``key``, ``value`` and ``description`` as texts."""
    return [dict(row) for row in cast("list[dict[str, Any]]", read_table(_default_text(), DEFAULT_FILE)["keys"])]


def _default_text() -> str:
    return packaged_text(__file__, DEFAULT_FILE)

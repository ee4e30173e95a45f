"""The shared state of a project as one agent may see and change it; its context keys follow spec 003."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ctxmgr.access.guard import AccessGuard, key_resource
from ctxmgr.errors import Denied, InvalidInput, NotFound
from ctxmgr.log import codec
from ctxmgr.log.ids import new_id, now
from ctxmgr.log.mask_prefilter import mask
from ctxmgr.store import Store
from ctxmgr.store.reserved import KEY, PROJECT
from ctxmgr.types.access import AccessExplanation, AccessRule, Replay, RulesChanged
from ctxmgr.types.context_package import (
    NEW_KEYS,
    ContextKey,
    Execution,
    GetContextRequest,
    GetContextResponse,
    KeyChanged,
    KeyUpdate,
    ListExecutionsRequest,
    ListExecutionsResponse,
    RecordExecutionRequest,
    SetContextRequest,
    SetContextResponse,
    ValueType,
)
from ctxmgr.types.plain_records import build


class Project:
    """Context keys, executions and access rules of a store.

    Args:
        source: the store itself.
        seen: what the asker may see of its history; the same store for the operator.
        guard: who asks.
    """

    def __init__(self, source: Store, seen: Store, guard: AccessGuard) -> None:
        self._source = source
        self._seen = seen
        self._guard = guard

    def get_context(self, request: GetContextRequest) -> GetContextResponse:
        """Return context keys; see `ctxmgr.access.project.get_keys`."""
        return get_keys(self._source, self._guard, request)

    def set_context(self, request: SetContextRequest) -> SetContextResponse:
        """Set context keys; see `ctxmgr.access.project.set_keys`."""
        return set_keys(self._source, self._guard, request)

    def record_execution(self, request: RecordExecutionRequest) -> Execution:
        """Record a run of an agent; see `ctxmgr.access.executions.record_execution`."""
        from ctxmgr.access.executions import record_execution

        return record_execution(self._source, self._seen, self._guard, request)

    def list_executions(self, request: ListExecutionsRequest) -> ListExecutionsResponse:
        """Return runs of agents; see `ctxmgr.access.executions.list_executions`."""
        from ctxmgr.access.executions import list_executions

        return list_executions(self._source, self._seen, self._guard, request)

    def rules(self) -> list[AccessRule]:
        """Return the access rules in force, in the order in which they count."""
        return self._source.shared.rules()

    def change_rules(self, add: Iterable[AccessRule] = (), remove: Iterable[AccessRule] = ()) -> RulesChanged:
        """Put rules in force and take others out; see `ctxmgr.access.rule_changes.change_rules`."""
        from ctxmgr.access.rule_changes import change_rules

        return change_rules(self._source, self._guard, add=add, remove=remove)

    def load_default_rules(self) -> RulesChanged:
        """Put the template's rules and needs in force; see `ctxmgr.access.rule_changes.load_default`."""
        from ctxmgr.access.rule_changes import load_default

        return load_default(self._source, self._guard)

    def explain_access(self, agent: str, permission: str, resource_type: str, resource: str) -> AccessExplanation:
        """Return whether an agent may do something, and why.

        Raises:
            InvalidInput: a name, a permission or a resource type that can't be used.
        """
        from ctxmgr.access.patterns import check_agent, check_choice, parse_resource

        check_choice("permission", permission, ("read", "write"))
        asked = "write" if permission == "write" else "read"
        return self._guard.rules.explain(check_agent(agent), asked, parse_resource(resource_type, resource))

    def test_rules(self, rules: Iterable[AccessRule], *, replay: bool) -> Replay:
        """Check rules that are not in force; ``replay`` holds them against the reads of the past."""
        from ctxmgr.access.patterns import check_rule
        from ctxmgr.access.rule_changes import replay_reads
        from ctxmgr.access.rules import Rules

        new = Rules([check_rule(rule) for rule in rules])
        return replay_reads(self._source, new) if replay else Replay(reads=0, blocked=[], opened=[])


VERSION_KEY = "context_version"
"""The one key that nobody sets: it follows from the versions."""
_MAX_KEY_BYTES = 255
_LARGEST = 2**63


def get_keys(store: Store, guard: AccessGuard, request: GetContextRequest) -> GetContextResponse:
    """Return context keys with their values.

    Raises:
        NotFound: a key that was named is not there, or may not be read: the two look the same (ruling 16).
    """
    every = _all(store)
    readable = [item for item in every if guard.reads_key(item.key)]
    wanted = list(dict.fromkeys(request.keys))
    names = {item.key for item in readable}
    absent = next((key for key in wanted if key not in names), None)
    if absent is not None:
        from difflib import get_close_matches

        near = get_close_matches(absent, sorted(names), n=3)
        guard.log("context get", "read", denied=[key_resource(absent)], resource_type="context", failed="no such key")
        hint = f"did you mean {', '.join(near)}?" if near else "'ctxmgr context get' shows all"
        raise NotFound(f"no context key {absent!r}", hint)
    found = [item for item in readable if not wanted or item.key in wanted]
    hidden = len(every) - len(readable)
    guard.log("context get", "read", [key_resource(item.key) for item in found], resource_type="context", hidden=hidden)
    return GetContextResponse(status="ok" if found else "empty", keys=found)


def _all(store: Store) -> list[ContextKey]:
    current = store.artifacts.current()
    keys = [item for item in store.shared.context_keys() if item.key != VERSION_KEY]
    if current is not None:
        keys.append(
            ContextKey(key=VERSION_KEY, value=current, type="integer", description="The current version of the context.")
        )
    return sorted(keys, key=lambda item: item.key)


def set_keys(store: Store, guard: AccessGuard, request: SetContextRequest) -> SetContextResponse:
    """Set context keys, all or none, and record the change in history.

    Raises:
        Denied: the asker may not set a key, whether it exists or not.
        NotFound: a key that is not there, unless new ones are wanted.
        InvalidInput: a key or a value that can't be used.
    """
    refused = [item.key for item in request.updates if not guard.writes_key(item.key)]
    if refused:
        guard.log("context set", "write", denied=[key_resource(key) for key in refused], resource_type="context")
        raise Denied(f"{guard.agent} may not set the context key {refused[0]!r}", "'ctxmgr access explain' names the rule")
    author = request.author or guard.agent or "operator"
    with store.engine.transaction():
        known = {item.key: item for item in store.shared.context_keys()}
        changes = [_change(update, known, create=request.create) for update in request.updates]
        rows = [
            {
                "key": made.key,
                "value": made.new_value,
                "type": made.type,
                "old": made.old_value,
                "description": update.description,
            }
            for made, update in zip(changes, request.updates, strict=True)
        ]  # fmt: skip
        data = {"changes": rows, "by": author}
        store.append([build("event", PROJECT, now(), id=new_id(), type=KEY, agent=author, data=data)])
    guard.log("context set", "write", [key_resource(item.key) for item in changes], resource_type="context")
    stored = {item.key: item for item in store.shared.context_keys()}
    return SetContextResponse(
        updated=[made.model_copy(update={"new_value": stored[made.key].value}) for made in changes]  # as it was masked
    )


def _change(update: KeyUpdate, known: dict[str, ContextKey], *, create: bool) -> KeyChanged:
    _check_key(update.key)
    old = known.get(update.key)
    if old is None and not create and update.key not in NEW_KEYS:
        from difflib import get_close_matches

        near = get_close_matches(update.key, [*known, *NEW_KEYS], n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise NotFound(f"no context key {update.key!r}", f"{hint}--create makes it")
    kind: ValueType = update.type or (old.type if old else "string")
    value = _typed(update.key, update.value, kind)
    return KeyChanged(
        key=update.key, old_value=None if old is None else old.value, new_value=value, type=kind, created=old is None
    )


def _check_key(key: str) -> None:
    if key == VERSION_KEY:
        raise InvalidInput(f"{VERSION_KEY} follows from the versions", "'ctxmgr version rollback' changes it")
    odd = not key or key != key.strip() or "*" in key or not key.isprintable()
    if odd or key.startswith(("/", "project/")) or key.endswith("/") or len(key.encode("utf-8", "replace")) > _MAX_KEY_BYTES:
        raise InvalidInput(f"{key[:80]!r} can't be a context key", "use 1 to 255 bytes without '*' and control characters")
    if mask(line := codec.encode({"key": key})) is not line:
        raise InvalidInput("the context key looks like a secret", "keys are shown everywhere: take another one")


def _typed(key: str, value: Any, kind: ValueType) -> Any:
    """Return the value as its type says, read from text where it is one."""
    if kind == "string":
        if isinstance(value, str):
            return value
    elif kind == "json":
        return _parsed(key, value, kind) if isinstance(value, str) else value
    else:
        given = _parsed(key, value, kind) if isinstance(value, str) else value
        if kind == "boolean" and isinstance(given, bool):
            return given
        if kind == "integer" and isinstance(given, int) and not isinstance(given, bool) and -_LARGEST <= given < _LARGEST:
            return given
    raise InvalidInput(f"the value of {key!r} is no {kind}", "--type names another type")


def _parsed(key: str, text: str, kind: ValueType) -> Any:
    try:
        value: Any = codec.decoder.decode(text.strip())
        codec.encode({"value": value})  # depth and size
    except (ValueError, RecursionError, InvalidInput):
        raise InvalidInput(f"the value of {key!r} is no {kind}", f"it reads {json.dumps(text[:60])}") from None
    return value

"""The shared state of a project as one agent may see and change it."""

from __future__ import annotations

from collections.abc import Iterable

from ctxmgr.access.guard import AccessGuard
from ctxmgr.store import Store
from ctxmgr.types.access import AccessExplanation, AccessRule, Replay, RulesChanged
from ctxmgr.types.project import (
    Execution,
    GetContextRequest,
    GetContextResponse,
    ListExecutionsRequest,
    ListExecutionsResponse,
    RecordExecutionRequest,
    SetContextRequest,
    SetContextResponse,
)


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
        """Return context keys; see `ctxmgr.access.context_keys.get_keys`."""
        from ctxmgr.access.context_keys import get_keys

        return get_keys(self._source, self._guard, request)

    def set_context(self, request: SetContextRequest) -> SetContextResponse:
        """Set context keys; see `ctxmgr.access.context_keys.set_keys`."""
        from ctxmgr.access.context_keys import set_keys

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

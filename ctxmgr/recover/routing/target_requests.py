"""Build the request for the target, valid against its schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ctxmgr.errors import InvalidInput
from ctxmgr.log.codec import encode
from ctxmgr.recover.evidence.history_reader import HistoryReader
from ctxmgr.recover.evidence.quotes import named
from ctxmgr.recover.routing.routes import BROKEN, Route, problem_with
from ctxmgr.types.route import ContextRequest

_LARGEST = 20_000
"""Bytes of the longest earlier request that is taken up again."""

_LOOK_BACK = 40
_GIVEN = {
    "goal": ("goal", "task", "objective"),
    "reason": ("reason", "rationale", "why"),
    "context": ("context", "additionalContext", "additional_context", "background"),
    "session": ("session", "sessionId", "session_id"),
    "requester": ("requester", "requestedBy", "requested_by", "from", "source_agent", "sourceAgent"),
}
"""What is known of a request, and the names under which request types commonly hold it."""


def request_for(
    reader: HistoryReader, route: Route, request: ContextRequest, context: str, summary: str
) -> dict[str, Any] | None:
    """Return the request for an agent, or None when nothing is known of its form and it was not drafted.

    It starts from the requester's draft, else from the newest recorded request of the agent's type that is still valid;
    what both lack is filled in under the names that request types use, from defaults and from constants.

    Raises:
        InvalidInput: it can't be made valid; says which field is wrong.
    """
    draft = request.drafts.get(route.agent)
    if draft is None and route.request is None and route.schema is None:
        return None
    if draft is not None and not isinstance(draft, dict):
        raise InvalidInput(f"the draft for {named(route.agent)} must be a JSON object", 'e.g. {"goal": "..."}')
    known = {"goal": request.goal, "reason": request.reason, "session": request.session, "requester": request.requester}
    bases = [cast("dict[str, Any]", draft)] if draft is not None else [*_earlier(reader, route), dict[str, Any]()]
    problems: list[str] = []
    # What the schema's fields of these names do not take (a number for a session) is left out only where nothing else helps.
    for fitting in (False, True):
        for base in bases:
            for text in (context, summary):
                made = _filled(base, route.schema, {**known, "context": text}, fitting=fitting)
                if not (problem := problem_with(made, route.schema)):
                    return made
                problems.append(problem)
        if problems[-1].startswith(BROKEN):  # leaving out the field would only hide that
            break
    problem = problems[-1]
    raise InvalidInput(
        f"no request that {named(route.agent)} takes can be made: {problem}",
        f"draft it: ctxmgr request --draft '{route.agent}={{...}}', or correct its schema in the routing table",
    )


def _earlier(reader: HistoryReader, route: Route) -> list[dict[str, Any]]:
    if route.request is None:
        return []
    found = reader.newest(_LOOK_BACK, input_type=route.request)
    inputs = [cast("dict[str, Any]", entry.input) for entry in found if isinstance(entry.input, dict)]
    return [body for body in inputs if len(encode({"input": body})) <= _LARGEST]


def _filled(
    base: dict[str, Any], schema: Mapping[str, Any] | None, known: Mapping[str, Any], *, fitting: bool
) -> dict[str, Any]:
    made = dict(base)
    if schema is None:
        return {**{name: value for name, value in known.items() if value is not None and name != "session"}, **made}
    given = schema.get("properties")
    properties = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    for what, names in _GIVEN.items():
        value = known.get(what)
        for name in names:
            # What was rebuilt takes the place of an earlier context; everything else of an earlier request stands.
            wanted = name in properties and value is not None and (name not in made or what == "context")
            if wanted and not (fitting and problem_with({name: value}, _alone(schema, name, properties[name]))):
                made[name] = value
    for name, rule in properties.items():
        if name not in made and isinstance(rule, dict):
            fields = cast("dict[str, Any]", rule)
            for key in ("const", "default"):
                if key in fields:
                    made[name] = fields[key]
    if schema.get("additionalProperties") is False and "patternProperties" not in schema:
        made = {name: value for name, value in made.items() if name in properties}
    return made


def _alone(schema: Mapping[str, Any], name: str, rule: object) -> dict[str, Any]:
    """Return the schema of one field by itself, with the definitions that it may refer to."""
    shared = {key: schema[key] for key in ("$schema", "$defs", "definitions") if key in schema}
    return {**shared, "properties": {name: rule}}

"""The routing table: agents, their roles, the schemas of their requests, and which agents may follow which.

The table is data (``[recover.routes]`` of the configuration, or ``--routes FILE``). Without one it is derived from the
history, and the continuation says so. Documents that a schema refers to are never fetched.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ctxmgr.base.light_dataclass import dataclass, field
from ctxmgr.base.paths import MAX_SETTINGS_BYTES, OWN_FILE, is_inside, read_regular
from ctxmgr.config import Config
from ctxmgr.errors import CtxmgrError, InvalidInput
from ctxmgr.text.patterns import lazy_pattern
from ctxmgr.types.route import Role, Routing, is_context_manager
from ctxmgr.types.setup import Check

if TYPE_CHECKING:
    from pathlib import Path

BROKEN = "its schema can't be applied"
"""Beginning of the sentence that blames the schema itself, e.g. a reference to a missing definition."""


def check_schema(schema: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Return the schema.

    Raises:
        InvalidInput: it is no JSON Schema, or refers to another document, which would have to be fetched.
    """
    from jsonschema import SchemaError
    from jsonschema.validators import validator_for

    try:
        validator_for(dict(schema)).check_schema(dict(schema))
    except SchemaError as error:
        raise InvalidInput(f"{where}: no JSON Schema: {error.message}", "mend it") from None
    except (TypeError, AttributeError, ValueError, RecursionError) as error:  # a $schema that is not a string, endless nesting
        raise InvalidInput(f"{where}: no JSON Schema: {type(error).__name__}", "mend it") from None
    return schema


def find_problem(made: dict[str, Any], schema: Mapping[str, Any] | None) -> str:
    """Return the fault of a request as a sentence; "" if it is valid."""
    if schema is None:
        return ""
    from jsonschema.validators import validator_for
    from referencing import Registry

    # The registry is empty, so no reference to another document is ever fetched.
    validator = validator_for(dict(schema))(dict(schema), registry=Registry())
    try:
        errors = sorted(validator.iter_errors(made), key=lambda error: len(error.absolute_path))
    except Exception as broken:  # unresolvable references have no public base class
        return f"{BROKEN}: {type(broken).__name__}"
    if not errors:
        return ""
    place = "/".join(str(part) for part in errors[0].absolute_path)
    return f"{place or 'the request'}: {errors[0].message[:300]}"


_ROLES = ("ordinary", "review", "merge")
_KEYS = {"request", "schema", "role", "next"}
_LARGEST_FILE = 4_000_000
_MALFORMED = (OSError, ValueError, RecursionError)  # the errors of both formats are ValueErrors
# A preview and an emergency are neither a review nor a merge.
_REVIEW, _MERGE = lazy_pattern(r"(?<!p)review", re.IGNORECASE), lazy_pattern(r"(?<!\be)merg", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Route:
    """One agent of the table.

    Attributes:
        request: name of its request type, as recorded in ``inputType``; None if it has none.
        schema: JSON Schema for its requests; None if any request is valid.
        role: review and merge agents forward through the context manager, and never straight back.
        followers: the agents that may follow it; None for all of the table.
    """

    agent: str
    request: str | None = None
    schema: Mapping[str, Any] | None = None
    role: Role = "ordinary"
    followers: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class RoutingTable:
    """All routes, and their origin. A table derived from the history knows the agents, but not who may follow whom."""

    routing: Routing
    routes: Mapping[str, Route] = field(default_factory=lambda: dict[str, Route]())

    def route(self, agent: str) -> Route:
        """Return an agent's route. An agent that the table does not know is ordinary, and accepts any request."""
        return self.routes.get(agent) or Route(agent, role=guess_role(agent) if self.routing == "history" else "ordinary")

    def followers(self, agent: str) -> list[str]:
        """Return the agents that may follow an agent: never itself, never the context manager."""
        named = self.route(agent).followers
        return [name for name in (self.routes if named is None else named) if name != agent]


def derive_table(agents: Sequence[str]) -> RoutingTable:
    """Return a table with the agents of a history, in which each may follow each."""
    return RoutingTable("history", {agent: Route(agent, role=guess_role(agent)) for agent in agents})


def guess_role(agent: str) -> Role:
    """Return an agent's role, judged by its name."""
    return "review" if _REVIEW.search(agent) else "merge" if _MERGE.search(agent) else "ordinary"


def configured_table(config: Config) -> RoutingTable | None:
    """Return the table in the configuration or in the file that it names; None if it has none.

    Raises:
        InvalidInput: it is no routing table, or names a file that the configuration may not name.
    """
    if isinstance(config.routes, Mapping):
        from pathlib import Path

        source = config.find_file("recover.routes") or Path(OWN_FILE)
        return parse_table(dict(config.routes), source.parent, f"{source}: recover.routes", config.routes_folder)
    return None if config.routes is None else read_table(config.routes, config.routes_folder)


def read_table(file: str | Path, confined: Path | None = None) -> RoutingTable:
    """Return the table in a TOML or JSON file with one table for each agent.

    Args:
        file: its path.
        confined: the folder that must contain its schemas; None to allow any folder.

    Raises:
        InvalidInput: the file can't be read, or is no routing table.
    """
    from pathlib import Path

    path = Path(file)
    try:
        text = read_regular(path, _LARGEST_FILE).decode("utf-8")
        value: Any = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except _MALFORMED as error:
        raise InvalidInput(f"{path}: no routing table: {_reason(error)}", "TOML, or JSON when it ends in .json") from None
    return parse_table(value, path.parent, str(path), confined)


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def parse_table(table: object, folder: Path, where: str, confined: Path | None = None) -> RoutingTable:
    """Return the table in a configuration. Paths of schemas are relative to ``folder``; for ``confined`` see `read_table`.

    Raises:
        InvalidInput: a key is unknown, a value has the wrong type, or a named agent is missing.
    """
    if not isinstance(table, dict) or not table:
        raise InvalidInput(f"{where}: no agents in the routing table", 'e.g. [coder] next = ["reviewer"]')
    agents = cast("dict[str, Any]", table)
    routes = {agent: _parse_route(agent, fields, (folder, confined), f"{where}: {agent}") for agent, fields in agents.items()}
    for route in routes.values():
        for follower in route.followers or ():
            if follower not in routes:
                raise InvalidInput(
                    f"{where}: {route.agent} may be followed by {follower!r}, which is not in the table",
                    "add it, or mend the name",
                )
    return RoutingTable("table", routes)


def _parse_route(agent: str, fields: object, folders: tuple[Path, Path | None], where: str) -> Route:
    if not agent.strip() or is_context_manager(agent):
        raise InvalidInput(f"{where}: this name can't be routed to", "the context manager is never a target")
    if not isinstance(fields, dict):
        raise InvalidInput(f"{where}: must be a table", 'e.g. [coder] next = ["reviewer"]')
    values = cast("dict[str, Any]", fields)
    if unknown := sorted(set(values) - _KEYS):
        raise InvalidInput(f"{where}: unknown setting {unknown[0]!r}", "known: request, schema, role, next")
    request, role, followers = values.get("request"), values.get("role", "ordinary"), values.get("next")
    if request is not None and not isinstance(request, str):
        raise InvalidInput(f"{where}: request must be the name of a request type", 'e.g. request = "CodeRequest"')
    if role not in _ROLES:
        raise InvalidInput(f"{where}: unknown role {role!r}", "ordinary, review or merge")
    if followers is not None and not _is_texts(followers):
        raise InvalidInput(f"{where}: next must be a list of agents", 'e.g. next = ["reviewer"]')
    names = None if followers is None else tuple(cast("list[str]", followers))
    return Route(agent, request, _read_schema(values.get("schema"), *folders, where), role, names)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in cast("list[object]", value))


def _read_schema(value: object, folder: Path, confined: Path | None, where: str) -> Mapping[str, Any] | None:
    if value is None:
        return None
    if isinstance(value, str):
        path = folder / value
        try:
            if confined is not None and not is_inside(str(confined), str(path)):
                raise InvalidInput(f"{where}: schema {path} lies outside of {confined}", "put it there, or run 'ctxmgr trust'")
            value = json.loads(read_regular(path, MAX_SETTINGS_BYTES))
        except _MALFORMED as error:
            raise InvalidInput(
                f"{where}: schema {path}: {_reason(error)}", "name a JSON Schema file, or write it as a table"
            ) from None
    if not isinstance(value, dict):
        raise InvalidInput(f"{where}: schema must be a JSON Schema", "an object, or the path of a file that holds one")
    return check_schema(cast("dict[str, Any]", value), where)


def check_routes(config: Config) -> Check:
    """Return which routing table a recovery would use, or why it can't use one."""
    where = config.find_file("recover.routes") if isinstance(config.routes, Mapping | None) else config.routes
    if config.routes is None:
        finding = "no routing table: who may follow whom is read off each history"
        return Check(name="routes", level="info", finding=finding, detail={"path": None, "agents": 0})
    try:
        table = configured_table(config)
        assert table is not None, "there are routes"
    except CtxmgrError as error:
        detail = {"path": str(where), "agents": 0}
        return Check(name="routes", level="fail", finding=error.message, hint=error.hint, kind=error.kind, detail=detail)
    detail = {"path": str(where), "agents": len(table.routes)}
    return Check(name="routes", level="ok", finding=f"{where}: agents named: {len(table.routes):,}", detail=detail)

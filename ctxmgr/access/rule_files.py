"""Read rules from a TOML or JSON file, all or none, and name the place of each error; the default rules of spec 003 are one."""

from __future__ import annotations

import json
import tomllib
from importlib.resources import files
from typing import Any, NoReturn, cast

from ctxmgr.access.patterns import PERMISSIONS, PRIORITIES, RESOURCE_TYPES, check_choice, check_rule, rule_key
from ctxmgr.errors import InvalidInput
from ctxmgr.types.access import DEFAULT_PRIORITY, AccessRule

MAX_TEXT = 4 * 1024 * 1024
"""Longest accepted file, in characters."""

_EXAMPLE = 'e.g. rules = [{agent = "debugger", resource_type = "artifact", pattern = "*", permission = "read", priority = 30}]'
_FIELDS = ("agent", "resource_type", "resourceType", "pattern", "permission", "priority")


def parse_rules_file(text: str, name: str) -> list[AccessRule]:
    """Return the rules of a file, in its order.

    The file holds an array ``rules`` of tables with ``agent``, ``resource_type`` (or ``resourceType``), ``pattern``,
    ``permission`` and, when it is not 100, ``priority``. A file whose name ends in ``.json`` is JSON, every other one TOML.
    Arrays ``needs`` and ``keys`` beside it, as the default template has them, are left alone.

    Raises:
        InvalidInput: it is neither, holds anything else, or a rule twice; the message says where.
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
            rule = _rule(row)
        except InvalidInput as error:
            raise InvalidInput(f"{place}: {error.message}", error.hint) from None
        if rules.setdefault(rule_key(rule), rule) is not rule:
            raise InvalidInput(f"{place}: this agent, type, pattern and permission stand there before", "keep one of the two")
    return list(rules.values())


def read_table(text: str, name: str) -> dict[str, Any]:
    """Return what a TOML file, or a JSON file (by its name), holds.

    Raises:
        InvalidInput: it is too long, broken, nested too deep, or not one table.
    """
    if len(text) > MAX_TEXT:
        raise InvalidInput(f"{name}: longer than {MAX_TEXT:,} characters", "split the file")
    text = text.removeprefix("\ufeff")
    try:
        values: Any
        if name.lower().endswith(".json"):
            values = json.loads(text, object_pairs_hook=_table, parse_constant=_refuse_constant)
        else:
            values = tomllib.loads(text)
    except RecursionError:
        raise InvalidInput(f"{name}: nested too deep", _EXAMPLE) from None
    except ValueError as error:  # both decoders' errors, and numbers of more digits than Python reads
        raise InvalidInput(
            f"{name}: {error}", "a file whose name ends in .json is read as JSON, every other one as TOML"
        ) from None
    if not isinstance(values, dict):
        raise InvalidInput(f"{name}: must hold one table", _EXAMPLE)
    return cast("dict[str, Any]", values)


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("an object names the same key twice")
    return table


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _rule(row: object) -> AccessRule:
    if not isinstance(row, dict):
        raise InvalidInput("must be a table", _EXAMPLE)
    fields = cast("dict[str, Any]", row)
    if unknown := sorted(set(fields) - set(_FIELDS)):
        raise InvalidInput(f"unknown field {unknown[0][:80]!r}", f"known: {', '.join(_FIELDS)}")
    if "resource_type" in fields and "resourceType" in fields:
        raise InvalidInput("both resource_type and resourceType are given", "keep one of the two")
    kind = check_choice("resource type", fields.get("resource_type", fields.get("resourceType")), RESOURCE_TYPES)
    permission = check_choice("permission", fields.get("permission"), PERMISSIONS)
    priority = fields.get("priority", DEFAULT_PRIORITY)
    if type(priority) is not int or not PRIORITIES[0] <= priority <= PRIORITIES[1]:
        raise InvalidInput("priority must be a whole number of at most 32 bits", "the lower number counts first; 100 is usual")
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
    """Return the rules of the template, in the order of its file."""
    return parse_rules_file(_default_text(), DEFAULT_FILE)


def default_needs() -> list[dict[str, Any]]:
    """Return what the packages of the template's agents hold, in the order of its file.

    Each has ``agent``, ``pattern``, ``need`` (``required``, ``optional``, ``if_exists`` or ``reference``), ``max_tokens``
    (None: no limit), ``use_summary`` and ``priority``.
    """
    rows = cast("list[dict[str, Any]]", read_table(_default_text(), DEFAULT_FILE)["needs"])
    return [{"agent": row["agent"], "pattern": row["pattern"], "need": row["need"], **_NEED, **row} for row in rows]


def default_keys() -> list[dict[str, Any]]:
    """Return the context keys that a project begins with: ``key``, ``value`` and ``description`` of each, all texts."""
    return [dict(row) for row in cast("list[dict[str, Any]]", read_table(_default_text(), DEFAULT_FILE)["keys"])]


def _default_text() -> str:
    return files("ctxmgr.access").joinpath(DEFAULT_FILE).read_text("utf-8")

"""Load the default rules and needs of spec 003."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, cast

from ctxmgr.access.rule_files import parse_rules_file, read_table
from ctxmgr.types.access import AccessRule

FILE = "default_rules.toml"

_NEED = {"max_tokens": None, "use_summary": False, "priority": 100}


def default_rules() -> list[AccessRule]:
    """Return the rules of the template, in the order of its file."""
    return parse_rules_file(_text(), FILE)


def default_needs() -> list[dict[str, Any]]:
    """Return what the packages of the template's agents hold, in the order of its file.

    Each has ``agent``, ``pattern``, ``need`` (``required``, ``optional``, ``if_exists`` or ``reference``), ``max_tokens``
    (None: no limit), ``use_summary`` and ``priority``.
    """
    rows = cast("list[dict[str, Any]]", read_table(_text(), FILE)["needs"])
    return [{"agent": row["agent"], "pattern": row["pattern"], "need": row["need"], **_NEED, **row} for row in rows]


def default_keys() -> list[dict[str, Any]]:
    """Return the context keys that a project begins with: ``key``, ``value`` and ``description`` of each, all texts."""
    return [dict(row) for row in cast("list[dict[str, Any]]", read_table(_text(), FILE)["keys"])]


def _text() -> str:
    return files("ctxmgr.access").joinpath(FILE).read_text("utf-8")

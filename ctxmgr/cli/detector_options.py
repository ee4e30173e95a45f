"""``--set NAME=VALUE``: detector settings for one run."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any, cast

from ctxmgr.errors import InvalidInput


def parse_settings(texts: Sequence[str]) -> dict[str, Any]:
    """Return the table that the options spell; ``actions.Bash.repeat_rounds=5`` sets one action's threshold.

    Names and values are those of TOML; a name of an action with odd characters is quoted.

    Raises:
        InvalidInput: naming the option that can't be read.
    """
    table: dict[str, Any] = {}
    for text in texts:
        try:
            _merge(table, tomllib.loads(text))
        except tomllib.TOMLDecodeError:
            raise InvalidInput(f"--set {text!r} is no setting", "e.g. --set repeat_rounds=4") from None
    return table


def _merge(table: dict[str, Any], more: dict[str, Any]) -> None:
    for name, value in more.items():
        known = table.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            _merge(cast("dict[str, Any]", known), cast("dict[str, Any]", value))
        else:
            table[name] = value


def merged(table: dict[str, Any], texts: Sequence[str] | None) -> dict[str, Any]:
    """Return a configuration's table with the options over it."""
    found: dict[str, Any] = {}
    _merge(found, table)
    _merge(found, parse_settings(texts or []))
    return found

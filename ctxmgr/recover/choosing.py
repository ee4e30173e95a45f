"""Which model a recovery asks, and within which limits, from what a call says, the environment and the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ctxmgr.recover.model.choice import ModelChoice, resolve
from ctxmgr.types.desk import ModelRequest


def chosen(wanted: ModelRequest, environment: Mapping[str, str], table: Mapping[str, Any]) -> ModelChoice | None:
    """Return the model to be asked, or None when the rules answer alone.

    Raises:
        InvalidInput: a name, an address or a limit can't be used.
    """
    if wanted.off:
        return None
    choice = resolve(wanted.name, wanted.base_url, wanted.mode, environment, table)
    if choice is None:
        return None
    limits = {"timeout": wanted.seconds, "max_tokens": wanted.max_tokens, "max_tool_calls": wanted.max_tool_calls}
    given = {name: value for name, value in limits.items() if value is not None}
    if not given:
        return choice
    # The limits of a call are checked as those of the configuration are.
    checked = resolve(choice.name, choice.base_url, choice.mode, {}, {**given, "name": choice.name})
    assert checked is not None, "a named model stays one"
    return replace(
        choice,
        seconds=choice.seconds if wanted.seconds is None else checked.seconds,
        max_tokens=choice.max_tokens if wanted.max_tokens is None else checked.max_tokens,
        max_tool_calls=choice.max_tool_calls if wanted.max_tool_calls is None else checked.max_tool_calls,
    )

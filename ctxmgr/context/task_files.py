"""Read a task description from a JSON or YAML file of bounded size."""

from __future__ import annotations

from typing import Any, cast

from ctxmgr.errors import InvalidInput
from ctxmgr.log.codec import decoder, encode
from ctxmgr.log.json_value import plain

MOST_BYTES = 1_000_000
_DEEPEST = 50
_HINT = "a task is a JSON or YAML map, e.g. title: Implement the parser"


def read_task_context(content: bytes, name: str) -> dict[str, Any]:
    """Return the map that a file holds.

    Args:
        content: of the file.
        name: what to call it in errors.

    Raises:
        InvalidInput: it is too large, no text, neither JSON nor YAML, no map, nested too deep, or refers to its own parts.
    """
    if len(content) > MOST_BYTES:
        raise InvalidInput(f"{name} has {len(content):,} bytes", f"a task's context has at most {MOST_BYTES:,}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"{name} is not UTF-8", _HINT) from None
    value = _parsed(text, name)
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} holds no map", _HINT)
    told = cast("dict[str, Any]", plain(cast("object", value)))
    encode(told)  # what a record can't hold, a package can't either
    return told


def _parsed(text: str, name: str) -> object:
    try:
        return decoder.decode(text.strip())
    except (ValueError, RecursionError):
        pass
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent

    depth = 0
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
            if isinstance(event, AliasEvent) or depth > _DEEPEST:
                fault = "refers to its own parts" if isinstance(event, AliasEvent) else f"is nested deeper than {_DEEPEST}"
                raise InvalidInput(f"{name} {fault}", _HINT)
        return YAML(typ="safe", pure=True).load(text)
    except (YAMLError, ValueError, RecursionError, TypeError) as error:
        raise InvalidInput(f"{name} is neither JSON nor YAML: {str(error).splitlines()[0]}", _HINT) from None
